//! Embeddings: rows of a table by index, single or reduced in bags, and their gradient.

mod backward;
mod grad;

use crate::support::scratch::stored;
use crate::support::*;
use restride_ir::{Args, Call, DType, Meta, OpDef};
use restride_kernels::embedding::{self, Bag, Entries};
use restride_kernels::support::pack::{pack, packed_rooms, unpack};
use restride_kernels::support::scratch::{Temp, room};
use restride_tensor::{Layout, ViewMut};
use smallvec::smallvec;

fn check_indices(i: &Meta, name: &str) -> Result<()> {
    ensure!(
        matches!(i.dtype, DType::I32 | DType::I64),
        "Expected tensor for argument '{name}' to have one of the following scalar types: Long, Int; but got {}",
        i.dtype
    );
    Ok(())
}

fn infer(a: &Args<'_, Meta>) -> Metas {
    let (w, i) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(w.rank() == 2, "'weight' must be 2-D");
    check_indices(i, "indices")?;
    let sizes: Vec<i64> = i.sizes().iter().copied().chain([w.sizes()[1]]).collect();
    one(fresh(w.dtype, &sizes))
}

fn run(c: &Call<'_>) -> Result<()> {
    ran(embedding::rows(c.args.tensor(0)?, c.args.tensor(1)?, &c.outs[0], c.ctx.threads))
}

fn scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(embedding::rows_room(stored(a.tensor(0)?), stored(a.tensor(1)?), stored(&outs[0])))
}

/// `embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)`
fn backward_infer(a: &Args<'_, Meta>) -> Metas {
    let (g, i) = (a.tensor(0)?, a.tensor(1)?);
    check_indices(i, "indices")?;
    ensure!(
        g.rank() == i.rank() + 1 && g.sizes()[..i.rank()] == *i.sizes(),
        "embedding_dense_backward: the gradient {g} does not fit indices {i}"
    );
    ensure!(
        g.dtype.is_float(),
        "embedding_dense_backward is not implemented for '{}'",
        crate::support::promote::name(g.dtype)
    );
    let rows = a.int(2)?;
    ensure!((0..1 << 40).contains(&rows), "num_weights is out of range: {rows}");
    one(fresh(g.dtype, &[rows, g.sizes()[i.rank()]]))
}

fn backward(c: &Call<'_>) -> Result<()> {
    let skip = Some(c.args.int(3)?).filter(|&p| p >= 0);
    ran(embedding::rows_backward(c.args.tensor(0)?, c.args.tensor(1)?, skip, c.args.bool(4)?, &c.outs[0]))
}

fn backward_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(embedding::rows_backward_room(stored(a.tensor(0)?), stored(a.tensor(1)?), stored(&outs[0])))
}

fn renorm_infer(a: &Args<'_, Meta>) -> Metas {
    let (w, i) = (a.tensor(0)?, a.tensor(1)?);
    ensure!(w.rank() == 2, "embedding_renorm: the table must be 2-D");
    check_indices(i, "indices")?;
    ensure!(w.dtype.is_float(), "embedding_renorm is not implemented for '{}'", crate::support::promote::name(w.dtype));
    one(Meta::new(w.dtype, crate::support::strides::dense_like(&w.layout)))
}

fn renorm(c: &Call<'_>) -> Result<()> {
    let (w, i) = (c.args.tensor(0)?, c.args.tensor(1)?);
    ran(embedding::renorm(w, i, c.args.float(2)?, c.args.float(3)?, &c.outs[0]))
}

fn renorm_scratch(a: &Args<'_, Meta>, _: &[Meta]) -> Result<usize> {
    Ok(embedding::renorm_room(stored(a.tensor(0)?), &a.tensor(1)?.layout))
}

/// The index that `padding_idx` excludes: `embedding_bag` counts from the end if `wraps`, `_embedding_bag` uses -1 for none.
fn padding<V>(a: &Args<'_, V>, rows: i64, wraps: bool) -> Result<Option<i64>> {
    let Some(p) = a.opt_int(8)? else { return Ok(None) };
    if !wraps {
        return Ok(Some(p).filter(|&p| p >= 0));
    }
    ensure!(
        (-rows..rows).contains(&p),
        "padding_idx must be within the number of embeddings, -{rows} through {}, but got {p}",
        rows - 1
    );
    Ok(Some(p.rem_euclid(rows)))
}

fn mode(m: i64) -> Result<Bag> {
    match m {
        0 => Ok(Bag::Sum),
        1 => Ok(Bag::Mean),
        2 => Ok(Bag::Max),
        _ => fail(format!("embedding_bag: mode must be 0, 1 or 2, got {m}")),
    }
}

