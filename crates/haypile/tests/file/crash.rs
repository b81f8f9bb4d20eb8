//! A process is killed at each named step, and others go on.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use haypile::{Registry, Store};

use crate::child;
use crate::script::{self, Kind, Model};

/// Steps of every file, and after how many passes each is tried.
pub(crate) const STEPS: &[(&str, &[u32])] = &[
    ("settle.hazard", &[1]),
    ("settle.lanes", &[1]),
    ("settle.incarnation", &[1]),
    ("settle.stamp", &[1]),
    ("settle.process", &[1]),
    ("settle.namespace", &[1]),
    ("settle.since", &[1]),
    ("settle.used", &[1]),
    ("settle.taken", &[1]),
    ("bucket.locked", &[1, 77, 5_000]),
    ("bucket.line-taken", &[1, 5]),
    ("bucket.line-linked", &[1, 5]),
    ("bucket.line-unlinked", &[1, 5]),
    ("bucket.emptied", &[1, 5]),
    ("append.locked", &[1, 500, 4_000]),
    ("append.lengths-written", &[1, 500, 4_000]),
    ("append.reserved", &[1, 500, 4_000]),
    ("append.half-filled", &[1, 500, 4_000]),
    ("append.filled", &[1, 500, 4_000]),
    ("set.counted", &[1, 600, 4_000]),
    ("set.published", &[1, 600, 4_000]),
    ("removal.counted", &[1, 50]),
    ("removal.noted", &[1, 50]),
    ("delete.emptied", &[1, 50]),
    ("touch.raised", &[1, 10]),
    ("lane.taken", &[1, 2]),
    ("lane.emptied", &[1, 9]),
    ("take.hazard", &[1, 9, 40]),
    ("take.taken", &[1, 9, 40]),
    ("open.begun", &[1, 9, 40]),
    ("open.opened", &[1, 9, 40]),
    ("open.named", &[1, 9, 40]),
    ("open.sealed", &[1, 9, 40]),
    ("recycle.marked", &[1, 9, 40]),
    ("recycle.copied", &[1, 9, 40]),
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

/// Steps of a file that is used again after a reboot.
const STEPS_AFTER_A_REBOOT: &[(&str, &[u32])] = &[
    ("attach.begun", &[1]),
    ("attach.unswept", &[1]),
    ("attach.skipped", &[1]),
    ("settle.lanes", &[1]),
    ("settle.incarnation", &[1]),
    ("settle.stamp", &[1]),
    ("settle.used", &[1]),
    ("append.reserved", &[1, 20]),
    ("append.filled", &[1, 20]),
    ("append.released", &[1, 20]),
    ("set.counted", &[1, 20]),
    ("set.published", &[1, 20]),
    ("delete.emptied", &[1, 9]),
    ("recycle.copied", &[1, 9]),
    ("recycle.moved", &[1, 9]),
    ("recycle.dropped", &[1, 9]),
    ("recycle.freed", &[1, 9]),
    ("sweep.sealed", &[1]),
    ("sweep.sure", &[1]),
];

/// In how many files at most a step is waited for that depends on the file.
const FILES: u32 = 12;
const OPERATIONS: u64 = 12_000;
/// Operations before the reboot.
const BEFORE: u64 = 3_000;
const SEED: u64 = 11;

pub(crate) fn open(path: &Path) -> Arc<dyn Store> {
    // Few buckets: they go on in overflow lines.
    let url = format!("file://{}?size=2MiB&entry_size=12KiB", path.display());
    Registry::new().open(&url).expect("a store")
}

/// The operations of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Course {
    kind: Kind,
    /// The number of operations done before the worker, by a process of another boot.
    from: u64,
}

impl Course {
    const ROOMY: Self = Self { kind: Kind::Roomy, from: 0 };
    const CROWDED: Self = Self { kind: Kind::Crowded, from: 0 };

