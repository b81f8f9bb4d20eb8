//! Files that commands read and write.

use std::fs::{self, File};
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{
    TINY, TRACE, fail, haypile, path_in, print, print_json, print_with_input, text,
};

/// Logs that are merged by time are all open at once, also where they are more than the shell allows.
#[test]
fn more_logs_than_files_that_may_be_open_are_merged() {
    let dir = TempDir::new().unwrap();
    for number in 10..60 {
        let line = format!("h - - [10/Oct/2000:13:00:{number} -0700] \"GET /a HTTP/1.1\" 200 1\n");
        fs::write(dir.path().join(format!("{number}.log")), line).unwrap();
    }
    let paths: Vec<String> =
        (10..60).map(|number| path_in(&dir, &format!("{number}.log"))).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let program = haypile(&[&["trace", "info"], &paths[..]].concat());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -Sn 40 && exec \"$0\" \"$@\""]).arg(program.get_program());
    let output = shell.args(program.get_args()).output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    assert!(text(output.stdout).contains("50"));
}

fn names_in(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns simulations without the fields that differ from run to run and from file to file.
#[track_caller]
fn simulations(trace: &str, more: &[&str]) -> Value {
    let arguments = [&["simulate", trace, "--json"], more].concat();
    without_times(print_json(&arguments))
}

fn without_times(mut document: Value) -> Value {
    let mut simulations = document["traces"][0]["simulations"].take();
    for one in simulations.as_array_mut().unwrap() {
        one.as_object_mut().unwrap().remove("cpu_ns").expect("a time");
    }
    simulations
}

const POLICIES: [&str; 4] = ["--policy", "lru,s3fifo,belady", "--size", "2MiB,8MiB"];

#[test]
fn a_converted_trace_gives_the_same_numbers() {
    let dir = TempDir::new().unwrap();
    let expected = simulations(TRACE, &POLICIES);
    for (name, more) in [("with.hpt", None), ("without.hpt", Some("--no-next-use"))] {
        let target = path_in(&dir, name);
        let mut arguments = vec!["trace", "convert", TRACE, &target];
        arguments.extend(more);
        assert_eq!(print(&arguments), format!("{target}: 40,053 requests for 1,067 keys\n"));
        assert_eq!(simulations(&target, &POLICIES), expected, "{name}");
    }
    let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
    assert!(size("without.hpt") < size("with.hpt"));
    assert_eq!(names_in(dir.path()), ["with.hpt", "without.hpt"], "nothing else is left");
}

#[test]
fn a_prepared_trace_keeps_what_info_says() {
    let dir = TempDir::new().unwrap();
    let target = path_in(&dir, "tiny.hpt");
    print(&["trace", "convert", TINY, &target]);
    assert_eq!(print(&["trace", "info", &target]), print(&["trace", "info", TINY]));
    // And replaces itself.
    print(&["trace", "convert", &target, &target]);
    assert_eq!(print(&["trace", "info", &target]), print(&["trace", "info", TINY]));
}

#[test]
fn what_libcachesim_reads_holds_every_read_and_write_as_a_read() {
    let dir = TempDir::new().unwrap();
    let target = path_in(&dir, "tiny.oracleGeneral.bin");
    let output = haypile(&["trace", "convert", TINY, &target]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let kept = path_in(&dir, "kept.csv");
    let is_kept = |line: &&str| !line.starts_with("delete");
    let lines: Vec<String> = fs::read_to_string(TINY)
        .unwrap()
        .lines()
        .filter(is_kept)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&kept, lines.concat()).unwrap();
    let sizes = ["--policy", "lru,fifo,belady", "--objects", "1,2,3"];
    let format = ["--format", "oracle-general"];
    assert_eq!(
        simulations(&target, &[&sizes[..], &format].concat()),
        simulations(&kept, &[&sizes[..], &["--all-reads"]].concat())
    );
}

#[test]
fn several_files_become_one_trace() {
    let dir = TempDir::new().unwrap();
    let target = path_in(&dir, "twice.hpt");
    print(&["trace", "convert", TINY, TINY, &target]);
    let expected = without_times(print_json(&[
        "simulate",
        TINY,
        TINY,
        "--join",
        "--policy",
        "lru",
        "--objects",
        "2",
        "--json",
    ]));
    assert_eq!(simulations(&target, &["--policy", "lru", "--objects", "2"]), expected);
}

#[test]
fn prepared_traces_are_neither_joined_nor_piped() {
    let dir = TempDir::new().unwrap();
    let target = path_in(&dir, "tiny.hpt");
    print(&["trace", "convert", TINY, &target]);
    assert_eq!(
        fail(&["simulate", "--join", &target, &target]),
        "haypile: an .hpt file cannot be joined with others; convert the original traces together\n"
    );
    let piped = haypile(&["trace", "info", "-"]).stdin(File::open(&target).unwrap()).output();
    assert_eq!(
        text(piped.unwrap().stderr),
        "haypile: an .hpt file cannot be read from standard input or a pipe, because it is mapped into \
         memory; name the file itself\n"
    );
}

#[test]
fn a_damaged_prepared_trace_is_an_error() {
    let dir = TempDir::new().unwrap();
    let target = path_in(&dir, "tiny.hpt");
    print(&["trace", "convert", TINY, &target]);
    let whole = fs::read(&target).unwrap();
    for damaged in [&whole[..whole.len() / 2], &whole[..8], b"garbage in a file of that name"] {
        fs::write(&target, damaged).unwrap();
        let message = fail(&["simulate", &target]);
        assert!(message.starts_with(&format!("haypile: {target}: ")), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

#[test]
fn a_generated_trace_is_the_same_in_every_form() {
    let dir = TempDir::new().unwrap();
    let (csv, hpt) = (path_in(&dir, "made.csv"), path_in(&dir, "made.hpt"));
    let generate = [
        "trace",
        "generate",
        "zipf:keys=100,exponent=0.9@0.8+scan:keys=900@0.2",
        "--requests",
        "3000",
        "--sizes",
        "lognormal:median=4096,sigma=1.5,per=key",
        "--writes",
        "10",
        "--deletes",
        "1",
    ];
    let printed = print(&generate);
    assert_eq!(printed.lines().count(), 3001);
    for path in [&csv, &hpt] {
        assert_eq!(print(&[&generate[..], &["--output", path]].concat()), "");
    }
    assert_eq!(fs::read_to_string(&csv).unwrap(), printed);
    let sizes = ["--policy", "lru,belady", "--size", "16KiB,256KiB"];
    assert_eq!(simulations(&csv, &sizes), simulations(&hpt, &sizes));
    let piped = print_with_input(&["trace", "info", "-"], printed.as_bytes());
    assert_eq!(piped, print(&["trace", "info", &hpt]));
}

#[test]
fn another_seed_gives_another_trace() {
    let generate = |seed| {
        print(&["trace", "generate", "uniform:keys=1000", "--requests", "20", "--seed", seed])
    };
    assert_eq!(generate("1"), generate("1"));
    assert_ne!(generate("1"), generate("2"));
}

#[test]
fn mistakes_leave_the_files_that_are_there() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "precious.csv");
    fs::write(&path, "key\nprecious\n").unwrap();
    for arguments in [["--writes", "101"], ["--requests", "0"], ["--sizes", "huge"]] {
        fail(&[&["trace", "generate", "loop:keys=3", "--output", &path], &arguments[..]].concat());
    }
    fail(&[
        "trace",
        "generate",
        "loop:keys=3",
        "--output",
        &path,
        "--writes",
        "60",
        "--deletes",
        "60",
    ]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "key\nprecious\n");
    let prepared = path_in(&dir, "precious.hpt");
    fs::write(&prepared, "precious").unwrap();
    fail(&["trace", "convert", "tests/data/bad.csv", &prepared]);
    assert_eq!(fs::read_to_string(&prepared).unwrap(), "precious");
    assert_eq!(names_in(dir.path()), ["precious.csv", "precious.hpt"], "nothing else is left");
}

#[test]
fn a_directory_is_no_file_to_write() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "folder.hpt");
    fs::create_dir(&path).unwrap();
    let message = format!("haypile: {path} is a directory; name the file to write\n");
    assert_eq!(fail(&["trace", "generate", "loop:keys=3", "--output", &path]), message);
    assert_eq!(fail(&["trace", "convert", TINY, &path]), message);
}

