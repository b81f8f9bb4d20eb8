//! Belady's MIN: the policy that knows the future, and so the bound on what any other can do.

use zerocopy::little_endian::U32;

use super::Counts;
use super::far_future::FarFuture;
use super::run::{Cached, UNSTORED};
use crate::trace::Op;

/// The value that a trace's next-use column has where a key is never asked for again.
const NEVER: u32 = u32::MAX;

/// A simulated cache that evicts the entry whose next read is farthest in the future (Belady's MIN, the offline
/// optimum).
///
/// L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
/// Journal 5(2), 1966. Optimal where all entries weigh the same; with different weights finding
/// the optimum is NP-hard, and this is the usual approximation: evict the farthest until the
/// newcomer fits.
///
/// What matters is when an entry is *read* again: one that is written or deleted before is worth
/// nothing until then, however soon that is.
///
/// The next use of an entry is a request number, and no two entries share one, so that a set of
/// numbers serves as the queue and the trace itself says whose number it is.
#[derive(Debug)]
pub(super) struct Belady<'a> {
    ids: &'a [U32],
    next_use: &'a [U32],
    /// The operations of the requests; `None` where all are reads.
    ops: Option<&'a [u8]>,
    may_decline: bool,
    /// Next uses, all of them reads, of entries in the cache.
    upcoming: FarFuture,
    /// Next uses of entries in the cache that are written or deleted before they are read.
    outdated: FarFuture,
    /// Entries in the cache that are never asked for again.
    done: Vec<u32>,
    /// State of each key, indexed by id, as in [`Driver`](super::Driver): 0 never stored, 1 not there, above 1 the
    /// weight plus 1.
    keys: Vec<u64>,
    capacity: u64,
    used: u64,
    entries: u64,
    counts: Counts,
}

impl<'a> Belady<'a> {
    /// Creates an empty cache of Belady's policy. With `may_decline`, a new entry that would itself
    /// be evicted next is not stored; otherwise it must be.
    pub(super) fn new(
        ids: &'a [U32],
        next_use: &'a [U32],
        ops: Option<&'a [u8]>,
        keys: u32,
        capacity: u64,
        may_decline: bool,
    ) -> Self {
        Self {
            ids,
            next_use,
            ops,
            may_decline,
            upcoming: FarFuture::new(ids.len()),
            outdated: FarFuture::new(ops.map_or(0, <[u8]>::len)),
            done: Vec::new(),
            keys: vec![0; keys as usize],
            capacity,
            used: 0,
            entries: 0,
            counts: Counts::default(),
        }
    }

    fn is_there(&self, id: u32) -> bool {
        self.keys[id as usize] > 1
    }

    fn is_read(&self, at: usize) -> bool {
        self.ops.is_none_or(|ops| Op::from_number(ops[at]) == Op::Read)
    }

    /// Returns the next request of the key of request `at`, past writes that change nothing; `None` if nothing follows.
    fn next(&self, mut at: usize) -> Option<usize> {
        loop {
            let next = self.next_use[at].get();
            if next == NEVER {
                return None;
            }
            at = next as usize;
            if self.ops.is_none_or(|ops| ops[at] != UNSTORED) {
                return Some(at);
            }
        }
    }

    /// Returns the request that reads what request `at` leaves in the cache; `None` if nothing reads it.
    fn next_read(&self, at: usize) -> Option<usize> {
        self.next(at).filter(|next| self.is_read(*next))
    }

    /// Notes when the entry that request `at` touches is asked for again.
    fn expect_again(&mut self, at: usize, id: u32) {
        match self.next(at) {
            None => self.done.push(id),
            Some(next) if self.is_read(next) => self.upcoming.insert(next),
            Some(next) => self.outdated.insert(next),
        }
    }

    fn leave(&mut self, id: u32) {
        self.used -= self.keys[id as usize] - 1;
        self.entries -= 1;
        self.keys[id as usize] = 1;
    }

    /// Evicts until `weight` more fit for a newcomer that is read at `next_read`. `false` where the newcomer is the one
    /// to give up.
    fn make_room(&mut self, weight: u64, next_read: Option<usize>) -> bool {
        while self.used + weight > self.capacity {
            if let Some(id) = self.done.pop() {
                self.leave(id);
            } else if let Some(next) = self.outdated.max() {
                self.outdated.remove(next);
                self.leave(self.ids[next].get());
            } else {
                let farthest = self.upcoming.max().expect("an entry to evict");
                if self.may_decline && next_read.is_none_or(|next| next >= farthest) {
                    return false;
                }
                self.upcoming.remove(farthest);
                self.leave(self.ids[farthest].get());
            }
            self.counts.evictions += 1;
        }
        true
    }

    fn store(&mut self, at: usize, id: u32, weight: u64) {
        self.keys[id as usize] = 1;
        let next_read = self.next_read(at);
        let useless = self.may_decline && next_read.is_none();
        if weight > self.capacity || useless || !self.make_room(weight, next_read) {
            self.counts.refused += 1;
            return;
        }
        self.keys[id as usize] = weight + 1;
        self.used += weight;
        self.entries += 1;
        self.expect_again(at, id);
    }

    fn drop_entry(&mut self, at: usize, id: u32) {
        if self.is_there(id) {
            self.outdated.remove(at);
            self.leave(id);
        }
    }
}

impl Cached for Belady<'_> {
    fn read(&mut self, at: usize, id: u32, size_bytes: u64, weight: impl FnOnce() -> Option<u64>) {
        if self.is_there(id) {
            self.counts.hits += 1;
            self.counts.hit_bytes += size_bytes;
            self.upcoming.remove(at);
            self.expect_again(at, id);
            return;
        }
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += u64::from(self.keys[id as usize] == 0);
        match weight() {
            Some(weight) => self.store(at, id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn write(&mut self, at: usize, id: u32, weight: Option<u64>) {
        self.counts.writes += 1;
        let Some(weight) = weight.filter(|weight| *weight <= self.capacity) else {
            self.counts.refused += 1;
            // RelStorage, whose limit it is if there is no weight, leaves the old value. Of all others a cache without a
            // bound would have the new value, and no cache has the old one.
            if weight.is_some() {
                self.drop_entry(at, id);
                self.keys[id as usize] = 1;
            }
            return;
        };
        // The old value is worth nothing now; the new one is a newcomer with a known future.
        self.drop_entry(at, id);
        self.store(at, id, weight);
    }

    fn read_resizing(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        match weight {
            Some(weight) if self.is_there(id) && self.keys[id as usize] != weight + 1 => {
                self.counts.hits += 1;
                self.counts.hit_bytes += size_bytes;
                self.upcoming.remove(at);
                self.leave(id);
                self.store(at, id, weight);
            }
            _ => self.read(at, id, size_bytes, || weight),
        }
    }

    fn read_changed(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += 1;
        self.drop_entry(at, id);
        self.keys[id as usize] = 0;
        match weight {
            Some(weight) => self.store(at, id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn delete(&mut self, at: usize, id: u32) {
        self.counts.deletes += 1;
        self.drop_entry(at, id);
        self.keys[id as usize] = 0;
    }

    fn expire(&mut self, _id: u32) {
        unreachable!("it is not simulated where entries expire");
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn entries(&self) -> u64 {
        self.entries
    }

    fn metadata_bytes(&self) -> usize {
        let requests = self.ids.len() + self.ops.map_or(0, <[u8]>::len);
        self.keys.capacity() * size_of::<u64>() + requests / 8
    }
}
