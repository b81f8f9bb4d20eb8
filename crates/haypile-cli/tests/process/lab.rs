//! `haypile lab`: its files, its JSON, its runners, and Ctrl-C.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, INTERRUPTED, haypile, path_in, text};

const SMALL: [&str; 9] =
    ["lab", "micro", "--keys", "100", "--operations", "100", "--blocks", "2", "--case"];

/// Returns the standard output of a run, which may print warnings on standard error.
#[track_caller]
fn measured(arguments: &[&str]) -> String {
    let output = haypile(&[&SMALL, arguments].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    text(output.stdout)
}

fn rows(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_of_80_columns_a_case_is_one_table() {
    let subjects = ["memory", "memory:policy=s3fifo,small=10"];
    let list = subjects.join(",");
    let run = [&SMALL[..], &["get-hit", "-s", &list]].concat();
    let printed = crate::program::print_on_terminal(haypile(&run), 80);
    // The parameters above it are prose, which the terminal breaks.
    let case = printed.lines().skip_while(|line| *line != "get-hit");
    let widest = case.map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|columns| columns <= 80), "{printed}");
    let tables =
        printed.lines().filter(|line| line.starts_with("Subject") || line.starts_with('#'));
    assert_eq!(tables.count(), 1, "{printed}");
    assert!(printed.contains("95 % interval") && printed.contains("Memory"), "{printed}");
    assert!(subjects.iter().all(|name| printed.contains(name)), "{printed}");
}

#[test]
fn results_are_rows_of_a_file_that_grows() {
    let dir = TempDir::new().unwrap();
    let out = path_in(&dir, "results.jsonl");
    let arguments =
        ["get-hit,set-evict", "-s", "memory:policy=lru,memory:policy=sieve", "--out", &out];
    let shown = measured(&arguments);
    assert!(shown.contains("\nset-evict capacity_bytes=9800\n"), "{shown}");
    let first = rows(&out);
    assert_eq!(first.len(), 1 + 2 * 2 * 2);
    let run = &first[0];
    assert_eq!((&run["type"], &run["schema"], &run["seed"]), (&"run".into(), &1.into(), &1.into()));
    let command = run["command"].as_str().unwrap();
    assert!(command.starts_with("haypile lab micro --keys 100 --operations 100 "), "{command}");
    for (at, sample) in first[1..].iter().enumerate() {
        assert_eq!(sample["type"], "sample");
        assert_eq!(sample["run"], run["run"]);
        assert_eq!(sample["case"], if at < 4 { "get-hit" } else { "set-evict" });
        assert_eq!(sample["block"], at as u64 / 2 % 2);
        assert_eq!(sample["position"], at as u64 % 2);
        assert_eq!(sample["operations"], 100);
        assert_eq!(sample["hits"], if at < 4 { 100 } else { 0 });
        assert_eq!(sample["error"], Value::Null);
        assert_eq!(sample["parameters"]["capacity"], "50%");
        assert_eq!(sample["latency_ns"], Value::Null);
    }
    measured(&arguments);
    let both = rows(&out);
    assert_eq!(both[..first.len()], first);
    assert_eq!(both.len(), 2 * first.len());
    assert_ne!(both[first.len()]["run"], run["run"]);
    // A line that was cut off does not spoil those that come after it.
    fs::OpenOptions::new().append(true).open(&out).unwrap().write_all(b"{\"type\":\"sam").unwrap();
    measured(&arguments);
    let lines = fs::read_to_string(&out).unwrap();
    assert_eq!(lines.lines().count(), 3 * first.len() + 1);
}

#[test]
fn json_has_the_run_and_every_sample() {
    let document = measured(&["get-hit", "-s", "mock:100ns", "--json", "--latency"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["complete"], true);
    assert_eq!(document["run"]["experiment"], "micro");
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 2);
    for sample in samples {
        assert_eq!((&sample["wall_ns"], &sample["cpu_ns"]), (&10_000.into(), &10_000.into()));
        let latency = &sample["latency_ns"]["get"];
        assert_eq!((&latency["count"], &latency["p999"]), (&100.into(), &100.into()));
        assert!((latency["mean"].as_f64().unwrap() - 100.0).abs() < 1e-9);
        assert_eq!(sample["latency_ns"]["set"], Value::Null);
        assert_eq!(sample["subject"]["program"], "haypile");
    }
}

