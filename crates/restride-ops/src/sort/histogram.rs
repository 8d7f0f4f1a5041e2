//! `histogram`, `histogramdd` and `segment_reduce`: counts between edges, and reductions over segments.

use crate::support::composite::composite;
use crate::support::promote::name;
use crate::support::*;
use restride_ir::{DType, Emit, OpDef, Val};
use smallvec::smallvec;

/// Reshapes the input to a matrix of points and returns their number of coordinates.
fn points(e: &mut dyn Emit, x: Val) -> Result<(Val, i64)> {
    let m = e.meta(x);
    ensure!(matches!(m.dtype, DType::F32 | DType::F64), "\"histogramdd\" not implemented for '{}'", name(m.dtype));
    let Some((&d, lead)) = m.sizes().split_last().filter(|(_, lead)| !lead.is_empty()) else {
        return fail("torch.histogramdd: input tensor should have at least 2 dimensions");
    };
    let n: i64 = lead.iter().product();
    Ok((emit!(e, "aten.reshape.default", x, [n, d])?, d))
}

/// Evenly spaced edges of each dimension, over the given range or the data's.
fn even_edges(e: &mut dyn Emit, x: Val, bins: &[i64], range: Option<Vec<f64>>) -> Result<Vec<Val>> {
    let (x, d) = points(e, x)?;
    let dtype = e.meta(x).dtype;
    ensure!(
        bins.len() as i64 == d,
        "torch.histogramdd: The size of bins must be equal to the innermost dimension of the input."
    );
    ensure!(bins.iter().all(|&b| (1..1 << 40).contains(&b)), "torch.histogramdd(): bins must be > 0, but got {bins:?}");
    if let Some(range) = &range {
        ensure!(
            range.len() == 2 * bins.len(),
            "torch.histogramdd(): for a {d}-dimensional histogram range should have {} elements, but got {}",
            2 * d,
            range.len()
        );
        ensure!(
            range.chunks(2).all(|r| r[0].is_finite() && r[1].is_finite()),
            "torch.histogramdd(): range {range:?} is not finite"
        );
        ensure!(
            range.chunks(2).all(|r| r[0] <= r[1]),
            "torch.histogramdd(): max range must be larger than min range, but got {range:?}"
        );
    }
    let empty = e.meta(x).layout.numel() == 0;
    let mut out = Vec::new();
    for (k, &b) in bins.iter().enumerate() {
        out.push(match &range {
            Some(r) => {
                let (mut low, mut high) = (r[2 * k], r[2 * k + 1]);
                if low == high {
                    (low, high) = (low - 0.5, high + 0.5);
                }
                emit!(e, "aten.linspace.default", low, high, b + 1, dtype)?
            }
            None if empty => emit!(e, "aten.linspace.default", 0.0, 1.0, b + 1, dtype)?,
            None => {
                let column = emit!(e, "aten.select.int", x, 1, k as i64)?;
                let (low, high) = (emit!(e, "aten.amin.default", column)?, emit!(e, "aten.amax.default", column)?);
                // The range is finite where the difference of a number to itself is 0.
                let (below, above) = (emit!(e, "aten.sub.Tensor", low, low)?, emit!(e, "aten.sub.Tensor", high, high)?);
                let both = emit!(e, "aten.add.Tensor", below, above)?;
                let finite = emit!(e, "aten.eq.Scalar", both, 0)?;
                let words = format!("torch.histogramdd: dimension {k}'s range is not finite");
                emit_all!(e, "aten._assert_async.msg", finite, &*words)?;
                let same = emit!(e, "aten.eq.Tensor", low, high)?;
                let mut moved = |v: Val, by: f64| -> Result<Val> {
                    let other = emit!(e, "aten.add.Scalar", v, by)?;
                    emit!(e, "aten.where.self", same, other, v)
                };
                let (low, high) = (moved(low, -0.5)?, moved(high, 0.5)?);
                emit!(e, "aten.linspace.Tensor_Tensor", low, high, b + 1, dtype)?
            }
        });
    }
    Ok(out)
}

