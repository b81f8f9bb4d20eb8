//! Signals that ask the program to end.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cache::Place;
use crate::program::{INTERRUPTED, TINY, haypile, path_in, print, text};

/// Runs the program on a named pipe that the test has partly filled, and interrupts it there.
fn interrupt_while_reading(arguments: &[&str]) -> Output {
    signal_while_reading(haypile(arguments), arguments, &[Signal::INT])
}

/// Runs a command, which is the program with these arguments, on a named pipe that the test has partly filled, and
/// sends it signals there.
fn signal_while_reading(mut command: Command, arguments: &[&str], signals: &[Signal]) -> Output {
    let pipe = PathBuf::from(arguments.iter().find(|argument| argument.ends_with("pipe")).unwrap());
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let child = command.spawn().unwrap();
    // Waits until the program has opened the other end, long after it began to listen to signals.
    let mut writer = File::create(pipe).unwrap();
    writer.write_all(b"key\na\nb\n").unwrap();
    for signal in signals {
        kill_process(Pid::from_child(&child), *signal).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    drop(writer);
    output
}

fn interrupt(child: &Child) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::INT).unwrap();
}

#[test]
fn reading_that_waits_is_left() {
    let commands: [&[&str]; 3] = [&["simulate"], &["advise"], &["trace", "info"]];
    for command in commands {
        let dir = TempDir::new().unwrap();
        let pipe = path_in(&dir, "pipe");
        let output = interrupt_while_reading(&[command, &[&pipe]].concat());
        assert_eq!(
            text(output.stderr),
            "haypile: reading the trace pipe was interrupted; there is no result\n"
        );
        assert_eq!(text(output.stdout), "");
        assert_eq!(output.status.code(), Some(INTERRUPTED), "{command:?}");
    }
}

/// Returns a command that another runs, in its place.
#[cfg(target_os = "linux")]
fn through(other: &[&str], command: &Command) -> Command {
    let mut through = Command::new(other[0]);
    through.args(&other[1..]).arg(command.get_program()).args(command.get_args());
    through.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    through
}

#[test]
#[cfg(target_os = "linux")]
fn signals_end_a_command_as_ctrl_c_does_and_are_its_status() {
    // `timeout` sends its signal twice, with another between them.
    for (signals, status) in [
        (&[Signal::TERM][..], 128 + 15),
        (&[Signal::HUP], 128 + 1),
        (&[Signal::TERM, Signal::CONT, Signal::TERM], 128 + 15),
    ] {
        let dir = TempDir::new().unwrap();
        let pipe = path_in(&dir, "pipe");
        let arguments = ["simulate", "--policy", "lru", "--objects", "2", "--csv", TINY, &pipe];
        // The test itself may run under nohup.
        let command = through(&["env", "--default-signal=HUP"], &haypile(&arguments));
        let output = signal_while_reading(command, &arguments, signals);
        assert_eq!(
            text(output.stderr),
            "haypile: reading the trace pipe was interrupted; there is no result\n"
        );
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(text(output.stdout).lines().count(), 2, "a header and a simulation");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_hang_up_that_was_ignored_stays_ignored() {
    let dir = TempDir::new().unwrap();
    let pipe = path_in(&dir, "pipe");
    let arguments = ["simulate", &pipe];
    // As nohup does.
    let ignoring = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let command = through(&ignoring, &haypile(&arguments));
    let output = signal_while_reading(command, &arguments, &[Signal::HUP, Signal::INT]);
    assert_eq!(output.status.code(), Some(INTERRUPTED), "{}", text(output.stderr));
}

#[test]
fn a_trace_that_is_not_read_is_not_written() {
    let dir = TempDir::new().unwrap();
    let (pipe, target) = (path_in(&dir, "pipe"), path_in(&dir, "target.hpt"));
    let output = interrupt_while_reading(&["trace", "convert", &pipe, &target]);
    assert_eq!(
        text(output.stderr),
        "haypile: reading the trace pipe was interrupted; there is no result\n"
    );
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing but the pipe");
}

#[test]
fn what_is_finished_is_shown() {
    let dir = TempDir::new().unwrap();
    let pipe = path_in(&dir, "pipe");
    let options = ["--policy", "lru", "--objects", "2", "--csv"];
    let output = interrupt_while_reading(&[&["simulate", TINY, &pipe], &options[..]].concat());
    assert_eq!(
        text(output.stderr),
        "haypile: reading the trace pipe was interrupted; there is no result\n"
    );
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    let shown = text(output.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    let [header, line] = lines[..] else { panic!("a header and a simulation: {shown}") };
    assert!(header.starts_with("trace,policy,"));
    assert!(line.starts_with("tiny.csv,lru,objects,2,0.2,"), "{line}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_sweep_shows_the_simulations_that_are_finished() {
    const CELLS: usize = 64;
    let dir = TempDir::new().unwrap();
    let trace = path_in(&dir, "long.hpt");
    let pattern = "uniform:keys=100000";
    print(&["trace", "generate", pattern, "--requests", "1000000", "--output", &trace]);
    let sizes: Vec<String> = (1..=CELLS).map(|at| (at * 1000).to_string()).collect();
    let sizes = sizes.join(",");
    let mut child = haypile(&[
        "simulate",
        &trace,
        "--policy",
        "lru",
        "--objects",
        &sizes,
        "--jobs",
        "3",
        "--csv",
    ])
    .spawn()
    .unwrap();
    // Its own thread, that of signals, that of progress and two of the three jobs: while it reads there are fewer.
    while threads(&child) < 5 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was interrupted");
        thread::yield_now();
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let message = text(output.stderr);
    let finished = message
        .strip_prefix("haypile: interrupted; printed ")
        .and_then(|rest| rest.strip_suffix(" of 64 simulations\n"))
        .unwrap_or_else(|| panic!("{message}"));
    let finished: usize = finished.parse().unwrap();
    assert!(finished < CELLS);
    assert_eq!(text(output.stdout).lines().count(), 1 + finished);
    assert_eq!(output.status.code(), Some(INTERRUPTED));
}

#[test]
fn what_is_loaded_stays() {
    let place = Place::new();
    let mut child = haypile(&["load", &place.url]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut dump = b"{\"type\":\"dump\",\"schema\":1}\n".to_vec();
    // More than a pipe and the program's buffer hold: when all is written, some is loaded.
    let value = "x".repeat(1000);
    for number in 0..500 {
        writeln!(dump, "{{\"key\":\"{number}\",\"value\":\"{value}\"}}").unwrap();
    }
    input.write_all(&dump).unwrap();
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    drop(input);
    let message = text(output.stderr);
    let loaded = message
        .strip_prefix("haypile: the load was interrupted after ")
        .and_then(|rest| rest.split_once(" entries, which are in the cache; "))
        .map_or_else(|| panic!("{message}"), |(loaded, _)| loaded);
    let loaded: usize = loaded.parse().unwrap();
    assert!((300..=500).contains(&loaded), "{loaded}");
    assert_eq!(text(output.stdout), "");
    assert_eq!(output.status.code(), Some(INTERRUPTED));
    assert_eq!(print(&["keys", &place.url]).lines().count(), loaded);
}

/// Returns the number of threads of a process; 0 after its end.
fn threads(child: &Child) -> usize {
    let tasks = Path::new("/proc").join(child.id().to_string()).join("task");
    fs::read_dir(tasks).map_or(0, Iterator::count)
}
