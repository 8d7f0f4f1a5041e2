//! Views of parts: slices, splits, windows, diagonals, and `as_strided`.

use crate::support::ensure;
use restride_ir::{Args, Expr, ExprFn, OpDef, OpError, TensorType, ViewArgs, ViewOutcome};
use restride_tensor::{Dim, Layout, ViewMut};
use smallvec::SmallVec;

use crate::views::{Result, Rule, a_copy, a_view, cut, fail, in_place, layout_rule, reading, resolves};

layout_rule!(Slice, |a, l| l.slice(a.known(1)?, a.opt_number(2)?, a.opt_number(3)?, a.number(4)?)?);
layout_rule!(Select, |a, l| {
    let index = a.number(2)?;
    let d = l.dim(a.known(1)?)?;
    l.select(a.known(1)?, index).map_err(|e| match l.sizes.get(d) {
        Some(n) => OpError::new(format!("select(): index {index} out of range for dimension {d} of size {n}")),
        None => OpError::from(e),
    })?
});

/// An index that data decides is one of the dimension.
fn index_inside(a: &Args<'_, TensorType, Expr>) -> Vec<Expr> {
    let (Ok(t), Ok(dim), Ok(index)) = (a.tensor(0), a.known(1), a.number(2)) else { return Vec::new() };
    // A tensor without dimensions has dimension 0, too.
    let Some(size) = t.layout.dim(dim).ok().and_then(|d| t.layout.sizes.get(d)) else { return Vec::new() };
    let least = Expr::Int(0).minus(size);
    vec![Expr::call(ExprFn::Lt, vec![index.clone(), size.clone()]), Expr::call(ExprFn::Ge, vec![index.clone(), least])]
}
layout_rule!(Narrow, |a, l| narrow(l, a.known(1)?, a.number(2)?, a.number(3)?)?);
layout_rule!(Unfold, |a, l| unfold(l, a.known(1)?, a.number(2)?, a.number(3)?)?);
layout_rule!(Diagonal, |a, l| l.diagonal(a.known(1)?, a.known(2)?, a.known(3)?)?);
layout_rule!(
    /// The given size, stride and offset in cells of the storage.
    AsStrided,
    |a, l| as_strided(l, a.numbers(1)?, a.numbers(2)?, a.opt_number(3)?)?
);

fn narrow<D: Dim>(l: &Layout<D>, dim: i64, start: &D, length: &D) -> Result<Layout<D>> {
    ensure!(l.rank() != 0, "narrow() cannot be applied to a 0-dim tensor.");
    let zero = D::from(0);
    ensure!(length.less(&zero) != Some(true), "narrow(): length must be non-negative.");
    let d = l.dim(dim)?;
    let size = &l.sizes[d];
    ensure!(
        size.less(start) != Some(true) && start.plus(size).less(&zero) != Some(true),
        "start out of range (expected to be in range of [-{size}, {size}], but got {start})"
    );
    let start = start.bound_from_start(size);
    ensure!(
        size.less(&start.plus(length)) != Some(true),
        "start ({start}) + length ({length}) exceeds dimension size ({size})."
    );
    Ok(cut(l, d, &start, length))
}

fn unfold<D: Dim>(l: &Layout<D>, dim: i64, size: &D, step: &D) -> Result<Layout<D>> {
    ensure!(size.less(&D::from(0)) != Some(true), "size is {size} but must be >= 0");
    ensure!(
        l.rank() != 0 || D::from(1).less(size) != Some(true),
        "maximum size for tensor at dimension 0 is 1 but size is {size}"
    );
    ensure!(step.less(&D::from(1)) != Some(true), "step is {step} but must be > 0");
    Ok(l.unfold(dim, size, step)?)
}

pub(crate) fn as_strided<D: Dim>(l: &Layout<D>, sizes: &[D], strides: &[D], offset: Option<&D>) -> Result<Layout<D>> {
    ensure!(sizes.len() == strides.len(), "mismatch in length of strides and shape");
    let negative = |d: &D| d.less(&D::from(0)) == Some(true);
    ensure!(!strides.iter().any(negative), "as_strided: Negative strides are not supported at the moment");
    ensure!(!sizes.iter().any(negative), "as_strided: sizes must not be negative");
    let offset = offset.unwrap_or(&l.offset);
    ensure!(!negative(offset), "Tensor: invalid storage offset {offset}");
    Ok(Layout::strided(sizes, strides, offset.clone()))
}

