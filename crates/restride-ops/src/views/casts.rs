//! Views of the element type or the memory format, and the copies made where no view exists.

use crate::support::{IN_PLACE, Metas, ValArgs, Vals, emit, ensure, pass, suggests_channels_last};
use restride_ir::{
    Arg, Args, DecomposeFn, Emit, Exactness, Grad, Kernel, MathView, MemoryFormat, Meta, Movement, OpDef, SampleFn,
    TensorType, ViewArgs, ViewOutcome,
};
use restride_kernels::pointwise::IDENTITY;
use restride_tensor::{DType, Dim, Layout};
use smallvec::smallvec;

use crate::movement;
use crate::pointwise::row_form_with;
use crate::support::strides::in_format;
use crate::views::shape::{Adjoint, Identity, MatH, MatrixH};
use crate::views::{
    Result, Rule, a_copy, a_view, asks_for_strides, fail, follows, in_place, itself, rule, view, view_or_copy,
};

/// Declares a rule that may change the element type.
macro_rules! typed_rule {
    ($(#[$doc:meta])* $name:ident, |$a:ident, $t:ident| $body:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;
        impl Rule for $name {
            fn run<D: Dim>($a: &ViewArgs<'_, D>) -> Result<ViewOutcome<D>> {
                let $t = $a.tensor(0)?;
                $body
            }
        }
    };
}

typed_rule!(ViewDType, |a, t| match a.opt_dtype(1)? {
    Some(to) => Ok(view(to, reinterpret(&t.layout, t.dtype, to)?)),
    None => fail("view: an element type must be given"),
});
typed_rule!(
    /// The same elements, conjugated.
    Conj,
    |_a, t| if t.dtype.is_complex() {
        Ok(view(t.dtype, t.layout.clone()))
    } else {
        fail(format!("_conj of real numbers ({})", t.dtype.torch_name()))
    }
);
typed_rule!(
    /// The same elements, negated.
    Negated,
    |_a, t| if t.dtype == DType::Bool {
        fail("_neg_view of truth values")
    } else {
        Ok(view(t.dtype, t.layout.clone()))
    }
);
typed_rule!(ViewAsReal, |_a, t| {
    ensure!(t.dtype.is_complex(), "view_as_real is only supported for complex tensors");
    Ok(view(t.dtype.real(), as_real(&t.layout)))
});
typed_rule!(ViewAsComplex, |_a, t| {
    if !matches!(t.dtype, DType::F32 | DType::F64) {
        return fail(format!(
            "view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: {}",
            crate::support::promote::name(t.dtype)
        ));
    }
    Ok(view(t.dtype.complex(), as_complex(&t.layout)?))
});
typed_rule!(Real, |_a, t| if t.dtype.is_complex() {
    Ok(view(t.dtype.real(), as_real(&t.layout).select(-1, &D::from(0))?))
} else {
    Ok(view(t.dtype, t.layout.clone()))
});
typed_rule!(Imag, |_a, t| if t.dtype.is_complex() {
    Ok(view(t.dtype.real(), as_real(&t.layout).select(-1, &D::from(1))?))
} else {
    fail("imag is not implemented for tensors with non-complex dtypes.")
});

/// `to` in its overloads: an alias if nothing changes.
fn cast<D: Dim>(t: &TensorType<D>, to: Option<DType>, copy: bool, format: Option<MemoryFormat>) -> ViewOutcome<D> {
    let kept = match format {
        None | Some(MemoryFormat::Preserve) => Some(true),
        Some(f) => suggests(&t.layout, f),
    };
    match (to.is_some_and(|d| d != t.dtype) || copy, kept) {
        (true, _) | (false, Some(false)) => ViewOutcome::Copy,
        (false, Some(true)) => view(t.dtype, t.layout.clone()),
        (false, None) => ViewOutcome::Unknown,
    }
}

typed_rule!(
    /// `to.dtype(self, dtype, non_blocking, copy, memory_format)`
    ToDType,
    |a, t| Ok(cast(t, a.opt_dtype(1)?, flag(a, 3)?, a.opt_memory_format(4)?))
);
typed_rule!(
    /// `to.device(self, device, dtype, non_blocking, copy, memory_format)`
    ToDevice,
    |a, t| Ok(cast(t, a.opt_dtype(2)?, flag(a, 4)?, a.opt_memory_format(5)?))
);
typed_rule!(
    /// `to.dtype_layout(self, *, dtype, layout, device, pin_memory, non_blocking, copy, memory_format)`
    ToLayout,
    |a, t| Ok(cast(t, a.opt_dtype(1)?, flag(a, 6)?, a.opt_memory_format(7)?))
);
typed_rule!(
    /// `to.other(self, other, non_blocking, copy, memory_format)`
    ToOther,
    |a, t| Ok(cast(t, Some(a.tensor(1)?.dtype), flag(a, 3)?, a.opt_memory_format(4)?))
);
typed_rule!(TypeAs, |a, t| Ok(cast(t, Some(a.tensor(1)?.dtype), false, None)));
typed_rule!(Contiguous, |a, t| {
    let format = a.opt_memory_format(1)?.unwrap_or(MemoryFormat::Contiguous);
    Ok(match has_format(&t.layout, format)? {
        Some(true) => view(t.dtype, t.layout.clone()),
        Some(false) => ViewOutcome::Copy,
        None => ViewOutcome::Unknown,
    })
});

fn flag<D: Dim>(a: &ViewArgs<'_, D>, i: usize) -> Result<bool> {
    Ok(!a.is_none(i) && a.known(i)? != 0)
}

/// Whether a layout is contiguous in a memory format; `None` if unknown sizes decide.
fn has_format<D: Dim>(l: &Layout<D>, format: MemoryFormat) -> Result<Option<bool>> {
    let row_major: Vec<usize> = (0..l.rank()).rev().collect();
    let (proved, order) = match format {
        MemoryFormat::Contiguous => (l.is_contiguous(), &row_major[..]),
        MemoryFormat::ChannelsLast => (follows(l, &CHANNELS_LAST), &CHANNELS_LAST[..]),
        MemoryFormat::ChannelsLast3d => (follows(l, &CHANNELS_LAST_3D), &CHANNELS_LAST_3D[..]),
        MemoryFormat::Preserve => return fail("preserve memory format is unsupported by the contiguous operator"),
    };
    Ok(if proved || l.known().is_some() {
        Some(proved)
    } else if leaves(l, order) {
        Some(false)
    } else {
        None
    })
}

/// Dimensions of images, fastest first.
const CHANNELS_LAST: [usize; 4] = [1, 3, 2, 0];
const CHANNELS_LAST_3D: [usize; 5] = [1, 4, 3, 2, 0];

/// Whether strides provably do not follow an order of dimensions, fastest first: the layout has elements, and a dimension of
/// several indices has another stride.
fn leaves<D: Dim>(l: &Layout<D>, fastest_first: &[usize]) -> bool {
    let more_than = |n: i64, size: &D| D::from(n).less(size) == Some(true);
    let mut expected = D::from(1);
    l.rank() != fastest_first.len()
        || l.sizes.iter().all(|n| more_than(0, n))
            && fastest_first.iter().any(|&d| {
                let other = more_than(1, &l.sizes[d]) && l.strides[d].equals(&expected) == Some(false);
                expected = expected.times(&l.sizes[d]);
                other
            })
}

/// Whether PyTorch's `suggest_memory_format` returns this format for a layout.
fn suggests<D: Dim>(l: &Layout<D>, format: MemoryFormat) -> Option<bool> {
    Some(suggested(l)? == format)
}

/// PyTorch's `suggest_memory_format` for known sizes.
fn suggested<D: Dim>(l: &Layout<D>) -> Option<MemoryFormat> {
    let l = l.known()?;
    Some(match (suggests_channels_last(&l), l.rank()) {
        (true, 4) => MemoryFormat::ChannelsLast,
        (true, _) => MemoryFormat::ChannelsLast3d,
        (false, _) => MemoryFormat::Contiguous,
    })
}

fn reinterpret<D: Dim>(l: &Layout<D>, from: DType, to: DType) -> Result<Layout<D>> {
    let (old, new) = (from.size() as i64, to.size() as i64);
    if old == new {
        return Ok(l.clone());
    }
    ensure!(
        l.rank() != 0,
        "self.dim() cannot be 0 to view {} as {} (different element sizes)",
        from.torch_name(),
        to.torch_name()
    );
    let last = l.rank() - 1;
    ensure!(
        l.strides[last].equals(&D::from(1)) != Some(false),
        "self.stride(-1) must be 1 to view {} as {} (different element sizes), but got {}",
        from.torch_name(),
        to.torch_name(),
        l.strides[last]
    );
    let mut out = l.clone();
    if old > new {
        let ratio = D::from(old / new);
        out.sizes[last] = l.sizes[last].times(&ratio);
        for s in &mut out.strides[..last] {
            *s = s.times(&ratio);
        }
        out.offset = l.offset.times(&ratio);
        return Ok(out);
    }
    let ratio = D::from(new / old);
    let divide = |x: &D, what: std::fmt::Arguments<'_>| -> Result<D> {
        let q = x.floor_div(&ratio);
        ensure!(
            q.times(&ratio).equals(x) != Some(false),
            "{what} must be divisible by {ratio} to view {} as {} (different element sizes), but got {x}",
            from.torch_name(),
            to.torch_name()
        );
        Ok(q)
    };
    out.sizes[last] = divide(&l.sizes[last], format_args!("self.size(-1)"))?;
    out.offset = divide(&l.offset, format_args!("self.storage_offset()"))?;
    for (d, s) in l.strides[..last].iter().enumerate() {
        out.strides[d] = divide(s, format_args!("self.stride({d})"))?;
    }
    Ok(out)
}

