//! The jobs of the cases are what the definitions say.

use std::collections::BTreeSet;
use std::fs;

use haypile_measure::job::{Job, Op};
use xxhash_rust::xxh3::xxh3_64;

use super::*;

fn setup(kind: &str) -> MicroPoint {
    MicroPoint {
        kind: kind.parse().unwrap(),
        keys: 1000,
        key_bytes: 36,
        value_bytes: 160,
        distribution: Distribution::Zipf { exponent: 0.99 },
        capacity: Capacity::Share(0.5),
        threads: 2,
        processes: 1,
        operations: 3000,
        seed: 1,
        timing: Timing::Total,
    }
}

const KINDS: [&str; 7] =
    ["get-hit", "get-miss", "set", "overwrite", "set-evict", "mix:1:10", "aside"];

/// The job, read back, and what its case expects.
fn written(setup: MicroPoint) -> (Job, Expected) {
    let directory = tempfile::tempdir().unwrap();
    let expected = (setup.case().unwrap().write)(directory.path()).unwrap();
    (Job::read(directory.path()).unwrap(), expected)
}

fn decoded(words: &[u32]) -> Vec<(Op, u32)> {
    words.iter().map(|&word| Op::decode(word).unwrap()).collect()
}

#[test]
fn every_kind_comes_back_as_it_is_written() {
    for kind in KINDS {
        assert_eq!(kind.parse::<CaseKind>().unwrap().to_string(), kind);
    }
    for wrong in ["", "get", "mix", "mix:1", "mix:0:1", "mix:1:0", "mix:1:2:3", "mix:-1:1"] {
        let message = wrong.parse::<CaseKind>().unwrap_err().to_string();
        assert!(message.contains("set-evict, aside, mix:SETS:GETS"), "{message}");
    }
    for text in ["uniform", "zipf:0.99", "zipf:0"] {
        assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
    }
    for wrong in ["zipf", "zipf:-1", "zipf:21", "zipf:NaN", "Uniform"] {
        assert!(wrong.parse::<Distribution>().is_err(), "{wrong}");
    }
    for text in ["50%", "12.5%", "64MiB", "1KB"] {
        assert_eq!(text.parse::<Capacity>().unwrap().to_string(), text);
    }
    for wrong in ["", "%", "101%", "-1%", "half", "NaN%"] {
        assert!(wrong.parse::<Capacity>().is_err(), "{wrong}");
    }
}

#[test]
fn reads_that_hit_are_of_keys_that_were_set() {
    let (job, expected) = written(setup("get-hit"));
    let mut set: Vec<u32> = decoded(job.prepare()).iter().map(|(_, key)| *key).collect();
    assert!(decoded(job.prepare()).iter().all(|(op, _)| *op == Op::Set));
    assert!(!set.is_sorted(), "in random order");
    set.sort_unstable();
    assert!(set.into_iter().eq(0..500), "each resident key once");
    for words in job.timed() {
        assert_eq!(words.len(), 3000);
        assert!(decoded(words).iter().all(|(op, key)| *op == Op::Get && *key < 500));
    }
    assert_ne!(job.timed()[0], job.timed()[1]);
    let right = Expected {
        operations: 6000,
        reads: 6000,
        hits: Some(6000),
        verified_before: Some(500),
        verified_after: Some(500),
        max_verified_after: None,
        min_misses: 0,
        is_killed: false,
        last_is_beside: false,
        warm_up: 0,
    };
    assert_eq!(expected, right);
    // 500 x (196 + 256) and a quarter more.
    assert_eq!(job.settings().capacity_bytes, 282_500);
}

#[test]
fn reads_that_miss_are_of_keys_that_were_never_set() {
    let (job, expected) = written(setup("get-miss"));
    for words in job.timed() {
        let is_other = |key| (500..1000).contains(&key);
        assert!(decoded(words).iter().all(|(op, key)| *op == Op::Get && is_other(*key)));
    }
    assert_eq!((expected.reads, expected.hits), (6000, Some(0)));
    assert_eq!(expected.verified_after, Some(500));
}

