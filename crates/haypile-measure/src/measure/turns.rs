//! The order of the contenders within blocks.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Streams of random numbers below this are for other purposes.
const STREAMS: u64 = 1 << 33;
/// The stream of the orders of cases: there are fewer cases than lie between the two.
const CASES: u64 = 1 << 34;

/// A generator of random orders in which contenders (caches) are measured, each order equally
/// probable. The same seed gives the same orders in every version.
#[derive(Debug)]
pub struct Turns {
    random: ChaCha8Rng,
    order: Vec<usize>,
}

impl Turns {
    /// Creates the generator of random orders for a case with a number of contenders.
    pub fn new(seed: u64, case: usize, contenders: usize) -> Self {
        Self { random: stream(seed, STREAMS + case as u64), order: (0..contenders).collect() }
    }

    /// Creates the generator of random orders of the cases themselves, where each block has all of
    /// them.
    pub(super) fn of_cases(seed: u64, cases: usize) -> Self {
        Self { random: stream(seed, CASES), order: (0..cases).collect() }
    }

    /// Draws the random order of the contenders (as their numbers) within the next block.
    pub fn next_block(&mut self) -> Vec<usize> {
        shuffle(&mut self.random, &mut self.order);
        self.order.clone()
    }
}

fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(number);
    random
}

/// Shuffles elements into a random order: each order is equally probable.
pub fn shuffle<T>(random: &mut ChaCha8Rng, elements: &mut [T]) {
    for last in (1..elements.len()).rev() {
        // Scaled to 0..=last; the error is far below what blocks can show.
        let drawn = u128::from(random.next_u64()) * (last as u128 + 1);
        elements.swap(last, usize::try_from(drawn >> 64).expect("at most last"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_and_each_contender_once() {
        let mut turns = Turns::new(1, 0, 3);
        let mut seen: Vec<Vec<usize>> = (0..200).map(|_| turns.next_block()).collect();
        for order in &seen {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }

    #[test]
    fn seeds_and_cases_have_their_own() {
        let orders = |seed, case| {
            let mut turns = Turns::new(seed, case, 5);
            [turns.next_block(), turns.next_block()]
        };
        assert_eq!(orders(1, 0), orders(1, 0));
        assert_ne!(orders(1, 0), orders(2, 0));
        assert_ne!(orders(1, 0), orders(1, 1));
    }
}
