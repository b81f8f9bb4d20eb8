//! Every operation, compared with a plain map.

use std::collections::HashMap;
use std::time::Duration;

use haypile::{Error, Lease, SetOptions, Store, Ttl, Version, WriteMode, Written};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::daemon::{Daemon, Kind};
use crate::nodes::Nodes;
use crate::open;

#[derive(Clone, Debug)]
enum Operation {
    Get(u8),
    Contains(u8),
    Set(u8, Vec<u8>, Mode, Option<u16>),
    Reserve(u8, Vec<u8>),
    Delete(u8),
    /// With the value of the entry, or another one.
    CompareAndDelete(u8, bool),
    Touch(u8, Option<u16>),
    Incr(u8, u64),
    Decr(u8, u64),
    GetMany(Vec<u8>),
    SetMany(Vec<(u8, Vec<u8>, Mode)>),
    DeleteMany(Vec<u8>),
    Clear,
    /// Takes a lease, which counts until the next one of its key.
    Lease(u8),
    SetLeased(u8, Vec<u8>),
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Set,
    Add,
    Replace,
    /// With the version of the last read, or one that never existed.
    Cas(bool),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = 0..6_u8;
    let value = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        any::<u64>().prop_map(|number| number.to_string().into_bytes()),
        (0..120_u64).prop_map(|number| format!("{number:03}").into_bytes()),
        Just(b"5 ".to_vec()),
        Just(b"VA 3 O0\r\nEND\r\n".to_vec()),
    ];
    let mode = prop_oneof![
        3 => Just(Mode::Set),
        1 => Just(Mode::Add),
        1 => Just(Mode::Replace),
        1 => any::<bool>().prop_map(Mode::Cas),
    ];
    let ttl = prop::option::of(100..u16::MAX);
    let delta = prop_oneof![0..200_u64, any::<u64>()];
    let keys = prop::collection::vec(0..6_u8, 0..8);
    let operation = prop_oneof![
        3 => key.clone().prop_map(Operation::Get),
        1 => key.clone().prop_map(Operation::Contains),
        4 => (key.clone(), value.clone(), mode.clone(), ttl.clone())
            .prop_map(|(key, value, mode, ttl)| Operation::Set(key, value, mode, ttl)),
        1 => (key.clone(), value.clone()).prop_map(|(key, value)| Operation::Reserve(key, value)),
        1 => key.clone().prop_map(Operation::Delete),
        2 => (key.clone(), any::<bool>())
            .prop_map(|(key, same)| Operation::CompareAndDelete(key, same)),
        1 => (key.clone(), ttl).prop_map(|(key, ttl)| Operation::Touch(key, ttl)),
        2 => (key.clone(), delta.clone()).prop_map(|(key, delta)| Operation::Incr(key, delta)),
        2 => (key.clone(), delta).prop_map(|(key, delta)| Operation::Decr(key, delta)),
        1 => keys.clone().prop_map(Operation::GetMany),
        1 => prop::collection::vec((key, value, mode), 0..8).prop_map(Operation::SetMany),
        1 => keys.prop_map(Operation::DeleteMany),
        1 => Just(Operation::Clear),
        3 => (0..6_u8).prop_map(Operation::Lease),
        2 => (0..6_u8, prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(key, value)| Operation::SetLeased(key, value)),
    ];
    prop::collection::vec(operation, 1..40)
}

/// Returns keys of all sorts: plain, binary, with the separators of protocols, long.
fn key(number: u8) -> Vec<u8> {
    match number {
        0 => b"plain".to_vec(),
        1 => vec![0, 13, 10, 255],
        2 => b"two words".to_vec(),
        3 => "Käse".into(),
        4 => vec![b'k'; 230],
        _ => vec![b' '; 170],
    }
}

/// A store, and the map that it has to agree with.
struct Both<'a> {
    store: &'a dyn Store,
    has_versions: bool,
    map: HashMap<u8, Vec<u8>>,
    versions: HashMap<u8, Version>,
    /// The number of times that each key was written or removed.
    changes: HashMap<u8, u64>,
    /// The leases, with the changes of their keys until then and what was there.
    leases: HashMap<u8, (Lease, u64, Option<Vec<u8>>)>,
}

