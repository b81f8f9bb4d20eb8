//! Evictions of a file.

use std::collections::{HashMap, VecDeque};

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::cache::file;
use crate::driver::Event::{Evicted, Refused, Stored, Updated};
use crate::driver::{Cache, Setup, model};
use crate::invariants::same_decisions;
use crate::plain::{Weights, dump, percent};
use crate::requests::cases;

#[derive(Clone, Copy, Debug)]
struct Params {
    segments: u64,
    small: u64,
    threshold: u32,
    keep: u64,
    ghost: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Open,
    Sealed,
    Tail,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    state: State,
    is_main: bool,
    opened: u64,
    used: u64,
    /// Segments of the record that begins here, if it has more than one.
    run: usize,
    /// Records from the oldest to the youngest, without dead ones.
    live: Vec<Slot>,
}

/// The file by its definition: everything is recounted each time, and the entries to keep are
/// sorted.
#[derive(Debug)]
struct Plain {
    params: Params,
    capacity: u64,
    segment_bytes: u64,
    file: Vec<Segment>,
    opened: u64,
    weights: Weights,
    hits: HashMap<Slot, u32>,
    ghosts: Vec<(u64, u64)>,
    room: usize,
    overflow: VecDeque<Slot>,
}

impl Plain {
    fn new(capacity: u64, params: Params) -> Self {
        let segment_bytes = (capacity / params.segments).max(1);
        let segments = usize::try_from(capacity / segment_bytes).unwrap();
        Self {
            params,
            capacity,
            segment_bytes,
            file: vec![Segment::default(); if segments < 4 { 0 } else { segments }],
            opened: 0,
            weights: Weights::default(),
            hits: HashMap::new(),
            ghosts: Vec::new(),
            room: 0,
            overflow: VecDeque::new(),
        }
    }

    fn count(&self, is: impl Fn(&Segment) -> bool) -> usize {
        self.file.iter().filter(|segment| is(segment)).count()
    }

    fn find(&self, slot: Slot) -> usize {
        self.file.iter().position(|segment| segment.live.contains(&slot)).unwrap()
    }

    /// Returns the open segment of the queue if the weight fits; otherwise seals it, if there is
    /// one.
    fn open(&mut self, is_main: bool, weight: u64) -> Option<usize> {
        let is_open =
            |segment: &Segment| segment.state == State::Open && segment.is_main == is_main;
        let open = self.file.iter().position(is_open)?;
        if self.file[open].used + weight <= self.segment_bytes {
            return Some(open);
        }
        self.file[open].state = State::Sealed;
        None
    }

    fn take_free(&mut self, is_main: bool) -> usize {
        let free = self.file.iter().position(|segment| segment.state == State::Free).unwrap();
        self.opened += 1;
        let (state, opened) = (State::Open, self.opened);
        self.file[free] = Segment { state, is_main, opened, ..Segment::default() };
        free
    }

    fn append(&mut self, at: usize, slot: Slot) {
        self.file[at].live.push(slot);
        self.file[at].used += self.weights.of(slot);
    }

    fn victim(&self) -> usize {
        let mut sealed: Vec<usize> = (0..self.file.len()).collect();
        sealed.retain(|at| self.file[*at].state == State::Sealed);
        sealed.sort_by_key(|at| self.file[*at].opened);
        if let Some(dead) = sealed.iter().find(|at| self.file[**at].live.is_empty()) {
            return *dead;
        }
        let (main, small): (Vec<usize>, Vec<usize>) =
            sealed.iter().partition(|at| self.file[**at].is_main);
        let of_small = |segment: &Segment| {
            let ordinary = matches!(segment.state, State::Open | State::Sealed);
            if ordinary && !segment.is_main { segment.run.max(1) } else { 0 }
        };
        let small_segments = self.file.iter().map(of_small).sum::<usize>() as u64;
        let is_large = small_segments > percent(self.file.len() as u64, self.params.small);
        let order = if is_large && small.len() > 1 { [small, main] } else { [main, small] };
        *order.iter().flatten().next().unwrap()
    }

    fn frequency_if_kept(&self, slot: Slot, is_main: bool) -> Option<u32> {
        let hits = self.hits[&slot];
        if is_main { hits.checked_sub(1) } else { (hits >= self.params.threshold).then_some(0) }
    }

