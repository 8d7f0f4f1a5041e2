//! The generator: Philox4x32-10 (Salmon and others, Parallel random numbers: as easy as 1, 2, 3, 2011).

use crate::support::isa;

const ROUNDS: usize = 10;
const FACTORS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];

/// The draws of one call.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    key: [u32; 2],
    salt: [u32; 2],
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl Draws {
    /// The draws of the call that these numbers identify.
    pub fn new(key: &[u64]) -> Draws {
        let fold = |start: u64| {
            key.iter().fold(start, |h, &k| {
                mix(h ^ mix(k.wrapping_add(0x9E37_79B9_7F4A_7C15)).rotate_left(17)).wrapping_add(start)
            })
        };
        let (a, b) = (fold(0x9E37_79B9_7F4A_7C15), fold(0xD1B5_4A32_D192_ED03));
        Draws { key: [a as u32, (a >> 32) as u32], salt: [b as u32, (b >> 32) as u32] }
    }

    /// The bits of the first turn of each of some elements, one after the other.
    pub(super) fn run(&self, first: u64, to: &mut [RandomBits]) {
        isa::run(BitsOfRun { draws: self, first, to });
    }

    /// 128 bits for an element; `turn` counts further ones.
    // Each word has 64 bits of room: compilers turn a loop over elements into vectors then.
    #[inline(always)]
    pub(super) fn bits(&self, element: u64, turn: u32) -> RandomBits {
        const LOW: u64 = u32::MAX as u64;
        let (mut a, mut b) = (element & LOW, element >> 32);
        let (mut c, mut d) = (u64::from(self.salt[0].wrapping_add(turn)), u64::from(self.salt[1]));
        let mut k = self.key;
        for _ in 0..ROUNDS {
            let (p, q) = (FACTORS[0] * (a & LOW), FACTORS[1] * (c & LOW));
            (a, b) = ((q >> 32) ^ b ^ u64::from(k[0]), q & LOW);
            (c, d) = ((p >> 32) ^ d ^ u64::from(k[1]), p & LOW);
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        RandomBits(a << 32 | b, c << 32 | d)
    }

    /// The bits of the first turn.
    pub(super) fn first(&self, element: u64) -> RandomBits {
        self.bits(element, 0)
    }
}

/// Two times 64 random bits.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct RandomBits(pub u64, pub u64);

impl RandomBits {
    /// A number in `0..1` with 53 digits.
    #[inline(always)]
    pub(super) fn unit(self) -> f64 {
        digits(self.0, 53)
    }

    /// A number in `0..=1` that is not 0.
    pub(super) fn positive(self) -> f64 {
        1.0 - self.unit()
    }

    /// Two independent numbers of the standard normal distribution.
    pub(super) fn normals(self) -> (f64, f64) {
        let radius = (-2.0 * self.positive().ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * digits(self.1, 53)).sin_cos();
        (radius * cos, radius * sin)
    }

    /// [`RandomBits::positive`], rounded: a normal number.
    #[inline(always)]
    pub(super) fn positive_single(self) -> f32 {
        (1.0 - self.unit()) as f32
    }

    /// An integer below `range` (below 2^64 if that is 0).
    pub(super) fn below(self, range: u64) -> u64 {
        if range == 0 { self.0 } else { ((self.0 as u128 * range as u128) >> 64) as u64 }
    }
}

/// The first `n` of 64 bits as a number in `0..1`.
#[inline(always)]
pub(super) fn digits(bits: u64, n: u32) -> f64 {
    (bits >> (64 - n)) as f64 / (1u64 << n) as f64
}

struct BitsOfRun<'a> {
    draws: &'a Draws,
    first: u64,
    to: &'a mut [RandomBits],
}
impl isa::Work for BitsOfRun<'_> {
    type Out = ();
    const WIDEST: bool = true;
    #[inline(always)]
    fn run(self) {
        let BitsOfRun { draws, first, to } = self;
        // A copy, which no write to a result changes. A loop: closures of iterators would be compiled for the baseline.
        let draws = *draws;
        for (i, to) in to.iter_mut().enumerate() {
            *to = draws.bits(first.wrapping_add(i as u64), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Test vectors of Philox4x32-10 (Random123's `kat_vectors`).
    #[test]
    fn the_generator_is_philox() {
        let zero = Draws { key: [0, 0], salt: [0, 0] };
        assert_eq!(zero.bits(0, 0), RandomBits(0x6627_e8d5_e169_c58d, 0xbc57_ac4c_9b00_dbd8));
        let ones = Draws { key: [u32::MAX; 2], salt: [u32::MAX; 2] };
        assert_eq!(ones.bits(u64::MAX, 0), RandomBits(0x408f_276d_41c8_3b0e, 0xa20b_c7c6_6d54_51fd));
    }

    #[test]
    fn elements_side_by_side_get_their_own_bits() {
        let draws = Draws::new(&[3, 4]);
        for first in [0, 5, u64::from(u32::MAX) - 7] {
            let want: Vec<_> = (first..first + 37).map(|i| draws.first(i)).collect();
            isa::tests::on_each(|isa| {
                let mut got = vec![RandomBits::default(); 37];
                draws.run(first, &mut got);
                assert_eq!(got, want, "{isa:?}");
            });
        }
    }
}
