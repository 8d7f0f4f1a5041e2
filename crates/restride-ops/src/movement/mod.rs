//! Operators that only move elements: scatters, joins, flips, padding, folding and shuffles.

mod adjoint;
mod composed;
mod diagonal;
mod flip;
mod fold;
mod grad;
mod join;
pub(crate) mod pad;
mod shuffle;

use crate::support::ensure;
use restride_ir::{
    Arg, Args, Call, Exactness, Kernel, Meta, Movement, OpDef, OpError, Reuse, ReuseKind, SampleFn, TensorType,
    ViewArgs, ViewOutcome, view_args,
};
use restride_kernels::movement::copy;
use restride_tensor::{Dim, Layout, self_overlaps};
use smallvec::{SmallVec, smallvec};
use std::marker::PhantomData;

use crate::support::promote::AsTensor;
use crate::views::split::{AsStrided, Diagonal, Select, Slice};
use crate::views::{Rule, fail, rule};

type Result<T> = std::result::Result<T, OpError>;

/// The result carries argument 0 over and changes part of it.
pub(crate) static CARRIED: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::Carried }];

/// The result of `copy` may take over its source.
static ON_SOURCE: &[Reuse] = &[Reuse { arg: 1, result: 0, kind: ReuseKind::SameIndex }];

/// Copies argument 0 in logical order, converted to the result's type.
pub(crate) fn same_order(c: &Call<'_>) -> Result<()> {
    copy::same_order(c.args.tensor(0)?, &c.outs[0]).map_err(OpError::new)
}

/// Arguments of a call's view rule, optionally without one of the call's own.
pub(crate) fn ruled(c: &Call<'_>, without: Option<usize>) -> Result<SmallVec<[Arg<Meta, i64>; 8]>> {
    let rest = c.args.0.iter().enumerate().filter(|(i, _)| Some(*i) != without);
    let meta = |v: &restride_tensor::View<'_>| Ok::<_, OpError>(TensorType::new(v.dtype(), v.layout().clone()));
    rest.map(|(_, a)| a.try_map(meta, |s| Ok(s.as_view_number()))).collect()
}

/// View rule for a call whose argument 1 belongs to the call alone: the source of a scatter.
struct Beside<R>(PhantomData<R>);

impl<R: Rule> Rule for Beside<R> {
    fn run<D: Dim>(a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
        let own: Vec<_> = a.0.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, x)| x.clone()).collect();
        R::run(&Args(&own))
    }
}

/// The layout that PyTorch's `clone_preserve_strides` gives: keeps gaps and offset, drops expanded dimensions.
pub(crate) fn preserved(l: &Layout) -> Result<Layout> {
    let stretched = l.sizes.iter().zip(&l.strides).any(|(n, s)| *n > 1 && *s == 0);
    if stretched && !l.is_dense() {
        return Ok(crate::support::strides::dense_like(l));
    }
    ensure!(
        self_overlaps(l) == Some(false),
        "a functional write into a tensor with several elements in one cell is not supported"
    );
    Ok(l.clone())
}

/// The region of a base that a scatter replaces.
fn region<R: Rule>(args: &[Arg<Meta, i64>], base: &Layout) -> Result<Layout> {
    region_in::<R>(args.into(), base)
}

fn region_in<R: Rule>(mut args: SmallVec<[Arg<Meta, i64>; 8]>, base: &Layout) -> Result<Layout> {
    if let Some(Arg::Value(t)) = args.first_mut() {
        t.layout = base.clone();
    }
    match R::run::<i64>(&Args(&args))? {
        ViewOutcome::Views(v) if v.len() == 1 => Ok(v[0].layout.clone()),
        _ => fail("the arguments do not give a region"),
    }
}

fn infer_scatter<R: Rule>(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let (base, src) = (a.tensor(0)?, a.tensor(1)?);
    let region = region::<Beside<R>>(&view_args(a.0), &base.layout)?;
    ensure!(
        region.sizes[..] == *src.sizes(),
        "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
        src.sizes(),
        &region.sizes[..]
    );
    Ok(smallvec![TensorType::new(base.dtype, preserved(&base.layout)?)])
}

fn scatter_kernel<R: Rule>(c: &Call<'_>) -> Result<()> {
    let (base, src, out) = (c.args.tensor(0)?, c.args.tensor(1)?, &c.outs[0]);
    copy::carry(base, out);
    let region = region_in::<R>(ruled(c, Some(1))?, out.layout())?;
    copy::into_region(src, out, &region).map_err(OpError::new)
}

