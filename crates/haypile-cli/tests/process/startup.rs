//! Starts with and without a cache: by counts and outcomes, and not by times.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, INTERRUPTED, NEGATIVE, haypile, path_in, text};

/// The longest wait for something that happens soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder on the disk of the build: in a file system in memory, reading leaves no trace.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Arguments for a shell that ignores these and is found by them among all processes.
fn marker() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{}.{number}", 100_000_000 + std::process::id())
}

/// Whether a process has this among its arguments.
fn is_running(marker: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut commands = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    commands.any(|command| {
        let mut words = command.split(|byte| *byte == 0);
        // The laboratory itself has the whole command in its arguments.
        words.next().is_some_and(|first| !first.ends_with(b"haypile"))
            && words.any(|word| word == marker.as_bytes())
    })
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn startup(directory: &TempDir, options: &[&str], command: &[&str]) -> Command {
    let place = directory.path().to_str().unwrap();
    let first = ["lab", "startup", "--json", "--directory", place];
    // One block is enough where a test asks for no other number.
    let blocks = if options.contains(&"--blocks") { &[][..] } else { &["--blocks", "1"] };
    haypile(&[&first, blocks, options, &["--"], command].concat())
}

fn run(directory: &TempDir, options: &[&str], command: &[&str]) -> Output {
    startup(directory, options, command).output().unwrap()
}

#[track_caller]
fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Measured samples of a condition.
fn of<'a>(json: &'a Value, condition: &str) -> Vec<&'a Value> {
    let samples = json["samples"].as_array().unwrap().iter();
    let is_it = |sample: &&Value| {
        sample["subject"]["name"] == condition && sample["parameters"]["watched"].is_null()
    };
    samples.filter(is_it).collect()
}

#[track_caller]
fn count(sample: &Value, name: &str) -> u64 {
    let number = &sample["counts"][name];
    number.as_u64().unwrap_or_else(|| panic!("no {name}: {sample}"))
}

/// The one error that all samples have.
#[track_caller]
fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(NEGATIVE), "{}", String::from_utf8_lossy(&output.stderr));
    let json = json(output);
    let mut samples = json["samples"].as_array().unwrap().iter();
    let error = samples.find_map(|sample| sample["error"].as_str());
    error.unwrap_or_else(|| panic!("{json}")).to_owned()
}

/// The scratch folders are gone.
#[track_caller]
fn assert_nothing_left(directory: &TempDir) {
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().flatten().map(|it| it.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("haypile-")), "{left:?}");
}

