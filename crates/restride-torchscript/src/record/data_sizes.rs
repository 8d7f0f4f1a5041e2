//! Types of results whose sizes data decides. Exported programs record them; here each such size is a fresh symbol.

use super::call::{CallArg, contiguous, has_learnt_size};
use super::{RecordedResult, Recorder, TensorRef};
use restride_ir::{Arg, Args, DType, Dim, Error, Expr, ExprFn, Layout, Op, Result, Scalar, TensorType};

/// Types of the results of a call, if data decides their sizes.
pub(super) fn types(
    recorder: &mut Recorder<'_>,
    op: Op,
    args: &[Arg<TensorType, Expr>],
    refs: &[CallArg],
) -> Result<Option<Vec<TensorType>>> {
    let a = Args(args);
    let this = || match refs.first() {
        Some(Arg::Value(t)) => Some(t.clone()),
        _ => None,
    };
    let flag = |i: usize| matches!(args.get(i), Some(Arg::Scalar(Expr::Bool(true))));
    let first = || a.tensor(0).map_err(Error::from);
    let numel = |t: &TensorType| t.layout.sizes.iter().fold(Expr::Int(1), |n, s| n.times(s));
    let most = |e: &Expr| e.known();
    Ok(Some(match op.name() {
        "aten.nonzero.default" | "aten.argwhere.default" => {
            let x = first()?;
            let n = recorder.count(this(), most(&numel(x)));
            // The index of a dimension is a column without gaps.
            let layout = Layout::strided(&[n.clone(), Expr::Int(x.rank() as i64)], &[Expr::Int(1), n], Expr::Int(0));
            vec![TensorType::new(DType::I64, layout)]
        }
        "aten.masked_select.default" => {
            let x = first()?;
            let n = recorder.symbol("u", Some(0), None);
            vec![contiguous(x.dtype, &[n])]
        }
        "torchvision.nms.default" => {
            let x = first()?;
            let n = recorder.symbol("u", Some(0), x.layout.sizes.first().and_then(most));
            vec![contiguous(DType::I64, &[n])]
        }
        "aten._unique.default" | "aten._unique2.default" | "aten.unique_consecutive.default" => {
            let x = first()?;
            let consecutive = op.name() == "aten.unique_consecutive.default";
            if consecutive && !a.is_none(3) {
                return Err(Error::unsupported("unique_consecutive over a dimension"));
            }
            let n = recorder.symbol("u", Some(0), most(&numel(x)));
            let empty = || contiguous(DType::I64, &[Expr::Int(0)]);
            let inverse = flag(if consecutive { 1 } else { 2 });
            let counts = flag(if consecutive { 2 } else { 3 });
            let mut out = vec![contiguous(x.dtype, std::slice::from_ref(&n))];
            out.push(if inverse { contiguous(DType::I64, &x.layout.sizes) } else { empty() });
            if op.name() != "aten._unique.default" {
                out.push(if counts { contiguous(DType::I64, &[n]) } else { empty() });
            }
            out
        }
        "aten.unique_dim.default" => {
            let x = first()?;
            let dim = match args.get(1) {
                Some(Arg::Scalar(Expr::Int(d))) => x.layout.dim(*d).map_err(|e| Error::invalid(e.to_string()))?,
                _ => return Err(Error::unsupported("unique_dim over a dimension that is not known")),
            };
            let n = recorder.symbol("u", Some(0), most(&x.layout.sizes[dim]));
            let old = x.layout.sizes[dim].clone();
            let mut sizes = x.layout.sizes.to_vec();
            sizes[dim] = n.clone();
            let empty = || contiguous(DType::I64, &[Expr::Int(0)]);
            vec![
                contiguous(x.dtype, &sizes),
                if flag(3) { contiguous(DType::I64, &[old]) } else { empty() },
                if flag(4) { contiguous(DType::I64, &[n]) } else { empty() },
            ]
        }
        "aten.bincount.default" => {
            let weights = a.opt_tensor(1).map_err(Error::from)?;
            let dtype = match weights.map(|w| w.dtype) {
                None => DType::I64,
                Some(DType::F32) => DType::F32,
                Some(_) => DType::F64,
            };
            let n = recorder.symbol("u", Some(0), None);
            vec![contiguous(dtype, &[n])]
        }
        "aten.repeat_interleave.Tensor" if a.is_none(1) => {
            let n = recorder.symbol("u", Some(0), None);
            vec![contiguous(DType::I64, &[n])]
        }
        "aten.index.Tensor" => return masked_index(recorder, &a, refs),
        "aten.cat.default" => return Ok(joined(args)),
        "aten.constant_pad_nd.default" => return Ok(padded(args)),
        "aten.zeros.default" | "aten.ones.default" | "aten.empty.memory_format" | "aten.full.default" => {
            return Ok(made_of_sizes(op, args));
        }
        _ => return Ok(None),
    }))
}

