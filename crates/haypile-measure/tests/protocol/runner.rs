//! The child's side, in this process.

use std::collections::BTreeMap;

use haypile_measure::job::{Ops, Settings, Timing};
use haypile_measure::runner::{Assignment, RunnerError, serve};
use haypile_measure::subject::Subjects;
use tempfile::TempDir;

use crate::job::{KEYS, set_all, settings, write_job};
use crate::subject::subjects;

/// Does a job; gives the results by name, and what else was said in its order.
fn serve_with(
    subjects: &Subjects,
    subject: &str,
    settings: &Settings,
    timed: &[Ops],
) -> (Result<(), RunnerError>, Vec<String>, BTreeMap<String, String>) {
    let directory = TempDir::new().unwrap();
    write_job(directory.path(), settings, &set_all(), timed);
    let mut output = Vec::new();
    let spec = subject.parse().unwrap();
    let assignment = Assignment::new(directory.path(), &spec);
    let result = serve(subjects, &assignment, &mut &b"go\nverify\n"[..], &mut output);
    let output = String::from_utf8(output).unwrap();
    let (mut said, mut results) = (Vec::new(), BTreeMap::new());
    for line in output.lines() {
        match line.split_once(' ') {
            Some((name, value)) if name != "error" => {
                assert!(results.insert(name.to_owned(), value.to_owned()).is_none(), "{line}");
            }
            _ => said.push(line.to_owned()),
        }
    }
    (result, said, results)
}

/// The results of a job that is done.
fn done(subject: &str, settings: &Settings, timed: &[Ops]) -> BTreeMap<String, String> {
    let (result, said, results) = serve_with(&subjects(), subject, settings, timed);
    result.unwrap();
    assert_eq!(said, ["ready", "timed", "end"]);
    results
}

#[track_caller]
fn assert_counts(results: &BTreeMap<String, String>, expected: &[(&str, u64)]) {
    for (name, count) in expected {
        assert_eq!(results.get(*name), Some(&count.to_string()), "{name}");
    }
}

/// Every kind of operation.
fn everything() -> Ops {
    let mut ops = Ops::new();
    ops.get(5); // hit
    ops.delete(5);
    ops.get(5); // miss
    ops.get_set(5); // miss, and set
    ops.get_set(5); // hit
    ops.get_many(&[0, 1, 2, 2]); // 4 hits
    ops.fresh();
    ops.get(0); // miss
    ops.get_many(&[3, 4]); // 2 misses
    ops.set(0);
    ops.get(0); // hit
    ops.get_many(&[]);
    ops
}

#[test]
fn every_operation_is_done_and_counted() {
    let results = done("map", &settings(), &[everything()]);
    assert_counts(
        &results,
        &[
            ("operations", 14),
            ("hits", 7),
            ("misses", 5),
            ("errors", 0),
            ("wrong", 0),
            ("verified_before", KEYS.into()),
            ("verified_after", 1),
            ("entries", 1),
            ("answer", 42),
        ],
    );
    assert_eq!((results["version"].as_str(), results["language"].as_str()), ("7", "rust"));
    for name in ["wall_ns", "cpu_ns"] {
        results[name].parse::<u64>().unwrap();
    }
    assert!(!results.contains_key("pretends") && !results.contains_key("first_error"));
}

#[test]
fn executions_add_up() {
    let mut ops = Ops::new();
    ops.get(1);
    ops.get_many(&[2, 3]);
    let results = done("map", &settings().with_executions(3), &[ops]);
    assert_counts(&results, &[("operations", 9), ("hits", 9)]);
}

#[test]
fn threads_do_their_own_operations() {
    let streams: Vec<Ops> = (1..=4)
        .map(|count| {
            let mut ops = Ops::new();
            (0..count * 100).for_each(|at| ops.get(at % KEYS));
            ops
        })
        .collect();
    let results = done("map", &settings().with_executions(2), &streams);
    assert_counts(&results, &[("operations", 2000), ("hits", 2000), ("misses", 0), ("wrong", 0)]);
}