/// The number or weight of points in each cell between edges; the last cell includes its upper edge.
fn counted(e: &mut dyn Emit, x: Val, edges: &[Val], weight: Option<Val>, density: bool) -> Result<Val> {
    let (x, d) = points(e, x)?;
    let m = e.meta(x);
    ensure!(edges.len() as i64 == d, "torch.histogramdd: expected {d} sequences of bin edges but got {}", edges.len());
    let n = m.sizes()[0];
    let mut shape = Vec::new();
    let mut cell: Option<(Val, Val)> = None;
    for (k, &edge) in edges.iter().enumerate() {
        let me = e.meta(edge);
        ensure!(me.dtype == m.dtype, "torch.histogramdd: input tensor and bins tensors should have the same dtype");
        ensure!(
            me.rank() == 1 && me.sizes()[0] > 1,
            "torch.histogramdd: bins tensor should have one dimension and at least 2 edges, but got {:?}",
            me.sizes()
        );
        let bins = me.sizes()[0] - 1;
        shape.push(bins);
        let column = emit!(e, "aten.select.int", x, 1, k as i64)?;
        let column = emit!(e, "aten.contiguous.default", column)?;
        let (low, high) = (emit!(e, "aten.select.int", edge, 0, 0)?, emit!(e, "aten.select.int", edge, 0, bins)?);
        let (above, below) = (emit!(e, "aten.ge.Tensor", column, low)?, emit!(e, "aten.le.Tensor", column, high)?);
        let inside = emit!(e, "aten.logical_and.default", above, below)?;
        let at = emit!(e, "aten.searchsorted.Tensor", edge, column, false, true)?;
        let at = emit!(e, "aten.sub.Scalar", at, 1)?;
        let at = emit!(e, "aten.clamp.default", at, 0, bins - 1)?;
        cell = Some(match cell {
            None => (at, inside),
            Some((before, all)) => {
                let before = emit!(e, "aten.mul.Scalar", before, bins)?;
                (emit!(e, "aten.add.Tensor", before, at)?, emit!(e, "aten.logical_and.default", all, inside)?)
            }
        });
    }
    let Some((at, inside)) = cell else { return fail("torch.histogramdd: no dimensions") };
    let each = match weight {
        Some(w) => {
            let mw = e.meta(w);
            ensure!(
                mw.dtype == m.dtype,
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype"
            );
            ensure!(
                mw.layout.numel() == n,
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension"
            );
            emit!(e, "aten.reshape.default", w, [n])?
        }
        None => emit!(e, "aten.full.default", [n], 1, m.dtype)?,
    };
    let each = emit!(e, "aten.where.ScalarOther", inside, each, 0)?;
    let zeros = emit!(e, "aten.full.default", [shape.iter().product::<i64>()], 0, m.dtype)?;
    let sums = emit!(e, "aten.scatter_add.default", zeros, 0, at, each)?;
    let mut out = emit!(e, "aten.view.default", sums, shape.clone())?;
    if density {
        let all = emit!(e, "aten.sum.default", out)?;
        out = emit!(e, "aten.div.Tensor", out, all)?;
        for (k, &edge) in edges.iter().enumerate() {
            let width = emit!(e, "aten.diff.default", edge, 1, 0)?;
            let mut along = vec![1; shape.len()];
            along[k] = shape[k];
            let width = emit!(e, "aten.view.default", width, along)?;
            out = emit!(e, "aten.div.Tensor", out, width)?;
        }
    }
    Ok(out)
}

/// Adds a dimension for operators that compare with numbers.
fn column(e: &mut dyn Emit, x: Val) -> Result<Val> {
    let n: i64 = sizes(e, x).iter().product();
    emit!(e, "aten.reshape.default", x, [n, 1])
}
fn flat_weight(e: &mut dyn Emit, w: Option<Val>, x: Val) -> Result<Option<Val>> {
    if let Some(w) = w {
        ensure!(
            sizes(e, w) == sizes(e, x),
            "torch.histogram: if weight tensor is provided it should have the same shape as the input tensor"
        );
    }
    Ok(w)
}

