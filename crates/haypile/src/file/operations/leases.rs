//! Leases: what their holders knew of a key, and whether that is still so.

use std::sync::atomic::Ordering;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::file::area::{Area, Holder, Key, OpError};
use crate::file::index::removals::Removals;
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;
use crate::lease::Lease;
use crate::mutant;
use crate::removals::Since;

/// The key that a lease is for.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct LeasedKey<'a, G> {
    pub(in crate::file) area: &'a Area<G>,
    pub(in crate::file) key: Key<'a>,
    /// The hash of its namespace, whose clearing revokes the lease.
    pub(in crate::file) namespace: Option<u64>,
}

/// The knowledge of a lease's holder.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The number of the key's entry.
    entry: u64,
    /// Removals in the line of the key.
    removals: u64,
    /// Clearings of its namespace.
    clearings: u64,
}

/// The entry of a key, expired or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum KnownEntry {
    None,
    Version(u64),
    /// There is one that is damaged.
    Unreadable,
}

impl KnownEntry {
    /// Returns what was found; `None` if it changed each time that it was read.
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
    /// Grants a lease, without a lock. Whatever changes the key later differs from what the lease says.
    pub(in crate::file) fn grant(&self) -> Result<Lease, OpError> {
        let Self { area, key, .. } = self;
        let epoch = area.epoch();
        let clearings = self.clearings();
        let removals = Removals::of(area, key.hash).count();
        let search = Lookup::new(area, key).search(None)?;
        let entry = KnownEntry::of(&search).ok_or(OpError::Busy(Holder::Running))?.number();
        // What its holder asks for from now on is no older than what was read here.
        area.ground.fence(mutant::order("fence-after-a-lease", Ordering::Acquire));
        let known = Known { entry, removals, clearings };
        Ok(Lease::from_words([entry, removals, clearings, self.check(&known, epoch)]))
    }

    /// Returns what came of the key since the lease was granted, in this epoch, with this entry. Under the lock of the key's
    /// bucket that holds until the lock is given back.
    pub(in crate::file) fn since(&self, lease: Lease, epoch: u64, entry: KnownEntry) -> Since {
        let [number, removals, clearings, check] = lease.words();
        let known = Known { entry: number, removals, clearings };
        if check != self.check(&known, epoch)
            || entry.number() != number
            || self.clearings() != clearings
        {
            return Since::Removed;
        }
        Removals::of(self.area, self.key.hash).since(removals)
    }

    /// Returns what is seen to have come of the key since the lease was granted, without a lock. Whatever is not nothing
    /// remains so.
    pub(in crate::file) fn look(&self, lease: Lease) -> Result<Since, OpError> {
        let search = Lookup::new(self.area, &self.key).search(None)?;
        let entry = KnownEntry::of(&search);
        Ok(entry.map_or(Since::Nothing, |entry| self.since(lease, self.area.epoch(), entry)))
    }

    fn clearings(&self) -> u64 {
        self.namespace.map_or(0, |hash| self.area.clearings(hash))
    }

    /// Binds what is known to the key, the file, the stamp and the epoch. The seed is the file's own, and random.
    fn check(&self, known: &Known, epoch: u64) -> u64 {
        let epoch = if mutant::is_on("lease-outlives-a-clearing") { 0 } else { epoch };
        let words =
            [known.entry, known.removals, known.clearings, self.area.stamp, epoch, self.key.hash];
        xxh3_64_with_seed(words.map(u64::to_le_bytes).as_flattened(), self.area.hash_seed)
    }
}
