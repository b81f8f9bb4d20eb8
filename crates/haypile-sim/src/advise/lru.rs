//! The sizes that LRU needs, found by simulating it.
//!
//! The curve of LRU is right by objects. By bytes it is an estimate, and it knows no shards: it says where
//! to begin.

use std::collections::BTreeMap;

use haypile_number::{printed_place, printed_size};

use crate::Trace;
use crate::simulate::{
    Accounting, Contender, Counts, Monitor, Options, SimulateError, Windows, simulate,
};

/// The part of the first guess by which the search begins to move.
const FIRST_STEP: u64 = 500;

/// A search for the cache size that LRU needs, by simulations of round sizes, so that the printed size is one that was
/// simulated.
pub(super) struct LruSearch<'a> {
    trace: &'a Trace,
    options: Options,
    monitor: &'a dyn Monitor,
    /// The smallest and the largest size that a cache can have, in the unit of the accounting.
    range: (u64, u64),
    /// Counts of the simulations done so far, by printed size.
    known: BTreeMap<u64, Counts>,
}

/// The reason why the search for the cache size that LRU needs ended without a result: it was interrupted, or a size
/// cannot be simulated.
pub(super) enum Stopped {
    Ended,
    Failed(SimulateError),
}

impl From<SimulateError> for Stopped {
    fn from(error: SimulateError) -> Self {
        Self::Failed(error)
    }
}

impl<'a> LruSearch<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        options: &Options,
        monitor: &'a dyn Monitor,
        range: (u64, u64),
    ) -> Self {
        let options = Options { windows: Windows::default(), ..*options };
        Self { trace, options, monitor, range, known: BTreeMap::new() }
    }

    /// Returns the smallest round cache size at which the counts of a simulation of LRU satisfy `is_enough`; `None` if
    /// no size does. The search begins at `guess`, and assumes that a larger cache never has fewer hits.
    pub(super) fn smallest(
        &mut self,
        guess: u64,
        is_enough: impl Fn(&Counts) -> bool,
    ) -> Result<Option<u64>, Stopped> {
        let (first, last) = (self.place(self.range.0), self.place(self.range.1));
        // A size that is printed as less than the smallest one is none.
        let first = if self.size(first) < self.range.0 { first + 1 } else { first };
        let guess = self.place(guess).clamp(first, last);
        let mut step = (guess / FIRST_STEP).max(1);
        let mut enough = guess;
        // Upwards until it is enough, or downwards until it is not.
        let mut too_small = if is_enough(&self.counts(guess)?) {
            loop {
                if enough == first {
                    return Ok(Some(self.size(first)));
                }
                let lower = enough.saturating_sub(step).max(first);
                if !is_enough(&self.counts(lower)?) {
                    break lower;
                }
                (enough, step) = (lower, step * 2);
            }
        } else {
            loop {
                if enough == last {
                    return Ok(None);
                }
                let lower = enough;
                enough = enough.saturating_add(step).min(last);
                if is_enough(&self.counts(enough)?) {
                    break lower;
                }
                step = step.saturating_mul(2);
            }
        };
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if is_enough(&self.counts(middle)?) {
                enough = middle;
            } else {
                too_small = middle;
            }
        }
        Ok(Some(self.size(enough)))
    }

    fn counts(&mut self, place: u64) -> Result<Counts, Stopped> {
        if let Some(counts) = self.known.get(&place) {
            return Ok(*counts);
        }
        let lru = Contender::Policy("lru".parse().expect("a policy that exists"));
        let mut progress = |requests| self.monitor.advance(requests);
        let outcome = simulate(self.trace, &lru, self.size(place), &self.options, &mut progress)?;
        let counts = outcome.ok_or(Stopped::Ended)?.counts;
        self.known.insert(place, counts);
        Ok(counts)
    }

    fn place(&self, size: u64) -> u64 {
        if self.options.accounting == Accounting::Objects { size } else { printed_place(size) }
    }

    fn size(&self, place: u64) -> u64 {
        if self.options.accounting == Accounting::Objects { place } else { printed_size(place) }
    }
}