/// The work of several processes is one row; their directory is removed.
#[test]
fn processes_do_a_job_together() {
    let dir = TempDir::new().unwrap();
    let (place, out) = (path_in(&dir, "place"), path_in(&dir, "results.jsonl"));
    fs::create_dir(&place).unwrap();
    let arguments =
        ["aside", "-s", "noop", "--processes", "1,3", "--directory", &place, "--out", &out];
    measured(&[&arguments[..], &["--threads", "2"]].concat());
    let rows = rows(&out);
    assert_eq!(rows.len(), 1 + 2 * 2);
    for row in &rows[1..] {
        let processes = row["parameters"]["processes"].as_u64().unwrap();
        assert_eq!(row["operations"], 100 * 2 * processes);
        assert_eq!(row["misses"], row["operations"]);
        assert_eq!(row["counts"]["pretends"], 1, "the first process speaks of the cache");
        #[cfg(target_os = "linux")]
        assert!(row["parameters"]["file_system"].is_string(), "{row}");
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

/// The second process reads what the first one has written, and both write.
#[test]
fn processes_share_a_file() {
    let dir = TempDir::new().unwrap();
    let (place, out) = (path_in(&dir, "place"), path_in(&dir, "results.jsonl"));
    fs::create_dir(&place).unwrap();
    let arguments = ["get-hit,overwrite", "-s", "file", "--processes", "1,2"];
    measured(&[&arguments[..], &["--directory", &place, "--out", &out]].concat());
    for row in &rows(&out)[1..] {
        assert_eq!(row["operations"], 100 * row["parameters"]["processes"].as_u64().unwrap());
        assert_eq!(row["counts"]["verified_before"], 50);
        let hits = if row["case"] == "get-hit" { &row["operations"] } else { &Value::from(0) };
        assert_eq!(row["hits"], *hits);
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

/// After a warm-up the same is measured as without: a new cache in an empty place.
#[test]
fn a_warm_up_is_untimed_and_on_a_cache_of_its_own() {
    let dir = TempDir::new().unwrap();
    let (place, out) = (path_in(&dir, "place"), path_in(&dir, "results.jsonl"));
    fs::create_dir(&place).unwrap();
    let counted = |warm_up: &str, arguments: &[&str]| {
        let before = fs::read_to_string(&out).map_or(0, |text| text.lines().count());
        let common = ["--warm-up", warm_up, "--directory", &place, "--out", &out];
        measured(&[arguments, &common].concat());
        let rows = rows(&out).split_off(before + 1);
        let counted = |row: &Value| {
            assert_eq!(row["error"], Value::Null);
            let asked = (warm_up != "0").then(|| Value::from(warm_up.parse::<u64>().unwrap()));
            assert_eq!(row["parameters"].get("warm_up"), asked.as_ref());
            assert_eq!(row["counts"].get("warm_up"), None);
            #[cfg(target_os = "linux")]
            assert!(row["load"]["seen_ns"].as_u64() > row["wall_ns"].as_u64(), "{row}");
            ["operations", "hits", "misses"].map(|name| row[name].clone())
        };
        rows.iter().map(counted).collect::<Vec<_>>()
    };
    let alone = ["get-miss,overwrite,get-hit", "-s", "memory:policy=lru,file"];
    assert_eq!(counted("3", &alone).len(), 12);
    let lru = ["aside,set-evict", "-s", "memory:policy=lru,shards=1"];
    assert_eq!(counted("3", &lru), counted("0", &lru), "the same misses");
    let shared = ["get-hit,overwrite", "-s", "file", "--processes", "2", "--threads", "2"];
    assert_eq!(counted("2", &shared).len(), 4);
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
}

/// A runner as a script that calls this program, and so a subject of another name.
fn rival(dir: &TempDir) -> String {
    let path = path_in(dir, "rival");
    let program = env!("CARGO_BIN_EXE_haypile");
    let script = format!(
        "#!/bin/sh\n\
         case $1 in\n\
         list-subjects) printf 'theirs\\ttheirs:NS\\tshell\\t9\\ta rival\\n';;\n\
         run-job) exec '{program}' lab run-job \"$2\" mock:${{3#theirs:}};;\n\
         esac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// An error that would be in every row is reported before anything is measured or created.
#[test]
fn a_mistake_in_a_subject_is_found_before_anything_is_measured() {
    let dir = TempDir::new().unwrap();
    let out = path_in(&dir, "results.jsonl");
    for (subject, said) in [
        ("memory:sise=3", "'memory' has no option 'sise'"),
        ("memory:policy=lruu", "'lruu'"),
        ("memory:size=1", "1KiB"),
    ] {
        let arguments = ["get-hit", "--out", &out, "-s", subject];
        let output = haypile(&[&SMALL, &arguments[..]].concat()).output().unwrap();
        let errors = text(output.stderr);
        assert_eq!(output.status.code(), Some(FAILURE), "{errors}");
        assert!(errors.contains(said), "{errors}");
        assert!(!fs::exists(&out).unwrap());
    }
}

#[test]
fn rivals_and_other_builds_take_part() {
    let dir = TempDir::new().unwrap();
    let rival = rival(&dir);
    let against = format!("old={}", env!("CARGO_BIN_EXE_haypile"));
    let out = path_in(&dir, "results.jsonl");
    let shown = measured(&[
        "get-hit",
        "-s",
        "mock:100ns,theirs:120ns",
        "--rivals",
        &rival,
        "--against",
        &against,
        "--out",
        &out,
    ]);
    for row in ["mock:100ns@old", "mock:100ns@haypile", "theirs:120ns@rival"] {
        assert!(shown.lines().any(|line| line.starts_with(row)), "{row} in {shown}");
    }
    let rows = rows(&out);
    for block in [1..4, 4..7] {
        let mut programs: Vec<&str> =
            rows[block].iter().map(|row| row["subject"]["program"].as_str().unwrap()).collect();
        programs.sort_unstable();
        assert_eq!(programs, ["haypile", "old", "rival"]);
    }
    let listed = haypile(&["lab", "subjects", "--rivals", &rival]).output().unwrap();
    let listed = text(listed.stdout);
    let last = listed.lines().last().unwrap();
    assert_eq!(
        last.split_whitespace().collect::<Vec<_>>(),
        ["theirs:NS", "shell", "9", "rival", "a", "rival"]
    );
}

/// Makes a runner that reports to the test through a file when it works, and then never ends.
pub(crate) fn hanging(dir: &TempDir, pipe: &str) -> String {
    let path = path_in(dir, "hanging");
    let script = format!(
        "#!/bin/sh\n\
         case $1 in\n\
         list-subjects) printf 'hanging\\thanging\\tshell\\t1\\tnever ends\\n';;\n\
         run-job) echo $$ > '{pipe}'; exec cat /dev/zero > /dev/null;;\n\
         esac\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_kills_the_runner() {
    let dir = TempDir::new().unwrap();
    let pipe = path_in(&dir, "pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &*pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let (runner, out) = (hanging(&dir, &pipe), path_in(&dir, "results.jsonl"));
    // Whichever of the two is first in the first block, the mock has done a case by the second.
    let arguments = ["get-hit", "-s", "mock:100ns", "--out", &out];
    measured(&arguments);
    let arguments = ["get-hit", "-s", "hanging", "--rivals", &runner, "--out", &out];
    let child = haypile(&[&SMALL[..], &arguments].concat()).stderr(Stdio::piped()).spawn().unwrap();
    // The runner has been started, long after the program began to listen to Ctrl-C.
    let mut pid = String::new();
    BufReader::new(fs::File::open(&pipe).unwrap()).read_line(&mut pid).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = text(output.stderr);
    let end = "haypile: the experiment was interrupted; printed and kept 0 of 2 measurements\n";
    assert!(message.ends_with(end), "{message}");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    assert_eq!(rows(&out).len(), 1 + 2 + 1);
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    // This program collected it before it ended.
    while rustix::process::test_kill_process(pid).is_ok() {
        thread::yield_now();
    }
}

#[test]
fn samples_before_ctrl_c_are_shown() {
    let dir = TempDir::new().unwrap();
    let out = path_in(&dir, "results.jsonl");
    let arguments = ["get-hit", "-s", "mock:100ns", "--blocks", "1000000", "--out", &out];
    let without_blocks = [&SMALL[..6], &["--case"], &arguments].concat();
    let child = haypile(&without_blocks).spawn().unwrap();
    // Rows are there as soon as they are measured.
    while fs::read_to_string(&out).map_or(0, |text| text.lines().count()) < 3 {
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = text(output.stderr);
    let finished = message
        .rsplit_once("haypile: the experiment was interrupted; printed and kept ")
        .and_then(|(_, rest)| rest.strip_suffix(" of 1000000 measurements\n"))
        .unwrap_or_else(|| panic!("{message}"));
    let finished: usize = finished.parse().unwrap();
    assert_eq!(rows(&out).len(), 1 + finished);
    let shown = text(output.stdout);
    assert!(shown.lines().any(|line| line.starts_with("mock:100ns  100 ns")), "{shown}");
}

/// Starts `lab all` with one experiment of many blocks, and waits until it has a result.
fn lab_all(directory: &TempDir) -> std::process::Child {
    let place = path_in(directory, "results");
    let arguments = ["lab", "all", "--embedded", "--output", &place, "--only", "micro"];
    let child = haypile(&arguments).spawn().unwrap();
    let rows = format!("{place}/micro.jsonl");
    while fs::read_to_string(&rows).map_or(0, |text| text.lines().count()) < 2 {
        thread::yield_now();
    }
    child
}

#[test]
fn all_passes_a_signal_on_and_keeps_what_is_finished() {
    let directory = TempDir::new().unwrap();
    let child = lab_all(&directory);
    // This program alone gets it, as from a service manager.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15));
    let message = text(output.stderr);
    assert!(message.contains("interrupted; printed and kept "), "{message}");
    assert!(message.contains("interrupted; the finished results are in "), "{message}");
    let printed = fs::read_to_string(directory.path().join("results/micro.txt")).unwrap();
    assert!(!printed.is_empty(), "the experiment has printed its results");
}

#[test]
#[cfg(target_os = "linux")]
fn a_second_signal_ends_a_command_that_cannot_end_in_order() {
    let directory = TempDir::new().unwrap();
    let mut child = lab_all(&directory);
    let (own, id) = (Pid::from_child(&child), child.id());
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let stopped = Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    let status = loop {
        // Those soon after the first count as the same.
        kill_process(own, Signal::TERM).unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        thread::yield_now();
    };
    kill_process(stopped, Signal::KILL).unwrap();
    assert_eq!(status.code(), Some(128 + 15));
}

/// It says what the machine is before it measures, and passes an interruption on to what it runs.
#[test]
fn a_first_look_that_is_interrupted_ends_at_once() {
    let directory = TempDir::new().unwrap();
    let out = directory.path().join("first.jsonl");
    let mut child = haypile(&["lab", "first", "--out", out.to_str().unwrap()]).spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("processors, Linux"), "{line}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("interrupted; what was measured is above"), "{error}");
    // The first step would have 64 samples.
    let kept = fs::read_to_string(&out).unwrap();
    assert!(kept.lines().count() < 64, "{kept}");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    // Nothing that was not measured is told, but the machine's state.
    assert!(!rest.contains("Operation") && !rest.contains("Threads"), "{rest}");
}

#[test]
fn a_first_look_that_cannot_be_kept_is_not_begun() {
    let output = haypile(&["lab", "first", "--out", "/nowhere/at/all.jsonl"]).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("/nowhere/at/all.jsonl"), "{error}");
}

/// A subject that never holds anything is the baseline of hits as well: it is the cost of looking.
#[test]
fn none_is_a_baseline_of_every_case() {
    let cases = "get-hit,get-miss,set,overwrite,set-evict,aside,mix:1:1";
    let directory = TempDir::new().unwrap();
    let out = path_in(&directory, "none.jsonl");
    measured(&[cases, "--subject", "none,memory", "--out", &out]);
    let rows = rows(&out);
    let samples = rows.iter().filter(|row| row["type"] == "sample");
    for row in samples.clone() {
        assert!(row["error"].is_null(), "{row}");
        assert!(row["subject"]["name"] != "none" || row["hits"] == 0, "{row}");
    }
    assert_eq!(samples.count(), 2 * 2 * cases.split(',').count());
}
