//! Sample calls for pointwise operators.

pub(crate) use crate::support::samples::*;
use crate::support::strides::channels_last;
use restride_tensor::DType::*;

/// The element types of a sample set.
#[derive(Clone, Copy)]
pub(crate) struct Types {
    floats: bool,
    ints: bool,
    bools: bool,
    complex: bool,
}

/// Floats only.
pub(crate) const REAL: Types = Types { floats: true, ints: false, bools: false, complex: false };
/// Floats, integers and `bool`.
pub(crate) const ALL_REAL: Types = Types { floats: true, ints: true, bools: true, complex: false };
/// Floats and integers.
pub(crate) const NO_BOOL: Types = Types { floats: true, ints: true, bools: false, complex: false };
/// Every type but `bool`, complex types included.
pub(crate) const NUMBERS: Types = Types { floats: true, ints: true, bools: false, complex: true };
/// Every element type.
pub(crate) const ALL: Types = Types { floats: true, ints: true, bools: true, complex: true };
/// Integers and `bool`.
pub(crate) const BITS: Types = Types { floats: false, ints: true, bools: true, complex: false };
/// Integers.
pub(crate) const INTS: Types = Types { floats: false, ints: true, bools: false, complex: false };
/// Floats and complex numbers.
pub(crate) const FLOATS: Types = Types { floats: true, ints: false, bools: false, complex: true };

impl Types {
    /// The element type of cases that test layouts.
    pub(crate) fn main(self) -> DType {
        if self.floats { F32 } else { I64 }
    }
    /// The other element types.
    pub(crate) fn others(self) -> Vec<DType> {
        let mut out = Vec::new();
        if self.floats {
            out.extend([F64, F16, BF16]);
        }
        if self.ints {
            out.extend([I64, I32, I8, U8]);
        }
        if self.bools {
            out.push(Bool);
        }
        if self.complex {
            out.extend([C64, C128]);
        }
        out
    }
}

/// One tensor per layout (contiguous, transposed, strided, expanded, channels-last, 0-d, empty) and per element type.
pub(crate) fn every_layout(types: Types, lo: f64, hi: f64) -> Vec<RawTensor> {
    let d = types.main();
    let put = |t: RawTensor, seed| match t.dtype() {
        // The range holds for floats and complex numbers; integers keep their own.
        d if d.is_float() || d.is_complex() => in_range(d, t.layout().clone(), seed, lo, hi),
        _ => t,
    };
    let mut out = vec![
        put(tensor(d, &[2, 3], 1), 1),
        put(transposed(d, &[2, 3, 4], 2), 2),
        put(strided(d, &[3, 4], 3), 3),
        put(expanded(d, &[3, 4], 4), 4),
        put(laid(d, channels_last(&[2, 3, 2, 2]), 5), 5),
        put(tensor(d, &[], 6), 6),
        put(tensor(d, &[2, 0, 3], 7), 7),
        put(tensor(d, &[1, 1100], 8), 8),
        put(laid(d, Layout::permuted(&[2, 1, 3, 2], &[3, 1, 0, 2]), 9), 9),
        put(laid(d, Layout::strided(&[2, 1, 3], &[3, 7, 1], 2), 9), 9),
    ];
    for (i, d) in types.others().into_iter().enumerate() {
        out.push(put(tensor(d, &[5], 10 + i as u64), 10 + i as u64));
    }
    out
}

/// Calls with one tensor.
pub(crate) fn unary(types: Types, lo: f64, hi: f64) -> Vec<Sample> {
    every_layout(types, lo, hi).into_iter().map(|t| sample![t]).collect()
}

/// Calls with one tensor and parameters.
pub(crate) fn unary_with(types: Types, lo: f64, hi: f64, params: &[f64]) -> Vec<Sample> {
    let mut samples = unary(types, lo, hi);
    for s in &mut samples {
        s.args.extend(params.iter().map(|&p| restride_ir::Arg::Scalar(Scalar::Float(p))));
    }
    samples
}

/// A divisor without zeros.
fn divisor(dtype: DType, sizes: &[i64], seed: u64) -> RawTensor {
    match dtype {
        Bool => RawTensor::zeros(Bool, Layout::contiguous(sizes)),
        _ => in_range(dtype, Layout::contiguous(sizes), seed, 1.0, 4.0),
    }
}

