//! The first of two passes for a sample with a fixed number of keys.

use std::collections::{BinaryHeap, HashSet};

use foldhash::fast::RandomState;

use super::Sampling;
use crate::trace::{Key, Request, Sink, TraceError};

/// The first pass over a trace for a sample with a stated number of keys: it finds the rate at which a [`Sampling`] has them.
///
/// It holds the smallest hashes alone, so that its memory is bounded by the number of keys that the sample shall have, and not by
/// those of the trace (some 30 bytes each). The second pass reads the trace again, with the rate that was found.
#[derive(Debug)]
pub struct KeyCountPass {
    /// Places keys; its rate means nothing.
    places: Sampling,
    keys: usize,
    /// The smallest places, one more than the sample shall have keys.
    smallest: BinaryHeap<u64>,
    /// Those in `smallest`.
    is_among: HashSet<u64, RandomState>,
}

impl KeyCountPass {
    /// Creates the first pass for a sample with `keys` keys; another seed chooses other keys.
    pub fn new(keys: u32, seed: u64) -> Self {
        Self {
            places: Sampling { rate: 1.0, seed },
            keys: keys as usize,
            smallest: BinaryHeap::new(),
            is_among: HashSet::default(),
        }
    }

    /// Takes the key of a request; each may come any number of times.
    #[inline]
    pub fn add(&mut self, key: Key<'_>) {
        let place = self.places.place_bits(key);
        let is_full = self.smallest.len() > self.keys;
        if is_full && self.smallest.peek().is_some_and(|largest| place >= *largest) {
            return;
        }
        if !self.is_among.insert(place) {
            return;
        }
        self.smallest.push(place);
        if is_full && let Some(largest) = self.smallest.pop() {
            self.is_among.remove(&largest);
        }
    }

    /// Returns the sampling with the stated number of keys of those that were added; `None` if there are not more than that, so
    /// that the sample would be the whole trace.
    pub fn sampling(mut self) -> Option<Sampling> {
        let first_out = self.smallest.pop().filter(|_| self.smallest.len() >= self.keys)?;
        let rate = Sampling::place_of_bits(first_out);
        Sampling::new(rate, self.places.seed).ok()
    }
}

impl Sink for KeyCountPass {
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self.add(request.key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_sample_has_the_keys_that_were_asked_for(
            keys in prop::collection::vec(0_u64..400, 0..600),
            wanted in 1_u32..300,
            seed: u64,
        ) {
            let mut pass = KeyCountPass::new(wanted, seed);
            for &key in &keys {
                pass.add(Key::Number(key));
                prop_assert!(pass.smallest.len() <= wanted as usize + 1);
                prop_assert_eq!(pass.smallest.len(), pass.is_among.len());
            }
            let distinct: HashSet<u64> = keys.into_iter().collect();
            match pass.sampling() {
                None => prop_assert!(distinct.len() <= wanted as usize),
                Some(sampling) => {
                    let chosen = distinct.iter().filter(|&&key| sampling.contains(Key::Number(key)));
                    prop_assert_eq!(chosen.count(), wanted as usize);
                    prop_assert_eq!(sampling.seed(), seed);
                }
            }
        }
    }
}
