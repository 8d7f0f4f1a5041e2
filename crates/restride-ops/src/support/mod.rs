//! Small helpers that families of operators share: results, arguments, refusals, declarations.

pub(crate) mod composite;
pub(crate) mod promote;
pub(crate) mod sample;
pub(crate) mod scratch;
pub(crate) mod strides;

use restride_ir::{
    Arg, Args, Call, DType, Emit, Exactness, InferFn, Ints, Kernel, Layout, Meta, OpDef, OpError, Sample, SampleFn,
    Scalar, ScratchFn, Val,
};
use restride_tensor::RawTensor;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

pub(crate) type Result<T> = std::result::Result<T, OpError>;
/// What shape rules give.
pub(crate) type Metas = Result<SmallVec<[Meta; 1]>>;
/// What compositions give.
pub(crate) type Vals = Result<SmallVec<[Val; 1]>>;
/// Arguments of a composition.
pub(crate) type ValArgs<'a> = Args<'a, Val, Scalar>;

/// Fails with a formatted message unless the condition holds.
macro_rules! ensure {
    ($cond:expr, $($fmt:tt)*) => {
        {
            // Of its own name: a comparison with NaN is meant to fail here.
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

/// A row-major result.
pub(crate) fn fresh(dtype: DType, sizes: &[i64]) -> Meta {
    Meta::contiguous(dtype, sizes)
}

/// A result in channels-last order where the input suggests it, row-major otherwise.
pub(crate) fn suggested(like: &Layout, dtype: DType, sizes: &[i64]) -> Meta {
    if suggests_channels_last(like) && sizes.len() == like.rank() {
        Meta::new(dtype, strides::channels_last(sizes))
    } else {
        fresh(dtype, sizes)
    }
}

/// PyTorch's `suggest_memory_format`: strides that channels-last tensors of 4 or 5 dimensions have, a guess that also knows
/// cut and degenerate tensors.
pub(crate) fn suggests_channels_last(l: &Layout) -> bool {
    let order: &[usize] = match l.rank() {
        4 => &[1, 3, 2, 0],
        5 => &[1, 4, 3, 2, 0],
        _ => return false,
    };
    let mut least = 0;
    // A tensor of one channel that is a view is taken as row-major.
    if l.strides[1] == 0 {
        return false;
    }
    for &d in order {
        if l.sizes[d] == 0 || l.strides[d] < least {
            return false;
        }
        // N111 tensors and those of one channel are ambiguous: row-major.
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

/// An operator with a kernel whose results are PyTorch's to the bit: schema, shape rule, kernel, its working memory, sample
/// calls.
pub(crate) const fn exact(
    schema: &'static str,
    infer: InferFn,
    run: fn(&Call<'_>) -> Result<()>,
    room: ScratchFn,
    samples: Option<SampleFn>,
) -> OpDef {
    OpDef {
        infer: Some(infer),
        kernel: Kernel::Fixed(run),
        scratch: Some(room),
        exactness: Exactness::Exact,
        samples,
        ..OpDef::new(schema)
    }
}

/// One result.
pub(crate) fn one(meta: Meta) -> Metas {
    Ok(smallvec![meta])
}

/// A kernel's outcome as an operator's.
pub(crate) fn ran(r: std::result::Result<(), String>) -> Result<()> {
    r.map_err(OpError::new)
}

/// A list argument of `n` numbers: one number stands for all.
pub(crate) fn spread<V>(a: &Args<'_, V, Scalar>, i: usize, n: usize, what: &str) -> Result<Ints> {
    let v = a.ints(i)?;
    // Far beyond what memory can hold, and small enough that no product of two overflows.
    ensure!(v.iter().all(|x| x.unsigned_abs() < 1 << 31), "{what} is out of range: {v:?}");
    match v.len() {
        1 => Ok(smallvec![v[0]; n]),
        len if len == n => Ok(v),
        len => fail(format!("{what} must have 1 or {n} elements, got {len}")),
    }
}

/// What becomes an argument of a call in a composition.
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

/// One call of a composition: `emit!(e, "aten.add.Tensor", a, b)?` is its first result.
macro_rules! emit {
    ($e:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        $crate::support::first($e.call($op, &[$($crate::support::IntoOperand::operand($arg)),*]), $op)
    };
}
pub(crate) use emit;

/// One call of a composition with all its results.
macro_rules! emit_all {
    ($e:expr, $op:expr $(, $arg:expr)* $(,)?) => {
        $e.call($op, &[$($crate::support::IntoOperand::operand($arg)),*])
    };
}
pub(crate) use emit_all;

/// The first result of a call.
pub(crate) fn first(results: Vals, op: &str) -> Result<Val> {
    results?.first().copied().ok_or_else(|| OpError::new(format!("{op} has no result")))
}

/// An argument of a composition passed on as it is.
pub(crate) fn pass(a: &ValArgs<'_>, i: usize) -> Arg<Val, Scalar> {
    a.0.get(i).cloned().unwrap_or(Arg::None)
}

/// Sizes of a value.
pub(crate) fn sizes(e: &dyn Emit, v: Val) -> Vec<i64> {
    e.meta(v).sizes().to_vec()
}

/// The kernel's view of samples: a few forms of one shape (row-major, transposed, strided).
pub(crate) fn forms(dtype: DType, sizes: &[i64], seed: u64) -> [RawTensor; 3] {
    use crate::support::sample::{strided, tensor, transposed};
    [tensor(dtype, sizes, seed), transposed(dtype, sizes, seed + 1), strided(dtype, sizes, seed + 2)]
}

/// A channels-last tensor of 4 or 5 dimensions.
pub(crate) fn nhwc(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    crate::support::sample::laid(dtype, strides::channels_last(sizes), seed)
}

/// Samples, as a list.
pub(crate) type Samples = Vec<Sample>;
