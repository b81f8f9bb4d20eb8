//! Small experiments of the sources: on our own stores, in levels, and on real servers that they
//! start.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use haypile_measure::job::{self, Ops, Population, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{FAILURE, TRACE, haypile, text};

/// The samples of an experiment without an error, by case and subject.
#[track_caller]
fn measured(arguments: &[&str]) -> Vec<Value> {
    let arguments = [&["lab"], arguments, &["--blocks", "1", "--json"]].concat();
    let output = haypile(&arguments).output().unwrap();
    let said = text(output.stderr.clone());
    let said: Vec<&str> = said.lines().filter(|line| !line.starts_with("warning: ")).collect();
    assert_eq!(said, [""; 0]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let samples = json["samples"].as_array().unwrap().clone();
    for sample in &samples {
        assert_eq!(sample["error"], Value::Null, "{sample}");
    }
    assert!(output.status.success());
    samples
}

fn name(sample: &Value) -> &str {
    sample["subject"]["name"].as_str().unwrap()
}

/// Whether the servers are installed; fails if they are required and missing.
pub(crate) fn has_servers() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |name: &str| std::env::split_paths(&path).any(|at| at.join(name).is_file());
    let all = ["memcached", "redis-server"].into_iter().all(is_there);
    let required = std::env::var("HAYPILE_REQUIRE_RIVALS").is_ok_and(|value| value != "0");
    assert!(all || !required, "memcached and redis-server are not installed");
    if !all {
        eprintln!("skipped: install memcached and redis-server");
    }
    all
}

#[test]
fn ratios_hit_with_every_get_on_servers_too() {
    if !has_servers() {
        return;
    }
    let subjects = "memory,memcached,memcached://127.0.0.1:0,redis,redis:127.0.0.1:0,\
                    memory+memcached:127.0.0.1:0,file+redis";
    let arguments = ["ratio", "1:10 small,1:1 medium", "-n", "2200", "--subjects", subjects];
    let samples = measured(&arguments);
    assert_eq!(samples.len(), 14);
    for sample in &samples {
        let (operations, gets) =
            if sample["case"] == "1:10 small" { (2200, 2000) } else { (2200, 1100) };
        assert_eq!((&sample["operations"], &sample["hits"]), (&operations.into(), &gets.into()));
        assert_eq!(sample["counts"]["verified_after"], 2000);
        let has_server = name(sample) != "memory";
        assert_eq!(sample["server_cpu_ns"].is_u64(), has_server, "{sample}");
    }
}

/// A runner of a memcached of its own, ready to begin; the number of the server's process, and the
/// directories that all of that lives in.
fn ready_runner() -> (Child, BufReader<ChildStdout>, u32, [TempDir; 2]) {
    let [job, place] = [(); 2].map(|()| TempDir::new().unwrap());
    let mut population = Population::new();
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    for number in 0..10 {
        population.push(format!("key-{number}").as_bytes(), 100).unwrap();
        prepare.set(number);
        timed.get(number);
    }
    job::write(job.path(), &Settings::new(1, 1 << 20, 100), &population, &prepare, &[timed])
        .unwrap();
    let mut command = haypile(&["lab", "run-job", job.path().to_str().unwrap(), "memcached"]);
    command.current_dir(place.path()).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let server = fs::read_to_string(place.path().join("memcached.pid")).unwrap();
    (child, said, server.trim().parse().unwrap(), [job, place])
}

