//! What a store on a Redis Cluster makes of changes that real nodes do not make on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use haypile::{ManualClock, SetOptions, Store};

use crate::false_node::{FalseNode, Said, bulk, line, slots};
use crate::{open, open_by};

/// Keys, by the specification's CRC16, of the slots 3300, 7365 and 3168.
const KEYS: [&[u8]; 3] = [b"b", b"c", b"f"];
/// From this slot on another node has the slots.
const HALF: u16 = 5_000;

/// A node's answers while it has the slots of all keys that it is asked about, and each value is its key.
fn like_an_owner(words: &[&str]) -> Said {
    match words {
        ["PTTL", _] => line(":-1"),
        ["GET", key] => bulk(Some(key)),
        ["SET", ..] => line("+OK"),
        ["UNLINK", _] => line(":1"),
        _ => line(format!("-ERR unknown: {words:?}")),
    }
}

#[test]
fn each_key_keeps_its_answer_where_several_nodes_send_to_one() {
    let [one, two, heir] = std::array::from_fn(|_| FalseNode::start());
    let before = [(0, one.port()), (HALF, two.port())];
    one.answers(move |_| slots(&before));
    let store = open(&one.url("timeout=30s")).unwrap();
    let heir_port = heir.port();
    for node in [&one, &two] {
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => slots(&[(0, heir_port)]),
            _ => line(format!("-MOVED 1 127.0.0.1:{heir_port}")),
        });
    }
    heir.answers(like_an_owner);
    let found = store.get_many(&KEYS).unwrap();
    let values: Vec<_> = found.iter().map(|found| found.as_ref().unwrap().0.as_slice()).collect();
    assert_eq!(values, KEYS);
}

/// A node of a namespace with one key, which another node has as soon as it was scanned once.
#[test]
fn a_clear_begins_anew_where_another_node_has_the_keys_by_its_end() {
    let [seed, heir] = std::array::from_fn(|_| FalseNode::start());
    let (port, heir_port) = (seed.port(), heir.port());
    let mut was_scanned = false;
    seed.answers(move |words| match words {
        ["CLUSTER", "SLOTS"] if was_scanned => slots(&[(0, heir_port)]),
        ["CLUSTER", "SLOTS"] => slots(&[(0, port)]),
        ["SCAN", ..] => {
            was_scanned = true;
            line("*2\r\n$1\r\n0\r\n*0")
        }
        _ => line("-ERR"),
    });
    heir.answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&[(0, heir_port)]),
        ["SCAN", ..] => line("*2\r\n$1\r\n0\r\n*1\r\n$3\r\nn:a"),
        _ => like_an_owner(words),
    });
    let store = open(&seed.url("timeout=30s&namespace=n")).unwrap();
    store.clear().unwrap();
    assert!(heir.asked().contains(&"UNLINK n:a".to_owned()));
}

#[test]
fn a_clear_of_a_cluster_that_never_settles_is_an_error() {
    let [seed, other] = std::array::from_fn(|_| FalseNode::start());
    let ports = [seed.port(), other.port()];
    let turn = Arc::new(AtomicUsize::new(0));
    for node in [&seed, &other] {
        let turn = Arc::clone(&turn);
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => slots(&[(0, ports[turn.fetch_add(1, Ordering::SeqCst) % 2])]),
            ["FLUSHDB"] => line("+OK"),
            ["DBSIZE"] => line(":1"),
            _ => line("*2\r\n$1\r\n0\r\n*0"),
        });
    }
    for options in ["timeout=30s", "timeout=30s&namespace=n"] {
        let store = open(&seed.url(options)).unwrap();
        for error in [store.clear().unwrap_err(), store.len().unwrap_err()] {
            assert!(error.to_string().contains("when the cluster has settled"), "{error}");
        }
    }
}