#[test]
fn man_writes_a_page_for_every_command() {
    let dir = TempDir::new().unwrap();
    assert_eq!(print(&["man", dir.path().to_str().unwrap()]), "");
    let names = names_in(dir.path());
    assert_eq!(
        names,
        [
            "haypile-add.1",
            "haypile-advise.1",
            "haypile-bench.1",
            "haypile-check.1",
            "haypile-clear.1",
            "haypile-completions.1",
            "haypile-delete.1",
            "haypile-dump.1",
            "haypile-get.1",
            "haypile-icons-lookup.1",
            "haypile-icons-stat.1",
            "haypile-icons-warm.1",
            "haypile-icons.1",
            "haypile-incr.1",
            "haypile-invalidate.1",
            "haypile-keys.1",
            "haypile-lab-all.1",
            "haypile-lab-compare.1",
            "haypile-lab-crossover.1",
            "haypile-lab-experiments.1",
            "haypile-lab-first.1",
            "haypile-lab-icons.1",
            "haypile-lab-loop.1",
            "haypile-lab-micro.1",
            "haypile-lab-pages.1",
            "haypile-lab-persist.1",
            "haypile-lab-ratio.1",
            "haypile-lab-replay.1",
            "haypile-lab-report.1",
            "haypile-lab-resources.1",
            "haypile-lab-scale.1",
            "haypile-lab-search.1",
            "haypile-lab-sequence.1",
            "haypile-lab-splice.1",
            "haypile-lab-stampede.1",
            "haypile-lab-startup.1",
            "haypile-lab-subjects.1",
            "haypile-lab-torture.1",
            "haypile-lab-workload.1",
            "haypile-lab.1",
            "haypile-load.1",
            "haypile-man.1",
            "haypile-policies.1",
            "haypile-proxy.1",
            "haypile-rivals-check.1",
            "haypile-rivals-install.1",
            "haypile-rivals-list.1",
            "haypile-rivals.1",
            "haypile-schemes.1",
            "haypile-set.1",
            "haypile-simulate.1",
            "haypile-stat.1",
            "haypile-trace-convert.1",
            "haypile-trace-example.1",
            "haypile-trace-generate.1",
            "haypile-trace-info.1",
            "haypile-trace.1",
            "haypile.1",
        ]
    );
    for name in names {
        let page = fs::read_to_string(dir.path().join(&name)).unwrap();
        assert!(page.contains(".SH NAME"), "{name}");
    }
}

