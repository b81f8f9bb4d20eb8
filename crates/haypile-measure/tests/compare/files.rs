//! Files that are not as they should be.

use std::fs;
use std::io::Write;

use haypile_measure::compare::{CompareError, read};
use haypile_measure::result::{ResultsError, Row};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::samples::sample;

fn line() -> String {
    serde_json::to_string(&Row::Sample(sample("a", "r", 0, 100))).unwrap() + "\n"
}

/// A directory with one file `results.jsonl`.
fn directory(content: &[u8]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("results.jsonl"), content).unwrap();
    directory
}

fn read_one(content: &[u8]) -> Result<(usize, Vec<String>), CompareError> {
    let directory = directory(content);
    read(&directory.path().join("results.jsonl")).map(|it| (it.samples.len(), it.warnings))
}

#[test]
fn half_a_line_is_passed_over() {
    let line = line();
    for cut in [1, 2, 30, line.len() - 2] {
        let (samples, warnings) = read_one(format!("{line}{}", &line[..cut]).as_bytes()).unwrap();
        assert_eq!((samples, warnings.len()), (1, 1), "{cut}: {warnings:?}");
        assert!(warnings[0].contains("line 2"), "{warnings:?}");
    }
    // The same in the middle: the next writer has begun a line of its own.
    let (samples, warnings) = read_one(format!("{}\n{line}", &line[..30]).as_bytes()).unwrap();
    assert_eq!((samples, warnings.len()), (1, 1), "{warnings:?}");
    assert!(warnings[0].contains("line 1"), "{warnings:?}");
}

#[test]
fn a_newer_schema_is_an_error() {
    let newer = line().replace("\"schema\":1", "\"schema\":2");
    let error = read_one((line() + &newer).as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 2 has schema 2, and this program knows 1"), "{error}");
}

#[test]
fn numbers_that_are_none_are_errors() {
    let line = line();
    for wrong in ["NaN", "-1", "1e400", "1.5", "\"7\"", "null", "18446744073709551616", "Infinity"]
    {
        let line = line.replace("\"cpu_ns\":100000000", &format!("\"cpu_ns\":{wrong}"));
        let error = read_one(line.as_bytes()).unwrap_err();
        assert!(
            matches!(error, CompareError::Results(ResultsError::Line { .. })),
            "{wrong}: {error}"
        );
    }
    // The largest numbers are numbers.
    let huge = line.replace("\"cpu_ns\":100000000", "\"cpu_ns\":18446744073709551615");
    assert_eq!(read_one(huge.as_bytes()).unwrap().0, 1);
}

#[test]
fn endless_lines_are_not_read_whole() {
    let error = read_one(&vec![b'x'; 3 << 20]).unwrap_err();
    assert!(matches!(error, CompareError::Results(ResultsError::LongLine { .. })), "{error}");
}

#[test]
fn nothing_is_an_error() {
    for content in ["", "\n\n", "{\"type\":\"later\",\"schema\":1}\n"] {
        let error = read_one(content.as_bytes()).unwrap_err();
        assert!(matches!(error, CompareError::NoSamples { .. }), "{error}");
    }
}

#[test]
fn a_directory_is_all_its_results() {
    let directory = directory(line().as_bytes());
    let write = |name, content: &str| fs::write(directory.path().join(name), content).unwrap();
    write("more.jsonl", &(line() + &line()));
    write("other-rows.jsonl", "{\"kind\":\"machine\"}\n");
    write("notes.txt", "no rows\n");
    let results = read(directory.path()).unwrap();
    assert_eq!((results.samples.len(), results.warnings.len()), (3, 1));
    assert!(results.warnings[0].contains("other-rows.jsonl"), "{:?}", results.warnings);
    // A file that begins as results and goes on otherwise is broken.
    let mut file = fs::File::options();
    let mut file = file.append(true).open(directory.path().join("more.jsonl")).unwrap();
    file.write_all(b"garbage\n").unwrap();
    assert!(read(directory.path()).is_err());
}

proptest! {
    #[test]
    fn garbage_is_an_error_or_passed_over(content in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(read_one(&content).is_err());
    }
}
