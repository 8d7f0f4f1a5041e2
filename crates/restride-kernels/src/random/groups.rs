//! Uniform and normal numbers, made in groups, as 128 random bits give several of them.
//!
//! Normal ones come from a transform of Box and Muller (A note on the generation of random normal deviates, 1958): two
//! independent ones are a point at a random angle. In a group, the numbers of 128 bits lie apart, so that vectors of bits give
//! whole vectors of numbers.

use super::generator::{Draws, RandomBits, digits};
use crate::support::convert::Compute;
use crate::support::isa::{self, Work};
use crate::support::math;
use std::ops::Range;

/// Numbers of a group.
const GROUP: usize = 64;

/// The parts of a row of `n` numbers from element `first` on that lie in one group each: the group, the place of the part in it,
/// and in the row.
// An iterator, so that callers write a loop: a closure with the loop's body would be compiled for the baseline.
fn groups(first: u64, n: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let element = first + done as u64;
        let (group, place) = (element / GROUP as u64, (element % GROUP as u64) as usize);
        let start = done;
        done = n.min(start + GROUP - place);
        (start < done).then_some((group, place, start..done))
    })
}

/// What the numbers of a row are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers<T> {
    /// Of the standard normal distribution.
    Normal,
    /// Evenly distributed from the first number to the second. The third says how many random binary digits each has.
    Uniform(T, T, u32),
}

/// Element types whose numbers are made in groups.
pub(super) trait Grouped: Compute {
    /// Numbers of the elements from `first` on.
    fn make(draws: &Draws, first: u64, what: Numbers<Self>, row: &mut [Self]);
}

impl Grouped for f32 {
    fn make(draws: &Draws, first: u64, what: Numbers<f32>, row: &mut [f32]) {
        isa::run(Singles { draws, first, what, row });
    }
}

impl Grouped for f64 {
    fn make(draws: &Draws, first: u64, what: Numbers<f64>, row: &mut [f64]) {
        isa::run(Doubles { draws, first, what, row });
    }
}

/// Singles: 128 bits give four.
struct Singles<'a> {
    draws: &'a Draws,
    first: u64,
    what: Numbers<f32>,
    row: &'a mut [f32],
}
impl Work for Singles<'_> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let Singles { draws, first, what, row } = self;
        const DRAWN: usize = GROUP / 4;
        // A copy, which no write to a result changes.
        let draws = *draws;
        for (group, place, part) in groups(first, row.len()) {
            let mut words = [[0u32; DRAWN]; 4];
            #[allow(clippy::needless_range_loop)] // four arrays side by side
            for i in 0..DRAWN {
                let bits = draws.bits(group * DRAWN as u64 + i as u64, 0);
                words[0][i] = (bits.0 >> 32) as u32;
                words[1][i] = bits.0 as u32;
                words[2][i] = (bits.1 >> 32) as u32;
                words[3][i] = bits.1 as u32;
            }
            let mut all = [0.0; GROUP];
            match what {
                Numbers::Normal => {
                    for half in 0..2 {
                        for i in 0..DRAWN {
                            let (x, y) = point(words[2 * half][i], words[2 * half + 1][i]);
                            all[2 * half * DRAWN + i] = x;
                            all[(2 * half + 1) * DRAWN + i] = y;
                        }
                    }
                }
                Numbers::Uniform(from, to, n) => {
                    let (unit, width) = (1.0 / (1u32 << n) as f32, to - from);
                    for quarter in 0..4 {
                        for i in 0..DRAWN {
                            let digits = (words[quarter][i] >> (32 - n)) as i32 as f32;
                            all[quarter * DRAWN + i] = from + digits * unit * width;
                        }
                    }
                }
            }
            let n = part.len();
            row[part].copy_from_slice(&all[place..][..n]);
        }
    }
}

/// Doubles: 128 bits give two.
struct Doubles<'a> {
    draws: &'a Draws,
    first: u64,
    what: Numbers<f64>,
    row: &'a mut [f64],
}
impl Work for Doubles<'_> {
    type Out = ();
    const WIDEST: bool = false;
    #[inline(always)]
    fn run(self) {
        let Doubles { draws, first, what, row } = self;
        const DRAWN: usize = GROUP / 2;
        let draws = *draws;
        for (group, place, part) in groups(first, row.len()) {
            let mut bits = [RandomBits::default(); DRAWN];
            for (i, bits) in bits.iter_mut().enumerate() {
                *bits = draws.bits(group * DRAWN as u64 + i as u64, 0);
            }
            let mut all = [0.0; GROUP];
            for i in 0..DRAWN {
                (all[i], all[i + DRAWN]) = match what {
                    Numbers::Normal => bits[i].normals(),
                    Numbers::Uniform(from, to, n) => {
                        (from + digits(bits[i].0, n) * (to - from), from + digits(bits[i].1, n) * (to - from))
                    }
                };
            }
            let n = part.len();
            row[part].copy_from_slice(&all[place..][..n]);
        }
    }
}

