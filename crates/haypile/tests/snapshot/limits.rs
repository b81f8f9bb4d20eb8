//! Limits: exactly the most used entries are kept.

use std::time::Duration;

use haypile::memory::snapshot::{Pushed, SnapshotError, SnapshotReader, WriteOptions};
use proptest::prelude::*;

use crate::support::{Entry, entries, limited, now, options, read, write};

/// Returns the entries up to the first that does not fit, without those that would not fit alone.
fn prefix(entries: &[Entry], max_bytes: u64, bytes: impl Fn(&Entry) -> u64) -> Vec<Entry> {
    let mut sum = 0;
    let fits_alone = entries.iter().filter(|entry| bytes(entry) <= max_bytes);
    let fitting = fits_alone.take_while(|entry| {
        sum += bytes(entry);
        sum <= max_bytes
    });
    fitting.cloned().collect()
}

fn without_expiry(mut entries: Vec<Entry>) -> Vec<Entry> {
    for entry in &mut entries {
        entry.expires = None;
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_limit_on_reading_keeps_exactly_the_prefix(
        entries in entries().prop_map(without_expiry), share in 0..110u64
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        write(&path, options(), &entries).unwrap();
        let max_bytes = entries.iter().map(Entry::charge).sum::<u64>() * share / 100;
        let expected = prefix(&entries, max_bytes, Entry::charge);
        let reader = SnapshotReader::open(&path, limited(max_bytes)).unwrap();
        prop_assert_eq!(reader.remaining(), expected.len() as u64);
        let mut back = read(&path, max_bytes).unwrap();
        back.reverse();
        prop_assert!(back == expected, "{} instead of {}", back.len(), expected.len());
    }

    /// The writer stops where one more entry would exceed the bound, and not before.
    #[test]
    fn a_limit_on_writing_is_kept_and_used(
        entries in entries().prop_map(without_expiry), share in 0..110u64
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("snapshot");
        let whole = write(&path, options(), &entries).unwrap().0.file_bytes;
        let empty = write(&path, options(), &[]).unwrap().0.file_bytes;
        let max_bytes = empty + (whole - empty) * share / 100;
        let bounded = |entries: &[Entry], max_bytes| {
            let options = WriteOptions { max_bytes: Some(max_bytes), ..options() };
            write(&path, options, entries).unwrap()
        };
        let (summary, pushed) = bounded(&entries, max_bytes);
        prop_assert!(summary.file_bytes <= max_bytes);
        prop_assert_eq!(summary.file_bytes, std::fs::metadata(&path).unwrap().len());
        let kept: Vec<Entry> = entries
            .iter()
            .zip(&pushed)
            .filter(|(_, pushed)| **pushed == Pushed::Written)
            .map(|(entry, _)| entry.clone())
            .collect();
        let mut back = read(&path, u64::MAX).unwrap();
        back.reverse();
        prop_assert!(back == kept);
        if let Some(first_full) = pushed.iter().position(|pushed| *pushed == Pushed::Full) {
            prop_assert!(pushed[first_full..].iter().all(|pushed| *pushed != Pushed::Written));
            let mut one_more = kept;
            one_more.push(entries[first_full].clone());
            let bytes = bounded(&one_more, u64::MAX).0.file_bytes;
            prop_assert!(bytes > max_bytes, "{bytes} bytes would have been within {max_bytes}");
        }
        for (entry, pushed) in entries.iter().zip(&pushed) {
            if *pushed == Pushed::TooLarge {
                let alone = bounded(std::slice::from_ref(entry), u64::MAX).0.file_bytes;
                prop_assert!(alone > max_bytes);
            }
        }
    }
}

#[test]
fn what_was_written_too_long_ago_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let aged = |age: Duration| {
        let mut entry = Entry::new(format!("{age:?}"), "value");
        entry.written = now() - age;
        entry
    };
    let mut future = Entry::new("future", "value");
    future.written = now() + Duration::from_mins(1);
    let hour = Duration::from_hours(1);
    let entries = [aged(hour + Duration::from_nanos(1)), aged(hour), future, aged(Duration::ZERO)];
    let options = WriteOptions { max_age: Some(hour), ..options() };
    let (summary, pushed) = write(&path, options, &entries).unwrap();
    let written = Pushed::Written;
    assert_eq!(pushed, [Pushed::TooOld, written, written, written]);
    assert_eq!((summary.entries, summary.left_out), (3, 1));
}

#[test]
fn a_bound_below_an_empty_snapshot_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("snapshot");
    let empty = write(&path, options(), &[]).unwrap().0.file_bytes;
    let options = WriteOptions { max_bytes: Some(empty - 1), ..options() };
    let error = write(&path, options, &[]).unwrap_err();
    assert!(
        matches!(error, SnapshotError::MaxTooSmall { least_bytes, .. } if least_bytes == empty)
    );
}

#[cfg(unix)]
#[test]
#[ignore = "is run by the test below, in a process of its own"]
fn with_small_files() {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let Ok(path) = std::env::var("HAYPILE_SNAPSHOT_TEST_PATH") else { return };
    let limit = Rlimit { current: Some(100_000), maximum: None };
    setrlimit(Resource::Fsize, limit).unwrap();
    let path = std::path::PathBuf::from(path);
    let error = write(&path, options(), &[Entry::new("key", vec![1; 200_000])]).unwrap_err();
    assert!(error.to_string().contains("at most 100000 bytes (RLIMIT_FSIZE)"), "{error}");
    let summary = write(&path, options(), &[Entry::new("key", vec![1; 50_000])]).unwrap().0;
    assert_eq!(summary.entries, 1);
    // A recording ends, and the cache goes on.
    let recording = path.with_file_name("recording");
    let url = format!("memory://?size=1MiB&record={}", recording.display());
    let cache = haypile::Cache::open(&url).unwrap();
    for number in 0..100_000_u32 {
        cache.set(number.to_le_bytes(), "value").unwrap();
    }
    cache.flush(haypile::Durability::Visible).unwrap();
    let warnings = cache.store().warnings();
    assert!(warnings.iter().any(|warning| warning.contains("RLIMIT_FSIZE")), "{warnings:?}");
}

#[cfg(unix)]
#[test]
fn a_limit_of_the_size_of_files_is_an_error_and_not_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["limits::with_small_files", "--exact", "--ignored"]);
    command.env("HAYPILE_SNAPSHOT_TEST_PATH", folder.path().join("snapshot"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", output.status);
}
