//! Runners that do several jobs: one process for each block, its working directory, and what ends it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use haypile_measure::job::{Ops, Settings};
use haypile_measure::measure::{Case, Contender, Expected, Places, Plan, Runner};
use haypile_measure::result::Sample;
use tempfile::TempDir;

use crate::job::{set_all, write_job};
use crate::scripted::{RESULTS, case, contender, measured, measured_until, plan};

const CASES: u64 = 4;

/// The case of a number, which is the seed of its job.
fn numbered(number: u64) -> Case {
    let write = move |directory: &Path| {
        write_job(directory, &Settings::new(number, 1 << 20, 1000), &set_all(), &[set_all()]);
        Ok(Expected {
            operations: Ops::operations(&set_all()),
            verified_before: Some(10),
            verified_after: Some(10),
            ..Expected::default()
        })
    };
    Case { name: format!("case {number}"), write: Box::new(write), ..case() }
}

/// A runner that says the seed of each job, and how many jobs it has done. `before` is done before
/// each job `$N`, `after` after it, and `last` after the end of its input. It notes in a file what
/// begins and ends.
fn script(log: &Path, [before, after, last]: [&str; 3]) -> String {
    let log = log.display();
    let (results, _) = RESULTS.rsplit_once("echo end").unwrap();
    format!(
        "LOG='{log}'; N=0; echo \"begin $1 $$\" >> $LOG
        job() {{
            N=$((N + 1))
            {before}
            echo ready; read go; [ \"$go\" = go ] || exit 9; echo timed; read verify
            {results}
            echo process $$; echo jobs $N; grep '^seed ' \"$2/job.txt\" || exit 7
            echo end
            {after}
            true
        }}
        if [ $1 = run-job ]; then job \"$@\"; exit; fi
        while read line; do [ \"$line\" = job ] || exit 8; job \"$@\"; done
        echo \"end $1 $$\" >> $LOG
        {last}"
    )
}

/// A contender whose runner does several jobs.
fn kept(script: &str) -> Contender {
    let one = contender(script);
    let runner = Runner { several_jobs: true, ..(*one.runner).clone() };
    Contender { runner: runner.into(), ..one }
}

/// Three blocks of all cases.
fn plan_of(contenders: Vec<Contender>) -> Plan {
    let cases = (0..CASES).map(numbered).collect();
    Plan { cases, blocks: 3, keeps_runners: true, ..plan(contenders) }
}

fn lines(log: &Path, word: &str) -> usize {
    fs::read_to_string(log).unwrap().lines().filter(|line| line.starts_with(word)).count()
}

fn errors(samples: &[Sample]) -> Vec<Option<&str>> {
    samples.iter().map(|sample| sample.error.as_deref()).collect()
}

#[test]
fn a_block_has_one_process_that_does_all_its_cases() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let script = script(&log, ["", "", ""]);
    let mut each = contender(&script);
    each.runner = Runner { label: "each".to_owned(), ..(*each.runner).clone() }.into();
    let plan = plan_of(vec![kept(&script), each]);
    let outcome = measured(&plan);
    assert!(outcome.is_complete);
    assert!(outcome.samples.iter().all(|sample| sample.error.is_none()), "{:?}", outcome.samples);
    let blocks: Vec<_> = outcome.samples.chunks(2 * plan.cases.len()).collect();
    assert_eq!(blocks.len(), 3);
    let mut processes = BTreeSet::new();
    let mut orders = BTreeSet::new();
    for (number, samples) in blocks.into_iter().enumerate() {
        assert!(samples.iter().all(|sample| sample.block == number as u64));
        // The job is that of the case.
        let seed_of = |sample: &Sample| sample.counts["seed"];
        assert!(samples.iter().all(|it| it.case == format!("case {}", seed_of(it))));
        let (kept, others): (Vec<_>, Vec<_>) =
            samples.iter().partition(|sample| sample.subject.program == "script");
        let jobs: Vec<_> = kept.iter().map(|sample| sample.counts["jobs"]).collect();
        assert_eq!(jobs, (1..=CASES).collect::<Vec<_>>());
        assert!(others.iter().all(|sample| sample.counts["jobs"] == 1));
        processes.extend(kept.iter().map(|sample| sample.counts["process"]));
        let order: Vec<_> = kept.iter().map(|sample| seed_of(sample)).collect();
        // Tables have the order of the definition.
        assert!(number > 0 || order == (0..CASES).collect::<Vec<_>>());
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len() as u64, CASES);
        orders.insert(order);
    }
    assert_eq!(processes.len(), 3);
    assert!(orders.len() > 1, "each block draws an order");
    let count = |word| lines(&log, word);
    assert_eq!(
        (count("begin run-jobs"), count("end run-jobs"), count("begin run-job ")),
        (3, 3, 12)
    );
}