/// Pairs of tensors that broadcast, of all layouts and mixed element types.
pub(crate) fn pairs(types: Types) -> Vec<(RawTensor, RawTensor)> {
    let d = types.main();
    let mut out = vec![
        (tensor(d, &[2, 3], 1), divisor(d, &[2, 3], 2)),
        (transposed(d, &[2, 3, 4], 3), divisor(d, &[4], 4)),
        (tensor(d, &[2, 3, 4], 3), in_range(d, Layout::permuted(&[2, 3, 4], &[2, 1, 0]), 4, 1.0, 4.0)),
        (strided(d, &[3, 4], 5), divisor(d, &[3, 1], 6)),
        (expanded(d, &[3, 4], 7), divisor(d, &[], 8)),
        (tensor(d, &[], 9), divisor(d, &[], 10)),
        (tensor(d, &[1, 3], 11), divisor(d, &[2, 1], 12)),
        (laid(d, channels_last(&[2, 3, 2, 2]), 13), divisor(d, &[3, 1, 1], 14)),
        (tensor(d, &[0, 3], 15), divisor(d, &[3], 16)),
        (tensor(d, &[1100], 17), divisor(d, &[1100], 18)),
    ];
    // Dimension orders that contradict each other, or that sizes of 1 and strides of 0 leave ambiguous.
    let stretched = Layout::contiguous(&[3, 1, 4]).expand(&[3, 2, 4]).expect("a size of 1 expands");
    let layouts = [
        (Layout::permuted(&[2, 1, 3, 4], &[3, 0, 2, 1]), Layout::permuted(&[2, 5, 3, 4], &[1, 0, 3, 2])),
        (stretched.clone(), Layout::permuted(&[3, 2, 4], &[2, 1, 0])),
        (stretched.clone(), stretched.clone()),
        (stretched, Layout::permuted(&[1, 4], &[1, 0])),
        (channels_last(&[2, 3, 1, 1]), channels_last(&[2, 3, 4, 4])),
        (channels_last(&[1, 3, 4, 4]), Layout::contiguous(&[1, 3, 4, 4])),
        (Layout::contiguous(&[2, 1, 4, 4]), channels_last(&[2, 1, 4, 4])),
        (channels_last(&[2, 3, 2, 2, 2]), channels_last(&[2, 3, 2, 2, 2])),
        (Layout::strided(&[2, 1, 3], &[3, 7, 1], 0), Layout::strided(&[2, 1, 3], &[3, 100, 1], 2)),
        (Layout::permuted(&[2, 0, 3], &[2, 0, 1]), Layout::permuted(&[2, 1, 3], &[2, 0, 1])),
    ];
    for (i, (a, b)) in layouts.into_iter().enumerate() {
        let seed = 100 + 2 * i as u64;
        out.push((laid(d, a, seed), in_range(d, b, seed + 1, 1.0, 4.0)));
    }
    let others = types.others();
    for (i, &a) in others.iter().enumerate() {
        let seed = 20 + 2 * i as u64;
        out.push((tensor(a, &[5], seed), divisor(a, &[5], seed + 1)));
        // Pairs each type with the next one, as a tensor with dimensions and as a 0-d tensor.
        let b = others[(i + 1) % others.len()];
        if a != Bool && b != Bool {
            out.push((tensor(a, &[2, 2], seed), divisor(b, &[2, 1], seed)));
            out.push((tensor(a, &[2, 2], seed), divisor(b, &[], seed)));
        }
    }
    out
}

/// Calls with two tensors.
pub(crate) fn binary(types: Types) -> Vec<Sample> {
    pairs(types).into_iter().map(|(a, b)| sample![a, b]).collect()
}

/// Calls with two tensors, and with a plain number in place of a tensor, as in exported programs.
pub(crate) fn binary_mixed(types: Types) -> Vec<Sample> {
    let mut out = binary(types);
    out.extend(with_number(types));
    out
}

/// Calls with a tensor and a number.
pub(crate) fn with_number(types: Types) -> Vec<Sample> {
    let mut out = Vec::new();
    for t in every_layout(types, -2.0, 2.0) {
        if t.dtype() == Bool {
            out.push(sample![&t, true]);
        } else {
            out.push(sample![&t, 3]);
            if types.floats {
                out.push(sample![t, 1.5]);
            }
        }
    }
    if types.complex {
        out.push(sample![tensor(F32, &[3], 1), complex(0.5, 1.5)]);
        out.push(sample![tensor(C64, &[3], 1), complex(0.5, 1.5)]);
    }
    out
}

/// Calls with a number and a tensor.
pub(crate) fn number_first(types: Types) -> Vec<Sample> {
    let mut out = with_number(types);
    for s in &mut out {
        s.args.swap(0, 1);
    }
    // Tensors may become divisors here: keep floats, because integers cannot be divided by zero.
    out.retain(|s| matches!(&s.args[1], restride_ir::Arg::Value(t) if t.dtype().is_float()));
    out
}

/// Calls whose results depend on equal elements, infinities or NaN.
pub(crate) fn comparisons(types: Types) -> Vec<Sample> {
    let mut out = binary_mixed(types);
    if types.floats {
        let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0];
        let a: Vec<f32> = special.iter().flat_map(|&x| [x; 6]).collect();
        let b: Vec<f32> = (0..6).flat_map(|_| special).collect();
        out.push(sample![RawTensor::from_slice(&a, &[36]), RawTensor::from_slice(&b, &[36])]);
    }
    let (a, b) = (tensor(I64, &[4, 4], 1), tensor(I64, &[4, 4], 2));
    out.push(sample![a, b]);
    out.push(sample![tensor(U8, &[3], 1), 300]);
    out
}

/// Calls with one tensor that includes special numbers.
pub(crate) fn special(types: Types) -> Vec<Sample> {
    let mut out = unary(types, -2.0, 2.0);
    if types.floats {
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.0, -3.5, 2.5, 0.5, 1e-30];
        out.push(sample![RawTensor::from_slice(&odd, &[10])]);
        out.push(sample![RawTensor::from_slice(&odd.map(restride_tensor::bf16::from_f32), &[2, 5])]);
    }
    if types.complex {
        out.push(sample![RawTensor::from_slice(&[C64_NAN, restride_tensor::C64::new(0.0, 0.0)], &[2])]);
    }
    out
}

const C64_NAN: restride_tensor::C64 = restride_tensor::C64::new(f64::NAN, 1.0);

/// Calls with tensors only, for operators that refuse a plain number in place of a tensor.
pub(crate) fn tensors(mut out: Vec<Sample>) -> Vec<Sample> {
    out.retain(|s| s.args.iter().all(|a| matches!(a, restride_ir::Arg::Value(_))));
    out
}
