//! Jobs come back as they were written, and what is not a job is an error that names the file.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;
use std::path::Path;

use haypile_measure::job::{Job, JobError, Ops, Population, Settings, Timing, write};
use proptest::prelude::*;
use tempfile::TempDir;

fn settings() -> Settings {
    Settings::new(3, 1000, 10)
}

/// Three keys: with a value of 20 bytes, of 3, and of none; the last key is empty.
fn small() -> TempDir {
    let directory = TempDir::new().unwrap();
    let mut population = Population::new();
    for (key, size) in [("one", 20), ("two", 3), ("", 0)] {
        population.push(key.as_bytes(), size).unwrap();
    }
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    prepare.set(2);
    timed.get_many(&[0, 1, 2]);
    timed.get(1);
    write(directory.path(), &settings(), &population, &prepare, &[timed.clone(), timed]).unwrap();
    directory
}

#[test]
fn a_job_comes_back() {
    let directory = small();
    let job = Job::read(directory.path()).unwrap();
    assert_eq!(*job.settings(), settings());
    assert_eq!(job.keys(), 3);
    let key = |number| job.key(job.entry(number)).to_vec();
    assert_eq!([key(0), key(1), key(2)], [b"one".to_vec(), b"two".to_vec(), Vec::new()]);
    assert_eq!(job.prepare(), [0x1000_0002]);
    assert_eq!(job.timed(), [[0x2000_0003, 0, 1, 2, 1]; 2]);
}

#[test]
fn settings_come_back() {
    let settings = Settings::new(u64::MAX, u64::MAX, 0)
        .with_timing(Timing::Each)
        .with_executions(3)
        .with_verification(false, true);
    let directory = TempDir::new().unwrap();
    write(directory.path(), &settings, &Population::new(), &Ops::new(), &[Ops::new()]).unwrap();
    assert_eq!(*Job::read(directory.path()).unwrap().settings(), settings);
}

/// Two processes of two threads, each of which reads another key.
fn of_several() -> TempDir {
    let directory = TempDir::new().unwrap();
    let mut population = Population::new();
    let mut prepare = Ops::new();
    let timed: Vec<Ops> = (0..4_u32)
        .map(|number| {
            population.push(&number.to_le_bytes(), 10).unwrap();
            prepare.set(number);
            let mut ops = Ops::new();
            ops.get(number);
            ops
        })
        .collect();
    let settings = settings().with_processes(2);
    write(directory.path(), &settings, &population, &prepare, &timed).unwrap();
    directory
}

#[test]
fn each_process_has_its_own_part() {
    let directory = of_several();
    let parts = [0, 1].map(|process| Job::read_for(directory.path(), process).unwrap());
    assert_eq!(parts[0].prepare().len(), 4);
    assert!(parts[1].prepare().is_empty(), "it has nothing to prepare");
    assert_eq!(parts[0].timed(), [[0], [1]]);
    assert_eq!(parts[1].timed(), [[2], [3]]);
    assert!(parts.iter().all(|part| part.keys() == 4 && part.settings().processes == 2));
    let message = Job::read_for(directory.path(), 2).map(drop).unwrap_err().to_string();
    assert!(
        message.contains("2 processes, numbered from 0, and process 2 is not one of them"),
        "{message}"
    );
    assert!(Job::read_for(small().path(), 1).is_err());
}

/// A runner that reads the first part alone would count less than there is, or share nothing.
#[test]
fn runners_of_before_refuse_several_processes_and_nothing_else() {
    let schema = |directory: &TempDir| {
        let text = fs::read_to_string(directory.path().join("job.txt")).unwrap();
        text.lines().find_map(|line| line.strip_prefix("schema ")).unwrap().to_owned()
    };
    assert_eq!(schema(&small()), "1");
    let directory = of_several();
    assert_eq!(schema(&directory), "2");
    let path = directory.path().join("job.txt");
    let text = fs::read_to_string(&path).unwrap();
    for (schema, processes, part) in [
        ("1", "2", "processes is 2; it is a number from 1 to 1"),
        ("2", "65", "processes is 65; it is a number from 1 to 64"),
        ("2", "0", "processes is 0"),
    ] {
        let changed = text.replace("schema 2", &format!("schema {schema}"));
        fs::write(&path, changed.replace("processes 2", &format!("processes {processes}")))
            .unwrap();
        assert_damaged(&directory, "job.txt", part);
    }
    let alone = text.replace("schema 2", "schema 1").replace("processes 2\n", "");
    fs::write(&path, alone).unwrap();
    assert_eq!(Job::read(directory.path()).unwrap().settings().processes, 1, "where it is missing");
}