#[test]
fn a_plan_that_keeps_none_starts_one_for_each_sample() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let contender = kept(&script(&log, ["", "", ""]));
    let plan = Plan { keeps_runners: false, ..plan_of(vec![contender.clone()]) };
    let outcome = measured(&plan);
    let cases: Vec<_> = outcome.samples.iter().map(|sample| sample.counts["seed"]).collect();
    assert_eq!(cases, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
    assert_eq!((lines(&log, "begin run-job "), lines(&log, "begin run-jobs")), (12, 0));
    // Results choose the cases: they have to be there before another case begins.
    let plan = Plan { then: Some(Box::new(|_| None)), ..plan_of(vec![contender]) };
    measured(&plan);
    assert_eq!((lines(&log, "begin run-job "), lines(&log, "begin run-jobs")), (24, 0));
}

#[test]
fn one_that_fails_is_replaced_for_the_next_job() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    for (before, after, error) in [
        ("[ $N = 2 ] && { echo error it is lost; exit 2; }", "", "it is lost"),
        ("[ $N = 2 ] && kill -KILL $$", "", "signal: 9"),
        // It ends between two jobs.
        ("", "[ $N = 1 ] && exit 0", "ended before it said everything"),
        ("", "[ $N = 1 ] && echo more", "the runner said 'more' where 'ready' was due"),
    ] {
        let mut plan = plan_of(vec![kept(&script(&log, [before, after, ""]))]);
        plan.blocks = 1;
        let outcome = measured(&plan);
        let errors = errors(&outcome.samples);
        assert!(errors[1].is_some_and(|said| said.contains(error)), "{errors:?}");
        assert_eq!((errors[0], errors[2]), (None, None), "{error}");
        let counts = |at: usize| &outcome.samples[at].counts;
        assert_eq!((counts(0)["jobs"], counts(2)["jobs"]), (1, 1), "{error}");
        assert_ne!(counts(0)["process"], counts(2)["process"], "{error}");
    }
}

#[test]
fn it_has_to_end_well_after_its_last_job() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let mut plan = plan_of(vec![kept(&script(&log, ["", "", "exit 5"]))]);
    plan.blocks = 1;
    // The last job of the block is not its own.
    plan.cases[3].skips = &["thing"];
    let outcome = measured(&plan);
    let error = "the runner ended with exit status: 5";
    assert_eq!(errors(&outcome.samples), [None, None, Some(error)]);
    assert_eq!(lines(&log, "end run-jobs"), 1);
}

#[test]
fn an_interruption_ends_it() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let outcome = measured_until(&plan_of(vec![kept(&script(&log, ["", "", ""]))]), 2);
    assert_eq!((outcome.samples.len(), outcome.is_complete), (2, false));
    let process = outcome.samples[0].counts["process"];
    assert!(!Path::new(&format!("/proc/{process}")).exists());
    // It was killed: it may hang.
    assert_eq!((lines(&log, "begin run-jobs"), lines(&log, "end run-jobs")), (1, 0));
}

#[test]
fn its_jobs_share_a_working_directory_that_is_new_in_each_block() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("log");
    let before = "[ $(ls | wc -l) = $((N - 1)) ] || exit 6; : > $N";
    let places = directory.path().join("places");
    fs::create_dir(&places).unwrap();
    let mut plan = plan_of(vec![kept(&script(&log, [before, "", ""]))]);
    plan.surroundings = Some(Box::new(Places::new(&places).unwrap()));
    let outcome = measured(&plan);
    assert!(outcome.samples.iter().all(|sample| sample.error.is_none()), "{:?}", outcome.samples);
    let [root] = &fs::read_dir(&places).unwrap().collect::<Vec<_>>()[..] else { panic!("a root") };
    let left = fs::read_dir(root.as_ref().unwrap().path()).unwrap().count();
    assert_eq!(left, 0);
}
