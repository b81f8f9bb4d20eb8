//! Processes use one cache at the same time, as the laboratory starts them.

use std::process::{Command, Stdio};
use std::sync::Arc;

use haypile_lab::experiment::micro::{self, Capacity, Distribution, MicroOptions};
use haypile_measure::measure::{Contender, Places, Plan, Runner, RunnerLimits, Watcher, measure};
use haypile_measure::result::{Run, Sample};

/// Sees nothing.
struct Blind;

impl Watcher for Blind {
    fn advance(&self, _steps: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

fn options(cases: &[&str]) -> MicroOptions {
    MicroOptions {
        case: cases.iter().map(|case| case.parse().expect("a case")).collect(),
        keys: vec![300],
        key_bytes: vec![12],
        value_bytes: vec![160, 1600],
        distribution: vec![Distribution::Uniform],
        capacity: vec![Capacity::Share(0.5)],
        threads: vec![1, 2],
        processes: vec![1, 2],
        operations: 500,
        latency: false,
    }
}

fn samples(options: &MicroOptions, subject: &str) -> Vec<Sample> {
    let runner = Arc::new(Runner::rival(env!("CARGO_BIN_EXE_haypile-rivals")));
    let subject = subject.parse().expect("a name");
    let directory = tempfile::tempdir().expect("a directory");
    let plan = Plan {
        then: None,
        cases: micro::cases(options, 1, None).expect("cases"),
        contenders: vec![Contender { subject, runner }],
        blocks: 1,
        seed: 1,
        warm_up: 0,
        limits: RunnerLimits::default(),
        surroundings: Some(Box::new(Places::new(directory.path()).expect("it can be written to"))),
    };
    let run = Run::begin(micro::NAME, "test".to_owned(), 1);
    let mut samples = Vec::new();
    let mut keep = |sample| {
        samples.push(sample);
        Ok(())
    };
    measure(&plan, &run, &Blind, &mut keep).expect("it is measured");
    drop(plan);
    let left = directory.path().read_dir().expect("it is there").count();
    assert_eq!(left, 0, "nothing is left behind");
    samples
}

/// Those that keep files which processes share. They evict nothing.
const SHARED: [&str; 3] = ["lmdb", "sqlite", "files"];

#[test]
fn processes_share_what_files_hold() {
    let options = options(&["get-hit", "overwrite"]);
    let samples: Vec<_> = SHARED.iter().flat_map(|subject| samples(&options, subject)).collect();
    assert_eq!(samples.len(), 3 * 16);
    for sample in samples {
        assert_eq!(sample.error, None, "{sample:?}");
        let number = |name: &str| sample.parameters[name].as_u64().expect(name);
        let operations = 500 * number("threads") * number("processes");
        assert_eq!(sample.operations, operations, "{:?}", sample.parameters);
        let hits = if sample.case == "get-hit" { operations } else { 0 };
        assert_eq!(sample.hits, hits, "{:?}", sample.parameters);
        assert_eq!(sample.counts["verified_after"], 150);
    }
}

/// Each process reads what the other one writes, where nothing is evicted.
#[test]
fn what_one_process_writes_another_reads() {
    let mut options = options(&["mix:1:1"]);
    options.capacity = vec![Capacity::Bytes("4MiB".parse().expect("a size"))];
    for sample in SHARED.iter().flat_map(|subject| samples(&options, subject)) {
        assert_eq!(sample.error, None, "{sample:?}");
        assert_eq!(sample.misses, 0, "every key is there");
        assert_eq!(sample.counts["verified_after"], 300);
    }
}

/// Processes of a torture agree on nothing: each may be the one that makes the file.
#[test]
fn a_new_file_is_opened_by_many_at_once() {
    for subject in SHARED {
        for _ in 0..5 {
            let place = tempfile::tempdir().expect("a directory");
            let open = |seed: u32| {
                Command::new(env!("CARGO_BIN_EXE_haypile-rivals"))
                    .args(["run-torture", "reader"])
                    .arg(place.path())
                    .args([&seed.to_string(), subject, "capacity=1048576", "keys=8", "writers=1"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("the program starts")
            };
            for process in (0..8).map(open).collect::<Vec<_>>() {
                let output = process.wait_with_output().expect("it ends");
                let said = String::from_utf8(output.stdout).expect("text");
                assert!(
                    said.starts_with("opened ") && said.ends_with("end\n"),
                    "{subject}: {said}"
                );
            }
        }
    }
}

#[test]
fn a_cache_of_one_process_is_an_error_with_two() {
    let subjects = ["quick_cache", "redb"];
    let options = options(&["get-hit"]);
    for sample in subjects.iter().flat_map(|subject| samples(&options, subject)) {
        let is_alone = sample.parameters["processes"] == 1;
        assert_eq!(sample.error.is_none(), is_alone, "{sample:?}");
        if let Some(error) = sample.error {
            let subject = sample.subject.name;
            let said = "cannot be shared by processes, and the job has 2";
            assert!(error.starts_with(&format!("process 0: {subject} {said}")), "{error}");
        }
    }
}
