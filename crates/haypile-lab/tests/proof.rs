//! RelStorage's proof that the policy matters, in the engine's own store through a runner.

use std::collections::BTreeMap;
use std::io::Cursor;

use haypile_lab::experiment::workload::{Groups, LIMIT_BYTES, Workload, case};
use haypile_measure::measure::Expected;
use haypile_measure::runner::{self, Assignment};
use haypile_measure::subject::Subjects;

/// The results of a runner in this process for a workload.
fn results(workload: Workload, subject: &str) -> (Expected, BTreeMap<String, u64>) {
    let directory = tempfile::tempdir().expect("a directory");
    let expected = case::write(directory.path(), workload, &Groups::new(), 1).expect("a job");
    let (mut input, mut output) = (Cursor::new(b"go\nverify\n"), Vec::new());
    let subject = subject.parse().expect("a name");
    let assignment = Assignment::new(directory.path(), &subject);
    runner::serve(&Subjects::ours(), &assignment, &mut input, &mut output)
        .expect("the job is done");
    let text = String::from_utf8(output).expect("text");
    let number = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    (expected, text.lines().filter_map(number).collect())
}

fn proof(policy: &str) -> (u64, u64) {
    let subject = format!("memory:policy={policy}");
    let (expected, results) = results(Workload::Proof, &subject);
    assert_eq!((results["errors"], results["wrong"]), (0, 0), "{policy}");
    assert_eq!(results["operations"], expected.operations);
    assert_eq!(results["capacity_bytes"], LIMIT_BYTES, "the bound is the definition's");
    (results["hits"], results["misses"])
}

#[test]
fn lru_has_lost_all_of_group_0() {
    assert_eq!(proof("lru"), (0, 400), "a hit ratio of 0.0");
}

#[test]
fn slru_has_kept_all_of_group_0() {
    assert_eq!(proof("slru"), (400, 0), "a hit ratio of 1.0");
}
