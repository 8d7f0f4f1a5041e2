//! Sample matrices and sample calls for dense linear algebra.

pub(crate) use crate::support::samples::*;
use restride_tensor::C64;

/// Well-conditioned square matrices.
pub(crate) fn regular(d: DType, batch: &[i64], n: i64, seed: u64) -> RawTensor {
    symmetric(d, batch, n, seed, false)
}

/// Diagonally dominant matrices; Hermitian and positive definite if `mirrored`.
pub(crate) fn symmetric(d: DType, batch: &[i64], n: i64, seed: u64, mirrored: bool) -> RawTensor {
    let sizes = [batch, &[n, n]].concat();
    let noise = laid(DType::C128, Layout::contiguous(&sizes), seed).to_elements::<C64>();
    let noise: Vec<C64> = noise.into_iter().map(|x| if d.is_complex() { x } else { C64::new(x.re, 0.0) }).collect();
    let n = n as usize;
    let mut data = noise.clone();
    for (i, x) in data.iter_mut().enumerate() {
        let (m, r, c) = (i / (n * n), i / n % n, i % n);
        if mirrored {
            *x = (noise[i] + noise[m * n * n + c * n + r].conj()) / 2.0;
        }
        if r == c {
            *x += 2.0 * n as f64 + r as f64;
        }
    }
    let t = RawTensor::zeros(d, Layout::contiguous(&sizes));
    restride_kernels::support::convert::scatter(&data, &t.write().view_mut());
    t
}

pub(crate) fn turned(t: &RawTensor) -> RawTensor {
    let rank = t.layout().rank();
    let l = t.layout().transpose(rank as i64 - 2, rank as i64 - 1).expect("two dimensions");
    t.alias(t.dtype(), l).expect("the same cells")
}

pub(crate) fn square_samples() -> Vec<Sample> {
    let d = DType::F32;
    vec![
        sample![symmetric(d, &[], 4, 1, true)],
        sample![turned(&symmetric(d, &[2, 3], 3, 2, true))],
        sample![symmetric(DType::F64, &[2], 5, 3, true)],
        sample![symmetric(d, &[], 1, 3, true)],
        sample![symmetric(d, &[2], 0, 3, true)],
        sample![symmetric(d, &[0], 3, 3, true)],
        sample![symmetric(DType::C64, &[2], 4, 3, true)],
        sample![turned(&symmetric(DType::C128, &[], 3, 3, true))],
        sample![tensor(d, &[3, 4], 1)],
        sample![tensor(d, &[3], 1)],
        sample![tensor(DType::I64, &[3, 3], 1)],
        sample![tensor(DType::F16, &[3, 3], 1)],
    ]
}

pub(crate) fn regular_samples() -> Vec<Sample> {
    let mut out = square_samples();
    let d = DType::F32;
    out.extend([
        sample![regular(d, &[], 4, 1)],
        sample![turned(&regular(d, &[2], 4, 1))],
        sample![tensor(DType::F64, &[6, 6], 3)],
        sample![expanded(DType::F64, &[2, 3, 3], 4)],
        sample![RawTensor::zeros(d, Layout::contiguous(&[3, 3]))],
        sample![regular(DType::C64, &[2], 4, 1)],
        sample![tensor(DType::C128, &[5, 5], 3)],
    ]);
    out
}

pub(crate) fn factor_samples() -> Vec<Sample> {
    [regular_samples(), crate::linalg::lu::samples::matrix_samples()].concat()
}

pub(crate) fn with_args(samples: Vec<Sample>, args: Vec<restride_ir::SampleArg>) -> Vec<Sample> {
    samples
        .into_iter()
        .map(|mut s| {
            s.args.extend(args.iter().cloned());
            s
        })
        .collect()
}

pub(crate) fn definite_samples() -> Vec<Sample> {
    let mut out = square_samples();
    let upper = with_args(square_samples(), vec![crate::support::samples::IntoArg::arg(true)]);
    out.extend(upper.into_iter().take(2));
    out
}

