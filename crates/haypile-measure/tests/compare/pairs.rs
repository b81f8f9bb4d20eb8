//! The pairing of samples.

use haypile_measure::compare::{CompareError, Gate, Metric, Outcome, Pairing, compare};
use haypile_measure::result::Sample;
use haypile_measure::statistics::Verdict;
use serde_json::json;

use crate::samples::{failed, question, sample};

fn outcome(old: &[Sample], new: &[Sample]) -> (f64, Pairing, Verdict) {
    let comparison = compare(old, new, &question()).unwrap();
    let [row] = comparison.rows.as_slice() else { panic!("{:?}", comparison.rows) };
    let Outcome::Judged { difference, verdict } = row.outcome else { panic!("{row:?}") };
    ((difference.centre.change() * 1e6).round() / 1e6, difference.pairing, verdict)
}

/// The machine is ten times slower from block to block; within a block new costs 5 % more.
#[test]
fn the_same_run_and_block_make_a_pair() {
    let drift = [1_u64, 10, 100, 1000];
    let of = |block: u64, cost: u64| {
        sample("a", "r", block, cost * drift[usize::try_from(block).unwrap()])
    };
    let old: Vec<Sample> = (0..4).map(|block| of(block, 100)).collect();
    let new: Vec<Sample> = (0..4).rev().map(|block| of(block, 105)).collect();
    assert_eq!(outcome(&old, &new), (0.05, Pairing::Paired { blocks: 4 }, Verdict::Slower));
}

#[test]
fn the_same_block_of_another_run_is_no_pair() {
    let of = |run, cost| -> Vec<Sample> { (0..4).map(|it| sample("a", run, it, cost)).collect() };
    assert_eq!(outcome(&of("r", 100), &of("s", 50)), (-0.5, Pairing::Unpaired, Verdict::Faster));
}

#[test]
fn samples_without_a_partner_are_left_out_and_told_of() {
    let old = [sample("a", "r", 0, 100), sample("a", "r", 1, 100), sample("a", "r", 2, 9)];
    let new = [sample("a", "r", 0, 110), sample("a", "r", 1, 110), sample("a", "s", 2, 9)];
    let (change, pairing, _) = outcome(&old, &new);
    assert_eq!((change, pairing), (0.1, Pairing::Paired { blocks: 2 }));
    let warnings = compare(&old, &new, &question()).unwrap().warnings;
    assert!(warnings[0].contains("2 samples have no partner"), "{warnings:?}");
}

#[test]
fn a_subject_measured_twice_in_a_block_counts_once_by_its_median() {
    let old = [sample("a", "r", 0, 100), sample("a", "r", 0, 100), sample("a", "r", 0, 900)];
    let new = [sample("a", "r", 0, 200)];
    assert_eq!(outcome(&old, &new), (1.0, Pairing::Paired { blocks: 1 }, Verdict::TooFew));
}

#[test]
fn cases_parameters_and_subjects_are_rows_of_their_own() {
    let mut other_case = sample("a", "r", 0, 1);
    other_case.case = "set-evict".to_owned();
    let mut other_parameter = sample("a", "r", 0, 1);
    other_parameter.parameters.insert("threads".to_owned(), json!(2));
    let samples = [sample("a", "r", 0, 1), other_case, other_parameter, sample("b", "r", 0, 1)];
    let comparison = compare(&samples, &samples, &question()).unwrap();
    assert_eq!(comparison.rows.len(), 4);
    let comparison = compare(&samples[..1], &samples, &question()).unwrap();
    assert_eq!(comparison.rows.len(), 1);
    let warning = &comparison.warnings[0];
    assert!(warning.starts_with("only new has micro set-evict"), "{warning}");
    assert!(warning.contains("threads=2 of a; ") && warning.contains(" of b"), "{warning}");
    assert!(comparison.missing.is_empty(), "new lacks nothing");
    let comparison = compare(&samples, &samples[..1], &question()).unwrap();
    let [case, parameter, subject] = &comparison.missing[..] else { panic!("three are missing") };
    assert!(case.starts_with("micro set-evict") && case.ends_with(" of a"), "{case}");
    assert!(parameter.contains("threads=2"), "{parameter}");
    assert!(subject.ends_with(" of b"), "{subject}");
}

#[test]
fn errors_are_no_figures() {
    let good = [sample("a", "r", 0, 100), sample("a", "r", 1, 100)];
    let one_bad = [sample("a", "r", 0, 100), failed(sample("a", "r", 1, 1))];
    let all_bad = [failed(sample("a", "r", 0, 1)), failed(sample("a", "r", 1, 1))];

    let comparison = compare(&good, &one_bad, &question()).unwrap();
    assert_eq!(comparison.beyond(0.03, Gate::Both).count(), 0);
    assert!(comparison.warnings[0].contains("1 of 2 new samples are errors, such as: the runner"));

    let comparison = compare(&good, &all_bad, &question()).unwrap();
    assert_eq!(comparison.rows[0].outcome, Outcome::Failed);
    assert_eq!(comparison.beyond(0.03, Gate::Both).count(), 1, "what fails is beyond every limit");

    let nothing = compare(&all_bad, &good, &question());
    assert!(matches!(nothing, Err(CompareError::NotMeasured { metric: Metric::Cpu })));
}

