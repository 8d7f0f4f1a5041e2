//! Between complex numbers and their parts.

use super::{Input, PointwiseError, drive};
use crate::support::convert::{Compute, Kind};
use crate::support::isa;
use crate::support::number::Real;
use num_complex::Complex;
use restride_tensor::{C32, C64, DType, View, ViewMut};

/// A real number taken from a complex one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Absolute value.
    Abs,
    /// Angle.
    Angle,
    /// Real part.
    Real,
    /// Imaginary part.
    Imag,
}

/// How two real numbers make a complex one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// Real and imaginary part.
    Parts,
    /// Absolute value and angle.
    Polar,
}

/// Takes a real number from each element of a complex tensor.
///
/// # Panics
/// If `a` does not broadcast to the sizes of `out`.
pub fn part(which: Part, a: View<'_>, out: &ViewMut<'_>) -> Result<(), PointwiseError> {
    match Kind::of(a.dtype()) {
        Kind::C32 => parts_of::<f32>(which, a, out),
        Kind::C64 => parts_of::<f64>(which, a, out),
        _ => Err(PointwiseError::Undefined(a.dtype())),
    }
}

fn parts_of<F: Real>(which: Part, a: View<'_>, out: &ViewMut<'_>) -> Result<(), PointwiseError>
where
    Complex<F>: Compute,
{
    drive::<Complex<F>, F>(a.dtype(), &[Input::View(a)], out, 1, &|xs, row| {
        let pairs = row.iter_mut().zip(xs[0]);
        match which {
            Part::Abs => pairs.for_each(|(to, z)| *to = z.re.hypot(z.im)),
            Part::Angle => isa::run(AnglesOfRow(xs[0], row)),
            Part::Real => pairs.for_each(|(to, z)| *to = z.re),
            Part::Imag => pairs.for_each(|(to, z)| *to = z.im),
        }
        Ok(())
    })
}

struct AnglesOfRow<'a, F>(&'a [Complex<F>], &'a mut [F]);
impl<F: Real> isa::Work for AnglesOfRow<'_, F> {
    type Out = ();
    const VECTORS: bool = size_of::<F>() == 4;
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        self.1.iter_mut().zip(self.0).for_each(|(angle, z)| *angle = z.im.atan2_fast(z.re));
    }
}

/// Makes complex numbers of pairs of real ones of type `common`.
///
/// # Panics
/// If an operand does not broadcast to the sizes of `out`.
pub fn join(how: Join, common: DType, a: View<'_>, b: View<'_>, out: &ViewMut<'_>) -> Result<(), PointwiseError> {
    let inputs = [Input::View(a), Input::View(b)];
    match Kind::of(common) {
        Kind::F32 => drive::<f32, C32>(common, &inputs, out, 1, &|xs, row| joined(how, xs, row)),
        Kind::F64 => drive::<f64, C64>(common, &inputs, out, 1, &|xs, row| joined(how, xs, row)),
        _ => Err(PointwiseError::Undefined(common)),
    }
}

fn joined<F: Real>(how: Join, xs: &[&[F]], row: &mut [Complex<F>]) -> Result<(), PointwiseError> {
    for ((z, &x), &y) in row.iter_mut().zip(xs[0]).zip(xs[1]) {
        *z = match how {
            Join::Parts => Complex::new(x, y),
            Join::Polar => Complex::new(x * y.cos(), x * y.sin()),
        };
    }
    Ok(())
}
