//! Listing keys while other processes write.

use std::path::PathBuf;

use haypile::Cache;

use crate::child;

/// Lists all keys of a cache, one in each line.
#[test]
#[ignore = "another test starts it"]
fn lister() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH").map(PathBuf::from) else { return };
    let cache = Cache::open(&format!("file://{}?size=1MiB", path.display())).expect("a cache");
    // What the test program prints before has no end of line.
    println!();
    for key in cache.keys() {
        println!("key {}", String::from_utf8(key.expect("a key")).expect("a text"));
    }
}

/// A record moves to another segment while its slot is read: its key was there all the time, and is listed.
#[cfg(feature = "crash-points")]
#[test]
fn a_key_whose_record_moves_is_listed() {
    use rustix::process::{Pid, Signal, kill_process};

    use crate::stop::is_stopped;

    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = Cache::open(&format!("file://{}?size=1MiB", path.display())).expect("a cache");
    cache.set("kept", "value").expect("a write");
    let mut child = child::start(
        "keys::lister",
        &[
            ("HAYPILE_TEST_PATH", path.display().to_string()),
            ("HAYPILE_STOP_AT", "keys.slots-read".to_owned()),
        ],
    );
    assert!(is_stopped(&child), "it comes to the slots of the only key");
    // More than the file holds: every segment is recycled, and what was used moves.
    let value = vec![7; 5_000];
    for round in 0..1_000_u32 {
        cache.set(format!("other {round}"), &value).expect("a write");
        assert!(cache.get("kept").expect("a read").is_some(), "in round {round}");
    }
    kill_process(Pid::from_child(&child), Signal::CONT).expect("it is there");
    let listed = child::lines(&mut child, "key ");
    assert!(child.wait().expect("its end").success());
    assert!(listed.iter().any(|key| key == "kept"), "{listed:?}");
}
