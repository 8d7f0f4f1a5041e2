//! Joins: `cat` and `stack` in their forms, and repetition.

use restride_ir::{
    Arg, Args, AssemblyPart, Call, DType, Dims, Emit, Exactness, InferFn, Layout, Meta, Movement, OpDef, OverlapCheck,
    SampleFn,
};
use restride_kernels::movement::copy;
use smallvec::smallvec;

use crate::support::composite::composite;
use crate::support::promote::{Operand, result_type};
use crate::support::{
    Metas, Result, ValArgs, Vals, emit, ensure, fail, fresh, one, suggests_channels_last, without_scratch,
};

/// Whether `cat` ignores an operand: an empty vector fits beside any shape.
fn skipped(l: &Layout) -> bool {
    l.rank() == 1 && l.sizes[0] == 0
}

/// The dimension of a `cat`, from the first operand that it does not ignore, and this operand's position.
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

/// Type of a concatenation.
pub(super) fn cat_type(operands: &[&Meta], dim: i64) -> Result<Meta> {
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
    // The result is channels-last only if every operand suggests it, ignored operands included.
    if layouts.iter().all(|l| suggests_channels_last(l) && l.rank() == sizes.len()) {
        return Ok(Meta::new(dtype, crate::support::strides::channels_last(&sizes)));
    }
    Ok(fresh(dtype, &sizes))
}

/// The region of the concatenation that each operand fills.
fn cat_pieces(operands: &[&Layout], dim: i64, result: &Layout) -> Result<Vec<AssemblyPart>> {
    let Some((d, _)) = cat_dim(operands, dim)? else { return Ok(Vec::new()) };
    let (mut at, mut pieces) = (0, Vec::with_capacity(operands.len()));
    for (operand, l) in operands.iter().enumerate().filter(|(_, l)| !skipped(l)) {
        pieces.push(AssemblyPart { operand, region: part(result, d, at, l.sizes[d]) });
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
fn pieces_of_cat(a: &Args<'_, Meta>, result: &Layout) -> Result<Vec<AssemblyPart>> {
    cat_pieces(&layouts(&a.tensors(0)?), a.int(1)?, result)
}

/// Dimension of a `stack`, after PyTorch's checks of its operands.
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

/// Types `stack` as a `cat` with its dimension split, or of unsqueezed operands: the choice decides the strides.
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
fn pieces_of_stack(a: &Args<'_, Meta>, result: &Layout) -> Result<Vec<AssemblyPart>> {
    let operands = a.tensors(0)?;
    let d = stack_dim(&operands, a.int(1)?)? as i64;
    (0..operands.len())
        .map(|operand| Ok(AssemblyPart { operand, region: result.select(d, &(operand as i64))? }))
        .collect()
}

type PiecesFn = fn(&Args<'_, Meta>, &Layout) -> Result<Vec<AssemblyPart>>;

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

/// `length` elements of dimension `d`, starting at `at`.
fn part(of: &Layout, d: usize, at: i64, length: i64) -> Layout {
    let mut region = of.clone();
    region.offset += at * region.strides[d];
    region.sizes[d] = length;
    region
}

const fn assembled(
    schema: &'static str,
    infer: InferFn,
    pieces: PiecesFn,
    run: fn(&Call<'_>) -> Result<()>,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef { movement: Some(Movement::Assemble(pieces)), ..without_scratch(schema, infer, run, samples).exactly() }
}

/// Applies `op` to each operand, then concatenates along a dimension that depends on the rank.
fn joined(e: &mut dyn Emit, a: &ValArgs<'_>, name: &str, op: &str, dim: fn(usize) -> i64) -> Vals {
    let operands = a.tensors(0)?;
    ensure!(!operands.is_empty(), "{name} expects a non-empty TensorList");
    let wide = operands.into_iter().map(|v| emit!(e, op, *v)).collect::<Result<Vec<_>>>()?;
    let rank = e.meta(wide[0]).rank();
    Ok(smallvec![emit!(e, "aten.cat.default", wide, dim(rank))?])
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
            0 | 1 => emit!(e, "aten.reshape.default", *v, [m.layout.numel(), 1])?,
            _ => *v,
        }));
    }
    hstack(e, &Args(&[Arg::Values(columns)]))
}

/// All combinations of elements, as rows: each vector expands over the dimensions of the others.
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
    let mut columns = Vec::with_capacity(vectors.len());
    for (i, v) in vectors.iter().enumerate() {
        let mut alone = vec![1; sizes.len()];
        alone[i] = sizes[i];
        let v = emit!(e, "aten.view.default", **v, alone)?;
        let v = emit!(e, "aten.expand.default", v, &sizes[..])?;
        columns.push(emit!(e, "aten.reshape.default", v, [-1])?);
    }
    Ok(smallvec![emit!(e, "aten.stack.default", columns, 1)?])
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

