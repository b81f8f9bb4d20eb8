//! The file store's policy: two queues of segments that are recycled as a whole.
//!
//! What is decided is in [`rules`], which the file store works by as well; here is what the
//! simulator needs beside them: a file in which records only have lengths.

mod log;

use std::collections::VecDeque;

use self::log::{Log, Place};
use super::column::Column;
use super::ghost::{Fingerprints, GhostList, Memory};
use super::mark::Marks;
use super::ranking::best_first;
use super::weight::{Weights, share};
use super::{Kind, Newcomer, Param, Policy, PolicySpec, Ranked, Slot, Victim};
use crate::file::rules::{self, BytesByFrequency, Keeping, Queue, Rules, StretchState};

/// How `segment` is named.
pub const KIND: Kind = Kind {
    name: "segment",
    summary: "the file store's (simulator only): S3-FIFO on segments that are recycled as a whole",
    paper: "after Yang et al., SOSP 2023, and Yang, Yue and Rashmi, Segcache: a memory-efficient \
            and scalable in-memory key-value cache for small objects, NSDI 2021",
    params: &[
        Param {
            name: "segments",
            default: 256.0,
            min: 4.0,
            max: 8192.0,
            whole: true,
            help: "segments of the file, at least",
        },
        Param {
            name: "small",
            default: 10.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the segments up to which the small queue is spared, in per cent",
        },
        Param {
            name: "threshold",
            default: 1.0,
            min: 1.0,
            max: 3.0,
            whole: true,
            help: "hits in the small queue that earn a place in the main queue",
        },
        Param {
            name: "keep",
            default: 75.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of a segment that is kept at most when it is recycled, in per cent",
        },
        Param {
            name: "ghost",
            default: 90.0,
            min: 0.0,
            max: 1000.0,
            whole: false,
            help: "weight of the entries remembered after they left the small queue, in per cent \
                   of the capacity",
        },
    ],
};

/// Segments without which nothing is stored: those in reserve, and an open one of each queue.
const MIN_SEGMENTS: u32 = rules::RESERVED_SEGMENTS + 2;

/// The policy of the file store.
///
/// Records have the trace's weights, without the store's headers, and nothing but them takes room;
/// index, pins and expiry are not simulated. The capacity is that of all segments together, those
/// in reserve included. Departures from the store: a record that replaces another counts it as
/// dead before room is made, not after; one for which there is no room leaves none behind, where
/// the store keeps the old value; and an entry whose key shares a fingerprint with a ghost is never
/// mistaken for it.
#[derive(Debug)]
pub struct Segment<W: Weights, M: Memory> {
    log: Log,
    rules: Rules,
    places: Column<Place>,
    weights: W,
    hits: Marks,
    fingerprints: M::Fingerprints,
    ghosts: M::List<W>,
    surplus: VecDeque<Slot>,
    capacity: u64,
    /// Bytes of a segment.
    bytes_each: u64,
    ghost_capacity: u64,
    /// Where the newcomer goes that was admitted last.
    room: u32,
    shares: Shares,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
struct Shares {
    segments: u32,
    small: f64,
    threshold: u8,
    keep: f64,
    ghost: f64,
}

impl Shares {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the parameters' ranges are checked where they are read"
    )]
    fn of(spec: &PolicySpec) -> Self {
        Self {
            segments: spec.value("segments") as u32,
            small: spec.value("small"),
            threshold: spec.value("threshold") as u8,
            keep: spec.value("keep"),
            ghost: spec.value("ghost"),
        }
    }
}