/// Consecutive parts of a layout along a dimension, each as long as its result.
fn one_by_one<'a>(l: &'a Layout, d: usize, outs: &'a [ViewMut<'_>]) -> impl Iterator<Item = Result<Layout>> {
    outs.iter().scan(0, move |at, out| {
        let (start, length) = (*at, out.sizes().get(d).copied().unwrap_or(0));
        *at += length;
        Some(Ok(cut(l, d, &start, &length)))
    })
}

/// Maximum number of results of a call.
const MOST_PARTS: i64 = 1 << 17;

/// Refuses counts of parts above the maximum, before each part gets a type.
fn few(count: i64, what: &str) -> Result<()> {
    if count > MOST_PARTS {
        let why = format!("{what} into {count} parts: no more than {MOST_PARTS} are supported");
        return Err(OpError::limit(why));
    }
    Ok(())
}

/// Views along a dimension, from the start and length of each part.
fn parts<D: Dim>(t: &TensorType<D>, d: usize, parts: impl IntoIterator<Item = (D, D)>) -> ViewOutcome<D> {
    let one = |(start, length): (D, D)| TensorType::new(t.dtype, cut(&t.layout, d, &start, &length));
    ViewOutcome::Views(parts.into_iter().map(one).collect())
}

fn splittable<D: Dim>(l: &Layout<D>, dim: i64, what: &str) -> Result<usize> {
    ensure!(l.rank() != 0, "{what} expects at least a 1-dimensional tensor");
    Ok(l.dim(dim)?)
}

/// Parts of equal size; the last may be shorter.
fn equal_parts<D: Dim>(t: &TensorType<D>, d: usize, part: &D) -> Result<ViewOutcome<D>> {
    let size = &t.layout.sizes[d];
    let zero = D::from(0);
    ensure!(part.less(&zero) != Some(true), "split expects split_size be non-negative, but got split_size={part}");
    if part.is(0) {
        return match size.equals(&zero) {
            Some(true) => Ok(parts(t, d, [(zero.clone(), zero)])),
            Some(false) => {
                fail(format!("split_size can only be 0 if dimension size is 0, but got dimension size of {size}"))
            }
            None => Ok(ViewOutcome::Unknown),
        };
    }
    let count = size.plus(&part.minus(&D::from(1))).floor_div(part).larger(&D::from(1));
    let Some(count) = count.known() else { return Ok(ViewOutcome::Unknown) };
    few(count, "a split")?;
    let starts = (0..count).map(|i| {
        let start = part.times(&D::from(i));
        let rest = size.minus(&start);
        (start, if i + 1 == count { rest } else { part.clone() })
    });
    Ok(parts(t, d, starts))
}

fn sized_parts<D: Dim>(t: &TensorType<D>, d: usize, sizes: &[D]) -> Result<ViewOutcome<D>> {
    let mut at = D::from(0);
    let mut out = Vec::with_capacity(sizes.len());
    for s in sizes {
        ensure!(
            s.less(&D::from(0)) != Some(true),
            "split_with_sizes expects split_sizes have only non-negative entries, but got {s}"
        );
        let next = at.plus(s);
        out.push((std::mem::replace(&mut at, next), s.clone()));
    }
    let size = &t.layout.sizes[d];
    ensure!(
        at.equals(size) != Some(false),
        "split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), \
             but the sum is {at}"
    );
    Ok(parts(t, d, out))
}

fn chunks<D: Dim>(t: &TensorType<D>, d: usize, count: i64) -> Result<ViewOutcome<D>> {
    ensure!(count > 0, "chunk expects `chunks` to be greater than 0, got: {count}");
    few(count.min(t.layout.sizes[d].known().filter(|n| *n > 0).unwrap_or(count)), "a chunk")?;
    let size = &t.layout.sizes[d];
    let part = size.plus(&D::from(count - 1)).floor_div(&D::from(count));
    match (part.equals(&D::from(0)), size.equals(&D::from(0))) {
        (Some(true), _) | (_, Some(true)) => Ok(parts(t, d, (0..count).map(|_| (D::from(0), D::from(0))))),
        _ => equal_parts(t, d, &part),
    }
}

/// `tensor_split` into a number of parts whose sizes differ by at most one.
fn sections<D: Dim>(t: &TensorType<D>, d: usize, count: &D) -> Result<ViewOutcome<D>> {
    let Some(count) = count.known() else { return Ok(ViewOutcome::Unknown) };
    ensure!(count > 0, "number of sections must be larger than 0, got {count}");
    few(count, "a split")?;
    let size = &t.layout.sizes[d];
    let mut at = D::from(0);
    let out: Vec<(D, D)> = (0..count)
        .map(|i| {
            let length = size.plus(&D::from(count - 1 - i)).floor_div(&D::from(count));
            let next = at.plus(&length);
            (std::mem::replace(&mut at, next), length)
        })
        .collect();
    Ok(parts(t, d, out))
}

