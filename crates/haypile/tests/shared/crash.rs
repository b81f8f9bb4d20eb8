//! A process is killed at each named step, and others go on.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::Arc;

use haypile::{Registry, Store};

use crate::child;
use crate::script::{self, Kind, Model};

/// Steps, and after how many passes each is looked at.
const STEPS: &[(&str, &[u32])] = &[
    ("bucket.locked", &[1, 77, 5_000]),
    ("bucket.line-taken", &[1, 5]),
    ("bucket.line-linked", &[1, 5]),
    ("bucket.line-unlinked", &[1, 5]),
    ("append.locked", &[1, 500, 4_000]),
    ("append.lengths-written", &[1, 500, 4_000]),
    ("append.reserved", &[1, 500, 4_000]),
    ("append.half-filled", &[1, 500, 4_000]),
    ("append.filled", &[1, 500, 4_000]),
    ("set.counted", &[1, 600, 4_000]),
    ("set.published", &[1, 600, 4_000]),
    ("delete.emptied", &[1, 50]),
    ("touch.raised", &[1, 10]),
    ("open.begun", &[1, 9, 40]),
    ("open.opened", &[1, 9, 40]),
    ("open.named", &[1, 9, 40]),
    ("open.sealed", &[1, 9, 40]),
    ("recycle.marked", &[1, 9, 40]),
    ("recycle.counted", &[1, 9, 40]),
    ("recycle.moved", &[1, 9, 40]),
    ("recycle.dropped", &[1, 9, 40]),
    ("recycle.emptied", &[1, 9, 40]),
    ("recycle.freed", &[1, 9, 40]),
    ("run.begun", &[1, 9]),
    ("run.members", &[1, 9]),
    ("run.joined", &[1, 9]),
    ("run.reserved", &[1, 9]),
    ("clear.risen", &[1]),
];

/// In how many files at most a step is waited for that depends on the file.
const FILES: u32 = 12;
const OPERATIONS: u64 = 12_000;
const SEED: u64 = 11;

fn open(path: &Path) -> Arc<dyn Store> {
    // Few buckets: they go on in overflow lines.
    let url = format!("file://{}?size=2MiB&entry_size=12KiB", path.display());
    Registry::new().open(&url).expect("a store")
}

/// Does the operations and says each number that is done.
#[test]
#[ignore = "another test starts it"]
fn worker() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let kind = kind(&child::variable("HAYPILE_TEST_KIND").expect("a kind"));
    let store = open(Path::new(&path));
    for number in 0..OPERATIONS {
        script::perform(&*store, script::op(kind, SEED, number)).expect("an operation");
        println!("done {}", number + 1);
    }
}

fn kind(name: &str) -> Kind {
    if name == "roomy" { Kind::Roomy } else { Kind::Crowded }
}

fn kill_at_each_step(name: &str) {
    let kind = kind(name);
    let mut missed = Vec::new();
    for (step, passes) in STEPS {
        let is_elsewhere = kind == Kind::Roomy && is_of_full_caches(step);
        for pass in *passes {
            // How full buckets become depends on the seed of each file's hash: where a step was not
            // come to, another file may.
            let files = if *pass == 1 && !is_elsewhere { FILES } else { 1 };
            let is_passed = (0..files).any(|_| kill_at(kind, name, step, *pass));
            missed.extend((*pass == 1 && !is_elsewhere && !is_passed).then_some(*step));
        }
    }
    assert!(missed.is_empty(), "steps that were never passed: {missed:?}");
}

/// Kills a worker there and looks at what it left; whether the worker came there at all.
fn kill_at(kind: Kind, name: &str, step: &str, pass: u32) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    let mut worker = child::start(
        "crash::worker",
        &[
            ("HAYPILE_TEST_PATH", path.display().to_string()),
            ("HAYPILE_TEST_KIND", name.to_owned()),
            ("HAYPILE_CRASH_AT", format!("{step}:{pass}")),
        ],
    );
    // The lines of the test program itself come before on the same line.
    let done = child::lines(&mut worker, "done ");
    let status = worker.wait().expect("its end");
    let done = done.last().map_or(0, |line| line.parse().expect("a number"));
    let is_passed = status.signal() == Some(9);
    assert!(is_passed || status.success(), "{step}:{pass}: {status}");
    let before = Model::after(kind, SEED, done);
    let mut after = before.clone();
    if done < OPERATIONS {
        after.perform(script::op(kind, SEED, done));
    }
    println!("{step}:{pass} after {done}");
    script::check(&*store, kind, &before, &after);
    script::check(&*open(&path), kind, &before, &after);
    // Another goes on, whatever was locked.
    let mut model = if script::holds(&*store, kind, &after) { after } else { before };
    for number in done + 1..done + 400 {
        let op = script::op(kind, SEED, number);
        script::perform(&*store, op).expect("an operation after the death");
        model.perform(op);
    }
    script::check(&*store, kind, &model, &model);
    let entries = store.len().expect("counted anew");
    drop(store);
    let check = haypile::shared::check(&path, |_| {}).expect("a file");
    assert_eq!(check.damaged, 0, "{step}:{pass}: {check:?}");
    assert_eq!(check.entries, entries, "{step}:{pass}");
    is_passed
}

/// Whether a step belongs to records of several segments, which there are in a full cache alone.
fn is_of_full_caches(step: &str) -> bool {
    step.starts_with("run.")
}

#[test]
fn where_there_is_room_nothing_acknowledged_is_lost() {
    kill_at_each_step("roomy");
}

#[test]
fn where_there_is_none_nothing_wrong_is_found() {
    kill_at_each_step("crowded");
}
