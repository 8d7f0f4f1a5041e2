//! Eigenvalues and vectors of any square matrix: reduction to Hessenberg's form by reflections, then shifted QR steps by plane
//! rotations down to a triangle (Schur's form), whose vectors are found by substitution.
//!
//! All of it is computed in complex numbers. Eigenvalues of a real matrix are brought into conjugate pairs afterwards.

use super::vectors::scale_of;
use super::{Field, Matrix, matrix_room};
use crate::support::scratch::{Temp, room};
use restride_tensor::C64;

/// QR steps for each eigenvalue: far more than any needs.
const STEPS: usize = 300;

/// Eigenvalues, and vectors as columns where they are wanted: each of norm 1 and with a real largest element, as LAPACK's.
#[derive(Debug)]
pub struct Eig {
    /// Vectors, or nothing.
    pub vectors: Matrix<C64>,
    /// Values.
    pub values: Temp<C64>,
}

/// Bytes of scratch of [`eig`], its results among them.
pub fn eig_room(n: usize) -> usize {
    3 * matrix_room::<C64>(n, n) + 3 * room::<C64>(n) + room::<usize>(n)
}

/// Eigenvalues and vectors of a matrix that was real if `real`.
///
/// # Errors
/// If the steps do not converge, or the matrix is not finite.
pub fn eig(a: &Matrix<C64>, real: bool, wanted: bool) -> Result<Eig, String> {
    let n = a.rows;
    let mut values = Temp::filled(n, C64::ZERO);
    let mut vectors: Matrix<C64> = Matrix::zeros(n, if wanted { n } else { 0 });
    if a.data.iter().any(|x| !x.re.is_finite() || !x.im.is_finite()) {
        return Err("input tensor should not contain infs or NaNs.".into());
    }
    let scale = scale_of(&a.data);
    let mut h = a.clone();
    h.data.iter_mut().for_each(|x| *x = x.scaled(scale));
    let mut q = Matrix::eye(n, if wanted { n } else { 0 });
    hessenberg(&mut h, &mut q, wanted);
    triangle(&mut h, &mut q, wanted)?;
    (0..n).for_each(|i| values[i] = h[(i, i)]);
    let mut order: Temp<usize> = (0..n).collect();
    if real {
        pair(&mut values, &mut order, size(&h));
    }
    if wanted {
        let mut x = Temp::filled(n, C64::ZERO);
        for to in 0..n {
            if real && values[to].im < 0.0 {
                // The second of a pair mirrors the first.
                (0..n).for_each(|r| vectors[(r, to)] = vectors[(r, to - 1)].conj());
                continue;
            }
            substitute(&h, &q, order[to], &mut x, &mut vectors, to);
            if real && values[to].im == 0.0 {
                (0..n).for_each(|r| vectors[(r, to)].im = 0.0);
                normalize(&mut vectors, to);
            }
        }
    }
    values.iter_mut().for_each(|x| *x = x.scaled(1.0 / scale));
    Ok(Eig { vectors, values })
}

/// The sum of all elements' sizes, the scale of rounding errors.
fn size(h: &Matrix<C64>) -> f64 {
    h.data.iter().map(|x| x.size()).sum()
}

/// Zeros below the first diagonal under the main one, by reflections from both sides.
fn hessenberg(h: &mut Matrix<C64>, q: &mut Matrix<C64>, wanted: bool) {
    let n = h.rows;
    let mut v = Temp::filled(n, C64::ZERO);
    for j in 0..n.saturating_sub(2) {
        let below = (j + 2..n).map(|r| h[(r, j)].square()).sum::<f64>();
        if below == 0.0 {
            continue;
        }
        let alpha = h[(j + 1, j)];
        let norm = (alpha.square() + below).sqrt();
        let beta = -alpha.direction().scaled(norm);
        (j + 1..n).for_each(|r| v[r] = h[(r, j)]);
        v[j + 1] = alpha - beta;
        let tau = 2.0 / (j + 1..n).map(|r| v[r].square()).sum::<f64>();
        for c in j..n {
            let mut dot = C64::ZERO;
            (j + 1..n).for_each(|r| dot += v[r].conj() * h[(r, c)]);
            (j + 1..n).for_each(|r| h[(r, c)] -= dot.scaled(tau) * v[r]);
        }
        let right = |m: &mut Matrix<C64>| {
            for r in 0..n {
                let mut dot = C64::ZERO;
                (j + 1..n).for_each(|c| dot += m[(r, c)] * v[c]);
                (j + 1..n).for_each(|c| m[(r, c)] -= dot.scaled(tau) * v[c].conj());
            }
        };
        right(h);
        if wanted {
            right(q);
        }
        (j + 2..n).for_each(|r| h[(r, j)] = C64::ZERO);
    }
}

/// QR steps until nothing is left under the diagonal.
fn triangle(h: &mut Matrix<C64>, q: &mut Matrix<C64>, wanted: bool) -> Result<(), String> {
    let n = h.rows;
    let (norm, mut end, mut steps) = (size(h), n, 0);
    while end > 1 {
        let last = end - 1;
        // The last row of the active part under which something is left.
        let mut from = last;
        while from > 0 {
            let near = h[(from - 1, from - 1)].size() + h[(from, from)].size();
            let near = if near == 0.0 { norm } else { near };
            if h[(from, from - 1)].size() <= f64::EPSILON * near {
                h[(from, from - 1)] = C64::ZERO;
                break;
            }
            from -= 1;
        }
        if from == last {
            (end, steps) = (last, 0);
            continue;
        }
        if steps == STEPS {
            return Err("the algorithm failed to converge".into());
        }
        steps += 1;
        let shift = if steps % 10 == 0 {
            // An exceptional shift, as in LAPACK, where the usual one goes round in circles.
            h[(last, last)] + C64::real(0.75 * h[(last, last - 1)].abs())
        } else {
            nearer(h[(last - 1, last - 1)], h[(last - 1, last)], h[(last, last - 1)], h[(last, last)])
        };
        step(h, q, wanted, from, end, shift);
    }
    Ok(())
}