impl<W: Weights, M: Memory> Segment<W, M> {
    /// An empty file of `capacity`.
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        let mut policy = Self {
            log: Log::new(0, 0),
            rules: Rules { small_segments: 0, threshold: 0, kept_bytes: 0 },
            places: Column::default(),
            weights: W::default(),
            hits: Marks::default(),
            fingerprints: M::Fingerprints::default(),
            ghosts: M::List::default(),
            surplus: VecDeque::new(),
            capacity: 0,
            bytes_each: 0,
            ghost_capacity: 0,
            room: 0,
            shares: Shares::of(spec),
        };
        policy.set_capacity(capacity);
        policy
    }

    /// Gives the file a new size. It is empty then.
    fn format(&mut self, capacity: u64) {
        let shares = &self.shares;
        self.capacity = capacity;
        self.bytes_each = (capacity / u64::from(shares.segments)).max(1);
        // Fewer than twice as many as were asked for.
        let segments = u32::try_from(capacity / self.bytes_each).expect("segments are few");
        let small_segments = share(u64::from(segments), shares.small);
        self.rules = Rules {
            small_segments: u32::try_from(small_segments).expect("no more than all"),
            threshold: shares.threshold,
            kept_bytes: share(self.bytes_each, shares.keep),
        };
        self.log = Log::new(if segments < MIN_SEGMENTS { 0 } else { segments }, self.bytes_each);
        self.ghost_capacity = share(capacity, shares.ghost);
        while self.ghosts.weight() > self.ghost_capacity {
            self.ghosts.pop();
        }
    }

    /// A segment to which a record of `weight` can be appended; `None` if there is no room.
    fn make_room(&mut self, queue: Queue, weight: u64) -> Option<u32> {
        if weight > self.bytes_each {
            return self.make_room_for_run(queue, weight);
        }
        let mut recycled = 0;
        loop {
            if let Some(open) = self.log.open_with_room(queue, weight) {
                return Some(open);
            }
            self.log.seal(queue);
            if self.log.free() > rules::RESERVED_SEGMENTS {
                return self.log.open(queue);
            }
            if recycled == rules::MAX_RECYCLED {
                return None;
            }
            let small_segments = self.log.small_segments();
            let victim = self.rules.choose_victim(self.log.sealed(), small_segments)?;
            self.recycle(victim, self.rules.allowed_bytes(recycled));
            recycled += 1;
        }
    }

    fn make_room_for_run(&mut self, queue: Queue, weight: u64) -> Option<u32> {
        if weight > self.capacity / rules::LARGEST_PART {
            return None;
        }
        let segments = u32::try_from(weight.div_ceil(self.bytes_each)).ok()?;
        let (heads, stretches) = self.log.stretches();
        let window = rules::cheapest_window(&stretches, segments, rules::RESERVED_SEGMENTS)?;
        let first = heads[window];
        for (head, stretch) in heads.iter().zip(&stretches).skip(window) {
            if *head >= first + segments {
                break;
            }
            if stretch.state == StretchState::Sealed {
                self.recycle(*head, 0);
            }
        }
        self.log.begin_run(first, segments, queue);
        Some(first)
    }

    /// Makes a sealed segment or run free, except for what of it is kept.
    fn recycle(&mut self, victim: u32, allowed_bytes: u64) {
        let queue = self.log.queue(victim);
        let live: Vec<Slot> = self.log.live(victim).collect();
        if self.log.is_run(victim)
            && allowed_bytes > 0
            && let [slot] = live[..]
            && let Some(kept) = self.rules.kept_frequency(queue, self.hits.get(slot))
        {
            // What has segments of its own need not be copied to go round again.
            self.log.renew_run(victim);
            self.hits.set(slot, kept);
            return;
        }
        let mut bytes = BytesByFrequency::default();
        for slot in &live {
            bytes[usize::from(self.hits.get(*slot))] += self.weights.get(*slot);
        }
        let allowed_bytes = if self.log.is_run(victim) { 0 } else { allowed_bytes };
        let mut keeping = Keeping::new(self.rules, queue, &bytes, allowed_bytes);
        for slot in live {
            let weight = self.weights.get(slot);
            if let Some(frequency) = keeping.keep(self.hits.get(slot), weight) {
                self.hits.set(slot, frequency);
                self.reinsert(slot, weight);
                continue;
            }
            if queue == Queue::Small {
                self.remember(slot, weight);
            }
            self.places[slot] = Place::default();
            self.surplus.push_back(slot);
        }
        self.log.release(victim);
    }

    /// Appends what is kept to the main queue, where the segments in reserve serve.
    fn reinsert(&mut self, slot: Slot, weight: u64) {
        let open = self.log.open_with_room(Queue::Main, weight).or_else(|| {
            self.log.seal(Queue::Main);
            self.log.open(Queue::Main)
        });
        let open = open.expect("what is kept of a segment fills one at most, and two are reserved");
        self.places[slot] = self.log.append(open, slot, weight);
    }

    fn remember(&mut self, slot: Slot, weight: u64) {
        if weight > self.ghost_capacity {
            return;
        }
        while self.ghosts.weight() + weight > self.ghost_capacity {
            self.ghosts.pop();
        }
        self.ghosts.push(self.fingerprints.get(slot), weight);
    }

    /// Takes the record of an entry out.
    fn kill(&mut self, slot: Slot) {
        self.log.kill(self.places[slot], self.weights.get(slot));
        self.places[slot] = Place::default();
    }

    /// The entries of a queue from the oldest record to the youngest.
    fn entries(&self, queue: Queue) -> impl Iterator<Item = Slot> {
        self.log.in_order(queue).into_iter().flat_map(|segment| self.log.live(segment))
    }
}

impl<W: Weights, M: Memory> Policy for Segment<W, M> {
    const SHARED_HITS: bool = true;
    const HAS_SURPLUS: bool = true;
    const RELOCATES: bool = M::REUSES_SLOTS;

