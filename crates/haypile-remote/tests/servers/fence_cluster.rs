//! Lost connections to nodes of a cluster whose slots another node has.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use haypile::{ManualClock, SetOptions, Store};

use crate::false_cluster::{HALF, KEYS, like_an_owner, pair};
use crate::false_node::{FalseNode, Said, line, slots};
use crate::open_by;

/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);
/// The time that something may take that happens soon. No test waits this long if all is well.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the answer of a node that stands still until the sender is dropped.
fn stuck(wait: &mut Option<Receiver<()>>) -> Said {
    let wait = wait.take();
    Said::Pieces(Box::new(move |_| {
        wait.as_ref().map(Receiver::recv);
        None
    }))
}

fn set(store: &dyn Store, key: &[u8]) {
    assert!(store.set(key, b"new", &SetOptions::set()).unwrap().is_stored());
}

/// Checks that the first key is set apart until the server of the second has answered for a second.
fn check(store: &dyn Store, clock: &ManualClock, asked: impl Fn() -> Vec<String>) {
    for _ in 0..3 {
        set(store, KEYS[0]);
        assert_eq!(store.get(KEYS[0]).unwrap(), None);
    }
    assert_eq!(asked().iter().filter(|asked| asked.starts_with("SET b")).count(), 0);
    assert_eq!(store.stats().unwrap().unfenced, 0);
    let start = Instant::now();
    for _ in 0..11 {
        clock.advance(Duration::from_millis(100));
        while store.get(KEYS[2]).unwrap().as_deref() != Some(KEYS[2]) {
            clock.advance(LONG);
            assert!(start.elapsed() < PATIENCE, "{:?}", store.warnings());
        }
    }
    assert_eq!(store.stats().unwrap().unfenced, 1, "{:?}", store.warnings());
    set(store, KEYS[0]);
    assert_eq!(asked().iter().filter(|asked| asked.starts_with("SET b")).count(), 1);
}

#[test]
fn a_node_that_a_slot_is_moving_to_is_waited_for_while_the_present_one_answers() {
    let (nodes, shares) = pair();
    let new = FalseNode::start();
    let (_go_on, wait): (Sender<()>, _) = channel();
    let (mut wait, new_port) = (Some(wait), new.port());
    new.answers(move |words| match words {
        ["ASKING"] => line("+OK"),
        ["SET", ..] if wait.is_some() => stuck(&mut wait),
        _ => like_an_owner(words),
    });
    nodes[0].answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        [_, "b", ..] => line(format!("-ASK 3300 127.0.0.1:{new_port}")),
        _ => like_an_owner(words),
    });
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &nodes[1].url("timeout=2s"));
    set(&*store, KEYS[0]);
    assert_eq!(new.asked(), ["ASKING", "SET b new"]);
    check(&*store, &clock, || new.asked());
}

#[test]
fn a_node_that_another_has_replaced_is_waited_for_while_that_one_answers() {
    let (nodes, shares) = pair();
    let heir = FalseNode::start();
    let (_go_on, wait): (Sender<()>, _) = channel();
    let mut wait = Some(wait);
    nodes[0].answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        ["SET", ..] => stuck(&mut wait),
        _ => like_an_owner(words),
    });
    let clock = Arc::new(ManualClock::new());
    let store = open_by(&clock, &nodes[1].url("timeout=2s"));
    set(&*store, KEYS[0]);
    assert_eq!(nodes[0].asked().last().unwrap(), "SET b new");
    let after = [(0, heir.port()), (HALF, nodes[1].port())];
    for node in [&heir, &nodes[1]] {
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => slots(&after),
            _ => like_an_owner(words),
        });
    }
    drop(nodes[0].asked());
    nodes[0].answers(|_| Said::End);
    clock.advance(LONG);
    check(&*store, &clock, || heir.asked());
}