/// `tensor_split` at indices, clamped as in a slice.
fn at_indices<D: Dim>(t: &TensorType<D>, d: usize, indices: &[D]) -> Result<ViewOutcome<D>> {
    let one = D::from(1);
    let mut out: SmallVec<[TensorType<D>; 1]> = SmallVec::new();
    let mut start = D::from(0);
    for end in indices.iter().chain([&t.layout.sizes[d]]) {
        out.push(TensorType::new(t.dtype, t.layout.slice(d as i64, Some(&start), Some(end), &one)?));
        start = end.clone();
    }
    Ok(ViewOutcome::Views(out))
}

/// `hsplit` and its like into equal parts.
fn equal_sections<D: Dim>(t: &TensorType<D>, dim: Option<usize>, count: &D, what: &str) -> Result<ViewOutcome<D>> {
    let d = dim.ok_or_else(|| OpError::new(format!("torch.{what} requires a tensor with more dimensions")))?;
    let Some(count) = count.known() else { return Ok(ViewOutcome::Unknown) };
    let size = &t.layout.sizes[d];
    if count <= 0 || size.known().is_some_and(|n| n % count != 0) {
        return fail(format!(
            "torch.{what} attempted to split along dimension {d}, but the size of the dimension {size} is not divisible \
             by the split_size {count}!"
        ));
    }
    if size.floor_div(&D::from(count)).times(&D::from(count)).equals(size) != Some(true) {
        return Ok(ViewOutcome::Unknown);
    }
    sections(t, d, &D::from(count))
}

/// The dimension that `hsplit`, `vsplit` and `dsplit` split.
fn split_dim(rank: usize, what: &str) -> Option<usize> {
    match (what, rank) {
        ("hsplit", 0) | ("vsplit", 0 | 1) | ("dsplit", 0..=2) => None,
        ("hsplit", 1) | ("vsplit", _) => Some(0),
        ("hsplit", _) => Some(1),
        _ => Some(2),
    }
}

/// Declares a rule with several results: `|arguments, tensor| outcome`.
macro_rules! multi_rule {
    ($name:ident, |$a:ident, $t:ident| $body:expr) => {
        pub(crate) struct $name;
        impl Rule for $name {
            fn run<D: Dim>($a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
                let $t = $a.tensor(0)?;
                $body
            }
        }
    };
}
multi_rule!(Split, |a, t| equal_parts(t, splittable(&t.layout, a.known(2)?, "split")?, a.number(1)?));
multi_rule!(SplitSizes, |a, t| {
    let d = splittable(&t.layout, a.known(2)?, "split_with_sizes")?;
    sized_parts(t, d, a.numbers(1)?)
});
multi_rule!(Chunk, |a, t| chunks(t, splittable(&t.layout, a.known(2)?, "chunk")?, a.known(1)?));
multi_rule!(Sections, |a, t| sections(t, splittable(&t.layout, a.known(2)?, "tensor_split")?, a.number(1)?));
multi_rule!(Indices, |a, t| at_indices(t, splittable(&t.layout, a.known(2)?, "tensor_split")?, a.numbers(1)?));
multi_rule!(HSplit, |a, t| equal_sections(t, split_dim(t.rank(), "hsplit"), a.number(1)?, "hsplit"));
multi_rule!(VSplit, |a, t| equal_sections(t, split_dim(t.rank(), "vsplit"), a.number(1)?, "vsplit"));
multi_rule!(DSplit, |a, t| equal_sections(t, split_dim(t.rank(), "dsplit"), a.number(1)?, "dsplit"));
multi_rule!(HSplitAt, |a, t| split_at(t, "hsplit", a.numbers(1)?));
multi_rule!(VSplitAt, |a, t| split_at(t, "vsplit", a.numbers(1)?));
multi_rule!(DSplitAt, |a, t| split_at(t, "dsplit", a.numbers(1)?));
multi_rule!(Unbind, |a, t| {
    let d = splittable(&t.layout, a.known(1)?, "unbind")?;
    let Some(count) = t.layout.sizes[d].known() else { return Ok(ViewOutcome::Unknown) };
    few(count, "unbind")?;
    let one = |i| Ok(TensorType::new(t.dtype, t.layout.select(d as i64, &D::from(i))?));
    Ok(ViewOutcome::Views((0..count).map(one).collect::<Result<_>>()?))
});

