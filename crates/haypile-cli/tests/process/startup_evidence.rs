//! Known answers for the grounds of a verdict on a start: files in use, traces, probes, and an `off` that is off.

use std::fs;
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{NEGATIVE, haypile};

/// A folder on the disk of the build: in a file system in memory, nothing can be dropped.
fn folder() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn run(directory: &TempDir, options: &[&str], command: &[&str]) -> Output {
    let place = directory.path().to_str().unwrap();
    let first = ["lab", "startup", "--json", "--blocks", "1", "--directory", place];
    haypile(&[&first, options, &["--"], command].concat()).output().unwrap()
}

#[track_caller]
fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Timed samples of a condition, in a state of the page cache.
fn timed<'a>(json: &'a Value, condition: &str, page_cache: &str) -> Vec<&'a Value> {
    let samples = json["samples"].as_array().unwrap().iter();
    let is_it = |sample: &&Value| {
        sample["subject"]["name"] == condition
            && sample["parameters"]["page_cache"] == page_cache
            && sample["parameters"]["watched"].is_null()
    };
    samples.filter(is_it).collect()
}

/// The comparison of the traced starts of the only command.
fn explained(json: &Value) -> &Value {
    &json["cases"][0]["explained"]
}

/// The calls of a kind, without the cache and with it.
#[track_caller]
fn calls(json: &Value, kind: &str) -> (u64, u64) {
    let all = explained(json)["calls"].as_array().unwrap_or_else(|| panic!("{json}"));
    let found = all.iter().find(|it| it["call"] == kind).unwrap();
    (found["other"].as_u64().unwrap(), found["with"].as_u64().unwrap())
}

#[test]
fn files_that_no_start_reads_do_not_decide_whether_it_is_cold() {
    let directory = folder();
    let unread = folder();
    fs::write(unread.path().join("big"), vec![7; 64 << 20]).unwrap();
    let setup = "head -c 8388608 /dev/urandom > read";
    let options = ["--off", "X=1", "--cold", "--setup", setup];
    let command = ["sh", "-c", "cat read > /dev/null"];
    let cold_bytes = |more: &[&str]| {
        let output = run(&directory, &[&options[..], more].concat(), &command);
        let json = json(&output);
        let cold = timed(&json, "with", "cold");
        assert_eq!((output.status.code(), cold.len()), (Some(0), 1), "{json}");
        let verdict = json["cases"][1]["cold"]["verdict"].clone();
        (cold[0]["counts"]["cold_file_bytes"].as_u64().unwrap(), verdict)
    };
    let alone = cold_bytes(&[]);
    // What it reads, the programs that read it, and their libraries.
    assert!((8 << 20..32 << 20).contains(&alone.0), "{alone:?}");
    let diluted = cold_bytes(&["--cold-path", unread.path().to_str().unwrap()]);
    assert_eq!(diluted, alone);
}

#[test]
fn a_cold_start_reads_from_the_disk_and_the_warm_one_after_it_does_not() {
    let directory = folder();
    let setup = "head -c 8388608 /dev/urandom > read";
    let options = ["--off", "X=1", "--cold", "--setup", setup, "--blocks", "3"];
    let place = directory.path().to_str().unwrap();
    let first = ["lab", "startup", "--json", "--directory", place];
    let command = ["--", "sh", "-c", "cat read > /dev/null"];
    let output = haypile(&[&first[..], &options, &command].concat()).output().unwrap();
    let json = json(&output);
    let read = |condition: &str, cache: &str| -> Vec<u64> {
        let all = timed(&json, condition, cache);
        all.iter().map(|it| it["counts"]["disk_read_bytes"].as_u64().unwrap()).collect()
    };
    for condition in ["with", "with again", "off"] {
        let (warm, cold) = (read(condition, "warm"), read(condition, "cold"));
        assert_eq!((warm.len(), cold.len()), (3, 3));
        // In a container, the kernel may not tell of reads from the disk.
        if cold.iter().any(|bytes| *bytes > 0) {
            assert!(cold.iter().all(|bytes| *bytes >= 8 << 20), "{condition}: {cold:?}");
            assert!(warm.iter().all(|bytes| *bytes < 1 << 20), "{condition}: {warm:?}");
        }
    }
    // The blocks have both: what the machine does in the meantime reaches both.
    let samples = json["samples"].as_array().unwrap().iter();
    let timed = samples.filter(|it| it["parameters"]["watched"].is_null());
    let order: Vec<&str> =
        timed.map(|it| it["parameters"]["page_cache"].as_str().unwrap()).collect();
    assert_eq!(order[..6], ["warm", "warm", "warm", "cold", "cold", "cold"]);
    assert_eq!(order[6..9], ["warm", "warm", "warm"]);
}