#[test]
fn verification_can_be_left_out() {
    let results = done("map", &settings().with_verification(false, true), &[set_all()]);
    assert!(!results.contains_key("verified_before"));
    assert_counts(&results, &[("verified_after", KEYS.into())]);
    let results = done("map", &settings().with_verification(false, false), &[set_all()]);
    assert!(!results.contains_key("verified_after"));
}

#[test]
fn one_wrong_byte_is_found() {
    // Nothing is read in the timed part: what is wrong shows before and after it.
    for flaw in ["last-byte", "other-key", "short", "long"] {
        let results = done(flaw, &settings(), &[set_all()]);
        let right = u64::from(KEYS) - 1;
        assert_counts(
            &results,
            &[("wrong", 2), ("verified_before", right), ("verified_after", right)],
        );
    }
}

#[test]
fn the_timed_part_compares_the_number_of_the_key_and_the_length() {
    let mut ops = Ops::new();
    (0..KEYS).for_each(|key| ops.get(key));
    let settings = settings().with_verification(false, false);
    for flaw in ["other-key", "short", "long"] {
        assert_counts(&done(flaw, &settings, &[ops.clone()]), &[("wrong", 1), ("hits", 10)]);
    }
    // What it has no time for; this is why everything is verified.
    assert_counts(&done("last-byte", &settings, &[ops]), &[("wrong", 0)]);
}

#[test]
fn failures_are_counted_and_the_first_is_told() {
    let mut ops = Ops::new();
    ops.get(5);
    ops.get(4);
    ops.get_set(5);
    let results = done("fails", &settings(), &[ops]);
    // Two of the timed part, two of the verifications.
    assert_counts(&results, &[("errors", 4), ("operations", 3), ("hits", 1), ("misses", 0)]);
    assert_eq!(results["first_error"], "the disk is gone");
}

#[test]
fn a_read_of_many_has_to_answer_for_each() {
    let mut ops = Ops::new();
    ops.get_many(&[1, 2, 3]);
    let results = done("forgets", &settings(), &[ops]);
    assert_counts(&results, &[("errors", 3), ("operations", 3), ("hits", 0)]);
    assert_eq!(results["first_error"], "get_many of 3 keys gave 2 answers");
}

#[test]
fn a_cache_for_one_thread_says_so() {
    let streams = [set_all(), set_all()];
    let (result, said, _) = serve_with(&subjects(), "one-thread", &settings(), &streams);
    assert!(result.is_err());
    let error = "error the map can be used by 1 threads at most, not by 2; ask for --threads 1";
    assert_eq!(said, [error]);
    done("one-thread", &settings(), &[set_all()]);
}

#[test]
fn an_unknown_subject_is_an_error_that_lists_the_others() {
    let (result, said, _) = serve_with(&Subjects::ours(), "mamcached", &settings(), &[set_all()]);
    assert!(result.is_err());
    assert_eq!(
        said,
        ["error unknown subject 'mamcached' (known: memory:OPTIONS, file:OPTIONS, \
             memcached, redis, none)"]
    );
}

#[test]
fn subjects_with_wrong_options_say_what_is_right() {
    for (subject, part) in [
        ("memory:policy=mru", "mru"),
        ("memory:colour=red", "colour"),
        ("mock:fast", "mock:100ns"),
        ("again:3", "again:3:memory:policy=lru"),
        ("again:101:noop", "up to 100"),
        ("again:1:again:1:noop", "wrap itself"),
        ("again:1:nothing", "unknown subject 'nothing'"),
    ] {
        let (result, said, _) = serve_with(&Subjects::ours(), subject, &settings(), &[set_all()]);
        assert!(result.is_err(), "{subject}");
        assert!(said[0].starts_with("error ") && said[0].contains(part), "{said:?}");
    }
}

