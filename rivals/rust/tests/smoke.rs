//! Every rival does tiny jobs, in a process of its own, and everything it says is verified.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use haypile_measure::job::{self, Ops, Population, Settings, Timing};
use haypile_measure::rival::Rivals;

/// All subjects, some of them with what may follow their names.
const SUBJECTS: [&str; 20] = [
    "quick_cache",
    "quick_cache:shards=1",
    "moka",
    "moka:hasher=foldhash",
    "mini-moka",
    "mini-moka:hasher=foldhash",
    "foyer",
    "foyer:policy=s3fifo",
    "foyer:policy=lfu,shards=1",
    "foyer:policy=sieve",
    "tinyufo",
    "tinyufo:mode=compact",
    "stretto",
    "lru",
    "lmdb",
    "sqlite",
    "redb",
    "files",
    "hashmap",
    "hashmap:hasher=foldhash",
];

/// Those that keep files, and evict nothing.
const KEPT: [&str; 4] = ["lmdb", "sqlite", "redb", "files"];

const KEYS: u32 = 1_000;
const VALUE_BYTES: u32 = 160;

/// Returns the runner's results by name, or its error.
fn run(job: &Path, subject: &str) -> Result<BTreeMap<String, String>, String> {
    run_at(job, job, subject)
}

/// The same, where those that keep files have them in another directory than that of the job.
fn run_at(job: &Path, place: &Path, subject: &str) -> Result<BTreeMap<String, String>, String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_haypile-rivals"))
        .arg("run-job")
        .args([job.as_os_str(), subject.as_ref()])
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("it is piped");
    // A runner that refuses its job does not read this.
    let _ = input.write_all(b"go\nverify\n");
    drop(input);
    let output = child.wait_with_output().expect("the program ends");
    let text = String::from_utf8(output.stdout).expect("text");
    if let Some(error) = text.lines().find_map(|line| line.strip_prefix("error ")) {
        return Err(error.to_owned());
    }
    assert!(output.status.success(), "{subject}: {text}");
    assert_eq!(text.lines().last(), Some("end"), "{subject}");
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn population() -> Population {
    let mut population = Population::new();
    for number in 0..KEYS {
        population.push(format!("key-{number}").as_bytes(), VALUE_BYTES).expect("few keys");
    }
    population
}

/// Room for all keys, and for all that any cache adds: also where the keys fill shards unevenly.
fn roomy() -> Settings {
    Settings::new(1, 1 << 20, 4 * u64::from(KEYS))
}

fn numbers<const N: usize>(results: &BTreeMap<String, String>, names: [&str; N]) -> [u64; N] {
    names.map(|name| results[name].parse().expect("a number"))
}

/// The number of entries, or how many of them were found where the cache does not know it.
fn entries(results: &BTreeMap<String, String>, subject: &str) -> u64 {
    assert_eq!(results.contains_key("entries"), !subject.starts_with("tinyufo"), "{subject}");
    let [found] = numbers(results, ["verified_after"]);
    results.get("entries").map_or(found, |number| number.parse().expect("a number"))
}

#[test]
fn what_was_written_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    (0..KEYS / 2).for_each(|key| prepare.set(key));
    for key in 0..KEYS / 2 {
        timed.get(key);
        timed.get(KEYS / 2 + key);
    }
    timed.delete(0);
    timed.get(0);
    timed.get_set(0);
    timed.get_many(&[0, 1, KEYS - 1]);
    job::write(directory.path(), &roomy(), &population(), &prepare, &[timed]).expect("a job");
    for subject in SUBJECTS {
        let results = run(directory.path(), subject).expect(subject);
        let names = ["operations", "hits", "misses", "errors", "wrong"];
        // Hits: one for each key there is, and two of the last three. Misses: one for each that
        // was never written, two after the deletion, and one of the last three.
        let expected = [1_006, 502, 503, 0, 0];
        assert_eq!(numbers(&results, names), expected, "{subject}");
        let verified = numbers(&results, ["verified_before", "verified_after"]);
        assert_eq!(verified, [500; 2], "{subject}");
        assert_eq!(entries(&results, subject), 500, "{subject}");
        assert!(!results["version"].is_empty() && results["language"] == "rust", "{subject}");
    }
}

#[test]
fn a_new_cache_is_empty() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    prepare.set(0);
    timed.fresh();
    timed.get(0);
    job::write(directory.path(), &roomy(), &population(), &prepare, &[timed]).expect("a job");
    for subject in SUBJECTS {
        let results = run(directory.path(), subject).expect(subject);
        assert_eq!(numbers(&results, ["hits", "misses", "errors"]), [0, 1, 0], "{subject}");
    }
}

#[test]
fn a_bound_holds_once_everything_is_done() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut timed = Ops::new();
    (0..KEYS).for_each(|key| timed.set(key));
    // Room for a quarter of the keys, which have 4 to 7 bytes.
    let settings = Settings::new(1, u64::from(KEYS / 4 * (VALUE_BYTES + 7)), u64::from(KEYS / 4));
    job::write(directory.path(), &settings, &population(), &Ops::new(), &[timed]).expect("a job");
    let is_bounded = |subject: &&&str| !subject.starts_with("hashmap") && !KEPT.contains(*subject);
    for subject in SUBJECTS.iter().filter(is_bounded) {
        let results = run(directory.path(), subject).expect(subject);
        assert_eq!(numbers(&results, ["errors", "wrong"]), [0, 0], "{subject}");
        let entries = entries(&results, subject);
        // Keys are up to 3 bytes shorter than the room was made for.
        assert!((1..=u64::from(KEYS / 4) + 5).contains(&entries), "{subject}: {entries}");
    }
}