fn by_count(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let weight = flat_weight(e, a.opt_tensor(3)?.copied(), x)?;
    let x = column(e, x)?;
    let edges = even_edges(e, x, &[a.int(1)?], a.opt_floats(2)?)?;
    Ok(smallvec![counted(e, x, &edges, weight, a.bool(4)?)?, edges[0]])
}
fn by_edges(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (x, edge) = (*a.tensor(0)?, *a.tensor(1)?);
    let weight = flat_weight(e, a.opt_tensor(2)?.copied(), x)?;
    let x = column(e, x)?;
    let hist = counted(e, x, &[edge], weight, a.bool(3)?)?;
    Ok(smallvec![hist, emit!(e, "aten.clone.default", edge)?])
}
fn many_by_count(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let edges = even_edges(e, x, &a.ints(1)?, a.opt_floats(2)?)?;
    let hist = counted(e, x, &edges, a.opt_tensor(3)?.copied(), a.bool(4)?)?;
    Ok([hist].into_iter().chain(edges).collect())
}
fn many_by_number(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let d = sizes(e, x).last().copied().unwrap_or(0);
    let edges = even_edges(e, x, &vec![a.int(1)?; d as usize], a.opt_floats(2)?)?;
    let hist = counted(e, x, &edges, a.opt_tensor(3)?.copied(), a.bool(4)?)?;
    Ok([hist].into_iter().chain(edges).collect())
}
fn many_by_edges(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let edges: Vec<Val> = a.tensors(1)?.into_iter().copied().collect();
    let hist = counted(e, *a.tensor(0)?, &edges, a.opt_tensor(3)?.copied(), a.bool(4)?)?;
    Ok([hist].into_iter().chain(edges).collect())
}
fn edges_alone(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    Ok(even_edges(e, *a.tensor(0)?, &a.ints(1)?, a.opt_floats(2)?)?.into_iter().collect())
}
fn counts_alone(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    let edges = even_edges(e, x, &a.ints(1)?, a.opt_floats(2)?)?;
    Ok(smallvec![counted(e, x, &edges, a.opt_tensor(3)?.copied(), a.bool(4)?)?])
}
fn counts_by_edges(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let edges: Vec<Val> = a.tensors(1)?.into_iter().copied().collect();
    Ok(smallvec![counted(e, *a.tensor(0)?, &edges, a.opt_tensor(2)?.copied(), a.bool(3)?)?])
}

/// Segments of a dimension, bounded by lengths or offsets, separately for each index of the leading dimensions.
struct Segments {
    axis: usize,
    /// Number of segments.
    runs: i64,
    /// For each element its segment, counted from 1; elements before the first segment have 0, elements behind the last one the
    /// number of segments plus 1.
    at: Val,
    /// The start of each segment, and the end of the last one.
    bounds: Val,
}

impl Segments {
    fn of(e: &mut dyn Emit, x: Val, lengths: Option<Val>, offsets: Option<Val>, axis: i64) -> Result<Segments> {
        let m = e.meta(x);
        ensure!(m.dtype.is_float(), "\"segment_reduce\" not implemented for '{}'", name(m.dtype));
        ensure!(m.rank() > 0, "segment_reduce: data must have at least one dimension");
        let axis = m.layout.dim(axis)?;
        let Some(given) = offsets.or(lengths) else {
            return fail("segment_reduce(): Either lengths or offsets must be defined.");
        };
        let mut shape = sizes(e, given);
        let dtype = e.meta(given).dtype;
        ensure!(
            matches!(dtype, DType::I32 | DType::I64),
            "\"segment_reduce\" not implemented for lengths or offsets of '{}'",
            name(dtype)
        );
        // PyTorch prefers the offsets if both are given.
        let bounds = if offsets.is_some() {
            ensure!(shape.last().is_some_and(|&n| n >= 1), "segment_reduce(): offsets must not be empty");
            given
        } else {
            ensure!(!shape.is_empty(), "segment_reduce(): lengths must have at least one dimension");
            let ends = emit!(e, "aten.cumsum.default", given, -1)?;
            *shape.last_mut().expect("checked") = 1;
            let zero = emit!(e, "aten.full.default", shape, 0, DType::I64)?;
            emit!(e, "aten.cat.default", vec![zero, ends], -1)?
        };
        let mb = e.meta(bounds);
        ensure!(
            mb.rank() == axis + 1 && mb.sizes()[..axis] == m.sizes()[..axis],
            "segment_reduce(): the bounds {:?} do not fit data {:?} along dimension {axis}",
            mb.sizes(),
            m.sizes()
        );
        let (runs, n) = (mb.sizes()[axis] - 1, m.sizes()[axis]);
        // An element's segment is the number of bounds that are not behind it.
        let bounds = emit!(e, "aten.to.dtype", bounds, DType::I64)?;
        let bounds = emit!(e, "aten.contiguous.default", bounds)?;
        let places = emit!(e, "aten.arange.default", n, DType::I64)?;
        let mut rows: Vec<i64> = m.sizes()[..axis].to_vec();
        rows.push(n);
        let places = emit!(e, "aten.expand.default", places, rows.clone())?;
        let places = emit!(e, "aten.contiguous.default", places)?;
        let at = emit!(e, "aten.searchsorted.Tensor", bounds, places, false, true)?;
        rows.resize(m.rank(), 1);
        let at = emit!(e, "aten.view.default", at, rows)?;
        let at = emit!(e, "aten.expand.default", at, m.sizes())?;
        Ok(Segments { axis, runs, at, bounds })
    }

