//! The contents of a shard and the policy over them: everything that its lock protects.

mod budget;
mod count;
mod leases;
mod leave;
mod load;
mod look;
mod write;

use std::collections::HashSet;
use std::sync::Arc;

use haypile_policy::Policy;
use haypile_policy::rules::memory::charge;
use haypile_policy::slab::Slab;
use haypile_policy::table::Table;

use super::expiry::Expiries;
use super::record::Record;
use crate::clock::Clock;
use crate::groups::Words;
use crate::mutant;
use crate::stats::{EventCounters, Stats};
use crate::store::{Cursor, Page};

use leases::Removals;

pub(super) use count::Uncounted;
pub(super) use load::{Kept, Load};
pub(super) use look::Look;
pub(super) use write::{Outcome, Write};

/// The key of an entry and its hash (fingerprint).
#[derive(Clone, Copy)]
pub(super) struct HashedKey<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) fingerprint: u64,
}

/// The settings of a shard (a part with a lock of its own) of the memory store, the same for all
/// its shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Whether the shard is the only one of its memory store.
    pub(super) is_alone: bool,
    /// The time of day at the store's clock's zero, in seconds of the Unix epoch, if the store
    /// records when entries are written.
    pub(super) notes_time_from_s: Option<u64>,
    /// The version number that entries of a new shard exceed: each write to the shard adds to it.
    pub(super) version: u64,
}

#[derive(Debug)]
pub(super) struct Contents<P> {
    policy: P,
    slab: Slab<Record>,
    /// The index of slots by fingerprint.
    index: Table,
    expiries: Expiries,
    counters: EventCounters,
    /// The sum of the entries' charges.
    bytes: u64,
    /// Bytes claimed from the pool; `bytes` never exceeds it.
    budget: u64,
    /// The shard's part of the store's size, in bytes.
    fair_share: u64,
    /// The capacity that was reported to the policy.
    policy_capacity: u64,
    /// The version of the last write.
    version: u64,
    /// The number of slots that the policy is prepared for.
    policy_slots: usize,
    /// The number of entries that have been removed since slots were last dropped.
    left: usize,
    is_alone: bool,
    /// The clock's zero in seconds of the Unix epoch, if the time of writing is recorded; see
    /// [`Options`].
    notes_time_from_s: Option<u64>,
    removals: Removals,
    /// The clock and the words of groups, which all shards of the store have.
    groups: Arc<Words>,
    /// The fingerprints of the keys that were written or deleted while a snapshot is loaded: an
    /// older value does not replace a newer one, and a deleted entry does not come back.
    changed: Option<HashSet<u64>>,
    /// The process that loads the snapshot.
    loaded_in: u64,
    is_closed: bool,
}

impl<P: Policy> Contents<P> {
    /// Returns an empty shard of a memory store, whose eviction policy was created for `fair_share`
    /// bytes.
    pub(super) fn new(policy: P, fair_share: u64, options: Options, groups: Arc<Words>) -> Self {
        let Options { is_alone, notes_time_from_s, version } = options;
        Self {
            policy,
            slab: Slab::default(),
            index: Table::default(),
            expiries: Expiries::default(),
            counters: EventCounters::default(),
            bytes: 0,
            budget: 0,
            fair_share,
            policy_capacity: fair_share,
            version,
            policy_slots: 0,
            left: 0,
            is_alone,
            notes_time_from_s,
            removals: Removals::default(),
            groups,
            changed: None,
            loaded_in: 0,
            is_closed: false,
        }
    }

    pub(super) fn add_to(&self, stats: &mut Stats) {
        self.counters.add_to(stats);
        stats.entries += self.len();
        stats.bytes += self.bytes;
    }

    pub(super) fn len(&self) -> u64 {
        self.slab.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Makes this shard of the memory store refuse all operations from now on. Its entries stay, so
    /// that they can be saved. Returns whether the shard was open.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.is_closed, true)
    }

    /// Returns the time, if an entry depends on it; otherwise any value.
    fn now_ns(&self, clock: &dyn Clock) -> u64 {
        if self.expiries.is_idle() && self.notes_time_from_s.is_none() { 0 } else { clock.now_ns() }
    }

    /// Returns a page of a shard's keys: those in the `limit` slots below `end`, or in the last
    /// slots. Entries only ever move to lower slots, so that a descending iteration misses none.
    pub(super) fn keys(&self, end: Option<u64>, limit: usize, clock: &dyn Clock) -> Page {
        let end = end.map_or(usize::MAX, |end| usize::try_from(end).unwrap_or(usize::MAX));
        let end = end.min(self.slab.slots());
        let start = end.saturating_sub(limit.max(1));
        let now_ns = self.now_ns(clock);
        let records = self.slab.range(start..end).filter(|record| self.is_valid(record, now_ns));
        let keys = records.map(|record| record.key().to_vec()).collect();
        Page { keys, next: (start > 0).then(|| Cursor::new(0, start as u64)) }
    }

    /// Returns whether an entry has neither expired nor been invalidated by a group.
    #[inline]
    fn is_valid(&self, record: &Record, now_ns: u64) -> bool {
        let expires_ns = record.expires_ns();
        expires_ns == u64::MAX || expires_ns > now_ns && !self.is_invalid(record)
    }

    /// Returns whether a group of an entry was invalidated since it was written. It has an expiry, if it is in groups.
    fn is_invalid(&self, record: &Record) -> bool {
        record.has_groups()
            && self.groups.are_invalid(record.marks())
            && !mutant::is_on("memory-invalidations-are-not-seen")
    }

    /// Returns the number of bytes that a shard of the memory store has allocated in addition to
    /// its records.
    pub(super) fn metadata_bytes(&self) -> usize {
        self.policy.metadata_bytes()
            + self.slab.metadata_bytes()
            + self.index.memory_bytes()
            + self.removals.metadata_bytes()
    }
}

fn key_of(record: &Record) -> HashedKey<'_> {
    HashedKey { bytes: record.key(), fingerprint: record.fingerprint() }
}

fn charge_of(record: &Record) -> u64 {
    charge_of_lengths(record.lengths())
}

/// Returns the number of bytes by which an entry with a key and a value of these lengths counts
/// against the store's size. The value's length includes the hashes of its groups.
#[inline]
pub(super) fn charge_of_lengths((key_bytes, marked_bytes): (usize, usize)) -> u64 {
    charge(key_bytes as u64, marked_bytes as u64)
}
