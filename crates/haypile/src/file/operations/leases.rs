//! Leases: the knowledge that their holders had of a key, and whether it still holds.

use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::file::area::{Area, Holder, Key, OpError};
use crate::file::index::removals::Removals;
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;
use crate::groups::Hashes;
use crate::lease::Lease;
use crate::mutant;
use crate::removals::Since;

/// The key that a lease (a right to store a computed value) is for, with its namespace and groups,
/// whose changes revoke the lease.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct LeasedKey<'a, G> {
    pub(in crate::file) area: &'a Area<G>,
    pub(in crate::file) key: Key<'a>,
    /// The hash of the key's namespace, whose clearing revokes the lease.
    pub(in crate::file) namespace: Option<u64>,
    /// The groups of entries that the value written under the lease will belong to.
    pub(in crate::file) groups: Option<&'a Hashes>,
}

/// The knowledge of a lease's holder.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The number of the key's entry.
    entry: u64,
    /// The count of removals in the line of the key.
    removals: u64,
    /// The clock of groups, which namespaces are cleared by as well.
    clock: u64,
}

/// The entry of a key, expired or not, as a lease on the key records it: its version, none, or
/// unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum KnownEntry {
    None,
    Version(u64),
    /// The key has an entry that is damaged.
    Unreadable,
}

impl KnownEntry {
    /// Returns the entry, as a lease records it, that a search for the key found; `None` if the
    /// entry changed each time that it was read.
    pub(in crate::file) fn of(search: &Search) -> Option<Self> {
        match search {
            Search::Found(seen) => Some(Self::Version(seen.version)),
            Search::Nothing => Some(Self::None),
            Search::Damaged => Some(Self::Unreadable),
            Search::Contended => None,
        }
    }

    /// Returns a number for it. No entry has version zero, and all have less than 64 bits.
    fn number(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Version(version) => version,
            Self::Unreadable => u64::MAX,
        }
    }
}

impl<G: Ground> LeasedKey<'_, G> {
    /// Grants a lease on the key (a right to store its value), without a lock. Any later change of
    /// the key makes the key's state differ from the lease.
    pub(in crate::file) fn grant(&self) -> Result<Lease, OpError> {
        let Self { area, key, .. } = self;
        let epoch = area.epoch();
        let clock = area.group_clock();
        let removals = Removals::of(area, key.hash).count();
        let search = Lookup::new(area, key).search(None)?;
        let entry = KnownEntry::of(&search).ok_or(OpError::Busy(Holder::Running))?.number();
        // What its holder asks for from now on is no older than what was read here.
        area.ground.fence(mutant::order("fence-after-a-lease", Ordering::Acquire));
        let known = Known { entry, removals, clock };
        Ok(Lease::from_words([entry, removals, clock, self.check(&known, epoch)]))
    }

    /// Returns whether the key has changed since the lease was granted (no, yes or unknown), given
    /// the clearing epoch and the present entry. To be called under the lock of the key's bucket;
    /// the answer holds while that lock is held.
    pub(in crate::file) fn since(&self, lease: Lease, epoch: u64, entry: KnownEntry) -> Since {
        let [number, removals, clock, check] = lease.words();
        let known = Known { entry: number, removals, clock };
        if check != self.check(&known, epoch)
            || entry.number() != number
            || self.namespace.is_some_and(|hash| self.area.is_cleared_since(hash, clock))
            || self.groups.is_some_and(|groups| self.area.are_invalid_since(groups, clock))
        {
            return Since::Removed;
        }
        Removals::of(self.area, self.key.hash).since(removals)
    }

    /// Returns whether the key is seen to have changed since a lease on it was granted (no, yes or
    /// unknown), without taking a lock. A change that is seen once is seen by every later call.
    pub(in crate::file) fn look(&self, lease: Lease) -> Result<Since, OpError> {
        let search = Lookup::new(self.area, &self.key).search(None)?;
        let entry = KnownEntry::of(&search);
        Ok(entry.map_or(Since::Nothing, |entry| self.since(lease, self.area.epoch(), entry)))
    }

    /// Binds what is known to the key, the file, the stamp and the epoch. The seed is the file's own, and random.
    fn check(&self, known: &Known, epoch: u64) -> u64 {
        let epoch = if mutant::is_on("lease-outlives-a-clearing") { 0 } else { epoch };
        let words =
            [known.entry, known.removals, known.clock, self.area.stamp, epoch, self.key.hash];
        xxh3_64_with_seed(words.map(u64::to_le_bytes).as_flattened(), self.area.hash_seed)
    }
}