    /// Refuses segments that end before they start or reach beyond the data, and with `all` those that leave elements out.
    fn checked(&self, e: &mut dyn Emit, x: Val, all: bool) -> Result<()> {
        let n = e.meta(x).sizes()[self.axis];
        let length = self.differences(e)?;
        let fine = emit!(e, "aten.ge.Scalar", length, 0)?;
        require(e, fine, "segment_reduce(): a segment has a negative length")?;
        let first = emit!(e, "aten.slice.Tensor", self.bounds, -1, 0, 1, 1)?;
        let last = emit!(e, "aten.slice.Tensor", self.bounds, -1, self.runs, self.runs + 1, 1)?;
        let (from, to) = if all {
            (emit!(e, "aten.eq.Scalar", first, 0)?, emit!(e, "aten.eq.Scalar", last, n)?)
        } else {
            (emit!(e, "aten.ge.Scalar", first, 0)?, emit!(e, "aten.le.Scalar", last, n)?)
        };
        let inside = emit!(e, "aten.logical_and.default", from, to)?;
        let words = if all {
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
        } else {
            "segment_reduce(): a segment reaches beyond the data"
        };
        require(e, inside, words)
    }

    /// The sum, product or extreme of the elements of each segment, of those before and of those behind.
    fn reduced(&self, e: &mut dyn Emit, x: Val, reduce: &str, start: f64) -> Result<Val> {
        let m = e.meta(x);
        let mut shape = m.sizes().to_vec();
        shape[self.axis] = self.runs + 2;
        let first = emit!(e, "aten.full.default", shape, start, m.dtype)?;
        emit!(e, "aten.scatter_reduce.two", first, self.axis as i64, self.at, x, reduce)
    }

    /// Without the elements before and behind.
    fn bounded(&self, e: &mut dyn Emit, x: Val) -> Result<Val> {
        emit!(e, "aten.slice.Tensor", x, self.axis as i64, 1, self.runs + 1, 1)
    }

    /// For each element a number of its segment.
    fn spread(&self, e: &mut dyn Emit, x: Val) -> Result<Val> {
        emit!(e, "aten.gather.default", x, self.axis as i64, self.at)
    }

    /// For each element a number of its segment, zero before the first and behind the last segment.
    fn spread_bounded(&self, e: &mut dyn Emit, x: Val) -> Result<Val> {
        let m = e.meta(x);
        let mut shape = m.sizes().to_vec();
        shape[self.axis] = 1;
        let outside = emit!(e, "aten.full.default", shape, 0, m.dtype)?;
        let all = emit!(e, "aten.cat.default", vec![outside, x, outside], self.axis as i64)?;
        self.spread(e, all)
    }

    /// The number of elements of each segment.
    fn differences(&self, e: &mut dyn Emit) -> Result<Val> {
        let starts = emit!(e, "aten.slice.Tensor", self.bounds, -1, 0, self.runs, 1)?;
        let ends = emit!(e, "aten.slice.Tensor", self.bounds, -1, 1, self.runs + 1, 1)?;
        emit!(e, "aten.sub.Tensor", ends, starts)
    }

