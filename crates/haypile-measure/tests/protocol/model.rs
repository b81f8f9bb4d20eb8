//! The runner's counts are those of a plain model, whatever the operations are.

use std::collections::HashSet;

use haypile_measure::job::Ops;
use haypile_measure::runner::{Assignment, serve};
use haypile_measure::subject::Subjects;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::job::{KEYS, set_all, settings, write_job};

#[derive(Clone, Debug)]
enum Step {
    Get(u32),
    Set(u32),
    Many(Vec<u32>),
    Delete(u32),
    Fresh,
    GetSet(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    prop_oneof![
        4 => key().prop_map(Step::Get),
        4 => key().prop_map(Step::Set),
        2 => prop::collection::vec(key(), 0..20).prop_map(Step::Many),
        4 => key().prop_map(Step::Delete),
        1 => Just(Step::Fresh),
        4 => key().prop_map(Step::GetSet),
    ]
}

/// Operations, reads that hit, reads that miss, and the keys at the end.
fn model(steps: &[Step], executions: u64) -> (u64, u64, u64, usize) {
    let mut keys: HashSet<u32> = (0..KEYS).collect();
    let (mut operations, mut hits, mut misses) = (0, 0, 0);
    for step in (0..executions).flat_map(|_| steps) {
        let mut read = |keys: &HashSet<u32>, key: u32| {
            if keys.contains(&key) { hits += 1 } else { misses += 1 }
        };
        operations += 1;
        match step {
            Step::Get(key) => read(&keys, *key),
            Step::Set(key) => drop(keys.insert(*key)),
            Step::Many(many) => {
                operations += many.len() as u64;
                operations -= 1;
                for key in many {
                    read(&keys, *key);
                }
            }
            Step::Delete(key) => drop(keys.remove(key)),
            Step::Fresh => {
                operations -= 1;
                keys.clear();
            }
            Step::GetSet(key) => {
                read(&keys, *key);
                keys.insert(*key);
            }
        }
    }
    (operations, hits, misses, keys.len())
}

proptest! {
    #[test]
    fn counts_are_those_of_a_set_of_keys(
        steps in prop::collection::vec(step(), 0..60),
        executions in 1_u64..4,
        subject in prop::sample::select(vec!["memory", "memory:policy=arc", "mock:1ns"]),
    ) {
        let mut ops = Ops::new();
        for step in &steps {
            match step {
                Step::Get(key) => ops.get(*key),
                Step::Set(key) => ops.set(*key),
                Step::Many(keys) => ops.get_many(keys),
                Step::Delete(key) => ops.delete(*key),
                Step::Fresh => ops.fresh(),
                Step::GetSet(key) => ops.get_set(*key),
            }
        }
        let (operations, hits, misses, keys) = model(&steps, executions);
        prop_assert_eq!((ops.operations() * executions, ops.reads() * executions),
            (operations, hits + misses));
        let directory = TempDir::new().unwrap();
        let settings = settings().with_executions(executions);
        write_job(directory.path(), &settings, &set_all(), &[ops]);
        let mut output = Vec::new();
        let (subjects, spec) = (Subjects::ours(), subject.parse().unwrap());
        let assignment = Assignment::new(directory.path(), &spec);
        serve(&subjects, &assignment, &mut &b"go\nverify\n"[..], &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        for line in [
            format!("operations {operations}"),
            format!("hits {hits}"),
            format!("misses {misses}"),
            format!("verified_after {keys}"),
            "errors 0".to_owned(),
            "wrong 0".to_owned(),
        ] {
            prop_assert!(output.lines().any(|said| said == line), "{line} in {output}");
        }
    }
}
