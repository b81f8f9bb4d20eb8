//! Random numbers of a few lines: Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators" (2014), known as `SplitMix64`. They are the same on every machine and in any
//! language, forever.

/// Added to the state for each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A generator of pseudo-random numbers (`SplitMix64`), determined by a seed.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator of pseudo-random numbers with this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next pseudo-random number of 64 bits.
    pub const fn number(&mut self) -> u64 {
        let number = first(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }
}

/// Returns the first pseudo-random number of a seed. Different seeds have different first numbers.
pub const fn first(seed: u64) -> u64 {
    mix(seed.wrapping_add(STEP))
}

/// Returns the pseudo-random number at position `at` (from 0) in the sequence of a seed, without computing those before
/// it.
pub const fn nth(seed: u64, at: u64) -> u64 {
    first(seed.wrapping_add(STEP.wrapping_mul(at)))
}

/// Mixes the bits of a number: a change of one input bit changes about half of the output bits, and
/// different inputs have different outputs.
pub const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_others_publish() {
        // The first numbers of the reference implementation for the seed 1234567.
        let mut numbers = SplitMix64::new(1_234_567);
        assert_eq!(numbers.number(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.number(), 3_203_168_211_198_807_973);
        assert_eq!(nth(1_234_567, 1), 3_203_168_211_198_807_973);
    }
}