fn as_real<D: Dim>(l: &Layout<D>) -> Layout<D> {
    let two = D::from(2);
    let mut out = l.clone();
    out.strides.iter_mut().for_each(|s| *s = s.times(&two));
    out.sizes.push(two.clone());
    out.strides.push(D::from(1));
    out.offset = l.offset.times(&two);
    out
}

fn as_complex<D: Dim>(l: &Layout<D>) -> Result<Layout<D>> {
    let two = D::from(2);
    let Some(last) = l.rank().checked_sub(1) else { return fail("Input tensor must have one or more dimensions") };
    ensure!(l.sizes[last].equals(&two) != Some(false), "Tensor must have a last dimension of size 2");
    ensure!(l.strides[last].equals(&D::from(1)) != Some(false), "Tensor must have a last dimension with stride 1");
    let mut out = l.clone();
    out.sizes.pop();
    out.strides.pop();
    for s in &mut out.strides {
        let q = s.floor_div(&two);
        ensure!(
            q.times(&two).equals(s) != Some(false),
            "Tensor must have a stride divisible by 2 for all but last dimension"
        );
        *s = q;
    }
    out.offset = l.offset.floor_div(&two);
    ensure!(
        out.offset.times(&two).equals(&l.offset) != Some(false),
        "Tensor must have a storage_offset divisible by 2"
    );
    Ok(out)
}