    fn recycle(&mut self, victim: usize, allowed: u64) {
        let Segment { is_main, run, live, .. } = self.file[victim].clone();
        let mut kept: Vec<Slot> = live.iter().rev().copied().collect();
        kept.retain(|slot| self.frequency_if_kept(*slot, is_main).is_some());
        kept.sort_by_key(|slot| std::cmp::Reverse(self.hits[slot]));
        if run > 0 {
            if let (Some(slot), true) = (kept.first(), allowed > 0) {
                self.opened += 1;
                (self.file[victim].is_main, self.file[victim].opened) = (true, self.opened);
                self.hits.insert(*slot, self.frequency_if_kept(*slot, is_main).unwrap());
                return;
            }
            kept.clear();
        }
        let mut sum = 0;
        let fits = |slot: &&Slot| {
            sum += self.weights.of(**slot);
            sum <= allowed
        };
        let kept: Vec<Slot> = kept.iter().take_while(fits).copied().collect();
        for slot in live {
            if kept.contains(&slot) {
                self.hits.insert(slot, self.frequency_if_kept(slot, is_main).unwrap());
                let open = self.open(true, self.weights.of(slot));
                let open = open.unwrap_or_else(|| self.take_free(true));
                self.append(open, slot);
                continue;
            }
            let bound = percent(self.capacity, self.params.ghost);
            let weight = self.weights.of(slot);
            if !is_main && weight <= bound {
                while self.ghosts.iter().map(|(_, weight)| weight).sum::<u64>() + weight > bound {
                    self.ghosts.remove(0);
                }
                self.ghosts.push((u64::from(slot), weight));
            }
            self.overflow.push_back(slot);
        }
        self.file[victim..victim + run.max(1)].fill(Segment::default());
    }

    fn room(&mut self, is_main: bool, weight: u64) -> Option<usize> {
        if self.file.is_empty() {
            return None;
        }
        if weight > self.segment_bytes {
            return self.room_for_run(is_main, weight);
        }
        let kept = percent(self.segment_bytes, self.params.keep);
        let mut allowed = [kept, kept, kept, 0].into_iter();
        loop {
            if let Some(open) = self.open(is_main, weight) {
                return Some(open);
            }
            if self.count(|segment| segment.state == State::Free) > 2 {
                return Some(self.take_free(is_main));
            }
            self.recycle(self.victim(), allowed.next()?);
        }
    }

    /// Returns the start of each stretch that reaches into a window, and its segments.
    fn stretches(&self, window: std::ops::Range<usize>) -> Vec<(usize, usize)> {
        let heads = (0..self.file.len()).filter(|at| self.file[*at].state != State::Tail);
        let stretches = heads.map(|at| (at, self.file[at].run.max(1)));
        stretches.filter(|(at, len)| *at < window.end && at + len > window.start).collect()
    }

    fn room_for_run(&mut self, is_main: bool, weight: u64) -> Option<usize> {
        if weight > self.capacity / 8 {
            return None;
        }
        let len = usize::try_from(weight.div_ceil(self.segment_bytes)).unwrap();
        let all_free = self.count(|segment| segment.state == State::Free);
        let mut windows = Vec::new();
        for first in 0..=self.file.len().saturating_sub(len) {
            let stretches = self.stretches(first..first + len);
            let is = |at: usize, state| self.file[at].state == state;
            let freed: usize =
                stretches.iter().filter(|(at, _)| !is(*at, State::Free)).map(|of| of.1).sum();
            let blocked = stretches.iter().any(|(at, _)| is(*at, State::Open));
            if is(first, State::Tail) || blocked || all_free + freed < len + 2 {
                continue;
            }
            let live = stretches.iter().flat_map(|(at, _)| &self.file[*at].live);
            windows.push((live.map(|slot| self.weights.of(*slot)).sum::<u64>(), first));
        }
        let (_, first) = windows.into_iter().min()?;
        for (at, _) in self.stretches(first..first + len) {
            if self.file[at].state != State::Free {
                self.recycle(at, 0);
            }
        }
        for segment in &mut self.file[first..first + len] {
            segment.state = State::Tail;
        }
        self.opened += u64::try_from(len).unwrap();
        let (state, opened) = (State::Sealed, self.opened);
        self.file[first] = Segment { state, is_main, opened, run: len, ..Segment::default() };
        Some(first)
    }

    fn queue(&self, is_main: bool) -> Vec<Slot> {
        let mut queue: Vec<&Segment> =
            self.file.iter().filter(|segment| segment.is_main == is_main).collect();
        queue.sort_by_key(|segment| segment.opened);
        queue.into_iter().flat_map(|segment| segment.live.iter().copied()).collect()
    }

    fn remove(&mut self, slot: Slot) -> bool {
        let segment = self.find(slot);
        self.file[segment].live.retain(|other| *other != slot);
        self.file[segment].is_main
    }
}

impl Policy for Plain {
    const HAS_OVERFLOW: bool = true;

    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        let hits = self.hits.get_mut(&slot).unwrap();
        *hits = (*hits + 1).min(3);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        let is_main = self.remove(slot);
        self.weights.set(slot, weight);
        match self.room(is_main, weight) {
            Some(segment) => self.append(segment, slot),
            None => self.overflow.push_back(slot),
        }
    }

    fn admit(&mut self, newcomer: Newcomer, _missing: u64) -> bool {
        let before = self.ghosts.len();
        self.ghosts.retain(|(fingerprint, _)| *fingerprint != newcomer.fingerprint);
        let room = self.room(self.ghosts.len() < before, newcomer.weight);
        self.room = room.unwrap_or(self.room);
        room.is_some()
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        unreachable!("room was made before")
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.hits.insert(slot, 0);
        self.weights.set(slot, newcomer.weight);
        self.append(self.room, slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.remove(slot);
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.overflow.pop_front()
    }

    fn queues(&self) -> Vec<Queue> {
        let ghosts = self.ghosts.iter().map(|(fingerprint, _)| *fingerprint).collect();
        vec![
            dump("small", &self.queue(false)),
            dump("main", &self.queue(true)),
            Queue { name: "ghost", entries: ghosts },
        ]
    }
}