/// The eigenvalue of a matrix of two rows that is nearer to its last element (Wilkinson's shift).
fn nearer(a: C64, b: C64, c: C64, d: C64) -> C64 {
    let half = (a - d).scaled(0.5);
    let root = (half * half + b * c).sqrt();
    // Without cancellation: the product of both roots is known.
    let sum = if (half + root).abs() >= (half - root).abs() { half + root } else { half - root };
    if sum == C64::ZERO { d } else { d - b * c / sum }
}

/// One QR step with a shift on rows and columns `from..end`: the bulge that a first rotation makes is chased down.
fn step(h: &mut Matrix<C64>, q: &mut Matrix<C64>, wanted: bool, from: usize, end: usize, shift: C64) {
    let n = h.rows;
    let (mut x, mut y) = (h[(from, from)] - shift, h[(from + 1, from)]);
    for k in from..end - 1 {
        let r = (x.square() + y.square()).sqrt();
        let (c, s) = if r == 0.0 { (C64::ONE, C64::ZERO) } else { (x.scaled(1.0 / r), y.scaled(1.0 / r)) };
        for j in k.saturating_sub(1).max(from)..n {
            let (a, b) = (h[(k, j)], h[(k + 1, j)]);
            (h[(k, j)], h[(k + 1, j)]) = (c.conj() * a + s.conj() * b, c * b - s * a);
        }
        let right = |m: &mut Matrix<C64>, rows: usize| {
            for i in 0..rows {
                let (a, b) = (m[(i, k)], m[(i, k + 1)]);
                (m[(i, k)], m[(i, k + 1)]) = (a * c + b * s, b * c.conj() - a * s.conj());
            }
        };
        right(h, (k + 3).min(end));
        if wanted {
            right(q, n);
        }
        if k + 2 < end {
            (x, y) = (h[(k + 1, k)], h[(k + 2, k)]);
        }
    }
    (from..end.saturating_sub(2)).for_each(|k| h[(k + 2, k)] = C64::ZERO);
}

/// The vector of a triangle's eigenvalue `k`, turned by `q`, into column `to` of `out`.
fn substitute(h: &Matrix<C64>, q: &Matrix<C64>, k: usize, x: &mut [C64], out: &mut Matrix<C64>, to: usize) {
    let n = h.rows;
    // (The square of the least one is a number above zero, which divisions ask for.)
    let least = (f64::EPSILON * size(h)).max(1e-150);
    x[k] = C64::ONE;
    for i in (0..k).rev() {
        let mut rest = -h[(i, k)];
        (i + 1..k).for_each(|j| rest -= h[(i, j)] * x[j]);
        let mut d = h[(i, i)] - h[(k, k)];
        if d.abs() < least {
            d = C64::real(least);
        }
        x[i] = rest / d;
        // Scaled back before it overflows.
        if x[i].size() > 1e100 {
            let scale = 1.0 / x[i].size();
            (i..=k).for_each(|j| x[j] = x[j].scaled(scale));
        }
    }
    for r in 0..n {
        let mut sum = C64::ZERO;
        (0..=k).for_each(|j| sum += q[(r, j)] * x[j]);
        out[(r, to)] = sum;
    }
    normalize(out, to);
}

/// Norm 1, and a real and positive largest element.
fn normalize(m: &mut Matrix<C64>, k: usize) {
    let norm = (0..m.rows).map(|r| m[(r, k)].square()).sum::<f64>().sqrt();
    let largest = (0..m.rows).fold(0, |best, r| if m[(r, k)].square() > m[(best, k)].square() { r } else { best });
    let turn = m[(largest, k)].direction().conj().scaled(1.0 / norm);
    (0..m.rows).for_each(|r| m[(r, k)] *= turn);
    m[(largest, k)].im = 0.0;
}

/// Brings the eigenvalues of a real matrix into conjugate pairs, the one above the real axis first, next to each other.
fn pair(values: &mut [C64], order: &mut [usize], size: f64) {
    let n = values.len();
    let least = 16.0 * f64::EPSILON * size;
    let mut i = 0;
    while i < n {
        // Its partner is nearest to its mirror image; a real value has none.
        let image = values[i].conj();
        let near = |j: usize| (values[j] - image).abs();
        let best = (i..n).fold(i, |best, j| if near(j) < near(best) { j } else { best });
        if best == i || near(i) <= least {
            values[i].im = 0.0;
            i += 1;
            continue;
        }
        let mean = (image + values[best]).scaled(0.5);
        // The partner moves up; values between keep their order.
        values[i + 1..=best].rotate_right(1);
        order[i + 1..=best].rotate_right(1);
        if values[i].im < values[i + 1].im {
            order.swap(i, i + 1);
        }
        (values[i], values[i + 1]) = (C64::new(mean.re, mean.im.abs()), C64::new(mean.re, -mean.im.abs()));
        i += 2;
    }
}