    fn reserve_slots(&mut self, slots: usize) {
        self.places.reserve(slots);
        self.weights.reserve(slots);
        self.hits.reserve(slots);
        self.fingerprints.reserve(slots);
        self.ghosts.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.hits.raise(slot, rules::MAX_FREQUENCY);
    }

    #[inline]
    fn on_hit_shared(&self, slot: Slot) {
        self.hits.raise(slot, rules::MAX_FREQUENCY);
    }

    /// Makes the room: what has to leave for it is surplus.
    fn admit(&mut self, newcomer: Newcomer) -> bool {
        let ghosts = &mut self.ghosts;
        let is_ghost = || ghosts.remove(newcomer.fingerprint).is_some();
        let queue = rules::queue_of_write(None, is_ghost);
        let room = self.make_room(queue, newcomer.weight);
        if let Some(segment) = room {
            self.room = segment;
        }
        room.is_some()
    }

    /// Only for the sake of nobody: for a newcomer `admit` has made room.
    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Victim {
        let worst = self.ranking().pop().expect("an entry to evict").slot;
        self.kill(worst);
        Victim::Slot(worst)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.hits.set(slot, 0);
        self.fingerprints.set(slot, newcomer.fingerprint);
        self.weights.replace(slot, newcomer.weight);
        self.places[slot] = self.log.append(self.room, slot, newcomer.weight);
    }

    /// The frequency stays: only hits raise it.
    fn on_update(&mut self, slot: Slot, weight: u64) {
        let replaces = self.log.queue(self.places[slot].segment);
        self.kill(slot);
        self.weights.replace(slot, weight);
        match self.make_room(rules::queue_of_write(Some(replaces), || false), weight) {
            Some(segment) => self.places[slot] = self.log.append(segment, slot, weight),
            None => self.surplus.push_back(slot),
        }
    }

    fn on_remove(&mut self, slot: Slot) {
        self.kill(slot);
    }

    fn surplus(&mut self) -> Option<Slot> {
        self.surplus.pop_front()
    }

    /// A file has its size for ever, so that this is a new one to which the entries are written:
    /// the main queue's first, those that leave next before the others.
    fn set_capacity(&mut self, capacity: u64) {
        if capacity == self.capacity {
            return;
        }
        let main: Vec<Slot> = self.entries(Queue::Main).collect();
        let small: Vec<Slot> = self.entries(Queue::Small).collect();
        self.format(capacity);
        let main = main.into_iter().map(|slot| (Queue::Main, slot));
        let small = small.into_iter().map(|slot| (Queue::Small, slot));
        for (_, slot) in main.clone().chain(small.clone()) {
            self.places[slot] = Place::default();
        }
        for (queue, slot) in main.chain(small) {
            let weight = self.weights.get(slot);
            match self.make_room(queue, weight) {
                Some(segment) => self.places[slot] = self.log.append(segment, slot, weight),
                None => self.surplus.push_back(slot),
            }
        }
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.log.relocate(self.places[from], to);
        self.places.relocate(from, to);
        self.weights.relocate(from, to);
        self.hits.relocate(from, to);
        self.fingerprints.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.places.drop_slots(slots);
        self.weights.drop_slots(slots);
        self.hits.drop_slots(slots);
        self.fingerprints.drop_slots(slots);
    }

    /// By hits, where one in the main queue stands for what brought an entry there, and then by
    /// age, where among the former the main queue's without hits leave first.
    fn ranking(&self) -> Vec<Ranked> {
        let small = self.entries(Queue::Small).map(|slot| {
            let uses = self.hits.get(slot);
            (true, Ranked { slot, uses })
        });
        let main = self.entries(Queue::Main).map(|slot| {
            let hits = self.hits.get(slot);
            (hits > 0, Ranked { slot, uses: hits.max(self.rules.threshold) })
        });
        let mut leaving: Vec<(bool, Ranked)> = small.chain(main).collect();
        leaving.sort_by_key(|(goes_round, ranked)| (ranked.uses, *goes_round));
        best_first(leaving.into_iter().map(|(_, ranked)| ranked))
    }

    fn queues(&self) -> Vec<super::Queue> {
        let dump = |queue| self.entries(queue).map(u64::from).collect();
        vec![
            super::Queue { name: "small", entries: dump(Queue::Small) },
            super::Queue { name: "main", entries: dump(Queue::Main) },
            super::Queue { name: "ghost", entries: self.ghosts.dump() },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.log.memory_bytes()
            + self.places.memory_bytes()
            + self.weights.memory_bytes()
            + self.hits.memory_bytes()
            + self.fingerprints.memory_bytes()
            + self.ghosts.memory_bytes()
    }
}