/// Operators that give the columns of `nonzero`, which share its memory.
pub(super) fn gives_columns(op: Op) -> bool {
    matches!(op.name(), "aten.nonzero_numpy.default" | "aten.where.default")
}

/// Whether data decides a size, and the elements are in row-major order.
fn is_learnt_row_major(t: &TensorType) -> bool {
    has_learnt_size(t) && is_row_major(t)
}

fn is_row_major(t: &TensorType) -> bool {
    t.rank() < 4 || t.layout.strides == contiguous(t.dtype, &t.layout.sizes).layout.strides
}

/// The result type of `cat` for tensors with sizes that data decides: the sizes along `dim` are added. The general rule tries values
/// of the symbols, and does not find such a sum.
fn joined(args: &[Arg<TensorType, Expr>]) -> Option<Vec<TensorType>> {
    let [Arg::Values(parts), Arg::Scalar(Expr::Int(dim)), ..] = args else { return None };
    let parts: Vec<&TensorType> = parts.iter().map(Option::as_ref).collect::<Option<_>>()?;
    let first = *parts.first()?;
    let dim = first.layout.dim(*dim).ok()?;
    let learnt = parts.iter().any(|p| is_learnt_row_major(p));
    if !learnt || parts.iter().any(|p| p.rank() != first.rank() || p.dtype != first.dtype || !is_row_major(p)) {
        return None;
    }
    let mut sizes = first.layout.sizes.to_vec();
    sizes[dim] = parts.iter().fold(Expr::Int(0), |n, p| n.plus(&p.layout.sizes[dim]));
    let same = |p: &TensorType| (0..p.rank()).all(|d| d == dim || p.layout.sizes[d] == sizes[d]);
    parts.iter().all(|p| same(p)).then(|| vec![contiguous(first.dtype, &sizes)])
}

/// A new tensor of sizes that data decides. A run refuses negative ones.
fn made_of_sizes(op: Op, args: &[Arg<TensorType, Expr>]) -> Option<Vec<TensorType>> {
    let [Arg::Scalars(sizes), more @ ..] = args else { return None };
    if !sizes.iter().any(Expr::is_learnt) {
        return None;
    }
    // The element type is that of any other sizes.
    let mut known = vec![Arg::Scalars(vec![Scalar::Int(1); sizes.len()])];
    for arg in more {
        known.push(arg.try_map(|t| t.known().ok_or(()), |e| e.constant().ok_or(())).ok()?);
    }
    let [ty] = &restride_ops::types(op, &known).ok()?[..] else { return None };
    Some(vec![contiguous(ty.dtype, sizes)])
}

/// The result type of `constant_pad_nd` for a tensor or a padding with sizes that data decides.
fn padded(args: &[Arg<TensorType, Expr>]) -> Option<Vec<TensorType>> {
    let [Arg::Value(x), Arg::Scalars(pads), ..] = args else { return None };
    if !(is_learnt_row_major(x) || is_row_major(x) && pads.iter().any(Expr::is_learnt)) || pads.len() > 2 * x.rank() {
        return None;
    }
    let mut sizes = x.layout.sizes.to_vec();
    for (size, both) in sizes.iter_mut().rev().zip(pads.chunks(2)) {
        *size = both.iter().fold(size.clone(), |n, pad| n.plus(pad));
    }
    Some(vec![contiguous(x.dtype, &sizes)])
}

