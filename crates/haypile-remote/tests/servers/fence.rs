//! Changes that arrive at the server after newer ones, because their connection was held up.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haypile::{ManualClock, SetOptions, Store, Ttl};

use crate::daemon::{Daemon, Kind};
use crate::late::open_soon;
use crate::nodes::Nodes;
use crate::proxy::Proxy;
use crate::{open, open_by, put};

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);
/// The time that something may take that happens soon. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store whose connections to one server go through a proxy.
struct Held {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    proxy: Proxy,
    /// Keys of the server behind the proxy.
    keys: Vec<Vec<u8>>,
    servers: Servers,
}

enum Servers {
    One(Daemon),
    #[expect(dead_code, reason = "it ends when it is dropped")]
    Cluster(Nodes),
}

impl Held {
    /// Returns a store on one server; `None`, and a message, if it is not installed.
    fn alone(kind: Kind, options: &str) -> Option<Self> {
        let large: &[_] = if kind == Kind::Memcached { &["-I", "8m", "-m", "200"] } else { &[] };
        let daemon = Daemon::start_with(kind, large)?;
        let proxy = Proxy::start(&daemon);
        let scheme = if kind == Kind::Memcached { "memcached" } else { "redis" };
        let url = format!("{scheme}://127.0.0.1:{}?{options}", proxy.port());
        let keys = (0..6).map(|number| format!("{number}").into_bytes()).collect();
        Some(Self::open(&url, proxy, keys, Servers::One(daemon)))
    }

    /// Returns a store on a cluster whose first node is behind the proxy.
    fn in_cluster(options: &str) -> Option<Self> {
        let cluster = Nodes::start(&[])?;
        let proxy = Proxy::start(&cluster.daemons[0]);
        let port = proxy.port();
        cluster.tell(0, &format!("CONFIG SET cluster-announce-port {port}"));
        for number in 0..3 {
            cluster.wait_until(number, "CLUSTER NODES", |nodes: &String| {
                nodes.contains(&format!("127.0.0.1:{port}@"))
            });
        }
        let keys = (0..6).map(|number| cluster.key(0, number)).collect();
        let url = format!("redis+cluster://127.0.0.1:{}?{options}", cluster.ports[1]);
        Some(Self::open(&url, proxy, keys, Servers::Cluster(cluster)))
    }

    /// Returns the store on memcached, the one on Redis and the one on a cluster.
    fn each(options: &str) -> impl Iterator<Item = Self> {
        let alone = Kind::ALL.into_iter().filter_map(move |kind| Self::alone(kind, options));
        alone.chain(std::iter::once_with(move || Self::in_cluster(options)).flatten())
    }

    fn open(url: &str, proxy: Proxy, keys: Vec<Vec<u8>>, servers: Servers) -> Self {
        let clock = Arc::new(ManualClock::new());
        let store = open_by(&clock, url);
        Self { store, clock, proxy, keys, servers }
    }

    fn get(&self, at: usize) -> Option<Vec<u8>> {
        self.store.get(&self.keys[at]).unwrap()
    }

    fn set(&self, at: usize, value: &[u8]) {
        assert!(self.store.set(&self.keys[at], value, &SetOptions::set()).unwrap().is_stored());
    }

    fn unreachable(&self) -> u64 {
        self.store.stats().unwrap().unreachable
    }

    /// Ends the pause after a failure. The clock stands still otherwise: a connection is given up
    /// by it.
    fn end_pause(&self) {
        if self.store.warnings().iter().any(|warning| warning.contains("does not answer now")) {
            self.clock.advance(LONG);
        }
    }

    /// Writes a value until a read finds it. Every read must find it or nothing.
    fn set_until_found(&self, at: usize, value: &[u8]) {
        let start = Instant::now();
        loop {
            self.end_pause();
            self.set(at, value);
            match self.get(at) {
                Some(found) if found == value => return,
                Some(older) => panic!("{}", String::from_utf8_lossy(&older[..older.len().min(9)])),
                None => assert!(start.elapsed() < PATIENCE, "{:?}", self.store.warnings()),
            }
        }
    }

    /// Makes a change whose bytes are held back until it is given up.
    fn change_late(&self, change: impl Fn(&dyn Store)) {
        // The statistics of Redis include the number of its entries, which it is asked for.
        let before = self.unreachable();
        // Leaves a connection for the change.
        self.set_until_found(5, b"ready");
        self.proxy.hold();
        change(&*self.store);
        assert!(self.unreachable() > before);
    }
}

