//! `haypile lab torture` finds nothing wrong in a correct cache, and finds the mistakes of others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, INTERRUPTED, NEGATIVE, haypile, path_in, text};
use crate::sources::has_servers;

/// Few kills, in a directory of the test's own.
fn torture(directory: &TempDir, arguments: &[&str]) -> Output {
    let common = ["lab", "torture", "--quick", "--kills", "8", "--directory"];
    let directory = directory.path().to_str().unwrap();
    haypile(&[&common[..], &[directory], arguments].concat()).output().unwrap()
}

/// The rows, of a run that ends with `status`.
#[track_caller]
fn rows(arguments: &[&str], status: i32) -> Vec<Value> {
    let directory = TempDir::new().unwrap();
    let output = torture(&directory, &[arguments, &["--json"]].concat());
    let document = text(output.stdout);
    assert_eq!(output.status.code(), Some(status), "{document}{}", text(output.stderr));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["complete"], true);
    document["samples"].as_array().unwrap().clone()
}

#[test]
fn the_shared_file_stands_it() {
    let rows = rows(&[], 0);
    let cases: Vec<_> = rows.iter().map(|row| row["case"].as_str().unwrap()).collect();
    let due =
        ["keep", "keep", "evict", "evict", "stop", "all", "compute", "invalidate", "invalidate"];
    assert_eq!(cases, due);
    let kills: Vec<_> = rows.iter().map(|row| row["counts"]["kills"].as_u64().unwrap()).collect();
    assert_eq!(kills, [0, 8, 0, 8, 0, 12, 3, 0, 8]);
    for row in &rows {
        assert_eq!(row["error"], Value::Null, "{row}");
        assert_eq!((&row["counts"]["lost"], &row["counts"]["wrong"]), (&0.into(), &0.into()));
        assert!(row["operations"].as_u64().unwrap() > 0, "{row}");
    }
    assert_eq!(rows[6]["counts"]["taken_over"], 3);
    for row in &rows[7..] {
        let count = |name: &str| row["counts"][name].as_u64().unwrap();
        assert_eq!((count("stale"), count("unsupported")), (0, 0), "{row}");
        for done in ["computed", "deleted", "invalidated", "cleared", "compared"] {
            assert!(count(done) > 0, "{done}: {row}");
        }
    }
}

#[test]
fn a_directory_of_files_stands_what_it_can_do() {
    let rows = rows(&["files", "--case", "keep,compute"], 0);
    assert_eq!(rows.len(), 2, "it cannot compute");
}

/// Number of runs in one of which a mistake shows.
const MOST_RUNS: u32 = 20;

/// Runs a cache with a mistake until `count` is above 0.
#[track_caller]
fn found(subject: &str, case: &str, count: &str) {
    found_with(subject, &[], case, count);
}

#[track_caller]
fn found_with(subject: &str, options: &[&str], case: &str, count: &str) {
    // Which operations a kill cuts, and which keys are read after, is left to chance.
    for seed in 1..=MOST_RUNS {
        let place = TempDir::new().unwrap();
        let seed = seed.to_string();
        let arguments = [subject, "--case", case, "--timeout", "2", "--seed", &seed, "--json"];
        let output = torture(&place, &[&arguments[..], options].concat());
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = json["samples"].as_array().expect("rows");
        let counted: u64 = rows.iter().map(|row| row["counts"][count].as_u64().unwrap()).sum();
        if counted > 0 {
            assert_eq!(output.status.code(), Some(NEGATIVE), "{json}");
            assert!(rows.iter().any(|row| row["error"].is_string()));
            return;
        }
    }
    panic!("{count} of {subject} on {case} is never found");
}

#[test]
fn stale_values_are_found() {
    // Whoever looks aside undoes deletions.
    found("files", "invalidate", "stale");
    // So does who reads a file without leases.
    found_with("file", &["--no-leases"], "invalidate", "stale");
}

#[test]
fn a_deletion_that_is_not_done_leaves_stale_values() {
    found("files:keeps", "invalidate", "stale");
}

#[test]
fn values_that_nobody_removes_and_that_are_gone_are_found() {
    found("files:loses", "invalidate", "lost");
}