    /// The number of elements of each segment, in the rank of the data.
    fn lengths(&self, e: &mut dyn Emit, rank: usize) -> Result<Val> {
        let length = self.differences(e)?;
        let mut wide = sizes(e, length);
        wide.resize(rank, 1);
        emit!(e, "aten.view.default", length, wide)
    }
}

/// `segment_reduce(data, reduce, lengths, indices, offsets, axis, unsafe, initial)`: reduces each segment of a dimension.
fn segments(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let x = *a.tensor(0)?;
    ensure!(a.is_none(3), "segment_reduce(): indices based reduction is not supported yet.");
    let own = Segments::of(e, x, a.opt_tensor(2)?.copied(), a.opt_tensor(4)?.copied(), a.int(5)?)?;
    own.checked(e, x, a.is_none(4) && !a.bool(6)?)?;
    let (how, rank) = (a.str(1)?, e.meta(x).rank());
    let initial = a.opt_scalar(7)?.map(|s| s.as_f64());
    let (reduce, start) = match how {
        "sum" => ("sum", initial.unwrap_or(0.0)),
        "mean" => ("sum", initial.unwrap_or(0.0)),
        "prod" => ("prod", initial.unwrap_or(1.0)),
        "max" | "amax" => ("amax", initial.unwrap_or(f64::NEG_INFINITY)),
        "min" | "amin" => ("amin", initial.unwrap_or(f64::INFINITY)),
        other => return fail(format!("segment_reduce: unsupported reduction {other}")),
    };
    let out = own.reduced(e, x, reduce, start)?;
    let out = own.bounded(e, out)?;
    if how != "mean" {
        // Memory of its own, without the elements outside.
        return Ok(smallvec![emit!(e, "aten.clone.default", out)?]);
    }
    let length = own.lengths(e, rank)?;
    let empty = emit!(e, "aten.eq.Scalar", length, 0)?;
    let some = emit!(e, "aten.clamp_min.default", length, 1)?;
    let mean = emit!(e, "aten.div.Tensor", out, some)?;
    let none = initial.unwrap_or(f64::NAN);
    Ok(smallvec![emit!(e, "aten.masked_fill.Scalar", mean, empty, none)?])
}