fn a_value_is_not_read(held: &Held) {
    for (size, many) in [(3, false), (3, true), (100_000, false), (4_000_000, false)] {
        let late: Vec<u8> = b"mid".iter().copied().cycle().take(size).collect();
        for at in 0..3 {
            held.set_until_found(at, b"old");
        }
        held.change_late(|store| {
            if many {
                let late = [0, 1].map(|at| (&*held.keys[at], late.as_slice(), SetOptions::set()));
                assert!(store.set_many(&late).into_iter().all(|written| written.is_ok()));
            } else {
                held.set(0, &late);
            }
        });
        // Other keys go on.
        held.set_until_found(2, b"new");
        held.set(0, b"new");
        let early = held.get(0);
        assert_ne!(early.as_deref(), Some(&b"old"[..]));
        held.proxy.release();
        assert!(held.get(0).is_none_or(|value| value == b"new"), "{size} {many} {early:?}");
        assert!(held.get(1).is_none_or(|value| value == b"old"), "{size} {many}");
        assert_eq!(held.get(2).as_deref(), Some(&b"new"[..]));
        held.set_until_found(0, b"new");
        held.set_until_found(1, b"new");
    }
}

fn a_ttl_leaves_that_of_a_newer_value(held: &Held) {
    let long = Duration::from_secs(10_000);
    held.set_until_found(0, b"old");
    held.change_late(|store| {
        store.touch(&held.keys[0], Ttl::Never).unwrap();
    });
    held.set_until_found(2, b"new");
    let options = SetOptions::set().with_ttl(long);
    assert!(held.store.set(&held.keys[0], b"new", &options).unwrap().is_stored());
    held.proxy.release();
    let hit = held.store.get_into(&held.keys[0], &mut Vec::new()).unwrap();
    assert!(hit.is_none_or(|hit| hit.expires_in.is_some()));
    held.set_until_found(0, b"new");
}

fn a_deletion_leaves_what_was_read(held: &Held) {
    held.set_until_found(0, b"old");
    held.change_late(|store| {
        store.delete(&held.keys[0]).unwrap();
    });
    held.set_until_found(2, b"new");
    held.set(0, b"new");
    let read = held.get(0);
    assert_ne!(read.as_deref(), Some(&b"old"[..]));
    held.proxy.release();
    assert!(read.is_none() || held.get(0) == read);
    held.set_until_found(0, b"new");
}

fn a_deletion_of_pending_keys_leaves_what_was_read(held: &Held) {
    held.set_until_found(0, b"old");
    held.change_late(|_| held.set(0, b"mid"));
    held.set_until_found(2, b"new");
    held.proxy.release();
    // The next request begins with a deletion of the key.
    held.proxy.hold();
    assert_eq!(held.get(0), None);
    held.set_until_found(2, b"newer");
    held.set(0, b"new");
    let read = held.get(0);
    held.proxy.release();
    assert!(read.is_none() || held.get(0) == read);
    held.set_until_found(0, b"new");
}

#[test]
fn attempts_at_a_server_that_stands_still_are_not_lost_connections() {
    for kind in Kind::ALL {
        let Some(daemon) = Daemon::start(kind) else { continue };
        let clock = Arc::new(ManualClock::new());
        let store = open_soon(&clock, &daemon.url("timeout=20ms"));
        daemon.stop();
        // More than a store keeps.
        for _ in 0..70 {
            clock.advance(LONG);
            assert!(store.set(b"k", b"new", &SetOptions::set()).unwrap().is_stored());
        }
        daemon.go_on();
        let start = Instant::now();
        while store.get(b"k").unwrap().is_none_or(|value| value != b"newer") {
            if store.warnings().iter().any(|warning| warning.contains("does not answer now")) {
                clock.advance(LONG);
            }
            assert!(store.set(b"k", b"newer", &SetOptions::set()).unwrap().is_stored());
            assert!(start.elapsed() < PATIENCE, "{:?}", store.warnings());
        }
        assert_eq!(store.stats().unwrap().unfenced, 0, "{:?}", store.warnings());
    }
}

#[test]
fn a_key_that_alone_is_used_does_not_stay_set_apart() {
    for held in Held::each("timeout=500ms") {
        held.set_until_found(0, b"old");
        held.change_late(|_| held.set(0, b"mid"));
        held.end_pause();
        let start = Instant::now();
        while held.get(0).is_none() {
            held.clock.advance(Duration::from_millis(100));
            held.set(0, b"new");
            assert!(start.elapsed() < PATIENCE, "{:?}", held.store.warnings());
        }
        assert_eq!(held.store.stats().unwrap().unfenced, 1);
    }
}

