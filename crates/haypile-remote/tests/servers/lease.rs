//! Leases, of which the server has to see each change of a key by whatever client.

use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use haypile::{Cache, Error, Lease, SetOptions, Store, Ttl, Written};

use crate::daemon::{Daemon, Kind};
use crate::redis::keys;
use crate::{open, put};

const KINDS: [Kind; 2] = [Kind::Memcached, Kind::Redis];

fn set(store: &dyn Store, key: &[u8], value: &[u8], lease: Lease) -> Written {
    store.set(key, value, &SetOptions::leased(lease)).unwrap()
}

/// Calls `test` with a server of each kind and two stores on it, which other processes could have as well.
fn each(test: impl Fn(Kind, &Daemon, &dyn Store, &dyn Store)) {
    for kind in KINDS {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let url = daemon.url("timeout=30s");
        test(kind, &daemon, &*open(&url).unwrap(), &*open(&url).unwrap());
    }
}

/// Says a line of the server's protocol, as another program, and returns the first line of the answer.
fn say(daemon: &Daemon, line: &str) -> String {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer.trim_end().to_owned()
}

#[test]
fn whoever_changes_a_key_revokes_its_leases() {
    each(|kind, daemon, store, other| {
        let changes: [&dyn Fn(); 6] = [
            &|| assert!(!other.delete(b"key").unwrap()),
            &|| put(other, b"key", b"new"),
            &|| other.clear().unwrap(),
            &|| assert!(other.set(b"key", b"added", &SetOptions::add()).unwrap().is_stored()),
            &|| assert!(!other.delete_many(&[b"key"]).remove(0).unwrap()),
            &|| match kind {
                Kind::Memcached => assert_eq!(say(daemon, "delete key"), "DELETED"),
                Kind::Redis => assert_eq!(say(daemon, "DEL key"), ":1"),
            },
        ];
        for change in changes {
            store.delete(b"key").unwrap();
            let lease = store.lease(b"key").unwrap();
            change();
            let there = store.get(b"key").unwrap();
            assert!(!store.check_lease(b"key", lease, &[]).unwrap());
            assert_eq!(set(store, b"key", b"old", lease), Written::Revoked);
            assert_eq!(store.get(b"key").unwrap(), there);
        }
        // Of an entry that is there.
        put(store, b"key", b"there");
        let lease = store.lease(b"key").unwrap();
        assert!(other.delete(b"key").unwrap());
        assert_eq!(set(store, b"key", b"old", lease), Written::Revoked);
        put(store, b"key", b"there");
        let lease = store.lease(b"key").unwrap();
        assert_eq!(set(store, b"key", b"next", lease), Written::Stored);
        assert_eq!(set(store, b"key", b"old", lease), Written::Revoked);
        assert_eq!(store.get(b"key").unwrap().unwrap(), b"next");
    });
}

#[test]
fn of_several_leases_the_first_write_counts() {
    each(|_, _, store, other| {
        let leases = [store.lease(b"key").unwrap(), other.lease(b"key").unwrap()];
        // A lease is good for every client of the server.
        assert_eq!(set(store, b"key", b"1", leases[1]), Written::Stored);
        assert_eq!(set(store, b"key", b"2", leases[0]), Written::Revoked);
        assert_eq!(store.get(b"key").unwrap().unwrap(), b"1");
    });
}