#[test]
fn what_a_start_reads_counts_in_every_condition_daemons_included() {
    let directory = folder();
    // Without its cache it reads 4 MiB; with the cache 1 MiB, by a daemon that has left its parent.
    let command = "if [ $MODE = off ]; then cat big > /dev/null; else \
                   [ -e stored ] || head -c 1048576 big > stored; \
                   (setsid sh -c 'cat stored > /dev/null' &) ; fi";
    let options = [
        "--with",
        "MODE=on",
        "--off",
        "MODE=off",
        "--clear",
        "rm -f stored",
        "--cache",
        "{scratch}/stored",
        "--setup",
        "head -c 4194304 /dev/zero > big",
        "--name",
        "reader",
    ];
    let output = run(&directory, &options, &["sh", "-c", command]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    assert_eq!(json["complete"], true);
    let reads = |condition: &str| count(of(&json, condition)[0], "read_bytes");
    // Programs and their libraries are mapped, or a few KiB.
    let about = |bytes: u64| bytes..bytes + (256 << 10);
    assert!(about(4 << 20).contains(&reads("off")), "{}", reads("off"));
    assert!(about(1 << 20).contains(&reads("with")), "{}", reads("with"));
    assert!(about(1 << 20).contains(&reads("with again")), "{}", reads("with again"));
    assert!(about(2 << 20).contains(&reads("fill")), "{}", reads("fill"));
    for condition in ["with", "with again", "fill", "off"] {
        let sample = of(&json, condition)[0];
        assert!(sample["cpu_ns"].as_u64().unwrap() > 0 && sample["wall_ns"].as_u64().unwrap() > 0);
        assert!(sample["memory_bytes"].as_u64().unwrap() > 100_000, "{sample}");
        assert!(count(sample, "minor_faults") > 0);
    }
    let watched = json["samples"].as_array().unwrap().iter();
    let watched: Vec<&Value> = watched.filter(|it| it["timeline"].is_object()).collect();
    assert_eq!(watched.len(), 3);
    assert_nothing_left(&directory);
}

#[test]
fn too_few_blocks_have_no_verdict_and_six_have_one() {
    let directory = folder();
    let command = ["sh", "-c", "[ $MODE = on ] || head -c 3000000 /dev/zero > /dev/null"];
    let conditions = ["--with", "MODE=on", "--off", "MODE=off"];
    let of_blocks = |blocks: &str| {
        let output = run(&directory, &[&conditions[..], &["--blocks", blocks]].concat(), &command);
        json(&output)["cases"][0]["differences"].as_array().unwrap().clone()
    };
    let read = |differences: &[Value], condition: &str| {
        let mut found = differences.iter();
        let is_it = |it: &&Value| it["figure"] == "read_mib" && it["condition"] == condition;
        found.find(is_it).unwrap().clone()
    };
    let five = of_blocks("5");
    let off = read(&five, "off");
    assert!(off["interval"].is_null() && off["significant"].is_null(), "{off}");
    let six = of_blocks("6");
    let off = read(&six, "off");
    assert_eq!((off["pairs"].as_u64(), off["significant"].as_bool()), (Some(6), Some(true)));
    assert!(off["interval"][0].as_f64().unwrap() > 2.8, "{off}");
    assert_eq!(read(&six, "with again")["significant"], false);
}

#[test]
fn commands_that_crash_or_hang_are_errors_and_end() {
    let directory = folder();
    let conditions = ["--off", "X=1"];
    let ends = |command: &str| error(&run(&directory, &conditions, &["sh", "-c", command]));
    let crashed = ends("echo oh >&2; exit 3");
    assert!(crashed.contains("exit status: 3") && crashed.contains("oh"), "{crashed}");
    assert!(ends("kill -SEGV $$").contains("signal: 11"));
    let missing = error(&run(&directory, &conditions, &["/no/such/program"]));
    assert!(missing.contains("cannot be started"), "{missing}");
    let marker = marker();
    let options = [&conditions[..], &["--timeout", "0.3"]].concat();
    // It ignores the request to end, as do its children.
    let command = format!("trap '' TERM; sleep {marker} & sleep {marker} & wait; sleep {marker}");
    let hung = error(&run(&directory, &options, &["sh", "-c", &command]));
    assert!(hung.contains("not ready after"), "{hung}");
    assert!(!is_running(&marker));
    assert_nothing_left(&directory);
}

#[test]
fn a_probe_that_hangs_before_the_start_takes_no_longer_than_a_start() {
    let directory = folder();
    let marker = marker();
    let ready = format!("command:sleep {marker}");
    let options = ["--off", "X=1", "--timeout", "0.3", "--ready", &ready];
    let error = error(&run(&directory, &options, &["true"]));
    assert!(error.contains("took longer than 0.3 s before the start"), "{error}");
    assert!(!is_running(&marker));
}

#[test]
fn a_supervisor_that_is_stopped_is_killed_with_its_tree() {
    let directory = folder();
    let marker = marker();
    let stop = format!("kill -STOP $PPID; sleep {marker}");
    let begin = Instant::now();
    let error = error(&run(&directory, &["--off", "X=1"], &["sh", "-c", &stop]));
    assert!(error.contains("the supervisor was stopped"), "{error}");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert!(!is_running(&marker));
    let mut child = startup(&directory, &["--off", "X=1"], &["sh", "-c", &stop]);
    let child = child.spawn().unwrap();
    wait_until("it never ran", || is_running(&marker));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(INTERRUPTED));
    assert!(!is_running(&marker));
    assert_nothing_left(&directory);
}