#[test]
fn the_engine_s_caches_do_jobs() {
    let mut ops = everything();
    (0..KEYS).for_each(|key| ops.get_set(key));
    for subject in ["memory", "memory:policy=lru", "memory://?policy=sieve&size=1MiB"] {
        let (result, _, results) =
            serve_with(&Subjects::ours(), subject, &settings(), &[ops.clone()]);
        result.unwrap();
        assert_counts(
            &results,
            &[
                ("operations", 24),
                ("hits", 8),
                ("misses", 14),
                ("errors", 0),
                ("wrong", 0),
                ("verified_before", 10),
                ("verified_after", 10),
                ("entries", 10),
                ("capacity_bytes", 1 << 20),
            ],
        );
    }
    let (_, _, results) = serve_with(&Subjects::ours(), "none", &settings(), &[everything()]);
    assert_counts(&results, &[("hits", 0), ("misses", 12), ("verified_before", 0)]);
}

#[test]
fn the_mock_is_the_same_each_time() {
    let mut ops = Ops::new();
    (0..KEYS).for_each(|key| ops.get(key));
    let streams = [ops.clone(), ops];
    for (subject, operation_ns) in [("mock:100ns", 2000), ("again:50:mock:100ns", 3000)] {
        let (_, _, results) = serve_with(&Subjects::ours(), subject, &settings(), &streams);
        // Keys of 5 bytes, and 0 + 10 + ... + 90 bytes of values.
        assert_counts(
            &results,
            &[
                ("wall_ns", operation_ns),
                ("cpu_ns", operation_ns),
                ("operations", 20),
                ("hits", 20),
                ("memory_bytes", 500),
                ("memory_peak_bytes", 500),
            ],
        );
    }
}

#[test]
fn single_operations_are_timed_in_a_pass_of_their_own() {
    let settings = settings().with_timing(Timing::Each).with_executions(2);
    let (_, _, results) = serve_with(&Subjects::ours(), "mock:100ns", &settings, &[everything()]);
    // The second execution begins with key 5 missing, and so sets it twice.
    assert_eq!(results["operations"], "28");
    for (name, value) in [
        ("latency_get_count", "4"),
        ("latency_get_p50", "100"),
        ("latency_get_max", "100"),
        ("latency_get_mean", "100.0"),
        ("latency_set_count", "1"),
        ("latency_delete_p999", "100"),
        ("latency_getset_count", "2"),
        ("latency_getset_max", "200"),
        ("latency_many_count", "3"),
        ("latency_many_max", "400"),
        ("latency_fresh_count", "1"),
    ] {
        assert_eq!(results.get(name).map(String::as_str), Some(value), "{name}");
    }
    let threads = [set_all(), set_all()];
    let (_, _, results) = serve_with(&subjects(), "map", &settings, &threads);
    assert_counts(&results, &[("latency_set_count", 20)]);
    assert!(!results.contains_key("latency_get_count"));
}

#[test]
fn a_pretender_is_not_verified_and_says_so() {
    let (result, _, results) = serve_with(&subjects(), "noop", &settings(), &[everything()]);
    result.unwrap();
    assert_counts(&results, &[("operations", 14), ("hits", 0), ("pretends", 1)]);
    assert!(!results.contains_key("verified_before"));
}

#[test]
fn a_runner_waits_for_its_turn() {
    let directory = TempDir::new().unwrap();
    write_job(directory.path(), &settings(), &set_all(), &[set_all()]);
    for (input, got) in [("", "its end"), ("now\n", "now"), ("go\n", "its end")] {
        let mut output = Vec::new();
        let spec = "map".parse().unwrap();
        let assignment = Assignment::new(directory.path(), &spec);
        let result = serve(&subjects(), &assignment, &mut input.as_bytes(), &mut output);
        let message = result.unwrap_err().to_string();
        assert!(message.ends_with(&format!("and got {got}")), "{message}");
        assert!(!String::from_utf8(output).unwrap().contains("wall_ns"));
    }
}
