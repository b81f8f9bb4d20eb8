//! Nodes of a Redis Cluster that go away, come back, are replaced, or give their slots to others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Error, ManualClock, SetOptions, Store};

use crate::nodes::Nodes;
use crate::{open, open_by, put};

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);
/// Nodes that soon regard a node without an answer as failed.
const IMPATIENT: [&str; 2] = ["--cluster-node-timeout", "1000"];
/// The same, and they stay in service without it.
const PARTIAL: [&str; 4] = [IMPATIENT[0], IMPATIENT[1], "--cluster-require-full-coverage", "no"];

fn unreachable(store: &dyn Store) -> u64 {
    store.stats().unwrap().unreachable
}

/// Returns the value from a node that answered.
fn answered(store: &dyn Store, clock: &ManualClock, key: &[u8]) -> Option<Vec<u8>> {
    loop {
        clock.advance(LONG);
        let before = unreachable(store);
        let value = store.get(key).unwrap();
        if unreachable(store) == before {
            return value;
        }
    }
}

#[test]
fn without_one_node_only_its_keys_miss() {
    let Some(mut cluster) = Nodes::start(&PARTIAL) else { return };
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &cluster.url("timeout=30s"));
    let keys: Vec<_> = (0..3).map(|node| cluster.key(node, 0)).collect();
    let borrowed: Vec<_> = keys.iter().map(Vec::as_slice).collect();
    for key in &keys {
        put(&*store, key, b"old");
    }
    cluster.daemons[1].kill();

    let found = store.get_many(&borrowed).unwrap();
    let found: Vec<_> = found.iter().map(Option::is_some).collect();
    assert_eq!((found, unreachable(&*store)), (vec![true, false, true], 1));
    let entries: Vec<_> =
        borrowed.iter().map(|key| (*key, b"new".as_slice(), SetOptions::set())).collect();
    assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
    let deleted = store.delete_many(&borrowed);
    let deleted: Vec<_> = deleted.into_iter().map(Result::unwrap).collect();
    assert_eq!((deleted, unreachable(&*store)), (vec![true, false, true], 3));
    assert_eq!(store.incr(&keys[1], 1).unwrap(), None);
    for error in [store.clear().unwrap_err(), store.len().unwrap_err()] {
        assert!(matches!(error, Error::Backend { .. }), "{error}");
        assert!(error.to_string().contains("did not answer"), "{error}");
    }
    let warnings = store.warnings();
    let port = cluster.ports[1].to_string();
    assert!(warnings.len() == 1 && warnings[0].contains(&port), "{warnings:?}");
    assert!(warnings[0].contains("does not answer now"), "{warnings:?}");

    cluster.daemons[1].restart();
    cluster.wait_until_agreed();
    assert_eq!(answered(&*store, &clock, &keys[1]), None);
    put(&*store, &keys[1], b"again");
    assert_eq!(store.get(&keys[1]).unwrap().unwrap(), b"again");
    assert!(store.warnings()[0].contains("answers again"), "{:?}", store.warnings());
    store.clear().unwrap();
}

#[test]
fn a_cluster_that_refuses_all_keys_is_an_empty_cache_until_it_is_whole() {
    let Some(mut cluster) = Nodes::start(&IMPATIENT) else { return };
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &cluster.url("timeout=30s"));
    let (changed, other) = (cluster.key(0, 0), cluster.key(0, 1));
    put(&*store, &changed, b"old");
    put(&*store, &other, b"old");
    cluster.daemons[1].kill();
    cluster.wait_until(0, "CLUSTER INFO", |info: &String| info.contains("cluster_state:fail"));
    assert!(store.set(&changed, b"new", &SetOptions::set()).unwrap().is_stored());
    assert_eq!(store.get(&changed).unwrap(), None);
    assert_eq!(unreachable(&*store), 2);
    let warnings = store.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("cluster is down")), "{warnings:?}");

    cluster.daemons[1].restart();
    cluster.wait_until_agreed();
    assert_eq!(answered(&*store, &clock, &changed), None);
    assert_eq!(store.get(&other).unwrap().unwrap(), b"old");
}