#[test]
fn what_is_for_the_whole_cache_is_not_for_several_processes() {
    let directory = of_several();
    let path = directory.path().join("job.txt");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("threads 2", "threads 1")).unwrap();
    fs::write(directory.path().join("timed.1.ops"), words(&[0x6000_0000])).unwrap();
    let message = Job::read_for(directory.path(), 1).map(drop).unwrap_err().to_string();
    assert!(message.contains("'flush' is not for several threads or processes"), "{message}");
    let opening = text.replace("threads 2", "threads 1").replace("timing total", "timing open");
    fs::write(&path, opening).unwrap();
    fs::write(directory.path().join("prepare.ops"), []).unwrap();
    assert_damaged(&directory, "job.txt", "with the timing 'open' there is one thread");
}

/// The values as docs/job.md defines them, by its words alone.
fn value(directory: &Path, number: u64, size: usize) -> Vec<u8> {
    let pool = fs::read(directory.join("pool.bin")).unwrap();
    let start = usize::try_from(number * 61 % 65_536).unwrap();
    let mut value = pool[start..start + size].to_vec();
    for (byte, replaced) in value.iter_mut().zip(number.to_le_bytes()) {
        *byte = replaced;
    }
    value
}

#[test]
fn values_are_what_the_format_says_and_leave_the_pool_as_it_was() {
    let directory = TempDir::new().unwrap();
    let mut population = Population::new();
    let sizes = [0, 1, 7, 8, 9, 160, 1600];
    for number in 0_u32..3000 {
        let size = sizes[number as usize % sizes.len()];
        population.push(&number.to_le_bytes(), size).unwrap();
    }
    write(directory.path(), &settings(), &population, &Ops::new(), &[Ops::new()]).unwrap();
    let job = Job::read(directory.path()).unwrap();
    let mut pool = job.pool().to_vec();
    for number in 0..job.keys() {
        let entry = job.entry(number);
        let right = value(directory.path(), number.into(), entry.value_bytes());
        assert!(entry.value(number, &mut pool, |value| value == right));
        assert!(entry.is(number, &right, job.pool()) && entry.begins(number, &right));
        // All bytes of some, before and after places begin again.
        let is_one_of_some = !(14..2986).contains(&number);
        for at in 0..if is_one_of_some { right.len() } else { 0 } {
            let mut wrong = right.clone();
            wrong[at] ^= 0x80;
            assert!(!entry.is(number, &wrong, job.pool()), "byte {at} of {number}");
        }
        assert!(!entry.begins(number, &[&right[..], &[0]].concat()), "one byte more");
    }
    assert_eq!(pool, job.pool());
}