fn one(dtype: DType, layout: Layout) -> Metas {
    Ok(smallvec![TensorType { dtype, layout }])
}

fn cast_type(t: &Meta, to: Option<DType>, format: Option<MemoryFormat>) -> Metas {
    one(to.unwrap_or(t.dtype), in_format(format.unwrap_or(MemoryFormat::Preserve), &t.layout)?)
}
fn infer_to_dtype(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, a.opt_dtype(1)?, a.opt_memory_format(4)?)
}
fn infer_to_device(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, a.opt_dtype(2)?, a.opt_memory_format(5)?)
}
fn infer_to_layout(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, a.opt_dtype(1)?, a.opt_memory_format(7)?)
}
fn infer_to_other(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, Some(a.tensor(1)?.dtype), a.opt_memory_format(4)?)
}
fn infer_to_copy(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, a.opt_dtype(1)?, a.opt_memory_format(6)?)
}
fn infer_type_as(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, Some(a.tensor(1)?.dtype), None)
}
fn infer_contiguous(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    one(t.dtype, in_format(a.opt_memory_format(1)?.unwrap_or(MemoryFormat::Contiguous), &t.layout)?)
}
fn infer_clone(a: &Args<'_, Meta>) -> Metas {
    cast_type(a.tensor(0)?, None, a.opt_memory_format(1)?)
}
fn infer_fresh(a: &Args<'_, Meta>) -> Metas {
    let t = a.tensor(0)?;
    one(t.dtype, Layout::contiguous(t.sizes()))
}

/// A cast: the tensor itself where the type stays, otherwise a conversion in the same logical order.
const fn a_cast<R: Rule>(
    schema: &'static str,
    infer: restride_ir::InferFn,
    copies: DecomposeFn,
    samples: Option<SampleFn>,
) -> OpDef {
    // The cast changes the elements, so the operator is no movement.
    OpDef { movement: None, itself: true, copies_by: Some(copies), ..view_or_copy::<R>(schema, infer, samples) }
}

