//! A store on a Redis Cluster during changes that real nodes do not make on demand.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use haypile::{ManualClock, SetOptions, Store};

use crate::false_node::{FalseNode, Said, bulk, line, slots};
use crate::{open, open_by};

/// Keys of the slots 3300, 7365 and 3168, by the specification's CRC16.
pub(crate) const KEYS: [&[u8]; 3] = [b"b", b"c", b"f"];
/// The first slot of the second node.
pub(crate) const HALF: u16 = 5_000;
/// Longer than any pause between two attempts.
const LONG: Duration = Duration::from_secs(6);

/// Returns the answers of a node that has the slots of all keys; each value is its key.
pub(crate) fn like_an_owner(words: &[&str]) -> Said {
    match words {
        ["PTTL", _] => line(":-1"),
        ["GET", key] => bulk(Some(key)),
        ["SET", ..] => line("+OK"),
        ["UNLINK", _] | ["DBSIZE"] => line(":1"),
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

/// A node of a namespace with one key, which moves to another node after the first scan.
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
            ["SCAN", ..] => page(&[]),
            _ => line("-ERR"),
        });
    }
    for options in ["timeout=30s", "timeout=30s&namespace=n"] {
        let store = open(&seed.url(options)).unwrap();
        for error in [store.clear().unwrap_err(), store.len().unwrap_err()] {
            assert!(error.to_string().contains("when the cluster has settled"), "{error}");
        }
    }
}

/// Returns the answer to a `SCAN` that ends with these keys.
fn page(keys: &[&str]) -> Said {
    let mut text = format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len());
    for key in keys {
        write!(text, "${}\r\n{key}\r\n", key.len()).unwrap();
    }
    Said::Wire(text)
}

fn scans(node: &FalseNode) -> usize {
    node.asked().iter().filter(|asked| asked.starts_with("SCAN")).count()
}

#[test]
fn only_nodes_that_slots_move_to_are_visited_again() {
    let [one, two, three] = std::array::from_fn(|_| FalseNode::start());
    let ports = [&one, &two, &three].map(FalseNode::port);
    let was_scanned = Arc::new(AtomicUsize::new(0));
    for (number, node) in [&one, &two, &three].into_iter().enumerate() {
        let was_scanned = Arc::clone(&was_scanned);
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => {
                // Some slots move while the first node is visited.
                let first = if was_scanned.load(Ordering::SeqCst) > 0 { 10 } else { HALF };
                slots(&[(0, ports[0]), (first, ports[1]), (9_000, ports[2])])
            }
            ["SCAN", ..] if number == 0 => {
                was_scanned.store(1, Ordering::SeqCst);
                page(&["n:a"])
            }
            ["SCAN", ..] => page(&["n:a"]),
            _ => like_an_owner(words),
        });
    }
    let store = open(&one.url("timeout=30s&namespace=n")).unwrap();
    store.clear().unwrap();
    let visits = [&one, &two, &three].map(scans);
    assert!(visits == [1, 1, 1] || visits == [1, 2, 1], "{visits:?}");
    was_scanned.store(0, Ordering::SeqCst);
    assert_eq!(store.len().unwrap(), 1);
}

/// A slot is moving, and its key has gone to the other node before the first one is visited.
#[test]
fn keys_of_a_slot_that_is_moving_are_cleared_and_counted() {
    let nodes = [FalseNode::start(), FalseNode::start()];
    let ports = [nodes[0].port(), nodes[1].port()];
    // One of them is visited first.
    for (source, slot) in [(0, 7), (1, HALF)] {
        let was_scanned = Arc::new(AtomicUsize::new(0));
        for (number, node) in nodes.iter().enumerate() {
            let was_scanned = Arc::clone(&was_scanned);
            node.answers(move |words| match words {
                ["CLUSTER", "SLOTS"] => slots(&[(0, ports[0]), (HALF, ports[1])]),
                ["CLUSTER", "NODES"] if number == source => {
                    let lines = format!(
                        "a 127.0.0.1:{}@1 myself,master - 0 0 1 connected [{slot}->-b]\n\
                         b 127.0.0.1:{}@1 master - 0 0 2 connected",
                        ports[source],
                        ports[1 - source]
                    );
                    bulk(Some(&lines))
                }
                ["SCAN", ..] if number == source => {
                    was_scanned.store(1, Ordering::SeqCst);
                    page(&[])
                }
                ["SCAN", ..] if was_scanned.load(Ordering::SeqCst) == 1 => page(&["n:a"]),
                ["SCAN", ..] => page(&[]),
                _ => like_an_owner(words),
            });
        }
        let store = open(&nodes[0].url("timeout=30s&namespace=n")).unwrap();
        assert_eq!(store.len().unwrap(), 1, "{source}");
        was_scanned.store(0, Ordering::SeqCst);
        store.clear().unwrap();
        let asked: Vec<_> = nodes.iter().flat_map(FalseNode::asked).collect();
        assert!(asked.contains(&"UNLINK n:a".to_owned()), "{source} {asked:?}");
    }
}