/// Kernel of `as_strided_scatter`, whose region counts in the base's own strides and offset; the result shares them.
fn strided_scatter_kernel(c: &Call<'_>) -> Result<()> {
    let (base, src, out) = (c.args.tensor(0)?, c.args.tensor(1)?, &c.outs[0]);
    let (from, to) = (base.layout(), out.layout());
    if !(Layout { offset: 0, ..from.clone() }).same_cells(&Layout { offset: 0, ..to.clone() }) {
        // With other strides in the result, cells of the base are not cells of the result.
        return fail(format!("as_strided_scatter on {from} cannot be written into {to}"));
    }
    copy::carry(base, out);
    copy::into_elements(src, out, &strided_region(&c.args, to)?).map_err(OpError::new)
}

/// The region of the source in a result of this layout, by the view rule for the result's type.
fn strided_region<V: AsTensor>(a: &Args<'_, V>, out: &Layout) -> Result<Layout> {
    let from = a.tensor(0)?.layout();
    let offset = a.opt_int(4)?.unwrap_or(from.offset);
    Ok(Layout::strided(&a.ints(2)?, &a.ints(3)?, offset + out.offset - from.offset))
}
fn strided_scratch(a: &Args<'_, Meta>, outs: &[Meta]) -> Result<usize> {
    Ok(copy::into_elements_room(&outs[0].layout, &strided_region(a, &outs[0].layout)?))
}

/// Declares a scatter: the base with one view replaced by the source.
const fn a_scatter<R: Rule>(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        infer: Some(infer_scatter::<R>),
        kernel: Kernel::Fixed(scatter_kernel::<R>),
        movement: Some(Movement::Scatter { base: 0, src: 1, region: rule::<Beside<R>>() }),
        reuse: CARRIED,
        exactness: Exactness::Exact,
        samples,
        ..OpDef::new(schema)
    }
}

fn infer_copy(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let (to, src) = (a.tensor(0)?, a.tensor(1)?);
    let sizes = crate::support::strides::broadcast_sizes(&[to.sizes(), src.sizes()])?;
    ensure!(
        sizes[..] == *to.sizes(),
        "output with shape {:?} doesn't match the broadcast shape {:?}",
        to.sizes(),
        &sizes[..]
    );
    Ok(smallvec![TensorType::new(to.dtype, preserved(&to.layout)?)])
}

pub(crate) fn copy_kernel(c: &Call<'_>) -> Result<()> {
    copy::stretched(c.args.tensor(1)?, &c.outs[0]).map_err(OpError::new)
}

pub(crate) static OPS: &[OpDef] = table![
    a_scatter::<Slice>("slice_scatter", samples!(s_slice)),
    a_scatter::<Select>("select_scatter", samples!(s_select)),
    a_scatter::<Diagonal>("diagonal_scatter", samples!(s_diagonal)),
    OpDef {
        strided: true,
        kernel: Kernel::Fixed(strided_scatter_kernel),
        scratch: Some(strided_scratch),
        ..a_scatter::<AsStrided>("as_strided_scatter", samples!(s_as_strided))
    },
    OpDef {
        doc: "the source, stretched and converted to what `self` is",
        infer: Some(infer_copy),
        kernel: Kernel::Fixed(copy_kernel),
        reuse: ON_SOURCE,
        pointwise: true,
        maps_bits: true,
        exactness: Exactness::Exact,
        samples: samples!(s_copy),
        ..OpDef::new("copy")
    },
];

/// Other names of PyTorch for operators of this family.
static ALIASES: &[(&str, &str)] = &[
    ("concat", "cat"),
    ("concatenate", "cat"),
    ("row_stack", "vstack"),
    ("native_channel_shuffle", "channel_shuffle"),
];