#[test]
fn a_supervisor_that_is_killed_leaves_no_process() {
    let directory = folder();
    let marker = marker();
    // Daemons as well, and those of its own session.
    let kill =
        format!("(setsid sleep {marker} &); setsid sleep {marker} & kill -9 $PPID; sleep {marker}");
    let killed = || startup(&directory, &["--off", "X=1"], &["sh", "-c", &kill]);
    let error = error(&killed().output().unwrap());
    assert!(error.contains("signal: 9"), "{error}");
    assert!(!is_running(&marker));
    assert_nothing_left(&directory);
    // A user who may make no control group.
    let nobody = 65_534;
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    if haypile(&["--version"]).uid(nobody).status().is_ok_and(|status| status.success()) {
        let error = self::error(&killed().uid(nobody).output().unwrap());
        assert!(error.contains("signal: 9"), "{error}");
        assert!(!is_running(&marker));
    }
}

#[test]
fn what_forks_without_end_is_bounded_and_killed() {
    let directory = folder();
    let marker = marker();
    let options = ["--off", "X=1", "--max-processes", "40"];
    let command = format!("while :; do sleep {marker} & done");
    let error = error(&run(&directory, &options, &["sh", "-c", &command]));
    assert!(error.contains("more than 40"), "{error}");
    assert!(!is_running(&marker));
    // A bomb is noticed while it is small; this one has an end, should it not be.
    let bomb = format!(
        "i=0; while [ $i -lt 2000 ]; do i=$((i + 1)); sleep {marker} & echo >> begun; done; wait"
    );
    let count = path_in(&directory, "begun");
    let bomb = bomb.replace("begun", &count);
    let error = self::error(&run(&directory, &options, &["sh", "-c", &bomb]));
    assert!(error.contains("more than 40"), "{error}");
    let begun = fs::read_to_string(count).unwrap().lines().count();
    assert!(begun < 600, "{begun}");
    assert!(!is_running(&marker));
}

