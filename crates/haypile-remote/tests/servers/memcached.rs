//! Behaviour that is particular to memcached.

use std::sync::Arc;
use std::time::Duration;

use haypile::{Cursor, Error, SetOptions, Store, Ttl, Version, Written};

use crate::daemon::{Daemon, Kind};
use crate::{open, put, put_for};

fn start(options: &str) -> Option<(Daemon, Arc<dyn Store>)> {
    let daemon = Daemon::start(Kind::Memcached)?;
    let store = open(&daemon.url(options)).unwrap();
    Some((daemon, store))
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) -> Result<Written, Error> {
    store.set(key, value, &SetOptions::set())
}

#[test]
fn the_longest_keys_fit_and_longer_ones_are_refused() {
    let Some((_daemon, store)) = start("timeout=30s") else { return };
    for (byte, longest) in [(b'k', 250), (b' ', 186), (0xc3, 250)] {
        assert_eq!(set(&*store, &vec![byte; longest], b"value").unwrap(), Written::Stored);
        assert_eq!(store.get(&vec![byte; longest]).unwrap().as_deref(), Some(&b"value"[..]));
        let error = store.get(&vec![byte; longest + 1]).unwrap_err();
        assert!(
            matches!(error, Error::KeyTooLong { limit_bytes, .. } if limit_bytes == longest),
            "{error}"
        );
    }
    assert_eq!(store.limits().max_key_bytes, 250);
    assert!(matches!(store.get(b""), Err(Error::Unsupported { .. })));
}

#[test]
fn the_longest_values_fit_and_longer_ones_are_refused() {
    for (arguments, item_bytes) in [(&[][..], 1 << 20), (&["-I", "2m"], 2 << 20)] {
        let Some(daemon) = Daemon::start_with(Kind::Memcached, arguments) else { return };
        let store = open(&daemon.url("timeout=30s")).unwrap();
        let limit = store.limits().max_value_bytes;
        assert!(limit > item_bytes - 200 && limit < item_bytes, "{limit}");
        for key in [b"k".to_vec(), vec![b'k'; 250], vec![b' '; 186]] {
            let longest = usize::try_from(limit).unwrap() - key.len();
            let value = vec![7; longest];
            assert_eq!(set(&*store, &key, &value).unwrap(), Written::Stored);
            assert_eq!(store.get(&key).unwrap(), Some(value));
            let error = set(&*store, &key, &vec![7; longest + 1]).unwrap_err();
            assert!(
                matches!(error, Error::ValueTooLarge { limit_bytes, .. } if limit_bytes == longest as u64)
            );
            assert_eq!(store.get(&key).unwrap().unwrap().len(), longest);
        }
    }
}

#[test]
fn a_number_that_becomes_shorter_has_no_blanks() {
    let Some((_daemon, store)) = start("timeout=30s") else { return };
    put(&*store, b"n", b"1000");
    assert_eq!(store.decr(b"n", 1).unwrap(), Some(999));
    assert_eq!(store.get(b"n").unwrap().unwrap(), b"999");
    assert_eq!(store.decr(b"n", 990).unwrap(), Some(9));
    assert_eq!(store.incr(b"n", 1_000_000).unwrap(), Some(1_000_009));
    assert_eq!(store.decr(b"n", 1_000_000).unwrap(), Some(9));
    assert_eq!(store.get_many(&[b"n"]).unwrap()[0].as_ref().unwrap().0, b"9");
    // Blanks that were written stay.
    put(&*store, b"n", b"9  ");
    assert_eq!(store.get(b"n").unwrap().unwrap(), b"9  ");
}

#[test]
fn the_url_says_how_long_computations_are_waited_for() {
    let Some((_daemon, store)) = start("timeout=30s&compute_wait=7s") else { return };
    assert_eq!(store.compute_wait(), Duration::from_secs(7));
}

#[test]
fn a_ttl_is_whole_seconds_rounded_up() {
    let Some((_daemon, store)) = start("timeout=30s&ttl=90s") else { return };
    let left = |key: &[u8]| store.get_into(key, &mut Vec::new()).unwrap().unwrap().expires_in;
    let near = |left: Option<Duration>, ttl: Duration, ahead: u64| {
        // Its clock ticks between the write and the read.
        let left = left.unwrap().as_secs();
        let seconds = u64::try_from(ttl.as_millis().div_ceil(1_000)).unwrap();
        assert!(left <= seconds + ahead && left + 40 > seconds, "{left} of {seconds}");
    };
    put(&*store, b"a", b"");
    near(left(b"a"), Duration::from_secs(90), 0);
    // More than 30 days are sent as a time of the wall clock. The server's, which ticks once a
    // second, lags behind that where it lacks a processor.
    let month = Duration::from_hours(31 * 24);
    for (ttl, ahead) in [(Duration::from_millis(59_001), 0), (month, 40)] {
        put_for(&*store, b"b", b"", ttl);
        near(left(b"b"), ttl, ahead);
        assert!(store.touch(b"a", ttl.into()).unwrap());
        near(left(b"a"), ttl, ahead);
    }
    assert!(store.touch(b"b", Ttl::Never).unwrap());
    assert_eq!(left(b"b"), None);
    assert!(matches!(store.touch(b"b", Ttl::After(Duration::ZERO)), Err(Error::ZeroTtl)));
}

