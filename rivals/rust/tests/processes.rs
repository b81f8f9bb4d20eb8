//! Processes use one cache at the same time, as the laboratory starts them.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use haypile_measure::job::{self, Ops, Population, Settings};
use haypile_measure::measure::{
    Case, Contender, Expected, Places, Plan, Runner, RunnerLimits, Watcher, measure,
};
use haypile_measure::result::{Parameters, Run, Sample};

/// Keys that are there before the timed part.
const PREPARED: u32 = 150;
/// Keys that the timed part may write besides.
const NEW: u32 = 8;
/// Timed operations of each thread of each process.
const OPERATIONS: u32 = 500;
/// Room for all.
const CAPACITY_BYTES: u64 = 4 << 20;

/// Sees nothing.
struct Blind;

impl Watcher for Blind {
    fn advance(&self, _steps: u64) {}

    fn is_interrupted(&self) -> bool {
        false
    }
}

/// A function that adds the operation of a number to those of a thread.
type Timed = fn(&mut Ops, u32);

fn hit(ops: &mut Ops, number: u32) {
    ops.get(number % PREPARED);
}

fn write(ops: &mut Ops, number: u32) {
    ops.set(number % (PREPARED + NEW));
}

fn mix(ops: &mut Ops, number: u32) {
    let key = number % PREPARED;
    if number.is_multiple_of(2) { ops.set(key) } else { ops.get(key) }
}

/// Returns cases with values of two sizes, by one and two threads of one and two processes.
fn cases(timed: Timed) -> Vec<Case> {
    let sizes = [160, 1600].into_iter();
    let all = sizes.flat_map(|bytes| [(bytes, 1, 1), (bytes, 1, 2), (bytes, 2, 1), (bytes, 2, 2)]);
    all.map(|(value_bytes, threads, processes)| case(timed, value_bytes, threads, processes))
        .collect()
}

fn case(timed: Timed, value_bytes: u32, threads: u32, processes: u32) -> Case {
    let write = move |directory: &Path| {
        let mut population = Population::new();
        for number in 0..PREPARED + NEW {
            population.push(format!("key {number:08}").as_bytes(), value_bytes)?;
        }
        let mut prepare = Ops::new();
        (0..PREPARED).for_each(|key| prepare.set(key));
        let of_thread = |thread: u32| {
            let mut ops = Ops::new();
            (0..OPERATIONS).for_each(|number| timed(&mut ops, number + 31 * thread));
            ops
        };
        let all: Vec<Ops> = (0..threads * processes).map(of_thread).collect();
        let entries = u64::from(PREPARED + NEW);
        let mut settings = Settings::new(7, CAPACITY_BYTES, entries);
        settings.processes = processes;
        job::write(directory, &settings, &population, &prepare, &all)?;
        let sum = |of: fn(&Ops) -> u64| all.iter().map(of).sum();
        let (operations, reads) = (sum(Ops::operations), sum(Ops::reads));
        Ok(Expected { operations, reads, hits: Some(reads), ..Expected::default() })
    };
    let numbers = [("value_bytes", value_bytes), ("threads", threads), ("processes", processes)];
    let parameters: Parameters =
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect();
    Case {
        experiment: "test",
        name: "shared".to_owned(),
        parameters,
        processes,
        skips: &[],
        write: Box::new(write),
    }
}

fn samples(timed: Timed, subject: &str) -> Vec<Sample> {
    let runner = Arc::new(Runner::rival(env!("CARGO_BIN_EXE_haypile-rivals")));
    let subject = subject.parse().expect("a name");
    let directory = tempfile::tempdir().expect("a directory");
    let plan = Plan {
        then: None,
        cases: cases(timed),
        contenders: vec![Contender { subject, runner }],
        blocks: 1,
        seed: 1,
        warm_up: 0,
        limits: RunnerLimits::default(),
        surroundings: Some(Box::new(Places::new(directory.path()).expect("it can be written to"))),
        keeps_runners: false,
    };
    let run = Run::begin("test", "test".to_owned(), 1);
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

/// Returns the samples of all [`SHARED`], without errors and with all operations.
fn shared(timed: Timed) -> Vec<Sample> {
    let samples: Vec<_> = SHARED.iter().flat_map(|subject| samples(timed, subject)).collect();
    assert_eq!(samples.len(), SHARED.len() * 8);
    for sample in &samples {
        assert_eq!(sample.error, None, "{sample:?}");
        let number = |name: &str| sample.parameters[name].as_u64().expect(name);
        let operations = u64::from(OPERATIONS) * number("threads") * number("processes");
        assert_eq!(sample.operations, operations, "{:?}", sample.parameters);
    }
    samples
}

#[test]
fn processes_share_what_files_hold() {
    for sample in shared(hit) {
        assert_eq!(sample.hits, sample.operations, "{:?}", sample.parameters);
        assert_eq!(sample.counts["verified_after"], u64::from(PREPARED));
    }
    for sample in shared(write) {
        assert_eq!(sample.hits, 0, "{:?}", sample.parameters);
        assert_eq!(sample.counts["verified_after"], u64::from(PREPARED + NEW));
    }
}

/// Each process reads what the other one writes, where nothing is evicted.
#[test]
fn what_one_process_writes_another_reads() {
    for sample in shared(mix) {
        assert_eq!((sample.hits, sample.misses), (sample.operations / 2, 0), "every key is there");
        assert_eq!(sample.counts["verified_after"], u64::from(PREPARED));
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
    for sample in subjects.iter().flat_map(|subject| samples(hit, subject)) {
        let is_alone = sample.parameters["processes"] == 1;
        assert_eq!(sample.error.is_none(), is_alone, "{sample:?}");
        if let Some(error) = sample.error {
            let subject = sample.subject.name;
            let said = "cannot be shared by processes, and the job has 2";
            assert!(error.starts_with(&format!("process 0: {subject} {said}")), "{error}");
        }
    }
}
