//! Sample calls of pooling operators.

pub(crate) use crate::support::samples::*;

/// Sample operands with `n` dimensions to pool over.
fn operands(n: usize) -> Vec<RawTensor> {
    let d = DType::F32;
    let sizes = |n: usize| -> Vec<i64> { [2, 3].into_iter().chain([7, 8, 9][3 - n..].iter().copied()).collect() };
    let x = sizes(n);
    let mut out: Vec<RawTensor> = forms(d, &x, 1).into();
    out.push(expanded(d, &x, 4));
    out.push(tensor(d, &x[1..], 5));
    // Channels fastest, which counts as channels-last from two dimensions on.
    let mut perm: Vec<usize> = (0..x.len()).collect();
    let channels = perm.remove(1);
    perm.push(channels);
    out.push(crate::support::samples::laid(d, Layout::permuted(&x, &perm), 6));
    let mut empty = x.clone();
    empty[0] = 0;
    out.push(tensor(d, &empty, 7));
    out.push(tensor(DType::F64, &x, 8));
    let nan = tensor(d, &x, 8);
    let mut data = nan.to_elements::<f32>();
    data.iter_mut().step_by(7).for_each(|v| *v = f32::NAN);
    data.iter_mut().skip(1).step_by(3).for_each(|v| *v = f32::NEG_INFINITY);
    out.push(RawTensor::from_slice(&data, &x));
    out
}

/// Kernel size, stride, padding and `ceil_mode`.
fn settings(n: usize) -> Vec<(Vec<i64>, Vec<i64>, Vec<i64>, bool)> {
    let first = |v: [i64; 3]| v[..n].to_vec();
    vec![
        (first([3, 2, 3]), vec![], first([0, 0, 0]), false),
        (first([3, 3, 2]), first([2, 2, 1]), first([1, 1, 1]), false),
        (first([2, 3, 4]), first([2, 3, 3]), first([1, 1, 2]), true),
        (first([3, 3, 3]), first([2, 3, 2]), first([0, 0, 0]), true),
        (vec![1], vec![1], vec![0], false),
    ]
}

pub(crate) fn maxima(n: usize) -> Samples {
    let mut out = Vec::new();
    for x in operands(n) {
        for (k, s, p, ceil) in settings(n) {
            out.push(sample![&x, &k[..], &s[..], &p[..], [1], ceil]);
        }
    }
    let sizes: Vec<i64> = [2, 3].into_iter().chain([7, 8, 9][3 - n..].iter().copied()).collect();
    let x = tensor(DType::F32, &sizes, 1);
    out.push(sample![&x, [3], [2], [1], [2]]);
    out.push(sample![&x, [2], [1], [1], [3]]);
    out.push(sample![&x, [3], [2], [2], [1]]);
    out.push(sample![&x, [11]]);
    out.push(sample![tensor(DType::I64, &sizes, 1), [3], [2]]);
    for d in [DType::F16, DType::BF16] {
        out.push(sample![transposed(d, &sizes, 1), [3], [2], [1]]);
    }
    out
}

pub(crate) fn means(n: usize) -> Samples {
    let mut out = Vec::new();
    for x in operands(n) {
        for (k, s, p, ceil) in settings(n) {
            for include in [true, false] {
                out.push(sample![&x, &k[..], &s[..], &p[..], ceil, include]);
            }
        }
    }
    let sizes: Vec<i64> = [2, 3].into_iter().chain([7, 8, 9][3 - n..].iter().copied()).collect();
    let x = tensor(DType::F32, &sizes, 1);
    if n > 1 {
        out.push(sample![&x, [3], [2], [1], true, false, 5]);
        out.push(sample![&x, [3], [2], [1], true, false, 0]);
    }
    out.push(sample![tensor(DType::I64, &sizes, 1), [3], [2]]);
    out.push(sample![tensor(DType::I32, &sizes, 1), [3], [2]]);
    if n < 3 {
        for d in [DType::F16, DType::BF16] {
            out.push(sample![transposed(d, &sizes, 1), [3], [2], [1]]);
        }
    }
    out
}

pub(crate) fn adaptive(n: usize) -> Samples {
    let mut out = Vec::new();
    for x in operands(n) {
        for size in [[1, 1, 1], [3, 2, 4], [9, 5, 11], [7, 8, 9]] {
            out.push(sample![&x, &size[..n]]);
        }
    }
    let sizes: Vec<i64> = [2, 3].into_iter().chain([7, 8, 9][3 - n..].iter().copied()).collect();
    for d in [DType::F16, DType::BF16] {
        out.push(sample![transposed(d, &sizes, 1), &[2, 3, 4][..n]]);
        out.push(sample![transposed(d, &sizes, 1), &[1, 1, 1][..n]]);
    }
    out.push(sample![tensor(DType::I64, &sizes, 1), &[2, 3, 4][..n]]);
    out
}

/// Pairs of an operand and a gradient whose pooled dimensions have `sizes`.
fn pairs(n: usize, sizes: &[i64]) -> Vec<(RawTensor, RawTensor)> {
    let with = |x: RawTensor| {
        let rank = x.read().view().sizes().len();
        let mut g = x.read().view().sizes().to_vec();
        g[rank - n..].copy_from_slice(sizes);
        let g = if rank == n + 2 { transposed(x.dtype(), &g, 3) } else { tensor(x.dtype(), &g, 3) };
        (g, x)
    };
    operands(n).into_iter().map(with).collect()
}

/// Result sizes in the pooled dimensions, for kernel 3, stride 2 and padding 1.
const HALVED: [i64; 3] = [4, 4, 5];

/// Valid indices of maxima: any element of the plane serves.
fn indices(g: &RawTensor, n: usize, x: &RawTensor) -> RawTensor {
    let plane: i64 = x.read().view().sizes()[x.read().view().sizes().len() - n..].iter().product();
    in_range(DType::I64, Layout::contiguous(g.read().view().sizes()), 11, 0.0, plane as f64)
}

pub(crate) fn maxima_backward(n: usize) -> Samples {
    let one: SampleArg = [1i64].arg();
    let sized = pairs(n, &HALVED[3 - n..]);
    sized.iter().map(|(g, x)| sample![g, x, [3], [2], one.clone(), one.clone(), false, indices(g, n, x)]).collect()
}

pub(crate) fn means_backward(n: usize) -> Samples {
    let mut out = Vec::new();
    for (g, x) in pairs(n, &HALVED[3 - n..]) {
        out.push(sample![&g, &x, [3], [2], [1], false, true, ()]);
        out.push(sample![&g, &x, [3], [2], [1], false, false, ()]);
        out.push(sample![&g, &x, [3], [2], [1], false, true, 7]);
    }
    out
}

pub(crate) fn adaptive_maxima_backward(n: usize) -> Samples {
    pairs(n, &[3, 2, 4][..n]).iter().map(|(g, x)| sample![g, x, indices(g, n, x)]).collect()
}

pub(crate) fn adaptive_means_backward(n: usize) -> Samples {
    let mut out = Vec::new();
    for sizes in [[3, 2, 4], [1, 1, 1], [8, 9, 10]] {
        out.extend(pairs(n, &sizes[..n]).iter().map(|(g, x)| sample![g, x]));
    }
    out
}
