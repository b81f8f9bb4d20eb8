//! The file as the protocol sees it.

use std::sync::atomic::Ordering;

use super::counter::{Counted, Counter};
use super::ground::Ground;
use super::header;
use super::layout::Geometry;
use super::record::{self, Head};
use super::segment::{Entry, Live, SegmentKind, State};
use super::slot::{Slot, Token};
use super::sweep::Sweep;
use crate::stats::{Event, Stats};

/// The mapped file: the methods of the protocol are in the other modules of this folder.
#[derive(Debug)]
pub(super) struct Area<G> {
    pub(super) ground: G,
    pub(super) geometry: Geometry,
    pub(super) hash_seed: u64,
    /// That of all processes that use the file now: what a segment with another one holds has to
    /// be verified.
    pub(super) stamp: u64,
    /// Verify the checksum of every value that is read.
    pub(super) verifies_all: bool,
    pub(super) sweep: Sweep,
}

/// The writer: a place of this process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Me {
    pub(super) place: u32,
    pub(super) token: Token,
    /// Whether others wait for what it does: then it does not wait long itself.
    pub(super) is_hurried: bool,
}

impl Me {
    pub(super) fn new(place: u32, token: Token) -> Self {
        Self { place, token, is_hurried: false }
    }

    pub(super) fn hurried(self) -> Self {
        Self { is_hurried: true, ..self }
    }
}

/// A process that holds something another one waits for, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The process of this number was stopped or frozen.
    Halted(u64),
    /// It seems to run, and may only lack a processor.
    Running,
}

/// Why an operation was not done; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// A process that is alive holds what is needed, and does not go on.
    Busy(Holder),
    /// There is no room that could be made.
    Full,
    /// The system has no memory for a value of this length.
    OutOfMemory(usize),
}

/// A key with its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) has_namespace: bool,
    pub(super) hash: u64,
}

/// A record within a segment, as its head states it. Its lengths are within the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// Where it begins in the file.
    pub(super) at: u64,
    pub(super) segment: u32,
    pub(super) head: Head,
    /// Its checksum, mixed with the salt of the segment.
    pub(super) salted: u64,
}

impl<G: Ground> Area<G> {
    pub(super) fn key<'a>(&self, bytes: &'a [u8], has_namespace: bool) -> Key<'a> {
        let hash = record::hash(bytes, has_namespace, self.hash_seed);
        Key { bytes, has_namespace, hash }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.ground.load(header::EPOCH, Ordering::Relaxed)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.ground.load(header::STATE, Ordering::Relaxed) == header::RETIRED
    }

    /// Takes back that another file has the path.
    pub(super) fn set_ready(&self) {
        self.ground.store(header::STATE, header::READY, Ordering::Relaxed);
    }

    /// The segment that a slot points into; `None` of one that is beyond all.
    pub(super) fn segment_of(&self, slot: Slot) -> Option<u32> {
        let segment = u32::try_from(slot.offset() >> self.geometry.numbers.segment_log2).ok()?;
        (segment < self.geometry.numbers.segments).then_some(segment)
    }

    /// The record that a slot points to; `None` of what cannot be one.
    pub(super) fn record(&self, slot: Slot, segment: u32) -> Option<Record> {
        self.record_at(segment, slot.offset() & (self.geometry.segment_bytes() - 1))
    }

    /// The record at an offset in a segment, if there can be one. Its lengths are read once.
    pub(super) fn record_at(&self, segment: u32, offset: u64) -> Option<Record> {
        let segment_bytes = self.geometry.segment_bytes();
        if offset + Head::EXPIRY_AT > segment_bytes {
            return None;
        }
        let at = self.geometry.segment_start(segment) + offset;
        let first = self.ground.load(at, Ordering::Relaxed);
        let second = self.ground.load(at + 8, Ordering::Relaxed);
        let (head, salted) = Head::decode(first, second);
        let end = offset + head.bytes();
        if end > segment_bytes && end > self.run_bytes(segment) {
            return None;
        }
        Some(Record { at, segment, head, salted })
    }

    /// The bytes from the start of a segment to the end of its run.
    fn run_bytes(&self, segment: u32) -> u64 {
        let run = self.run_from(segment, self.entry(segment).state());
        u64::from(run) << self.geometry.numbers.segment_log2
    }

    /// The number of segments of a run that one is the head of, itself included. Damage does not
    /// lead beyond the last.
    pub(super) fn run_from(&self, segment: u32, state: State) -> u32 {
        let left = self.geometry.numbers.segments - segment;
        if state.kind == SegmentKind::Member { 1 } else { state.run.clamp(1, left) }
    }

    /// Whether the record is of this key.
    pub(super) fn is_of(&self, record: &Record, key: &Key<'_>) -> bool {
        record.head.key_bytes == key.bytes.len() as u64
            && record.head.has_namespace == key.has_namespace
            && self.has_bytes(record.at + record.head.key_at(), key.bytes)
    }

    fn has_bytes(&self, at: u64, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut at = at;
        for word in words {
            if self.ground.load(at, Ordering::Relaxed) != u64::from_le_bytes(*word) {
                return false;
            }
            at += 8;
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let unused_bits = 64 - 8 * rest.len();
        rest.is_empty()
            || (self.ground.load(at, Ordering::Relaxed) ^ u64::from_le_bytes(last)) << unused_bits
                == 0
    }

    /// When a record expires, in ms since 1970, `u64::MAX` for never; zero where that is damaged.
    pub(super) fn expires_ms(&self, record: &Record) -> u64 {
        if !record.head.has_expiry {
            return u64::MAX;
        }
        let word = self.ground.load(record.at + Head::EXPIRY_AT, Ordering::Relaxed);
        record::decode_expiry(word, record.head.version).unwrap_or(0)
    }

    pub(super) fn entry(&self, segment: u32) -> Entry<'_, G> {
        Entry { ground: &self.ground, at: self.geometry.segment_entry(segment) }
    }

    /// Raises one of the counters of a place.
    #[inline]
    pub(super) fn count(&self, place: u32, counter: impl Into<Counter>, by: u64) {
        if let Some(at) = counter.into().at() {
            self.ground.add(self.geometry.place(place) + at, by);
        }
    }

    /// All counters of a place.
    pub(super) fn counted(&self, place: u32) -> Counted {
        let at = self.geometry.place(place);
        Counted::read(|offset| self.ground.load(at + offset, Ordering::Relaxed))
    }

    /// The statistics, from these counts.
    pub(super) fn stats(&self, live: Live, counted: &Counted) -> Stats {
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