/// `x[mask]`: the mask's dimensions become one.
fn masked_index(
    recorder: &mut Recorder<'_>,
    a: &Args<'_, TensorType, Expr>,
    refs: &[CallArg],
) -> Result<Option<Vec<TensorType>>> {
    let mask = |i: usize| match refs.get(1) {
        Some(Arg::Values(ts)) => ts.get(i).cloned().flatten(),
        _ => None,
    };
    let x = a.tensor(0).map_err(Error::from)?;
    let indices = a.opt_tensors(1).map_err(Error::from)?;
    let masked = |t: &TensorType| matches!(t.dtype, DType::Bool | DType::U8);
    if !indices.iter().flatten().any(|t| masked(t)) {
        return Ok(None);
    }
    // As nonzero of each mask, then an index over those.
    let mut expanded: Vec<Option<TensorType>> = Vec::new();
    for (i, index) in indices.iter().enumerate() {
        match index {
            Some(t) if masked(t) => {
                let n = recorder.count(mask(i), None);
                for _ in 0..t.rank() {
                    expanded.push(Some(contiguous(DType::I64, std::slice::from_ref(&n))));
                }
            }
            Some(t) => expanded.push(Some((*t).clone())),
            None => expanded.push(None),
        }
    }
    if expanded.len() > x.rank() {
        return Err(Error::new(
            restride_ir::ErrorKind::Program,
            format!("too many indices for tensor of dimension {}", x.rank()),
        ));
    }
    let learnt: Vec<&TensorType> = expanded.iter().flatten().collect();
    let rank = learnt.iter().map(|t| t.rank()).max().unwrap_or(0);
    let mut shared: Vec<Expr> = vec![Expr::Int(1); rank];
    for t in &learnt {
        let skip = rank - t.rank();
        for (d, n) in t.layout.sizes.iter().enumerate() {
            if matches!(shared[skip + d], Expr::Int(1)) {
                shared[skip + d] = n.clone();
            }
        }
    }
    expanded.resize(x.rank(), None);
    let places: Vec<usize> = (0..x.rank()).filter(|i| expanded[*i].is_some()).collect();
    let adjacent = places.windows(2).all(|w| w[1] == w[0] + 1);
    let mut sizes: Vec<Expr> = Vec::new();
    for (d, index) in expanded.iter().enumerate() {
        match index {
            None => sizes.push(x.layout.sizes[d].clone()),
            Some(_) if adjacent && Some(&d) == places.first() => sizes.extend(shared.iter().cloned()),
            Some(_) => {}
        }
    }
    if !adjacent {
        sizes.splice(0..0, shared);
    }
    Ok(Some(vec![contiguous(x.dtype, &sizes)]))
}

impl Recorder<'_> {
    /// Records `nonzero` and its columns.
    pub(super) fn columns(&mut self, mut t: TensorRef) -> Result<Vec<RecordedResult>> {
        if t.rank() == 0 {
            t = self.tensor("aten.unsqueeze.default", vec![Arg::Value(t), Arg::Scalar(Expr::Int(0))])?;
        }
        let found = self.tensor("aten.nonzero.default", vec![Arg::Value(t)])?;
        self.call_named("aten.unbind.int", vec![Arg::Value(found), Arg::Scalar(Expr::Int(1))])
    }

    /// The number of nonzero elements of a tensor: the same number for each call that counts the same content.
    fn count(&mut self, t: Option<TensorRef>, most: Option<i64>) -> Expr {
        let content = t.as_ref().map(|t| self.content(t));
        if let Some(content) = content
            && let Some((_, n)) = self.counts.iter().find(|(c, _)| *c == content)
        {
            return n.clone();
        }
        let n = self.symbol("u", Some(0), most);
        if let (Some(content), Some(t)) = (content, t) {
            self.counts.push((content, n.clone()));
            let all = self.numel(&t);
            if all.known().is_none() {
                self.pending.push(Expr::call(ExprFn::Le, vec![n.clone(), all]));
            }
        }
        n
    }
}
