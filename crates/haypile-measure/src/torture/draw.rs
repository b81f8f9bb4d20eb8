//! Random numbers that runners in all languages draw alike.

use haypile_number::splitmix::SplitMix64;
pub(super) use haypile_number::splitmix::{mix, nth as word};

/// A generator of random numbers and random choices.
#[derive(Clone, Debug)]
pub(super) struct Draw(SplitMix64);

impl Draw {
    /// Creates a generator of random numbers from a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Returns a random number of 64 bits.
    pub(super) fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// Returns a random number below `end`; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }

    /// Returns a random number below `end`, small ones more often: the lowest tenth of the numbers
    /// is drawn nearly half of the time.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "53 bits, and less than a number that is not negative"
    )]
    pub(super) fn skewed(&mut self, end: u64) -> u64 {
        let share = (self.number() >> 11) as f64 / (1_u64 << 53) as f64;
        (end as f64 * share * share * share) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_others_publish() {
        // The first numbers of the reference implementation for the seed 1234567.
        let mut draw = Draw::new(1_234_567);
        assert_eq!(draw.number(), 6_457_827_717_110_365_317);
        assert_eq!(draw.number(), 3_203_168_211_198_807_973);
        assert_eq!(word(1_234_567, 1), 3_203_168_211_198_807_973);
    }

    #[test]
    fn small_numbers_come_more_often() {
        let mut draw = Draw::new(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| draw.skewed(1_000)).collect();
        assert!(drawn.iter().all(|&number| number < 1_000));
        let hot = drawn.iter().filter(|&&number| number < 100).count();
        assert!((4_400..4_900).contains(&hot), "{hot}");
    }
}
