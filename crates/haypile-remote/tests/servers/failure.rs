//! Servers that go away, come back, or never answer.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile::{Error, ManualClock, SetOptions, Ttl, Version, Written};

use crate::daemon::{Daemon, Kind};
use crate::{open, open_by, put};

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);

#[test]
fn a_server_that_is_killed_is_an_empty_cache_until_it_is_back() {
    for kind in Kind::ALL {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let clock = Arc::new(ManualClock::new());
        let store = open_by(&clock, &daemon.url("timeout=30s"));
        put(&*store, b"k", b"v");
        assert!(store.contains(b"k").unwrap());
        daemon.kill();

        assert_eq!(store.get(b"k").unwrap(), None);
        assert_eq!(store.get_many(&[b"k", b"l"]).unwrap(), [None, None]);
        let write = |options| store.set(b"k", b"w", &options).unwrap();
        assert_eq!(write(SetOptions::set()), Written::Stored);
        assert_eq!(write(SetOptions::add()), Written::Stored);
        assert_eq!(write(SetOptions::replace()), Written::Absent);
        if kind == Kind::Memcached {
            assert_eq!(write(SetOptions::cas(Version::from_raw(1))), Written::Absent);
        }
        assert!(!store.delete(b"k").unwrap());
        assert!(!store.touch(b"k", Ttl::Never).unwrap());
        assert!(!store.contains(b"k").unwrap());
        assert_eq!(store.incr(b"k", 1).unwrap(), None);
        let many = store.set_many(&[(b"k", b"w", SetOptions::set())]);
        assert!(many.into_iter().all(|written| written.unwrap().is_stored()));
        assert!(store.delete_many(&[b"k"]).into_iter().all(|deleted| !deleted.unwrap()));
        for error in [store.clear().unwrap_err(), store.len().unwrap_err()] {
            assert!(matches!(error, Error::Backend { .. }), "{error}");
            assert!(error.to_string().contains("did not answer"), "{error}");
        }
        let expected = if kind == Kind::Memcached { 13 } else { 12 };
        assert_eq!(store.stats().unwrap().unreachable, expected);
        let warnings = store.warnings();
        assert!(warnings[0].contains("does not answer now"), "{warnings:?}");

        daemon.restart();
        clock.advance(LONG);
        assert_eq!(store.get(b"k").unwrap(), None);
        assert_eq!(write(SetOptions::set()), Written::Stored);
        assert_eq!(store.get(b"k").unwrap().unwrap(), b"w");
        assert!(store.warnings()[0].contains("answers again"));
        assert_eq!(store.stats().unwrap().unreachable, expected);
    }
}

#[test]
fn a_restart_that_nobody_noticed_costs_nothing() {
    for kind in Kind::ALL {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let store = open_by(&Arc::new(ManualClock::new()), &daemon.url("timeout=30s"));
        put(&*store, b"k", b"v");
        daemon.kill();
        daemon.restart();
        assert_eq!(store.get(b"k").unwrap(), None);
        assert!(store.set(b"k", b"v", &SetOptions::set()).unwrap().is_stored());
        assert!(store.contains(b"k").unwrap());
        assert_eq!(store.stats().unwrap().unreachable, 0, "{:?}", store.warnings());
    }
}

#[test]
fn what_was_changed_meanwhile_is_not_read_when_the_server_is_back() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let clock = Arc::new(ManualClock::new());
        let store = open_by(&clock, &daemon.url("timeout=200ms"));
        let keys: Vec<_> = (0..600).map(|number| format!("{number}").into_bytes()).collect();
        for key in &keys {
            while !store.set(key, b"old", &SetOptions::set()).unwrap().is_stored()
                || !store.contains(key).unwrap()
            {
                clock.advance(LONG);
            }
        }
        daemon.stop();
        // This one waits; its outcome is unknown.
        assert!(store.set(&keys[0], b"new", &SetOptions::set()).unwrap().is_stored());
        // The others are not sent at all.
        for key in &keys[1..] {
            store.delete(key).unwrap();
        }
        daemon.go_on();
        for (number, key) in keys.iter().enumerate() {
            let value = loop {
                clock.advance(LONG);
                let before = store.stats().unwrap().unreachable;
                let value = store.get(key).unwrap();
                // The machine was slow: the server was not asked.
                if store.stats().unwrap().unreachable == before {
                    break value;
                }
            };
            if number == 0 {
                assert_ne!(value.as_deref(), Some(&b"old"[..]));
            } else {
                assert_eq!(value, None, "{number}");
            }
        }
    }
}

#[test]
fn another_value_is_not_deleted_when_the_server_is_back() {
    for kind in [Kind::Memcached, Kind::Redis] {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let clock = Arc::new(ManualClock::new());
        let store = open_by(&clock, &daemon.url("timeout=200ms"));
        let patient = open(&daemon.url("timeout=30s")).unwrap();
        put(&*patient, b"key", b"new");
        daemon.stop();
        assert!(!store.compare_and_delete(b"key", b"old").unwrap());
        daemon.go_on();
        let value = loop {
            clock.advance(LONG);
            let before = store.stats().unwrap().unreachable;
            let value = store.get(b"key").unwrap();
            // The machine was slow: the server was not asked.
            if store.stats().unwrap().unreachable == before {
                break value;
            }
        };
        assert_eq!(value.unwrap(), b"new");
    }
}