/// Parses a number as the trait does.
fn number(value: &[u8]) -> Option<u64> {
    haypile_policy::rules::counter::parse(value)
}

impl Both<'_> {
    fn get(&mut self, at: u8) {
        let mut buffer = b"left over".to_vec();
        let hit = self.store.get_into(&key(at), &mut buffer).unwrap();
        assert_eq!(hit.map(|_| &buffer), self.map.get(&at), "{at}");
        if let Some(hit) = hit {
            assert_eq!(hit.version.is_some(), self.has_versions);
            self.versions.extend(hit.version.map(|version| (at, version)));
        } else {
            assert_eq!(buffer, b"");
        }
    }

    fn options(&self, at: u8, mode: Mode) -> Option<SetOptions> {
        Some(match mode {
            Mode::Set => SetOptions::set(),
            Mode::Add => SetOptions::add(),
            Mode::Replace => SetOptions::replace(),
            Mode::Cas(_) if !self.has_versions => return None,
            Mode::Cas(true) => SetOptions::cas(*self.versions.get(&at)?),
            Mode::Cas(false) => SetOptions::cas(Version::from_raw(u64::MAX - 1)),
        })
    }

    /// Changes the map, and returns the expected outcome of the write.
    fn written(&mut self, at: u8, value: &[u8], options: &SetOptions, is_current: bool) -> Written {
        let is_there = self.map.contains_key(&at);
        let written = match options.mode {
            WriteMode::Add if is_there => Written::Exists,
            WriteMode::Replace | WriteMode::Cas(_) if !is_there => Written::Absent,
            WriteMode::Cas(_) if !is_current => Written::Changed,
            _ => Written::Stored,
        };
        if written.is_stored() {
            self.put(at, value.to_vec());
        }
        written
    }

    fn lease(&mut self, at: u8) {
        let lease = self.store.lease(&key(at)).unwrap();
        assert!(self.store.check_lease(&key(at), lease, &[]).unwrap());
        self.leases.insert(at, (lease, self.changes(at), self.map.get(&at).cloned()));
    }

    fn set_leased(&mut self, at: u8, value: &[u8]) {
        let Some((lease, ..)) = self.leases.get(&at) else { return };
        let (lease, holds) = (*lease, self.holds(at));
        assert_eq!(self.store.check_lease(&key(at), lease, &[]).unwrap(), holds);
        let written = self.store.set(&key(at), value, &SetOptions::leased(lease)).unwrap();
        assert_eq!(written, if holds { Written::Stored } else { Written::Revoked });
        if holds {
            self.put(at, value.to_vec());
        }
    }

    fn put(&mut self, at: u8, value: Vec<u8>) {
        self.changed(at);
        self.map.insert(at, value);
    }

    /// A key that is removed has changed, whether it was there or not.
    fn remove(&mut self, at: u8) -> bool {
        self.changed(at);
        self.map.remove(&at).is_some()
    }

    fn changed(&mut self, at: u8) {
        *self.changes.entry(at).or_default() += 1;
    }

    fn changes(&self, at: u8) -> u64 {
        self.changes.get(&at).copied().unwrap_or(0)
    }

    /// Whether a write under the last lease of a key is accepted.
    fn holds(&self, at: u8) -> bool {
        self.leases.get(&at).is_some_and(|(_, changes, value)| {
            // A server without versions compares what is there.
            let is_same =
                !self.has_versions && value.is_some() && *value == self.map.get(&at).cloned();
            is_same || *changes == self.changes(at)
        })
    }

    /// Whether the version of the last read is that of the entry.
    fn is_current(&self, at: u8, options: &SetOptions) -> bool {
        let WriteMode::Cas(version) = options.mode else { return false };
        let mut buffer = Vec::new();
        let hit = self.store.get_into(&key(at), &mut buffer).unwrap();
        hit.is_some_and(|hit| hit.version == Some(version))
    }

    fn count(&mut self, at: u8, result: Result<Option<u64>, Error>, change: impl Fn(u64) -> u64) {
        match self.map.get(&at) {
            None => assert_eq!(result.unwrap(), None),
            Some(value) => match number(value) {
                // memcached looks for a minus sign beyond the end of such a number.
                Some(before) if before >> 63 == 1 && self.has_versions && result.is_err() => {
                    assert!(matches!(result, Err(Error::NotACounter { .. })), "{result:?}");
                }
                Some(before) => {
                    assert_eq!(result.unwrap(), Some(change(before)));
                    self.put(at, change(before).to_string().into_bytes());
                }
                None => assert!(matches!(result, Err(Error::NotACounter { .. })), "{result:?}"),
            },
        }
    }

    fn apply(&mut self, operation: &Operation) {
        let store = self.store;
        match operation {
            Operation::Get(at) => self.get(*at),
            Operation::Contains(at) => {
                assert_eq!(store.contains(&key(*at)).unwrap(), self.map.contains_key(at));
            }
            Operation::Set(at, value, mode, ttl) => {
                let Some(options) = self.options(*at, *mode) else { return };
                let ttl = ttl.map(|seconds| Duration::from_secs(seconds.into()));
                let options = options.with_ttl(ttl);
                let is_current = self.is_current(*at, &options);
                let written = store.set(&key(*at), value, &options).unwrap();
                assert_eq!(written, self.written(*at, value, &options, is_current));
                let left = store.get_into(&key(*at), &mut Vec::new()).unwrap();
                if written.is_stored() {
                    let left = left.unwrap().expires_in;
                    assert_eq!(left.is_some(), ttl.is_some());
                    assert!(left.unwrap_or_default() <= ttl.unwrap_or_default());
                }
            }
            Operation::Reserve(at, value) => {
                let options = SetOptions::set();
                drop(store.reserve(&key(*at), 3, &options).unwrap());
                let mut reservation = store.reserve(&key(*at), value.len(), &options).unwrap();
                reservation.buffer().copy_from_slice(value);
                assert_eq!(reservation.commit().unwrap(), Written::Stored);
                self.put(*at, value.clone());
            }
            Operation::Delete(at) => {
                assert_eq!(store.delete(&key(*at)).unwrap(), self.remove(*at));
            }
            Operation::CompareAndDelete(at, same) => {
                let mut value = self.map.get(at).cloned().unwrap_or_default();
                if !same {
                    value.push(b'x');
                }
                let is_same = *same && self.map.contains_key(at);
                assert_eq!(store.compare_and_delete(&key(*at), &value).unwrap(), is_same);
                if is_same {
                    self.remove(*at);
                }
            }
            Operation::Touch(at, ttl) => {
                let ttl = ttl.map(|seconds| Duration::from_secs(seconds.into()));
                let touched = store.touch(&key(*at), Ttl::from(ttl)).unwrap();
                assert_eq!(touched, self.map.contains_key(at));
                if touched {
                    let hit = store.get_into(&key(*at), &mut Vec::new()).unwrap().unwrap();
                    assert_eq!(hit.expires_in.is_some(), ttl.is_some());
                }
            }
            Operation::Incr(at, delta) => {
                let result = store.incr(&key(*at), *delta);
                self.count(*at, result, |number| number.wrapping_add(*delta));
            }
            Operation::Decr(at, delta) => {
                let result = store.decr(&key(*at), *delta);
                self.count(*at, result, |number| number.saturating_sub(*delta));
            }
            Operation::GetMany(many) => {
                let keys: Vec<_> = many.iter().map(|at| key(*at)).collect();
                let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
                let found = store.get_many(&keys).unwrap();
                let found: Vec<_> =
                    found.iter().map(|found| found.as_ref().map(|(value, _)| value)).collect();
                let expected: Vec<_> = many.iter().map(|at| self.map.get(at)).collect();
                assert_eq!(found, expected);
            }
            Operation::SetMany(many) => {
                let own = |(at, value, mode): &(u8, Vec<u8>, Mode)| {
                    let mode = if matches!(mode, Mode::Cas(_)) { Mode::Set } else { *mode };
                    (*at, key(*at), value.clone(), self.options(*at, mode).unwrap())
                };
                let entries: Vec<_> = many.iter().map(own).collect();
                let borrowed: Vec<_> = entries
                    .iter()
                    .map(|(_, key, value, options)| (key.as_slice(), value.as_slice(), *options))
                    .collect();
                let results = store.set_many(&borrowed);
                for ((at, _, value, options), result) in entries.iter().zip(results) {
                    assert_eq!(result.unwrap(), self.written(*at, value, options, false));
                }
            }
            Operation::DeleteMany(many) => {
                let keys: Vec<_> = many.iter().map(|at| key(*at)).collect();
                let keys: Vec<_> = keys.iter().map(Vec::as_slice).collect();
                for (at, result) in many.iter().zip(store.delete_many(&keys)) {
                    assert_eq!(result.unwrap(), self.remove(*at));
                }
            }
            Operation::Clear => {
                store.clear().unwrap();
                (0..6).for_each(|at| self.changed(at));
                self.map.clear();
            }
            Operation::Lease(at) => self.lease(*at),
            Operation::SetLeased(at, value) => self.set_leased(*at, value),
        }
    }
}