#[test]
fn completions_know_the_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = print(&["completions", shell]);
        for word in ["simulate", "accounting", "all-reads"] {
            assert!(script.contains(word), "{word} for {shell}");
        }
    }
}

#[test]
fn a_plot_is_a_file_beside_the_tables() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "curves.svg");
    let arguments = ["simulate", TINY, "--policy", "lru,fifo", "--objects", "1,2", "--csv"];
    let printed = print(&[&arguments[..], &["--plot", &path]].concat());
    assert_eq!(printed.lines().count(), 5);
    let drawing = fs::read_to_string(path).unwrap();
    assert!(drawing.contains("<svg") && drawing.contains("cache size in objects"), "{drawing}");
    assert_eq!(names_in(dir.path()), ["curves.svg"]);
}

/// The examples of the help texts name the trace by this path.
#[test]
fn the_example_trace_is_written_once_and_replaces_no_other_file() {
    let dir = TempDir::new().unwrap();
    let example = |more: &[&str]| {
        let mut program = haypile(&[&["trace", "example"], more].concat());
        program.current_dir(dir.path()).output().unwrap()
    };
    for _ in 0..2 {
        let output = example(&[]);
        assert!(output.status.success(), "{}", text(output.stderr));
        assert!(text(output.stdout).contains("haypile advise traces/redis-build.csv.zst --budget"));
    }
    let written = fs::read(dir.path().join("traces/redis-build.csv.zst")).unwrap();
    assert!(written == fs::read("../../traces/redis-build.csv.zst").unwrap());
    assert!(written == example(&["--output", "-"]).stdout);
    fs::write(dir.path().join("mine"), "mine").unwrap();
    let output = example(&["--output", "mine"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(output.stderr),
        "haypile: mine exists and is not the example trace; name another file with --output\n"
    );
    assert_eq!(fs::read(dir.path().join("mine")).unwrap(), b"mine");
    assert!(text(example(&["--output", "none/x"]).stderr).contains("none does not exist"));
}

#[test]
fn commands_of_other_programs_are_answered_with_a_tip() {
    for (word, tip) in [
        ("ls", "haypile keys CACHE lists the keys"),
        ("put", "haypile set CACHE KEY VALUE"),
        ("top", "haypile stat FILE"),
        ("version", "haypile --version"),
    ] {
        let said = fail(&[word, "file:/tmp/app.haypile"]);
        assert!(said.contains(&format!("tip: {tip}")), "{said}");
    }
    // Below a command they mean something else, and what is nearly a command is still recognised.
    assert!(!fail(&["lab", "ls"]).contains("haypile keys"));
    assert!(fail(&["simulat"]).contains("'simulate'"));
}

#[test]
fn a_value_that_ends_with_the_command_is_told_of() {
    let said = |cache: &str| {
        let output = haypile(&["set", cache, "a", "b"]).output().unwrap();
        assert!(output.status.success());
        text(output.stderr)
    };
    assert!(said("memory:").contains("this cache ends with the command"));
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "a");
    for kept in [
        format!("memory:persist={path}"),
        format!("memory:size=1MiB -> file:{path}.haypile,size=1MiB"),
    ] {
        assert_eq!(said(&kept), "");
    }
}
