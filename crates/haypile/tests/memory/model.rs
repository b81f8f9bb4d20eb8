//! A memory store that is large enough behaves like a map with expiry times.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::{
    Cache, Clock, Error, ManualClock, SetOptions, Store, Ttl, Version, WriteMode, Written,
};
use haypile_policy::rules::memory::charge;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Op {
    Write {
        key: u8,
        value: Vec<u8>,
        mode: Mode,
        ttl: Option<u16>,
        reserve: bool,
    },
    Get(u8),
    Contains(u8),
    Delete(u8),
    /// With the version of the last read, or of an earlier one.
    DeleteVersion(u8),
    /// With the value of the entry, or another one.
    CompareAndDelete(u8, bool),
    Touch(u8, Option<u16>),
    Incr(u8, u64),
    Decr(u8, u64),
    Advance(u16),
    Clear,
}

/// `Cas` takes the version of the last read, or of an earlier one.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Set,
    Add,
    Replace,
    Cas,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..6_u8;
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        (0..20_u64).prop_map(|number| number.to_string().into_bytes()),
        Just(b"18446744073709551615".to_vec()),
        Just(b"18446744073709551616".to_vec()),
    ];
    let mode = prop_oneof![
        4 => Just(Mode::Set), 2 => Just(Mode::Add), 2 => Just(Mode::Replace), 3 => Just(Mode::Cas),
    ];
    let ttl = prop::option::of(1..20_u16);
    let delta = prop_oneof![0..30_u64, Just(u64::MAX)];
    prop_oneof![
        8 => (key.clone(), value, mode, ttl.clone(), any::<bool>()).prop_map(
            |(key, value, mode, ttl, reserve)| Op::Write { key, value, mode, ttl, reserve }
        ),
        8 => key.clone().prop_map(Op::Get),
        2 => key.clone().prop_map(Op::Contains),
        2 => key.clone().prop_map(Op::Delete),
        2 => key.clone().prop_map(Op::DeleteVersion),
        2 => (key.clone(), any::<bool>())
            .prop_map(|(key, same)| Op::CompareAndDelete(key, same)),
        2 => (key.clone(), ttl).prop_map(|(key, ttl)| Op::Touch(key, ttl)),
        3 => (key.clone(), delta.clone()).prop_map(|(key, delta)| Op::Incr(key, delta)),
        3 => (key, delta).prop_map(|(key, delta)| Op::Decr(key, delta)),
        4 => (0..8_u16).prop_map(Op::Advance),
        1 => Just(Op::Clear),
    ]
}

#[derive(Clone, Debug)]
struct Expected {
    value: Vec<u8>,
    expires_ns: Option<u64>,
    /// Number of writes, in the place of versions, which are opaque.
    write: u64,
}

#[derive(Default)]
struct Model {
    entries: HashMap<u8, Expected>,
    writes: u64,
}

impl Model {
    fn drop_expired(&mut self, now_ns: u64) {
        self.entries.retain(|_, entry| entry.expires_ns.is_none_or(|expires| expires > now_ns));
    }

    fn put(&mut self, key: u8, value: Vec<u8>, expires_ns: Option<u64>) {
        self.writes += 1;
        self.entries.insert(key, Expected { value, expires_ns, write: self.writes });
    }

