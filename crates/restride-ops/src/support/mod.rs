//! Helpers that families share: results, arguments, refusals, compositions and samples.

pub(crate) mod composite;
pub(crate) mod promote;
#[cfg(feature = "samples")]
pub(crate) mod samples;
pub(crate) mod scratch;
pub(crate) mod strides;
pub(crate) mod tiles;

use restride_ir::{
    Arg, Args, Call, DType, Emit, InferFn, Ints, Kernel, Layout, Meta, OpDef, OpError, Reuse, ReuseKind, SampleFn,
    Scalar, ScratchFn, Val,
};
use restride_tensor::RawTensor;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, OpError>;
/// Result types from a shape rule.
pub(crate) type Metas = Result<SmallVec<[Meta; 1]>>;
/// Result values of a composition.
pub(crate) type Vals = Result<SmallVec<[Val; 1]>>;
/// Arguments of a composition.
pub(crate) type ValArgs<'a> = Args<'a, Val, Scalar>;

/// Fails with a formatted message unless the condition holds.
macro_rules! ensure {
    ($cond:expr, $($fmt:tt)*) => {
        {
            // A named condition: comparisons with NaN must fail here.
            let holds: bool = $cond;
            if !holds {
                return Err(restride_ir::OpError::new(format!($($fmt)*)));
            }
        }
    };
}
pub(crate) use ensure;

/// Fails with a message.
pub(crate) fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(OpError::new(message))
}

/// A row-major result type.
pub(crate) fn fresh(dtype: DType, sizes: &[i64]) -> Meta {
    Meta::contiguous(dtype, sizes)
}

/// A channels-last result type if the input suggests it, else a row-major one.
pub(crate) fn suggested(like: &Layout, dtype: DType, sizes: &[i64]) -> Meta {
    if suggests_channels_last(like) && sizes.len() == like.rank() {
        Meta::new(dtype, strides::channels_last(sizes))
    } else {
        fresh(dtype, sizes)
    }
}

/// PyTorch's `suggest_memory_format`: whether the strides of 4 or 5 dimensions look channels-last. The guess also accepts
/// sliced and degenerate tensors.
pub(crate) fn suggests_channels_last(l: &Layout) -> bool {
    let order: &[usize] = match l.rank() {
        4 => &[1, 3, 2, 0],
        5 => &[1, 4, 3, 2, 0],
        _ => return false,
    };
    let mut least = 0;
    // A one-channel view counts as row-major.
    if l.strides[1] == 0 {
        return false;
    }
    for &d in order {
        if l.sizes[d] == 0 || l.strides[d] < least {
            return false;
        }
        // N111 tensors and one-channel tensors are ambiguous and count as row-major.
        if d == 0 && least == l.strides[1] {
            return false;
        }
        least = l.strides[d];
        if l.sizes[d] > 1 {
            least *= l.sizes[d];
        }
    }
    true
}

/// Declares an operator with a kernel: schema, shape rule, kernel, scratch, sample calls.
pub(crate) const fn close(
    schema: &'static str,
    infer: InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    scratch: ScratchFn,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef { scratch: Some(scratch), ..without_scratch(schema, infer, run, samples) }
}

/// Whether the channels of an image, or of a volume, are side by side in memory.
pub(crate) fn is_channels_last(m: &Meta, spatial: usize) -> bool {
    let channel = m.rank().wrapping_sub(spatial + 1);
    let plane = m.sizes().get(channel + 1..).is_some_and(|s| s.iter().any(|&n| n > 1));
    plane && m.sizes().get(channel).is_some_and(|&n| n > 1) && m.layout.strides[channel] == 1
}

/// Picoseconds by which an element is slower where operand and result have other layouts.
pub(crate) const MIXED: i64 = 1000;

/// Declares an operator whose kernel matches PyTorch bit for bit.
pub(crate) const fn exact(
    schema: &'static str,
    infer: InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    scratch: ScratchFn,
    samples: Option<SampleFn>,
) -> OpDef {
    close(schema, infer, run, scratch, samples).exactly()
}

/// Declares an operator whose kernel takes no scratch.
pub(crate) const fn without_scratch(
    schema: &'static str,
    infer: InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef { infer: Some(infer), kernel: Kernel::Fixed(run), samples, ..OpDef::new(schema) }
}