#[test]
fn a_metric_that_was_not_measured_is_no_figure() {
    let mut question = question();
    question.metric = Metric::Server;
    let samples = [sample("a", "r", 0, 100)];
    assert!(matches!(
        compare(&samples, &samples, &question),
        Err(CompareError::NotMeasured { metric: Metric::Server })
    ));
}

#[test]
fn beyond_is_slower_by_more_than_the_part() {
    let of = |cost| -> Vec<Sample> { (0..5).map(|it| sample("a", "r", it, cost)).collect() };
    let beyond = |cost, part| {
        compare(&of(100), &of(cost), &question()).unwrap().beyond(part, Gate::Both).count()
    };
    assert_eq!([beyond(104, 0.03), beyond(104, 0.05), beyond(80, 0.0)], [1, 0, 0]);
}

/// Three blocks, however different, and blocks that are over before anything can disturb them.
#[test]
fn few_and_short_blocks_have_no_verdict() {
    let of = |blocks: u64, cost| -> Vec<Sample> {
        (0..blocks).map(|block| sample("a", "r", block, cost)).collect()
    };
    assert_eq!(outcome(&of(3, 100), &of(3, 900)).2, Verdict::TooFew);
    assert_eq!(outcome(&of(4, 100), &of(4, 900)).2, Verdict::Slower);
    // A million operations of 9 ns of processor time take 18 ms here.
    assert_eq!(outcome(&of(4, 9), &of(4, 90)).2, Verdict::TooShort);
    let (old, new) = (of(3, 100), of(3, 900));
    assert_eq!(compare(&old, &new, &question()).unwrap().beyond(0.0, Gate::Both).count(), 0);
    let mut memory = question();
    memory.metric = Metric::Memory;
    let with = |cost: u64, bytes: u64| -> Vec<Sample> {
        let each = of(4, cost).into_iter();
        each.map(|sample| Sample { memory_bytes: Some(bytes), ..sample }).collect()
    };
    let comparison = compare(&with(1, 100), &with(1, 200), &memory).unwrap();
    let Outcome::Judged { verdict, .. } = comparison.rows[0].outcome else {
        panic!("it is judged")
    };
    assert_eq!(verdict, Verdict::Slower, "of memory, time says nothing");
}

/// Every sixth sample takes five times as long: the centre is as before.
#[test]
fn slow_samples_that_do_not_move_the_centre_are_found() {
    let tail = |block| if block % 6 == 5 { 500 } else { 100 };
    let of = |run: &str, cost: fn(u64) -> u64| -> Vec<Sample> {
        (0..96).map(|block| sample("a", run, block, cost(block))).collect()
    };
    for run in ["r", "s"] {
        let comparison = compare(&of("r", |_| 100), &of(run, tail), &question()).unwrap();
        let row = &comparison.rows[0];
        let Outcome::Judged { difference, verdict } = row.outcome else { panic!("{row:?}") };
        assert_eq!(verdict, Verdict::SlowerOnAverage);
        assert!((difference.mean.change() - 2.0 / 3.0).abs() < 1e-9, "{difference:?}");
        assert!(difference.centre.change().abs() < 1e-9, "{difference:?}");
        // Nothing below a quarter more can be said to be absent.
        assert!(difference.least_shown(comparison.rule).unwrap() > 0.25, "{difference:?}");
        let slow = "processor time: 16 of 96 samples took up to 5.00 times the centre";
        assert_eq!(row.new.notes, [slow]);
        assert_eq!(row.old.notes, [""; 0]);
        let beyond = |gate| comparison.beyond(0.03, gate).count();
        assert_eq!((beyond(Gate::Both), beyond(Gate::Median)), (1, 0), "run {run}");
    }
    // Few blocks leave it open: what cannot be excluded is no smaller than what is seen.
    let few = |samples: Vec<Sample>| samples.into_iter().take(12).collect::<Vec<_>>();
    let comparison = compare(&few(of("r", |_| 100)), &few(of("r", tail)), &question()).unwrap();
    let Outcome::Judged { difference, verdict } = comparison.rows[0].outcome else { panic!() };
    assert_eq!(verdict, Verdict::NoDifference);
    let least = difference.least_shown(comparison.rule).unwrap();
    assert!(least > difference.mean.change(), "{difference:?}");
}

/// Three of 20 samples take five times as long: as many come by chance where both sides have such samples.
#[test]
fn a_tail_that_only_the_new_side_has_is_found_in_few_blocks_where_that_is_asked_for() {
    let tail: fn(u64) -> u64 = |block| if block % 7 == 3 { 500 + block } else { 100 + block % 3 };
    let even: fn(u64) -> u64 = |block| 100 + block % 3;
    let of = |run: &str, cost: fn(u64) -> u64| -> Vec<Sample> {
        (0..20).map(|block| sample("a", run, block, cost(block))).collect()
    };
    let beyond = |old: fn(u64) -> u64, new: fn(u64) -> u64, gate| {
        compare(&of("r", old), &of("s", new), &question()).unwrap().beyond(0.03, gate).count()
    };
    assert_eq!(beyond(even, tail, Gate::Both), 0);
    assert_eq!(beyond(even, tail, Gate::Tails), 1);
    for (old, new) in [(even, even), (tail, tail), (tail, even)] {
        assert_eq!(beyond(old, new, Gate::Tails), 0);
    }
}
