//! Processes on one cache, killed and stopped.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::daemon::Daemon;
use crate::program::{output, passes};

/// By operations, so that a slow machine does as much as a fast one; the time is a bound.
fn check(url: &str, options: &str) {
    passes("processes", url, &format!("--seconds 120 {options}"));
}

#[test]
fn writers_of_a_full_file_are_killed() {
    let options = "--writers 3 --kills 20 --values 0-20KB --steps 15000 --seed 1";
    check("file:{dir}/cache,size=4MiB", options);
}

#[test]
fn writers_of_a_file_of_930_segments_are_killed() {
    let options = "--writers 3 --kills 10 --values 0-120KB --keys 200 --pins 1 --steps 3500 \
                   --deny full --seed 2";
    check("file:{dir}/cache,size=63MiB", options);
}

#[test]
fn writers_of_a_full_file_are_stopped() {
    let options = "--writers 3 --stops 10 --stop-time 200 --values 0-60KB --steps 5000 --seed 3";
    check("file:{dir}/cache,size=8MiB", options);
}

#[test]
fn what_fits_stays() {
    let options = "--writers 3 --kills 10 --pins 0 --live 50% --values 0-9KB --keys 300 \
                   --steps 20000 --seed 4";
    check("file:{dir}/cache,size=4MiB", options);
    let options = "--writers 2 --kills 5 --pins 0 --live 40% --values 100KB-300KB --steps 2000";
    check("file:{dir}/cache,size=16MiB", options);
}

#[test]
fn what_fits_stays_though_values_are_pinned() {
    let options = "--writers 4 --readers 4 --threads 1 --operations set,pin --pins 6 --live 25% \
                   --values 300KB-600KB --steps 3000 --deny full";
    check("file:{dir}/cache,size=16MiB", options);
}

#[test]
fn nobody_is_busy_without_a_stopped_process() {
    let options = "--writers 4 --readers 0 --threads 1 --pins 0 --operations set --values 0-60KB \
                   --steps 20000 --deny busy,full";
    check("file:{dir}/cache,size=8MiB", options);
}

#[test]
fn no_pins_stop_writers() {
    let options = "--writers 2 --readers 4 --threads 1 --operations set,pin --pins 60 --keys 500 \
                   --values 40KB-60KB --steps 4000 --deny full";
    check("file:{dir}/cache,size=63MiB", options);
}

#[test]
fn threads_on_memory() {
    let one_process = "--writers 1 --readers 0 --threads 4 --steps 10000";
    check(
        "memory:size=1MiB,shards=4,policy=lru",
        &format!("{one_process} --values 0-20KB --seed 7"),
    );
    let options = format!("{one_process} --live 50% --pins 0 --values 0-20KB --seed 8");
    check("memory:size=16MiB,shards=4", &options);
}

#[test]
fn levels_over_a_file() {
    let options = "--writers 3 --threads 1 --kills 5 --live 40% --pins 0 --steps 10000 --seed 5";
    check("memory:size=1MiB,stale=50ms+file:{dir}/cache,size=8MiB", options);
    let options = "--writers 3 --threads 1 --kills 5 --values 0-9KB --steps 10000 --seed 6";
    check("memory:size=1MiB,stale=50ms,write=back+file:{dir}/cache,size=8MiB", options);
}

#[test]
fn levels_over_a_file_with_threads() {
    let options = "--writers 3 --threads 4 --operations get,set --keys 10 --values 0-100 --pins 0 \
                   --steps 100000";
    check("memory:size=256KiB,stale=50ms+file:{dir}/cache,size=8MiB", options);
}

#[test]
fn servers() {
    for daemon in [Daemon::redis(), Daemon::memcached()].into_iter().flatten() {
        check(&daemon.url(), "--writers 2 --live 4MB --pins 0 --steps 3000");
    }
}

#[test]
fn a_cache_of_one_process_is_an_error_of_use() {
    assert_eq!(output(&["processes", "memory:"]).status.code(), Some(2));
}

#[test]
fn a_process_that_is_interrupted_leaves_nothing_behind() {
    let place = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_haypile-stress"));
    command.args(["processes", "file:{dir}/cache,size=1MiB", "--seconds", "600", "--json"]);
    let child = command.env("TMPDIR", place.path()).stdout(Stdio::piped()).spawn();
    let child = child.expect("the program starts");
    let is_empty = || fs::read_dir(place.path()).expect("it is there").next().is_none();
    while is_empty() {
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["wrong"], 0, "{report}");
    assert!(is_empty(), "{:?}", fs::read_dir(place.path()));
}