/// Waits until a process is gone or a zombie.
fn await_end(process: u32) {
    let is_running = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
    };
    let deadline = Instant::now() + Duration::from_mins(1);
    while is_running() {
        assert!(Instant::now() < deadline, "the process {process} goes on");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_is_killed_is_an_error_and_no_misses() {
    if !has_servers() {
        return;
    }
    let (mut child, mut said, server, _places) = ready_runner();
    let killed = Command::new("kill").args(["-KILL", &server.to_string()]).status().unwrap();
    assert!(killed.success());
    await_end(server);
    child.stdin.take().unwrap().write_all(b"go\nverify\n").unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(
        rest.starts_with(
            "timed\nerror the measured cache failed, and can no longer be used: 10 operations"
        ),
        "{rest}"
    );
    assert_eq!(child.wait().unwrap().code(), Some(FAILURE));
}

#[test]
fn a_server_ends_with_its_runner_however_that_ends() {
    if !has_servers() {
        return;
    }
    for is_killed in [false, true] {
        let (mut child, mut said, server, _places) = ready_runner();
        if is_killed {
            child.kill().unwrap();
        } else {
            child.stdin.take().unwrap().write_all(b"go\nverify\n").unwrap();
            let mut rest = String::new();
            said.read_to_string(&mut rest).unwrap();
            assert!(rest.contains("\nhits 10\n") && rest.contains("\nserver_cpu_ns "), "{rest}");
        }
        child.wait().unwrap();
        await_end(server);
    }
}

#[test]
fn rates_are_shown_as_the_source_shows_them() {
    let output = haypile(&[
        "lab",
        "ratio",
        "1:100 medium",
        "-n",
        "2020",
        "--subjects",
        "memory,file",
        "--blocks",
        "1",
    ]);
    let shown = text({ output }.output().unwrap().stdout);
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("Operations per second of client CPU: 1:100 medium"));
    let header: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(header[0], "Rate");
    for (at, name) in header[1..].iter().enumerate() {
        let cells: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!((cells[0], cells[2 + at]), (*name, "--"));
        assert!(cells[1].ends_with("/s"));
    }
    assert!(!shown.contains("Compared with the Perl cache benchmark"), "its caches are missing");
}

#[test]
fn a_loop_is_of_each_size_and_cache() {
    let subjects = "none,memory:size=1MiB,file:size=4MiB,memory:size=1MiB+file:size=4MiB";
    let arguments =
        ["loop", "--http=false", "--sizes", "50,1024", "--runs", "300", "--subjects", subjects];
    let mut counts = BTreeMap::<_, u32>::new();
    for sample in measured(&arguments) {
        *counts.entry(sample["case"].as_str().unwrap().to_owned()).or_default() += 1;
        let hits = if sample["case"] == "hit" { 300 } else { 0 };
        assert_eq!((&sample["hits"], &sample["operations"]), (&hits.into(), &300.into()));
    }
    let expected =
        [("call", 4), ("call + clear", 4), ("hit", 6), ("miss (clear)", 3), ("miss (no-store)", 8)];
    assert!(counts.iter().map(|(case, count)| (case.as_str(), *count)).eq(expected), "{counts:?}");
}

#[test]
fn a_sequence_is_missed_and_then_hit() {
    for sample in
        measured(&["sequence", "--sizes", "50", "--subjects", "none,memory:size=1MiB,file"])
    {
        let hits = if sample["case"] == "hit" { 101 } else { 0 };
        assert_eq!((&sample["hits"], &sample["operations"]), (&hits.into(), &101.into()));
        assert!(sample["case"] == "miss (no-store)" || name(&sample) != "none");
    }
}

#[test]
fn what_is_not_there_is_searched_at_any_fill() {
    let arguments = ["search", "--entries", "10,1000", "--fill", "0,50,100", "-n", "500"];
    let samples = measured(&[&arguments[..], &["--subjects", "memory,file,memory+file"]].concat());
    assert_eq!(samples.len(), 18);
    for sample in samples {
        let entries = sample["parameters"]["entries"].as_u64().unwrap();
        let fill: u64 =
            sample["parameters"]["fill"].as_str().unwrap().trim_end_matches('%').parse().unwrap();
        assert_eq!((&sample["hits"], &sample["misses"]), (&0.into(), &500.into()));
        assert_eq!(sample["counts"]["verified_after"], entries * fill / 100);
    }
}

/// A cache in memory has nothing then, and is not measured; a file has all of its entries.
#[test]
fn what_a_killed_process_has_left_is_searched_where_it_has_files() {
    let arguments = ["search", "--killed", "--entries", "100", "--fill", "100", "-n", "50"];
    let samples = measured(&[&arguments[..], &["--subjects", "memory,file"]].concat());
    let of = |is_killed: bool| {
        let of = samples.iter().filter(|it| it["parameters"].get("killed").is_some() == is_killed);
        of.map(|sample| (name(sample), sample["counts"]["verified_after"].as_u64()))
            .collect::<Vec<_>>()
    };
    let mut kept = of(false);
    kept.sort_unstable();
    assert_eq!(kept, [("file", Some(100)), ("memory", Some(100))]);
    assert_eq!(of(true), [("file", Some(100))]);
}

