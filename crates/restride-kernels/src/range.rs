//! Numbers at equal distances, and identity matrices.

use crate::support::isa;
use crate::support::number::Number;
use crate::support::pack::{Target, fill, with_compute};
use restride_tensor::{Layout, ViewMut};

/// How each number is rounded on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// To `f32`.
    Single,
    /// Not at all.
    Double,
}

/// `start + i * step` for each index, each operation rounded.
pub fn steps(precision: Precision, start: f64, step: f64, out: &mut [f64]) {
    counted(precision, start, step, (0.0, 1.0), out);
}

/// `end - i * step` for each index counted from the last, each operation rounded.
pub fn steps_back(precision: Precision, end: f64, step: f64, out: &mut [f64]) {
    // A product of the opposite step is rounded to the opposite.
    counted(precision, end, -step, (out.len() as f64 - 1.0, -1.0), out);
}

/// Numbers whose indices are counted in 32 bits.
const PART: usize = 1 << 16;

/// Sums of `start` and as many steps as `first`, each with `by` more.
fn counted(precision: Precision, start: f64, step: f64, (first, by): (f64, f64), out: &mut [f64]) {
    for (number, part) in out.chunks_mut(PART).enumerate() {
        let first = first + by * (number * PART) as f64;
        match precision {
            Precision::Single => isa::run(Equidistant([start, step, first, by], part, |x| f64::from(x as f32))),
            Precision::Double => isa::run(Equidistant([start, step, first, by], part, |x| x)),
        }
    }
}

/// Start, step, first index, and from one index to the next; the numbers; how they are rounded.
struct Equidistant<'a, F>([f64; 4], &'a mut [f64], F);
impl<F: Fn(f64) -> f64> isa::Work for Equidistant<'_, F> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let Equidistant([start, step, first, by], out, round) = self;
        for (i, x) in out.iter_mut().enumerate() {
            *x = round(start + round(step * (first + by * f64::from(i as i32))));
        }
    }
}

/// `start + i * step` for each index, in wrapping integers.
pub fn integers(start: i64, step: i64, out: &ViewMut<'_>) {
    let mut target = Target::<i64>::new(out);
    let mut next = start;
    for x in target.slice() {
        *x = next;
        next = next.wrapping_add(step);
    }
    target.finish();
}

/// Ones where both indices of a matrix are equal, zeros elsewhere.
pub fn identity(out: &ViewMut<'_>) {
    let (sizes, strides) = (out.sizes(), &out.layout().strides);
    let diagonal = Layout {
        sizes: [sizes[0].min(sizes[1])].into_iter().collect(),
        strides: [strides[0] + strides[1]].into_iter().collect(),
        offset: out.layout().offset,
    };
    // SAFETY: cells of the result.
    let diagonal = unsafe { out.with_layout(&diagonal) };
    with_compute!(any out.dtype(), T => {
        fill(out, T::ZERO);
        fill(&diagonal, T::ONE);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use restride_tensor::{DType, RawTensor};

    #[test]
    fn steps_are_rounded_one_by_one() {
        let n = if cfg!(miri) { 10 } else { PART + 7 };
        let (start, step) = (f64::from(0.1f32), f64::from(1e-3f32));
        let mut out = vec![0.0; n];
        isa::tests::on_each(|isa| {
            steps(Precision::Single, start, step, &mut out);
            assert!((0..n).all(|i| out[i] as f32 == 0.1f32 + ((step * i as f64) as f32)), "{isa:?}");
            steps_back(Precision::Single, start, step, &mut out);
            assert!((0..n).all(|i| out[i] as f32 == 0.1f32 - ((step * (n - 1 - i) as f64) as f32)), "{isa:?}");
            steps(Precision::Double, 0.1, 1e-3, &mut out);
            assert!((0..n).all(|i| out[i] == 0.1 + 1e-3 * i as f64), "{isa:?}");
        });
    }

    #[test]
    fn zeros_at_the_end_keep_their_sign() {
        let mut out = [0.0; 2];
        for (end, step, sign) in [(-0.0, 1.0, true), (-0.0, -1.0, false), (0.0, 1.0, false)] {
            steps_back(Precision::Double, end, step, &mut out);
            assert_eq!((out[0], out[1].is_sign_negative()), (-step, sign));
        }
        let out = RawTensor::zeros(DType::U8, Layout::contiguous(&[3]));
        integers(250, 5, &out.write().view_mut());
        assert_eq!(out.to_elements::<u8>(), [250, 255, 4]);
    }

    #[test]
    fn identities_are_of_every_type_and_shape() {
        for dtype in DType::ALL {
            for (n, m) in [(3, 3), (2, 4), (4, 2), (0, 3)] {
                let out = RawTensor::zeros(dtype, Layout::contiguous(&[n, m]));
                identity(&out.write().view_mut());
                let want: Vec<i64> = (0..n * m).map(|i| i64::from(i / m == i % m)).collect();
                assert_eq!(crate::support::convert::gather::<i64>(out.read().view())[..], want, "{dtype} {n} {m}");
            }
        }
    }
}