/// `_segment_reduce_backward(grad, output, data, reduce, lengths, offsets, axis, initial)`
fn segments_backward(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let (g, out, x, how) = (*a.tensor(0)?, *a.tensor(1)?, *a.tensor(2)?, a.str(3)?);
    let own = Segments::of(e, x, a.opt_tensor(4)?.copied(), a.opt_tensor(5)?.copied(), a.int(6)?)?;
    let (m, dtype) = (e.meta(x), e.meta(g).dtype);
    let count = |e: &mut dyn Emit, mask: Val| -> Result<Val> {
        let ones = emit!(e, "aten._to_copy.default", mask, dtype)?;
        let counts = own.reduced(e, ones, "sum", 0.0)?;
        own.spread(e, counts)
    };
    let grad = match how {
        "sum" => own.spread_bounded(e, g)?,
        "mean" => {
            let length = own.lengths(e, m.rank())?;
            let some = emit!(e, "aten.clamp_min.default", length, 1)?;
            let g = emit!(e, "aten.div.Tensor", g, some)?;
            own.spread_bounded(e, g)?
        }
        "max" | "amax" | "min" | "amin" => {
            // Equal extremes share the gradient; NaN is one.
            let (g, best) = (own.spread_bounded(e, g)?, own.spread_bounded(e, out)?);
            let same = emit!(e, "aten.eq.Tensor", x, best)?;
            let unordered = emit!(e, "aten.ne.Tensor", x, x)?;
            let nan = emit!(e, "aten.ne.Tensor", best, best)?;
            let nan = emit!(e, "aten.logical_and.default", unordered, nan)?;
            let chosen = emit!(e, "aten.logical_or.default", same, nan)?;
            let n = count(e, chosen)?;
            let n = emit!(e, "aten.clamp_min.default", n, 1)?;
            let g = emit!(e, "aten.div.Tensor", g, n)?;
            let others = emit!(e, "aten.logical_not.default", chosen)?;
            emit!(e, "aten.masked_fill.Scalar", g, others, 0)?
        }
        "prod" => {
            let whole = emit!(e, "aten.mul.Tensor", g, out)?;
            let whole = own.spread_bounded(e, whole)?;
            let divided = emit!(e, "aten.div.Tensor", whole, x)?;
            // The product of the others, for elements that cannot be divided out.
            let zero = emit!(e, "aten.eq.Scalar", x, 0)?;
            let nan = emit!(e, "aten.ne.Tensor", x, x)?;
            let special = emit!(e, "aten.logical_or.default", zero, nan)?;
            let plain = emit!(e, "aten.masked_fill.Scalar", x, special, 1)?;
            let initial = a.opt_scalar(7)?.map_or(1.0, |s| s.as_f64());
            let product = own.reduced(e, plain, "prod", initial)?;
            let mut product = own.spread(e, product)?;
            for (mask, becomes) in [(zero, 0.0), (nan, f64::NAN)] {
                let others = count(e, mask)?;
                let one = emit!(e, "aten._to_copy.default", mask, dtype)?;
                let others = emit!(e, "aten.sub.Tensor", others, one)?;
                let some = emit!(e, "aten.gt.Scalar", others, 0)?;
                product = emit!(e, "aten.masked_fill.Scalar", product, some, becomes)?;
            }
            let g = own.spread_bounded(e, g)?;
            let without = emit!(e, "aten.mul.Tensor", g, product)?;
            let out = emit!(e, "aten.where.self", special, without, divided)?;
            // Elements outside of all segments have no gradient, whatever they are.
            let before = emit!(e, "aten.eq.Scalar", own.at, 0)?;
            let behind = emit!(e, "aten.gt.Scalar", own.at, own.runs)?;
            let outside = emit!(e, "aten.logical_or.default", before, behind)?;
            emit!(e, "aten.masked_fill.Scalar", out, outside, 0)?
        }
        other => return fail(format!("segment_reduce: unsupported reduction {other}")),
    };
    Ok(smallvec![emit!(e, "aten.contiguous.default", grad)?])
}