/// A job that writes all keys and brings them to the disk, and one that opens what that left.
fn kept_and_opened(kept: &Path, opened: &Path) {
    let (mut prepare, mut flush, mut read) = (Ops::new(), Ops::new(), Ops::new());
    (0..KEYS).for_each(|key| prepare.set(key));
    flush.flush();
    (0..KEYS).for_each(|key| read.get(key));
    job::write(kept, &roomy(), &population(), &prepare, &[flush]).expect("a job");
    let settings = roomy().with_timing(Timing::Open);
    job::write(opened, &settings, &population(), &Ops::new(), &[read]).expect("a job");
}

#[test]
fn what_was_flushed_is_opened_by_another_process() {
    let [kept, opened] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    kept_and_opened(kept.path(), opened.path());
    for subject in KEPT {
        let place = tempfile::tempdir().expect("a directory");
        // The second time what the first one left is of an earlier job.
        for _ in 0..2 {
            run_at(kept.path(), place.path(), subject).expect(subject);
        }
        let results = run_at(opened.path(), place.path(), subject).expect(subject);
        let counts = numbers(&results, ["hits", "misses", "errors", "wrong", "entries"]);
        assert_eq!(counts, [KEYS.into(), 0, 0, 0, KEYS.into()], "{subject}");
    }
}

#[test]
fn files_of_something_else_are_an_error_or_a_miss() {
    let [kept, opened] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    kept_and_opened(kept.path(), opened.path());
    for (file, subject) in KEPT[..3].iter().map(|subject| (format!("cache.{subject}"), subject)) {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join(&file), "prose ".repeat(10_000)).expect("a file");
        let error = run_at(opened.path(), place.path(), subject).expect_err(subject);
        assert!(error.contains(&format!("the subject '{subject}' cannot be opened")), "{error}");
    }
    let place = tempfile::tempdir().expect("a directory");
    run_at(kept.path(), place.path(), "files").expect("it writes");
    let shards = place.path().join("cache.files").read_dir().expect("a directory");
    let files = shards.flat_map(|shard| shard.expect("it is there").path().read_dir().expect("so"));
    for (number, file) in files.map(|file| file.expect("it is there").path()).enumerate() {
        fs::write(file, "prose".repeat(number)).expect("it is written over");
    }
    let results = run_at(opened.path(), place.path(), "files").expect("it opens");
    assert_eq!(numbers(&results, ["hits", "misses", "errors"]), [0, KEYS.into(), 0]);
}

#[test]
fn a_full_map_is_an_error_that_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut population = Population::new();
    let mut timed = Ops::new();
    for number in 0..KEYS {
        population.push(&number.to_le_bytes(), 4_000).expect("few keys");
        timed.set(number);
    }
    // Room for a hundred of them; the map is twice as large, and the rest of a megabyte.
    let settings = Settings::new(1, 400_000, 100);
    job::write(directory.path(), &settings, &population, &Ops::new(), &[timed]).expect("a job");
    let results = run(directory.path(), "lmdb").expect("it says what it could not do");
    let [errors, wrong, entries] = numbers(&results, ["errors", "wrong", "entries"]);
    assert_eq!((errors + entries, wrong), (u64::from(KEYS), 0));
    assert!((100..600).contains(&entries), "{entries}");
    let error = "MDB_MAP_FULL: the map of 1900544 bytes is full, and LMDB evicts nothing";
    assert_eq!(results["first_error"], error);
}

#[test]
fn caches_are_shared_by_threads_and_the_map_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    (0..KEYS).for_each(|key| prepare.set(key));
    (0..KEYS).for_each(|key| timed.get(key));
    let timed = [timed.clone(), timed];
    job::write(directory.path(), &roomy(), &population(), &prepare, &timed).expect("a job");
    for subject in SUBJECTS {
        let results = run(directory.path(), subject);
        if subject.starts_with("hashmap") {
            let error = results.expect_err(subject);
            assert!(error.contains("1 threads at most"), "{error}");
        } else {
            let results = results.expect(subject);
            let counts = numbers(&results, ["hits", "misses", "errors", "wrong"]);
            assert_eq!(counts, [2 * u64::from(KEYS), 0, 0, 0], "{subject}");
        }
    }
}

#[test]
fn what_may_follow_a_name_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let timed = [Ops::new()];
    job::write(directory.path(), &roomy(), &population(), &Ops::new(), &timed).expect("a job");
    let error = run(directory.path(), "foyer:policy=clock").expect_err("no such policy");
    assert!(error.contains("policy=lru|s3fifo|lfu|sieve|fifo, shards=N"), "{error}");
    let error = run(directory.path(), "ristretto").expect_err("no such rival");
    assert!(error.contains("quick_cache[:shards=N]"), "{error}");
}

#[test]
fn all_rivals_are_listed_with_their_versions() {
    let output = Command::new(env!("CARGO_BIN_EXE_haypile-rivals"))
        .arg("list-subjects")
        .output()
        .expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("text");
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<_> = text.lines().map(fields).collect();
    let names: Vec<_> = lines.iter().map(|fields| fields[0].as_str()).collect();
    let mut expected =
        vec!["quick_cache", "moka", "mini-moka", "foyer", "tinyufo", "stretto", "lru"];
    expected.extend(KEPT);
    expected.push("hashmap");
    assert_eq!(names, expected);
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifests = Rivals::find(Some(&checkout)).expect("manifests");
    let manifest = manifests.for_subject("moka").expect("its manifest names it").manifest();
    assert_eq!(manifest.subjects, names);
    for fields in &lines {
        assert_eq!(fields.len(), 5, "{fields:?}");
        assert!(fields[3].contains(|char: char| char.is_ascii_digit()), "{fields:?}");
    }
}
