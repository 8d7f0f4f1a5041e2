//! Results put together of operands: `cat` and `stack` in their forms, repetition, rolling and flipping.

use restride_ir::{
    Arg, Args, Call, DType, Dims, Emit, Exactness, InferFn, Kernel, Layout, Meta, Movement, OpDef, OverlapCheck, Piece,
    Sample, Scalar,
};
use restride_kernels::{copy, scratch};
use restride_tensor::Tensor;
use smallvec::{SmallVec, smallvec};

use crate::composite::composed;
use crate::nn::{Metas, Result, ValArgs, Vals, ensure, fail, fresh, one, suggests_channels_last};
use crate::promote::{Operand, result_type};
use crate::room::lies;
use crate::sample::{expanded, ints, laid, sample, strided, tensor, transposed};
use crate::views::NO;

/// Whether `cat` passes over an operand: an empty one of one dimension goes with anything.
fn skipped(l: &Layout) -> bool {
    l.rank() == 1 && l.sizes[0] == 0
}

/// The dimension of a `cat`, as that of the first operand that counts, and this operand's position.
fn cat_dim(operands: &[&Layout], dim: i64) -> Result<Option<(usize, usize)>> {
    ensure!(!operands.is_empty(), "torch.cat(): expected a non-empty list of Tensors");
    if let Some(i) = operands.iter().position(|l| l.rank() == 0) {
        return fail(format!("zero-dimensional tensor (at position {i}) cannot be concatenated"));
    }
    match operands.iter().position(|l| !skipped(l)) {
        None => Ok(None),
        Some(first) => Ok(Some((operands[first].dim(dim)?, first))),
    }
}

/// Type of the concatenation of operands.
fn cat_type(operands: &[&Meta], dim: i64) -> Result<Meta> {
    let layouts: Vec<&Layout> = operands.iter().map(|t| &t.layout).collect();
    let dtype = result_type(&operands.iter().map(|t| Operand::of(*t)).collect::<Vec<_>>())?;
    let Some((d, first)) = cat_dim(&layouts, dim)? else { return Ok(fresh(dtype, &[0])) };
    let mut sizes = layouts[first].sizes.clone();
    let mut length = 0i64;
    for (i, l) in layouts.iter().enumerate().filter(|(_, l)| !skipped(l)) {
        let (have, want) = (l.rank(), sizes.len());
        ensure!(have == want, "Tensors must have same number of dimensions: got {want} and {have}");
        for (k, (have, want)) in l.sizes.iter().zip(&sizes).enumerate().filter(|(k, _)| *k != d) {
            ensure!(
                have == want,
                "Sizes of tensors must match except in dimension {d}. Expected size {want} but got size {have} for \
                 tensor number {i} in the list. (dimension {k})"
            );
        }
        length = match length.checked_add(l.sizes[d]) {
            Some(sum) => sum,
            None => return fail("torch.cat(): the sizes are too large"),
        };
    }
    sizes[d] = length;
    // Channels-last only if every operand suggests it, those that are passed over included.
    if layouts.iter().all(|l| suggests_channels_last(l) && l.rank() == sizes.len()) {
        return Ok(Meta::new(dtype, crate::iter::channels_last(&sizes)));
    }
    Ok(fresh(dtype, &sizes))
}

/// Where each operand's elements lie in the concatenation.
fn cat_pieces(operands: &[&Layout], dim: i64, result: &Layout) -> Result<Vec<Piece>> {
    let Some((d, _)) = cat_dim(operands, dim)? else { return Ok(Vec::new()) };
    let (mut at, mut pieces) = (0, Vec::with_capacity(operands.len()));
    for (operand, l) in operands.iter().enumerate().filter(|(_, l)| !skipped(l)) {
        pieces.push(Piece { operand, region: part(result, d, at, l.sizes[d]) });
        at += l.sizes[d];
    }
    Ok(pieces)
}

fn layouts<'a>(operands: &[&'a Meta]) -> Vec<&'a Layout> {
    operands.iter().map(|t| &t.layout).collect()
}

fn infer_cat(a: &Args<'_, Meta>) -> Metas {
    one(cat_type(&a.tensors(0)?, a.int(1)?)?)
}
fn pieces_of_cat(a: &Args<'_, Meta>, result: &Layout) -> Result<Vec<Piece>> {
    cat_pieces(&layouts(&a.tensors(0)?), a.int(1)?, result)
}

