//! A simulated file whose records have lengths and no contents.

use haypile_policy::PolicySpec;
use haypile_policy::ghost::{GhostList, SlotGhosts};
use haypile_policy::rules::file::{
    BytesByFrequency, Keeping, MAX_FREQUENCY, MAX_RECYCLED, Queue, RESERVED_SEGMENTS,
    queue_of_write,
};
use haypile_policy::weight::Weights;

use super::layout::Layout;
use super::log::{Log, LogPlace};
use super::window::{LARGEST_PART, StretchState, cheapest_window};

/// A simulation of the eviction decisions of a `file` store, without its data.
///
/// Keys are the dense numbers of a trace. Records have the trace's weights, without the store's
/// headers, and nothing but them takes room; index, pins and expiry are not simulated. The capacity
/// is that of all segments together, those in reserve included. Departures from the store: a record
/// that replaces another counts it as dead before room is made, not after; one for which there is no
/// room leaves none behind, where the store keeps the old value; one that is longer than a segment
/// takes the place of what costs least, where the store first moves live records out of its way; and
/// a key is never mistaken for a ghost that shares its fingerprint.
#[derive(Debug)]
pub struct SimulatedFile<W: Weights> {
    layout: Layout,
    log: Log,
    places: Vec<LogPlace>,
    weights: W,
    hits: Vec<u8>,
    ghosts: SlotGhosts<W>,
    evicted: Vec<u32>,
}

impl<W: Weights> SimulatedFile<W> {
    /// Creates an empty simulated file store of size `capacity` for keys below `keys`, with the parameters of the
    /// policy `segment`.
    ///
    /// # Panics
    ///
    /// If `spec` is [not the file store's](PolicySpec::is_of_file_store).
    pub fn new(spec: &PolicySpec, capacity: u64, keys: u32) -> Self {
        let layout = Layout::new(spec, capacity);
        let slots = keys as usize;
        let (mut weights, mut ghosts) = (W::default(), SlotGhosts::default());
        weights.reserve(slots);
        ghosts.reserve(slots);
        Self {
            layout,
            log: Log::new(layout.segments, layout.segment_bytes),
            places: vec![LogPlace::NONE; slots],
            weights,
            hits: vec![0; slots],
            ghosts,
            evicted: Vec::new(),
        }
    }

