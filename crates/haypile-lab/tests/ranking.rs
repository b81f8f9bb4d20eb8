//! The table of a run: the subjects of each case, compared with the first.

use std::collections::BTreeMap;

use haypile_lab::ranking::rankings;
use haypile_measure::result::{Parameters, SCHEMA, Sample, SubjectId};

fn sample(case: &str, name: &str, program: &str, block: u64, cpu_ns: u64) -> Sample {
    Sample {
        schema: SCHEMA,
        run: "run".to_owned(),
        experiment: "test".to_owned(),
        case: case.to_owned(),
        parameters: Parameters::new(),
        seed: 1,
        subject: SubjectId {
            name: name.to_owned(),
            version: "1".to_owned(),
            language: "rust".to_owned(),
            program: program.to_owned(),
        },
        block,
        position: 0,
        operations: 100,
        wall_ns: 2 * cpu_ns,
        cpu_ns,
        server_cpu_ns: None,
        hits: 30,
        misses: 10,
        memory_bytes: Some(1000 + block),
        latency_ns: None,
        timeline: None,
        calls: None,
        load: None,
        counts: BTreeMap::new(),
        error: None,
    }
}

fn failed(case: &str, name: &str, block: u64) -> Sample {
    let (hits, misses, operations) = (0, 0, 0);
    let error = Some(format!("broke in block {block}"));
    Sample {
        error,
        hits,
        misses,
        operations,
        memory_bytes: None,
        ..sample(case, name, "p", block, 0)
    }
}

fn names(subjects: &[(&str, &str)]) -> Vec<(String, String)> {
    subjects.iter().map(|(name, program)| ((*name).to_owned(), (*program).to_owned())).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

#[test]
fn subjects_come_in_their_order_and_beside_the_first() {
    let samples = [
        sample("get", "b", "p", 0, 3000),
        sample("get", "a", "p", 0, 1000),
        sample("get", "a", "p", 1, 2000),
        sample("get", "b", "p", 1, 6000),
        sample("set", "a", "p", 0, 500),
    ];
    let rankings = rankings(&samples, &names(&[("a", "p"), ("b", "p"), ("c", "p")]));
    let cases: Vec<_> = rankings.iter().map(|ranking| ranking.case.as_str()).collect();
    assert_eq!(cases, ["get", "set"]);
    let [a, b] = &rankings[0].subjects[..] else { panic!("who has no sample is left out") };
    assert_eq!((a.subject.name.as_str(), b.subject.name.as_str()), ("a", "b"));
    assert!(a.relative.is_none());
    // The geometric mean of 10 and 20, and that of twice as much.
    assert!(is_near(a.cpu.unwrap().value, 200_f64.sqrt()));
    assert!(is_near(a.wall.unwrap().value, 800_f64.sqrt()));
    assert!(is_near(b.relative.unwrap().ratio(), 3.0), "three times in each block");
    assert!(is_near(a.hit_ratio.unwrap().value, 0.75));
    assert!(is_near(a.memory.unwrap().value, (1000.0_f64 * 1001.0).sqrt()));
    assert_eq!(rankings[1].subjects.len(), 1);
}

#[test]
fn a_server_s_time_stands_by_itself() {
    let served = Sample { server_cpu_ns: Some(700), ..sample("get", "b", "p", 0, 3000) };
    let samples = [sample("get", "a", "p", 0, 1000), served];
    let rankings = rankings(&samples, &names(&[("a", "p"), ("b", "p")]));
    let [a, b] = &rankings[0].subjects[..] else { panic!("two") };
    assert_eq!(a.server, None);
    assert!(is_near(b.server.unwrap().value, 7.0));
    assert!(is_near(b.relative.unwrap().ratio(), 3.0), "without the server");
}

#[test]
fn the_same_subject_of_two_programs_is_two() {
    let samples = [sample("get", "a", "new", 0, 2000), sample("get", "a", "old", 0, 1000)];
    let rankings = rankings(&samples, &names(&[("a", "old"), ("a", "new")]));
    let [old, new] = &rankings[0].subjects[..] else { panic!("two") };
    assert_eq!((old.subject.program.as_str(), new.subject.program.as_str()), ("old", "new"));
    assert!(is_near(new.relative.unwrap().ratio(), 2.0));
}

#[test]
fn errors_are_counted_and_are_no_figures() {
    let samples = [
        sample("get", "a", "p", 0, 1000),
        sample("get", "a", "p", 1, 1000),
        failed("get", "b", 0),
        sample("get", "b", "p", 1, 4000),
        failed("get", "c", 0),
        failed("get", "c", 1),
    ];
    let rankings = rankings(&samples, &names(&[("a", "p"), ("b", "p"), ("c", "p")]));
    let [a, b, c] = &rankings[0].subjects[..] else { panic!("three") };
    assert_eq!((a.errors, b.errors, c.errors), (0, 1, 2));
    assert_eq!(b.cpu.unwrap().interval, None);
    assert!(is_near(b.relative.unwrap().ratio(), 4.0));
    assert!(is_near(b.hit_ratio.unwrap().value, 0.75));
    assert_eq!((c.cpu, c.relative, c.hit_ratio), (None, None, None));
    assert_eq!(c.first_error.as_deref(), Some("broke in block 0"));
}
