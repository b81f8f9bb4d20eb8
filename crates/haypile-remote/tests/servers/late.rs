//! Servers that stand still while a value is written: no read may find it after a newer one.
//!
//! `HAYPILE_LATE_ROUNDS=1000` runs that many rounds on each kind of server; a few are the default.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haypile::{ManualClock, Registry, SetOptions, Store};

use crate::daemon::{Daemon, Kind};
use crate::nodes::Nodes;

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);
/// The time that a server may take to go on. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time for which a value is read again and again after it was found.
const WATCHED: Duration = Duration::from_millis(15);
/// Bytes of the values that are written while the server stands still.
const SIZES: [usize; 5] = [100, 20_000, 200_000, 900_000, 4_000_000];
/// Rounds of each test, unless the environment names another number.
const ROUNDS: usize = 10;
/// Arguments of a memcached with room for these values.
const MEMCACHED: [&str; 6] = ["-t", "4", "-I", "8m", "-m", "400"];

fn rounds() -> usize {
    let rounds = std::env::var("HAYPILE_LATE_ROUNDS").ok();
    rounds.map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

/// Outcome of all rounds.
#[derive(Debug, Default)]
struct Found {
    /// Rounds in which an older value was read after a newer write.
    older: usize,
    /// Of these, rounds in which it was read after the newer value had been read.
    after_newer: usize,
}

/// Returns the first bytes of a value of a round.
fn name(what: &str, round: usize) -> Vec<u8> {
    format!("{what}{round}|").into_bytes()
}

/// Writes a value while the server stands still, then another, and reads.
fn run(url: &str, key: impl Fn(usize) -> Vec<u8>, daemon: &Daemon) {
    let clock = Arc::new(ManualClock::new());
    let store = open_soon(&clock, url);
    let (start, mut found, mut slowest) = (Instant::now(), Found::default(), Duration::ZERO);
    for round in 0..rounds() {
        let key = key(round / 5 % 5);
        let mut late = name("mid", round);
        late.resize(SIZES[round % SIZES.len()].max(late.len()), b'm');
        set(&*store, &key, &name("old", round));
        daemon.stop();
        match round % 4 {
            0 => {
                let more = [b"more".as_slice(), &key].map(|key| (key, &*late, SetOptions::set()));
                assert!(store.set_many(&more).iter().all(Result::is_ok));
            }
            1 => thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| set(&*store, &key, &late));
                }
            }),
            _ => set(&*store, &key, &late),
        }
        if round % 7 == 0 {
            clock.advance(LONG);
            set(&*store, &key, &late);
        }
        daemon.go_on();
        let new = name("new", round);
        let begin = Instant::now();
        let older = loop {
            end_pause(&*store, &clock);
            set(&*store, &key, &new);
            match store.get(&key).unwrap() {
                None => assert!(begin.elapsed() < PATIENCE, "{:?}", store.warnings()),
                Some(value) if value == new => break false,
                Some(_) => break true,
            }
        };
        slowest = slowest.max(begin.elapsed());
        if older {
            found.older += 1;
            continue;
        }
        let begin = Instant::now();
        while begin.elapsed() < WATCHED {
            if store.get(&key).unwrap().is_some_and(|value| value != new) {
                found.older += 1;
                found.after_newer += 1;
                break;
            }
        }
    }
    let (stats, seconds) = (store.stats().unwrap(), start.elapsed().as_secs_f32());
    eprintln!(
        "{url}: {} rounds, {found:?}, {} unreachable, a write had an effect within {slowest:?}, \
         {seconds:.0} s, {:?}",
        rounds(),
        stats.unreachable,
        store.warnings()
    );
    assert_eq!((found.older, stats.unfenced), (0, 0), "{url}: {found:?}");
}

/// Opens a store on a server that may be slow to answer for the first time.
pub(crate) fn open_soon(clock: &Arc<ManualClock>, url: &str) -> Arc<dyn Store> {
    let mut registry = Registry::new().with_clock(Arc::<ManualClock>::clone(clock));
    haypile_remote::register(&mut registry);
    let start = Instant::now();
    loop {
        match registry.open(url) {
            Ok(store) => return store,
            Err(error) => assert!(start.elapsed() < PATIENCE, "{error}"),
        }
    }
}

/// Ends the pause after a failure. The clock stands still otherwise: a connection is given up by
/// it.
fn end_pause(store: &dyn Store, clock: &ManualClock) {
    if store.warnings().iter().any(|warning| warning.contains("does not answer now")) {
        clock.advance(LONG);
    }
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).unwrap().is_stored());
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

#[test]
fn memcached_on_a_socket_that_stands_still() {
    let Some(daemon) = Daemon::start_with(Kind::Memcached, &MEMCACHED) else { return };
    run(&daemon.url("timeout=50ms"), key, &daemon);
}

#[test]
fn memcached_on_a_port_that_stands_still() {
    let Some((daemon, port)) = Daemon::start_on_port(Kind::Memcached, &MEMCACHED) else { return };
    run(&format!("memcached://127.0.0.1:{port}?timeout=50ms"), key, &daemon);
}

#[test]
fn redis_on_a_socket_that_stands_still() {
    let Some(daemon) = Daemon::start(Kind::Redis) else { return };
    run(&daemon.url("timeout=50ms"), key, &daemon);
}

#[test]
fn redis_on_a_port_that_stands_still() {
    let Some((daemon, port)) = Daemon::start_on_port(Kind::Redis, &[]) else { return };
    run(&format!("redis://127.0.0.1:{port}?timeout=50ms"), key, &daemon);
}

#[test]
fn redis_with_threads_that_stands_still() {
    let threads = ["--io-threads", "4", "--io-threads-do-reads", "yes"];
    let Some((daemon, port)) = Daemon::start_on_port(Kind::Redis, &threads) else { return };
    run(&format!("redis://127.0.0.1:{port}?timeout=50ms"), key, &daemon);
}

#[test]
fn a_node_of_a_cluster_that_stands_still() {
    let Some(cluster) = Nodes::start(&[]) else { return };
    let keys: Vec<_> = (0..5).map(|number| cluster.key(1, number)).collect();
    run(&cluster.url("timeout=50ms"), |number| keys[number].clone(), &cluster.daemons[1]);
}