/// The dimension of a `stack`, with PyTorch's checks of its operands.
fn stack_dim(operands: &[&Meta], dim: i64) -> Result<usize> {
    ensure!(!operands.is_empty(), "stack expects a non-empty TensorList");
    let first = operands[0];
    let d = Layout::contiguous(&vec![1i64; first.rank() + 1]).dim(dim)?;
    for (i, t) in operands.iter().enumerate() {
        ensure!(
            t.sizes() == first.sizes(),
            "stack expects each tensor to be equal size, but got {:?} at entry 0 and {:?} at entry {i}",
            first.sizes(),
            t.sizes()
        );
    }
    Ok(d)
}

/// A stack is a `cat` whose dimension is split, or of operands with a new last dimension: which decides on strides.
fn infer_stack(a: &Args<'_, Meta>) -> Metas {
    let operands = a.tensors(0)?;
    let d = stack_dim(&operands, a.int(1)?)?;
    let first = operands[0];
    if d == first.rank() || operands.iter().any(|t| skipped(&t.layout)) {
        let wide: Vec<Meta> = operands
            .iter()
            .map(|t| Ok(Meta::new(t.dtype, t.layout.unsqueeze(d as i64)?)))
            .collect::<Result<Vec<_>>>()?;
        return one(cat_type(&wide.iter().collect::<Vec<_>>(), d as i64)?);
    }
    let cat = cat_type(&operands, d as i64)?;
    let mut sizes = first.layout.sizes.clone();
    sizes.insert(d, operands.len() as i64);
    match cat.layout.view(&sizes) {
        Some(layout) => one(Meta::new(cat.dtype, layout)),
        None => fail("stack: the sizes are too large"),
    }
}
fn pieces_of_stack(a: &Args<'_, Meta>, result: &Layout) -> Result<Vec<Piece>> {
    let operands = a.tensors(0)?;
    let d = stack_dim(&operands, a.int(1)?)? as i64;
    (0..operands.len()).map(|operand| Ok(Piece { operand, region: result.select(d, &(operand as i64))? })).collect()
}

type Pieces = fn(&Args<'_, Meta>, &Layout) -> Result<Vec<Piece>>;

fn run_cat(c: &Call<'_>) -> Result<()> {
    let (operands, out) = (c.args.tensors(0)?, &c.outs[0]);
    let layouts: restride_ir::Operands<&Layout> = operands.iter().map(|t| t.layout()).collect();
    let Some((d, _)) = cat_dim(&layouts, c.args.int(1)?)? else { return Ok(()) };
    let mut at = 0;
    for t in operands.into_iter().filter(|t| !skipped(t.layout())) {
        let region = part(out.layout(), d, at, t.sizes()[d]);
        copy::into_region(t, out, &region).map_err(restride_ir::OpError::new)?;
        at += t.sizes()[d];
    }
    Ok(())
}
fn run_stack(c: &Call<'_>) -> Result<()> {
    let out = &c.outs[0];
    let d = out.layout().dim(c.args.int(1)?)? as i64;
    for (i, t) in c.args.tensors(0)?.into_iter().enumerate() {
        let region = out.layout().select(d, &(i as i64))?;
        copy::into_region(t, out, &region).map_err(restride_ir::OpError::new)?;
    }
    Ok(())
}

/// `length` elements of a dimension, from one on.
fn part(of: &Layout, d: usize, at: i64, length: i64) -> Layout {
    let mut region = of.clone();
    region.offset += at * region.strides[d];
    region.sizes[d] = length;
    region
}

const fn assembled(
    schema: &'static str,
    infer: InferFn,
    pieces: Pieces,
    run: fn(&Call<'_>) -> Result<()>,
    samples: fn() -> Vec<Sample>,
) -> OpDef {
    OpDef { movement: Some(Movement::Assemble(pieces)), ..own(schema, infer, run, samples) }
}

/// An operator with a kernel that moves data.
const fn own(
    schema: &'static str,
    infer: InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    samples: fn() -> Vec<Sample>,
) -> OpDef {
    OpDef {
        infer: Some(infer),
        kernel: Kernel::Fixed(run),
        exactness: Exactness::Exact,
        samples: Some(samples),
        ..OpDef::new(schema)
    }
}

type Val1 = restride_ir::Val;

fn call1(e: &mut dyn Emit, op: &str, args: &[Arg<Val1, Scalar>]) -> Result<Val1> {
    e.call(op, args)?.into_iter().next().ok_or_else(|| restride_ir::OpError::new(format!("{op} gives nothing")))
}
fn int(i: i64) -> Arg<Val1, Scalar> {
    Arg::Scalar(Scalar::Int(i))
}

/// Each operand with at least some dimensions (`op`), concatenated along a dimension by their rank.
fn joined(e: &mut dyn Emit, a: &ValArgs<'_>, name: &str, op: &str, dim: fn(usize) -> i64) -> Vals {
    let operands = a.tensors(0)?;
    ensure!(!operands.is_empty(), "{name} expects a non-empty TensorList");
    let wide = operands.into_iter().map(|v| Ok(Some(call1(e, op, &[Arg::Value(*v)])?))).collect::<Result<Vec<_>>>()?;
    let rank = wide[0].map_or(0, |v| e.meta(v).rank());
    Ok(smallvec![call1(e, "aten.cat.default", &[Arg::Values(wide), int(dim(rank))])?])
}
fn hstack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    joined(e, a, "hstack", "aten.atleast_1d.default", |rank| (rank > 1) as i64)
}
fn vstack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    joined(e, a, "vstack", "aten.atleast_2d.default", |_| 0)
}
fn dstack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    joined(e, a, "dstack", "aten.atleast_3d.default", |_| 2)
}
fn column_stack(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let operands = a.tensors(0)?;
    ensure!(!operands.is_empty(), "column_stack expects a non-empty TensorList");
    let mut columns = Vec::with_capacity(operands.len());
    for v in operands {
        let m = e.meta(*v);
        columns.push(Some(match m.rank() {
            0 | 1 => {
                let sizes = Arg::Scalars(vec![Scalar::Int(m.layout.numel()), Scalar::Int(1)]);
                call1(e, "aten.reshape.default", &[Arg::Value(*v), sizes])?
            }
            _ => *v,
        }));
    }
    hstack(e, &Args(&[Arg::Values(columns)]))
}

