//! Operators that reorder elements: `roll`, `flip`, `rot90`.

use restride_ir::{Args, Call, Layout, Meta, OpDef};
use restride_kernels::movement::copy;
use restride_kernels::support::scratch;
use restride_tensor::PerDim;
use smallvec::{SmallVec, smallvec};

use super::join::cat_type;
use crate::support::scratch::stored;
use crate::support::{Metas, Result, ensure, exact, fresh, one, without_scratch};

/// The shift of each dimension of a roll, and whether the operand is rolled as one flat row.
fn shifts(l: &Layout, shifts: &[i64], dims: &[i64]) -> Result<PerDim<(usize, i64)>> {
    if dims.len() == 1 && shifts.len() == 1 {
        ensure!(l.rank() > 0, "Dimension specified as {} but tensor has no dimensions", dims[0]);
        return Ok(smallvec![(l.dim(dims[0])?, shifts[0])]);
    }
    ensure!(!shifts.is_empty(), "`shifts` required");
    if dims.is_empty() && shifts.len() == 1 {
        return Ok(SmallVec::new());
    }
    ensure!(
        shifts.len() == dims.len(),
        "shifts and dimensions must align. shifts: {}, dims:{}",
        shifts.len(),
        dims.len()
    );
    dims.iter()
        .zip(shifts)
        .map(|(&d, &s)| {
            ensure!(l.rank() > 0, "Dimension specified as {d} but tensor has no dimensions");
            Ok((l.dim(d)?, s))
        })
        .collect()
}
fn infer_roll(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    let of_dims = shifts(&t.layout, &a.ints(1)?, &a.ints(2)?)?;
    // PyTorch clones an empty operand in its dimension order; other results are row-major.
    if t.layout.numel() == 0 && of_dims.len() <= 1 {
        return one(Meta::new(t.dtype, crate::support::strides::dense_like(&t.layout)));
    }
    // Each dimension in turn is a `cat` of two parts, whose dimension order its strides follow.
    let mut rolled = t.clone();
    for (d, shift) in of_dims {
        let n = t.sizes()[d];
        let start = if n == 0 { 0 } else { (-shift).rem_euclid(n) };
        let part = |length: i64| {
            let mut part = rolled.clone();
            part.layout.sizes[d] = length;
            part
        };
        let (tail, head) = (part(n - start), part(start));
        rolled = cat_type(&[&tail, &head], d as i64)?;
    }
    let whole = a.ints(2)?.is_empty();
    one(if whole { fresh(t.dtype, t.sizes()) } else { rolled })
}
fn run_roll(c: &Call<'_>) -> Result<()> {
    let (t, out) = (c.args.tensor(0)?, &c.outs[0]);
    if out.numel() == 0 {
        return Ok(());
    }
    let dims = c.args.ints(2)?;
    let by = c.args.ints(1)?;
    if !dims.is_empty() {
        let mut whole: restride_ir::Ints = smallvec![0; t.sizes().len()];
        for (d, s) in shifts(t.layout(), &by, &dims)? {
            let n = t.sizes()[d];
            whole[d] = (whole[d] + s.rem_euclid(n)) % n;
        }
        return roll_boxes(c, t.layout(), out.layout(), &whole, 0);
    }
    // A roll as one row works on row-major copies of both tensors.
    let row = Layout::contiguous(&[t.numel() as i64]);
    let n = t.numel() as i64;
    let shift = by.first().copied().unwrap_or(0).rem_euclid(n);
    let part = |at: i64, length: i64| Layout::strided(&[length], &[1], at);
    let rolled = scratch::tensor(t.dtype(), &row, |from| {
        copy::same_order(t, from)?;
        scratch::tensor(t.dtype(), &row, |to| {
            for (source, target, length) in [(0, shift, n - shift), (n - shift, 0, shift)] {
                copy::between(&from.as_view(), &part(source, length), to, &part(target, length))?;
            }
            copy::same_order(&to.as_view(), out)
        })
    });
    rolled.map_err(restride_ir::OpError::new)
}
fn roll_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    if !a.ints(2)?.is_empty() {
        return Ok(0);
    }
    let (t, out) = (a.tensor(0)?, &outs[0]);
    let row = Layout::contiguous(&[t.layout.numel()]);
    let there = copy::same_order_room(stored(t), &row);
    let back = copy::same_order_room((out.dtype, &row), &out.layout);
    let own = scratch::tensor_room(t.dtype, t.layout.numel());
    Ok(own + there.max(own + back))
}

