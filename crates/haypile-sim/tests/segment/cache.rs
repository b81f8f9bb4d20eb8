//! A simulated file behind the interface by which policies are tested.

use std::collections::{BTreeMap, HashMap};

use haypile_policy::PolicySpec;
use haypile_policy::weight::{PerSlot, Unit, Weights};
use haypile_sim::simulate::SimulatedFile;

use crate::driver::{Cache, Dump, Event, Op, Setup};

/// A file, and what the requests have left in it.
struct FileCache<W: Weights> {
    file: SimulatedFile<W>,
    capacity: u64,
    entries: BTreeMap<u32, u64>,
    last_weight: HashMap<u32, u64>,
    events: Vec<Event>,
}

impl<W: Weights> FileCache<W> {
    fn new(spec: &PolicySpec, capacity: u64, keys: u32) -> Self {
        Self {
            file: SimulatedFile::new(spec, capacity, keys),
            capacity,
            entries: BTreeMap::new(),
            last_weight: HashMap::new(),
            events: Vec::new(),
        }
    }

    fn drain_evicted(&mut self) {
        for key in self.file.drain_evicted() {
            self.entries.remove(&key).expect("only entries are evicted");
            self.events.push(Event::Evicted(key));
        }
    }

    fn note(&mut self, key: u32, weight: u64) {
        self.entries.insert(key, weight);
        self.last_weight.insert(key, weight);
    }

    fn store(&mut self, key: u32, weight: u64) {
        if weight > self.capacity || !self.file.insert(key, weight) {
            self.events.push(Event::Refused(key));
            self.drain_evicted();
            return;
        }
        self.drain_evicted();
        self.note(key, weight);
        self.events.push(Event::Stored(key));
    }

    fn update(&mut self, key: u32, weight: u64) {
        if weight > self.capacity {
            self.remove(key);
            self.events.push(Event::Refused(key));
            return;
        }
        self.file.update(key, weight);
        self.note(key, weight);
        self.events.push(Event::Updated(key));
        self.drain_evicted();
    }

    fn remove(&mut self, key: u32) {
        if self.entries.remove(&key).is_some() {
            self.file.remove(key);
            self.events.push(Event::Removed(key));
        }
    }
}

impl<W: Weights> Cache for FileCache<W> {
    fn apply(&mut self, op: Op) -> Vec<Event> {
        self.events.clear();
        match op {
            Op::Read(key, _) if self.file.contains(key) => {
                self.file.hit(key);
                self.events.push(Event::Hit(key));
            }
            Op::Write(key, weight) if self.file.contains(key) => self.update(key, weight),
            Op::Read(key, weight) | Op::Write(key, weight) => self.store(key, weight),
            Op::Remove(key) => self.remove(key),
            Op::Resize(_) => panic!("a file keeps its size"),
        }
        assert_eq!(self.file.used(), self.entries.values().sum::<u64>());
        assert_eq!(self.file.entries(), self.entries.len() as u64);
        assert!(self.file.used() <= self.capacity, "the bound is exceeded after {op:?}");
        self.events.clone()
    }

    fn dump(&self) -> Vec<Dump> {
        let key = |number: &u64| u32::try_from(*number).expect("a key");
        let dump =
            |queue: haypile_policy::Queue| (queue.name, queue.entries.iter().map(key).collect());
        self.file.queues().into_iter().map(dump).collect()
    }

    fn entries(&self) -> BTreeMap<u32, u64> {
        self.entries.clone()
    }

    fn last_weight(&self, key: u32) -> u64 {
        self.last_weight[&key]
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self) -> u64 {
        self.file.used()
    }

    fn ranking(&self) -> Vec<(u32, u8)> {
        panic!("a file is its own snapshot")
    }

    fn restore(&mut self, _key: u32, _weight: u64, _uses: u8) -> Vec<Event> {
        panic!("a file is its own snapshot")
    }

    fn evict_one(&mut self) -> Vec<u32> {
        panic!("a file evicts only to make room for a record")
    }

    fn dumps_keys(&self) -> bool {
        true
    }
}

/// An empty file.
pub(crate) fn file(setup: &Setup<'_>) -> Box<dyn Cache> {
    let Setup { spec, capacity, weighted, keys } = *setup;
    let spec: PolicySpec = spec.parse().expect("a policy");
    if weighted {
        Box::new(FileCache::<PerSlot>::new(&spec, capacity, keys))
    } else {
        Box::new(FileCache::<Unit>::new(&spec, capacity, keys))
    }
}