#[test]
fn another_version_is_not_deleted_when_the_server_is_back() {
    let Some(daemon) = Daemon::start(Kind::Memcached) else { return };
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &daemon.url("timeout=200ms"));
    let patient = open(&daemon.url("timeout=30s")).unwrap();
    put(&*patient, b"key", b"old");
    let old = patient.get_into(b"key", &mut Vec::new()).unwrap().unwrap().version.unwrap();
    put(&*patient, b"key", b"new");
    daemon.stop();
    assert!(!store.delete_version(b"key", old).unwrap());
    daemon.go_on();
    let value = loop {
        clock.advance(LONG);
        let before = store.stats().unwrap().unreachable;
        let value = store.get(b"key").unwrap();
        // The machine was slow: the server was not asked.
        if store.stats().unwrap().unreachable == before {
            break value;
        }
    };
    assert_eq!(value.unwrap(), b"new");
}

#[test]
fn a_server_that_is_stuck_is_waited_for_once_however_much_was_asked() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let store = open_by(&Arc::new(ManualClock::new()), &daemon.url("timeout=100ms"));
        let keys: Vec<_> = (0..500).map(|number: u32| number.to_be_bytes()).collect();
        let borrowed: Vec<_> = keys.iter().map(<[u8; 4]>::as_slice).collect();
        daemon.stop();
        let start = Instant::now();
        assert!(store.get_many(&borrowed).unwrap().into_iter().all(|found| found.is_none()));
        assert!(store.delete_many(&borrowed).into_iter().all(|deleted| !deleted.unwrap()));
        // A wait for each reply would take 150 seconds.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        daemon.go_on();
        assert_eq!(store.stats().unwrap().unreachable, 1_000);
    }
}

#[test]
fn a_server_that_is_down_is_not_asked_again_at_once() {
    for kind in Kind::ALL {
        let Some(mut daemon) = Daemon::start(kind) else { continue };
        let clock = Arc::new(ManualClock::new());
        let store = open_by(&clock, &daemon.url("timeout=50ms"));
        daemon.kill();
        assert_eq!(store.get(b"k").unwrap(), None);
        let _ = std::fs::remove_file(daemon.socket());
        let listener = UnixListener::bind(daemon.socket()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let attempts = || std::iter::from_fn(|| listener.accept().ok()).count();
        let ask = |times: u64| {
            let before = store.stats().unwrap().unreachable;
            for _ in 0..times {
                assert_eq!(store.get(b"k").unwrap(), None);
            }
            assert_eq!(store.stats().unwrap().unreachable, before + times);
        };
        attempts();
        ask(100);
        // Each `stats` reads the server's own numbers.
        let by_stats = if kind == Kind::Memcached { 2 } else { 0 };
        assert_eq!(attempts(), by_stats);
        for pause in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
            clock.advance(Duration::from_millis(pause - 1));
            ask(3);
            assert_eq!(attempts(), by_stats, "{pause}");
            clock.advance(Duration::from_millis(1));
            ask(3);
            assert!(attempts() > by_stats, "{pause}");
        }
    }
}

#[test]
fn nothing_there_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("none");
    for (scheme, program) in
        [("memcached", "memcached -s"), ("redis+unix", "redis-server --port 0")]
    {
        let error = open(&format!("{scheme}://{}", socket.display())).unwrap_err().to_string();
        let path = socket.display().to_string();
        assert!(error.contains(&path) && error.contains("No such file"), "{error}");
        assert!(error.contains(program), "{error}");
    }
    // Nobody listens there any longer.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [
        format!("memcached://{address}"),
        format!("redis://ann:secret@{address}/0"),
        format!("redis+cluster://ann:secret@{address}"),
    ] {
        let error = open(&url).unwrap_err().to_string();
        assert!(error.contains("refused") && error.contains(&address.to_string()), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_port_that_never_answers_is_not_waited_for_longer_than_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for scheme in ["memcached", "redis", "redis+cluster"] {
        let error = open(&format!("{scheme}://{address}?timeout=30ms")).unwrap_err().to_string();
        assert!(error.contains("no answer within 30ms"), "{error}");
    }
}

#[test]
fn one_server_of_several_may_be_away() {
    let Some(daemon) = Daemon::start(Kind::Memcached) else { return };
    let port = crate::memcached::forward(&daemon);
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = open(&format!("memcached://127.0.0.1:{port},{away}?timeout=30s")).unwrap();
    assert!(store.warnings()[0].starts_with(&away.to_string()), "{:?}", store.warnings());
    let keys: Vec<_> = (0..100_u8).map(|number| vec![b'k', number]).collect();
    let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let entries: Vec<_> = borrowed.iter().map(|key| (*key, *key, SetOptions::set())).collect();
    assert!(store.set_many(&entries).into_iter().all(|written| written.is_ok()));
    let found = store.get_many(&borrowed).unwrap();
    let hits = found.iter().flatten().count();
    assert!((20..80).contains(&hits), "{hits}");
    assert!(
        found
            .iter()
            .zip(&keys)
            .all(|(found, key)| found.as_ref().is_none_or(|found| found.0 == *key))
    );
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (hits as u64, 100 - hits as u64));
    assert_eq!(stats.unreachable, 2 * (100 - hits as u64));
}

#[test]
fn a_closed_store_refuses_and_still_counts() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let store = open(&daemon.url("timeout=30s")).unwrap();
        put(&*store, b"k", b"v");
        store.close().unwrap();
        store.close().unwrap();
        assert!(matches!(store.get(b"k"), Err(Error::Closed { .. })));
        assert!(matches!(store.clear(), Err(Error::Closed { .. })));
        assert_eq!(store.stats().unwrap().sets, 1);
        let again = open(&daemon.url("timeout=30s")).unwrap();
        assert_eq!(again.get(b"k").unwrap().unwrap(), b"v");
    }
}