#[test]
fn what_was_changed_while_a_node_was_stuck_is_not_read() {
    let Some(cluster) = Nodes::start(&PARTIAL) else { return };
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &cluster.url("timeout=500ms"));
    let keys: Vec<_> = (0..40).map(|number| cluster.key(1, number)).collect();
    for key in &keys {
        while !store.contains(key).unwrap() {
            clock.advance(LONG);
            let _ = store.set(key, b"old", &SetOptions::set()).unwrap();
        }
    }
    cluster.daemons[1].stop();
    let (start, borrowed) = (Instant::now(), keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
    assert!(store.get_many(&borrowed).unwrap().iter().all(Option::is_none));
    // A wait for each reply would take 40 seconds.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    clock.advance(LONG);
    // The outcome of this write is unknown; the others are not sent at all.
    assert!(store.set(&keys[0], b"new", &SetOptions::set()).unwrap().is_stored());
    for key in &keys[1..] {
        store.delete(key).unwrap();
    }
    cluster.daemons[1].go_on();
    for key in &keys {
        assert_ne!(answered(&*store, &clock, key).as_deref(), Some(&b"old"[..]));
    }
}

#[test]
fn what_was_changed_before_a_replica_took_over_is_not_read() {
    let Some(mut cluster) = Nodes::start(&PARTIAL) else { return };
    let Some(replica) = cluster.add(&PARTIAL) else { return };
    cluster.meet();
    let master = cluster.id(1);
    cluster.wait_until(replica, "CLUSTER NODES", |nodes: &String| nodes.contains(&master));
    cluster.tell(replica, &format!("CLUSTER REPLICATE {master}"));
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &cluster.url("timeout=30s"));
    let keys: Vec<_> = (0..20).map(|number| cluster.key(1, number)).collect();
    for key in &keys {
        put(&*store, key, b"old");
    }
    cluster.wait_until(replica, "DBSIZE", |size: &u64| *size == 20);

    cluster.daemons[1].kill();
    let (changed, kept) = keys.split_at(10);
    for key in changed {
        assert!(store.set(key, b"new", &SetOptions::set()).unwrap().is_stored());
    }
    cluster.tell(replica, "CLUSTER FAILOVER TAKEOVER");
    let port = format!(":{}@", cluster.ports[replica]);
    cluster.wait_until(0, "CLUSTER NODES", |nodes: &String| {
        nodes.lines().any(|line| line.contains(&port) && line.contains("5461-10921"))
    });
    for key in changed {
        assert_eq!(answered(&*store, &clock, key), None);
    }
    for key in kept {
        assert_eq!(answered(&*store, &clock, key).unwrap(), b"old");
    }
    assert_eq!(unreachable(&*store), 10);
    store.clear().unwrap();
    assert_eq!(cluster.ask::<u64>(replica, "DBSIZE"), 0);
}

/// Begins to move a slot; [`end_move`] completes it.
fn begin_move(cluster: &Nodes, slot: u16, from: usize, to: usize) {
    cluster.tell(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(from)));
    cluster.tell(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(to)));
}

fn carry(cluster: &Nodes, key: &str, from: usize, to: usize) {
    cluster.tell(from, &format!("MIGRATE 127.0.0.1 {} {key} 0 30000", cluster.ports[to]));
}

fn end_move(cluster: &Nodes, slot: u16, from: usize, to: usize) {
    let id = cluster.id(to);
    for node in [to, from] {
        cluster.tell(node, &format!("CLUSTER SETSLOT {slot} NODE {id}"));
    }
}