/// Copies the two parts of each dimension, from `dim` on, to their positions after the roll.
fn roll_boxes(c: &Call<'_>, from: &Layout, to: &Layout, by: &[i64], dim: usize) -> Result<()> {
    let Some(&shift) = by.get(dim) else {
        return copy::between(c.args.tensor(0)?, from, &c.outs[0], to).map_err(restride_ir::OpError::new);
    };
    let n = from.sizes[dim];
    for (source, target, length) in [(0, shift, n - shift), (n - shift, 0, shift)] {
        if length > 0 {
            let part = |l: &Layout, at: i64| {
                let mut l = l.clone();
                l.offset += at * l.strides[dim];
                l.sizes[dim] = length;
                l
            };
            roll_boxes(c, &part(from, source), &part(to, target), by, dim + 1)?;
        }
    }
    Ok(())
}

/// A layout with some dimensions reversed.
fn flipped(l: &Layout, dims: &[i64]) -> Result<Layout> {
    let mut out = l.clone();
    let mut seen: SmallVec<[bool; 8]> = smallvec![false; l.rank().max(1)];
    for &dim in dims {
        let d = l.dim(dim)?;
        ensure!(!std::mem::replace(&mut seen[d], true), "dim {d} appears multiple times in the list of dims");
        if l.rank() > 0 && l.sizes[d] > 0 {
            out.offset += (l.sizes[d] - 1) * l.strides[d];
            out.strides[d] = -l.strides[d];
        }
    }
    Ok(out)
}

/// Effect of a flip or rotation on a layout: the dimensions to reverse, then the two to exchange.
type Flip = (restride_ir::Ints, Option<(i64, i64)>);

fn turn_flip<V>(a: &Args<'_, V>, _: &Layout) -> Result<Flip> {
    Ok((a.ints(1)?, None))
}
fn turn_fliplr<V>(_: &Args<'_, V>, l: &Layout) -> Result<Flip> {
    ensure!(l.rank() >= 2, "Input must be >= 2-d.");
    Ok((smallvec![1], None))
}
fn turn_flipud<V>(_: &Args<'_, V>, l: &Layout) -> Result<Flip> {
    ensure!(l.rank() >= 1, "Input must be >= 1-d.");
    Ok((smallvec![0], None))
}
fn turn_rot90<V>(a: &Args<'_, V>, l: &Layout) -> Result<Flip> {
    let (k, dims) = (a.int(1)?, a.ints(2)?);
    ensure!(dims.len() == 2, "expected total rotation dims == 2, but got dims = {}", dims.len());
    ensure!(l.rank() >= 2, "expected total dims >= 2, but got total dims = {}", l.rank());
    let (from, to) = (dims[0], dims[1]);
    let same = from == to || (from - to).abs() == l.rank() as i64;
    ensure!(!same, "expected rotation dims to be different, but got dim0 = {from} and dim1 = {to}");
    l.dim(from)?;
    l.dim(to)?;
    Ok(match k.rem_euclid(4) {
        1 => (smallvec![to], Some((from, to))),
        2 => (dims, None),
        3 => (smallvec![from], Some((from, to))),
        _ => (smallvec![], None),
    })
}

fn turned_type(t: &Meta, turn: &Flip, clones: bool) -> Metas {
    flipped(&t.layout, &turn.0)?;
    let layout = if clones { Layout::contiguous(t.sizes()) } else { crate::support::strides::dense_like(&t.layout) };
    one(Meta::new(
        t.dtype,
        match turn.1 {
            Some((a, b)) => layout.transpose(a, b)?,
            None => layout,
        },
    ))
}
fn run_turn(c: &Call<'_>, turn: &Flip) -> Result<()> {
    let t = c.args.tensor(0)?;
    let mut from = flipped(t.layout(), &turn.0)?;
    if let Some((a, b)) = turn.1 {
        from = from.transpose(a, b)?;
    }
    copy::from_region(t, t.dtype(), &from, &c.outs[0]).map_err(restride_ir::OpError::new)
}