/// Declares an operator that learns its result's sizes from data.
pub(crate) const fn found(
    schema: &'static str,
    run: fn(&Call<'_>) -> Result<Vec<RawTensor>>,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef { kernel: Kernel::Dynamic(run), samples, ..OpDef::new(schema) }
}

/// The result may take over the memory of argument 0, whose elements the kernel reads at the index it writes.
pub(crate) static IN_PLACE: &[Reuse] = &[Reuse { arg: 0, result: 0, kind: ReuseKind::SameIndex }];

/// The type of the only result.
pub(crate) fn one(meta: Meta) -> Metas {
    Ok(smallvec![meta])
}

/// Converts a kernel's outcome to an operator's.
pub(crate) fn ran<T>(r: std::result::Result<T, String>) -> Result<T> {
    r.map_err(OpError::new)
}

/// A list argument of `n` numbers; a single number stands for all.
pub(crate) fn spread<V>(a: &Args<'_, V, Scalar>, i: usize, n: usize, what: &str) -> Result<Ints> {
    let v = a.ints(i)?;
    // Far above any memory size, and small enough that the product of two does not overflow.
    ensure!(v.iter().all(|x| x.unsigned_abs() < 1 << 31), "{what} is out of range: {v:?}");
    match v.len() {
        1 => Ok(smallvec![v[0]; n]),
        len if len == n => Ok(v),
        len => fail(format!("{what} must have 1 or {n} elements, got {len}")),
    }
}

/// A Rust value that converts to an argument of a call in a composition.
pub(crate) trait IntoOperand {
    fn operand(self) -> Arg<Val, Scalar>;
}
macro_rules! operands {
    ($($t:ty: |$x:ident| $e:expr;)*) => {$(
        impl IntoOperand for $t {
            fn operand(self) -> Arg<Val, Scalar> { let $x = self; $e }
        }
    )*};
}
operands! {
    Val: |v| Arg::Value(v);
    Option<Val>: |v| v.map_or(Arg::None, Arg::Value);
    i64: |i| Arg::Scalar(Scalar::Int(i));
    Ints: |v| Arg::Scalars(v.iter().map(|&i| Scalar::Int(i)).collect());
    i32: |i| Arg::Scalar(Scalar::Int(i as i64));
    f64: |x| Arg::Scalar(Scalar::Float(x));
    bool: |b| Arg::Scalar(Scalar::Bool(b));
    Scalar: |s| match s {
        Scalar::Complex(z) => Arg::Complex(z.re, z.im),
        s => Arg::Scalar(s),
    };
    &[i64]: |l| Arg::Scalars(l.iter().map(|&i| Scalar::Int(i)).collect());
    Vec<i64>: |l| Arg::Scalars(l.into_iter().map(Scalar::Int).collect());
    Vec<Val>: |l| Arg::Values(l.into_iter().map(Some).collect());
    &[bool]: |l| Arg::Scalars(l.iter().map(|&b| Scalar::Bool(b)).collect());
    &str: |s| Arg::Str(Arc::from(s));
    DType: |d| Arg::DType(d);
    Option<DType>: |d| d.map_or(Arg::None, Arg::DType);
    Option<f64>: |x| x.map_or(Arg::None, |x| Arg::Scalar(Scalar::Float(x)));
    Option<i64>: |x| x.map_or(Arg::None, |x| Arg::Scalar(Scalar::Int(x)));
    (): |_u| Arg::None;
    Arg<Val, Scalar>: |a| a;
}
impl<const N: usize> IntoOperand for [i64; N] {
    fn operand(self) -> Arg<Val, Scalar> {
        self[..].operand()
    }
}

/// Adds a call to a composition and returns its first result: `emit!(e, "aten.add.Tensor", a, b)?`.
macro_rules! emit {
    ($e:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        {
            // Arguments may ask `$e` for sizes.
            let args = [$($crate::support::IntoOperand::operand($arg)),*];
            $crate::support::emitted(&mut *$e, $op, args)
        }
    };
}
pub(crate) use emit;

/// Adds a call to a composition and returns all results.
macro_rules! emit_all {
    ($e:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        $e.call($op, &[$($crate::support::IntoOperand::operand($arg)),*])
    };
}
pub(crate) use emit_all;

/// What `emit!` does, once for each number of arguments: callers would each drop theirs.
#[inline(never)]
pub(crate) fn emitted<const N: usize>(e: &mut dyn Emit, op: &str, args: [Arg<Val, Scalar>; N]) -> Result<Val> {
    first(e.call(op, &args), op)
}

/// Whether PyTorch computes in singles and rounds results to the element type.
pub(crate) fn is_16_bit(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// The value in an element type, itself if it has that type.
pub(crate) fn to(e: &mut dyn Emit, x: Val, dtype: DType) -> Result<Val> {
    if e.meta(x).dtype == dtype { Ok(x) } else { emit!(e, "aten.to.dtype", x, dtype) }
}

/// The element of a tensor that has one, as a tensor of no dimensions in an element type.
pub(crate) fn only(e: &mut dyn Emit, x: Val, dtype: DType) -> Result<Val> {
    let none: &[i64] = &[];
    let x = if e.meta(x).rank() == 0 { x } else { emit!(e, "aten.reshape.default", x, none)? };
    to(e, x, dtype)
}

/// Adds the check that a mask holds everywhere: a run where it does not fails with these words.
pub(crate) fn require(e: &mut dyn Emit, mask: Val, words: &str) -> Result<()> {
    let all = emit!(e, "aten.all.default", mask)?;
    emit_all!(e, "aten._assert_async.msg", all, words)?;
    Ok(())
}

/// The first result of a call.
pub(crate) fn first(results: Vals, op: &str) -> Result<Val> {
    results?.first().copied().ok_or_else(|| OpError::new(format!("{op} has no result")))
}

/// Passes an argument of a composition on unchanged.
pub(crate) fn pass(a: &ValArgs<'_>, i: usize) -> Arg<Val, Scalar> {
    a.0.get(i).cloned().unwrap_or(Arg::None)
}

/// Sizes of a value.
pub(crate) fn sizes(e: &dyn Emit, v: Val) -> Vec<i64> {
    e.meta(v).sizes().to_vec()
}
