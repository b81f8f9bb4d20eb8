//! A memory store keeps the contract of the policy module.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::{Cache, ManualClock};
use haypile_policy::lru::Lru;
use haypile_policy::rules::memory::charge;
use haypile_policy::{Newcomer, Policy, Slot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Judge(u64, u64),
    Admit(u64, u64, u64),
    Evict(Option<u64>),
    Insert(Slot, u64),
    Hit(Slot),
    Update(Slot, u64),
    Remove(Slot),
}

/// An LRU that logs its calls, and declines the fingerprint 0 if an entry would have to leave for it.
struct Recorder {
    lru: Lru,
    slots: usize,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Policy for Recorder {
    fn reserve_slots(&mut self, slots: usize) {
        assert!(slots >= self.slots, "never shrinks");
        self.slots = slots;
        self.lru.reserve_slots(slots);
    }

    fn on_hit(&mut self, slot: Slot) {
        self.note(Call::Hit(slot));
        self.lru.on_hit(slot);
    }

    fn judge(&self, newcomer: Newcomer, missing: u64) -> bool {
        self.note(Call::Judge(newcomer.fingerprint, missing));
        newcomer.fingerprint != 0
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        self.note(Call::Admit(newcomer.fingerprint, newcomer.weight, missing));
        newcomer.fingerprint != 0 || missing == 0
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        self.note(Call::Evict(newcomer.map(|newcomer| newcomer.fingerprint)));
        self.lru.evict(newcomer)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        assert!((slot as usize) < self.slots, "slots are reserved before they are used");
        self.note(Call::Insert(slot, newcomer.fingerprint));
        self.lru.on_insert(slot, newcomer);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.note(Call::Update(slot, weight));
        self.lru.on_hit(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.note(Call::Remove(slot));
        self.lru.on_remove(slot);
    }
}

struct Subject {
    cache: Cache,
    clock: Arc<ManualClock>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Subject {
    /// A store with room for three values of [`VALUE`]. The fingerprint of a key is its first byte.
    fn new() -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let recorder = |_| Recorder { lru: Lru::new(), slots: 0, calls: Arc::clone(&calls) };
        let clock = Arc::new(ManualClock::new());
        let builder = MemoryBuilder::new(3 * weight() + weight() / 2).clock(clock.clone());
        let store = builder.fingerprint(|key| key[0].into()).open_with(recorder, "recorder");
        Self { cache: store.unwrap().into(), clock, calls }
    }

    fn set(&self, key: u8, value_bytes: usize) {
        self.cache.set([key], vec![key; value_bytes]).unwrap();
    }

    #[track_caller]
    fn says(&self, calls: &[Call]) {
        assert_eq!(std::mem::take(&mut *self.calls.lock().unwrap()), calls);
    }
}

/// Three values of this size fit, and a fourth does not.
const VALUE: usize = 180;

fn weight() -> u64 {
    charge(1, VALUE as u64)
}

#[test]
fn room_is_made_between_admission_and_insertion() {
    let subject = Subject::new();
    for key in 1..=3 {
        subject.set(key, VALUE);
    }
    subject.says(&[
        Call::Admit(1, weight(), 0),
        Call::Insert(0, 1),
        Call::Admit(2, weight(), 0),
        Call::Insert(1, 2),
        Call::Admit(3, weight(), 0),
        Call::Insert(2, 3),
    ]);
    // A miss is not reported, a hit is; the newcomer gets the victim's slot.
    assert_eq!(subject.cache.get([4]).unwrap(), None);
    assert!(subject.cache.get([1]).unwrap().is_some());
    assert!(subject.cache.contains([2]).unwrap());
    subject.set(4, VALUE);
    subject.says(&[
        Call::Hit(0),
        Call::Judge(4, weight() / 2),
        Call::Admit(4, weight(), 0),
        Call::Evict(Some(4)),
        Call::Insert(1, 4),
    ]);
    assert!(!subject.cache.contains([2]).unwrap());
}

#[test]
fn a_newcomer_that_is_declined_changes_nothing_and_is_counted() {
    let subject = Subject::new();
    for key in 1..=3 {
        subject.set(key, VALUE);
    }
    subject.calls.lock().unwrap().clear();
    subject.set(0, VALUE);
    let missing = weight() / 2;
    subject.says(&[Call::Judge(0, missing), Call::Admit(0, weight(), missing)]);
    let stats = subject.cache.store().stats().unwrap();
    assert_eq!((stats.sets, stats.declined, stats.evictions, stats.entries), (4, 1, 0, 3));
    // Where there is room it stays.
    subject.cache.delete([1]).unwrap();
    subject.set(0, VALUE);
    assert!(subject.cache.contains([0]).unwrap());
}

#[test]
fn an_update_makes_room_after_it_is_reported() {
    let subject = Subject::new();
    subject.set(1, VALUE);
    subject.set(2, VALUE);
    subject.set(3, VALUE);
    subject.calls.lock().unwrap().clear();
    subject.set(1, VALUE + 200);
    subject.says(&[Call::Update(0, charge(1, VALUE as u64 + 200)), Call::Evict(None)]);
    assert!(!subject.cache.contains([2]).unwrap());
    subject.set(1, 1);
    subject.says(&[Call::Update(0, charge(1, 1))]);
    assert_eq!(subject.cache.get([1]).unwrap().unwrap(), [1]);
}

#[test]
fn what_is_deleted_cleared_or_expired_is_removed() {
    let subject = Subject::new();
    subject.set(1, 1);
    subject.set(2, 1);
    subject.cache.set_with_ttl([3], "", Duration::from_secs(1)).unwrap();
    subject.cache.touch([2], Duration::from_secs(2)).unwrap();
    subject.calls.lock().unwrap().clear();
    subject.cache.delete([1]).unwrap();
    subject.clock.advance(Duration::from_secs(1));
    assert!(!subject.cache.contains([3]).unwrap());
    subject.says(&[Call::Remove(0), Call::Remove(2)]);
    subject.cache.store().clear().unwrap();
    subject.says(&[Call::Remove(1)]);
}

#[test]
fn a_write_sweeps_a_few_entries_that_expired_first() {
    let clock = Arc::new(ManualClock::new());
    let cache = Cache::new(MemoryBuilder::new(1 << 20).clock(clock.clone()).store().unwrap());
    for key in 0..20_u8 {
        cache.set_with_ttl([key], "", Duration::from_secs(20 - u64::from(key))).unwrap();
    }
    // The search for expired entries may lag by a little over a millisecond.
    clock.advance(Duration::from_millis(15_002));
    // The keys 5 to 19 have expired; a write removes eight.
    cache.set([100], "").unwrap();
    assert_eq!(cache.store().stats().unwrap().expired, 8);
    cache.set([100], "").unwrap();
    cache.set([100], "").unwrap();
    let stats = cache.store().stats().unwrap();
    assert_eq!((stats.expired, stats.entries), (15, 6));
}
