//! Custom operators that mutate arguments, written as PyTorch's `auto_functionalized_v2`: the mutated tensors are bases, and
//! each mutated argument is a view of one.

use super::graph::{GraphWriter, target};
use super::torch_layouts;
use crate::model::{Argument, NamedArgument, TensorArgument};
use restride_ir::{Arg, ArgType, Dim, Error, Expr, Layout, Node, Op, Result, TensorType, Type, ValueId};
use restride_ops::{CustomArg, CustomView, decode_views};
use std::sync::Arc;

/// A base under its name in the file.
pub(super) struct ExportBase {
    pub value: ValueId,
    pub name: Arc<str>,
    /// Cells by which its storage offset is smaller than that of its type.
    pub shift: Expr,
}

/// Writes a call of the functional form of `op`.
pub fn write(w: &mut GraphWriter<'_>, node: &Node, op: Op) -> Result<()> {
    let schema = op.schema();
    taken_by_torch(op)?;
    let bad = || Error::invalid(format!("{} is not called as a functional form is", node.op));
    let [Arg::Values(values), views, rest @ ..] = &node.args[..] else { return Err(bad()) };
    let mut bases = Vec::with_capacity(values.len());
    for v in values {
        bases.push(base(w, op, v.ok_or_else(bad)?)?);
    }
    let written = decode_views(op, views.scalars(), bases.len())?;

    let mut inputs = vec![NamedArgument::positional("", Argument::AsOperator(target(op)))];
    let keyword = NamedArgument::keyword;
    let reads = schema.args.iter().filter(|a| !crate::mutates(a));
    for (decl, arg) in reads.zip(rest) {
        // A custom operator may read strides.
        for &v in arg.values() {
            if w.source.values[v].ty.tensor().is_some()
                && let Some(name) = torch_layouts::exact(w, v)?
            {
                w.instead.insert(v, name);
            }
        }
        inputs.push(keyword(decl.name.clone(), w.argument(arg, Some(decl.ty))?));
        w.instead.clear();
    }
    let writes = schema.args.iter().filter(|a| crate::mutates(a));
    for (decl, given) in writes.zip(&written) {
        let name = format!("_{}", decl.name);
        match given {
            CustomArg::One(view) => write_view(w, &name, view, &bases, &mut inputs)?,
            CustomArg::List(None) => inputs.push(keyword(format!("{name}_length"), Argument::AsNone(true))),
            CustomArg::List(Some(list)) => {
                inputs.push(keyword(format!("{name}_length"), Argument::AsInt(list.len() as i64)));
                for (i, view) in list.iter().enumerate() {
                    write_view(w, &format!("{name}_{i}"), view, &bases, &mut inputs)?;
                }
            }
        }
    }
    let all = bases.iter().map(|b| TensorArgument { name: b.name.to_string() }).collect();
    inputs.push(keyword("_all_bases".into(), Argument::AsTensors(all)));

    let mut outputs = Vec::new();
    let mut results = node.results.iter().copied();
    if schema.returns.is_empty() {
        outputs.push(Argument::AsNone(true));
    }
    for r in &schema.returns {
        outputs.push(if r.alias.is_none() {
            w.declare(results.next().ok_or_else(bad)?, false)?
        } else {
            returned(w, &written, &bases)?
        });
    }
    let contents: Vec<ValueId> = results.collect();
    if contents.len() != bases.len() {
        return Err(bad());
    }
    for &v in &contents {
        outputs.push(w.declare(v, false)?);
    }
    w.push("torch.ops.higher_order.auto_functionalized_v2".into(), inputs, outputs, true);
    torch_layouts::learn(w, node)?;
    // PyTorch clones the bases with their strides and where they start in their storage.
    for (base, v) in bases.iter().zip(contents) {
        w.layouts.laid(v, base.shift.is(0));
    }
    Ok(())
}

/// Refuses operators that PyTorch's `can_auto_functionalize` refuses when the file is run.
fn taken_by_torch(op: Op) -> Result<()> {
    let schema = op.schema();
    let first = schema.args.first().and_then(|a| a.alias.as_ref()).filter(|a| a.write);
    for r in &schema.returns {
        let itself = match &r.alias {
            None => true,
            // `foo_(Tensor(a!) x) -> Tensor(a!)`, which PyTorch takes when it is tagged as in-place.
            Some(alias) => schema.returns.len() == 1 && first.is_some_and(|f| f.sets == alias.sets),
        };
        if r.ty != ArgType::Tensor || !itself {
            return Err(Error::unsupported(format!(
                "{op} mutates arguments and returns something other than new tensors"
            ))
            .help("PyTorch has a functional form only for operators whose results are new tensors"));
        }
    }
    Ok(())
}

pub(super) fn base(w: &mut GraphWriter<'_>, op: Op, value: ValueId) -> Result<ExportBase> {
    let ty = w.source.tensor(value).clone();
    if w.layouts.has_layout(value) {
        return Ok(ExportBase { value, name: w.name(value)?, shift: Expr::Int(0) });
    }
    let name = torch_layouts::exact_copy(w, value)?
        .ok_or_else(|| Error::unsupported(format!("{op} of a value whose memory PyTorch may lay out otherwise")))?;
    Ok(ExportBase { value, name, shift: ty.layout.offset })
}

/// A view as PyTorch reads it: the number of its base, and `as_strided` arguments unless it is the whole base.
fn write_view(
    w: &mut GraphWriter<'_>,
    prefix: &str,
    view: &CustomView,
    bases: &[ExportBase],
    inputs: &mut Vec<NamedArgument>,
) -> Result<()> {
    let mut say = |w: &mut GraphWriter<'_>, what: &str, arg: &Arg, ty: ArgType| {
        let arg = w.argument(arg, Some(ty))?;
        inputs.push(NamedArgument::keyword(format!("{prefix}_{what}"), arg));
        Ok::<_, Error>(())
    };
    let index = |b: usize| Arg::Scalar(Expr::Int(b as i64));
    match view {
        CustomView::None => say(w, "base_index", &Arg::None, ArgType::Int),
        CustomView::Base(b) => say(w, "base_index", &index(*b), ArgType::Int),
        CustomView::Strided(b, layout) => {
            let offset = layout.offset.minus(&bases[*b].shift);
            say(w, "base_index", &index(*b), ArgType::Int)?;
            say(w, "size", &Arg::Scalars(layout.sizes.to_vec()), ArgType::Ints(None))?;
            say(w, "stride", &Arg::Scalars(layout.strides.to_vec()), ArgType::Ints(None))?;
            say(w, "storage_offset", &Arg::Scalar(offset), ArgType::Int)
        }
    }
}

/// The output slot of a returned first argument. No node reads it, because readers of the argument read its base.
fn returned(w: &mut GraphWriter<'_>, written: &[CustomArg], bases: &[ExportBase]) -> Result<Argument> {
    let name = w.fresh("returned");
    let (base, layout): (usize, Option<&Layout<Expr>>) = match written.first() {
        Some(CustomArg::One(CustomView::Base(b))) => (*b, None),
        Some(CustomArg::One(CustomView::Strided(b, layout))) => (*b, Some(layout)),
        _ => return Ok(Argument::AsNone(true)),
    };
    let whole = &w.source.values[bases[base].value].ty;
    let Type::Tensor(ty) = whole else { return Ok(Argument::AsNone(true)) };
    let ty = TensorType::new(ty.dtype, layout.unwrap_or(&ty.layout).clone());
    w.declare_unused(&name, &ty)?;
    Ok(Argument::AsTensor(TensorArgument { name: name.to_string() }))
}
