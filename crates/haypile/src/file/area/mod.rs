//! The area: the words of a file, as the protocol sees them.

pub(in crate::file) mod entry;
pub(in crate::file) mod groups;
pub(in crate::file) mod live;
pub(in crate::file) mod lock;
pub(in crate::file) mod now;
pub(in crate::file) mod owners;
pub(in crate::file) mod pins;
pub(in crate::file) mod records;
pub(in crate::file) mod segments;
pub(in crate::file) mod sweep;
pub(in crate::file) mod upkeep;
pub(in crate::file) mod wait;

use std::sync::atomic::Ordering;

use crate::file::format::counter::{Counted, Counter};
use crate::file::format::header;
use crate::file::format::layout::Geometry;
use crate::file::format::record::{self, Head};
use crate::file::format::segment::Live;
use crate::file::format::slot::Token;
use crate::file::platform::ground::Ground;
use crate::stats::{Event, Stats};
use crate::sync::Mutex;
use entry::Entry;
use sweep::SweepState;
use upkeep::Upkeep;

/// A mapped cache file: its layout, its bytes as atomic words, and the locks in it.
///
/// A method that needs a lock, or the right of an owner, belongs to the type that has it: `Bucket`,
/// `LockedLane`, `Recycler`, `Appender`, `Sweeper`, `Writer`.
#[derive(Debug)]
pub(in crate::file) struct Area<G> {
    pub(in crate::file) ground: G,
    pub(in crate::file) geometry: Geometry,
    pub(in crate::file) hash_seed: u64,
    /// The number that stands for the current boot (boot stamp) in the cache file; records of
    /// segments with another boot stamp have to be verified.
    pub(in crate::file) stamp: u64,
    /// The number of the last invalidation of a group of entries that was known when the file was
    /// first opened after the last reboot.
    pub(in crate::file) group_base: u64,
    /// Whether each read of a value from the cache file verifies the value's checksum.
    pub(in crate::file) verifies_all: bool,
    pub(in crate::file) sweep: Mutex<SweepState>,
    pub(in crate::file) upkeep: Upkeep,
}

/// An owner slot of this process: an entry of the file's table of users, through which a thread
/// writes.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Owner {
    pub(in crate::file) slot: u32,
    pub(in crate::file) token: Token,
    /// Whether this user of the cache file gives up waiting for a lock early, because it can do
    /// something else instead.
    pub(in crate::file) is_hurried: bool,
    /// Whether only the calling thread adds to the statistics counters of this owner slot.
    pub(in crate::file) is_own: bool,
}

/// The owner slot (a user's entry in the cache file) to whose statistics counters a thread adds.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Counting {
    pub(in crate::file) slot: u32,
    /// Whether no thread but the calling one adds to these statistics counters of the owner slot.
    pub(in crate::file) is_own: bool,
}

impl Owner {
    #[inline]
    pub(in crate::file) fn new(slot: u32, token: Token) -> Self {
        Self { slot, token, is_hurried: false, is_own: false }
    }

    pub(in crate::file) fn hurried(self) -> Self {
        Self { is_hurried: true, ..self }
    }

    pub(in crate::file) fn counting(self) -> Counting {
        Counting { slot: self.slot, is_own: self.is_own }
    }
}

/// The state (stopped, or seemingly running) of a process that holds a lock of the cache file for
/// which another process waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Holder {
    /// The process with this id was stopped or frozen.
    Halted(u64),
    /// The process seems to run, and may only lack a processor.
    Running,
}

/// The reason why an operation on the cache file was not done (a lock that is not released, no
/// room, or no memory); the operation has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum OpError {
    /// A living process holds what is needed, and makes no progress.
    Busy(Holder),
    /// There is no room, and none could be made.
    Full,
    /// The system has no memory for a value of this length.
    OutOfMemory(usize),
}

/// The key of an entry, with its hash.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Key<'a> {
    pub(in crate::file) bytes: &'a [u8],
    pub(in crate::file) has_namespace: bool,
    pub(in crate::file) hash: u64,
}

/// A record (a stored key and value) in a segment of the cache file, as its header describes it.
/// The lengths in the header are checked to be within the file.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Record {
    /// The offset of the record (a stored key and value) in the cache file, in bytes.
    pub(in crate::file) at: u64,
    pub(in crate::file) segment: u32,
    pub(in crate::file) head: Head,
    /// The stored checksum of the record (a stored key and value), mixed with a salt that changes
    /// each time its segment is filled.
    pub(in crate::file) salted: u64,
}

impl<G: Ground> Area<G> {
    /// Returns one process's view of the cache file that is mapped in this memory, with a boot
    /// stamp (a number for the current boot) that the file's users have not agreed on yet.
    pub(in crate::file) fn new(ground: G, geometry: Geometry, hash_seed: u64, stamp: u64) -> Self {
        Self {
            ground,
            geometry,
            hash_seed,
            stamp,
            group_base: u64::MAX,
            verifies_all: false,
            sweep: Mutex::default(),
            upkeep: Upkeep::default(),
        }
    }

    pub(in crate::file) fn key<'a>(&self, bytes: &'a [u8], has_namespace: bool) -> Key<'a> {
        let hash = record::hash(bytes, has_namespace, self.hash_seed);
        Key { bytes, has_namespace, hash }
    }

    #[inline]
    pub(in crate::file) fn epoch(&self) -> u64 {
        self.ground.load(header::EPOCH, Ordering::Relaxed)
    }

    /// Returns whether another cache file has replaced this one at its path, or this process has
    /// unmapped it, so that all of it reads as zero.
    #[inline]
    pub(in crate::file) fn is_retired(&self) -> bool {
        self.ground.load(header::STATE, Ordering::Relaxed) != header::READY
    }

    /// Marks the cache file as ready again, after it was marked as replaced by another.
    pub(in crate::file) fn set_ready(&self) {
        self.ground.store(header::STATE, header::READY, Ordering::Relaxed);
    }

    #[inline]
    pub(in crate::file) fn entry(&self, segment: u32) -> Entry<'_, G> {
        Entry::at(&self.ground, self.geometry.segment_entry(segment))
    }

    /// Adds a number to one of the statistics counters in an owner slot, which is a user's entry in
    /// the cache file.
    #[inline]
    pub(in crate::file) fn count(&self, counting: Counting, counter: impl Into<Counter>, by: u64) {
        let Some(at) = counter.into().at(counting.is_own) else {
            return;
        };
        let at = self.geometry.owner_slot(counting.slot) + at;
        if counting.is_own {
            let count = self.ground.load(at, Ordering::Relaxed).wrapping_add(by);
            self.ground.store(at, count, Ordering::Relaxed);
        } else {
            self.ground.add(at, by);
        }
    }

    /// Marks the cache file's stored counts of entries as wrong, so that the next operation that
    /// needs them counts all entries again.
    pub(in crate::file) fn invalidate_counts(&self) {
        self.ground.add(header::RECOUNTED, u64::MAX);
    }

    /// Returns the statistics of the cache file, made of these counts of live entries and of
    /// operations.
    pub(in crate::file) fn stats(&self, live: Live, counted: &Counted) -> Stats {
        let mut stats = Stats {
            entries: live.entries,
            bytes: live.bytes,
            capacity_bytes: Some(self.geometry.capacity_bytes()),
            ..Stats::default()
        };
        for event in Event::ALL {
            stats[event] = counted.of(event);
        }
        stats
    }
}