fn split_at<D: Dim>(t: &TensorType<D>, what: &str, indices: &[D]) -> Result<ViewOutcome<D>> {
    match split_dim(t.rank(), what) {
        Some(d) => at_indices(t, d, indices),
        None => fail(format!("torch.{what} requires a tensor with more dimensions")),
    }
}

const fn strided_op(def: OpDef) -> OpDef {
    OpDef { strided: true, ..def }
}

/// Marks a view operator whose list of results PyTorch creates one by one.
const fn apart(def: OpDef) -> OpDef {
    OpDef { one_by_one: true, ..def }
}

pub(crate) static OPS: &[OpDef] = table![
    a_view::<Slice>("slice.Tensor", samples!(s_slice)),
    OpDef { requires: Some(index_inside), ..a_view::<Select>("select.int", samples!(s_select)) },
    a_view::<Narrow>("narrow", samples!(s_narrow)),
    a_view::<Split>("split.Tensor", samples!(s_split)),
    a_view::<SplitSizes>("split_with_sizes", samples!(s_split_sizes)),
    a_view::<Chunk>("chunk", samples!(s_chunk)),
    // PyTorch's schemas of these three omit the alias.
    resolves(a_view::<Split>(
        "aten::unsafe_split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        samples!(s_split),
    )),
    resolves(a_view::<SplitSizes>(
        "aten::unsafe_split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
        samples!(s_split_sizes),
    )),
    resolves(a_view::<Chunk>(
        "aten::unsafe_chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]",
        samples!(s_chunk),
    )),
    apart(a_view::<Sections>("tensor_split.sections", samples!(s_sections))),
    apart(a_view::<Indices>("tensor_split.indices", samples!(s_indices))),
    apart(a_view::<HSplit>("hsplit.int", samples!(s_hsplit))),
    apart(a_view::<HSplitAt>("hsplit.array", samples!(s_hsplit_at))),
    apart(a_view::<VSplit>("vsplit.int", samples!(s_vsplit))),
    apart(a_view::<VSplitAt>("vsplit.array", samples!(s_vsplit_at))),
    apart(a_view::<DSplit>("dsplit.int", samples!(s_dsplit))),
    apart(a_view::<DSplitAt>("dsplit.array", samples!(s_dsplit_at))),
    a_view::<Unbind>("unbind.int", samples!(s_unbind)),
    a_view::<Unfold>("unfold", samples!(s_unfold)),
    a_view::<Diagonal>("diagonal", samples!(s_diagonal)),
    a_view::<Diagonal>("linalg_diagonal", samples!(s_linalg_diagonal)),
    strided_op(a_view::<AsStrided>("as_strided", samples!(s_as_strided))),
    strided_op(in_place::<AsStrided>("as_strided_")),
    a_copy::<Slice>("slice_copy.Tensor", samples!(s_slice)),
    a_copy::<Select>("select_copy.int", samples!(s_select)),
    a_copy::<Narrow>("narrow_copy", samples!(s_narrow)),
    reading!(a_copy::<Split>("split_copy.Tensor", samples!(s_split)), |c, l| one_by_one(
        l,
        l.dim(c.args.int(2)?)?,
        c.outs
    )),
    reading!(a_copy::<SplitSizes>("split_with_sizes_copy", samples!(s_split_sizes),), |c, l| one_by_one(
        l,
        l.dim(c.args.int(2)?)?,
        c.outs
    )),
    reading!(a_copy::<Unbind>("unbind_copy.int", samples!(s_unbind)), |c, l| {
        let dim = c.args.int(1)?;
        (0..).map(move |i: i64| Ok(l.select(dim, &i)?))
    }),
    a_copy::<Unfold>("unfold_copy", samples!(s_unfold)),
    a_copy::<Diagonal>("diagonal_copy", samples!(s_diagonal)),
    strided_op(reading!(a_copy::<AsStrided>("as_strided_copy", samples!(s_as_strided),), |c, l| {
        let offset = c.args.opt_int(3)?;
        std::iter::once(as_strided(l, &c.args.ints(1)?, &c.args.ints(2)?, offset.as_ref()))
    })),
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_slice() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1)],
            sample![tensor(F, &[4, 6], 1), 1, 1, 5, 2],
            sample![tensor(DType::I64, &[4, 6], 1), -1, -2],
            sample![strided(F, &[4, 6], 1), 0, 3, 1],
            sample![tensor(F, &[4, 6], 1), 0, 1, i64::MAX],
            sample![transposed(F, &[4, 6], 1), 1, (), -1, 3],
            sample![tensor(F, &[4, 6], 1), 0, 9, 12],
            sample![tensor(F, &[4, 6], 1), 0, -9, -3],
            sample![tensor(F, &[0, 6], 1), 0, 0, 2],
        ]
    }

    pub(crate) fn s_select() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), 0, 2],
            sample![strided(DType::U8, &[4, 6], 1), -1, -2],
            sample![transposed(F, &[2, 3, 4], 1), 1, 1],
            sample![tensor(F, &[3], 1), 0, -3],
        ]
    }

    pub(crate) fn s_narrow() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), 1, 2, 3],
            sample![strided(F, &[4, 6], 1), 0, -2, 2],
            sample![tensor(F, &[4, 6], 1), 0, 4, 0],
        ]
    }

    pub(crate) fn s_split() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[7, 2], 1), 3],
            sample![strided(F, &[2, 6], 1), 2, 1],
            sample![tensor(F, &[2, 6], 1), 9, -1],
            sample![tensor(F, &[0, 6], 1), 0, 0],
            sample![tensor(F, &[0, 6], 1), 2, 0],
        ]
    }

    pub(crate) fn s_chunk() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[7, 2], 1), 3],
            sample![strided(F, &[2, 6], 1), 4, 1],
            sample![tensor(F, &[2, 3], 1), 5, 0],
            sample![tensor(F, &[0, 6], 1), 2, 0],
        ]
    }

    pub(crate) fn s_split_sizes() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[7, 2], 1), [3, 0, 4]],
            sample![transposed(F, &[2, 6], 1), [1, 2, 3], -1],
            sample![tensor(F, &[2, 0], 1), [0, 0], 1],
        ]
    }

    pub(crate) fn s_sections() -> Vec<Sample> {
        vec![sample![tensor(F, &[7, 2], 1), 3], sample![strided(F, &[2, 6], 1), 4, 1], sample![tensor(F, &[2], 1), 3]]
    }

    pub(crate) fn s_indices() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[7, 2], 1), [2, 5]],
            sample![tensor(F, &[7, 2], 1), [-3, 5, 2, 100]],
            sample![strided(F, &[2, 6], 1), NO, 1],
        ]
    }

    pub(crate) fn s_hsplit() -> Vec<Sample> {
        vec![sample![tensor(F, &[4, 6], 1), 3], sample![strided(F, &[6], 1), 2]]
    }

    pub(crate) fn s_vsplit() -> Vec<Sample> {
        vec![sample![tensor(F, &[4, 6], 1), 2]]
    }

    pub(crate) fn s_dsplit() -> Vec<Sample> {
        vec![sample![strided(F, &[2, 3, 6], 1), 2]]
    }

    pub(crate) fn s_hsplit_at() -> Vec<Sample> {
        vec![sample![tensor(F, &[4, 6], 1), [1, 4]], sample![tensor(F, &[6], 1), [2, -1]]]
    }

    pub(crate) fn s_vsplit_at() -> Vec<Sample> {
        vec![sample![tensor(F, &[4, 6], 1), [1, 3]]]
    }

    pub(crate) fn s_dsplit_at() -> Vec<Sample> {
        vec![sample![tensor(F, &[2, 3, 6], 1), [1, 3]]]
    }

    pub(crate) fn s_unbind() -> Vec<Sample> {
        vec![sample![tensor(F, &[3, 2], 1)], sample![strided(F, &[2, 3], 1), -1], sample![tensor(F, &[2, 0], 1), 0]]
    }

    pub(crate) fn s_unfold() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[7], 1), 0, 3, 2],
            sample![strided(F, &[2, 6], 1), 1, 2, 1],
            sample![transposed(F, &[5, 2], 1), 0, 5, 1],
            sample![tensor(F, &[], 1), 0, 1, 1],
            sample![tensor(F, &[4], 1), 0, 0, 1],
        ]
    }

    pub(crate) fn s_diagonal() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1)],
            sample![strided(F, &[4, 6], 1), 2],
            sample![transposed(F, &[2, 3, 4], 1), -1, 1, 2],
            sample![tensor(F, &[4, 6], 1), 9],
            sample![tensor(F, &[3, 3], 1), -1, -1, 0],
        ]
    }

    pub(crate) fn s_linalg_diagonal() -> Vec<Sample> {
        vec![sample![tensor(F, &[2, 3, 4], 1)], sample![strided(F, &[2, 3, 4], 1), 1, 0, 2]]
    }

    pub(crate) fn s_as_strided() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), [2, 3], [6, 2]],
            sample![tensor(F, &[4, 6], 1), [3, 3], [1, 1], 2],
            sample![transposed(F, &[4, 6], 1), [2], [3], 5],
            sample![tensor(F, &[4], 1), [0, 2], [1, 1]],
            sample![tensor(F, &[4], 1), NO, NO],
        ]
    }
}
