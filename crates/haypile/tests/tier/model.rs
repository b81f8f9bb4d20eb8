//! Levels behave like a map with expiry times, whatever fits the upper level, and whether the lower
//! level is written at once or later.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haypile::{
    Cache, Clock, Error, Hit, ManualClock, Result, SetOptions, Store, Ttl, Version, WriteMode,
    Written,
};
use proptest::prelude::*;

use crate::hooked::{Hooked, When, failure};
use crate::{memory, options, tier};

/// The name of the thread that writes later. These tests keep it from writing, so that writes stay
/// pending until the test changes that.
const WRITER: &str = "haypile-write";

/// The length of a value that has no copy in a small upper level.
const LARGE_BYTES: usize = 2_000;

#[derive(Clone, Debug)]
enum Op {
    Write {
        key: u8,
        value: Vec<u8>,
        mode: Mode,
        ttl: Option<u16>,
        reserve: bool,
    },
    SetMany(Vec<(u8, Vec<u8>, Option<u16>)>),
    Get(u8),
    GetVersioned(u8),
    GetMany(Vec<u8>),
    Contains(u8),
    Delete(u8),
    DeleteMany(Vec<u8>),
    /// With the value of the entry, or another one.
    CompareAndDelete(u8, bool),
    Touch(u8, Option<u16>),
    Incr(u8, u64),
    Decr(u8, u64),
    Advance(u16),
    Keys,
    Clear,
    /// The lower level fails from here on, or no longer does.
    Fail(bool),
    /// No copy can be put into an upper level from here on, or it can again.
    FailCopies(bool),
}

/// `Cas` takes the version of the last read that returned one.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Set,
    Add,
    Replace,
    Cas,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..5_u8;
    let value = prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..40),
        4 => (0..20_u64).prop_map(|number| number.to_string().into_bytes()),
        // Too large for a small upper level.
        1 => any::<u8>().prop_map(|byte| vec![byte; LARGE_BYTES]),
    ];
    let mode = prop_oneof![
        6 => Just(Mode::Set), 2 => Just(Mode::Add), 2 => Just(Mode::Replace), 3 => Just(Mode::Cas),
    ];
    let ttl = prop::option::of(1..20_u16);
    let many = prop::collection::vec((key.clone(), value.clone(), ttl.clone()), 0..4);
    let keys = prop::collection::vec(key.clone(), 0..4);
    let reserve = prop::bool::weighted(0.2);
    prop_oneof![
        9 => (key.clone(), value, mode, ttl.clone(), reserve).prop_map(
            |(key, value, mode, ttl, reserve)| Op::Write { key, value, mode, ttl, reserve }
        ),
        2 => many.prop_map(Op::SetMany),
        8 => key.clone().prop_map(Op::Get),
        3 => key.clone().prop_map(Op::GetVersioned),
        2 => keys.clone().prop_map(Op::GetMany),
        2 => key.clone().prop_map(Op::Contains),
        2 => key.clone().prop_map(Op::Delete),
        1 => keys.prop_map(Op::DeleteMany),
        2 => (key.clone(), any::<bool>())
            .prop_map(|(key, same)| Op::CompareAndDelete(key, same)),
        2 => (key.clone(), ttl).prop_map(|(key, ttl)| Op::Touch(key, ttl)),
        2 => (key.clone(), 0..30_u64).prop_map(|(key, delta)| Op::Incr(key, delta)),
        1 => (key, 0..30_u64).prop_map(|(key, delta)| Op::Decr(key, delta)),
        4 => (0..8_u16).prop_map(Op::Advance),
        1 => Just(Op::Keys),
        1 => Just(Op::Clear),
        1 => any::<bool>().prop_map(Op::Fail),
        1 => any::<bool>().prop_map(Op::FailCopies),
    ]
}

#[derive(Clone, Debug)]
struct Expected {
    value: Vec<u8>,
    expires_ns: Option<u64>,
    /// Number of writes, in the place of versions.
    write: u64,
}

/// Fails everything, or only the operations of the thread that writes later.
fn fail(lower: &Hooked, fails: bool) {
    lower.hook(move |_| {
        let is_writer = thread::current().name() == Some(WRITER);
        if fails || is_writer { Err(failure()) } else { Ok(()) }
    });
}

