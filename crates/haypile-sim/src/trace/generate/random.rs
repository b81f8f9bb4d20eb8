//! Random numbers that are permanently the same on every machine.
//!
//! `ChaCha8` is defined bit by bit; everything that turns its output into what a trace needs is
//! here, on integers and on the functions of `libm`, because the distributions of general crates
//! are free to change their output between versions, and the system's `ln` and `exp` differ in
//! their last bits.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random numbers, determined by a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// Creates the stream `stream` of `seed`; streams of one seed are independent of each other.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Returns any integer.
    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns an integer below `limit`, or 0 for the limit 0.
    ///
    /// Some are more probable than others by less than `limit` / 2^64, which no trace can show.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        below(self.next(), limit)
    }

    /// Returns a number of at least 0 and less than 1.
    pub(crate) fn unit(&mut self) -> f64 {
        unit(self.next())
    }
}

/// Scales any integer to one below `limit`.
pub(super) fn below(any: u64, limit: u64) -> u64 {
    let product = u128::from(any) * u128::from(limit);
    u64::try_from(product >> 64).expect("a product of two 64-bit integers has 128 bits")
}

/// Scales any integer to at least 0 and less than 1, in steps of 2^-53.
pub(super) fn unit(any: u64) -> f64 {
    let mantissa = (any >> 11) as f64;
    mantissa / 9_007_199_254_740_992.0
}