/// The operators and gradients of this family.
pub(crate) static FAMILY: crate::Family = crate::Family {
    ops: &[OPS, adjoint::OPS, join::OPS, composed::OPS, flip::OPS, diagonal::OPS, pad::OPS, shuffle::OPS, fold::OPS],
    gradients: &[grad::GRADS],
    aliases: ALIASES,
};

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_slice() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), tensor(F, &[2, 6], 2), 0, 1, 3],
            sample![tensor(F, &[4, 6], 1), strided(F, &[4, 2], 2), 1, 0, -1, 3],
            sample![transposed(DType::I64, &[4, 6], 1), transposed(DType::I64, &[4, 6], 2)],
            sample![strided(F, &[4, 6], 1), tensor(DType::F64, &[3, 6], 2), -2, (), i64::MAX, 2],
            sample![strided(F, &[4, 6], 1), expanded(F, &[3, 6], 2), 0, 1],
            sample![expanded(F, &[4, 6], 1), tensor(DType::Bool, &[4, 3], 2), 1, 3],
            sample![tensor(F, &[4, 6], 1), tensor(F, &[0, 6], 2), 0, 3, 1],
            sample![tensor(DType::C64, &[0, 6], 1), tensor(DType::C64, &[0, 2], 2), 1, 4],
            sample![tensor(F, &[4, 6], 1), tensor(F, &[3, 6], 2), 0, 1, 3],
            sample![tensor(F, &[], 1), tensor(F, &[], 2)],
        ]
    }

    pub(crate) fn s_select() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), tensor(F, &[6], 2), 0, 1],
            sample![strided(DType::BF16, &[4, 6], 1), tensor(F, &[4], 2), -1, -1],
            sample![transposed(F, &[2, 3, 4], 1), strided(F, &[2, 4], 2), 1, 2],
            sample![expanded(DType::I16, &[4, 6], 1), tensor(DType::I16, &[6], 2), 0, 3],
            sample![tensor(F, &[4], 1), tensor(F, &[], 2), 0, 0],
            sample![tensor(F, &[4], 1), tensor(F, &[1], 2), 0, 0],
            sample![tensor(F, &[4], 1), tensor(F, &[], 2), 0, 4],
        ]
    }

    pub(crate) fn s_diagonal() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), tensor(F, &[4], 2)],
            sample![strided(F, &[4, 6], 1), strided(DType::I32, &[3], 2), -1],
            sample![transposed(F, &[2, 3, 4], 1), tensor(F, &[2, 2], 2), 2, 1, -1],
            sample![expanded(F, &[3, 3], 1), tensor(F, &[3], 2), 0, 1, 0],
            sample![tensor(F, &[4, 6], 1), tensor(F, &[0], 2), 9],
            sample![tensor(F, &[4, 6], 1), tensor(F, &[6], 2)],
        ]
    }

    pub(crate) fn s_as_strided() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), tensor(F, &[2, 3], 2), [2, 3], [6, 2], 3],
            sample![tensor(F, &[4, 6], 1), tensor(DType::F64, &[3], 2), [3], [7]],
            sample![transposed(F, &[4, 6], 1), strided(F, &[2, 2], 2), [2, 2], [2, 5], 1],
            // The result does not show cells between elements of the base.
            sample![strided(F, &[4, 6], 1), tensor(F, &[8], 2), [8], [3], 1],
            sample![tensor(F, &[4], 1), tensor(F, &[], 2), NO, NO, 2],
            sample![tensor(F, &[4], 1), tensor(F, &[0, 2], 2), [0, 2], [1, 1]],
            sample![tensor(F, &[4, 6], 1), tensor(F, &[2], 2), [3], [1], 0],
        ]
    }

    pub(crate) fn s_copy() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[4, 6], 1), tensor(F, &[4, 6], 2)],
            sample![strided(DType::I32, &[4, 6], 1), transposed(F, &[4, 6], 2)],
            sample![transposed(F, &[4, 6], 1), tensor(DType::Bool, &[6], 2)],
            sample![expanded(DType::F16, &[4, 6], 1), tensor(DType::F64, &[4, 1], 2)],
            sample![tensor(DType::C64, &[3], 1), tensor(F, &[], 2)],
            sample![tensor(F, &[0, 3], 1), tensor(F, &[1, 3], 2)],
            sample![tensor(F, &[3], 1), tensor(F, &[2, 3], 2)],
            sample![tensor(F, &[3], 1), tensor(F, &[2], 2)],
        ]
    }
}

#[cfg(test)]
mod tests {
    use crate::registry::lookup;

    #[test]
    fn what_passes_emit_can_be_run() {
        for name in [
            "aten.alias.default",
            "aten.as_strided.default",
            "aten.as_strided_scatter.default",
            "aten.clone.default",
            "aten.conj_physical.default",
            "aten.contiguous.default",
            "aten.copy.default",
            "aten.diagonal_scatter.default",
            "aten.expand.default",
            "aten.neg.default",
            "aten.permute.default",
            "aten.reshape.default",
            "aten.select.int",
            "aten.select_scatter.default",
            "aten.slice.Tensor",
            "aten.slice_scatter.default",
            "aten.stack.default",
            "aten._to_copy.default",
            "aten.view.dtype",
        ] {
            assert!(lookup(name).is_some_and(|op| op.can_run()), "{name}");
        }
        for name in ["slice_scatter", "select_scatter", "diagonal_scatter", "as_strided_scatter"] {
            let op = lookup(&format!("aten.{name}.default")).unwrap();
            assert!(op.def().movement.is_some() && !op.def().reuse.is_empty(), "{name}");
        }
        let copy = lookup("aten.copy_.default").unwrap();
        assert_eq!(copy.twin().unwrap().op.name(), "aten.copy.default");
    }
}