#[track_caller]
fn assert_damaged(directory: &TempDir, file: &str, part: &str) {
    let message = Job::read(directory.path()).map(drop).unwrap_err().to_string();
    assert!(message.contains(file) && message.contains(part), "{message}");
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn damaged_files_are_named() {
    for (file, bytes, part) in [
        ("keys.bin", b"onetw".to_vec(), "5 bytes of keys"),
        ("keys.idx", words(&[0, 3, 6]), "3 numbers; 3 keys have 4"),
        ("keys.idx", words(&[0, 7, 3, 6]), "does not go from 0 up"),
        ("keys.idx", words(&[0, 3, 6, u32::MAX]), "does not go from 0 up"),
        ("keys.idx", vec![0; 15], "15 bytes are not a multiple of 4"),
        ("sizes.bin", words(&[1, 2]), "2 sizes of 3 keys"),
        ("pool.bin", vec![0; 100], "100 bytes; the job needs 65564"),
        ("sizes.bin", words(&[20, 3, u32::MAX]), "the job needs 4295032839"),
        ("prepare.ops", words(&[0xf000_0000]), "word 0: 0xf0000000 is an unknown operation"),
        ("prepare.ops", words(&[1, 3]), "word 1: there is no key 3; there are 3"),
        ("timed.0.ops", words(&[0x2000_0003, 1, 2]), "word 0: it ends before 3 keys"),
        ("timed.1.ops", words(&[0x2000_0001, 0x1000_0001]), "there is no key 268435457"),
        ("timed.1.ops", words(&[0x2fff_ffff]), "it ends before 268435455 keys"),
        ("timed.1.ops", words(&[0x4000_0000]), "'fresh' is not for several threads"),
        ("timed.0.ops", words(&[0x6000_0000]), "'flush' is not for several threads"),
    ] {
        let directory = small();
        fs::write(directory.path().join(file), bytes).unwrap();
        let named = if file == "sizes.bin" && part.contains("needs") { "pool.bin" } else { file };
        let named = if file == "keys.bin" { "keys.idx" } else { named };
        assert_damaged(&directory, named, part);
    }
}

#[test]
fn missing_files_are_named() {
    for file in [
        "job.txt",
        "keys.bin",
        "keys.idx",
        "sizes.bin",
        "pool.bin",
        "prepare.ops",
        "timed.0.ops",
        "timed.1.ops",
    ] {
        let directory = small();
        fs::remove_file(directory.path().join(file)).unwrap();
        assert_damaged(&directory, file, "No such file");
    }
}

#[test]
fn settings_that_make_no_sense_are_named() {
    for (line, replaced, part) in [
        ("schema 1", "schema 0", "schema is 0; it is a number from 1"),
        ("keys 3", "keys three", "keys is three"),
        ("keys 3", "keys 268435457", "from 0 to 268435456"),
        ("threads 2", "threads 0", "threads is 0"),
        ("threads 2", "threads 1000000", "from 1 to 1024"),
        ("executions 1", "executions 0", "executions is 0"),
        ("timing total", "timing some", "timing is total, each or open, not some"),
        ("timing total", "timing open", "there is one thread of one process, which reads"),
        ("verify_after 1", "verify_after 2", "from 0 to 1"),
        ("pool_span 65536", "pool_span 0", "pool_span is 0"),
        ("seed 3", "", "the line 'seed' is missing"),
        ("seed 3", "seed 3\nseed 4", "the line 'seed' comes twice"),
    ] {
        let directory = small();
        let path = directory.path().join("job.txt");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.lines().any(|other| other == line), "{line}");
        fs::write(&path, text.replace(&format!("{line}\n"), &format!("{replaced}\n"))).unwrap();
        assert_damaged(&directory, "job.txt", part);
    }
}

#[test]
fn what_later_versions_add_is_passed_over_and_later_schemas_are_refused() {
    let directory = small();
    let path = directory.path().join("job.txt");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}colour blue\nverbose\n")).unwrap();
    Job::read(directory.path()).unwrap();
    fs::write(&path, text.replace("schema 1", "schema 4")).unwrap();
    let error = Job::read(directory.path()).map(drop).unwrap_err();
    assert!(matches!(error, JobError::Newer { schema: 4, known: 3, .. }), "{error}");
}

proptest! {
    /// Garbage in any file is an error or a job, never a panic.
    #[test]
    fn garbage_is_no_panic(
        file in prop::sample::select(vec![
            "job.txt", "keys.bin", "keys.idx", "sizes.bin", "pool.bin", "prepare.ops",
            "timed.0.ops",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let directory = small();
        fs::write(directory.path().join(file), bytes).unwrap();
        let _ = Job::read(directory.path());
    }
}
