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

/// A mapped cache file: its layout, its words, and the locks in it.
///
/// A method that needs a lock, or the right of an owner, belongs to the type that has it: `Bucket`,
/// `LockedLane`, `Recycler`, `Appender`, `Sweeper`, `Writer`.
#[derive(Debug)]
pub(in crate::file) struct Area<G> {
    pub(in crate::file) ground: G,
    pub(in crate::file) geometry: Geometry,
    pub(in crate::file) hash_seed: u64,
    /// The boot stamp of all processes that use the file now; records of segments with another
    /// stamp have to be verified.
    pub(in crate::file) stamp: u64,
    /// The highest number of an invalidation that was known when the boot stamp was installed.
    pub(in crate::file) group_base: u64,
    /// Whether the checksum of every value that is read is verified.
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
    /// Whether the owner gives up waiting for a lock early, because it has alternatives.
    pub(in crate::file) is_hurried: bool,
    /// Whether only the calling thread raises counters in the owner slot.
    pub(in crate::file) is_own: bool,
}

/// The owner slot whose statistics counters a thread raises.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Counting {
    pub(in crate::file) slot: u32,
    /// Whether no other thread raises the same counters of the owner slot.
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

/// The process that holds a lock that another one waits for, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Holder {
    /// The process with this id was stopped or frozen.
    Halted(u64),
    /// The process seems to run, and may only lack a processor.
    Running,
}

/// The reason why an operation was not done; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum OpError {
    /// A living process holds what is needed, and makes no progress.
    Busy(Holder),
    /// There is no room, and none could be made.
    Full,
    /// The system has no memory for a value of this length.
    OutOfMemory(usize),
}

/// A key with its hash.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Key<'a> {
    pub(in crate::file) bytes: &'a [u8],
    pub(in crate::file) has_namespace: bool,
    pub(in crate::file) hash: u64,
}

/// A record (a stored key and value) in a segment of the cache file, as its header states it. Its
/// lengths are within the file.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Record {
    /// The offset of the record in the file.
    pub(in crate::file) at: u64,
    pub(in crate::file) segment: u32,
    pub(in crate::file) head: Head,
    /// The stored checksum of the record, which is mixed with the salt of its segment.
    pub(in crate::file) salted: u64,
}

impl<G: Ground> Area<G> {
    /// Returns the cache file in this memory, with a boot stamp that its users have not agreed on
    /// yet.
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

    /// Returns whether another file has replaced this one at its path, or this process has unmapped
    /// it, so that its words read as zero.
    #[inline]
    pub(in crate::file) fn is_retired(&self) -> bool {
        self.ground.load(header::STATE, Ordering::Relaxed) != header::READY
    }

    /// Marks the file as ready again, after it was marked as replaced by another.
    pub(in crate::file) fn set_ready(&self) {
        self.ground.store(header::STATE, header::READY, Ordering::Relaxed);
    }

    #[inline]
    pub(in crate::file) fn entry(&self, segment: u32) -> Entry<'_, G> {
        Entry::at(&self.ground, self.geometry.segment_entry(segment))
    }

    /// Adds to one of the counters of an owner slot.
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

    /// Marks the stored counts of entries as wrong, so that the next operation that needs them
    /// counts again.
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