#[test]
fn what_is_overwritten_is_there_and_has_room() {
    let (job, expected) = written(setup("overwrite"));
    // Seven are written by the timed part alone, and show that it wrote.
    assert_eq!(job.prepare().len(), 493);
    let prepared: BTreeSet<u32> = decoded(job.prepare()).iter().map(|(_, key)| *key).collect();
    let timed: BTreeSet<u32> = decoded(&job.timed()[0]).iter().map(|(_, key)| *key).collect();
    assert!((0..500).filter(|key| !prepared.contains(key)).all(|key| timed.contains(&key)));
    for words in job.timed() {
        assert!(decoded(words).iter().all(|(op, key)| *op == Op::Set && *key < 500));
    }
    assert_eq!((expected.operations, expected.reads, expected.hits), (6000, 0, None));
    // What a cache drops that keeps old versions for a while is not wrong.
    assert_eq!((expected.verified_before, expected.verified_after), (Some(493), None));
    assert_eq!(job.settings().capacity_bytes, 282_500, "as where they are read");
}

/// The operations of all processes; each has the keys, the settings and nothing else in common.
#[test]
fn processes_have_operations_of_their_own() {
    for kind in KINDS {
        let setup = MicroPoint { processes: 2, ..setup(kind) };
        let directory = tempfile::tempdir().unwrap();
        let case = setup.case().unwrap();
        assert_eq!((case.processes, &case.parameters["processes"]), (2, &2.into()));
        let expected = (case.write)(directory.path()).unwrap();
        assert_eq!(expected.operations, 12_000, "{kind}");
        let parts = [0, 1].map(|process| Job::read_for(directory.path(), process).unwrap());
        let timed: Vec<_> = parts.iter().flat_map(Job::timed).collect();
        assert_eq!(timed.len(), 4, "{kind}");
        for (at, words) in timed.iter().enumerate() {
            assert!(timed[..at].iter().all(|other| other != words), "{kind}: {at}");
        }
        // The first process does what it does alone.
        let (alone, _) = written(MicroPoint { processes: 1, ..setup });
        assert_eq!(parts[0].timed(), alone.timed(), "{kind}");
        assert_eq!(parts[0].prepare(), alone.prepare(), "{kind}");
        assert!(parts[1].prepare().is_empty(), "{kind}");
    }
    let (job, _) = written(MicroPoint { processes: 2, ..setup("set-evict") });
    assert_eq!(job.keys(), 1000 + 4 * 3000, "each has new keys of its own");
}

#[test]
fn the_last_process_writes_beside_readers() {
    let hits = MicroPoint { processes: 2, ..setup("get-hit") };
    let with_writer = MicroPoint { processes: 3, ..setup("get-beside") };
    let [hits, with_writer] = [hits, with_writer].map(|setup| {
        let directory = tempfile::tempdir().unwrap();
        let expected = (setup.case().unwrap().write)(directory.path()).unwrap();
        let read = |process| Job::read_for(directory.path(), process).unwrap();
        let parts: Vec<_> = (0..setup.processes).map(read).collect();
        (parts, expected)
    });
    for (part, other) in hits.0.iter().zip(&with_writer.0) {
        assert_eq!(part.timed(), other.timed(), "the readers are those that have no writer");
    }
    assert_eq!(hits.0[0].settings().capacity_bytes, with_writer.0[0].settings().capacity_bytes);
    for words in with_writer.0[2].timed() {
        assert_eq!(words.len(), 12_000, "four times as many");
        assert!(decoded(words).iter().all(|(op, key)| *op == Op::Set && *key < 500));
    }
    let right = Expected {
        operations: 12_000,
        reads: 12_000,
        verified_before: Some(500),
        last_is_beside: true,
        ..Expected::default()
    };
    assert_eq!(with_writer.1, right);
    let alone = setup("get-beside").case().unwrap_err().to_string();
    assert!(alone.contains("--processes 2"), "{alone}");
}