#[test]
fn a_key_with_a_lease_has_no_entry() {
    each(|kind, _, store, other| {
        let lease = || {
            store.delete(b"1").unwrap();
            store.lease(b"1").unwrap()
        };
        let kept = lease();
        assert_eq!(other.get(b"1").unwrap(), None);
        assert_eq!(other.get_many(&[b"1"]).unwrap(), [None]);
        assert!(!other.contains(b"1").unwrap());
        assert!(!other.touch(b"1", Ttl::After(Duration::from_secs(9))).unwrap());
        assert!(!other.touch(b"1", Ttl::Never).unwrap());
        assert_eq!(other.incr(b"1", 1).unwrap(), None);
        assert!(!other.compare_and_delete(b"1", b"").unwrap());
        let replace = SetOptions::replace();
        assert_eq!(other.set(b"1", b"2", &replace).unwrap(), Written::Absent);
        assert_eq!(*other.set_many(&[(b"1", b"2", replace)])[0].as_ref().unwrap(), Written::Absent);
        if kind == Kind::Redis {
            assert!(keys(other).is_empty());
        }
        // None of these has changed the key.
        assert_eq!(set(store, b"1", b"5", kept), Written::Stored);
        assert_eq!(other.incr(b"1", 1).unwrap(), Some(6));
        lease();
        let add = SetOptions::add().with_ttl(Duration::from_mins(15));
        assert_eq!(*other.set_many(&[(b"1", b"3", add)])[0].as_ref().unwrap(), Written::Stored);
        let hit = other.get_into(b"1", &mut Vec::new()).unwrap().unwrap();
        assert!(hit.expires_in.unwrap() > Duration::from_secs(800), "{hit:?}");
        assert_eq!(other.set(b"1", b"4", &add).unwrap(), Written::Exists);
        assert_eq!(other.get(b"1").unwrap().unwrap(), b"3");
    });
}

#[test]
fn an_empty_value_is_a_value() {
    each(|_, _, store, other| {
        let lease = store.lease(b"key").unwrap();
        assert_eq!(set(store, b"key", b"", lease), Written::Stored);
        assert_eq!(other.get(b"key").unwrap().unwrap(), b"");
        assert!(other.contains(b"key").unwrap());
        assert_eq!(other.set(b"key", b"2", &SetOptions::add()).unwrap(), Written::Exists);
        assert!(other.delete(b"key").unwrap());
    });
}

#[test]
fn what_is_no_lease_is_revoked() {
    each(|_, _, store, _| {
        store.lease(b"key").unwrap();
        for byte in [0, 1, 2, 3, 255] {
            let made_up = Lease::from_bytes([byte; Lease::BYTES]);
            assert_eq!(set(store, b"key", b"value", made_up), Written::Revoked);
            put(store, b"there", b"value");
            assert_eq!(set(store, b"there", b"value", made_up), Written::Revoked);
        }
        let of_another_key = store.lease(b"other").unwrap();
        assert_eq!(set(store, b"key", b"value", of_another_key), Written::Revoked);
        assert_eq!(store.get(b"key").unwrap(), None);
    });
}

#[test]
fn a_server_that_was_restarted_knows_no_leases() {
    for kind in KINDS {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let store = open(&daemon.url("timeout=30s")).unwrap();
        let lease = store.lease(b"key").unwrap();
        daemon.kill();
        daemon.restart();
        // memcached numbers its items from the first again.
        let other = open(&daemon.url("timeout=30s")).unwrap();
        put(&*other, b"key", b"new");
        // It has connections again.
        while store.get(b"key").unwrap().is_none() {
            thread::yield_now();
        }
        assert_eq!(set(&*store, b"key", b"old", lease), Written::Revoked);
        assert_eq!(other.get(b"key").unwrap().unwrap(), b"new");
    }
}

#[test]
fn a_server_that_does_not_answer_grants_what_is_revoked() {
    for kind in KINDS {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let store = open(&daemon.url("timeout=30s")).unwrap();
        daemon.kill();
        let lease = store.lease(b"key").unwrap();
        // Nothing is seen of a removal.
        assert!(store.check_lease(b"key", lease, &[]).unwrap());
        assert_eq!(set(&*store, b"key", b"value", lease), Written::Revoked);
        daemon.restart();
        while open(&daemon.url("timeout=30s")).is_err() {
            thread::yield_now();
        }
        assert_eq!(set(&*store, b"key", b"value", lease), Written::Revoked);
        daemon.kill();
        let cache = Cache::new(Arc::clone(&store));
        assert_eq!(cache.get_or_compute("key", None, || b"value".to_vec()).unwrap(), b"value");
    }
}