/// Runs each test of a change that arrives late.
fn check(held: Option<Held>) {
    let Some(held) = held else { return };
    a_value_is_not_read(&held);
    a_ttl_leaves_that_of_a_newer_value(&held);
    a_deletion_leaves_what_was_read(&held);
    a_deletion_of_pending_keys_leaves_what_was_read(&held);
}

#[test]
fn what_arrives_late_at_memcached_has_no_effect() {
    check(Held::alone(Kind::Memcached, "timeout=500ms"));
}

#[test]
fn what_arrives_late_at_redis_has_no_effect() {
    check(Held::alone(Kind::Redis, "timeout=500ms"));
}

#[test]
fn what_arrives_late_at_a_node_of_a_cluster_has_no_effect() {
    check(Held::in_cluster("timeout=500ms"));
}

#[test]
fn a_lost_connection_is_given_up_after_a_second_in_which_the_server_answers() {
    for held in Held::each("timeout=500ms") {
        held.set_until_found(0, b"old");
        held.change_late(|_| held.set(0, b"mid"));
        held.set_until_found(2, b"new");
        let start = Instant::now();
        while held.get(0).is_none() {
            held.clock.advance(Duration::from_millis(50));
            held.set(0, b"new");
            held.set(2, b"new");
            assert!(start.elapsed() < PATIENCE, "{:?}", held.store.warnings());
        }
        assert_eq!(held.store.stats().unwrap().unfenced, 1);
        let says = "did not confirm within a second";
        let warnings = held.store.warnings();
        assert!(warnings.iter().any(|warning| warning.contains(says)), "{warnings:?}");
    }
}

#[test]
fn a_namespace_is_cleared_while_a_value_for_it_is_under_way() {
    let Some(held) = Held::alone(Kind::Redis, "timeout=500ms&namespace=n") else { return };
    held.set_until_found(0, b"old");
    held.set_until_found(1, b"old");
    held.change_late(|_| held.set(0, b"mid"));
    held.set_until_found(2, b"new");
    let Servers::One(daemon) = &held.servers else { unreachable!("it is alone") };
    let other = open(&daemon.url("timeout=30s&namespace=n")).unwrap();
    put(&*other, &held.keys[0], b"other");
    held.store.clear().unwrap();
    held.proxy.release();
    for at in 0..3 {
        assert_eq!(held.get(at), None, "{at}");
    }
    held.set_until_found(0, b"new");
    assert_eq!(held.store.len().unwrap(), 1);
}

#[test]
fn a_store_that_is_closed_does_not_wait_for_lost_connections() {
    for held in Held::each("timeout=500ms") {
        held.set_until_found(0, b"old");
        held.change_late(|_| held.set(0, b"mid"));
        held.store.close().unwrap();
        held.store.close().unwrap();
    }
}

/// A process that forks while it waits for a lost connection; its child uses the store and closes
/// it.
#[test]
#[ignore = "another test starts it"]
fn forking() {
    for held in Held::each("timeout=500ms") {
        held.set_until_found(0, b"old");
        held.change_late(|_| held.set(0, b"mid"));
        held.set_until_found(2, b"new");
        // SAFETY: the threads of the proxy hold no lock that the child takes.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            held.set(3, b"child");
            let is_right = held.get(3).as_deref() == Some(b"child") && held.get(0).is_none();
            let is_closed = held.store.close().is_ok();
            // SAFETY: ends the child without the handlers of its parent.
            unsafe { libc::_exit(i32::from(!is_right || !is_closed)) }
        }
        let mut status = 0;
        // SAFETY: the child is this process', and the status is a valid place.
        assert_eq!(unsafe { libc::waitpid(forked, &raw mut status, 0) }, forked);
        assert_eq!(status, 0, "the child reads what it writes, and not what is set apart");
        held.set(0, b"new");
        assert_eq!(held.get(0), None);
        held.proxy.release();
        held.set_until_found(0, b"new");
        assert_eq!(held.get(3).as_deref(), Some(&b"child"[..]));
        assert_eq!(held.store.stats().unwrap().unfenced, 0);
    }
}

#[test]
fn a_forked_child_leaves_lost_connections_to_its_parent() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["fence::forking", "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