/// The levels and the map.
struct Pair {
    store: Arc<dyn Store>,
    lower: Arc<Hooked>,
    /// The upper levels.
    fronts: Vec<Arc<Hooked>>,
    clock: Arc<ManualClock>,
    tick: Duration,
    entries: HashMap<u8, Expected>,
    writes: u64,
    seen: HashMap<u8, (Version, u64)>,
    fails: bool,
}

fn key_of(key: u8) -> Vec<u8> {
    vec![b'k', key]
}

impl Pair {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn ticks(&self, ticks: u16) -> Duration {
        self.tick * ticks.into()
    }

    fn expires_ns(&self, ttl: Option<u16>) -> Option<u64> {
        let ns = |ttl| u64::try_from(self.ticks(ttl).as_nanos()).unwrap();
        ttl.map(|ttl| self.now_ns() + ns(ttl))
    }

    fn put(&mut self, key: u8, value: Vec<u8>, expires_ns: Option<u64>) {
        self.writes += 1;
        self.entries.insert(key, Expected { value, expires_ns, write: self.writes });
    }

    /// Returns the expected outcome of a write.
    fn judge(&self, key: u8, mode: Mode) -> (WriteMode, Written) {
        let present = self.entries.get(&key).map(|entry| entry.write);
        let or = |holds, otherwise| if holds { Written::Stored } else { otherwise };
        match (mode, self.seen.get(&key)) {
            (Mode::Set, _) | (Mode::Cas, None) => (WriteMode::Set, Written::Stored),
            (Mode::Add, _) => (WriteMode::Add, or(present.is_none(), Written::Exists)),
            (Mode::Replace, _) => (WriteMode::Replace, or(present.is_some(), Written::Absent)),
            (Mode::Cas, Some((version, write))) => {
                let otherwise = if present.is_some() { Written::Changed } else { Written::Absent };
                (WriteMode::Cas(*version), or(present == Some(*write), otherwise))
            }
        }
    }

    /// Returns the result of an operation below, unless the lower level fails: then it has changed
    /// nothing.
    fn unless_failing<T>(&self, result: Result<T>) -> Option<T> {
        match result {
            Err(Error::Backend { .. }) if self.fails => None,
            result => Some(result.unwrap()),
        }
    }

    fn check_hit(&mut self, key: u8, value: &[u8], hit: Hit) {
        let Some(entry) = self.entries.get(&key) else { panic!("{key} is not there") };
        assert_eq!(value, entry.value);
        let left = entry.expires_ns.map(|at| Duration::from_nanos(at - self.now_ns()));
        assert_eq!(hit.expires_in, left);
        if let Some(version) = hit.version {
            let seen = self.seen.insert(key, (version, entry.write));
            if let Some((version_before, write)) = seen {
                assert_eq!(version_before == version, write == entry.write);
            }
        }
    }

    /// Returns the entry of a read, or nothing if there is none or the lower level fails.
    fn check_found(&mut self, key: u8, found: Option<(Vec<u8>, Hit)>) {
        match found {
            Some((value, hit)) => self.check_hit(key, &value, hit),
            None => assert!(self.fails || !self.entries.contains_key(&key), "{key} is lost"),
        }
    }

