//! From a recorded cache to advice.

use std::fs;
use std::path::Path;

use haypile::{Registry, SetOptions};
use tempfile::TempDir;

use crate::program::{fail, haypile, print, print_json, text};

/// Records a program that reads keys and writes them after misses: 4,000 reads, most of them of a
/// few of 1,000 keys. Returns its hits.
fn record(dir: &Path, name: &str, seed: u32) -> u64 {
    let url = format!("memory:size=64KiB,policy=lru,record={}", dir.join(name).display());
    let store = Registry::new().open(&url).unwrap();
    let mut state = seed;
    for _ in 0..4_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = (u64::from(state >> 12).pow(2) * 1_000) >> 40;
        let key = format!("object:{number:04}");
        if store.get(key.as_bytes()).unwrap().is_none() {
            let value = vec![0; 100 + usize::try_from(number % 300).unwrap()];
            let _ = store.set(key.as_bytes(), &value, &SetOptions::set()).unwrap();
        }
    }
    store.close().unwrap();
    store.stats().unwrap().hits
}

fn files(dir: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> =
        entries.map(|path| path.into_os_string().into_string().unwrap()).collect();
    files.sort();
    files
}

#[test]
fn a_simulation_of_a_recording_has_the_hits_of_the_program() {
    let dir = TempDir::new().unwrap();
    let hits = record(dir.path(), "app.rec", 1);
    let [file] = &files(&dir)[..] else { panic!("one file") };
    let simulate = ["--policy", "lru", "--size", "64KiB", "--accounting", "engine", "--json"];
    let document = print_json(&[&["simulate", file][..], &simulate].concat());
    assert_eq!(document["traces"][0]["requests"], 4_000);
    assert_eq!(document["traces"][0]["simulations"][0]["hits"], hits);
    assert!(hits > 1_000 && hits < 3_500, "{hits}");
}

#[test]
fn the_files_of_a_recording_are_one_trace() {
    let dir = TempDir::new().unwrap();
    let hits = [1, 2, 3].map(|seed| record(dir.path(), "app.rec", seed));
    record(dir.path(), "other.rec", 4);
    let files = files(&dir);
    let paths: Vec<&str> = files.iter().map(String::as_str).collect();
    assert_eq!(paths.len(), 4);
    let simulate = ["--policy", "lru", "--objects", "100", "--json"];
    let document = print_json(&[&["simulate"][..], &paths, &simulate].concat());
    let requests = |at: usize| document["traces"][at]["requests"].as_u64();
    assert_eq!((requests(0), requests(1), requests(2)), (Some(12_000), Some(4_000), None));

    let info = print(&[&["trace", "info"][..], &paths[..3]].concat());
    let share = 100 * hits.iter().sum::<u64>() / 12_000;
    let first = info.lines().next().unwrap();
    assert!(first.starts_with("Recorded            "), "{first}");
    assert!(first.contains(&format!(" operations, {share}.")), "{first}");
    assert!(first.ends_with("of reads hit; 3 files"), "{first}");
    assert!(info.contains("Requests            12,000"), "{info}");
    let info = print_json(&[&["trace", "info", "--json"][..], &paths[..3]].concat());
    assert_eq!(info["recording"]["hits"], hits.iter().sum::<u64>());

    let advice = print(&[&["advise"][..], &paths[..3]].concat());
    assert!(advice.contains("s3fifo") || advice.contains("lru"), "{advice}");
}

#[test]
fn what_is_torn_is_read_and_what_is_newer_is_refused() {
    let dir = TempDir::new().unwrap();
    record(dir.path(), "app.rec", 1);
    let [file] = &files(&dir)[..] else { panic!("one file") };
    let mut bytes = fs::read(file).unwrap();
    bytes.truncate(bytes.len() - 7);
    fs::write(file, &bytes).unwrap();
    let output = haypile(&["trace", "info", file]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let note = text(output.stderr);
    assert!(note.starts_with(&format!("haypile: {file}: ends inside a block")), "{note}");
    assert!(text(output.stdout).contains("1 file, 1 without an end"));
    bytes[8] = 9;
    fs::write(file, &bytes).unwrap();
    let message = fail(&["simulate", file]);
    assert!(message.contains("format version 9.0"), "{message}");
}