#[test]
fn the_calls_that_a_cache_saves_are_counted_and_placed() {
    let directory = folder();
    let setup =
        "mkdir -p tree with; for i in $(seq 300); do mkdir tree/$i; done; echo x > with/index";
    let options = ["--with", "MODE=on", "--off", "MODE=off", "--setup", setup];
    let script = "if [ $MODE = on ]; then cat with/index; else ls -R tree; fi > /dev/null";
    let output = run(&directory, &options, &["sh", "-c", script]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let (off, with) = calls(&json, "getdents");
    // Each folder is read until nothing more comes.
    assert!((602..620).contains(&off) && with < 10, "{off} {with}");
    let found = explained(&json)["calls"].as_array().unwrap();
    let found = found.iter().find(|it| it["call"] == "getdents").unwrap();
    assert_eq!(found["below"], "{scratch}/tree", "{found}");
    let only = &explained(&json)["only_with"];
    let files = only["first"].as_array().unwrap();
    assert!(files.iter().any(|it| it == "{scratch}/with/index"), "{only}");
    let programs = explained(&json)["only_other"]["programs"].as_array().unwrap();
    assert!(programs.iter().any(|it| it.as_str().unwrap().ends_with("/ls")), "{programs:?}");
    assert_eq!(explained(&json)["own_cache"].as_array().unwrap().len(), 0);
}

#[test]
fn a_trace_goes_through_forks_threads_and_signals_that_have_no_name() {
    let directory = folder();
    // A signal of real time, a child that stops and goes on, and a command that is not there.
    let script = "trap : 40; kill -40 $$; (kill -STOP $(sh -c 'echo $PPID') & sleep .1; kill -CONT 0) 2>/dev/null; \
                  /no/such 2>/dev/null; (cat given > /dev/null; exit 3); cat given > /dev/null & wait";
    let options = ["--off", "X=1", "--setup", "echo x > given", "--timeout", "20"];
    let output = run(&directory, &options, &["bash", "-c", script]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    assert!(explained(&json).is_object(), "{}", String::from_utf8_lossy(&output.stderr));
    let (off, with) = calls(&json, "read");
    assert!(off >= 2 && with >= 2, "{off} {with}");
}

#[test]
fn a_traced_program_ends_as_any_other_and_its_daemons_are_followed() {
    let directory = folder();
    // Asked to end, it works on for a while; a daemon reads after the command has exited.
    let script = "trap 'echo x >> ended; exit' TERM; touch up; while :; do sleep .01; done";
    let options = [
        "--off",
        "X=1",
        "--ready",
        "file:up",
        "--prepare",
        "rm -f up",
        "--grace",
        "20",
        "--conclude",
        "test -s ended && rm ended",
    ];
    let output = run(&directory, &options, &["sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    assert!(explained(&json(&output)).is_object(), "{}", String::from_utf8_lossy(&output.stderr));
    // A shell waits for its children by their signal, which the tracer blocks for itself.
    let blocked = "grep -q 'SigBlk:.*0000000000000000' /proc/self/status || exit 1; \
                   for i in 1 2 3 4; do cat /dev/null & done; wait";
    let output = run(&directory, &["--off", "X=1", "--timeout", "3"], &["sh", "-c", blocked]);
    assert!(explained(&json(&output)).is_object(), "{}", String::from_utf8_lossy(&output.stderr));
    let daemon = "(setsid sh -c 'sleep .2; ls tree/. > /dev/null' &)";
    let options = ["--with", "M=1", "--off", "M=2", "--setup", "mkdir tree"];
    let output = run(&directory, &options, &["sh", "-c", daemon]);
    let (off, with) = calls(&json(&output), "getdents");
    assert!(off >= 2 && with >= 2, "{off} {with}");
    // One that never ends is ended.
    let forever = "(setsid sh -c 'while :; do sleep .05; done' &)";
    let output = run(&directory, &options, &["sh", "-c", forever]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    assert!(explained(&json(&output)).is_object());
}

#[test]
fn an_off_with_a_cache_of_its_own_is_told() {
    let directory = folder();
    let script = "[ -s $STORE ] || head -c 100000 /dev/urandom > $STORE; cat $STORE > /dev/null";
    let options = ["--with", "STORE=with", "--off", "STORE=none.bin"];
    let output = run(&directory, &options, &["sh", "-c", script]);
    let json = json(&output);
    let own = explained(&json)["own_cache"].as_array().unwrap();
    assert!(own[0].as_str().unwrap().contains("start of off wrote: {scratch}/none.bin"), "{own:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "warning: the start of sh without a cache may use one: off opens what an earlier start"
        ),
        "{said}"
    );
    // Removed before each start, there is none.
    let removed = [&options[..], &["--prepare", "rm -f none.bin"]].concat();
    let output = run(&directory, &removed, &["sh", "-c", script]);
    let json = self::json(&output);
    assert_eq!(explained(&json)["own_cache"].as_array().unwrap().len(), 0, "{json}");
}

#[test]
fn commands_of_their_own_tell_the_conditions_apart() {
    let directory = folder();
    let place = directory.path().to_str().unwrap();
    let setup = "head -c 3000000 /dev/zero > big; : > small";
    let first =
        ["lab", "startup", "--json", "--blocks", "1", "--directory", place, "--setup", setup];
    let commands = ["--with-command", "cat small", "--off-command", "sh -c 'cat big'"];
    let output = haypile(&[&first[..], &commands].concat()).output().unwrap();
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let read = |condition: &str| {
        timed(&json, condition, "warm")[0]["counts"]["read_bytes"].as_u64().unwrap()
    };
    assert!(read("off") >= 3_000_000 && read("with") < 1_000_000);
    assert_eq!(json["cases"][0]["case"], "cat");
    // One of them replaces the command of its condition only.
    let output =
        run(&directory, &["--setup", setup, "--off-command", "cat big"], &["cat", "small"]);
    let json = self::json(&output);
    let read = |condition: &str| {
        timed(&json, condition, "warm")[0]["counts"]["read_bytes"].as_u64().unwrap()
    };
    assert!(read("off") >= 3_000_000 && read("with") < 1_000_000);
    let alone = haypile(&["lab", "startup", "--off-command", "cat big"]).output().unwrap();
    assert!(String::from_utf8_lossy(&alone.stderr).contains("write the other command after --"));
}

#[test]
fn a_command_that_asks_whether_it_is_ready_is_counted_apart_and_rests() {
    let directory = folder();
    // Each run works for a while, and only the fourth finds it ready.
    let ask = "n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done; echo >> asked; \
               [ $(wc -l < asked) -ge 5 ]";
    let ready = format!("command:{ask}");
    let options = ["--off", "X=1", "--ready", &ready, "--prepare", "rm -f asked"];
    let output = run(&directory, &options, &["sleep", "1000"]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let with = timed(&json, "with", "warm")[0];
    let count = |name: &str| with["counts"][name].as_u64().unwrap();
    let (asked_ns, wall_ns) = (count("probes_cpu_ns"), with["wall_ns"].as_u64().unwrap());
    assert!(asked_ns > 0 && with["cpu_ns"].as_u64().unwrap() < asked_ns, "{with}");
    // It rests three times as long as it runs, so that its share is a quarter; the first run waits for nobody.
    assert!(asked_ns < wall_ns / 2, "{asked_ns} of {wall_ns}");
    let within_ns = count("ready_within_ns");
    assert!(within_ns > 0 && within_ns < wall_ns, "{within_ns} of {wall_ns}");
}

#[test]
fn a_program_that_ends_between_two_questions_was_ready() {
    let directory = folder();
    let ready = "command:sleep .1; test -e done";
    let options = ["--off", "X=1", "--ready", ready, "--prepare", "rm -f done"];
    let output = run(&directory, &options, &["touch", "done"]);
    assert_eq!(output.status.code(), Some(0), "{}", json(&output));
    // One that was never ready still is an error.
    let output = run(&directory, &options, &["true"]);
    assert_eq!(output.status.code(), Some(NEGATIVE), "{}", json(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("before it was ready"), "{text}");
}

#[test]
fn a_program_that_writes_its_cache_at_its_end_gets_the_time_for_it() {
    let directory = folder();
    let script =
        "trap 'sleep 1.5; echo x > stored; exit' TERM; touch up; while :; do sleep .01; done";
    let options = [
        "--off",
        "X=1",
        "--ready",
        "file:up",
        "--prepare",
        "rm -f up",
        "--cache",
        "{scratch}/stored",
    ];
    let short = run(&directory, &options, &["sh", "-c", script]);
    let text = String::from_utf8_lossy(&short.stdout).into_owned();
    assert!(text.contains("the cache is empty after it was primed"), "{text}");
    let long = [&options[..], &["--grace", "20"]].concat();
    let output = run(&directory, &long, &["sh", "-c", script]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // It is there now, and the program never reads it.
    assert!(text.contains("never read") || output.status.code() == Some(0), "{text}");
}

#[test]
fn a_failure_names_the_variables_that_were_taken_away() {
    let directory = folder();
    let place = directory.path().to_str().unwrap();
    let first = ["lab", "startup", "--json", "--directory", place, "--off", "X=1"];
    let command = ["--", "sh", "-c", "test -n \"$NODE_EXTRA_CA_CERTS\""];
    let start = |more: &[&str]| {
        let mut command = haypile(&[&first[..], more, &command].concat());
        command.env("NODE_EXTRA_CA_CERTS", "/etc/ssl/x.pem").env("AAA", "1");
        command.output().unwrap()
    };
    let text = String::from_utf8_lossy(&start(&[]).stdout).into_owned();
    let at = text.find("its environment lacks").unwrap_or_else(|| panic!("{text}"));
    let rest = &text[at..];
    assert!(rest.find("NODE_EXTRA_CA_CERTS").unwrap() < rest.find("AAA").unwrap_or(usize::MAX));
    assert!(rest.contains("--keep-env"), "{rest}");
    // One that has not run has not missed any.
    let early = String::from_utf8_lossy(&start(&["--ready", "file:/"]).stdout).into_owned();
    assert!(early.contains("ready before the start") && !early.contains("lacks"), "{early}");
    let kept = start(&["--blocks", "1", "--env", "NODE_EXTRA_CA_CERTS"]);
    assert_eq!(kept.status.code(), Some(0), "{}", String::from_utf8_lossy(&kept.stdout));
}

/// Presets whose programs are large are tried where they are installed.
#[test]
fn every_preset_measures_what_it_says_where_its_program_is() {
    let directory = folder();
    let place = directory.path().to_str().unwrap();
    for preset in ["python", "fontconfig", "gstreamer", "gtk", "node", "appcds", "firefox"] {
        let options = ["lab", "startup", "--json", "--blocks", "1", "--directory", place];
        let output = haypile(&[&options[..], &["--preset", preset]].concat()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let missing = said.lines().find(|line| line.contains("not measured:"));
        if let Some(missing) = missing.filter(|it| it.contains("; ")) {
            // The small ones are installed where nothing may be skipped.
            let is_small = ["python", "gstreamer"].contains(&preset);
            let is_required = std::env::var_os("HAYPILE_REQUIRE_RIVALS").is_some();
            assert!(!(is_small && is_required), "{missing}");
            eprintln!("skipped: {missing}");
            continue;
        }
        let json = json(&output);
        let text = json.to_string();
        if preset == "node" && text.contains("has no cache of compiled modules") {
            eprintln!("skipped: {preset}: Node.js 22.1 or later is not installed");
            continue;
        }
        assert_eq!(output.status.code(), Some(0), "{preset}: {said}{json:#}");
        assert!(!timed(&json, "with", "warm").is_empty(), "{preset}: {json}");
        let own = &explained(&json)["own_cache"];
        assert_eq!(own.as_array().map(Vec::len), Some(0), "{preset}: {own}");
    }
}

#[test]
fn a_planted_gain_is_found_and_drawn_as_it_was_measured() {
    let directory = folder();
    let place = directory.path().to_str().unwrap();
    let svg = directory.path().join("gain.svg");
    let options = [
        "lab",
        "startup",
        "--json",
        "--blocks",
        "6",
        "--directory",
        place,
        "--with",
        "PAUSE=0",
        "--off",
        "PAUSE=0.05",
        "--timeline",
        svg.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "sleep $PAUSE",
    ];
    let output = haypile(&options).output().unwrap();
    let json = json(&output);
    let differences = json["cases"][0]["differences"].as_array().unwrap();
    let is_it = |it: &&Value| it["condition"] == "off" && it["figure"] == "ready_ms";
    let found = differences.iter().find(is_it).unwrap();
    // A sleep takes at least its time; a busy machine adds to both.
    assert!(found["median_difference"].as_f64().unwrap() > 30.0, "{found}");
    let drawn = json["samples"].as_array().unwrap().iter();
    let drawn: Vec<&Value> = drawn.filter(|it| it["timeline"].is_object()).collect();
    assert_eq!(drawn.len(), 2, "one of each condition");
    let text = fs::read_to_string(svg).unwrap();
    assert!(text.contains("median of 6: ready") && text.contains("; saved +"), "{text}");
}