/// Returns two nodes that agree on the slots: the first has those below [`HALF`].
pub(crate) fn pair() -> ([FalseNode; 2], [(u16, u16); 2]) {
    let nodes = [FalseNode::start(), FalseNode::start()];
    let shares = [(0, nodes[0].port()), (HALF, nodes[1].port())];
    nodes[1].answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        _ => like_an_owner(words),
    });
    (nodes, shares)
}

#[test]
fn a_node_that_does_not_tell_where_the_slots_are_is_asked_for_entries() {
    let ([secretive, other], _) = pair();
    let wants = Arc::new(AtomicUsize::new(0));
    let wanted = Arc::clone(&wants);
    secretive.answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => {
            wanted.fetch_add(1, Ordering::SeqCst);
            line("-NOPERM this user has no permissions to run the 'cluster|slots' command")
        }
        _ => like_an_owner(words),
    });
    // The clock stands still, so a pause would never end.
    let clock = Arc::new(ManualClock::new());
    let (first, second) = (secretive.port(), other.port());
    let url = format!("redis+cluster://127.0.0.1:{first},127.0.0.1:{second}?timeout=30s");
    let store = open_by(&clock, &url);
    let was_found = || store.get(KEYS[0]).unwrap().as_deref() == Some(KEYS[0]);
    assert!(was_found());
    while wants.load(Ordering::SeqCst) < 3 {
        assert_eq!(store.len().unwrap(), 2);
        assert!(was_found());
    }
    assert!(store.warnings()[0].contains("NoPerm"), "{:?}", store.warnings());
}

#[test]
fn a_node_that_answers_by_drops_is_not_waited_for_longer_than_said() {
    let ([slow, _other], shares) = pair();
    slow.answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        _ => Said::Pieces(Box::new(|number| {
            thread::sleep(Duration::from_millis(50));
            (number < 400).then(|| ":-1\r\n".to_owned())
        })),
    });
    let store = open(&slow.url("timeout=400ms")).unwrap();
    let start = Instant::now();
    let keys = [KEYS[0]; 200];
    assert!(store.get_many(&keys).unwrap().iter().all(Option::is_none));
    // All replies together take twenty seconds, and each comes in time.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(store.warnings()[0].contains("no answer within 400ms"), "{:?}", store.warnings());
}

#[test]
fn a_reply_that_comes_by_drops_is_not_waited_for_longer_than_said() {
    let ([slow, _other], shares) = pair();
    slow.answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        ["GET", _] => Said::Pieces(Box::new(|number| {
            thread::sleep(Duration::from_millis(50));
            (number < 400).then(|| if number == 0 { "$399\r\n" } else { "x" }.to_owned())
        })),
        _ => like_an_owner(words),
    });
    let store = open(&slow.url("timeout=400ms")).unwrap();
    let start = Instant::now();
    assert_eq!(store.get(KEYS[0]).unwrap(), None);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(store.warnings()[0].contains("no answer within 400ms"), "{:?}", store.warnings());
}

/// Changes a key of the first node while that does not answer. The second node's address opens the
/// store.
fn with_pending(
    pair: &[FalseNode; 2],
    clock: &Arc<ManualClock>,
    options: &str,
    key: &[u8],
) -> Arc<dyn Store> {
    let [first, second] = pair;
    first.answers(|_| Said::End);
    let store = open_by(clock, &second.url(options));
    assert!(store.set(key, b"new", &SetOptions::set()).unwrap().is_stored());
    assert_eq!(store.stats().unwrap().unreachable, 1);
    first.asked();
    clock.advance(LONG);
    store
}

