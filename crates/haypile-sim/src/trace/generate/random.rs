//! Random numbers that are permanently the same on every machine.
//!
//! `ChaCha8` is defined bit by bit; everything that turns its output into what a trace needs is
//! here, on integers and on the functions of `libm`, because the distributions of general crates
//! are free to change their output between versions, and the system's `ln` and `exp` differ in
//! their last bits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of pseudo-random numbers that a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// Creates the random stream number `stream` of a seed; streams of one seed are independent of
    /// each other.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Returns a random integer of 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a random integer below `limit`, or 0 for the limit 0.
    ///
    /// Some are more probable than others by less than `limit` / 2^64, which no trace can show.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        below(self.next(), limit)
    }

    /// Returns a random number from 0 (included) to 1 (excluded).
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }
}

/// Scales a random integer of 64 bits to one below `limit`.
pub(super) fn below(any: u64, limit: u64) -> u64 {
    let product = u128::from(any) * u128::from(limit);
    u64::try_from(product >> 64).expect("a product of two 64-bit integers has 128 bits")
}

/// Scales a random integer of 64 bits to a number from 0 (included) to 1 (excluded), in steps of
/// 2^-53.
pub(super) fn unit(any: u64) -> f64 {
    let mantissa = (any >> 11) as f64;
    mantissa / 9_007_199_254_740_992.0
}
