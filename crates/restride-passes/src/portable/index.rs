//! Writes by index, in the form that every importer takes.

use crate::build::{Builder, rebuild};
use restride_ir::{Arg, DType, Dim, Expr, Layout, Program, Result, TensorType, ValueId};
use smallvec::SmallVec;
use std::sync::Arc;

/// The program with writes by index in that form, in every graph.
pub(super) fn indexed(program: &Program) -> Result<Program> {
    rebuild(program, |new, node| {
        let args = new.args(node);
        // Other compilers differentiate nothing: a history would be a copy to them.
        if let (true, Some(Arg::Value(value))) = (node.op.def().history, args.first()) {
            new.map.set(node.results[0], Some(*value));
            return Ok(());
        }
        let rule = match node.op.name() {
            "aten.select_scatter.default" => select_scatter,
            "aten.index_put.default" => index_put,
            _ => {
                new.keep(node, args);
                return Ok(());
            }
        };
        let (old, result) = (new.old, node.results[0]);
        let mut b = new.builder(node, result);
        match rule(&mut b, &args, old.tensor(result), &old.values[result].name) {
            Some(made) => new.map.set(result, Some(made)),
            None => new.keep(node, args),
        }
        Ok(())
    })
}

/// `slice_scatter` of one index, where that index is known not to count from the end.
fn select_scatter(b: &mut Builder<'_>, args: &[Arg], ty: &TensorType, name: &Arc<str>) -> Option<ValueId> {
    let [Arg::Value(base), Arg::Value(value), Arg::Scalar(dim), Arg::Scalar(index)] = args else { return None };
    let dim = ty.layout.dim(dim.known()?).ok()?;
    let index = match index.known() {
        Some(i) if i < 0 => index.plus(&ty.layout.sizes[dim]),
        _ => index.clone(),
    };
    if index.less(&Expr::Int(0)) != Some(false) {
        return None;
    }
    let from = b.graph.tensor(*value).clone();
    let layout = from.layout.unsqueeze(dim as i64).ok()?;
    let dim = Arg::Scalar(Expr::Int(dim as i64));
    b.hint = "unsqueeze".into();
    let thin =
        b.call("aten.unsqueeze.default", vec![Arg::Value(*value), dim.clone()], TensorType::new(from.dtype, layout));
    let end = index.plus(&Expr::Int(1));
    let args =
        vec![Arg::Value(*base), Arg::Value(thin), dim, Arg::Scalar(index), Arg::Scalar(end), Arg::Scalar(Expr::Int(1))];
    b.hint = name.clone();
    Some(b.call("aten.slice_scatter.default", args, ty.clone()))
}

/// `index_put` with an index for every dimension and values of exactly the sizes that are written.
fn index_put(b: &mut Builder<'_>, args: &[Arg], ty: &TensorType, name: &Arc<str>) -> Option<ValueId> {
    let [Arg::Value(base), Arg::Values(indices), Arg::Value(values), accumulate] = args else { return None };
    let rank = ty.rank();
    let given: Vec<(usize, ValueId)> = indices.iter().enumerate().filter_map(|(d, v)| Some((d, (*v)?))).collect();
    // A mask stands for as many indices as it has dimensions, and for a number of elements that is not known.
    let numbers = given.iter().all(|(_, v)| matches!(b.graph.tensor(*v).dtype, DType::I64 | DType::I32));
    if !numbers || given.is_empty() || indices.len() > rank {
        return None;
    }
    let shapes: Vec<_> = given.iter().map(|(_, v)| b.graph.tensor(*v).layout.sizes.clone()).collect();
    let group = broadcast(shapes.iter().map(|s| &s[..]))?;
    let (first, last) = (given[0].0, given[given.len() - 1].0);
    // Indices side by side are written where they stand, others before all that is taken whole.
    let at = if last - first + 1 == given.len() { first } else { 0 };
    let whole: Vec<usize> = (0..rank).filter(|d| given.iter().all(|g| g.0 != *d)).collect();
    let size = |d: &usize| ty.layout.sizes[*d].clone();
    let mut written: Vec<Expr> = whole[..at].iter().map(size).collect();
    written.extend(group.iter().cloned());
    written.extend(whole[at..].iter().map(size));
    let mut full: Vec<Option<ValueId>> = vec![None; rank];
    b.hint = "index".into();
    for (d, v) in given {
        let index = b.graph.tensor(v).clone();
        let mut sizes = index.layout.sizes.to_vec();
        sizes.resize(sizes.len() + whole.len() - at, Expr::Int(1));
        let layout = index.layout.view(&sizes).unwrap_or_else(|| Layout::contiguous(&sizes));
        full[d] = Some(b.reshape(v, TensorType::new(index.dtype, layout)));
    }
    for (i, &d) in whole.iter().enumerate() {
        let place = if i < at { i } else { i + group.len() };
        let n = size(&d);
        let line = TensorType::new(DType::I64, Layout::contiguous(std::slice::from_ref(&n)));
        let line = b.call("aten.arange.default", vec![Arg::Scalar(n.clone())], line);
        let mut sizes = vec![n];
        sizes.resize(written.len() - place, Expr::Int(1));
        full[d] = Some(b.reshape(line, TensorType::new(DType::I64, Layout::contiguous(&sizes))));
    }
    let from = b.graph.tensor(*values).clone();
    let values = if from.layout.sizes[..] == written[..] {
        *values
    } else {
        let layout = from.layout.expand(&written).ok()?;
        let sizes = Arg::Scalars(written.clone());
        b.hint = "expand".into();
        b.call("aten.expand.default", vec![Arg::Value(*values), sizes], TensorType::new(from.dtype, layout))
    };
    let args = vec![Arg::Value(*base), Arg::Values(full), Arg::Value(values), accumulate.clone()];
    b.hint = name.clone();
    Some(b.call("aten.index_put.default", args, ty.clone()))
}

/// The sizes that these broadcast to, where that is known.
fn broadcast<'a>(shapes: impl Iterator<Item = &'a [Expr]>) -> Option<SmallVec<[Expr; 4]>> {
    let mut out: SmallVec<[Expr; 4]> = SmallVec::new();
    for shape in shapes {
        while out.len() < shape.len() {
            out.insert(0, Expr::Int(1));
        }
        let lead = out.len() - shape.len();
        for (have, n) in out[lead..].iter_mut().zip(shape) {
            if have.is(1) {
                *have = n.clone();
            } else if !n.is(1) && have.equals(n) != Some(true) {
                return None;
            }
        }
    }
    Some(out)
}