pub(crate) static OPS: &[OpDef] = table![
    composite!(by_count, counts(), "histogram.bin_ct").failing(),
    composite!(by_edges, edged(), "histogram.bins_tensor"),
    composite!(many_by_count, many(), "histogramdd").failing(),
    composite!(many_by_number, many_number(), "histogramdd.int_bins").failing(),
    composite!(many_by_edges, many_edged(), "histogramdd.TensorList_bins"),
    composite!(edges_alone, many(), "_histogramdd_bin_edges").failing(),
    composite!(counts_alone, many(), "_histogramdd_from_bin_cts").failing(),
    composite!(counts_by_edges, many_edged(), "_histogramdd_from_bin_tensors"),
    composite!(segments, segment_samples(), "segment_reduce").failing(),
    composite!(segments_backward, segment_backward_samples(), "_segment_reduce_backward"),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn some(x: Option<RawTensor>) -> restride_ir::SampleArg {
        x.map_or(Arg::None, Arg::Value)
    }

    pub(crate) fn counts() -> Samples {
        let mut out = Samples::new();
        for density in [false, true] {
            for w in [
                None,
                Some(crate::support::samples::in_range(F, restride_tensor::Layout::contiguous(&[3, 4]), 5, 0.0, 2.0)),
            ] {
                out.push(sample![tensor(F, &[3, 4], 1), 5, (), some(w.clone()), density]);
                out.push(sample![transposed(F, &[3, 4], 1), 3, [-1.0, 1.5], some(w), density]);
            }
        }
        out.push(sample![RawTensor::from_slice(&[2f32, 2.0], &[2]), 4]);
        out.push(sample![tensor(DType::F64, &[6], 1), 4]);
        out.push(sample![tensor(DType::I64, &[6], 1), 4]);
        out
    }

    pub(crate) fn edges() -> RawTensor {
        RawTensor::from_slice(&[-1.5f32, -0.5, 0.0, 1.75], &[4])
    }

    pub(crate) fn edged() -> Samples {
        vec![
            sample![tensor(F, &[3, 4], 1), edges()],
            sample![transposed(F, &[3, 4], 1), edges(), tensor(F, &[3, 4], 2), true],
        ]
    }

    pub(crate) fn many() -> Samples {
        vec![
            sample![tensor(F, &[6, 2], 1), [3, 2]],
            sample![
                tensor(F, &[3, 4, 2], 1),
                [3, 2],
                [-1.0, 1.0, -2.0, 2.0],
                crate::support::samples::in_range(F, restride_tensor::Layout::contiguous(&[3, 4]), 5, 0.0, 2.0),
                true
            ],
        ]
    }

    pub(crate) fn many_number() -> Samples {
        vec![sample![tensor(F, &[6, 2], 1), 3], sample![tensor(F, &[6, 3], 1), 2, (), (), true]]
    }

    pub(crate) fn many_edged() -> Samples {
        vec![sample![tensor(F, &[6, 2], 1), vec![edges(), edges()]]]
    }

    pub(crate) fn segment_backward_samples() -> Samples {
        let mut out = Samples::new();
        let (g, x) = (
            tensor(F, &[3, 2], 1),
            RawTensor::from_slice(&[1.0f32, 2.0, 3.0, 0.0, 3.0, 2.0, -1.0, 0.0, 9.0, 9.0], &[5, 2]),
        );
        let best = RawTensor::from_slice(&[3.0f32, 2.0, 0.0, 0.0, 3.0, 2.0], &[3, 2]);
        for how in ["sum", "mean", "prod", "max", "min"] {
            out.push(sample![&g, &best, &x, how, ints(&[2, 0, 2], &[3])]);
            out.push(sample![&g, &best, &x, how, (), ints(&[0, 2, 2, 5], &[4]), 0, 0.5]);
            out.push(sample![&g, &best, &x, how, (), ints(&[1, 2, 2, 4], &[4]), 0]);
            let (g, y) = (tensor(DType::F64, &[2, 2, 3], 1), tensor(DType::F64, &[2, 2, 3], 3));
            out.push(sample![g, y, transposed(DType::F64, &[2, 5, 3], 2), how, ints(&[1, 4, 3, 2], &[2, 2]), (), 1]);
        }
        out
    }

    pub(crate) fn segment_samples() -> Samples {
        let mut out = Samples::new();
        for how in ["sum", "mean", "prod", "max", "min"] {
            let x = tensor(F, &[5, 3], 1);
            out.push(sample![&x, how, ints(&[2, 0, 3], &[3])]);
            out.push(sample![&x, how, ints(&[2, 0, 3], &[3]), (), (), 0, false, 0.5]);
            out.push(sample![transposed(F, &[5, 3], 1), how, (), (), ints(&[0, 1, 1, 5], &[4]), 0, true]);
            out.push(sample![tensor(DType::F64, &[2, 5, 3], 1), how, ints(&[1, 4, 3, 2], &[2, 2]), (), (), 1, true]);
            // Elements before the first segment, between segments and behind the last one.
            out.push(sample![&x, how, (), (), ints(&[1, 3, 4], &[3])]);
            out.push(sample![&x, how, (), (), ints(&[3], &[1])]);
            out.push(sample![&x, how, ints(&[2, 1], &[2]), (), (), 0, true]);
        }
        let x = tensor(F, &[5, 3], 1);
        for how in ["amax", "amin"] {
            out.push(sample![&x, how, ints(&[2, 0, 3], &[3])]);
        }
        for wrong in [[2, 1], [2, 9], [-1, 6]] {
            out.push(sample![&x, "sum", ints(&wrong, &[2])]);
        }
        for wrong in [[3, 1], [2, -1]] {
            out.push(sample![&x, "sum", (), (), ints(&wrong, &[2])]);
            out.push(sample![&x, "sum", ints(&wrong, &[2]), (), (), 0, wrong[1] < 0]);
        }
        out.push(sample![&x, "sum", tensor(F, &[2], 1)]);
        out
    }
}