#[test]
fn one_computes_also_while_no_server_answers() {
    for kind in KINDS {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let cache = Cache::new(open(&daemon.url("timeout=30s")).unwrap());
        cache.set("other", "value").unwrap();
        daemon.kill();
        let (computed, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let ask = || {
            let mut is_first_look = true;
            let compute = || {
                computed.fetch_add(1, Ordering::SeqCst);
                while waiting.load(Ordering::SeqCst) + computed.load(Ordering::SeqCst) < 4 {
                    thread::yield_now();
                }
                Ok::<_, Infallible>(b"value".to_vec())
            };
            let poll = || {
                // It is called again and again by whoever waits.
                if std::mem::take(&mut is_first_look) {
                    waiting.fetch_add(1, Ordering::SeqCst);
                }
                Ok(())
            };
            cache.get_or_try_compute_until("key", None, compute, poll)
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap().unwrap(), b"value");
            }
        });
        assert_eq!(computed.into_inner(), 1);
    }
}

#[test]
fn a_placeholder_lives_on_as_it_was_when_it_is_touched() {
    let Some(daemon) = Daemon::start(Kind::Memcached) else { return };
    let store = open(&daemon.url("timeout=30s")).unwrap();
    for ttl in [Ttl::After(Duration::from_secs(1)), Ttl::Never] {
        store.delete(b"key").unwrap();
        let lease = store.lease(b"key").unwrap();
        assert!(!store.touch(b"key", ttl).unwrap());
        assert_eq!(say(&daemon, "mg key t"), "HD t600 Z");
        assert_eq!(set(&*store, b"key", b"value", lease), Written::Stored);
    }
}

#[test]
fn a_deletion_during_a_computation_wins() {
    each(|_, daemon, _, other| {
        let cache = Cache::new(open(&daemon.url("timeout=30s")).unwrap());
        let compute = || {
            other.delete(b"key").unwrap();
            b"old".to_vec()
        };
        assert_eq!(cache.get_or_compute("key", None, compute).unwrap(), b"old");
        assert_eq!(cache.get("key").unwrap(), None);
        assert_eq!(cache.get_or_compute("key", None, || b"new".to_vec()).unwrap(), b"new");
        assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
        // Through an upper level, and compressed.
        for url in [
            format!("memory://?size=1MiB -> {}", daemon.url("timeout=30s")),
            daemon.url("timeout=30s&compress=lz4"),
        ] {
            let cache = Cache::new(open(&url).unwrap());
            other.delete(b"key").unwrap();
            assert_eq!(cache.get_or_compute("key", None, compute).unwrap(), b"old");
            assert_eq!(cache.get("key").unwrap(), None, "{url}");
            cache.get_or_compute("key", None, || vec![7; 4_000]).unwrap();
            assert_eq!(cache.get("key").unwrap().unwrap(), [7; 4_000]);
        }
    });
}

#[test]
fn without_leases_there_are_no_placeholders() {
    each(|kind, daemon, _, _| {
        let cache = Cache::new(open(&daemon.url("timeout=30s&leases=no")).unwrap());
        assert!(matches!(cache.lease("key"), Err(Error::Unsupported { .. })));
        let seen = || match kind {
            Kind::Memcached => assert_eq!(say(daemon, "get key"), "END"),
            Kind::Redis => assert_eq!(say(daemon, "GET key"), "$-1"),
        };
        let compute = || {
            seen();
            b"value".to_vec()
        };
        assert_eq!(cache.get_or_compute("key", None, compute).unwrap(), b"value");
    });
}

#[test]
fn a_server_without_versions_has_no_leases() {
    let Some(daemon) = Daemon::start_with(Kind::Memcached, &["-C"]) else { return };
    let store = open(&daemon.url("timeout=30s")).unwrap();
    assert!(matches!(store.lease(b"key"), Err(Error::Unsupported { .. })));
    let cache = Cache::new(Arc::clone(&store));
    assert_eq!(cache.get_or_compute("key", None, || b"value".to_vec()).unwrap(), b"value");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"value");
}
