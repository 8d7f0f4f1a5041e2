//! Builders of sample calls: deterministic tensors of every layout that the generic tests need.

pub(crate) use restride_ir::{Arg, Sample, SampleArg, Scalar};
pub(crate) use restride_tensor::{DType, Layout, RawTensor};
use std::sync::Arc;

/// Pseudo-random bits of a seed and an index.
fn bits(seed: u64, i: u64) -> u64 {
    let mut z = (seed << 32 ^ i).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A pseudo-random number in `lo..hi`.
fn uniform(seed: u64, i: u64, lo: f64, hi: f64) -> f64 {
    lo + (hi - lo) * ((bits(seed, i) >> 11) as f64 / (1u64 << 53) as f64)
}

/// A tensor of a layout with numbers in `lo..hi`; integers truncate towards zero, `bool` mixes both values.
pub(crate) fn in_range(dtype: DType, layout: Layout, seed: u64, lo: f64, hi: f64) -> RawTensor {
    let t = RawTensor::zeros(dtype, layout);
    let cells = t.storage().len() / dtype.size();
    let number = |i: usize| uniform(seed, i as u64, lo, hi);
    // Every cell gets a number, even cells that the layout skips: wrong reads then show.
    let all = t.alias(dtype, Layout::contiguous(&[cells as i64])).expect("the storage has these cells");
    match dtype {
        DType::Bool => {
            let data: Vec<i64> = (0..cells).map(|i| (bits(seed, i as u64) >> 40 & 1) as i64).collect();
            restride_kernels::support::convert::scatter(&data, &all.write().view_mut());
        }
        DType::C64 | DType::C128 => {
            let part = |i: usize| uniform(seed ^ 0xC0FFEE, i as u64, lo, hi);
            let data: Vec<_> = (0..cells).map(|i| restride_tensor::C64::new(number(i), part(i))).collect();
            restride_kernels::support::convert::scatter(&data, &all.write().view_mut());
        }
        _ => restride_kernels::support::convert::scatter(
            &(0..cells).map(number).collect::<Vec<f64>>(),
            &all.write().view_mut(),
        ),
    }
    t
}

/// A tensor of a layout with numbers between -2 and 2 (unsigned: 0 to 4; other integers: -5 to 5).
pub(crate) fn laid(dtype: DType, layout: Layout, seed: u64) -> RawTensor {
    let (lo, hi) = match dtype {
        DType::U8 => (0.0, 4.0),
        d if d.is_int() => (-5.0, 6.0),
        _ => (-2.0, 2.0),
    };
    in_range(dtype, layout, seed, lo, hi)
}

/// A row-major tensor.
pub(crate) fn tensor(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    laid(dtype, Layout::contiguous(sizes), seed)
}

/// A tensor whose first and last dimensions are transposed in memory.
pub(crate) fn transposed(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    let mut perm: Vec<usize> = (0..sizes.len()).collect();
    let last = sizes.len().saturating_sub(1);
    perm.swap(0, last);
    laid(dtype, Layout::permuted(sizes, &perm), seed)
}

/// A view of a larger tensor: every second element of each dimension, with an offset.
pub(crate) fn strided(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    let wide: Vec<i64> = sizes.iter().map(|n| 2 * n).collect();
    let mut layout = Layout::contiguous(&wide);
    layout.sizes = sizes.iter().copied().collect();
    layout.strides.iter_mut().for_each(|s| *s *= 2);
    layout.offset = 1;
    laid(dtype, layout, seed)
}

/// A tensor whose first dimension is expanded.
pub(crate) fn expanded(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    let mut one = sizes.to_vec();
    one[0] = 1;
    laid(dtype, Layout::contiguous(&one).expand(sizes).expect("a size of 1 expands"), seed)
}

/// A row-major tensor of the given integers.
pub(crate) fn ints(data: &[i64], sizes: &[i64]) -> RawTensor {
    RawTensor::from_slice(data, sizes)
}

/// A complex number.
pub(crate) fn complex(re: f64, im: f64) -> SampleArg {
    Arg::Complex(re, im)
}

/// A Rust value that converts to an argument of a sample call.
pub(crate) trait IntoArg {
    fn arg(self) -> SampleArg;
}
macro_rules! into_arg {
    ($($t:ty: |$x:ident| $e:expr;)*) => {$(
        impl IntoArg for $t {
            fn arg(self) -> SampleArg { let $x = self; $e }
        }
    )*};
}
into_arg! {
    RawTensor: |t| Arg::Value(t);
    &RawTensor: |t| Arg::Value(t.clone());
    i64: |i| Arg::Scalar(Scalar::Int(i));
    i32: |i| Arg::Scalar(Scalar::Int(i as i64));
    f64: |x| Arg::Scalar(Scalar::Float(x));
    bool: |b| Arg::Scalar(Scalar::Bool(b));
    Scalar: |s| match s {
        Scalar::Complex(z) => Arg::Complex(z.re, z.im),
        s => Arg::Scalar(s),
    };
    &[i64]: |l| Arg::Scalars(l.iter().map(|&i| Scalar::Int(i)).collect());
    &[f64]: |l| Arg::Scalars(l.iter().map(|&x| Scalar::Float(x)).collect());
    Vec<RawTensor>: |ts| Arg::Values(ts.into_iter().map(Some).collect());
    Vec<Option<RawTensor>>: |ts| Arg::Values(ts);
    &str: |s| Arg::Str(Arc::from(s));
    DType: |d| Arg::DType(d);
    restride_ir::MemoryFormat: |m| Arg::MemoryFormat(m);
    (): |_u| Arg::None;
    SampleArg: |a| a;
}
impl<const N: usize> IntoArg for [i64; N] {
    fn arg(self) -> SampleArg {
        self[..].arg()
    }
}
impl<const N: usize> IntoArg for [f64; N] {
    fn arg(self) -> SampleArg {
        self[..].arg()
    }
}

/// One sample call: `sample![tensor, 1.0, [2, 3], (), true]`, with `()` for `None`.
macro_rules! sample {
    ($($arg:expr),* $(,)?) => {
        restride_ir::Sample { args: vec![$($crate::support::samples::IntoArg::arg($arg)),*] }
    };
}
pub(crate) use sample;

/// A sample call from arguments.
pub(crate) fn call(args: Vec<SampleArg>) -> Sample {
    Sample { args }
}

/// Sample tensors of one shape in three layouts: row-major, transposed, strided.
pub(crate) fn forms(dtype: DType, sizes: &[i64], seed: u64) -> [RawTensor; 3] {
    use crate::support::samples::{strided, tensor, transposed};
    [tensor(dtype, sizes, seed), transposed(dtype, sizes, seed + 1), strided(dtype, sizes, seed + 2)]
}

/// A channels-last sample tensor of 4 or 5 dimensions.
pub(crate) fn nhwc(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    crate::support::samples::laid(dtype, crate::support::strides::channels_last(sizes), seed)
}

/// Samples, as a list.
pub(crate) type Samples = Vec<Sample>;

/// An empty list of numbers, as a sample argument.
pub(crate) const NO: [i64; 0] = [];