/// Arguments `(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset,
/// padding_idx)`. Results: rows of the bags, bag of each index, size of each bag, and source rows of maxima.
///
/// `keeps`: whether a gradient needs more than the rows.
fn bag_infer(a: &Args<'_, Meta>, wraps: bool, keeps: bool) -> Metas {
    let (w, i, o) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    ensure!(w.rank() == 2, "embedding_bag: the weight must be 2-D");
    ensure!(w.dtype.is_float(), "embedding_bag is not implemented for '{}'", crate::support::promote::name(w.dtype));
    check_indices(i, "indices")?;
    check_indices(o, "offsets")?;
    ensure!(i.rank() == 1 && o.rank() == 1, "embedding_bag: indices and offsets must be 1-D, got {i} and {o}");
    let what = mode(a.int(4)?)?;
    let scaled = a.opt_tensor(6)?;
    if let Some(s) = scaled {
        ensure!(what == Bag::Sum, "embedding_bag: per_sample_weights only supported with mode='sum'");
        ensure!(
            s.dtype == w.dtype && s.sizes() == i.sizes(),
            "embedding_bag: per_sample_weights {s} do not fit {w} and {i}"
        );
    }
    let last = a.bool(7)? as i64;
    let bags = o.sizes()[0] - last;
    ensure!(bags >= 0, "include_last_offset: number of offsets should be at least 1");
    let skip = padding(a, w.sizes()[0], wraps)?;
    let index = if i.dtype == o.dtype { i.dtype } else { DType::I64 };
    // PyTorch's fast sum does not compute the bag of each index.
    let direct = |l: &Layout, d: usize| l.strides[d] == 1;
    let fast = what == Bag::Sum
        && w.dtype != DType::F64
        && direct(&w.layout, 1)
        && scaled.is_none_or(|s| direct(&s.layout, 0))
        && skip.is_none();
    let width = w.sizes()[1];
    // A sum ignores bag sizes, and PyTorch does not truncate them to the number of bags.
    let counts = if what == Bag::Sum && !keeps { o.sizes()[0] } else { bags };
    let places: &[i64] = if what == Bag::Max { &[bags, width] } else { &[counts] };
    Ok(smallvec![
        fresh(w.dtype, &[bags, width]),
        fresh(index, &[if fast { 0 } else { i.sizes()[0] }]),
        fresh(index, &[counts]),
        fresh(index, places),
    ])
}

fn run_bag(c: &Call<'_>, wraps: bool) -> Result<()> {
    let table = c.args.tensor(0)?;
    let rows = table.sizes()[0];
    let what = mode(c.args.int(4)?)?;
    let skip = padding(&c.args, rows, wraps)?;
    let indices = embedding::checked(c.args.tensor(1)?, rows).map_err(restride_ir::OpError::new)?;
    let starts = pack::<i64>(c.args.tensor(2)?);
    ensure!(
        starts.first().is_none_or(|&o| o == 0),
        "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {}",
        starts[0]
    );
    let count = indices.len() as i64;
    ensure!(
        starts.is_sorted() && starts.last().is_none_or(|&o| o <= count),
        "offsets must not decrease and not be greater than the number of indices {count}, got {:?}",
        &starts[..]
    );
    // The last bag ends at the included last offset, else at the end of the indices.
    let bags = starts.len() - c.args.bool(7)? as usize;
    let offsets = Temp::gather(bags + 1, starts[..bags].iter().copied().chain([count]));
    let weights = c.args.opt_tensor(6)?.map(pack::<f64>);
    let entries = Entries { indices: &indices, offsets: &offsets, weights: weights.as_deref(), skip };
    let places = (what == Bag::Max).then(|| &c.outs[3]);
    ran(embedding::bags(table, &entries, what, &c.outs[0], places, c.ctx.threads))?;
    let put = |data: &mut dyn Iterator<Item = i64>, out: &ViewMut<'_>| unpack(&Temp::gather(out.numel(), data), out);
    if c.outs[1].numel() > 0 {
        let mut bag_of =
            offsets.windows(2).enumerate().flat_map(|(b, w)| std::iter::repeat_n(b as i64, (w[1] - w[0]) as usize));
        put(&mut bag_of, &c.outs[1]);
    }
    for out in &c.outs[2..if what == Bag::Max { 3 } else { 4 }] {
        match what {
            Bag::Sum => put(&mut std::iter::repeat(0), out),
            Bag::Mean | Bag::Max => put(&mut entries.counts(), out),
        }
    }
    Ok(())
}

fn bag_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    let (table, i, o) = (stored(a.tensor(0)?), stored(a.tensor(1)?), stored(a.tensor(2)?));
    let list = |n: i64| room::<i64>(n as usize);
    let weights = if a.opt_tensor(6)?.is_some() { list(i.1.numel()) } else { 0 };
    let lists = packed_rooms([i, o]) + list(o.1.numel() + 1) + weights;
    let found = outs[1..].iter().map(|m| list(m.layout.numel())).max().unwrap_or(0);
    Ok(lists + embedding::bags_room(table, mode(a.int(4)?)?, stored(&outs[0])).max(found))
}

macro_rules! bag {
    ($schema:literal, $wraps:literal, $keeps:literal, $samples:expr) => {
        close($schema, |a| bag_infer(a, $wraps, $keeps), |c| run_bag(c, $wraps), bag_scratch, samples!($samples))
            .failing()
    };
}

