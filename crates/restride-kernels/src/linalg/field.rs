//! Elements of a matrix: real or complex numbers in double precision.

use super::{Lu, Matrix, Reflections, SingularVectors, Svd, bidiagonal, cholesky, lu, qr, tridiagonal};
use crate::matmul::Gemm;
use crate::support::scratch::Temp;
use restride_tensor::C64;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// `f64` and `C64`, which all matrices are computed in.
pub trait Field:
    Gemm
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// Whether numbers have an imaginary part.
    const COMPLEX: bool;
    /// Zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// A real number.
    fn real(x: f64) -> Self;
    /// Real part.
    fn re(self) -> f64;
    /// Imaginary part.
    fn im(self) -> f64;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// Absolute value.
    fn abs(self) -> f64;
    /// Square of the absolute value.
    fn square(self) -> f64 {
        self.re() * self.re() + self.im() * self.im()
    }
    /// LAPACK's measure of pivots: the sum of both parts' absolute values.
    fn size(self) -> f64 {
        self.re().abs() + self.im().abs()
    }
    /// Times a real number.
    fn scaled(self, x: f64) -> Self;
    /// Direction; 1 for zero.
    fn direction(self) -> Self {
        let r = self.abs();
        if r == 0.0 { Self::ONE } else { self.scaled(1.0 / r) }
    }

    // A generic function is compiled with its callers, which are compiled for size; these are compiled here.

    /// [`super::eigh`].
    fn eigh(a: &Matrix<Self>, upper: bool, wanted: bool) -> (Temp<f64>, Matrix<Self>);
    /// [`super::svd`].
    fn svd(a: &Matrix<Self>, vectors: SingularVectors) -> Svd<Self>;
    /// [`super::cholesky`].
    fn cholesky(a: &Matrix<Self>) -> (Matrix<Self>, i64);
    /// [`super::lu`].
    fn lu(a: Matrix<Self>) -> Lu<Self>;
    /// [`super::triangular`].
    fn triangular(a: &Matrix<Self>, b: &mut Matrix<Self>, upper: bool, unit: bool);
    /// [`super::reflections`].
    fn reflections(a: Matrix<Self>) -> Reflections<Self>;
    /// Makes Q of ones on the diagonal.
    fn fill_q(q: &mut Matrix<Self>, vectors: &Matrix<Self>, factors: &[Self]);
    /// [`super::apply_q`].
    fn apply_q(vectors: &Matrix<Self>, factors: &[Self], c: &mut Matrix<Self>, left: bool, adjoint: bool);
}

/// The functions of [`Field`] that are compiled for each of them.
macro_rules! compiled {
    () => {
        fn eigh(a: &Matrix<Self>, upper: bool, wanted: bool) -> (Temp<f64>, Matrix<Self>) {
            tridiagonal::eigh_of(a, upper, wanted)
        }
        fn svd(a: &Matrix<Self>, vectors: SingularVectors) -> Svd<Self> {
            bidiagonal::svd_of(a, vectors)
        }
        fn cholesky(a: &Matrix<Self>) -> (Matrix<Self>, i64) {
            cholesky::cholesky_of(a)
        }
        fn lu(a: Matrix<Self>) -> Lu<Self> {
            lu::lu_of(a)
        }
        fn triangular(a: &Matrix<Self>, b: &mut Matrix<Self>, upper: bool, unit: bool) {
            lu::triangular_of(a, b, upper, unit);
        }
        fn reflections(a: Matrix<Self>) -> Reflections<Self> {
            qr::reflections_of(a)
        }
        fn fill_q(q: &mut Matrix<Self>, vectors: &Matrix<Self>, factors: &[Self]) {
            qr::fill_q_of(q, vectors, factors);
        }
        fn apply_q(vectors: &Matrix<Self>, factors: &[Self], c: &mut Matrix<Self>, left: bool, adjoint: bool) {
            qr::apply_q_of(vectors, factors, c, left, adjoint);
        }
    };
}

impl Field for f64 {
    compiled!();
    const COMPLEX: bool = false;
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn real(x: f64) -> f64 {
        x
    }
    fn re(self) -> f64 {
        self
    }
    fn im(self) -> f64 {
        0.0
    }
    fn conj(self) -> f64 {
        self
    }
    fn abs(self) -> f64 {
        f64::abs(self)
    }
    fn scaled(self, x: f64) -> f64 {
        self * x
    }
}

impl Field for C64 {
    compiled!();
    const COMPLEX: bool = true;
    const ZERO: C64 = C64::new(0.0, 0.0);
    const ONE: C64 = C64::new(1.0, 0.0);
    fn real(x: f64) -> C64 {
        C64::new(x, 0.0)
    }
    fn re(self) -> f64 {
        self.re
    }
    fn im(self) -> f64 {
        self.im
    }
    fn conj(self) -> C64 {
        C64::conj(&self)
    }
    fn abs(self) -> f64 {
        self.norm()
    }
    fn scaled(self, x: f64) -> C64 {
        C64::new(self.re * x, self.im * x)
    }
}

/// Runs the body with `$t` bound to the type that matrices of an element type are computed in.
#[macro_export]
macro_rules! with_field {
    ($dtype:expr, $t:ident => $body:expr) => {
        if $dtype.is_complex() {
            type $t = restride_tensor::C64;
            $body
        } else {
            type $t = f64;
            $body
        }
    };
}
