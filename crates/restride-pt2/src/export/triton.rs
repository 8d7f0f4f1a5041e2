//! Triton kernels, written as `triton_kernel_wrapper_mutation` and `triton_kernel_wrapper_functional`; `import/triton.rs` reads
//! them as custom operators.

use super::auto_functionalized::{ExportBase, base};
use super::graph::{GraphWriter, as_tensor};
use super::torch_layouts;
use crate::as_strided_args as strided;
use crate::import::triton::{LAUNCH, NAME, WRITTEN};
use crate::model::{Argument, NamedArgument, TensorArgument};
use restride_ir::{Arg, Dim, Error, Expr, Layout, Node, Op, Result, TensorType, ValueId};
use restride_ops::{CustomArg, CustomView, decode_views};
use restride_tensor::{Overlap, overlap};
use std::sync::Arc;

/// Writes a launch that mutates its arguments.
pub fn write(w: &mut GraphWriter<'_>, node: &Node) -> Result<()> {
    let op = node.op;
    let mut given = Vec::with_capacity(node.args.len());
    for (decl, arg) in op.schema().args.iter().zip(&node.args) {
        given.push(w.argument(arg, Some(decl.ty))?);
    }
    let inputs = inputs(op, given);
    w.push("torch.ops.higher_order.triton_kernel_wrapper_mutation".into(), inputs, vec![Argument::AsNone(true)], true);
    Ok(())
}

/// The node's arguments: the kernel's own, its name, its launch options, and positions of mutated arguments.
fn inputs(op: Op, given: Vec<Argument>) -> Vec<NamedArgument> {
    let schema = op.schema();
    let (mut own, mut options) = (Vec::new(), Vec::new());
    let option = NamedArgument::keyword;
    options.push(option(NAME, Argument::AsString(schema.name.clone())));
    for (decl, arg) in schema.args.iter().zip(given) {
        match decl.name.strip_prefix(LAUNCH).filter(|_| decl.kwarg_only) {
            Some(name) => options.push(option(name, arg)),
            None => own.push(NamedArgument::positional(decl.name.clone(), arg)),
        }
    }
    let written = schema.args.iter().enumerate().filter(|(_, a)| crate::mutates(a)).map(|(i, _)| i as i64).collect();
    options.push(option(WRITTEN, Argument::AsInts(written)));
    own.extend(options);
    own
}

/// An argument that a kernel mutates, in the functional form.
struct WrittenArg {
    base: usize,
    /// Its layout in the base's storage; `None` for the whole base.
    part: Option<Layout<Expr>>,
    /// Name of the new contents.
    result: Arc<str>,
}

/// Writes a call of a kernel's functional form: parts of bases go in as views, and their new contents are scattered back.
pub fn write_functional(w: &mut GraphWriter<'_>, node: &Node, op: Op) -> Result<()> {
    let schema = op.schema();
    let bad = || Error::invalid(format!("{} is not called as a functional form is", node.op));
    let [Arg::Values(values), views, rest @ ..] = &node.args[..] else { return Err(bad()) };
    let mut bases: Vec<ExportBase> = Vec::with_capacity(values.len());
    for v in values {
        bases.push(base(w, op, v.ok_or_else(bad)?)?);
    }
    let contents: Vec<ValueId> = node.results.to_vec();
    if contents.len() != bases.len() {
        return Err(bad());
    }
    let decoded = decode_views(op, views.scalars(), bases.len())?;
    let mut views = decoded.into_iter();
    let mut rest = rest.iter();
    let mut given = Vec::with_capacity(schema.args.len());
    let mut written: Vec<WrittenArg> = Vec::new();
    for decl in &schema.args {
        if !crate::mutates(decl) {
            let arg = rest.next().ok_or_else(bad)?;
            // A kernel reads its operands by their strides.
            for &v in arg.values() {
                if w.source.values[v].ty.tensor().is_some()
                    && let Some(name) = torch_layouts::exact(w, v)?
                {
                    w.instead.insert(v, name);
                }
            }
            given.push(w.argument(arg, Some(decl.ty))?);
            w.instead.clear();
            continue;
        }
        let (of, part) = match views.next() {
            Some(CustomArg::One(CustomView::Base(b))) => (b, None),
            Some(CustomArg::One(CustomView::Strided(b, layout))) => (b, Some(layout)),
            _ => return Err(bad()),
        };
        let (dtype, whole) = (w.source.tensor(bases[of].value).dtype, w.source.tensor(bases[of].value).layout.clone());
        for other in written.iter().filter(|o| o.base == of) {
            let (a, b) = (other.part.as_ref().unwrap_or(&whole), part.as_ref().unwrap_or(&whole));
            if a.known().zip(b.known()).is_none_or(|(a, b)| overlap(&a, &b) != Overlap::Disjoint) {
                let what = format!("the triton kernel {} writes two arguments that may share memory", schema.name);
                return Err(Error::unsupported(what).help("clone one of them before the launch"));
            }
        }
        let name = bases[of].name.clone();
        let part = part.map(|mut layout| {
            layout.offset = layout.offset.minus(&bases[of].shift);
            layout
        });
        let (arg, ty) = match &part {
            None => (name, TensorType::new(dtype, whole)),
            Some(layout) => {
                let ty = TensorType::new(dtype, layout.clone());
                (w.call_on("aten.as_strided.default", &name, &strided(layout), "region", &ty)?, ty)
            }
        };
        given.push(as_tensor(&arg));
        // The new contents of a whole base need no scatter.
        let result = match &part {
            None => match w.declare(contents[of], false)? {
                Argument::AsTensor(t) => t.name.into(),
                _ => return Err(bad()),
            },
            Some(_) => {
                let result = w.fresh("written");
                w.declare_unused(&result, &ty)?;
                result
            }
        };
        written.push(WrittenArg { base: of, part, result });
    }
    let outputs = written.iter().map(|o| TensorArgument { name: o.result.to_string() }).collect();
    let target = "torch.ops.higher_order.triton_kernel_wrapper_functional";
    w.push(target.into(), inputs(op, given), vec![Argument::AsTensors(outputs)], true);
    for (b, base) in bases.iter().enumerate() {
        let parts: Vec<&WrittenArg> = written.iter().filter(|o| o.base == b && o.part.is_some()).collect();
        let mut content = base.name.clone();
        for (k, o) in parts.iter().enumerate() {
            let scatter = restride_ops::lookup("aten.as_strided_scatter.default").ok_or_else(bad)?;
            let args = [vec![Arg::None, Arg::None], o.part.as_ref().map(strided).unwrap_or_default()].concat();
            let mut inputs = w.inputs(scatter, &args)?;
            (inputs[0].arg, inputs[1].arg) = (as_tensor(&content), as_tensor(&o.result));
            let result = if k + 1 == parts.len() {
                w.declare(contents[b], false)?
            } else {
                let ty = w.source.tensor(base.value).clone();
                let name = w.fresh("scattered");
                w.declare_unused(&name, &ty)?;
                as_tensor(&name)
            };
            if let Argument::AsTensor(t) = &result {
                content = t.name.as_str().into();
            }
            w.push(super::graph::target(scatter), inputs, vec![result], false);
        }
    }
    torch_layouts::learn(w, node)?;
    // PyTorch clones bases and scatter targets with their strides.
    for (base, v) in bases.iter().zip(contents) {
        w.layouts.laid(v, base.shift.is(0));
    }
    Ok(())
}