/// A point by the random bits of its distance and of its angle.
#[inline(always)]
fn point(distance: u32, angle: u32) -> (f32, f32) {
    // In `2^-32..=1`.
    let u = ((distance >> 1) as i32 as f32 + 0.5) * (1.0 / (1u32 << 31) as f32);
    let radius = (-2.0 * math::ln_usual(u)).sqrt();
    // The low 30 bits give an angle within an eighth of a turn of an axis; the two high bits choose the axis.
    let near = (angle << 2) as i32 as f32 * (std::f32::consts::FRAC_PI_4 / (1u32 << 31) as f32);
    let (along, across) = (math::cos_near(near), math::sin_near(near));
    let along = f32::from_bits(along.to_bits() ^ (angle & 1 << 31));
    if angle & 1 << 30 == 0 { (radius * along, radius * across) } else { (radius * across, radius * along) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<T: Grouped>(what: Numbers<T>, first: u64, n: usize) -> Vec<T> {
        let mut row = vec![T::default(); n];
        T::make(&Draws::new(&[5, 6]), first, what, &mut row);
        row
    }

    fn a_row_may_begin_anywhere<T: Grouped + PartialEq + std::fmt::Debug>(what: Numbers<T>) {
        let all = row(what, 0, 500);
        for (first, n) in [(0, 64), (0, 1), (3, 61), (3, 62), (63, 2), (64, 300), (100, 28), (128, 0), (499, 1)] {
            assert_eq!(row(what, first as u64, n), all[first..][..n], "{first} {n}");
        }
    }

    #[test]
    fn rows_may_begin_anywhere() {
        isa::tests::on_each(|_| {
            a_row_may_begin_anywhere(Numbers::<f64>::Normal);
            a_row_may_begin_anywhere(Numbers::Uniform(-1.0, 2.0, 53));
            a_row_may_begin_anywhere(Numbers::<f32>::Normal);
            a_row_may_begin_anywhere(Numbers::Uniform(-1.0f32, 2.0, 24));
        });
    }

    #[test]
    fn instruction_sets_give_the_same_bits() {
        for what in [Numbers::Normal, Numbers::Uniform(-1.0, 2.0, 24)] {
            let mut all = Vec::new();
            isa::tests::on_each(|_| all.push(row::<f32>(what, 7, 1000)));
            assert!(all.windows(2).all(|two| two[0] == two[1]));
        }
    }

    /// Uniform numbers in `0..1` and normal ones, by the distribution function of either: Kolmogorov and Smirnov's distance stays
    /// below 1.95 / sqrt(n) in 999 of 1,000 cases.
    fn are_distributed(x: &[f64], below: impl Fn(f64) -> f64) {
        let n = x.len() as f64;
        let mut sorted = x.to_vec();
        sorted.sort_by(f64::total_cmp);
        let distance = |(i, x): (usize, &f64)| {
            let below = below(*x);
            (below - i as f64 / n).abs().max((below - (i + 1) as f64 / n).abs())
        };
        let furthest = sorted.iter().enumerate().map(distance).fold(0.0, f64::max);
        assert!(furthest < 1.95 / n.sqrt(), "{furthest}");
    }

    /// Numbers of variance 1 around 0 and their squares (of this variance): the correlation of neighbours, and of numbers of the
    /// same bits, is below 3.3 / sqrt(n).
    fn are_independent(x: &[f64], variance: f64) {
        let n = x.len() as f64;
        for lag in [1, 16, 32, 48, 64] {
            let together = x.iter().zip(&x[lag..]).map(|(a, b)| a * b).sum::<f64>() / n;
            assert!(together.abs() < 3.3 / n.sqrt(), "{lag}: {together}");
            let squares = x.iter().zip(&x[lag..]).map(|(a, b)| (a * a - 1.0) * (b * b - 1.0)).sum::<f64>() / n;
            assert!(squares.abs() < variance * 3.3 / n.sqrt(), "{lag}: {squares}");
        }
    }

    #[test]
    fn numbers_have_their_distribution() {
        let wide = |x: Vec<f32>| x.into_iter().map(f64::from).collect::<Vec<_>>();
        for x in [row(Numbers::Normal, 0, 200_000), wide(row(Numbers::Normal, 0, 200_000))] {
            are_distributed(&x, |x| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2));
            are_independent(&x, 2.0);
        }
        for x in
            [row(Numbers::Uniform(0.0, 1.0, 53), 0, 200_000), wide(row(Numbers::Uniform(0.0, 1.0, 24), 0, 200_000))]
        {
            assert!(x.iter().all(|x| (0.0..1.0).contains(x)));
            are_distributed(&x, |x| x);
            let x: Vec<f64> = x.into_iter().map(|x| (x - 0.5) * 12f64.sqrt()).collect();
            are_independent(&x, 0.8);
        }
    }

    #[test]
    fn extremes_are_finite() {
        for distance in [0, 1, 1 << 31, u32::MAX] {
            for angle in [0, 1 << 29, 1 << 30, 1 << 31, u32::MAX] {
                let (x, y) = point(distance, angle);
                assert!(x.hypot(y) < 6.7, "{x} {y}");
            }
        }
        assert!(point(0, 1).0 > 6.6);
    }
}
