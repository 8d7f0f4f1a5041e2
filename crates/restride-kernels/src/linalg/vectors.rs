//! The loops over rows of numbers that decompositions are made of: the same bits on all instruction sets. One copy of each is enough.

use super::Field;
use crate::support::isa;

/// Shorter rows are not worth the choice of an instruction set.
const SHORT: usize = 16;
/// Sums of a scalar product, side by side.
const LANES: usize = 8;

/// `to -= f * x`, element by element.
#[inline(never)]
pub(super) fn subtract<T: Field>(to: &mut [T], f: T, x: &[T]) {
    run(to.len(), Subtract { to, f, x });
}

/// The scalar product of `a`, conjugate, and `b`.
#[inline(never)]
pub(super) fn dot<T: Field>(a: &[T], b: &[T]) -> T {
    run(a.len(), Dot { a, b })
}

/// A rotation of two rows: `a` becomes `cos a + sin b`, `b` becomes `cos b - sin a`.
#[inline(never)]
pub(super) fn rotate<T: Field>(a: &mut [T], b: &mut [T], cos: f64, sin: f64) {
    run(a.len(), Rotate { a, b, cos, sin });
}

/// The reflection (Householder's) `H = I - tau v vᴴ` that turns a row into its first element: `Hᴴ x = beta e`, where `beta` is real.
/// The row becomes `v`, which begins with 1; returns `beta` and `tau`.
pub(super) fn reflect<T: Field>(x: &mut [T]) -> (f64, T) {
    let [first, rest @ ..] = x else { return (0.0, T::ZERO) };
    let alpha = std::mem::replace(first, T::ONE);
    let below = rest.iter().map(|x| x.square()).sum::<f64>();
    if below == 0.0 && alpha.im() == 0.0 {
        return (alpha.re(), T::ZERO);
    }
    let beta = -(alpha.square() + below).sqrt().copysign(alpha.re());
    let scale = T::ONE / (alpha - T::real(beta));
    rest.iter_mut().for_each(|x| *x *= scale);
    (beta, (T::real(beta) - alpha).scaled(1.0 / beta))
}

/// A power of two that brings numbers near 1, so that no square over- or underflows.
pub(super) fn scale_of<T: Field>(numbers: &[T]) -> f64 {
    let most = numbers.iter().map(|x| x.size()).fold(0.0, f64::max);
    if most > 0.0 { 2f64.powi(-most.log2().clamp(-1000.0, 1000.0).round() as i32) } else { 1.0 }
}

#[inline(always)]
fn run<W: isa::Work>(len: usize, work: W) -> W::Out {
    if len < SHORT { work.run() } else { isa::run(work) }
}

struct Subtract<'a, T> {
    to: &'a mut [T],
    f: T,
    x: &'a [T],
}
impl<T: Field> isa::Work for Subtract<'_, T> {
    type Out = ();
    const VECTORS: bool = !T::COMPLEX;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        for (to, &x) in self.to.iter_mut().zip(self.x) {
            *to -= self.f * x;
        }
    }
}

struct Dot<'a, T> {
    a: &'a [T],
    b: &'a [T],
}
impl<T: Field> isa::Work for Dot<'_, T> {
    type Out = T;
    const VECTORS: bool = !T::COMPLEX;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) -> T {
        let mut sums = [T::ZERO; LANES];
        let ((a, rest), (b, others)) = (self.a.as_chunks::<LANES>(), self.b.as_chunks::<LANES>());
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                sums[i] += a[i].conj() * b[i];
            }
        }
        for (sum, (a, &b)) in sums.iter_mut().zip(rest.iter().zip(others)) {
            *sum += a.conj() * b;
        }
        let [a, b, c, d, e, f, g, h] = sums;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

struct Rotate<'a, T> {
    a: &'a mut [T],
    b: &'a mut [T],
    cos: f64,
    sin: f64,
}
impl<T: Field> isa::Work for Rotate<'_, T> {
    type Out = ();
    const VECTORS: bool = !T::COMPLEX;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let (cos, sin) = (self.cos, self.sin);
        for (a, b) in self.a.iter_mut().zip(self.b) {
            (*a, *b) = (a.scaled(cos) + b.scaled(sin), b.scaled(cos) - a.scaled(sin));
        }
    }
}