/// Keys are numbers and offsets of 32 bits; ten million of them are far from the end.
#[test]
fn ten_million_keys_are_allowed() {
    let many =
        MicroPoint { keys: 10_000_000, key_bytes: 12, value_bytes: 1600, ..setup("get-hit") };
    let many = MicroPoint { capacity: Capacity::Share(1.0), ..many };
    assert_eq!(many.case().unwrap().parameters["keys"], 10_000_000);
    assert_eq!(many.resident(), 10_000_000);
    let evicting = MicroPoint { kind: CaseKind::SetEvict, capacity: Capacity::Share(0.5), ..many };
    let evicting = MicroPoint { processes: 2, threads: 2, operations: 10_000_000, ..evicting };
    assert_eq!(evicting.all_keys(), 50_000_000);
    evicting.case().unwrap();
}

#[test]
fn everything_may_be_resident_where_nothing_has_to_miss_or_to_be_evicted() {
    for kind in KINDS {
        let all = MicroPoint { capacity: Capacity::Share(1.0), ..setup(kind) };
        let is_refused = all.case().is_err();
        assert_eq!(is_refused, ["get-miss", "set-evict"].contains(&kind), "{kind}");
    }
    let (job, expected) =
        written(MicroPoint { capacity: Capacity::Share(1.0), ..setup("get-hit") });
    assert_eq!((job.prepare().len(), expected.verified_after), (1000, Some(1000)));
}

#[test]
fn evicting_writes_are_of_new_keys() {
    let (job, expected) = written(setup("set-evict"));
    assert_eq!(job.keys(), 7000);
    let mut keys: Vec<u32> = decoded(job.prepare()).iter().map(|(_, key)| *key).collect();
    for words in job.timed() {
        assert!(decoded(words).iter().all(|(op, _)| *op == Op::Set));
        keys.extend(decoded(words).iter().map(|(_, key)| key));
    }
    keys.sort_unstable();
    assert!(keys.into_iter().eq(0..7000), "every key is set exactly once");
    assert_eq!(job.settings().capacity_bytes, 98_000, "half of 1,000 x 196 bytes");
    assert_eq!(job.settings().capacity_entries, 500);
    assert_eq!((expected.operations, expected.reads), (6000, 0));
    assert_eq!((expected.hits, expected.max_verified_after), (None, Some(500)));
}

#[test]
fn mixtures_have_their_ratio() {
    let (job, expected) = written(setup("mix:1:10"));
    let ops = decoded(&job.timed()[0]);
    for (at, (op, key)) in ops.iter().enumerate() {
        assert_eq!(*op, if at % 11 == 0 { Op::Set } else { Op::Get });
        assert!(*key < 1000);
    }
    let reads = ops.iter().filter(|(op, _)| *op == Op::Get).count() as u64;
    assert_eq!((expected.operations, expected.reads), (6000, 2 * reads));
    assert_eq!(job.prepare().len(), 2000);
    let (job, expected) = written(setup("aside"));
    assert!(decoded(&job.timed()[1]).iter().all(|(op, _)| *op == Op::GetSet));
    assert_eq!((expected.operations, expected.reads), (6000, 6000));
}

/// The bytes of keys, values and operations, one file after the other. Settings may grow.
fn hash(setup: MicroPoint) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    (setup.case().unwrap().write)(directory.path()).unwrap();
    let names: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    let mut names: Vec<_> = names.into_iter().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| !path.ends_with("job.txt"));
    names.sort();
    let all: Vec<u8> = names.iter().flat_map(|path| fs::read(path).unwrap()).collect();
    xxh3_64(&all)
}