#[test]
fn servers_take_part_in_one_case() {
    let directory = TempDir::new().unwrap();
    let output = torture(&directory, &["redis", "--case", "keep"]);
    assert_eq!(output.status.code(), Some(FAILURE));
    let message = text(output.stderr);
    assert!(message.ends_with("add --case invalidate\n"), "{message}");
    if !has_servers() {
        return;
    }
    let output = torture(&directory, &["redis", "--case", "keep,invalidate", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["samples"].as_array().unwrap();
    assert_eq!((rows.len(), output.status.code()), (2, Some(0)), "{json}");
    assert!(rows.iter().all(|row| row["counts"]["stale"] == 0), "{json}");
    assert_eq!(json["unsupported"].as_array().unwrap().len(), 2);
}

#[test]
fn torn_values_are_found() {
    found("files:tears", "keep", "wrong");
}

#[test]
fn lost_values_are_found() {
    found("files:loses", "keep", "lost");
}

#[test]
fn deleted_values_that_stay_are_found() {
    found("files:keeps", "keep", "wrong");
}

#[test]
fn values_of_other_keys_are_found_in_a_full_cache() {
    found("files:swaps", "evict", "wrong");
}

#[test]
fn a_claim_that_outlives_its_owner_is_found() {
    found("files:claims", "compute", "hung");
}

#[test]
fn rivals_take_part_and_rows_are_written() {
    let directory = TempDir::new().unwrap();
    let (rival, out) = (path_in(&directory, "rival"), path_in(&directory, "results.jsonl"));
    let program = env!("CARGO_BIN_EXE_haypile");
    let script = format!(
        "#!/bin/sh\n\
         case $1 in\n\
         list-subjects) printf 'theirs\\ttheirs\\tshell\\t9\\ta rival\\n';;\n\
         run-torture) role=$2 path=$3 seed=$4; shift 5\n\
         exec '{program}' lab run-torture $role \"$path\" $seed files \"$@\";;\n\
         esac\n"
    );
    fs::write(&rival, script).unwrap();
    fs::set_permissions(&rival, fs::Permissions::from_mode(0o755)).unwrap();
    let place = TempDir::new().unwrap();
    let output = torture(&place, &["theirs", "--rivals", &rival, "--case", "keep", "--out", &out]);
    let shown = text(output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    assert!(shown.contains("\nkeep without kills  theirs       0  "), "{shown}");
    let rows = fs::read_to_string(&out).unwrap();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!((&rows[0]["experiment"], rows.len()), (&"torture".into(), 3));
    assert_eq!(rows[2]["subject"]["language"], "shell");
    assert_eq!(rows[2]["parameters"]["kills"], 8);
}

#[test]
fn a_program_that_is_no_runner_is_an_error_of_each_row() {
    let directory = TempDir::new().unwrap();
    let rival = path_in(&directory, "rival");
    let script = "#!/bin/sh\n\
                  case $1 in\n\
                  list-subjects) printf 'odd\\todd\\tshell\\t9\\ta rival\\n';;\n\
                  *) echo nonsense;;\n\
                  esac\n";
    fs::write(&rival, script).unwrap();
    fs::set_permissions(&rival, fs::Permissions::from_mode(0o755)).unwrap();
    let rows = rows(&["odd", "--rivals", &rival], NEGATIVE);
    assert_eq!(rows.len(), 9);
    for row in &rows {
        assert!(row["error"].as_str().unwrap().contains("nonsense"), "{row}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().to_str().unwrap();
    let arguments = ["lab", "torture", "--kills", "1000000", "--directory", place];
    let child = haypile(&arguments).spawn().unwrap();
    // Writers have made their file.
    while file_in(directory.path()).is_none() {
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = text(output.stderr);
    assert!(message.ends_with("interrupted; printed 0 measurements\n"), "{message}");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    assert_eq!(processes_that_name(place), 0);
}

fn file_in(directory: &Path) -> Option<()> {
    let place = fs::read_dir(directory).unwrap().next()?.ok()?;
    fs::read_dir(place.path()).ok()?.next().map(drop)
}

fn processes_that_name(place: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(place)).count()
}