/// Type of a repetition; `repeats` may have leading dimensions that the operand does not.
fn repeated(t: &Meta, repeats: &[i64]) -> Metas {
    ensure!(
        repeats.len() >= t.rank(),
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"
    );
    let lead = repeats.len() - t.rank();
    let mut sizes: Dims<i64> = Dims::<i64>::new();
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
    // PyTorch accepts a negative size if another size is zero.
    one(fresh(t.dtype, &sizes))
}
/// The repeats of `tile`, with leading ones.
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

/// Type of a result with every element repeated `n` times along one dimension, or flattened.
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
    // Each element becomes a row of the result.
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

macro_rules! composition {
    ($schema:literal, $f:ident, $samples:expr) => {
        OpDef { exactness: Exactness::Exact, ..composite!($f, $samples(), $schema) }
    };
}

pub(crate) static OPS: &[OpDef] = table![
    OpDef { overlap: OverlapCheck::Pieces, ..assembled("cat", infer_cat, pieces_of_cat, run_cat, samples!(s_cat)) },
    assembled("stack", infer_stack, pieces_of_stack, run_stack, samples!(s_stack)),
    composition!("hstack", hstack, s_joined),
    composition!("vstack", vstack, s_joined),
    composition!("dstack", dstack, s_joined),
    composition!("column_stack", column_stack, s_joined),
    composition!("cartesian_prod", cartesian_prod, s_vectors),
    without_scratch("block_diag", infer_block_diag, run_block_diag, samples!(s_block_diag)).exactly(),
    without_scratch("repeat", infer_repeat, run_repeat, samples!(s_repeat)).exactly(),
    without_scratch("tile", infer_tile, run_repeat, samples!(s_tile)).exactly(),
    without_scratch("repeat_interleave.self_int", infer_repeat_int, run_repeat_int, samples!(s_repeat_int)).exactly(),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn nhwc(sizes: &[i64], seed: u64) -> RawTensor {
        laid(F, crate::support::strides::channels_last(sizes), seed)
    }

    pub(crate) fn s_cat() -> Vec<Sample> {
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
            sample![Vec::<RawTensor>::new()],
        ]
    }

    pub(crate) fn s_stack() -> Vec<Sample> {
        vec![
            sample![vec![tensor(F, &[2, 3], 1), strided(F, &[2, 3], 2)]],
            sample![vec![transposed(F, &[2, 3], 1), tensor(F, &[2, 3], 2)], 1],
            sample![
                vec![transposed(F, &[2, 3], 1), expanded(DType::I64, &[2, 3], 2), tensor(DType::F64, &[2, 3], 3)],
                -1
            ],
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
            sample![Vec::<RawTensor>::new()],
        ]
    }

    pub(crate) fn s_joined() -> Vec<Sample> {
        vec![
            sample![vec![tensor(F, &[], 1), tensor(F, &[], 2)]],
            sample![vec![tensor(F, &[3], 1), strided(F, &[3], 2)]],
            sample![vec![transposed(F, &[3, 2], 1), tensor(DType::I64, &[3, 2], 2)]],
            sample![vec![tensor(F, &[2, 3, 4], 1), tensor(F, &[2, 3, 4], 2)]],
            sample![vec![tensor(F, &[2], 1), tensor(F, &[2, 2], 2)]],
            sample![Vec::<RawTensor>::new()],
        ]
    }

    pub(crate) fn s_vectors() -> Vec<Sample> {
        vec![
            sample![vec![ints(&[0, 1, 2], &[3]), ints(&[7, 8], &[2])]],
            sample![vec![tensor(F, &[2], 1), strided(F, &[3], 2), tensor(F, &[2], 3)]],
            sample![vec![tensor(F, &[2], 1), tensor(F, &[0], 2)]],
        ]
    }

    pub(crate) fn s_block_diag() -> Vec<Sample> {
        vec![
            sample![vec![tensor(F, &[2, 3], 1), strided(DType::I64, &[2], 2), tensor(F, &[], 3)]],
            sample![vec![transposed(DType::C64, &[2, 3], 1), tensor(DType::C64, &[0, 2], 2)]],
            sample![vec![tensor(F, &[2, 3, 4], 1)]],
        ]
    }

    pub(crate) fn s_repeat() -> Vec<Sample> {
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

    pub(crate) fn s_tile() -> Vec<Sample> {
        let mut all = s_repeat();
        all.push(sample![transposed(F, &[3, 4], 1), NO]);
        all
    }

    pub(crate) fn s_repeat_int() -> Vec<Sample> {
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
}