/// All combinations of elements of vectors, as rows: each vector stretched over the others' dimensions.
fn cartesian_prod(e: &mut dyn Emit, a: &ValArgs<'_>) -> Vals {
    let vectors = a.tensors(0)?;
    ensure!(!vectors.is_empty(), "meshgrid expects a non-empty TensorList");
    let mut sizes: Vec<i64> = Vec::new();
    for v in &vectors {
        let m = e.meta(**v);
        ensure!(m.rank() == 1, "Expect a 1D vector, but got shape {:?}", m.sizes());
        sizes.push(m.sizes()[0]);
    }
    if let [only] = vectors[..] {
        return Ok(smallvec![*only]);
    }
    let list = |l: &[i64]| Arg::Scalars(l.iter().map(|&n| Scalar::Int(n)).collect());
    let mut columns = Vec::with_capacity(vectors.len());
    for (i, v) in vectors.iter().enumerate() {
        let mut alone = vec![1; sizes.len()];
        alone[i] = sizes[i];
        let v = call1(e, "aten.view.default", &[Arg::Value(**v), list(&alone)])?;
        let v = call1(e, "aten.expand.default", &[Arg::Value(v), list(&sizes)])?;
        let v = call1(e, "aten.reshape.default", &[Arg::Value(v), list(&[-1])])?;
        columns.push(Some(v));
    }
    Ok(smallvec![call1(e, "aten.stack.default", &[Arg::Values(columns), int(1)])?])
}

fn infer_block_diag(a: &Args<'_, Meta>) -> Metas {
    let operands = a.tensors(0)?;
    if operands.is_empty() {
        return one(fresh(DType::F32, &[1, 0]));
    }
    let dtype = operands.iter().skip(1).fold(operands[0].dtype, |d, t| d.promote(t.dtype));
    let (mut rows, mut columns) = (0, 0);
    for (i, t) in operands.iter().enumerate() {
        let (m, n) = match *t.sizes() {
            [] => (1, 1),
            [n] => (1, n),
            [m, n] => (m, n),
            _ => {
                return fail(format!(
                    "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {} dimensions",
                    t.rank()
                ));
            }
        };
        (rows, columns) = (rows + m, columns + n);
    }
    one(fresh(dtype, &[rows, columns]))
}
fn run_block_diag(c: &Call<'_>) -> Result<()> {
    let out = &c.outs[0];
    copy::zero(out);
    let (mut row, mut column) = (0, 0);
    for t in c.args.tensors(0)? {
        let mut from = t.layout().clone();
        while from.rank() < 2 {
            from = from.unsqueeze(0)?;
        }
        let mut to = out.layout().clone();
        to.offset += row * to.strides[0] + column * to.strides[1];
        to.sizes = from.sizes.clone();
        (row, column) = (row + from.sizes[0], column + from.sizes[1]);
        copy::between(t, &from, out, &to).map_err(restride_ir::OpError::new)?;
    }
    Ok(())
}