pub(crate) fn solve_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out = Vec::new();
    for left in [true, false] {
        out.push(sample![
            regular(d, &[], 4, 1),
            if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) },
            left
        ]);
        out.push(sample![
            regular(d, &[3], 4, 1),
            if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) },
            left
        ]);
        out.push(sample![regular(d, &[], 3, 1), tensor(d, &[2, 3, 3], 2), left]);
        out.push(sample![turned(&regular(DType::F64, &[2], 3, 1)), transposed(DType::F64, &[2, 3, 3], 2), left]);
        out.push(sample![regular(d, &[], 3, 1), strided(d, &[3], 2), left]);
    }
    out.extend([
        sample![regular(d, &[2], 3, 1), tensor(d, &[2, 3], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[3], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[4, 2], 2)],
        sample![regular(d, &[2], 3, 1), tensor(DType::F64, &[3, 2], 2)],
        sample![regular(d, &[2], 3, 1), tensor(d, &[3, 0], 2)],
        sample![regular(DType::C64, &[2], 3, 1), tensor(DType::C64, &[3, 2], 2)],
        sample![regular(DType::C128, &[2], 3, 1), tensor(DType::C128, &[2, 3], 2), false],
        sample![regular(d, &[2], 0, 1), tensor(d, &[2, 0, 3], 2)],
        sample![regular(d, &[2], 0, 1), tensor(d, &[2, 0], 2)],
    ]);
    out
}

pub(crate) fn triangular_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out = Vec::new();
    for (upper, left, unit) in [(true, true, false), (false, true, true), (true, false, false), (false, false, false)] {
        let b = if left { tensor(d, &[4, 2], 2) } else { tensor(d, &[2, 4], 2) };
        out.push(sample![regular(d, &[], 4, 1), &b, upper, left, unit]);
        out.push(sample![turned(&regular(d, &[3], 4, 1)), &b, upper, left, unit]);
    }
    out.push(sample![regular(d, &[], 4, 1), tensor(d, &[3, 2], 2), true]);
    out.push(sample![regular(DType::C64, &[2], 4, 1), tensor(DType::C64, &[4, 2], 2), true]);
    out.push(sample![regular(DType::C128, &[], 3, 1), tensor(DType::C128, &[2, 2, 3], 2), false, false]);
    out
}

pub(crate) fn qr_samples() -> Vec<Sample> {
    let d = DType::F32;
    let mut out: Vec<Sample> = forms(d, &[2, 4, 3], 1).into_iter().map(|x| sample![x]).collect();
    for mode in ["reduced", "complete", "r", "full"] {
        out.push(sample![tensor(d, &[4, 3], 1), mode]);
        out.push(sample![tensor(DType::F64, &[2, 3, 5], 1), mode]);
    }
    out.push(sample![tensor(d, &[0, 3], 1)]);
    out.push(sample![tensor(d, &[3], 1)]);
    out.push(sample![tensor(DType::C64, &[2, 4, 3], 1)]);
    out.push(sample![tensor(DType::C128, &[3, 5], 1), "complete"]);
    out.push(sample![tensor(DType::C128, &[4, 4], 2)]);
    out
}

pub(crate) fn svd_shapes() -> Vec<Sample> {
    let d = DType::F32;
    vec![
        sample![tensor(d, &[4, 3], 1)],
        sample![transposed(d, &[2, 3, 5], 1)],
        sample![strided(DType::F64, &[4, 4], 1)],
        sample![tensor(DType::C64, &[2, 4, 3], 1)],
        sample![tensor(DType::C128, &[3, 4], 1)],
        sample![tensor(d, &[0, 3], 1)],
        sample![tensor(d, &[3], 1)],
    ]
}

pub(crate) fn eigh_samples() -> Vec<Sample> {
    let mut out = square_samples();
    out.extend(with_args(regular_samples().split_off(12), vec![crate::support::samples::IntoArg::arg("U")]));
    let nan = |at: usize| {
        let mut data = [1.0f32; 9];
        data[at] = f32::NAN;
        sample![restride_tensor::RawTensor::from_slice(&data, &[3, 3])]
    };
    // The second one has its NaN in the triangle that is not read.
    out.extend([nan(6), nan(2)]);
    out
}

/// Householder vectors and their factors, as `geqrf` returns them.
pub(crate) fn reflected(d: DType, sizes: &[i64], seed: u64) -> (RawTensor, RawTensor) {
    restride_kernels::with_field!(d, T => {
        let x = tensor(d, sizes, seed);
        let all = restride_kernels::linalg::MatrixBatch::<T>::of(&x.read().view());
        let (mut vectors, mut factors) = (Vec::new(), Vec::new());
        for i in 0..all.count {
            let made = restride_kernels::linalg::reflections(all.get(i));
            vectors.extend_from_slice(&made.vectors.data);
            factors.extend_from_slice(&made.factors);
        }
        let (batch, last) = sizes.split_at(sizes.len() - 2);
        let of = |data: &[T], sizes: &[i64]| {
            let t = RawTensor::zeros(d, Layout::contiguous(sizes));
            restride_kernels::support::convert::scatter(data, &t.write().view_mut());
            t
        };
        (of(&vectors, sizes), of(&factors, &[batch, &[last[0].min(last[1])]].concat()))
    })
}