fn objects(spec: &str, capacity: u64) -> Box<dyn Cache> {
    file(&Setup { spec, capacity, weighted: false, keys: 1000 })
}

fn weighted(spec: &str, capacity: u64) -> Box<dyn Cache> {
    file(&Setup { spec, capacity, weighted: true, keys: 1000 })
}

#[test]
fn segments_are_recycled_as_a_whole() {
    // Ten segments of two; two in reserve; the small queue is spared up to one segment.
    let mut cache = objects("segment:segments=10,keep=50,ghost=50", 20);
    cache.read(1..=16);
    assert_eq!(cache.queues(), "small 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 | main | ghost");
    // 1 and 3 are kept, which makes one segment out of two.
    cache.read([1, 3, 3, 5, 6]);
    assert_eq!(cache.read([17]), [Evicted(2), Evicted(4), Stored(17)]);
    assert_eq!(cache.queues(), "small 5 6 7 8 9 10 11 12 13 14 15 16 17 | main 1 3 | ghost 2 4");
    cache.read([18]);
    // Half a segment is kept: of 5 and 6, which were hit once each, the younger.
    assert_eq!(cache.read([19]), [Evicted(5), Evicted(7), Evicted(8), Stored(19)]);
    assert_eq!(
        cache.queues(),
        "small 9 10 11 12 13 14 15 16 17 18 19 | main 1 3 6 | ghost 2 4 5 7 8"
    );
    // A ghost returns to the main queue, whose open segment has room, so that nothing leaves.
    assert_eq!(cache.read([2]), [Stored(2)]);
    assert_eq!(
        cache.queues(),
        "small 9 10 11 12 13 14 15 16 17 18 19 | main 1 3 6 2 | ghost 4 5 7 8"
    );
}

#[test]
fn a_new_value_is_appended_to_the_queue_that_the_old_one_was_in() {
    let mut cache = weighted("segment:segments=10,keep=100", 100);
    cache.fill((1..=8).map(|key| (key, 10)));
    // The old value is dead in its place: its segment is evicted before any other.
    assert_eq!(cache.write(4, 9), [Updated(4)]);
    assert_eq!(cache.queues(), "small 1 2 3 5 6 7 8 4 | main | ghost");
    cache.read([1]);
    assert_eq!(cache.fill([(9, 10)]), [Evicted(2), Stored(9)]);
    assert_eq!(cache.queues(), "small 3 5 6 7 8 4 9 | main 1 | ghost 2");
    assert_eq!(cache.write(1, 10), [Updated(1)]);
    assert_eq!(cache.queues(), "small 3 5 6 7 8 4 9 | main 1 | ghost 2");
}

#[test]
fn what_is_longer_than_a_segment_takes_a_run_of_them() {
    // Sixteen segments of ten; an eighth of the file is 20.
    let mut cache = weighted("segment:segments=16", 160);
    assert_eq!(cache.fill([(1, 21)]), [Refused(1)]);
    cache.fill((1..=14).map(|key| (key, if key == 5 { 3 } else { 10 })));
    // The cheapest two neighbours are 4 and 5 or 5 and 6; the segments in reserve are not taken.
    assert_eq!(cache.fill([(20, 15)]), [Evicted(4), Evicted(5), Stored(20)]);
    assert_eq!(cache.queues(), "small 1 2 3 6 7 8 9 10 11 12 13 14 20 | main | ghost 4 5");
    // The run is kept without being copied when its turn comes.
    cache.read([20]);
    cache.fill((30..43).map(|key| (key, 10)));
    assert!(cache.queues().contains("| main 20 |"), "{}", cache.queues());
    assert_eq!(cache.write(20, 21), [Updated(20), Evicted(20)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        let params = |segments, small, threshold, keep, ghost| {
            Params { segments, small, threshold, keep, ghost }
        };
        for params in [
            params(4, 10, 1, 50, 50),
            params(8, 20, 2, 100, 90),
            params(16, 10, 1, 75, 300),
            params(300, 0, 3, 0, 0),
        ] {
            let Params { segments, small, threshold, keep, ghost } = params;
            let spec = format!(
                "segment:segments={segments},small={small},threshold={threshold},keep={keep},\
                 ghost={ghost}"
            );
// With several entries in a segment, and with only runs.
            for capacity in [case.capacity, case.capacity * 3] {
                let setup =
                    Setup { spec: &spec, capacity, weighted: case.weighted, keys: case.keys };
                let plain = Plain::new(capacity, params);
                same_decisions(&setup, file(&setup), model(plain, &setup), &case.ops);
            }
        }
    }
}