/// How often each dimension of the result repeats the operand, which may have fewer.
fn repeated(t: &Meta, repeats: &[i64]) -> Metas {
    ensure!(
        repeats.len() >= t.rank(),
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
    );
    let lead = repeats.len() - t.rank();
    let mut sizes: Dims<i64> = Dims::new();
    for (d, &r) in repeats.iter().enumerate() {
        let n = if d < lead { 1 } else { t.sizes()[d - lead] };
        match n.checked_mul(r) {
            Some(size) => sizes.push(size),
            None => return fail("repeat: the sizes are too large"),
        }
    }
    if let Some(bad) = sizes.iter().find(|n| **n < 0) {
        return fail(format!("Trying to create tensor with negative dimension {bad}: {:?}", &sizes[..]));
    }
    // `-1` times nothing is nothing in PyTorch as well.
    one(fresh(t.dtype, &sizes))
}
/// The repeats of `tile`: ones in front.
fn tiles(rank: usize, repeats: restride_ir::Ints) -> restride_ir::Ints {
    let mut out: restride_ir::Ints = smallvec![1; rank.saturating_sub(repeats.len())];
    out.extend(repeats);
    out
}
fn infer_repeat(a: &Args<'_, Meta>) -> Metas {
    repeated(a.tensor(0)?, &a.ints(1)?)
}
fn infer_tile(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    repeated(t, &tiles(t.rank(), a.ints(1)?))
}
fn run_repeat(c: &Call<'_>) -> Result<()> {
    let t = c.args.tensor(0)?;
    if c.outs[0].numel() > 0 {
        copy::repeat(t, &tiles(t.sizes().len(), c.args.ints(1)?), &c.outs[0]);
    }
    Ok(())
}

