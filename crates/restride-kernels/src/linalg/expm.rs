//! The exponential function of matrices.

use super::{Field, Matrix, lu, lu_room, matrix_room};

/// Up to this norm the approximation of degree 13 is exact in double precision (Higham, 2005).
const NORM: f64 = 5.371920351148152;

/// Coefficients of the approximation (Padé's) of degree 13.
const PADE: [f64; 14] = [
    64_764_752_532_480_000.0,
    32_382_376_266_240_000.0,
    7_771_770_303_897_600.0,
    1_187_353_796_428_800.0,
    129_060_195_264_000.0,
    10_559_470_521_600.0,
    670_442_572_800.0,
    33_522_128_640.0,
    1_323_241_920.0,
    40_840_800.0,
    960_960.0,
    16_380.0,
    182.0,
    1.0,
];

/// `exp(a)`: scaled to a small norm, approximated by a ratio of polynomials, squared as often as it was halved.
pub fn matrix_exp<T: Field>(a: &Matrix<T>) -> Matrix<T> {
    let n = a.rows;
    let mut out = Matrix::zeros(n, n);
    let norm = (0..n).map(|c| (0..n).map(|r| a[(r, c)].abs()).sum::<f64>()).fold(0.0, f64::max);
    if !norm.is_finite() {
        out.data.fill(T::real(f64::NAN));
        return out;
    }
    let halvings = if norm > NORM { (norm / NORM).log2().ceil() as i32 } else { 0 };
    let mut x = a.clone();
    let scale = 0.5f64.powi(halvings);
    x.data.iter_mut().for_each(|x| *x = x.scaled(scale));
    let (mut x2, mut x4, mut x6) = (Matrix::zeros(n, n), Matrix::zeros(n, n), Matrix::zeros(n, n));
    x2.product(&x, &x);
    x4.product(&x2, &x2);
    x6.product(&x4, &x2);
    let sum = |c: [f64; 4], out: &mut Matrix<T>| {
        for i in 0..n * n {
            let unit = if i % (n + 1) == 0 { T::real(c[0]) } else { T::ZERO };
            out.data[i] += unit + x2.data[i].scaled(c[1]) + x4.data[i].scaled(c[2]) + x6.data[i].scaled(c[3]);
        }
    };
    // The odd part is x times a polynomial of even powers.
    let (mut part, mut even, mut odd) = (Matrix::zeros(n, n), Matrix::zeros(n, n), Matrix::zeros(n, n));
    sum([0.0, PADE[9], PADE[11], PADE[13]], &mut part);
    even.product(&x6, &part);
    sum([PADE[1], PADE[3], PADE[5], PADE[7]], &mut even);
    odd.product(&x, &even);
    part.data.fill(T::ZERO);
    sum([0.0, PADE[8], PADE[10], PADE[12]], &mut part);
    even.product(&x6, &part);
    sum([PADE[0], PADE[2], PADE[4], PADE[6]], &mut even);
    for i in 0..n * n {
        let (e, o) = (even.data[i], odd.data[i]);
        (even.data[i], odd.data[i]) = (e - o, e + o);
    }
    // Scratch is returned in reverse order.
    let factors = lu(even.clone());
    let solved = factors.solve(odd);
    out.data.copy_from_slice(&solved.data);
    drop(factors);
    drop(solved);
    for _ in 0..halvings {
        part.product(&out, &out);
        out.data.copy_from_slice(&part.data);
    }
    out
}

/// Bytes of scratch of [`matrix_exp`], its result among them.
pub fn matrix_exp_room<T: Field>(n: usize) -> usize {
    8 * matrix_room::<T>(n, n) + lu_room::<T>(n, n)
}