macro_rules! turning {
    ($($infer:ident, $run:ident: $turn:ident, $clones:expr;)*) => {$(
        fn $infer(a: &Args<'_, Meta>) -> Metas {
            let t = a.tensor(0)?;
            let turn = $turn(a, &t.layout)?;
            turned_type(t, &turn, $clones(&turn))
        }
        fn $run(c: &Call<'_>) -> Result<()> {
            run_turn(c, &$turn(&c.args, c.args.tensor(0)?.layout())?)
        }
    )*};
}
turning! {
    infer_flip, run_flip: turn_flip, |_: &Flip| false;
    infer_fliplr, run_fliplr: turn_fliplr, |_: &Flip| false;
    infer_flipud, run_flipud: turn_flipud, |_: &Flip| false;
    infer_rot90, run_rot90: turn_rot90, |t: &Flip| t.0.is_empty();
}

pub(crate) static OPS: &[OpDef] = table![
    exact("roll", infer_roll, run_roll, roll_scratch, samples!(s_roll)),
    without_scratch("flip", infer_flip, run_flip, samples!(s_flip)).exactly(),
    without_scratch("fliplr", infer_fliplr, run_fliplr, samples!(s_flat_flip)).exactly(),
    without_scratch("flipud", infer_flipud, run_flipud, samples!(s_flat_flip)).exactly(),
    without_scratch("rot90", infer_rot90, run_rot90, samples!(s_rot90)).exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use crate::movement::join::samples::nhwc;
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_roll() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[3, 4], 1), [1], [0]],
            sample![strided(DType::I64, &[3, 4], 1), [1, -5], [0, 1]],
            sample![transposed(F, &[3, 4, 2], 1), [1, 2, 1], [0, -1, 0]],
            sample![expanded(F, &[3, 4], 1), [-2]],
            sample![transposed(F, &[3, 4], 1), [5]],
            sample![transposed(F, &[0, 3], 1), [1], [0]],
            sample![transposed(F, &[3, 0], 1), [1], [0]],
            sample![tensor(F, &[], 1), [1]],
            sample![tensor(F, &[], 1), [1], [0]],
            sample![tensor(F, &[3, 4], 1), [1, 2], [0]],
            sample![tensor(F, &[3, 4], 1), NO],
        ]
    }

    pub(crate) fn s_flip() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[3, 4], 1), [0]],
            sample![strided(DType::C64, &[3, 4], 1), [1, 0]],
            sample![transposed(DType::I16, &[2, 3, 4], 1), [-1, 0]],
            sample![expanded(F, &[3, 4], 1), [0]],
            sample![nhwc(&[2, 3, 4, 5], 1), [1]],
            sample![tensor(F, &[0, 3], 1), [1]],
            sample![tensor(F, &[], 1), [0]],
            sample![tensor(F, &[3], 1), NO],
            sample![tensor(F, &[3, 4], 1), [0, -2]],
            sample![tensor(F, &[3, 4], 1), [2]],
        ]
    }

    pub(crate) fn s_flat_flip() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[3, 4], 1)],
            sample![strided(DType::I64, &[2, 3, 2], 1)],
            sample![tensor(F, &[3], 1)],
            sample![tensor(F, &[], 1)],
        ]
    }

    pub(crate) fn s_rot90() -> Vec<Sample> {
        let mut all: Vec<Sample> = (-1..4).map(|k: i64| sample![transposed(F, &[3, 4], 1), k, [0, 1]]).collect();
        all.push(sample![strided(DType::Bool, &[3, 4, 2], 1), 1, [2, 0]]);
        all.push(sample![tensor(F, &[3, 4], 1), 1, [0, -2]]);
        all.push(sample![tensor(F, &[3, 4], 1), 1, [0]]);
        all.push(sample![tensor(F, &[3], 1), 1, [0, 1]]);
        all
    }
}