    fn count(&mut self, key: u8, count: impl Fn(u64) -> u64) -> Result<Option<u64>, ()> {
        let Some(entry) = self.entries.get(&key).cloned() else { return Ok(None) };
        let text = std::str::from_utf8(&entry.value).map_err(drop)?;
        // As in memcached, no number has more than 20 digits.
        let digits =
            (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = if digits { text.parse().map_err(drop)? } else { return Err(()) };
        let number = count(number);
        self.put(key, number.to_string().into_bytes(), entry.expires_ns);
        Ok(Some(number))
    }

    fn check_count(&mut self, key: u8, result: Result<Option<u64>>, count: impl Fn(u64) -> u64) {
        match result {
            Err(Error::Backend { .. }) if self.fails => {}
            Err(Error::NotACounter { .. }) => assert_eq!(self.count(key, count), Err(())),
            result => assert_eq!(Ok(result.unwrap()), self.count(key, count)),
        }
    }

    fn write(&mut self, key: u8, value: Vec<u8>, mode: Mode, ttl: Option<u16>, reserve: bool) {
        let (mode, expected) = self.judge(key, mode);
        let mut options = SetOptions::default().with_ttl(ttl.map(|ttl| self.ticks(ttl)));
        options.mode = mode;
        let name = key_of(key);
        let written = if reserve {
            self.store.reserve(&name, value.len(), &options).and_then(|mut reservation| {
                reservation.buffer().copy_from_slice(&value);
                reservation.commit()
            })
        } else {
            self.store.set(&name, &value, &options)
        };
        if let Some(written) = self.unless_failing(written) {
            assert_eq!(written, expected);
            if written.is_stored() {
                self.put(key, value, self.expires_ns(ttl));
            }
        }
    }

    fn deleted(&mut self, key: u8, deleted: Result<bool>) {
        if let Some(deleted) = self.unless_failing(deleted) {
            assert_eq!(deleted, self.entries.remove(&key).is_some());
        }
    }

    /// Compares with the value of the entry, or with another one.
    fn compare_and_delete(&mut self, key: u8, same: bool) {
        let entry = self.entries.get(&key);
        let mut value = entry.map_or_else(Vec::new, |entry| entry.value.clone());
        if !same {
            value.push(b'x');
        }
        let is_same = same && entry.is_some();
        let deleted = self.store.compare_and_delete(&key_of(key), &value);
        if let Some(deleted) = self.unless_failing(deleted) {
            assert_eq!(deleted, is_same);
            if deleted {
                self.entries.remove(&key);
            }
        }
    }

    fn fail(&mut self, fails: bool) {
        self.fails = fails;
        fail(&self.lower, fails);
    }

    fn fail_copies(&self, fails: bool) {
        for front in &self.fronts {
            front.hook(move |when| {
                let is_copy = when == When::Before("reserve");
                if fails && is_copy { Err(failure()) } else { Ok(()) }
            });
        }
    }

    fn write_many(&mut self, pairs: &[(u8, Vec<u8>, Option<u16>)]) {
        let keys: Vec<Vec<u8>> = pairs.iter().map(|(key, ..)| key_of(*key)).collect();
        let options = |ttl: Option<u16>| SetOptions::set().with_ttl(ttl.map(|ttl| self.ticks(ttl)));
        let entries: Vec<(&[u8], &[u8], SetOptions)> = keys
            .iter()
            .zip(pairs)
            .map(|(key, (_, value, ttl))| (&**key, &**value, options(*ttl)))
            .collect();
        for ((key, value, ttl), written) in pairs.iter().zip(self.store.set_many(&entries)) {
            if self.unless_failing(written).is_some() {
                self.put(*key, value.clone(), self.expires_ns(*ttl));
            }
        }
    }

    fn perform(&mut self, op: Op) {
        let now_ns = self.now_ns();
        self.entries.retain(|_, entry| entry.expires_ns.is_none_or(|expires| expires > now_ns));
        let store = Arc::clone(&self.store);
        match op {
            Op::Write { key, value, mode, ttl, reserve } => {
                self.write(key, value, mode, ttl, reserve);
            }
            Op::SetMany(pairs) => self.write_many(&pairs),
            Op::Get(key) => {
                let mut value = b"left from before".to_vec();
                let hit = store.get_into(&key_of(key), &mut value).unwrap();
                assert!(hit.is_some() || value.is_empty());
                self.check_found(key, hit.map(|hit| (value, hit)));
                let pinned = store.get_pinned(&key_of(key)).unwrap();
                let pinned = pinned.map(|pinned| (pinned.to_vec(), pinned.hit()));
                self.check_found(key, pinned);
            }
            Op::GetVersioned(key) => {
                let mut value = Vec::new();
                let hit = store.get_versioned_into(&key_of(key), &mut value);
                if let Some(hit) = self.unless_failing(hit) {
                    assert!(hit.is_none_or(|hit| hit.version.is_some()));
                    self.check_found(key, hit.map(|hit| (value, hit)));
                }
            }
            Op::GetMany(keys) => {
                let names: Vec<Vec<u8>> = keys.iter().map(|key| key_of(*key)).collect();
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                for (key, found) in keys.iter().zip(store.get_many(&names).unwrap()) {
                    self.check_found(*key, found);
                }
            }
            Op::Contains(key) => {
                let contains = store.contains(&key_of(key)).unwrap();
                let expected = self.entries.contains_key(&key);
                assert!(contains == expected || (self.fails && !contains));
            }
            Op::Delete(key) => {
                let deleted = store.delete(&key_of(key));
                self.deleted(key, deleted);
            }
            Op::DeleteMany(keys) => {
                let names: Vec<Vec<u8>> = keys.iter().map(|key| key_of(*key)).collect();
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                for (key, deleted) in keys.iter().zip(store.delete_many(&names)) {
                    self.deleted(*key, deleted);
                }
            }
            Op::CompareAndDelete(key, same) => self.compare_and_delete(key, same),
            Op::Touch(key, ttl) => {
                let touched = store.touch(&key_of(key), Ttl::from(ttl.map(|ttl| self.ticks(ttl))));
                if let Some(touched) = self.unless_failing(touched) {
                    let expires_ns = self.expires_ns(ttl);
                    let entry = self.entries.get_mut(&key);
                    assert_eq!(touched, entry.is_some());
                    if let Some(entry) = entry {
                        entry.expires_ns = expires_ns;
                    }
                }
            }
            Op::Incr(key, delta) => {
                let result = store.incr(&key_of(key), delta);
                self.check_count(key, result, |number| number.wrapping_add(delta));
            }
            Op::Decr(key, delta) => {
                let result = store.decr(&key_of(key), delta);
                self.check_count(key, result, |number| number.saturating_sub(delta));
            }
            Op::Advance(ticks) => self.clock.advance(self.ticks(ticks)),
            Op::Keys => {
                let keys = Cache::new(store).keys().collect::<Result<BTreeSet<_>>>();
                if let Some(keys) = self.unless_failing(keys) {
                    assert_eq!(keys, self.entries.keys().map(|key| key_of(*key)).collect());
                }
            }
            Op::Clear => {
                if self.unless_failing(store.clear()).is_some() {
                    self.entries.clear();
                }
            }
            Op::Fail(fails) => self.fail(fails),
            Op::FailCopies(fails) => self.fail_copies(fails),
        }
    }
}

/// The settings of the levels.
#[derive(Clone, Copy, Debug)]
struct Plan {
    front_bytes: u64,
    stale_ticks: u16,
    write_max_bytes: Option<u64>,
    levels: usize,
}

fn plan() -> impl Strategy<Value = Plan> {
    let front_bytes = prop_oneof![Just(64 << 10), Just(1 << 10), Just(1_200)];
    let stale_ticks = prop_oneof![Just(0), 1..12_u16, Just(1_000)];
    // Room for nothing, for some, for all entries.
    let write_max_bytes = prop::option::of(prop_oneof![Just(0), Just(500), Just(1 << 20)]);
    (front_bytes, stale_ticks, write_max_bytes, 2..4_usize).prop_map(
        |(front_bytes, stale_ticks, write_max_bytes, levels)| Plan {
            front_bytes,
            stale_ticks,
            write_max_bytes,
            levels,
        },
    )
}

fn run(ops: Vec<Op>, plan: Plan, last: &Arc<dyn Store>, clock: Arc<ManualClock>, tick: Duration) {
    let lower = Hooked::new(last);
    let mut store: Arc<dyn Store> = Arc::clone(&lower) as Arc<_>;
    let mut fronts = Vec::new();
    for _ in 1..plan.levels {
        let options = options(tick * plan.stale_ticks.into()).write_back(plan.write_max_bytes);
        let front = Hooked::new(&memory(plan.front_bytes, &clock));
        fronts.push(Arc::clone(&front));
        let upper = tier(&(front as Arc<dyn Store>), &store, options, &clock);
        let upper = Hooked::new(&(Arc::new(upper) as Arc<dyn Store>));
        fail(&upper, false);
        store = upper;
    }
    let (entries, seen) = (HashMap::new(), HashMap::new());
    let (writes, fails) = (0, false);
    let mut pair = Pair { store, lower, fronts, clock, tick, entries, writes, seen, fails };
    pair.fail(false);
    for op in ops {
        pair.perform(op);
    }
    pair.fail(false);
    pair.perform(Op::Keys);
    // All of it is below, where another process finds it.
    let names: Vec<u8> = (0..5).collect();
    pair.store = Arc::clone(last);
    for key in names {
        pair.perform(Op::Get(key));
    }
}

proptest! {
    #[test]
    fn memory_before_memory(ops in prop::collection::vec(op(), 0..80), plan in plan()) {
        let clock = Arc::new(ManualClock::new());
        let last = memory(64 << 10, &clock);
        run(ops, plan, &last, clock, Duration::from_nanos(1));
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn memory_before_a_file(ops in prop::collection::vec(op(), 0..60), plan in plan()) {
        let clock = Arc::new(ManualClock::new());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lower.haypile");
        let registry = haypile::Registry::new().with_clock(clock.clone());
        let last = registry.open(&format!("file://{}?size=1MiB", path.display())).unwrap();
        run(ops, plan, &last, clock, Duration::from_millis(1));
    }
}