    /// Whether the key has a record in the simulated store.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.places[id as usize] != LogPlace::NONE
    }

    /// Counts a hit of a key that has a record in the simulated store, which raises the key's frequency.
    #[inline]
    pub fn hit(&mut self, id: u32) {
        let hits = &mut self.hits[id as usize];
        *hits = MAX_FREQUENCY.min(*hits + 1);
    }

    /// Writes the value of a key that has no record in the simulated store; returns `false` if there is no room for it.
    pub fn insert(&mut self, id: u32, weight: u64) -> bool {
        let ghosts = &mut self.ghosts;
        let queue = queue_of_write(None, || ghosts.remove(u64::from(id)).is_some());
        let Some(segment) = self.make_room(queue, weight) else { return false };
        self.hits[id as usize] = 0;
        self.weights.replace(id, weight);
        self.places[id as usize] = self.log.append(segment, id, weight);
        true
    }

    /// Overwrites the value of a key that has a record in the simulated store; the key is evicted if there is no room
    /// for the new record. The key's frequency stays: only hits raise it.
    pub fn update(&mut self, id: u32, weight: u64) {
        let replaces = self.log.queue(self.places[id as usize].segment);
        self.remove(id);
        self.weights.replace(id, weight);
        match self.make_room(queue_of_write(Some(replaces), || false), weight) {
            Some(segment) => self.places[id as usize] = self.log.append(segment, id, weight),
            None => self.evicted.push(id),
        }
    }

    /// Returns the weight of a key's record in the simulated store.
    pub fn weight(&self, id: u32) -> u64 {
        self.weights.get(id)
    }

    /// Deletes the record of a key. The key does not become a ghost.
    pub fn remove(&mut self, id: u32) {
        self.log.kill(self.places[id as usize], self.weights.get(id));
        self.places[id as usize] = LogPlace::NONE;
    }

    /// Removes and returns the keys that were evicted since the last call, in their order.
    pub fn drain_evicted(&mut self) -> impl Iterator<Item = u32> {
        self.evicted.drain(..)
    }

    /// Returns the small, main and ghost queues of the simulated store with their keys, from the oldest record to the
    /// youngest.
    pub fn queues(&self) -> Vec<haypile_policy::Queue> {
        let dump = |queue| {
            let segments = self.log.in_order(queue).into_iter();
            segments.flat_map(|segment| self.log.live(segment)).map(u64::from).collect()
        };
        vec![
            haypile_policy::Queue { name: "small", entries: dump(Queue::Small) },
            haypile_policy::Queue { name: "main", entries: dump(Queue::Main) },
            haypile_policy::Queue { name: "ghost", entries: self.ghosts.dump() },
        ]
    }

    /// Returns the sum of the weights of all live records in the simulated store.
    pub fn used(&self) -> u64 {
        self.log.live_bytes()
    }

    /// Returns the number of live records in the simulated store.
    pub fn entries(&self) -> u64 {
        self.log.live_records()
    }

    /// Returns the number of bytes of memory that the simulation uses.
    pub fn metadata_bytes(&self) -> usize {
        self.log.memory_bytes()
            + self.places.capacity() * size_of::<LogPlace>()
            + self.weights.memory_bytes()
            + self.hits.capacity()
            + self.ghosts.memory_bytes()
    }

    /// A segment to which a record of `weight` can be appended; `None` if there is no room.
    fn make_room(&mut self, queue: Queue, weight: u64) -> Option<u32> {
        if weight > self.layout.segment_bytes {
            return self.make_room_for_run(queue, weight);
        }
        let rules = self.layout.rules;
        let mut recycled = 0;
        loop {
            if let Some(open) = self.log.open_with_room(queue, weight) {
                return Some(open);
            }
            self.log.seal(queue);
            if self.log.free() > RESERVED_SEGMENTS {
                return self.log.open(queue);
            }
            if recycled == MAX_RECYCLED {
                return None;
            }
            let small_segments = self.log.small_segments();
            let victim = rules.choose_victim(self.log.sealed(), small_segments)?;
            self.recycle(victim, rules.allowed_bytes(recycled));
            recycled += 1;
        }
    }

    fn make_room_for_run(&mut self, queue: Queue, weight: u64) -> Option<u32> {
        if weight > self.layout.capacity / LARGEST_PART {
            return None;
        }
        let segments = u32::try_from(weight.div_ceil(self.layout.segment_bytes)).ok()?;
        let (heads, stretches) = self.log.stretches();
        let window = cheapest_window(&stretches, segments)?;
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
        let rules = self.layout.rules;
        let queue = self.log.queue(victim);
        let live: Vec<u32> = self.log.live(victim).collect();
        if self.log.is_run(victim)
            && allowed_bytes > 0
            && let [id] = live[..]
            && let Some(kept) = rules.kept_frequency(queue, self.hits[id as usize])
        {
            // What has segments of its own need not be copied to go round again.
            self.log.renew_run(victim);
            self.hits[id as usize] = kept;
            return;
        }
        let mut bytes = BytesByFrequency::default();
        for id in &live {
            bytes[usize::from(self.hits[*id as usize])] += self.weights.get(*id);
        }
        let allowed_bytes = if self.log.is_run(victim) { 0 } else { allowed_bytes };
        let mut keeping = Keeping::new(rules, queue, &bytes, allowed_bytes);
        for id in live {
            let weight = self.weights.get(id);
            if let Some(frequency) = keeping.keep(self.hits[id as usize], weight) {
                self.hits[id as usize] = frequency;
                self.reinsert(id, weight);
                continue;
            }
            if queue == Queue::Small {
                self.remember(id, weight);
            }
            self.places[id as usize] = LogPlace::NONE;
            self.evicted.push(id);
        }
        self.log.release(victim);
    }

    /// Appends what is kept to the main queue, where the segments in reserve serve.
    fn reinsert(&mut self, id: u32, weight: u64) {
        let open = self.log.open_with_room(Queue::Main, weight).or_else(|| {
            self.log.seal(Queue::Main);
            self.log.open(Queue::Main)
        });
        let open = open.expect("what is kept of a segment fills one at most, and two are reserved");
        self.places[id as usize] = self.log.append(open, id, weight);
    }

    fn remember(&mut self, id: u32, weight: u64) {
        let capacity = self.layout.ghost_capacity;
        if weight > capacity {
            return;
        }
        while self.ghosts.weight() + weight > capacity {
            self.ghosts.pop();
        }
        self.ghosts.push(u64::from(id), weight);
    }
}