#[test]
fn a_crossover_is_answered_in_a_sentence() {
    let arguments = [
        "lab",
        "crossover",
        "--subjects",
        "memory,again:100:memory,memory:policy=lru",
        "--min",
        "16",
        "--max",
        "64",
        "--total",
        "64KiB",
        "-n",
        "2000",
        "--blocks",
        "2",
    ];
    let output = haypile(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let shown = text(output.stdout);
    for subject in ["again:100:memory", "memory:policy=lru"] {
        let is_answer = |line: &&str| line.starts_with(subject) && line.contains("slower");
        assert_eq!(shown.lines().filter(is_answer).count(), 1, "{shown}");
    }
}

/// The engine's single flight goes across processes in a file; a server has none.
#[test]
fn an_expired_entry_is_computed_once_where_a_file_is_shared() {
    let servers = has_servers();
    let subjects = if servers { "file,memory+file,memcached,redis" } else { "file,memory+file" };
    let arguments = ["stampede", "--processes", "3", "--keys", "4", "--compute-ms", "5"];
    for sample in measured(&[&arguments[..], &["--subjects", subjects]].concat()) {
        let computed = sample["misses"].as_u64().unwrap();
        assert_eq!(sample["operations"], 12);
        if name(&sample).contains("file") {
            assert_eq!(computed, 4, "{sample}");
        } else {
            assert!((4..=12).contains(&computed), "{sample}");
        }
    }
}

/// A cache of one process is measured with threads alone.
#[test]
fn threads_and_processes_share_the_work() {
    let workers = ["scale", "--threads", "1,2", "--processes", "1,2"];
    let work = ["--keys", "100", "-n", "200", "--subjects", "memory,file"];
    let arguments = [&workers[..], &work].concat();
    let mut seen = Vec::new();
    for sample in measured(&arguments) {
        let number = |name: &str| sample["parameters"][name].as_u64().unwrap();
        assert!(sample["error"].is_null(), "{sample}");
        assert_eq!(sample["operations"], 200 * number("threads") * number("processes"));
        seen.push((name(&sample).to_owned(), number("threads"), number("processes")));
    }
    let of = |subject: &str| seen.iter().filter(|(name, ..)| name == subject).count();
    assert_eq!((of("memory"), of("file")), (2 * 2, 2 * 3), "{seen:?}");
    let output =
        haypile(&[&["lab"], &arguments[..], &["--blocks", "1"]].concat()).output().unwrap();
    let table = text(output.stdout);
    let row = |line: &str| line.split_whitespace().take(4).eq(["get-hit", "file", "1", "2"]);
    assert!(table.lines().any(row), "{table}");
    assert!(table.contains("Efficiency"), "{table}");
}

#[test]
fn wrong_arguments_say_what_there_is() {
    for (arguments, said) in [
        (&["ratio", "1:2 small"][..], "1:10 small, 1:10 medium"),
        (&["ratio", "--subjects", "memcached://127.0.0.1:11211"], "is the subject's own"),
        (&["crossover", "--subjects", "memory"], "at least two caches"),
        (
            &["crossover", "--min", "2KiB", "--max", "1KiB", "--subjects", "memory,file"],
            "is above --max",
        ),
        (&["crossover", "--blocks", "1", "--subjects", "memory,file"], "at least 2 blocks"),
        (
            &["crossover", "--max", "2GiB", "--subjects", "memory,file"],
            "invalid --max 2GiB (from 1 byte to 1 GiB)",
        ),
        (&["stampede", "--processes", "65"], "65 is not in 1..=64"),
        (&["search", "--fill", "101"], "101 is not in 0..=100"),
        (
            &["all", "--output", "x", "--only", "rattio"],
            "unknown experiment 'rattio' (known: replay, micro, scale",
        ),
    ] {
        let output = haypile(&[&["lab"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE), "{arguments:?}");
        let said_here = text(output.stderr);
        assert!(said_here.contains(said), "{said_here}");
    }
}

fn experiment_file(directory: &Path, name: &str, options: &str) -> String {
    let path = directory.join(name);
    let head = "question = 'q?'\nsource = 's'\nmethod = 'm'\n";
    fs::write(&path, format!("experiment = 'search'\n{head}{options}")).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_experiment_file_says_what_the_command_line_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let options = "[options]\nsubject = ['memory', 'moka']\nentries = [7, 9]\nfill = [100]\n\
                   operations = 50\n[quick]\nentries = 3\n";
    let file = experiment_file(directory.path(), "mine.toml", options);
    let entries = |more: &[&str]| -> Vec<Value> {
        let arguments =
            [&["lab", "search", "--experiment", &file, "--blocks", "1", "--json"], more].concat();
        let output = haypile(&arguments).output().unwrap();
        let said = text(output.stderr);
        assert!(said.contains("the cache 'moka' is not measured: "), "{said}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let samples = json["samples"].as_array().unwrap().iter();
        samples.map(|sample| sample["parameters"]["entries"].clone()).collect()
    };
    assert_eq!(entries(&[]), [7, 9]);
    assert_eq!(entries(&["--quick"]), [3]);
    assert_eq!(entries(&["--quick", "--entries", "5"]), [5], "what is written comes first");
}

#[test]
fn rows_and_report_have_the_question_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let options = "[options]\nsubject = ['memory']\nentries = 3\nfill = 100\noperations = 50\n";
    let file = experiment_file(directory.path(), "mine.toml", options);
    let rows = directory.path().join("rows.jsonl");
    let rows = rows.to_str().unwrap();
    let measure = |more: &[&str]| -> Value {
        let given = [&["lab", "search", "--blocks", "1", "--json", "--out", rows], more].concat();
        let output = haypile(&given).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        json["run"]["asked"].clone()
    };
    let asked = measure(&["--experiment", &file]);
    assert_eq!(asked, json!({"file": "mine.toml", "question": "q?", "source": "s", "method": "m"}));
    let own = ["--subjects", "memory", "--entries", "3", "--fill", "100", "--operations", "50"];
    assert_eq!(measure(&own), Value::Null);
    let output = haypile(&["lab", "report", rows, "--output", "-"]).output().unwrap();
    let page = text(output.stdout);
    assert_eq!(page.matches("<section ").count(), 2 + 1, "one for each question, and the machine");
    assert!(page.contains("<p class=\"question\">q?</p>"), "{page}");
    assert!(page.contains("<code>mine.toml</code>"), "{page}");
}

#[test]
fn an_experiment_file_that_is_wrong_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let fail = |experiment: &str, file: &str| {
        let output = haypile(&["lab", experiment, "--experiment", file]).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE));
        text(output.stderr)
    };
    let file = experiment_file(directory.path(), "option.toml", "[options]\ncolour = 1\n");
    let said = fail("search", &file);
    assert!(said.contains("unknown option 'colour' of haypile lab search (known: "), "{said}");
    assert!(said.contains("entries") && said.contains(&file), "{said}");
    let said = fail("ratio", &file);
    assert!(said.contains("describes the experiment 'search'"), "{said}");
    let file = experiment_file(directory.path(), "value.toml", "[options]\nfill = [300]\n");
    assert!(fail("search", &file).contains("300 is not in"), "clap says so");
    let file = experiment_file(directory.path(), "none.toml", "[options]\nsubject = ['moka']\n");
    assert!(fail("search", &file).contains("can be measured here"));
    assert!(fail("search", "nowhere.toml").contains("nowhere.toml"));
}

#[test]
fn everything_is_done_and_kept_in_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("results");
    let output = haypile(&[
        "lab",
        "all",
        "--quick",
        "--embedded",
        "--only",
        "sequence,search",
        "--trace",
        TRACE,
        "--output",
        place.to_str().unwrap(),
    ]);
    let output = { output }.output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let said = text(output.stdout);
    for name in ["sequence", "search"] {
        assert!(said.lines().any(|line| line.starts_with(name) && line.contains("done")), "{said}");
        assert!(fs::read_to_string(place.join(format!("{name}.txt"))).unwrap().contains("memory"));
        let rows = fs::read_to_string(place.join(format!("{name}.jsonl"))).unwrap();
        assert!(rows.lines().all(|row| serde_json::from_str::<Value>(row).is_ok()));
    }
    let page = place.join("report.html");
    assert_eq!(said.lines().last(), Some(page.to_str().unwrap()));
    let page = fs::read_to_string(page).unwrap();
    for part in ["What does a lookup cost that finds nothing", "by eviction policy", "101 entries"]
    {
        assert!(page.contains(part), "{part}");
    }
}