#[test]
fn a_stuck_node_that_a_slot_moves_to_keeps_only_its_own_keys_from_being_read() {
    let (nodes, shares) = pair();
    let (clock, new) = (Arc::new(ManualClock::new()), FalseNode::start());
    let store = with_pending(&nodes, &clock, "timeout=2s&namespace={b}", b"");
    let new_port = new.port();
    new.answers(|_| Said::Nothing);
    nodes[0].answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        [.., key] if *key == "{b}:" => line(format!("-ASK 3300 127.0.0.1:{new_port}")),
        _ => like_an_owner(words),
    });
    for _ in 0..3 {
        assert_eq!(store.get(b"f").unwrap().unwrap(), b"{b}:f");
        assert_eq!(store.get(b"").unwrap(), None);
    }
    // The store waited for it once.
    assert_eq!(new.asked(), ["ASKING"]);
    assert_eq!(store.stats().unwrap().unreachable, 4);

    new.answers(|words| match words {
        ["ASKING"] => line("+OK"),
        ["GET", _] => bulk(None),
        _ => like_an_owner(words),
    });
    clock.advance(LONG);
    assert_eq!(store.get(b"").unwrap(), None);
    assert_eq!(new.asked(), ["ASKING", "UNLINK {b}:", "ASKING", "PTTL {b}:", "ASKING", "GET {b}:"]);
    assert_eq!(store.stats().unwrap().unreachable, 4);
    assert_eq!(store.get(b"f").unwrap().unwrap(), b"{b}:f");
}

#[test]
fn slots_are_learned_while_a_node_that_had_them_is_waited_for() {
    let (nodes, shares) = pair();
    let (clock, heir) = (Arc::new(ManualClock::new()), FalseNode::start());
    let store = with_pending(&nodes, &clock, "timeout=30s", KEYS[0]);
    let (go_on, wait) = mpsc::channel::<()>();
    let mut wait = Some(wait);
    nodes[0].answers(move |words| match words {
        ["CLUSTER", "SLOTS"] => slots(&shares),
        ["UNLINK", _] => {
            let wait = wait.take();
            Said::Pieces(Box::new(move |number| {
                wait.as_ref().map(mpsc::Receiver::recv);
                (number == 0).then(|| ":1\r\n".to_owned())
            }))
        }
        _ => like_an_owner(words),
    });
    let after = [(0, heir.port()), shares[1]];
    for node in [&heir, &nodes[1]] {
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => slots(&after),
            _ => like_an_owner(words),
        });
    }
    thread::scope(|scope| {
        scope.spawn(|| store.get(KEYS[0]).unwrap());
        while !nodes[0].asked().contains(&"UNLINK b".to_owned()) {
            thread::yield_now();
        }
        let start = Instant::now();
        assert_eq!(store.len().unwrap(), 2);
        assert_eq!(heir.asked()[..2], ["UNLINK b", "DBSIZE"]);
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        drop(go_on);
    });
}

#[test]
fn keys_that_found_no_room_are_warned_of_after_their_node_has_left() {
    let (nodes, shares) = pair();
    let (clock, heir) = (Arc::new(ManualClock::new()), FalseNode::start());
    let store = with_pending(&nodes, &clock, "timeout=30s", KEYS[0]);
    for number in 10..90 {
        let key = format!("{{b}}{number}{}", "x".repeat(60_000));
        store.delete(key.as_bytes()).unwrap();
    }
    let after = [(0, heir.port()), shares[1]];
    for node in [&heir, &nodes[1]] {
        node.answers(move |words| match words {
            ["CLUSTER", "SLOTS"] => slots(&after),
            _ => like_an_owner(words),
        });
    }
    let left_out = |warning: &String| warning.starts_with("11 keys were changed");
    assert!(store.warnings().iter().any(left_out), "{:?}", store.warnings());
    assert_eq!(store.len().unwrap(), 2);
    assert!(store.warnings().iter().any(left_out), "{:?}", store.warnings());
}
