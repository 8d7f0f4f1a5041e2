//! Transforms between real numbers and the first half of their spectrum, whose other half mirrors it, conjugated.
//!
//! An even count `n` of real numbers is packed as `n / 2` complex ones, `z[j] = x[2j] + i x[2j + 1]`. The transform of these holds the
//! spectra of the even and of the odd elements.

use super::{FftNumber, FftPlan, planned};
use crate::support::isa;
use crate::support::scratch::{Temp, room};
use num_complex::Complex;
use rustfft::FftDirection;
use std::sync::Arc;

/// One transform after the other of `n` numbers each.
pub(super) struct RealLines<T: FftNumber> {
    n: usize,
    plan: Option<Arc<FftPlan<T>>>,
    line: Temp<Complex<T>>,
    half: Temp<Complex<T>>,
    scratch: Temp<Complex<T>>,
}

/// Complex numbers that `n` real ones are transformed as.
fn packed(n: usize) -> usize {
    if n.is_multiple_of(2) { n / 2 } else { n }
}

impl<T: FftNumber> RealLines<T> {
    /// For `n` numbers: forward from them, or inverse to them.
    pub fn new(n: usize, direction: FftDirection) -> Self {
        let plan = (packed(n) > 1).then(|| planned::<T>(packed(n), direction));
        let zero = Complex::new(T::zero(), T::zero());
        let scratch = plan.as_ref().map_or(0, |p| p.fft.get_inplace_scratch_len());
        RealLines {
            n,
            plan,
            line: Temp::filled(packed(n), zero),
            half: Temp::filled(n / 2 + 1, zero),
            scratch: Temp::filled(scratch, zero),
        }
    }

    /// Scratch bytes for `n` numbers. Makes what a run then finds: its plan.
    pub fn room(n: usize, direction: FftDirection) -> usize {
        let lines = room::<Complex<T>>(packed(n)) + room::<Complex<T>>(n / 2 + 1);
        if packed(n) < 2 {
            return lines;
        }
        let plan = planned::<T>(packed(n), direction);
        plan.turns();
        lines + room::<Complex<T>>(plan.fft.get_inplace_scratch_len())
    }

    fn transform(&mut self) {
        if let Some(plan) = &self.plan {
            plan.fft.process_with_scratch(&mut self.line, &mut self.scratch);
        }
    }

    /// The first half of the spectrum of real numbers that are `step` apart.
    pub fn spectrum(&mut self, real: &[T], step: usize) -> &[Complex<T>] {
        let even = self.n.is_multiple_of(2);
        if even && step == 1 {
            let pairs = self.line.iter_mut().zip(real.chunks_exact(2));
            pairs.for_each(|(z, x)| *z = Complex::new(x[0], x[1]));
        } else {
            let mut real = real.iter().step_by(step).copied();
            let mut next = || real.next().unwrap_or(T::zero());
            self.line.iter_mut().for_each(|z| *z = Complex::new(next(), if even { next() } else { T::zero() }));
        }
        self.transform();
        if even {
            let turns = self.plan.as_ref().map_or(&[][..], |p| p.turns());
            isa::run(Unite { line: &self.line, turns, half: &mut self.half });
        } else {
            self.half.copy_from_slice(&self.line[..self.n / 2 + 1]);
            // The sum of real numbers, not the -0 that some plans leave, which would turn an angle of pi around.
            self.half[0].im = T::zero();
        }
        &self.half
    }

    /// Memory for the first half of a spectrum.
    pub fn half(&mut self) -> &mut [Complex<T>] {
        &mut self.half
    }

    /// The real numbers, times `scale` and `step` apart, of the spectrum whose first half is in [`RealLines::half`]. An element
    /// without a partner is real by definition: its imaginary part is ignored.
    pub fn reals(&mut self, scale: T, real: &mut [T], step: usize) {
        let n = self.n;
        self.half[0].im = T::zero();
        if !n.is_multiple_of(2) {
            self.line[..n / 2 + 1].copy_from_slice(&self.half);
            let mirrored = self.line[n / 2 + 1..].iter_mut().rev();
            mirrored.zip(&self.half[1..]).for_each(|(to, from)| *to = from.conj());
            self.transform();
            return real.iter_mut().step_by(step).zip(&self.line).for_each(|(x, z)| *x = z.re * scale);
        }
        self.half[n / 2].im = T::zero();
        let turns = self.plan.as_ref().map_or(&[][..], |p| p.turns());
        isa::run(Part { half: &self.half, turns, line: &mut self.line });
        self.transform();
        if step == 1 {
            let pairs = real.chunks_exact_mut(2).zip(&self.line);
            pairs.for_each(|(x, z)| (x[0], x[1]) = (z.re * scale, z.im * scale));
        } else {
            let parts = self.line.iter().flat_map(|z| [z.re, z.im]);
            real.iter_mut().step_by(step).zip(parts).for_each(|(x, part)| *x = part * scale);
        }
    }
}

/// The spectrum of real numbers from that of the complex numbers that they are the parts of.
struct Unite<'a, T> {
    line: &'a [Complex<T>],
    turns: &'a [Complex<T>],
    half: &'a mut [Complex<T>],
}
impl<T: FftNumber> isa::Work for Unite<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let m = self.line.len();
        let (z, half) = (self.line, &mut self.half[..m + 1]);
        half[0] = Complex::new(z[0].re + z[0].im, T::zero());
        half[m] = Complex::new(z[0].re - z[0].im, T::zero());
        let by = T::of(0.5);
        for k in 1..=m / 2 {
            let (a, b, w) = (z[k], z[m - k], self.turns[k]);
            let (sum_re, sum_im) = ((a.re + b.re) * by, (a.im - b.im) * by);
            // What differs, turned by -90 degrees.
            let (re, im) = ((a.im + b.im) * by, (b.re - a.re) * by);
            let (odd_re, odd_im) = (w.re * re - w.im * im, w.re * im + w.im * re);
            half[k] = Complex::new(sum_re + odd_re, sum_im + odd_im);
            half[m - k] = Complex::new(sum_re - odd_re, odd_im - sum_im);
        }
    }
}

/// The inverse of [`Unite`], times two.
struct Part<'a, T> {
    half: &'a [Complex<T>],
    turns: &'a [Complex<T>],
    line: &'a mut [Complex<T>],
}
impl<T: FftNumber> isa::Work for Part<'_, T> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let m = self.line.len();
        let (x, line) = (&self.half[..m + 1], self.line);
        line[0] = Complex::new(x[0].re + x[m].re, x[0].re - x[m].re);
        for k in 1..=m / 2 {
            let (a, b, w) = (x[k], x[m - k], self.turns[k]);
            let (sum_re, sum_im) = (a.re + b.re, a.im - b.im);
            let (re, im) = (a.re - b.re, a.im + b.im);
            // Turned back.
            let (odd_re, odd_im) = (w.re * re + w.im * im, w.re * im - w.im * re);
            line[k] = Complex::new(sum_re - odd_im, sum_im + odd_re);
            line[m - k] = Complex::new(sum_re + odd_im, odd_re - sum_im);
        }
    }
}
