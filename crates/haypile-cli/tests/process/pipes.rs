//! Standard input, and readers that close the output early.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};

use crate::cache::Place;
use crate::program::{FAILURE, TINY, TRACE, haypile, print, print_with_input, text};

#[test]
fn standard_input_is_a_trace() {
    for (path, more) in [(TINY, ["--objects", "2"]), (TRACE, ["--size", "2MiB"])] {
        let options = [&["--policy", "lru", "--details"], &more[..]].concat();
        let input = fs::read(path).unwrap();
        let piped = print_with_input(&[&["simulate", "-"], &options[..]].concat(), &input);
        let read = print(&[&["simulate", path], &options[..]].concat());
        let (name, requests) = piped.split_once(": ").unwrap();
        assert_eq!(name, "standard input");
        let (_, expected) = read.split_once(": ").unwrap();
        assert_eq!(requests.lines().next(), expected.lines().next());
    }
}

#[test]
fn nothing_on_standard_input_is_an_error() {
    let output = haypile(&["simulate", "-"]).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(
        text(output.stderr),
        "haypile: standard input is empty; a trace has at least one request\n"
    );
}

#[test]
fn a_pipe_that_is_closed_already_is_no_failure() {
    let place = Place::new();
    print_with_input(&["set", &place.url, "key", "-"], b"value");
    let url = place.url.as_str();
    let commands: [&[&str]; 19] = [
        &["simulate", TINY, "--policy", "lru"],
        &["simulate", TINY, "--policy", "lru", "--json"],
        &["simulate", TINY, "--policy", "lru", "--csv"],
        &["simulate", TINY, "--curve", "lru"],
        &["advise", TINY, "--policy", "lru,fifo"],
        &["advise", TINY, "--policy", "lru,fifo", "--json"],
        &["trace", "info", TINY],
        &["trace", "info", TINY, "--json"],
        &["trace", "generate", "loop:keys=3", "--requests", "3"],
        &["policies"],
        &["policies", "--json"],
        &["completions", "bash"],
        &["--help"],
        &["get", url, "key"],
        &["get", url, "key", "--json"],
        &["keys", url],
        &["keys", url, "--json"],
        &["dump", url],
        &["incr", url, "count", "--initial", "1"],
    ];
    for arguments in commands {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = haypile(arguments).stdout(writer).output().unwrap();
        assert_eq!(text(output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn generate_ends_when_its_reader_does() {
    // More than any pipe holds, and more than a test can wait for.
    let arguments = ["trace", "generate", "loop:keys=3", "--requests", "1000000000000"];
    let mut child = haypile(&arguments).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "key\n");
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn dump_ends_when_its_reader_does() {
    let place = Place::new();
    // More than any pipe holds.
    print_with_input(&["set", &place.url, "key", "-"], &vec![b'x'; 1_000_000]);
    let mut child = haypile(&["dump", &place.url]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"type\":\"dump\","), "{line}");
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let place = Place::new();
    print_with_input(&["set", &place.url, "key", "-"], b"value");
    let url = place.url.as_str();
    let commands: [&[&str]; 7] = [
        &["get", url, "key"],
        &["keys", url],
        &["dump", url],
        &["simulate", TINY, "--policy", "lru"],
        &["policies", "--json"],
        &["trace", "generate", "loop:keys=3", "--requests", "100000"],
        &["trace", "info", TINY],
    ];
    for arguments in commands {
        let full = File::create("/dev/full").unwrap();
        let output = haypile(arguments).stdout(full).output().unwrap();
        assert_eq!(text(output.stderr), "haypile: No space left on device (os error 28)\n");
        assert_eq!(output.status.code(), Some(FAILURE), "{arguments:?}");
    }
}

#[test]
fn notes_that_nobody_reads_cost_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("keys.txt");
    std::fs::write(&trace, "a\nb\na\nc\n").unwrap();
    let trace = trace.to_str().unwrap();
    for (arguments, code) in [
        // That its lines are read as keys is a note.
        (vec!["trace", "info", trace], 0),
        (vec!["simulate", trace, "-p", "lru", "--objects", "2"], 0),
        (vec!["trace", "info", "/none"], 2),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = haypile(&arguments).stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert_eq!(output.stdout.is_empty(), code != 0, "{arguments:?}");
    }
}