/// The copy that a cast makes, in the memory format of this argument.
fn converted(e: &mut dyn Emit, a: &ValArgs<'_>, to: Option<DType>, format: Option<usize>) -> Vals {
    let x = *a.tensor(0)?;
    let format = format.map(|i| pass(a, i)).filter(|f| !matches!(f, Arg::MemoryFormat(MemoryFormat::Preserve)));
    let format = format.unwrap_or(Arg::None);
    Ok(smallvec![match to.filter(|to| *to != e.meta(x).dtype) {
        Some(to) => emit!(e, "aten._to_copy.default", x, to, Arg::None, Arg::None, Arg::None, false, format)?,
        None => emit!(e, "aten.clone.default", x, format)?,
    }])
}

/// As [`converted`], to the type of argument 1.
fn converted_like(e: &mut dyn Emit, a: &ValArgs<'_>, format: Option<usize>) -> Vals {
    let to = e.meta(*a.tensor(1)?).dtype;
    converted(e, a, Some(to), format)
}

const fn a_clone(schema: &'static str, infer: restride_ir::InferFn, samples: Option<SampleFn>) -> OpDef {
    OpDef {
        infer: Some(infer),
        kernel: Kernel::Fixed(movement::same_order),
        movement: Some(Movement::Same),
        reuse: IN_PLACE,
        exactness: Exactness::Exact,
        samples,
        ..OpDef::new(schema)
    }
}

const fn conjugate<R: Rule>(schema: &'static str, samples: Option<SampleFn>) -> OpDef {
    OpDef { math: Some(MathView::Conj), ..a_view::<R>(schema, samples) }
}

pub(crate) static OPS: &[OpDef] = table![
    a_clone("clone", infer_clone, samples!(s_contiguous)),
    a_clone("lift_fresh_copy", infer_fresh, samples!(s_any)),
    OpDef {
        movement: None,
        pointwise: true,
        rows: Some(|a, results| row_form_with(a, results[0].dtype, &[0], &[], &IDENTITY)),
        ..a_clone("_to_copy", infer_to_copy, samples!(s_to_copy))
    },
    itself(view_or_copy::<Contiguous>("contiguous", infer_contiguous, samples!(s_contiguous))),
    a_cast::<ToDType>("to.dtype", infer_to_dtype, |e, a| converted(e, a, a.opt_dtype(1)?, Some(4)), samples!(s_to)),
    a_cast::<ToDevice>(
        "to.device",
        infer_to_device,
        |e, a| converted(e, a, a.opt_dtype(2)?, Some(5)),
        samples!(s_to_device),
    ),
    a_cast::<ToLayout>(
        "to.dtype_layout",
        infer_to_layout,
        |e, a| converted(e, a, a.opt_dtype(1)?, Some(7)),
        samples!(s_to_layout),
    ),
    a_cast::<ToOther>("to.other", infer_to_other, |e, a| converted_like(e, a, Some(4)), samples!(s_to_other)),
    // PyTorch's schema omits the alias that this operator returns where the types agree.
    a_cast::<TypeAs>(
        "aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a)",
        infer_type_as,
        |e, a| converted_like(e, a, None),
        samples!(s_to_other),
    ),
    OpDef { detaches: true, asks_for_strides: true, ..a_view::<ViewDType>("view.dtype", samples!(s_view_dtype)) }
        .graded(Grad::Zero),
    a_view::<ViewAsReal>("view_as_real", samples!(s_complex)),
    asks_for_strides(a_view::<ViewAsComplex>("view_as_complex", samples!(s_as_complex))),
    itself(a_view::<Real>("real", samples!(s_any))),
    a_view::<Imag>("imag", samples!(s_complex)),
    conjugate::<Conj>("_conj", samples!(s_complex)),
    itself(conjugate::<Identity>("conj", samples!(s_any))),
    conjugate::<MatH>("mH", samples!(s_matrix)),
    conjugate::<MatrixH>("matrix_H", samples!(s_matrix)),
    conjugate::<Adjoint>("adjoint", samples!(s_matrix)),
    OpDef { math: Some(MathView::Neg), ..a_view::<Negated>("_neg_view", samples!(s_signed)) },
    // The identity, because shape rules see no tensor with a lazy bit.
    OpDef { math: Some(MathView::ResolveConj), itself: true, ..a_view::<Identity>("resolve_conj", samples!(s_any)) },
    OpDef { math: Some(MathView::ResolveNeg), itself: true, ..a_view::<Identity>("resolve_neg", samples!(s_any)) },
    a_copy::<ViewDType>("view_copy.dtype", samples!(s_view_dtype)).graded(Grad::Zero),
    a_copy::<ViewAsReal>("view_as_real_copy", samples!(s_complex)),
    a_copy::<ViewAsComplex>("view_as_complex_copy", samples!(s_as_complex)),
    resize("resize_"),
    OpDef { view: Some(rule::<ResizeAs>()), ..resize("resize_as_") },
    OpDef { base: 1, ..in_place::<SetTensor>("set_.source_Tensor") },
    OpDef { base: 1, strided: true, grows: true, ..in_place::<SetStrided>("set_.source_Tensor_storage_offset") },
    OpDef { base: 1, ..in_place::<SetTensor>("set_data") },
];

