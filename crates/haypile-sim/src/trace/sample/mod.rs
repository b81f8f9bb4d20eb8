//! Samples of traces: all requests for some of the keys.
//!
//! A key is in a sample if the hash of its bytes is small enough, so that a cache that is as much smaller as the sample is treats the
//! sample as the whole cache treats the whole trace: Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC Construction with SHARDS",
//! FAST 2015, for LRU, and Waldspurger, Saemundsson, Ahmad and Park, "Cache Modeling and Optimization using Miniature Simulations",
//! USENIX ATC 2017, for every policy. A sample remembers the requests that it was taken from, as far as its results have to be corrected
//! by them.

mod fixed;
mod marks;
mod take;
mod view;

pub use fixed::KeyCountPass;
pub(super) use marks::Marks;
pub(crate) use view::Mark;
pub(super) use view::check;
pub use view::{Sample, SampledTrace};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{Key, TraceError};

/// Makes the hashes of samples others than those by which a store divides its keys among shards.
const HASH_SEED: u64 = 0x5341_4d50_4c45_5253;

/// The choice of the keys of a trace's sample, by a rate and a seed.
///
/// Of two samples with the same seed the one with the smaller rate has a part of the other's keys, in every trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    rate: f64,
    seed: u64,
}

impl Sampling {
    /// Creates the choice of a share of a trace's keys (`rate`, above 0 and below 1) for a sample; another seed chooses
    /// other keys.
    ///
    /// # Errors
    /// [`TraceError::Rate`] if the share is not between 0 and 1.
    pub fn new(rate: f64, seed: u64) -> Result<Self, TraceError> {
        if rate > 0.0 && rate < 1.0 {
            Ok(Self { rate, seed })
        } else {
            Err(TraceError::Rate { rate })
        }
    }

    /// Rounds a sampling rate up to two significant digits, so that it can be written down and reproduced; also returns
    /// its number of decimals.
    pub(crate) fn rounded_up(rate: f64) -> (f64, usize) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the exponent of a rate is small, and below 2"
        )]
        let digits = (1.0 - rate.log10().floor()).max(0.0) as usize;
        let scale = 10_f64.powf(digits as f64);
        ((rate * scale).ceil() / scale, digits)
    }

    /// Returns the share of the trace's keys that the sample contains, above 0 and below 1.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the seed of the random choice of the sample's keys.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the sample contains a key.
    #[inline]
    pub fn contains(&self, key: Key<'_>) -> bool {
        self.place(key) < self.rate
    }

    /// Returns the hash of a key as a number from 0 (included) to 1 (excluded); keys whose number is below the rate are
    /// in the sample.
    #[inline]
    pub(crate) fn place(&self, key: Key<'_>) -> f64 {
        Self::place_of_bits(self.place_bits(key))
    }

    /// Returns the place of a key as a whole number of 53 bits.
    #[inline]
    fn place_bits(&self, key: Key<'_>) -> u64 {
        let seed = self.seed ^ HASH_SEED;
        let hash = match key {
            Key::Number(number) => xxh3_64_with_seed(&number.to_le_bytes(), seed),
            Key::Text(text) => xxh3_64_with_seed(text, seed),
        };
        hash >> 11
    }

    fn place_of_bits(bits: u64) -> f64 {
        bits as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use haypile_policy::rules::memory::fingerprint;

    use super::*;
    use crate::simulate::ENGINE_HASH_SEED;

    #[test]
    fn a_rate_of_two_digits_is_written_as_it_is() {
        for (rate, expected) in
            [(0.343, "0.35"), (0.0123, "0.013"), (0.00021, "0.00021"), (0.5, "0.5"), (7.21, "7.3")]
        {
            let (rounded, digits) = Sampling::rounded_up(rate);
            assert_eq!(rounded.to_string(), expected, "{rate}");
            assert!(
                rounded >= rate && format!("{rounded:.digits$}").starts_with(expected),
                "{rate}"
            );
        }
    }

    /// With the hash of the store, the keys of a sample would be those of its first shards.
    #[test]
    fn keys_of_a_sample_are_anywhere_in_a_store() {
        let sampling = Sampling::new(0.25, ENGINE_HASH_SEED).expect("between 0 and 1");
        let keys = (0..4_000).map(|number| format!("/page/{number}").into_bytes());
        let sampled: Vec<Vec<u8>> = keys.filter(|key| sampling.contains(Key::Text(key))).collect();
        let upper = |key: &&Vec<u8>| fingerprint(key, ENGINE_HASH_SEED) >> 63 == 1;
        let (all, upper) = (sampled.len(), sampled.iter().filter(upper).count());
        assert!(all.abs_diff(1_000) < 170, "{all}");
        assert!(upper.abs_diff(all / 2) < 100, "{upper} of {all}");
    }
}
