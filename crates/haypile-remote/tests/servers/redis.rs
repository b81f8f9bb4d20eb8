//! Behaviour that is particular to Redis.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cursor, Error, SetOptions, Store, Ttl, Version};

use crate::daemon::{Daemon, Kind};
use crate::{example, open, put, put_for};

fn start(options: &str) -> Option<(Daemon, Arc<dyn Store>)> {
    let daemon = Daemon::start(Kind::Redis)?;
    let store = open(&daemon.url(options)).unwrap();
    Some((daemon, store))
}

/// Returns all keys, read page by page.
pub(crate) fn keys(store: &dyn Store) -> BTreeSet<Vec<u8>> {
    let mut keys = BTreeSet::new();
    let mut from = Cursor::default();
    loop {
        let page = store.keys(from, 10).unwrap();
        keys.extend(page.keys);
        match page.next {
            Some(next) => from = next,
            None => return keys,
        }
    }
}

#[test]
fn the_example_reads_from_the_upper_level() {
    let Some(daemon) = Daemon::start(Kind::Redis) else { return };
    let printed =
        example::output(example::program("levels_over_redis").arg(daemon.url("timeout=30s")));
    assert_eq!(printed.lines().count(), 2, "{printed}");
    assert!(
        printed.starts_with("memory://?size=16MiB") && printed.contains(": 1000 hits\nredis+unix:"),
        "{printed}"
    );
}

#[test]
fn a_namespace_is_cleared_counted_and_listed_alone() {
    // A glob pattern would read the star as a wildcard.
    let Some((daemon, store)) = start("timeout=30s&namespace=a*") else { return };
    let other = open(&daemon.url("timeout=30s&namespace=ab")).unwrap();
    let whole = open(&daemon.url("timeout=30s")).unwrap();
    let names: BTreeSet<_> = (0..500).map(|number| format!("k{number}").into_bytes()).collect();
    for name in &names {
        put(&*store, name, b"1");
    }
    put(&*other, b"k", b"2");
    assert_eq!(keys(&*store), names);
    assert_eq!((store.len().unwrap(), other.len().unwrap(), whole.len().unwrap()), (500, 1, 501));
    assert!(keys(&*whole).contains(&b"a*:k0"[..]));
    store.clear().unwrap();
    assert_eq!((store.len().unwrap(), other.len().unwrap()), (0, 1));
    whole.clear().unwrap();
    assert!(other.is_empty().unwrap());
}

#[test]
fn the_url_says_how_long_computations_are_waited_for() {
    let Some((daemon, store)) = start("timeout=30s&compute_wait=7s") else { return };
    assert_eq!(store.compute_wait(), Duration::from_secs(7));
    let usual = open(&daemon.url("timeout=30s")).unwrap();
    assert_eq!(usual.compute_wait(), haypile::url::OptionSpec::DEFAULT_COMPUTE_WAIT);
}

#[test]
fn databases_are_apart() {
    let Some((daemon, store)) = start("timeout=30s") else { return };
    let other = open(&daemon.url("timeout=30s&db=3")).unwrap();
    put(&*store, b"k", b"0");
    put(&*other, b"k", b"3");
    assert_eq!(store.get(b"k").unwrap().unwrap(), b"0");
    other.clear().unwrap();
    assert_eq!((store.len().unwrap(), other.len().unwrap()), (1, 0));
    let error = open(&daemon.url("timeout=30s&db=99")).unwrap_err().to_string();
    assert!(error.contains("DB index is out of range"), "{error}");
}

#[test]
fn entries_expire_by_the_millisecond() {
    let Some((_daemon, store)) = start("timeout=30s") else { return };
    let start = Instant::now();
    put_for(&*store, b"k", b"v", Duration::from_millis(20));
    while store.get(b"k").unwrap().is_some() {
        thread::yield_now();
    }
    assert!(start.elapsed() >= Duration::from_millis(19));
    put_for(&*store, b"k", b"v", Duration::MAX);
    let hit = store.get_into(b"k", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(hit.expires_in, None);
    assert!(store.touch(b"k", Ttl::After(Duration::from_millis(1))).unwrap());
    while store.contains(b"k").unwrap() {
        thread::yield_now();
    }
}

#[test]
fn counting_keeps_the_ttl_and_is_exact_beyond_what_its_numbers_are() {
    let Some((_daemon, store)) = start("timeout=30s") else { return };
    let ttl = Duration::from_secs(1_000);
    put_for(&*store, b"n", b"9223372036854775807", ttl);
    assert_eq!(store.incr(b"n", 1).unwrap(), Some(1 << 63));
    assert_eq!(store.incr(b"n", (1 << 63) + 4).unwrap(), Some(4));
    let hit = store.get_into(b"n", &mut Vec::new()).unwrap().unwrap();
    assert!(hit.expires_in.is_some());
    let count = || (0..200).for_each(|_| assert!(store.incr(b"n", 1).unwrap().is_some()));
    thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
    assert_eq!(store.get(b"n").unwrap().unwrap(), b"804");
}

#[test]
fn what_it_cannot_do_is_said() {
    let Some((daemon, store)) = start("timeout=30s") else { return };
    let cas = store.set(b"k", b"v", &SetOptions::cas(Version::from_raw(1)));
    assert!(matches!(cas, Err(Error::Unsupported { operation: "compare-and-swap", .. })));
    assert!(matches!(store.bytes(), Err(Error::Unsupported { .. })));
    let long = vec![b'k'; 65_536];
    assert!(matches!(store.get(&long), Err(Error::KeyTooLong { limit_bytes: 65_535, .. })));
    put(&*store, &long[1..], b"v");
    assert!(store.contains(&long[1..]).unwrap());
    // A key that another program wrote as a different type.
    let mut client = redis::Client::open(format!("redis+unix://{}", daemon.socket().display()))
        .unwrap()
        .get_connection()
        .unwrap();
    redis::cmd("LPUSH").arg("list").arg("a").exec(&mut client).unwrap();
    assert!(matches!(store.get(b"list"), Err(Error::Backend { .. })));
    assert!(store.contains(b"list").unwrap());
    assert_eq!(store.stats().unwrap().unreachable, 0);
}

#[test]
fn a_wrong_password_is_refused_and_not_shown() {
    let Some(daemon) = Daemon::start_with(Kind::Redis, &["--requirepass", "right"]) else { return };
    let error = open(&daemon.url("timeout=30s")).unwrap_err().to_string();
    assert!(error.contains("Authentication required") || error.contains("NOAUTH"), "{error}");
}

#[test]
fn a_server_that_is_full_and_evicts_nothing_is_told_what_to_do() {
    let full = ["--maxmemory", "1", "--maxmemory-policy", "noeviction"];
    let Some(daemon) = Daemon::start_with(Kind::Redis, &full) else { return };
    let store = open(&daemon.url("timeout=30s")).unwrap();
    let error = store.set(b"k", b"v", &SetOptions::set()).unwrap_err().to_string();
    assert!(error.contains("OOM") && error.contains("maxmemory-policy"), "{error}");
    assert_eq!(store.get(b"k").unwrap(), None);
}