/// The type of every element repeated `n` times along a dimension, or of all elements in one.
fn infer_repeat_int(a: &Args<'_, Meta>) -> Metas {
    let (t, n, dim) = (a.tensor(0)?, a.int(1)?, a.opt_int(2)?);
    let mut sizes: Dims<i64> = match dim {
        None => smallvec![t.layout.numel()],
        Some(_) => t.layout.sizes.clone(),
    };
    let d = t.layout.dim(dim.unwrap_or(0))?;
    ensure!(!sizes.is_empty(), "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    ensure!(n >= 0, "Repeats must be non-negative");
    let before = sizes[if dim.is_some() { d } else { 0 }];
    let Some(after) = before.checked_mul(n) else { return fail("repeat_interleave: the sizes are too large") };
    if let Some(want) = a.opt_int(3)? {
        ensure!(want == after, "repeat_interleave: Invalid output_size, expected {after} but got {want}");
    }
    sizes[if dim.is_some() { d } else { 0 }] = after;
    one(fresh(t.dtype, &sizes))
}
fn run_repeat_int(c: &Call<'_>) -> Result<()> {
    let (t, n, out) = (c.args.tensor(0)?, c.args.int(1)?, &c.outs[0]);
    if out.numel() == 0 {
        return Ok(());
    }
    if let Some(dim) = c.args.opt_int(2)? {
        copy::repeat_each(t, t.layout().dim(dim)?, n, out);
        return Ok(());
    }
    // Every element is a row of its own in the result.
    let (mut from, mut to) = (t.layout().clone(), Layout::contiguous(t.sizes()));
    let step = out.strides()[0];
    to.strides.iter_mut().for_each(|s| *s *= n * step);
    to.offset = out.layout().offset;
    from.sizes.push(n);
    from.strides.push(0);
    to.sizes.push(n);
    to.strides.push(step);
    copy::between(t, &from, out, &to).map_err(restride_ir::OpError::new)
}

/// Shifts of the dimensions of a roll, and whether the operand is rolled as one row.
fn shifts(l: &Layout, shifts: &[i64], dims: &[i64]) -> Result<SmallVec<[(usize, i64); 6]>> {
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
    // An operand without elements is cloned; one that is rolled as a row is contiguous after it.
    if t.layout.numel() == 0 && of_dims.len() <= 1 {
        return one(Meta::new(t.dtype, crate::iter::dense_like(&t.layout)));
    }
    one(fresh(t.dtype, t.sizes()))
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
    // As one row: through row-major copies of both.
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
fn room_roll(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    if !a.ints(2)?.is_empty() {
        return Ok(0);
    }
    let (t, out) = (a.tensor(0)?, &outs[0]);
    let row = Layout::contiguous(&[t.layout.numel()]);
    let there = copy::same_order_room(lies(t), &row);
    let back = copy::same_order_room((out.dtype, &row), &out.layout);
    let own = scratch::tensor_room(t.dtype, t.layout.numel());
    Ok(own + there.max(own + back))
}

/// Copies the two parts of each dimension from `dim` on to where they are after the roll.
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

/// A layout read backwards along dimensions.
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

/// What a flip or a rotation does to a layout: which dimensions are read backwards, which two are exchanged then.
type Turn = (restride_ir::Ints, Option<(i64, i64)>);

fn turn_flip<V>(a: &Args<'_, V>, _: &Layout) -> Result<Turn> {
    Ok((a.ints(1)?, None))
}
fn turn_fliplr<V>(_: &Args<'_, V>, l: &Layout) -> Result<Turn> {
    ensure!(l.rank() >= 2, "Input must be >= 2-d.");
    Ok((smallvec![1], None))
}
fn turn_flipud<V>(_: &Args<'_, V>, l: &Layout) -> Result<Turn> {
    ensure!(l.rank() >= 1, "Input must be >= 1-d.");
    Ok((smallvec![0], None))
}
fn turn_rot90<V>(a: &Args<'_, V>, l: &Layout) -> Result<Turn> {
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

fn turned_type(t: &Meta, turn: &Turn, clones: bool) -> Metas {
    flipped(&t.layout, &turn.0)?;
    let layout = if clones { Layout::contiguous(t.sizes()) } else { crate::iter::dense_like(&t.layout) };
    one(Meta::new(
        t.dtype,
        match turn.1 {
            Some((a, b)) => layout.transpose(a, b)?,
            None => layout,
        },
    ))
}
fn run_turn(c: &Call<'_>, turn: &Turn) -> Result<()> {
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
    infer_flip, run_flip: turn_flip, |_: &Turn| false;
    infer_fliplr, run_fliplr: turn_fliplr, |_: &Turn| false;
    infer_flipud, run_flipud: turn_flipud, |_: &Turn| false;
    infer_rot90, run_rot90: turn_rot90, |t: &Turn| t.0.is_empty();
}

const F: DType = DType::F32;

fn nhwc(sizes: &[i64], seed: u64) -> Tensor {
    laid(F, crate::iter::channels_last(sizes), seed)
}
fn s_cat() -> Vec<Sample> {
    vec![
        sample![vec![tensor(F, &[2, 3], 1), tensor(F, &[4, 3], 2)]],
        sample![vec![strided(F, &[2, 3], 1), transposed(F, &[2, 2], 2), expanded(F, &[2, 1], 3)], -1],
        sample![vec![tensor(DType::I64, &[2], 1), tensor(DType::F16, &[3], 2), tensor(DType::Bool, &[1], 3)]],
        sample![vec![tensor(F, &[0], 1), transposed(F, &[2, 3], 2)], 1],
        sample![vec![tensor(DType::F64, &[0], 1), tensor(F, &[2, 0], 2), tensor(F, &[2, 3], 2)], 1],
        sample![vec![tensor(DType::I32, &[0], 1), tensor(DType::I64, &[0], 1)], 1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 1, 4, 5], 2)], 1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 2, 4, 5], 2)], 1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), tensor(F, &[2, 2, 4, 5], 2)], 1],
        sample![vec![tensor(F, &[0], 1), nhwc(&[2, 3, 4, 5], 1)], 1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1)]],
        sample![vec![tensor(DType::C64, &[2, 2], 1), tensor(DType::F64, &[2, 2], 2)]],
        sample![vec![tensor(DType::U8, &[2, 2], 1), tensor(DType::I8, &[2, 2], 2)]],
        sample![vec![tensor(F, &[], 1), tensor(F, &[2], 2)]],
        sample![vec![tensor(F, &[2, 3], 1), tensor(F, &[3, 3], 2)], 1],
        sample![vec![tensor(F, &[2, 3], 1), tensor(F, &[3], 2)]],
        sample![vec![tensor(F, &[2, 3], 1)], 2],
        sample![Vec::<Tensor>::new()],
    ]
}
fn s_stack() -> Vec<Sample> {
    vec![
        sample![vec![tensor(F, &[2, 3], 1), strided(F, &[2, 3], 2)]],
        sample![vec![transposed(F, &[2, 3], 1), tensor(F, &[2, 3], 2)], 1],
        sample![vec![transposed(F, &[2, 3], 1), expanded(DType::I64, &[2, 3], 2), tensor(DType::F64, &[2, 3], 3)], -1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 3, 4, 5], 2)], 1],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 3, 4, 5], 2)], 0],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 3, 4, 5], 2)], 4],
        sample![vec![nhwc(&[2, 3, 4, 5], 1), nhwc(&[2, 3, 4, 5], 2)], 3],
        sample![vec![tensor(F, &[], 1), tensor(F, &[], 2)]],
        sample![vec![tensor(F, &[0], 1), tensor(F, &[0], 2)]],
        sample![vec![tensor(F, &[0], 1), tensor(F, &[0], 2)], 1],
        sample![vec![tensor(F, &[2, 0], 1)], 1],
        sample![vec![tensor(F, &[2], 1), tensor(F, &[3], 2)]],
        sample![vec![tensor(F, &[2], 1)], 2],
        sample![Vec::<Tensor>::new()],
    ]
}
fn s_joined() -> Vec<Sample> {
    vec![
        sample![vec![tensor(F, &[], 1), tensor(F, &[], 2)]],
        sample![vec![tensor(F, &[3], 1), strided(F, &[3], 2)]],
        sample![vec![transposed(F, &[3, 2], 1), tensor(DType::I64, &[3, 2], 2)]],
        sample![vec![tensor(F, &[2, 3, 4], 1), tensor(F, &[2, 3, 4], 2)]],
        sample![vec![tensor(F, &[2], 1), tensor(F, &[2, 2], 2)]],
        sample![Vec::<Tensor>::new()],
    ]
}
fn s_vectors() -> Vec<Sample> {
    vec![
        sample![vec![ints(&[0, 1, 2], &[3]), ints(&[7, 8], &[2])]],
        sample![vec![tensor(F, &[2], 1), strided(F, &[3], 2), tensor(F, &[2], 3)]],
        sample![vec![tensor(F, &[2], 1), tensor(F, &[0], 2)]],
    ]
}
fn s_block_diag() -> Vec<Sample> {
    vec![
        sample![vec![tensor(F, &[2, 3], 1), strided(DType::I64, &[2], 2), tensor(F, &[], 3)]],
        sample![vec![transposed(DType::C64, &[2, 3], 1), tensor(DType::C64, &[0, 2], 2)]],
        sample![vec![tensor(F, &[2, 3, 4], 1)]],
    ]
}
fn s_repeat() -> Vec<Sample> {
    vec![
        sample![transposed(F, &[3, 4], 1), [2, 1]],
        sample![strided(DType::I64, &[3, 4], 1), [2, 1, 3]],
        sample![tensor(F, &[3, 4], 1), [0, 1, 2]],
        sample![tensor(DType::C64, &[], 1), [3]],
        sample![tensor(DType::Bool, &[], 1), NO],
        sample![tensor(F, &[0, 2], 1), [2, 2]],
        sample![tensor(F, &[3, 4], 1), [2]],
        sample![tensor(F, &[3, 4], 1), [2, -1]],
    ]
}
fn s_tile() -> Vec<Sample> {
    let mut all = s_repeat();
    all.push(sample![transposed(F, &[3, 4], 1), NO]);
    all
}
fn s_repeat_int() -> Vec<Sample> {
    vec![
        sample![transposed(F, &[3, 4], 1), 2],
        sample![strided(DType::I64, &[2, 3, 2], 1), 3, 1],
        sample![transposed(DType::Bool, &[2, 3, 2], 1), 2, -1],
        sample![tensor(F, &[], 1), 2],
        sample![tensor(F, &[], 1), 2, 0],
        sample![tensor(F, &[2, 3], 1), 0, 0],
        sample![tensor(F, &[0, 3], 1), 2, 1],
        sample![tensor(F, &[2, 3], 1), -1, 0],
        sample![tensor(F, &[2, 3], 1), 2, 0, 4],
        sample![tensor(F, &[2, 3], 1), 2, 0, 5],
    ]
}
fn s_roll() -> Vec<Sample> {
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
fn s_flip() -> Vec<Sample> {
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
fn s_flat_flip() -> Vec<Sample> {
    vec![
        sample![transposed(F, &[3, 4], 1)],
        sample![strided(DType::I64, &[2, 3, 2], 1)],
        sample![tensor(F, &[3], 1)],
        sample![tensor(F, &[], 1)],
    ]
}
fn s_rot90() -> Vec<Sample> {
    let mut all: Vec<Sample> = (-1..4).map(|k: i64| sample![transposed(F, &[3, 4], 1), k, [0, 1]]).collect();
    all.push(sample![strided(DType::Bool, &[3, 4, 2], 1), 1, [2, 0]]);
    all.push(sample![tensor(F, &[3, 4], 1), 1, [0, -2]]);
    all.push(sample![tensor(F, &[3, 4], 1), 1, [0]]);
    all.push(sample![tensor(F, &[3], 1), 1, [0, 1]]);
    all
}

macro_rules! composition {
    ($schema:expr, $f:ident, $samples:ident) => {
        OpDef {
            infer: composed!($f),
            decompose: Some($f),
            exactness: Exactness::Exact,
            samples: Some($samples),
            ..OpDef::new($schema)
        }
    };
}

pub(crate) static OPS: &[OpDef] = &[
    OpDef {
        overlap: OverlapCheck::Pieces,
        ..assembled("aten::cat(Tensor[] tensors, int dim=0) -> Tensor", infer_cat, pieces_of_cat, run_cat, s_cat)
    },
    OpDef {
        overlap: OverlapCheck::Pieces,
        ..assembled("aten::concat(Tensor[] tensors, int dim=0) -> Tensor", infer_cat, pieces_of_cat, run_cat, s_cat)
    },
    OpDef {
        overlap: OverlapCheck::Pieces,
        ..assembled(
            "aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor",
            infer_cat,
            pieces_of_cat,
            run_cat,
            s_cat,
        )
    },
    assembled("aten::stack(Tensor[] tensors, int dim=0) -> Tensor", infer_stack, pieces_of_stack, run_stack, s_stack),
    composition!("aten::hstack(Tensor[] tensors) -> Tensor", hstack, s_joined),
    composition!("aten::vstack(Tensor[] tensors) -> Tensor", vstack, s_joined),
    composition!("aten::row_stack(Tensor[] tensors) -> Tensor", vstack, s_joined),
    composition!("aten::dstack(Tensor[] tensors) -> Tensor", dstack, s_joined),
    composition!("aten::column_stack(Tensor[] tensors) -> Tensor", column_stack, s_joined),
    composition!("aten::cartesian_prod(Tensor[] tensors) -> Tensor", cartesian_prod, s_vectors),
    own("aten::block_diag(Tensor[] tensors) -> Tensor", infer_block_diag, run_block_diag, s_block_diag),
    own("aten::repeat(Tensor self, SymInt[] repeats) -> Tensor", infer_repeat, run_repeat, s_repeat),
    own("aten::tile(Tensor self, SymInt[] dims) -> Tensor", infer_tile, run_repeat, s_tile),
    own(
        "aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> \
         Tensor",
        infer_repeat_int,
        run_repeat_int,
        s_repeat_int,
    ),
    OpDef {
        scratch: Some(room_roll),
        ..own("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", infer_roll, run_roll, s_roll)
    },
    own("aten::flip(Tensor self, int[] dims) -> Tensor", infer_flip, run_flip, s_flip),
    own("aten::fliplr(Tensor self) -> Tensor", infer_fliplr, run_fliplr, s_flat_flip),
    own("aten::flipud(Tensor self) -> Tensor", infer_flipud, run_flipud, s_flat_flip),
    own("aten::rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", infer_rot90, run_rot90, s_rot90),
];