#[test]
fn output_of_any_kind_is_read_and_a_line_of_it_can_be_the_signal() {
    let directory = folder();
    let marker = marker();
    let lines = format!(
        "head -c 300000 /dev/urandom; echo; echo 'starting' >&2; printf 'port: '; echo 7; sleep {marker}"
    );
    let options = ["--off", "X=1", "--ready", "line:^port: [0-9]+$"];
    let output = run(&directory, &options, &["sh", "-c", &lines]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let with = of(&json, "with")[0];
    assert!(with["cpu_ns"].as_u64().unwrap() > 0);
    assert!(
        count(with, "cpu_by_group") + count(with, "cpu_by_clocks") == 1,
        "the tree still lived"
    );
    assert!(!is_running(&marker));
    let never = [&options[..3], &["line:^port$", "--timeout", "0.3"]].concat();
    let error = error(&run(&directory, &never, &["sh", "-c", &lines]));
    assert!(error.contains("not ready after 0.3 s (line:^port$)"), "{error}");
    assert!(!is_running(&marker));
    let last = [&options[..3], &["line:^ready$"]].concat();
    let output = run(&directory, &last, &["sh", "-c", "echo not; printf ready"]);
    assert_eq!(output.status.code(), Some(0), "{}", self::json(&output));
}

#[test]
fn signals_from_outside_are_seen_and_must_not_be_there_before() {
    let directory = folder();
    let marker = marker();
    let options = ["--off", "X=1", "--ready", "file:{scratch}/is ready"];
    let slow = format!("touch 'is ready'; sleep {marker}");
    // The file is still there at the second start.
    let error = error(&run(&directory, &options, &["sh", "-c", &slow]));
    assert!(error.contains("ready before the start") && error.contains("is ready"), "{error}");
    let removed = [&options[..], &["--prepare", "rm -f 'is ready'"]].concat();
    let output = run(&directory, &removed, &["sh", "-c", &slow]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    let relative = ["--off", "X=1", "--ready", "file:is ready", "--prepare", "rm -f 'is ready'"];
    let output = run(&directory, &relative, &["sh", "-c", &slow]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    let by_command =
        ["--off", "X=1", "--ready", "command:test -e 'is ready'", "--prepare", "rm -f 'is ready'"];
    let output = run(&directory, &by_command, &["sh", "-c", &slow]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    assert!(!is_running(&marker));
    let gone = run(&directory, &removed, &["true"]);
    assert!(text(gone.stdout).contains("before it was ready"));
}

#[test]
fn a_server_is_ready_when_its_port_answers() {
    let directory = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let ready = format!("port:{}", address.port());
    let address = address.to_string();
    let options = ["--off", "X=1", "--ready", &ready, "--settle", "0.1"];
    let proxy = env!("CARGO_BIN_EXE_haypile");
    let command = [
        proxy,
        "proxy",
        "--cache",
        "memory:size=1MiB",
        "--origin",
        "http://127.0.0.1:9",
        "--listen",
        &address,
    ];
    let error = error(&run(&directory, &options, &command));
    assert!(error.contains("ready before the start"), "{error}");
    drop(taken);
    let output = run(&directory, &options, &command);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let with = of(&json, "with")[0];
    assert!(count(with, "settled_ns") >= with["wall_ns"].as_u64().unwrap());
    assert!(TcpListener::bind(&address).is_ok(), "the server is gone");
}

#[test]
fn a_parent_that_ignores_its_children_is_named() {
    let directory = folder();
    // Debian's shell cannot ignore that signal.
    let command = "$SIG{CHLD} = 'IGNORE'; system('head -c 2000000 /dev/zero > /dev/null'); \
                   select(undef, undef, undef, 0.4)";
    let output = run(&directory, &["--off", "X=1"], &["perl", "-e", command]);
    let said = text(output.stderr.clone());
    assert!(said.contains("ignores the end of its children"), "{said}");
    let json = json(&output);
    let incomplete = count(of(&json, "with")[0], "cpu_incomplete");
    let by_group = count(of(&json, "with")[0], "cpu_by_group");
    // The times are those of the control group, or they are said to be incomplete.
    assert!(by_group + incomplete <= 1, "{json}");
}

#[test]
fn a_cache_that_is_not_used_has_no_result() {
    let directory = folder();
    let options = [
        "--off",
        "X=1",
        "--setup",
        "mkdir cache; head -c 100000 /dev/zero > cache/file",
        "--cache",
        "{scratch}/cache",
    ];
    let output = run(&directory, &options, &["true"]);
    let said = text(output.stderr.clone());
    if !said.contains("it is unknown whether the command read them") {
        let error = error(&output);
        assert!(error.contains("never read"), "{error}");
        assert!(of(&json(&output), "off").is_empty());
    }
    let empty = ["--off", "X=1", "--cache", "{scratch}/cache"];
    assert!(error(&run(&directory, &empty, &["true"])).contains("empty after it was primed"));
    let read = run(&directory, &options, &["cat", "cache/file"]);
    assert_eq!(read.status.code(), Some(0), "{}", json(&read));
    assert_eq!(count(of(&json(&read), "off")[0], "left_running"), 0);
    assert!(of(&json(&read), "off")[0]["counts"]["use_verified"].is_null());
    let unverified = [&options[..], &["--verify", "echo why; false"]].concat();
    let error = error(&run(&directory, &unverified, &["cat", "cache/file"]));
    assert!(error.contains("--verify") && error.contains("why"), "{error}");
    let output = ["--off", "X=1", "--verify", "grep -q 'x y'"];
    assert_eq!(run(&directory, &output, &["echo", "x y"]).status.code(), Some(0));
}

#[test]
fn with_is_measured_after_the_command_that_primes_even_where_fill_comes_first() {
    let directory = folder();
    let options = [
        "--clear",
        "rm -f {scratch}/primed",
        "--prime",
        "touch {scratch}/primed",
        "--verify",
        "test -e {scratch}/primed",
        "--blocks",
        "3",
    ];
    let output = run(&directory, &options, &["true"]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    assert_eq!(of(&json(&output), "with").len(), 3);
}

#[test]
fn a_folder_with_a_blank_is_refused_and_nothing_is_removed() {
    let directory = folder();
    let (blank, other) = (directory.path().join("a b"), directory.path().join("a"));
    fs::create_dir_all(&blank).unwrap();
    fs::write(&other, "precious").unwrap();
    let blank = blank.to_str().unwrap();
    let options = ["--clear", "rm -rf {scratch}/cache", "--blocks", "1", "--directory", blank];
    let words = [&["lab", "startup"][..], &options[..], &["--", "true"]].concat();
    let output = haypile(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(text(output.stderr).contains("--directory"));
    let mut refused = haypile(&["lab", "startup", "--off", "X=1", "--", "true"]);
    assert_eq!(refused.env("TMPDIR", blank).output().unwrap().status.code(), Some(FAILURE));
    assert_eq!(fs::read_to_string(other).unwrap(), "precious");
    assert_eq!(fs::read_dir(blank).unwrap().count(), 0);
}

#[test]
fn a_command_that_empties_nothing_has_no_result_for_fill() {
    let directory = folder();
    let command = "[ -e cache ] || head -c 100000 /dev/zero > cache; cat cache > /dev/null";
    let of_clear = |clear: &str| {
        let options = ["--clear", clear, "--cache", "{scratch}/cache", "--blocks", "2"];
        run(&directory, &options, &["sh", "-c", command])
    };
    let output = of_clear("rm -f cach");
    assert_eq!(output.status.code(), Some(NEGATIVE));
    let json = json(&output);
    for sample in of(&json, "fill") {
        let error = sample["error"].as_str().unwrap_or_default();
        assert!(error.contains("--clear 'rm -f cach' emptied nothing"), "{sample}");
    }
    assert!(of(&json, "with").iter().all(|sample| sample["error"].is_null()), "{json}");
    assert_eq!(of_clear("rm -f cache").status.code(), Some(0));
}

#[test]
fn a_span_without_operations_is_named() {
    let directory = folder();
    for (span, part) in [("file:/no/such/cache", "does not exist"), ("file:/etc/passwd", "passwd")]
    {
        let output = run(&directory, &["--off", "X=1", "--span", span], &["true"]);
        let said = text(output.stderr);
        assert!(said.contains("was not used") && said.contains(part), "{said}");
    }
}

#[test]
fn the_environment_is_clean_and_does_not_leak_into_the_other_condition() {
    let directory = folder();
    let mut clean = startup(&directory, &["--off", "X=1"], &["sh", "-c", "test -z \"$LEAK\""]);
    assert_eq!(clean.env("LEAK", "1").output().unwrap().status.code(), Some(0));
    let mut kept =
        startup(&directory, &["--off", "X=1", "--keep-env"], &["sh", "-c", "test -n \"$LEAK\""]);
    assert_eq!(kept.env("LEAK", "1").output().unwrap().status.code(), Some(0));
    let mut leaking = startup(&directory, &["--off", "LEAK=1", "--keep-env"], &["true"]);
    let output = leaking.env("LEAK", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(text(output.stderr).contains("LEAK=1 of --off is in the environment"));
    let mut known = startup(&directory, &["--off", "X=1", "--env", "CCACHE_DISABLE"], &["true"]);
    let output = known.env("CCACHE_DISABLE", "1").output().unwrap();
    assert!(text(output.stderr).contains("the environment sets CCACHE_DISABLE"));
}

#[test]
fn wrong_arguments_say_what_to_write() {
    let directory = folder();
    for (options, command, part) in [
        (&["--keep-env"][..], &["true"][..], "starts with and without the cache would not differ"),
        (&["--off", "X"], &["true"], "NAME=VALUE"),
        (&["--off", "=1"], &["true"], "NAME=VALUE"),
        (&["--off", "X=1", "--ready", "soon"], &["true"], "known: exit, port:8080"),
        (&["--off", "X=1", "--env", "NOT_SET_AT_ALL"], &["true"], "it is not set"),
        (&["--off", "X=1", "--span", "memory:size=1MiB"], &["true"], "file:PATH"),
        (&["--off", "X=1", "--blocks", "0"], &["true"], "at least 1"),
        (&["--off", "X=1", "--requires", "no-such-program=buy one"], &["true"], "buy one"),
        (&["--preset", "python"], &["true"], "--preset"),
        (&["--preset", "python", "--experiment", "x.toml"], &[], "cannot be used with"),
    ] {
        let output = run(&directory, options, command);
        assert_eq!(output.status.code(), Some(FAILURE), "{options:?}");
        let said = text(output.stderr);
        assert!(said.contains(part), "{options:?}: {said}");
        assert_eq!(text(output.stdout), "");
    }
    let output = run(&directory, &["--off", "X=1", "--setup", "echo no >&2; exit 4"], &["true"]);
    let error = error(&output);
    assert!(error.contains("--setup") && error.contains("exit status: 4: no"), "{error}");
}

#[test]
fn the_span_is_of_all_operations_on_a_cache_by_several_processes() {
    let directory = folder();
    let program = env!("CARGO_BIN_EXE_haypile");
    let cache = path_in(&directory, "cache");
    let set = format!("{program} set file:{cache},size=4MiB");
    // A command that only reads maps the file read-only, and counts nothing.
    let command = format!("{set} a 1 && {set} b 2 && {set} a 3");
    let span = format!("file:{cache}");
    let options = ["--off", "X=1", "--span", &span];
    let output = run(&directory, &options, &["sh", "-c", &command]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let with = of(&json, "with")[0];
    assert_eq!(count(with, "span_operations"), 3, "{with}");
    assert!(count(with, "span_ns") < with["wall_ns"].as_u64().unwrap());
}

#[test]
fn times_go_to_hyperfine_and_come_back() {
    let directory = folder();
    let file = path_in(&directory, "times.json");
    let options =
        ["--off", "X=1", "--blocks", "3", "--name", "nothing", "--export-hyperfine", &file];
    assert_eq!(run(&directory, &options, &["true"]).status.code(), Some(0));
    let output = haypile(&["bench", "--import-hyperfine", &file]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let printed = text(output.stdout);
    assert!(
        printed.contains("nothing, warm, with again") && printed.contains("not paired"),
        "{printed}"
    );
    let good = fs::read(&file).unwrap();
    let failed = run(&directory, &options, &["false"]);
    assert_eq!(failed.status.code(), Some(NEGATIVE));
    assert!(text(failed.stderr).contains("times.json is not written"));
    assert_eq!(fs::read(&file).unwrap(), good);
}

#[test]
fn an_interruption_keeps_what_is_finished_and_ends_the_tree() {
    let directory = folder();
    let (marker, out) = (marker(), path_in(&directory, "rows.jsonl"));
    // The third start hangs.
    let command = format!("echo x >> starts; [ $(wc -l < starts) -lt 5 ] || sleep {marker}");
    let options = ["--off", "X=1", "--blocks", "50", "--out", &out];
    for signal in [Signal::INT, Signal::KILL] {
        let mut child = startup(&directory, &options, &["sh", "-c", &command]);
        let child = child.stdout(Stdio::piped()).spawn().unwrap();
        wait_until("it never hung", || is_running(&marker));
        let rows = fs::read_to_string(&out).unwrap();
        assert!(rows.lines().count() >= 3, "{rows}");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        // After a kill, the supervisor sees its standard input close.
        wait_until("the tree goes on", || !is_running(&marker));
        if signal == Signal::INT {
            assert_eq!(output.status.code(), Some(INTERRUPTED));
            assert!(text(output.stderr).contains("interrupted"));
            assert_nothing_left(&directory);
        }
        fs::remove_file(&out).unwrap();
    }
}

#[test]
fn a_report_has_the_timelines_and_the_answer() {
    let directory = folder();
    let (out, svg) = (path_in(&directory, "rows.jsonl"), path_in(&directory, "course.svg"));
    let options = [
        "--off",
        "MODE=off",
        "--with",
        "MODE=on",
        "--blocks",
        "6",
        "--name",
        "<b>reader",
        "--out",
        &out,
        "--timeline",
        &svg,
    ];
    let command = "[ $MODE = on ] || head -c 30000000 /dev/zero | cat > /dev/null";
    assert_eq!(run(&directory, &options, &["sh", "-c", command]).status.code(), Some(0));
    let drawn = fs::read_to_string(&svg).unwrap();
    assert!(drawn.contains("<svg") && drawn.contains("without the cache (left)"), "{drawn}");
    let page = path_in(&directory, "report.html");
    let output = haypile(&["lab", "report", &out, "--output", &page]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let page = fs::read_to_string(Path::new(&page)).unwrap();
    assert!(page.contains("What a cache saves until the program is ready"));
    assert!(page.contains("timeline") && !page.contains("<b>reader"));
}

#[test]
fn a_timeline_that_cannot_be_written_does_not_keep_results_from_being_printed() {
    let directory = folder();
    let options = ["--off", "MODE=off", "--blocks", "1", "--timeline", "/dev/full"];
    let output = run(&directory, &options, &["sh", "-c", ":"]);
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(text(output.stderr.clone()).contains("/dev/full"), "{output:?}");
    assert!(!json(&output)["samples"].as_array().unwrap().is_empty());
    assert_nothing_left(&directory);
}