#[test]
fn an_entry_is_deleted_by_its_version_only_while_it_has_it() {
    let Some((_daemon, store)) = start("timeout=30s") else { return };
    let version = || {
        let hit = store.get_versioned_into(b"two words", &mut Vec::new()).unwrap();
        hit.unwrap().version.unwrap()
    };
    put(&*store, b"two words", b"old");
    let old = version();
    put(&*store, b"two words", b"new");
    for other in [old, Version::from_raw(0), Version::from_raw(u64::MAX)] {
        assert!(!store.delete_version(b"two words", other).unwrap());
    }
    assert_eq!(store.get(b"two words").unwrap().unwrap(), b"new");
    let new = version();
    assert!(store.delete_version(b"two words", new).unwrap());
    assert_eq!(store.get(b"two words").unwrap(), None);
    assert!(!store.delete_version(b"two words", new).unwrap());
    let stats = store.stats().unwrap();
    assert_eq!((stats.deletes, stats.delete_misses), (1, 4));
}

#[test]
fn a_damaged_value_is_deleted_by_its_version() {
    let Some((daemon, plain)) = start("timeout=30s") else { return };
    let store = open(&daemon.url("timeout=30s&compress=zstd")).unwrap();
    put(&*store, b"key", &[b'a'; 1_000]);
    let mut form = plain.get(b"key").unwrap().unwrap();
    *form.last_mut().unwrap() ^= 1;
    put(&*plain, b"key", &form);
    assert_eq!(store.get(b"key").unwrap(), None);
    assert!(!plain.contains(b"key").unwrap());
}

#[test]
fn a_namespace_is_a_prefix_and_not_all_of_the_server() {
    let Some((daemon, store)) = start("timeout=30s&namespace=app") else { return };
    let whole = open(&daemon.url("timeout=30s")).unwrap();
    put(&*store, b"key", b"1");
    put(&*whole, b"key", b"2");
    assert_eq!(store.get(b"key").unwrap().unwrap(), b"1");
    assert_eq!(whole.get(b"app:key").unwrap().unwrap(), b"1");
    assert_eq!(whole.len().unwrap(), 2);
    assert!(whole.bytes().unwrap() > 0);
    for result in [store.clear(), store.len().map(drop), store.bytes().map(drop)] {
        assert!(matches!(result, Err(Error::Unsupported { .. })), "{result:?}");
    }
    assert!(matches!(whole.keys(Cursor::default(), 10), Err(Error::Unsupported { .. })));
    assert_eq!(store.limits().max_key_bytes, 246);
    whole.clear().unwrap();
    // Cleared entries are counted until they are read, or until the server's own sweep.
    assert!(whole.len().unwrap() <= 2);
    assert_eq!((store.get(b"key").unwrap(), whole.get(b"key").unwrap()), (None, None));
    assert_eq!(whole.len().unwrap(), 0);
    put(&*whole, b"key", b"right after it was cleared");
    assert!(whole.contains(b"key").unwrap());
}

#[test]
fn many_keys_over_several_servers() {
    let Some(first) = Daemon::start(Kind::Memcached) else { return };
    let second = Daemon::start(Kind::Memcached).unwrap();
    let ports = [forward(&first), forward(&second)];
    let url = format!("memcached://127.0.0.1:{},127.0.0.1:{}?timeout=30s", ports[0], ports[1]);
    let store = open(&url).unwrap();
    let keys: Vec<_> = (0..1_000).map(|number| format!("key {number}").into_bytes()).collect();
    let entries: Vec<_> =
        keys.iter().map(|key| (key.as_slice(), key.as_slice(), SetOptions::set())).collect();
    assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
    assert_eq!(store.len().unwrap(), 1_000);
    for daemon in [&first, &second] {
        let own = open(&daemon.url("")).unwrap().len().unwrap();
        assert!((400..600).contains(&own), "{own}");
    }
    let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    let found = store.get_many(&borrowed).unwrap();
    assert!(found.iter().zip(&keys).all(|(found, key)| found.as_ref().unwrap().0 == *key));
    assert!(keys.iter().all(|key| store.get(key).unwrap().as_ref() == Some(key)));
    assert!(store.delete_many(&borrowed).into_iter().all(Result::unwrap));
    assert!(store.is_empty().unwrap());
}

/// Forwards a port to the server's socket for as long as the test runs.
pub(crate) fn forward(daemon: &Daemon) -> u16 {
    use std::io;
    use std::net::TcpListener;
    use std::os::unix::net::UnixStream;
    use std::thread;

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, socket) = (listener.local_addr().unwrap().port(), daemon.socket());
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let Ok(mut server) = UnixStream::connect(&socket) else { return };
            client.set_nodelay(true).unwrap();
            let (mut to, mut from) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            thread::spawn(move || io::copy(&mut from, &mut to));
            thread::spawn(move || io::copy(&mut server, &mut client));
        }
    });
    port
}
