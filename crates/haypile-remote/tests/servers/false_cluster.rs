//! What a store on a Redis Cluster makes of changes that real nodes do not make on demand.

use std::sync::Arc;
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