const fn resize(schema: &'static str) -> OpDef {
    OpDef { grows: true, ..in_place::<Resize>(schema) }
}

/// The given sizes on the same storage, in the given format if sizes change; the storage grows if necessary.
fn resized<D: Dim>(t: &TensorType<D>, sizes: &[D], format: Option<MemoryFormat>) -> Result<ViewOutcome<D>> {
    let l = &t.layout;
    if let Some(bad) = sizes.iter().find(|s| s.less(&D::from(0)) == Some(true)) {
        return fail(format!("Trying to create tensor with negative dimension {bad}"));
    }
    let same = l.rank() == sizes.len() && l.sizes.iter().zip(sizes).all(|(a, b)| a.equals(b) == Some(true));
    if same && format.is_none() {
        return Ok(view(t.dtype, l.clone()));
    }
    let unsure = l.rank() == sizes.len() && l.sizes.iter().zip(sizes).all(|(a, b)| a.equals(b) != Some(false));
    if unsure && !same {
        return Ok(ViewOutcome::Unknown);
    }
    let layout = match format {
        None | Some(MemoryFormat::Contiguous) => Layout::contiguous(sizes),
        Some(MemoryFormat::ChannelsLast) => channels_last(sizes, 4)?,
        Some(MemoryFormat::ChannelsLast3d) => channels_last(sizes, 5)?,
        Some(MemoryFormat::Preserve) => return fail("Unsupported memory format Preserve"),
    };
    Ok(view(t.dtype, Layout { offset: l.offset.clone(), ..layout }))
}

/// Layout with dimension 1 (channels) fastest, for known and symbolic sizes.
fn channels_last<D: Dim>(sizes: &[D], rank: usize) -> Result<Layout<D>> {
    ensure!(
        sizes.len() == rank,
        "required rank {rank} tensor to use {} format",
        ["channels_last", "channels_last_3d"][rank - 4]
    );
    let mut strides = vec![D::from(1); rank];
    let mut next = sizes[1].clone();
    for d in (2..rank).rev().chain([0]) {
        strides[d] = next.clone();
        next = next.times(&sizes[d]);
    }
    Ok(Layout::strided(sizes, &strides, D::from(0)))
}

typed_rule!(Resize, |a, t| resized(t, a.numbers(1)?, a.opt_memory_format(2)?));
typed_rule!(ResizeAs, |a, t| {
    let template = a.tensor(1)?;
    let format = match a.opt_memory_format(2)? {
        Some(MemoryFormat::Preserve) => match suggested(&template.layout) {
            None => return Ok(ViewOutcome::Unknown),
            some => some,
        },
        other => other,
    };
    resized(t, template.sizes(), format)
});
typed_rule!(SetTensor, |a, t| {
    let source = a.tensor(1)?;
    ensure!(source.dtype == t.dtype, "set_ requires one element type, got {} and {}", t.dtype, source.dtype);
    Ok(view(source.dtype, source.layout.clone()))
});
typed_rule!(SetStrided, |a, t| {
    let source = a.tensor(1)?;
    ensure!(source.dtype == t.dtype, "set_ requires one element type, got {} and {}", t.dtype, source.dtype);
    if source.layout.known().is_some_and(|l| !l.is_contiguous()) {
        return fail("passed in tensor to be used as storage must be contiguous");
    }
    let sizes = a.numbers(3)?;
    let strides = a.numbers(4)?;
    let layout = if strides.is_empty() && !sizes.is_empty() {
        Layout::contiguous(sizes)
    } else {
        Layout::strided(sizes, strides, D::from(0))
    };
    let offset = &source.layout.offset.plus(a.number(2)?);
    Ok(view(t.dtype, crate::views::split::as_strided(&source.layout, sizes, &layout.strides, Some(offset))?))
});

#[cfg(feature = "samples")]
pub(crate) mod samples {
    use super::*;
    pub(super) use crate::support::samples::*;

    pub(crate) const F: DType = DType::F32;