#[test]
fn a_slot_moves_while_its_keys_are_used() {
    let Some(cluster) = Nodes::start(&[]) else { return };
    let store = open(&cluster.url("timeout=30s")).unwrap();
    let tag = String::from_utf8(cluster.key(0, 0)).unwrap();
    let slot: u16 = cluster.ask(0, &format!("CLUSTER KEYSLOT {tag}"));
    let names: Vec<_> = (0..6).map(|number| format!("{{{tag}}}{number}")).collect();
    let keys: Vec<_> = names.iter().map(String::as_bytes).collect();
    let elsewhere = cluster.key(2, 0);
    for key in &keys[..4] {
        put(&*store, key, b"1");
    }
    put(&*store, &elsewhere, b"1");

    begin_move(&cluster, slot, 0, 1);
    carry(&cluster, &names[0], 0, 1);
    carry(&cluster, &names[1], 0, 1);
    // Two have moved, two are still here, and new keys go to the new node.
    assert_eq!(store.get_many(&keys).unwrap().iter().flatten().count(), 4);
    assert_eq!(store.incr(keys[0], 1).unwrap(), Some(2));
    assert_eq!(store.incr(keys[2], 1).unwrap(), Some(2));
    let entries =
        [(keys[4], b"1".as_slice(), SetOptions::add()), (keys[0], b"", SetOptions::add())];
    let written: Vec<_> =
        store.set_many(&entries).into_iter().map(|written| written.unwrap().is_stored()).collect();
    assert_eq!(written, [true, false]);
    assert_eq!(cluster.ask::<u64>(1, "DBSIZE"), 3);
    assert!(!store.delete(keys[5]).unwrap());
    assert_eq!(store.len().unwrap(), 6);

    carry(&cluster, &names[2], 0, 1);
    carry(&cluster, &names[3], 0, 1);
    end_move(&cluster, slot, 0, 1);
    let all: Vec<_> = keys.iter().copied().chain([elsewhere.as_slice()]).collect();
    let found = store.get_many(&all).unwrap();
    let found: Vec<_> =
        found.iter().map(|found| found.as_ref().map(|(value, _)| &**value)).collect();
    let (one, two) = (Some(&b"1"[..]), Some(&b"2"[..]));
    assert_eq!(found, [two, one, two, one, one, None, one]);
    assert_eq!(store.incr(keys[2], 1).unwrap(), Some(3));
    assert!(store.delete_many(&keys[..5]).into_iter().all(Result::unwrap));
    assert_eq!((store.len().unwrap(), unreachable(&*store)), (1, 0), "{:?}", store.warnings());
}

#[test]
fn pending_invalidations_follow_a_slot_that_moves() {
    let Some(cluster) = Nodes::start(&PARTIAL) else { return };
    let tag = String::from_utf8(cluster.key(0, 0)).unwrap();
    let slot: u16 = cluster.ask(0, &format!("CLUSTER KEYSLOT {tag}"));
    let names: Vec<_> = (0..3).map(|number| format!("{{{tag}}}{number}")).collect();
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &cluster.url("timeout=500ms"));
    for name in &names {
        while answered(&*store, &clock, name.as_bytes()).is_none() {
            let _ = store.set(name.as_bytes(), b"old", &SetOptions::set()).unwrap();
        }
    }
    // The first is sent, and done when the node continues; the second only becomes pending.
    let delete_while_stuck = |some: [usize; 2]| {
        cluster.daemons[0].stop();
        for number in some {
            store.delete(names[number].as_bytes()).unwrap();
        }
        cluster.daemons[0].go_on();
        cluster.wait_until_agreed();
    };
    let value = |number: usize| answered(&*store, &clock, names[number].as_bytes());
    delete_while_stuck([0, 1]);
    begin_move(&cluster, slot, 0, 1);
    carry(&cluster, &names[1], 0, 1);
    assert_eq!((value(1), value(0), value(2)), (None, None, Some(b"old".to_vec())));

    delete_while_stuck([0, 2]);
    carry(&cluster, &names[2], 0, 1);
    end_move(&cluster, slot, 0, 1);
    assert_eq!(value(2), None);
}

/// Moves slots between two nodes, one after the other, until it is told to stop.
fn reshard(cluster: &Nodes, is_over: &AtomicBool) -> usize {
    let mut moves = 0;
    for slot in (0..5_000_u16).step_by(7) {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        begin_move(cluster, slot, 0, 1);
        let keys: Vec<String> = cluster.ask(0, &format!("CLUSTER GETKEYSINSLOT {slot} 1000"));
        for key in &keys {
            carry(cluster, key, 0, 1);
        }
        end_move(cluster, slot, 0, 1);
        moves += 1;
    }
    moves
}

#[test]
fn a_namespace_is_cleared_and_counted_while_slots_move() {
    let Some(cluster) = Nodes::start(&[]) else { return };
    let store = open(&cluster.url("timeout=30s&namespace=n")).unwrap();
    let names: Vec<_> = (0..2_000).map(|number| format!("k{number}").into_bytes()).collect();
    let entries: Vec<_> =
        names.iter().map(|name| (&**name, b"v".as_slice(), SetOptions::set())).collect();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let mover = scope.spawn(|| reshard(&cluster, &is_over));
        for _ in 0..10 {
            assert!(store.set_many(&entries).into_iter().all(|written| written.is_ok()));
            assert_eq!(store.len().unwrap(), 2_000);
            store.clear().unwrap();
            assert_eq!(store.len().unwrap(), 0);
            assert!(store.get_many(&[&names[0], &names[1]]).unwrap().iter().all(Option::is_none));
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(mover.join().unwrap() > 0);
    });
    assert_eq!(unreachable(&*store), 0, "{:?}", store.warnings());
}
