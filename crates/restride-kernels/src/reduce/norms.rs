//! Norms and variances of rows.

use super::{fold_terms, largest, smallest, terms, total};
use crate::support::number::{Inexact, Ordered, Real as _};
use num_traits::Float as _;
use restride_tensor::C64;

/// The p-norm of absolute values.
pub(crate) fn norm<T: Inexact>(row: &[T], p: f64) -> T::Abs {
    let zero = T::Abs::of(0.0);
    let size = |x: T| x.magnitude();
    if p == 0.0 {
        total(row, |x: T| if x.truth() { T::Abs::of(1.0) } else { zero })
    } else if p == 1.0 {
        total(row, size)
    } else if p == 2.0 {
        total(row, |x: T| squared(x)).sqrt()
    } else if p == f64::INFINITY {
        fold_terms(row.len(), 1, zero, largest, &terms(row, size))
    } else if p == f64::NEG_INFINITY {
        fold_terms(row.len(), 1, T::Abs::MOST, smallest, &terms(row, size))
    } else {
        let p = T::Abs::of(p);
        total(row, |x: T| x.magnitude().powf(p)).powf(T::Abs::of(1.0) / p)
    }
}

/// The square of the absolute value.
#[inline(always)]
pub(super) fn squared<T: Inexact>(x: T) -> T::Abs {
    if const { T::DTYPE.is_complex() } {
        let (re, im) = x.parts();
        T::Abs::of(re * re + im * im)
    } else {
        let x = x.magnitude();
        x * x
    }
}

/// In double precision, as PyTorch's accumulators are.
pub(super) fn variance<T: Inexact>(row: &[T], correction: f64) -> f64 {
    let n = row.len() as f64;
    let parts = |x: T| {
        let (re, im) = x.parts();
        C64::new(re, im)
    };
    let sum = total(row, parts);
    let mean = (sum.re / n, sum.im / n);
    let squares = total(row, |x: T| {
        let (re, im) = x.parts();
        let (re, im) = (re - mean.0, im - mean.1);
        re * re + im * im
    });
    squares / (n - correction).max(0.0)
}
