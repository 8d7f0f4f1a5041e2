//! A small deterministic generator: a seed is the same program everywhere.

/// Choices from given bytes, then by SplitMix64 from the seed.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed, bytes: Vec::new(), used: 0 }
    }

    /// From bytes, one a choice: a fuzzer that changes a byte changes a choice.
    pub fn from_bytes(bytes: &[u8]) -> Rng {
        Rng { state: 0, bytes: bytes.to_vec(), used: 0 }
    }

    /// 64 bits, or the next byte.
    pub fn bits(&mut self) -> u64 {
        if let Some(&b) = self.bytes.get(self.used) {
            self.used += 1;
            return u64::from(b);
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to `n`, exclusive; `n` is positive.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// From `lo` to `hi`, inclusive.
    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.bits() % (hi - lo + 1) as u64) as i64
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.bits() % 100 < percent
    }

    /// A random item.
    ///
    /// # Panics
    /// The slice is empty.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