    pub(crate) fn s_view_dtype() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 4], 1), DType::I32],
            sample![tensor(F, &[2, 4], 1), DType::I16],
            sample![tensor(DType::U8, &[2, 8], 1), DType::F32],
            sample![tensor(DType::C64, &[2, 2], 1), DType::F32],
            sample![tensor(DType::F16, &[], 1), DType::BF16],
        ]
    }

    pub(crate) fn s_complex() -> Vec<Sample> {
        vec![
            sample![tensor(DType::C64, &[2, 3], 1)],
            sample![transposed(DType::C128, &[2, 3], 1)],
            sample![strided(DType::C64, &[3], 1)],
            sample![tensor(DType::C64, &[], 1)],
        ]
    }

    pub(crate) fn s_as_complex() -> Vec<Sample> {
        vec![sample![tensor(F, &[3, 2], 1)], sample![tensor(DType::F64, &[2], 1)]]
    }

    pub(crate) fn s_any() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1)],
            sample![transposed(DType::C64, &[2, 3], 1)],
            sample![strided(DType::I64, &[2, 3, 2], 1)],
            sample![tensor(DType::Bool, &[], 1)],
            sample![tensor(DType::BF16, &[0, 3], 1)],
            sample![crate::support::samples::expanded(DType::F16, &[2, 3], 1)],
        ]
    }

    pub(crate) fn s_signed() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1)],
            sample![transposed(DType::C64, &[2, 3], 1)],
            sample![tensor(DType::I64, &[], 1)],
        ]
    }

    pub(crate) fn s_matrix() -> Vec<Sample> {
        vec![sample![tensor(DType::C64, &[2, 3], 1)], sample![transposed(F, &[2, 3], 1)]]
    }

    pub(crate) fn s_to() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1), DType::F32],
            sample![tensor(F, &[2, 3], 1), DType::I64],
            sample![transposed(DType::I32, &[2, 3], 1), DType::F64],
            sample![strided(F, &[2, 3], 1), DType::BF16],
            sample![tensor(F, &[2, 3], 1), DType::Bool],
            sample![tensor(F, &[2, 3], 1), DType::F32, false, true],
            sample![tensor(F, &[2, 3, 4, 5], 1), DType::F32, false, false, MemoryFormat::ChannelsLast],
            sample![tensor(F, &[2, 3, 4, 5], 1), DType::F16, false, false, MemoryFormat::ChannelsLast],
            sample![tensor(DType::F64, &[2, 2], 1), DType::C64],
            sample![tensor(F, &[], 1), DType::U8],
        ]
    }

    pub(crate) fn s_to_device() -> Vec<Sample> {
        vec![
            sample![tensor(F, &[2, 3], 1), restride_ir::Arg::Device("cpu".into()), DType::F32],
            sample![strided(F, &[2, 3], 1), restride_ir::Arg::Device("cpu".into()), DType::F64],
        ]
    }

    pub(crate) fn s_to_layout() -> Vec<Sample> {
        vec![
            sample![strided(F, &[2, 3], 1), DType::F64],
            sample![tensor(F, &[2, 3], 1), ()],
            sample![tensor(DType::I64, &[2, 3], 1), DType::F32, (), (), (), false, true],
        ]
    }

    pub(crate) fn s_to_other() -> Vec<Sample> {
        vec![
            sample![strided(F, &[2, 3], 1), tensor(DType::F64, &[1], 2)],
            sample![tensor(DType::Bool, &[2, 3], 1), tensor(DType::Bool, &[1], 2)],
            sample![tensor(DType::Bool, &[2, 3], 1), tensor(DType::I8, &[1], 2)],
        ]
    }

    pub(crate) fn s_to_copy() -> Vec<Sample> {
        vec![
            sample![transposed(F, &[2, 3], 1)],
            sample![strided(F, &[2, 3], 1), DType::I32],
            sample![crate::support::samples::expanded(F, &[2, 3], 1), DType::BF16],
            sample![tensor(F, &[2, 3, 4, 5], 1), DType::F16, (), (), (), false, MemoryFormat::ChannelsLast],
            sample![tensor(DType::C64, &[3], 1), DType::C128],
        ]
    }

    pub(crate) fn s_contiguous() -> Vec<Sample> {
        let mut all = s_any();
        all.push(sample![tensor(F, &[2, 3, 4, 5], 1), MemoryFormat::ChannelsLast]);
        all.push(sample![transposed(F, &[2, 3, 4], 1), MemoryFormat::Contiguous]);
        all
    }
}