/// Whether the operation counts on a value that memcached accepts as a number and the trait does
/// not. Such operations are left out: memcached reads like `strtoull`, past blanks and a sign, and
/// up to a blank or a zero byte, whatever comes after it.
fn is_odd_number(operation: &Operation) -> bool {
    let is_end = |byte: &u8| matches!(byte, b'\t'..=b'\r' | b' ' | 0);
    let odd = |value: &[u8]| {
        let first = value.split(is_end).find(|piece| !piece.is_empty()).unwrap_or_default();
        let digits = first.strip_prefix(b"+").unwrap_or(first);
        number(value).is_none() && digits.iter().all(u8::is_ascii_digit)
    };
    match operation {
        Operation::Set(_, value, ..) | Operation::Reserve(_, value) => odd(value),
        Operation::SetMany(many) => many.iter().any(|(_, value, _)| odd(value)),
        _ => false,
    }
}

/// Opens the URL and compares all operations.
fn check(url: &str, kind: Kind) {
    let has_versions = kind == Kind::Memcached;
    let store = open(url).unwrap();
    let mut runner =
        TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let result = runner.run(&operations(), |operations| {
        store.clear().unwrap();
        let (map, versions) = (HashMap::new(), HashMap::new());
        let (changes, leases) = (HashMap::new(), HashMap::new());
        let mut both = Both { store: &*store, has_versions, map, versions, changes, leases };
        for operation in &operations {
            let counts = operations
                .iter()
                .any(|other| matches!(other, Operation::Incr(..) | Operation::Decr(..)));
            if !(kind == Kind::Memcached && counts && is_odd_number(operation)) {
                both.apply(operation);
            }
        }
        (0..6).for_each(|at| both.get(at));
        // Placeholders count.
        let most = both.map.len() + both.leases.len();
        assert!((both.map.len()..=most).contains(&usize::try_from(store.len().unwrap()).unwrap()));
        if both.leases.is_empty() {
            assert_eq!(store.is_empty().unwrap(), both.map.is_empty());
        }
        Ok(())
    });
    result.unwrap();
    assert_eq!(store.stats().unwrap().unreachable, 0, "{:?}", store.warnings());
    assert_eq!(store.warnings(), [""; 0]);
}

#[test]
fn memcached_is_like_a_map() {
    let Some(daemon) = Daemon::start(Kind::Memcached) else { return };
    // The long timeout keeps a slow machine from looking like a lost server.
    check(&daemon.url("timeout=30s"), Kind::Memcached);
}

#[test]
fn redis_is_like_a_map() {
    let Some(daemon) = Daemon::start(Kind::Redis) else { return };
    check(&daemon.url("timeout=30s"), Kind::Redis);
}

#[test]
fn a_redis_cluster_is_like_a_map() {
    let Some(cluster) = Nodes::start(&[]) else { return };
    check(&cluster.url("timeout=30s"), Kind::Redis);
}