    /// The boot that the worker and those after it see.
    fn boot_id(self) -> Option<&'static str> {
        (self.from > 0).then_some("after the reboot")
    }

    fn start_worker(self, path: &Path, step: &str, pass: u32) -> Child {
        let mut variables = vec![
            ("HAYPILE_TEST_PATH", path.display().to_string()),
            ("HAYPILE_TEST_KIND", self.kind.name().to_owned()),
            ("HAYPILE_TEST_FROM", self.from.to_string()),
            ("HAYPILE_CRASH_AT", format!("{step}:{pass}")),
        ];
        variables.extend(self.boot_id().map(|id| ("HAYPILE_BOOT_ID", id.to_owned())));
        child::start("crash::worker", &variables)
    }
}

/// Does the operations and says each number that is done.
#[test]
#[ignore = "another test starts it"]
fn worker() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let kind = Kind::of(&child::variable("HAYPILE_TEST_KIND").expect("a kind"));
    let from = child::variable("HAYPILE_TEST_FROM").expect("one").parse().expect("a number");
    let store = open(Path::new(&path));
    for number in from..OPERATIONS {
        script::perform(&*store, script::op(kind, SEED, number)).expect("an operation");
        println!("done {}", number + 1);
    }
}

fn kill_at_each(course: Course, steps: &[(&'static str, &[u32])]) {
    let mut missed = Vec::new();
    for (step, passes) in steps {
        let is_elsewhere = course.kind == Kind::Roomy && is_of_full_caches(step);
        for pass in *passes {
            // How full buckets become depends on the seed of each file's hash: where a step was not
            // come to, another file may.
            let files = if *pass == 1 && !is_elsewhere { FILES } else { 1 };
            let is_passed = (0..files).any(|_| kill_at(course, step, *pass));
            missed.extend((*pass == 1 && !is_elsewhere && !is_passed).then_some(*step));
        }
    }
    assert!(missed.is_empty(), "steps that were never passed: {missed:?}");
}

/// Kills a worker there and checks what it left; whether the worker came there at all.
fn kill_at(course: Course, step: &str, pass: u32) -> bool {
    let Course { kind, from } = course;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    for number in 0..from {
        script::perform(&*store, script::op(kind, SEED, number)).expect("an operation");
    }
    // It stays open where nobody reboots: the worker is not the only one.
    let own = course.boot_id().is_none().then_some(store);
    let mut worker = course.start_worker(&path, step, pass);
    // The lines of the test program itself come before on the same line.
    let done = child::lines(&mut worker, "done ");
    let status = worker.wait().expect("its end");
    let done = done.last().map_or(from, |line| line.parse().expect("a number"));
    let is_passed = status.signal() == Some(9);
    assert!(is_passed || status.success(), "{step}:{pass}: {status}");
    let before = Model::after(kind, SEED, done);
    let mut after = before.clone();
    if done < OPERATIONS {
        after.perform(script::op(kind, SEED, done));
    }
    println!("{step}:{pass} after {done}");
    haypile::file::hooks::set_boot_id(course.boot_id());
    let store = own.unwrap_or_else(|| open(&path));
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
    let entries = store.len().expect("counted again");
    drop(store);
    haypile::file::hooks::set_boot_id(None);
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a file");
    assert_eq!(check.damaged, 0, "{step}:{pass}: {check:?}");
    assert_eq!(check.entries, entries, "{step}:{pass}");
    is_passed
}

/// Whether a step belongs to records of several segments, which there are in a full cache alone.
pub(crate) fn is_of_full_caches(step: &str) -> bool {
    step.starts_with("run.")
}

#[test]
fn where_there_is_room_nothing_acknowledged_is_lost() {
    kill_at_each(Course::ROOMY, STEPS);
}

#[test]
fn where_there_is_none_nothing_wrong_is_found() {
    kill_at_each(Course::CROWDED, STEPS);
}

#[test]
fn after_a_reboot_nothing_acknowledged_is_lost() {
    kill_at_each(Course { from: BEFORE, ..Course::ROOMY }, STEPS_AFTER_A_REBOOT);
}
