//! Rivals of a checkout that the test creates.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::lab::hanging;
use crate::program::{FAILURE, INTERRUPTED, NEGATIVE, haypile, path_in, text};

/// A runner that runs: the program's own caches.
const OWN: &str = concat!("exec '", env!("CARGO_BIN_EXE_haypile"), "' lab \"$@\"");

/// A runner that lists a subject, and dies when it gets a job.
const CRASHES: &str = "[ $1 = list-subjects ] || kill -9 $$\n\
                       printf 'crash\\tcrash\\tsh\\t3\\tdies at work\\n'";

fn add(checkout: &Path, name: &str, subjects: &[&str], script: Option<&str>, make: &str) {
    let folder = checkout.join("rivals").join(name);
    fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "about = \"A cache\"\nlanguage = \"sh\"\nprogram = \"rivals/{name}/{name}\"\n\
         subjects = {subjects:?}\nmake = \"{make}\"\n"
    );
    fs::write(folder.join("rival.toml"), manifest).unwrap();
    if let Some(script) = script {
        let program = folder.join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Makes a checkout with a rival that runs, one that is missing, one that prints garbage and one
/// that crashes.
fn checkout() -> TempDir {
    let checkout = TempDir::new().unwrap();
    let root = checkout.path();
    add(root, "own", &["memory", "file"], Some(OWN), "all");
    add(root, "absent", &["absent"], None, "absent");
    add(root, "garbage", &["garbage"], Some("echo hello"), "all");
    add(root, "crash", &["crash"], Some(CRASHES), "all");
    checkout
}

/// Runs `haypile rivals ARGUMENTS` in a directory.
fn rivals_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = haypile(&[&["rivals"], arguments].concat());
    command.current_dir(directory).env_remove("HAYPILE_CHECKOUT");
    command.env("TMPDIR", directory).output().unwrap()
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn the_list_says_what_runs_and_how_to_get_the_rest() {
    let checkout = checkout();
    // The checkout is above the working directory.
    let output = rivals_in(&checkout.path().join("rivals/own"), &["list"]);
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    let version = env!("CARGO_PKG_VERSION");
    let root = checkout.path().display();
    let expected = format!(
        "Rival    Language  Subject  Version  State    How to install\n\
         absent   sh        absent   -        missing  haypile rivals install absent\n\
         crash    sh        crash    3        runs     -\n\
         garbage  sh        garbage  -        broken   haypile rivals install garbage\n\
         own      sh        memory   {version:<9}runs     -\n\
         own      sh        file     {version:<9}runs     -\n\
         absent: there is no {root}/rivals/absent/absent\n\
         garbage: it said 'hello', and not five fields parted by tabs\n"
    );
    assert_eq!(text(output.stdout), expected);
    let json = json_of(&rivals_in(checkout.path(), &["list", "--json"]));
    let states: Vec<_> = json.as_array().unwrap().iter().map(|rival| &rival["state"]).collect();
    assert_eq!(states, ["missing", "runs", "broken", "runs"]);
    assert_eq!(json[3]["subjects"][1], json!({ "name": "file", "version": version }));
    assert_eq!(json[0]["how_to_get"], "haypile rivals install absent");
}

#[test]
fn what_runs_is_checked_and_the_rest_is_said() {
    let checkout = checkout();
    let output = rivals_in(checkout.path(), &["check"]);
    assert_eq!(text(output.stderr), "");
    assert_eq!(output.status.code(), Some(NEGATIVE));
    let version = env!("CARGO_PKG_VERSION");
    let root = checkout.path().display();
    let expected = format!(
        "Rival    Subject  Version  Result\n\
         crash    crash    3        failed\n\
         garbage  garbage  -        failed\n\
         own      memory   {version:<9}ok\n\
         own      file     {version:<9}ok\n\
         crash: get-hit: the runner ended with signal: 9 (SIGKILL)\n\
         garbage: it said 'hello', and not five fields parted by tabs\n\
         Skipped: absent: there is no {root}/rivals/absent/absent; run: haypile rivals install \
         absent\n"
    );
    assert_eq!(text(output.stdout), expected);
    let left = checkout.path().read_dir().unwrap().count();
    assert_eq!(left, 1, "only the rivals are there");
}

#[test]
fn only_what_is_named_is_checked() {
    let checkout = checkout();
    let output = rivals_in(checkout.path(), &["check", "own", "absent", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json = json_of(&output);
    assert_eq!(
        (&json["complete"], json["skipped"][0]["rival"].as_str()),
        (&json!(true), Some("absent"))
    );
    let subject = |subject: &str| {
        let version = env!("CARGO_PKG_VERSION");
        json!({ "rival": "own", "subject": subject, "version": version, "error": null })
    };
    assert_eq!(json["subjects"], json!([subject("memory"), subject("file")]));
    let output = rivals_in(checkout.path(), &["check", "moka"]);
    assert_eq!(output.status.code(), Some(FAILURE));
    let message = "haypile: unknown rival 'moka' (known: absent, crash, garbage, own)\n";
    assert_eq!(text(output.stderr), message);
}

#[test]
fn targets_are_made_once_and_what_came_of_it_is_said() {
    let checkout = checkout();
    // What is made last is the runner that was not there.
    let makefile = "all:\n\t@echo making all >> log\n\
                    absent:\n\t@echo making absent >> log; ln -s ../own/own rivals/absent/absent\n\
                    bad:\n\t@echo it is bad; false\n";
    fs::write(checkout.path().join("Makefile"), makefile).unwrap();
    let root = checkout.path().display();
    let output = rivals_in(checkout.path(), &["install", "own", "crash"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(output.stdout), format!("make -C {root} all\ncrash: runs\nown: runs\n"));
    let log = || fs::read_to_string(checkout.path().join("log")).unwrap();
    assert_eq!(log(), "making all\n");
    let output = rivals_in(checkout.path(), &["install"]);
    assert_eq!(output.status.code(), Some(NEGATIVE));
    assert_eq!(log(), "making all\nmaking absent\nmaking all\n");
    let said = text(output.stdout);
    // It runs, and what it lists is somebody else's.
    let wrong = format!("it does not list 'absent', which {root}/rivals/absent/rival.toml names");
    let absent = format!("absent: {wrong}; run: haypile rivals install absent\n");
    let made = format!("make -C {root} absent\nmake -C {root} all\n{absent}crash: runs\n");
    assert!(said.starts_with(&made), "{said}");

    add(checkout.path(), "bad", &["bad"], None, "bad");
    let output = rivals_in(checkout.path(), &["install", "bad", "own"]);
    assert_eq!(output.status.code(), Some(FAILURE));
    assert_eq!(text(output.stdout), format!("make -C {root} bad\nit is bad\nmake -C {root} all\n"));
    let message = text(output.stderr);
    let end = "haypile: make could not install bad; its output above names the cause\n";
    assert!(message.ends_with(end), "{message}");
}

#[test]
fn a_manifest_that_is_wrong_is_named_with_its_line() {
    let checkout = checkout();
    let manifest = path_in(&checkout, "rivals/own/rival.toml");
    let content = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, content.replace("language", "langauge")).unwrap();
    let output = rivals_in(checkout.path(), &["list"]);
    assert_eq!(output.status.code(), Some(FAILURE));
    let message = text(output.stderr);
    let start = format!(
        "haypile: {manifest}, line 2: the manifest of a rival is wrong: unknown field `langauge`, expected one of"
    );
    assert!(message.starts_with(&start), "{message}");
}

#[test]
fn ctrl_c_shows_what_is_finished_and_kills_the_runner() {
    let checkout = TempDir::new().unwrap();
    let pipe = path_in(&checkout, "pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &*pipe, kind, mode, 0).unwrap();
    let runner = hanging(&checkout, &pipe);
    add(checkout.path(), "slow", &["hanging"], Some(&format!("exec {runner} \"$@\"")), "all");
    let mut command = haypile(&["rivals", "check", "--checkout"]);
    let child = command.arg(checkout.path()).env("TMPDIR", checkout.path()).spawn().unwrap();
    // The runner has been started, long after the program began to listen to Ctrl-C.
    let mut pid = String::new();
    BufReader::new(fs::File::open(&pipe).unwrap()).read_line(&mut pid).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(output.stdout), "");
    let message = "haypile: the check of the rivals was interrupted; results of 0 of 3 measurements were printed\n";
    assert_eq!(text(output.stderr), message);
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    while rustix::process::test_kill_process(pid).is_ok() {
        std::thread::yield_now();
    }
}