pub(crate) static OPS: &[OpDef] = table![
    exact("embedding", infer, run, scratch, samples!(samples)).failing(),
    close("embedding_dense_backward", backward_infer, backward, backward_scratch, samples!(backward_samples)).failing(),
    close("embedding_renorm", renorm_infer, renorm, renorm_scratch, samples!(renorm_samples))
        .failing()
        .noted("The table with indexed rows of too large a norm scaled down to it"),
    bag!("_embedding_bag", false, true, || bag_samples(false)),
    bag!("_embedding_bag_forward_only", false, false, || bag_samples(false)),
    bag!("embedding_bag.padding_idx", true, false, || bag_samples(true)),
    bag!("embedding_bag", true, false, short_bag_samples),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family =
    crate::Family { ops: &[OPS, backward::OPS], gradients: &[grad::GRADS], aliases: &[] };

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) fn samples() -> Samples {
        let at = ints(&[0, 3, 5, 3, 1, 0], &[2, 3]);
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::C64] {
            out.extend(forms(d, &[6, 4], 1).into_iter().map(|w| sample![w, &at]));
        }
        let w = tensor(DType::F32, &[6, 4], 1);
        out.insert(1, sample![&w, &at, 1, true]);
        out.push(sample![&w, tensor(DType::I32, &[0, 3], 1), 2]);
        out.push(sample![&w, ints(&[5], &[]), 2, true]);
        out.push(sample![&w, transposed(DType::U8, &[2, 2], 1)]);
        let turned = at.alias(DType::I64, at.layout().transpose(0, 1).expect("two dimensions")).expect("a view");
        out.push(sample![&w, turned]);
        out.push(sample![&w, ints(&[6], &[1])]);
        out.push(sample![&w, ints(&[-1], &[1])]);
        out.push(sample![tensor(DType::F32, &[6], 1), &at]);
        out
    }

    pub(crate) fn backward_samples() -> Samples {
        let at = ints(&[0, 3, 5, 3, 1, 0], &[2, 3]);
        let mut out = Vec::new();
        for d in [DType::F32, DType::F64] {
            for g in forms(d, &[2, 3, 4], 1) {
                out.push(sample![&g, &at, 7, -1, false]);
                out.push(sample![&g, &at, 7, 3, true]);
            }
        }
        out
    }

    pub(crate) fn renorm_samples() -> Samples {
        let at = ints(&[0, 3, 5, 3], &[2, 2]);
        let table = |t: RawTensor| sample![t, &at, 1.0, 2.0];
        let mut out: Samples = forms(DType::F32, &[6, 4], 1).into_iter().map(table).collect();
        out.push(sample![tensor(DType::F64, &[6, 4], 1), &at, 0.5, 1.0]);
        out
    }

    pub(crate) fn bag_samples(wraps: bool) -> Samples {
        let (at, starts) = (ints(&[1, 2, 0, 5, 5], &[5]), ints(&[0, 2, 2, 4], &[4]));
        let ends = ints(&[0, 2, 2, 4, 5], &[5]);
        let mut out = Vec::new();
        let none = || if wraps { restride_ir::Arg::None } else { crate::support::samples::IntoArg::arg(-1) };
        for d in [DType::F32, DType::F64, DType::BF16, DType::F16] {
            for mode in [0, 1, 2] {
                for w in forms(d, &[6, 4], 1) {
                    out.push(sample![w, &at, &starts, false, mode, false, (), false, none()]);
                }
            }
        }
        let w = tensor(DType::F32, &[6, 4], 1);
        let s = tensor(DType::F32, &[5], 3);
        // Gradients scaled by frequency.
        for (mode, padding) in [(0, crate::support::samples::IntoArg::arg(1)), (1, none())] {
            out.insert(1, sample![&w, &at, &starts, true, mode, false, (), false, padding]);
        }
        for mode in [0, 1, 2] {
            out.push(sample![&w, &at, &ends, false, mode, false, (), true, 5]);
            out.push(sample![&w, &at, &starts, false, mode, false, &s, false, none()]);
        }
        out.push(sample![&w, &at, &starts, false, 0, false, strided(DType::F32, &[5], 3), false, 5]);
        out.push(sample![&w, ints(&[], &[0]), ints(&[0, 0], &[2]), false, 1, false, (), false, none()]);
        out.push(sample![&w, &at, ints(&[1, 2], &[2]), false, 1, false, (), false, none()]);
        out.push(sample![&w, &at, ints(&[0, 9], &[2]), false, 1, false, (), false, none()]);
        out.push(sample![&w, ints(&[6], &[1]), ints(&[0], &[1]), false, 1, false, (), false, none()]);
        out
    }

    /// Sample calls without the padding index.
    pub(crate) fn short_bag_samples() -> Samples {
        let mut out = bag_samples(true);
        out.retain(|s| matches!(s.args[8], restride_ir::Arg::None));
        out.iter_mut().for_each(|s| s.args.truncate(8));
        out
    }
}
