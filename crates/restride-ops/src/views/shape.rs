//! Views that change sizes and the order of dimensions.

use crate::support::ensure;
use restride_ir::{Args, Grad, Meta, OpDef, TensorType, ViewArgs, ViewOutcome};
use restride_tensor::{DType, Dim, Layout};
use smallvec::{SmallVec, smallvec};

use crate::views::{
    Result, Rule, a_copy, a_view, asks_for_strides, fail, in_order, in_place, itself, layout_rule, may_view, move_dims,
    must_view, reading, resolves, rule, squeezed, view, view_or_copy,
};

/// Declares a rule by a function of the arguments.
macro_rules! rule_type {
    ($(#[$doc:meta])* $name:ident, |$a:ident| $body:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;
        impl Rule for $name {
            fn run<D: Dim>($a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
                $body
            }
        }
    };
}

rule_type!(View, |a| must_view(a.tensor(0)?, a.numbers(1)?));
rule_type!(ViewAs, |a| must_view(a.tensor(0)?, a.tensor(1)?.sizes()));
rule_type!(Reshape, |a| may_view(a.tensor(0)?, a.numbers(1)?));
rule_type!(ReshapeAs, |a| may_view(a.tensor(0)?, a.tensor(1)?.sizes()));
rule_type!(Flatten, |a| {
    let t = a.tensor(0)?;
    match flat_sizes(&t.layout, a.known(1)?, a.known(2)?)? {
        None => Ok(view(t.dtype, t.layout.clone())),
        Some(sizes) => may_view(t, &sizes),
    }
});
rule_type!(Unflatten, |a| {
    let t = a.tensor(0)?;
    must_view(t, &unflat_sizes(&t.layout, a.known(1)?, a.numbers(2)?)?)
});
rule_type!(Ravel, |a| {
    let t = a.tensor(0)?;
    if t.layout.is_contiguous() {
        must_view(t, &[D::from(-1)])
    } else if t.layout.known().is_some() {
        Ok(ViewOutcome::Copy)
    } else {
        Ok(ViewOutcome::Unknown)
    }
});
rule_type!(AtLeast1, |a| at_least(a.tensor(0)?, 1));
rule_type!(AtLeast2, |a| at_least(a.tensor(0)?, 2));
rule_type!(AtLeast3, |a| at_least(a.tensor(0)?, 3));
rule_type!(Squeeze, |a| squeezed(a.tensor(0)?, None));
rule_type!(SqueezeDim, |a| squeezed(a.tensor(0)?, Some(&[a.known(1)?])));
rule_type!(SqueezeDims, |a| squeezed(a.tensor(0)?, Some(&a.knowns(1)?)));

layout_rule!(
    /// The operand's own layout.
    Identity,
    |_a, l| l.clone()
);
layout_rule!(
    /// The operand's own layout, for types that have a sign.
    Positive,
    |a, l| {
        ensure!(a.dtype()? != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
        l.clone()
    }
);
layout_rule!(Permute, |a, l| l.permute(&a.knowns(1)?)?);
layout_rule!(Transpose, |a, l| l.transpose(a.known(1)?, a.known(2)?)?);
layout_rule!(T, |_a, l| match l.rank() {
    0 | 1 => l.clone(),
    2 => l.transpose(0, 1)?,
    n => return fail(format!("t() expects a tensor with <= 2 dimensions, but self is {n}D")),
});
layout_rule!(NumpyT, |_a, l| l.permute(&(0..l.rank() as i64).rev().collect::<Vec<_>>())?);
layout_rule!(MatT, |_a, l| matrix_transpose(l, "mT", false)?);
layout_rule!(MatH, |_a, l| matrix_transpose(l, "mH", false)?);
layout_rule!(Adjoint, |_a, l| matrix_transpose(l, "adjoint()", false)?);
layout_rule!(MatrixH, |_a, l| matrix_transpose(l, "H", true)?);
layout_rule!(MoveDim, |a, l| move_dims(l, &[a.known(1)?], &[a.known(2)?])?);
layout_rule!(MoveDims, |a, l| move_dims(l, &a.knowns(1)?, &a.knowns(2)?)?);
layout_rule!(Expand, |a, l| expand(l, a.numbers(1)?)?);
layout_rule!(ExpandAs, |a, l| expand(l, a.tensor(1)?.sizes())?);
layout_rule!(Unsqueeze, |a, l| l.unsqueeze(a.known(1)?)?);
layout_rule!(
    /// The given sizes and strides, if they fit.
    ReshapeAlias,
    |a, l| Layout::strided(a.numbers(1)?, a.numbers(2)?, l.offset.clone())
);

fn expand<D: Dim>(l: &Layout<D>, sizes: &[D]) -> Result<Layout<D>> {
    if let Some(bad) = sizes.iter().find(|s| s.known().is_some_and(|n| n < -1)) {
        return fail(format!("expand: the expanded size ({bad}) must be -1 or not negative"));
    }
    Ok(l.expand(sizes)?)
}

fn matrix_transpose<D: Dim>(l: &Layout<D>, what: &str, only_2d: bool) -> Result<Layout<D>> {
    match l.rank() {
        0 => Ok(l.clone()),
        2 => Ok(l.transpose(0, 1)?),
        n if n > 2 && !only_2d => Ok(l.transpose(-2, -1)?),
        n => {
            let of = if only_2d { "matrices (2-D tensors)" } else { "matrices or batches of matrices" };
            fail(format!("tensor.{what} is only supported on {of}. Got {n}-D tensor."))
        }
    }
}

/// Sizes after `flatten`; `None` if nothing changes.
fn flat_sizes<D: Dim>(l: &Layout<D>, start: i64, end: i64) -> Result<Option<Vec<D>>> {
    let (start, end) = (l.dim(start)?, l.dim(end)?);
    ensure!(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
    if l.rank() == 0 {
        return Ok(Some(vec![D::from(1)]));
    }
    if start == end {
        return Ok(None);
    }
    let mut sizes = l.sizes[..start].to_vec();
    sizes.push(l.sizes[start..=end].iter().fold(D::from(1), |n, s| n.times(s)));
    sizes.extend_from_slice(&l.sizes[end + 1..]);
    Ok(Some(sizes))
}

fn unflat_sizes<D: Dim>(l: &Layout<D>, dim: i64, parts: &[D]) -> Result<Vec<D>> {
    ensure!(!parts.is_empty(), "unflatten: sizes must be non-empty");
    ensure!(l.rank() != 0, "unflatten: Expected a dimension, got a 0-d tensor");
    let d = l.dim(dim)?;
    let one = Layout::contiguous(&l.sizes[d..=d]);
    let parts = one.infer_sizes(parts).map_err(|_| {
        restride_ir::OpError::new(format!(
            "unflatten: Provided sizes don't multiply up to the size of dim {d} ({})",
            l.sizes[d]
        ))
    })?;
    let mut sizes = l.sizes[..d].to_vec();
    sizes.extend_from_slice(&parts);
    sizes.extend_from_slice(&l.sizes[d + 1..]);
    Ok(sizes)
}

fn at_least<D: Dim>(t: &TensorType<D>, rank: usize) -> Result<ViewOutcome<D>> {
    let l = &t.layout;
    Ok(match (l.rank(), rank) {
        (0, n) => view(t.dtype, l.view(&vec![D::from(1); n]).unwrap_or_else(|| l.clone())),
        (1, 2) => view(t.dtype, l.unsqueeze(0)?),
        (1, 3) => view(t.dtype, l.unsqueeze(0)?.unsqueeze(2)?),
        (2, 3) => view(t.dtype, l.unsqueeze(2)?),
        _ => view(t.dtype, l.clone()),
    })
}

/// A fresh row-major result of the given sizes.
fn fresh(t: &Meta, sizes: &[i64]) -> Result<SmallVec<[Meta; 1]>> {
    Ok(smallvec![TensorType::contiguous(t.dtype, &t.layout.infer_sizes(sizes)?)])
}
fn infer_reshape(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    fresh(a.tensor(0)?, &a.ints(1)?)
}
fn infer_reshape_as(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    fresh(a.tensor(0)?, a.tensor(1)?.sizes())
}
fn infer_flatten(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    let t = a.tensor(0)?;
    match flat_sizes(&t.layout, a.int(1)?, a.int(2)?)? {
        Some(sizes) => fresh(t, &sizes),
        None => fresh(t, t.sizes()),
    }
}
fn infer_ravel(a: &Args<'_, Meta>) -> Result<SmallVec<[Meta; 1]>> {
    fresh(a.tensor(0)?, &[-1])
}

pub(crate) static OPS: &[OpDef] = table![
    asks_for_strides(a_view::<View>("view", samples!(s_view))),
    // PyTorch's schema omits the alias.
    asks_for_strides(a_view::<View>(
        "aten::_unsafe_view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
        samples!(s_view),
    )),
    asks_for_strides(a_view::<ViewAs>("view_as", samples!(s_view_as))),
    view_or_copy::<Reshape>("reshape", infer_reshape, samples!(s_reshape)),
    view_or_copy::<ReshapeAs>("reshape_as", infer_reshape_as, samples!(s_reshape_as)),
    itself(view_or_copy::<Flatten>("flatten.using_ints", infer_flatten, samples!(s_flatten))),
    asks_for_strides(a_view::<Unflatten>("unflatten.int", samples!(s_unflatten))),
    view_or_copy::<Ravel>("ravel", infer_ravel, samples!(s_any)),
    a_view::<Permute>("permute", samples!(s_permute)),
    a_view::<Transpose>("transpose.int", samples!(s_transpose)),
    a_view::<T>("t", samples!(s_matrix)),
    a_view::<NumpyT>("numpy_T", samples!(s_any)),
    a_view::<MatT>("mT", samples!(s_matrices)),
    a_view::<MoveDim>("movedim.int", samples!(s_transpose)),
    a_view::<MoveDims>("movedim.intlist", samples!(s_movedims)),
    a_view::<Expand>("expand", samples!(s_expand)),
    a_view::<ExpandAs>("expand_as", samples!(s_expand_as)),
    a_view::<Expand>("broadcast_to", samples!(s_broadcast_to)),
    a_view::<Unsqueeze>("unsqueeze", samples!(s_unsqueeze)),
    a_view::<Squeeze>("squeeze", samples!(s_squeeze)),
    a_view::<SqueezeDim>("squeeze.dim", samples!(s_squeeze_dim)),
    a_view::<SqueezeDims>("squeeze.dims", samples!(s_squeeze_dims)),
    a_view::<Identity>("alias", samples!(s_any)),
    OpDef { detaches: true, ..a_view::<Identity>("detach", samples!(s_any)) }.graded(Grad::Zero),
    OpDef {
        doc: "The elements of `self`, differentiated as if they were those of `history`.",
        history: true,
        view: Some(rule::<Identity>()),
        ..OpDef::new("restride::with_history(Tensor(a) self, Tensor history) -> Tensor(a)")
    },
    itself(a_view::<Identity>("lift_fresh", samples!(s_any))),
    itself(resolves(a_view::<Identity>("aten::lift(Tensor(a) self) -> Tensor(a)", samples!(s_any)))),
    itself(a_view::<Positive>("positive", samples!(s_any))),
    OpDef {
        strided: true,
        asks_for_strides: true,
        ..a_view::<ReshapeAlias>("_reshape_alias", samples!(s_reshape_alias))
    },
    // PyTorch's schemas omit the alias that these operators return.
    itself(a_view::<AtLeast1>("aten::atleast_1d(Tensor(a) self) -> Tensor(a)", samples!(s_any))),
    itself(a_view::<AtLeast2>("aten::atleast_2d(Tensor(a) self) -> Tensor(a)", samples!(s_any))),
    itself(a_view::<AtLeast3>("aten::atleast_3d(Tensor(a) self) -> Tensor(a)", samples!(s_any))),
    in_place::<T>("t_"),
    in_place::<Transpose>("transpose_"),
    in_place::<Squeeze>("squeeze_"),
    in_place::<SqueezeDim>("squeeze_.dim"),
    in_place::<SqueezeDims>("squeeze_.dims"),
    in_place::<Unsqueeze>("unsqueeze_"),
    in_place::<Identity>("detach_").graded(Grad::Zero),
    in_place::<Identity>("requires_grad_"),
    in_order(a_copy::<Reshape>("view_copy", samples!(s_view))),
    reading!(a_copy::<Permute>("permute_copy", samples!(s_permute)), |c, l| {
        std::iter::once(Ok(l.permute(&c.args.ints(1)?)?))
    }),
    a_copy::<Transpose>("transpose_copy.int", samples!(s_transpose)),
    a_copy::<T>("t_copy", samples!(s_matrix)),
    reading!(a_copy::<Expand>("expand_copy", samples!(s_expand)), |c, l| std::iter::once(expand(l, &c.args.ints(1)?))),
    a_copy::<Unsqueeze>("unsqueeze_copy", samples!(s_unsqueeze)),
    in_order(a_copy::<Squeeze>("squeeze_copy", samples!(s_squeeze))),
    in_order(a_copy::<SqueezeDim>("squeeze_copy.dim", samples!(s_squeeze_dim))),
    in_order(a_copy::<SqueezeDims>("squeeze_copy.dims", samples!(s_squeeze_dims))),
    a_copy::<Identity>("alias_copy", samples!(s_any)),
    a_copy::<Identity>("detach_copy", samples!(s_any)).graded(Grad::Zero),
    OpDef {
        strided: true,
        ..reading!(a_copy::<ReshapeAlias>("_reshape_alias_copy", samples!(s_reshape_alias),), |c, l| std::iter::once(
            Ok(Layout::strided(&c.args.ints(1)?, &c.args.ints(2)?, l.offset))
        ))
    },
];

#[cfg(feature = "samples")]
pub(crate) mod samples {
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_view() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3, 4], 1), [6, 4]],
            sample![tensor(DType::I64, &[2, 3, 4], 1), [2, -1]],
            sample![tensor(F, &[], 1), [1, 1]],
            sample![tensor(F, &[0, 3], 1), [3, 0]],
            sample![strided(F, &[4, 6], 1), [2, 2, 6]],
            sample![transposed(DType::BF16, &[4, 6], 1), [2, 2, 3, 2]],
            sample![tensor(DType::C64, &[4, 1, 2], 1), [1, 4, 2, 1]],
        ]
    }

    pub(crate) fn s_reshape() -> Vec<Sample> {
        let mut all = s_view();
        all.push(sample![transposed(F, &[4, 6], 1), [24]]);
        all.push(sample![strided(DType::I8, &[4, 6], 1), [3, -1]]);
        all.push(sample![crate::support::samples::expanded(F, &[3, 4], 1), [12]]);
        all
    }

    pub(crate) fn s_view_as() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 6], 1), tensor(DType::I64, &[3, 4], 2)],
            sample![tensor(F, &[1], 1), tensor(F, &[], 2)],
        ]
    }

    pub(crate) fn s_reshape_as() -> Vec<Sample> {
        let mut all = s_view_as();
        all.push(sample![transposed(F, &[2, 6], 1), tensor(F, &[12], 2)]);
        all
    }

    pub(crate) fn s_flatten() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3, 4], 1)],
            sample![tensor(F, &[2, 3, 4], 1), 1, 2],
            sample![tensor(F, &[2, 3, 4], 1), 1, 1],
            sample![transposed(F, &[2, 3, 4], 1), -2],
            sample![tensor(F, &[], 1)],
            sample![tensor(F, &[0, 3], 1)],
        ]
    }

    pub(crate) fn s_unflatten() -> Vec<Sample> {
        vec![sample![tensor(F, &[2, 12], 1), 1, [3, -1]], sample![transposed(F, &[6, 5], 1), 0, [2, 3]]]
    }

    pub(crate) fn s_any() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1)],
            sample![transposed(DType::I64, &[2, 3], 1)],
            sample![strided(F, &[2, 3, 2], 1)],
            sample![tensor(DType::C64, &[], 1)],
            sample![tensor(F, &[0, 3], 1)],
            sample![tensor(F, &[4], 1)],
        ]
    }

    pub(crate) fn s_squeeze() -> Vec<Sample> {
        let mut all = s_any();
        all.push(sample![tensor(F, &[1, 2, 1, 3], 1)]);
        all.push(sample![strided(F, &[1, 1], 1)]);
        all
    }

    pub(crate) fn s_squeeze_dim() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[1, 2, 1], 1), 0],
            sample![tensor(F, &[1, 2, 1], 1), 1],
            sample![strided(F, &[1, 2, 1], 1), -1],
            sample![tensor(F, &[], 1), 0],
        ]
    }

    pub(crate) fn s_squeeze_dims() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[1, 2, 1], 1), [0, 2]],
            sample![tensor(F, &[1, 2, 1], 1), [1, -1]],
            sample![strided(F, &[1, 2, 1], 1), NO],
        ]
    }

    pub(crate) fn s_matrix() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1)],
            sample![transposed(DType::I64, &[2, 3], 1)],
            sample![strided(DType::F64, &[3, 2], 1)],
            sample![tensor(F, &[0, 3], 1)],
        ]
    }

    pub(crate) fn s_matrices() -> Vec<Sample> {
        let mut all = s_matrix();
        all.push(sample![strided(F, &[2, 3, 2], 1)]);
        all
    }

    pub(crate) fn s_permute() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3, 4], 1), [2, 0, 1]],
            sample![strided(DType::I16, &[2, 3, 4], 1), [-1, 1, 0]],
            sample![tensor(DType::Bool, &[], 1), NO],
            sample![tensor(F, &[0, 3], 1), [1, 0]],
        ]
    }

    pub(crate) fn s_transpose() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3, 4], 1), 0, 2],
            sample![strided(DType::U8, &[2, 3, 4], 1), 1, -1],
            sample![tensor(F, &[], 1), 0, -1],
            sample![tensor(F, &[5], 1), 0, 0],
        ]
    }

    pub(crate) fn s_movedims() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3, 4], 1), [0, 1], [-1, 0]],
            sample![strided(F, &[2, 3, 4, 2], 1), [3, 0], [1, 2]],
            sample![tensor(F, &[2, 3], 1), NO, NO],
        ]
    }

    pub(crate) fn s_expand() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[3, 1], 1), [2, 3, 4]],
            sample![tensor(F, &[3, 1], 1), [-1, 4]],
            sample![tensor(F, &[3], 1), [1, 1, 3]],
            sample![tensor(F, &[3], 1), [2, 1, 3]],
            sample![tensor(DType::I64, &[], 1), [1, 3]],
            sample![strided(F, &[2, 1], 1), [2, 0]],
            sample![transposed(F, &[2, 3], 1), [1, 2, 3]],
        ]
    }

    pub(crate) fn s_broadcast_to() -> Vec<Sample> {
        s_expand()
    }

    pub(crate) fn s_expand_as() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[3, 1], 1), tensor(DType::Bool, &[2, 3, 4], 2)],
            sample![tensor(F, &[], 1), tensor(F, &[0], 2)],
        ]
    }

    pub(crate) fn s_unsqueeze() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1), 0],
            sample![transposed(F, &[2, 3], 1), 1],
            sample![strided(F, &[2, 3], 1), -1],
            sample![tensor(F, &[], 1), 0],
            sample![tensor(F, &[0, 3], 1), 0],
        ]
    }

    pub(crate) fn s_reshape_alias() -> Vec<Sample> {
        vec![sample![tensor(F, &[2, 6], 1), [3, 4], [4, 1]], sample![tensor(F, &[2, 6], 1), [4, 3], [3, 1]]]
    }
}