/// Results of years are compared with each other: whoever changes these numbers has made another
/// experiment, and gives it another name. (Since November 2026 the timed part of `set` and `overwrite`
/// writes up to 16 keys that are not prepared; the rest of these jobs is as it was.)
#[test]
fn the_same_seed_gives_the_same_job_for_ever() {
    let hashes = KINDS.map(|kind| hash(setup(kind)));
    let pinned = [
        0x7c63_6a57_db00_27ce,
        0x04c8_4161_9779_8441,
        0x88b0_9ab3_8fcf_01ea,
        0xfe49_d6c0_4898_ad60,
        0xf6ed_33c0_bdba_d3a1,
        0x7a34_0ff0_f615_af9b,
        0x7319_e62d_d851_9114,
    ];
    assert_eq!(hashes, pinned, "{hashes:#x?}");
    let uniform = MicroPoint { distribution: Distribution::Uniform, ..setup("get-hit") };
    assert_eq!(hash(uniform), 0x9808_18de_ebfe_101c);
    assert_eq!(hash(MicroPoint { key_bytes: 12, ..setup("get-hit") }), 0x2b3f_a867_86ec_1083);
    assert_eq!(hash(MicroPoint { processes: 2, ..setup("get-beside") }), 0xbe8c_59b3_0941_0e5d);
    assert_ne!(hash(MicroPoint { seed: 2, ..setup("get-hit") }), hashes[0]);
}

#[test]
fn the_parameters_of_a_case_are_named() {
    let case = setup("set-evict").case().unwrap();
    assert_eq!(case.name, "set-evict");
    assert_eq!(
        serde_json::Value::Object(case.parameters),
        serde_json::json!({
            "keys": 1000, "key_bytes": 36, "value_bytes": 160, "distribution": "zipf:0.99",
            "capacity": "50%", "capacity_bytes": 98_000, "threads": 2, "processes": 1,
            "operations": 3000,
        })
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let message = |setup: MicroPoint| setup.case().map(drop).unwrap_err().to_string();
    let good = setup("get-hit");
    assert!(message(MicroPoint { keys: 1, ..good }).contains("from 2 to"));
    assert!(message(MicroPoint { key_bytes: 0, ..good }).contains("the length of keys is 0"));
    assert!(message(MicroPoint { key_bytes: 1, ..good }).contains("too short for that number"));
    assert!(message(MicroPoint { value_bytes: u32::MAX, ..good }).contains("the size of values"));
    assert!(message(MicroPoint { threads: 0, ..good }).contains("the number of threads"));
    for processes in [0, 65] {
        let message = message(MicroPoint { processes, ..good });
        assert!(message.contains("the number of processes"), "{message}");
    }
    assert!(message(MicroPoint { operations: 0, ..good }).contains("the number of operations"));
    let all = MicroPoint { capacity: Capacity::Share(1.0), ..setup("get-miss") };
    assert!(message(all).contains("1000 of 1000 keys fit into the cache"));
    let none = MicroPoint { capacity: Capacity::Bytes(haypile::ByteSize(100)), ..good };
    assert!(message(none).contains("a capacity of 100, because 0 of 1000 keys"));
    let many = MicroPoint { operations: 1 << 28, ..setup("set-evict") };
    assert!(message(many).contains("new keys"));
}

#[test]
fn lists_are_multiplied() {
    let options = MicroOptions {
        case: vec![CaseKind::GetHit, CaseKind::Set],
        keys: vec![100, 1000],
        key_bytes: vec![8, 36],
        value_bytes: vec![16, 160, 1600],
        distribution: vec![Distribution::Uniform],
        capacity: vec![Capacity::Share(0.5)],
        threads: vec![1, 2],
        processes: vec![1, 2],
        operations: 10,
        latency: false,
    };
    let cases = cases(&options, 1, Some("tmpfs")).unwrap();
    assert!(cases.iter().all(|case| case.parameters["file_system"] == "tmpfs"));
    assert_eq!(cases.len(), 96);
    assert!(cases[..48].iter().all(|case| case.name == "get-hit"));
    assert!(cases[..24].iter().all(|case| case.parameters["keys"] == 100));
    let numbers = |name: &str| {
        cases[..4].iter().map(|case| case.parameters[name].clone()).collect::<serde_json::Value>()
    };
    assert_eq!(numbers("processes"), serde_json::json!([1, 2, 1, 2]));
    assert_eq!(numbers("threads"), serde_json::json!([1, 1, 2, 2]));
}