    /// Returns the expected outcome of a write.
    fn judge(&self, key: u8, mode: Mode, seen: Option<&(Version, u64)>) -> (WriteMode, Written) {
        let present = self.entries.get(&key).map(|entry| entry.write);
        match (mode, seen) {
            (Mode::Set, _) | (Mode::Cas, None) => (WriteMode::Set, Written::Stored),
            (Mode::Add, _) if present.is_some() => (WriteMode::Add, Written::Exists),
            (Mode::Add, _) => (WriteMode::Add, Written::Stored),
            (Mode::Replace, _) if present.is_none() => (WriteMode::Replace, Written::Absent),
            (Mode::Replace, _) => (WriteMode::Replace, Written::Stored),
            (Mode::Cas, Some((version, write))) => (
                WriteMode::Cas(*version),
                match present {
                    None => Written::Absent,
                    Some(current) if current == *write => Written::Stored,
                    Some(_) => Written::Changed,
                },
            ),
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
}

fn key_of(key: u8) -> Vec<u8> {
    vec![b'k'; usize::from(key)]
}

fn ttl_of(ttl: Option<u16>) -> Option<Duration> {
    ttl.map(|ttl| Duration::from_nanos(ttl.into()))
}

fn write(
    store: &dyn Store,
    key: &[u8],
    value: &[u8],
    options: SetOptions,
    reserve: bool,
) -> Written {
    if reserve {
        let mut reservation = store.reserve(key, value.len(), &options).unwrap();
        reservation.buffer().copy_from_slice(value);
        reservation.commit().unwrap()
    } else {
        store.set(key, value, &options).unwrap()
    }
}

/// Compares with the value of the entry, or with another one.
fn compare_and_delete(store: &dyn Store, model: &mut Model, key: u8, same: bool) {
    let entry = model.entries.get(&key);
    let mut value = entry.map_or_else(Vec::new, |entry| entry.value.clone());
    if !same {
        value.push(b'x');
    }
    let is_same = same && entry.is_some();
    assert_eq!(store.compare_and_delete(&key_of(key), &value).unwrap(), is_same);
    if is_same {
        model.entries.remove(&key);
    }
}

fn run(ops: Vec<Op>, policy: &str) {
    let clock = Arc::new(ManualClock::new());
    let builder = MemoryBuilder::new(64 << 10).clock(clock.clone());
    // Two keys share each fingerprint, so that keys are compared.
    let builder = builder.fingerprint(|key| key.len() as u64 / 2);
    let cache = Cache::new(builder.policy(policy.parse().unwrap()).store().unwrap());
    let store = cache.store().as_ref();
    let mut model = Model::default();
    let mut seen: HashMap<u8, (Version, u64)> = HashMap::new();
    for op in ops {
        let now_ns = clock.now_ns();
        model.drop_expired(now_ns);
        match op {
            Op::Write { key, value, mode, ttl, reserve } => {
                let (mode, expected) = model.judge(key, mode, seen.get(&key));
                let mut options = SetOptions::default().with_ttl(ttl_of(ttl));
                options.mode = mode;
                let written = write(store, &key_of(key), &value, options, reserve);
                assert_eq!(written, expected);
                if written.is_stored() {
                    model.put(key, value, ttl.map(|ttl| now_ns + u64::from(ttl)));
                }
            }
            Op::Get(key) => {
                let mut value = b"left from before".to_vec();
                let hit = store.get_into(&key_of(key), &mut value).unwrap();
                let expected = model.entries.get(&key);
                assert_eq!(hit.map(|_| value), expected.map(|entry| entry.value.clone()));
                if let (Some(hit), Some(entry)) = (hit, expected) {
                    let left = entry.expires_ns.map(|at| Duration::from_nanos(at - now_ns));
                    assert_eq!(hit.expires_in, left);
                    seen.insert(key, (hit.version.unwrap(), entry.write));
                }
                let pinned = store.get_pinned(&key_of(key)).unwrap();
                assert_eq!(pinned.as_deref(), expected.map(|entry| entry.value.as_slice()));
            }
            Op::Contains(key) => {
                assert_eq!(store.contains(&key_of(key)).unwrap(), model.entries.contains_key(&key));
            }
            Op::Delete(key) => {
                assert_eq!(
                    store.delete(&key_of(key)).unwrap(),
                    model.entries.remove(&key).is_some()
                );
            }
            Op::DeleteVersion(key) => {
                let Some((version, write)) = seen.get(&key) else { continue };
                let is_same = model.entries.get(&key).is_some_and(|entry| entry.write == *write);
                assert_eq!(store.delete_version(&key_of(key), *version).unwrap(), is_same);
                if is_same {
                    model.entries.remove(&key);
                }
            }
            Op::CompareAndDelete(key, same) => compare_and_delete(store, &mut model, key, same),
            Op::Touch(key, ttl) => {
                let touched = store.touch(&key_of(key), Ttl::from(ttl_of(ttl))).unwrap();
                let entry = model.entries.get_mut(&key);
                assert_eq!(touched, entry.is_some());
                if let Some(entry) = entry {
                    entry.expires_ns = ttl.map(|ttl| now_ns + u64::from(ttl));
                }
            }
            Op::Incr(key, delta) => {
                let expected = model.count(key, |number| number.wrapping_add(delta));
                match store.incr(&key_of(key), delta) {
                    Err(Error::NotACounter { operation: "incr", .. }) => assert!(expected.is_err()),
                    result => assert_eq!(Ok(result.unwrap()), expected),
                }
            }
            Op::Decr(key, delta) => {
                let expected = model.count(key, |number| number.saturating_sub(delta));
                match store.decr(&key_of(key), delta) {
                    Err(Error::NotACounter { operation: "decr", .. }) => assert!(expected.is_err()),
                    result => assert_eq!(Ok(result.unwrap()), expected),
                }
            }
            Op::Advance(ns) => clock.advance(Duration::from_nanos(ns.into())),
            Op::Clear => {
                store.clear().unwrap();
                model.entries.clear();
                assert_eq!((store.len().unwrap(), store.bytes().unwrap()), (0, 0));
            }
        }
    }
    model.drop_expired(clock.now_ns());
    let keys: BTreeSet<Vec<u8>> = cache.keys().map(Result::unwrap).collect();
    assert_eq!(keys, model.entries.keys().map(|key| key_of(*key)).collect());
    for key in 0..6 {
        // Expired entries are removed when an operation meets them.
        store.contains(&key_of(key)).unwrap();
    }
    let bytes =
        model.entries.iter().map(|(key, entry)| charge((*key).into(), entry.value.len() as u64));
    let stats = store.stats().unwrap();
    assert_eq!(stats.bytes, bytes.sum::<u64>());
    assert_eq!(stats.entries, model.entries.len() as u64);
    assert_eq!((stats.evictions, stats.declined), (0, 0));
}

proptest! {
    #[test]
    fn lru(ops in prop::collection::vec(op(), 0..80)) {
        run(ops, "lru");
    }

    #[test]
    fn s3fifo(ops in prop::collection::vec(op(), 0..80)) {
        run(ops, "s3fifo");
    }
}
