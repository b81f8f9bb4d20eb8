//! Two commands compared: by counts, orders and outcomes, and not by times.

use std::fs;
use std::io::Read;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, INTERRUPTED, NEGATIVE, haypile, path_in, text};

/// Runs it with the working directory in a folder.
fn bench(folder: &TempDir, words: &[&str]) -> Output {
    haypile(&[&["bench"], words].concat()).current_dir(folder).output().unwrap()
}

#[track_caller]
fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// Lines of a file in a folder.
fn lines(folder: &TempDir, name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Names of conditions of measured samples, in their order.
fn conditions(json: &Value) -> Vec<(u64, String)> {
    let samples = json["samples"].as_array().unwrap().iter();
    let measured = samples.filter(|sample| sample["parameters"]["watched"].is_null());
    let name = |sample: &Value| sample["subject"]["name"].as_str().unwrap().to_owned();
    measured.map(|sample| (sample["block"].as_u64().unwrap(), name(sample))).collect()
}

#[test]
fn each_block_has_both_commands_and_the_first_once_more_in_an_order_that_changes() {
    let folder = TempDir::new().unwrap();
    let output = bench(&folder, &["true", "true", "--blocks", "12", "--json"]);
    let json = json(&output);
    assert_eq!(output.status.code(), Some(0), "{json}");
    let all = conditions(&json);
    assert_eq!(all.len(), 36);
    let mut orders = std::collections::BTreeSet::new();
    for block in 0..12 {
        let of_block = all.iter().filter(|(it, _)| *it == block);
        let order: Vec<&str> = of_block.map(|(_, name)| name.as_str()).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["A", "A again", "B"], "block {block}");
        orders.insert(order.join(", "));
    }
    assert!(orders.len() > 1, "{orders:?}");
    let case = &json["cases"][0];
    assert_eq!((&case["a"], &case["b"]), (&"true".into(), &"true".into()));
    // No difference of a thing from itself is certain, and the answer is the last line.
    let answer = case["answer"].as_str().unwrap();
    assert!(!answer.starts_with("B takes 0"), "{answer}");
    let printed = text(bench(&folder, &["true", "true", "--blocks", "2"]).stdout);
    let last = printed.lines().last().unwrap();
    assert!(last.starts_with("B - A is ") && last.contains("fewer than 6 blocks"), "{last}");
}

#[test]
fn commands_that_differ_by_a_variable_are_told_apart_everywhere() {
    let folder = TempDir::new().unwrap();
    let (out, file) = (path_in(&folder, "rows.jsonl"), path_in(&folder, "times.json"));
    let run = |a: &str, b: &str| {
        let options = ["--env", "Y=2", "--env-a", a, "--env-b", b, "--blocks", "2", "--out", &out];
        let output = bench(
            &folder,
            &[&["true", "true"], &options[..], &["--export-hyperfine", &file]].concat(),
        );
        assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
        text(output.stdout)
    };
    let printed = run("X=a b", "X=1");
    assert!(printed.contains("A: Y=2 X='a b' true; B: Y=2 X=1 true, ready"), "{printed}");
    assert!(fs::read_to_string(&file).unwrap().contains("Y=2 X=1 true"));
    run("X=1", "X=3");
    // Two questions, though the commands are the same.
    let rows = fs::read_to_string(&out).unwrap();
    let cases: std::collections::BTreeSet<String> = rows
        .lines()
        .map(|row| serde_json::from_str::<Value>(row).unwrap()["parameters"]["a"].to_string())
        .filter(|a| a != "null")
        .collect();
    assert_eq!(cases.len(), 2, "{cases:?}");
    let refused = |options: &[&str], said: &str| {
        let output = bench(&folder, &[&["true", "true"], options].concat());
        assert_eq!(output.status.code(), Some(FAILURE));
        let error = text(output.stderr);
        assert!(error.contains(said), "{error}");
    };
    refused(&["--env-a", "X=1", "--env-b", "X=1"], "X=1 is set by --env-a and by --env-b");
    refused(&["--env-a", "X=1", "--env-a", "X=2"], "--env-a sets X twice");
    // It is in the environment of both.
    refused(
        &["--env-b", "NO_COLOR=1"],
        "NO_COLOR=1 of --env-b is in the environment of all conditions",
    );
}

#[test]
fn an_interruption_cleans_up_and_every_error_is_said() {
    let folder = TempDir::new().unwrap();
    let cleanup = "touch cleaned; echo broken; exit 3";
    let mut lab = haypile(&[
        "bench",
        "sh -c 'echo x >> starts; exec sleep 600'",
        "true",
        "--cleanup",
        cleanup,
        "--prepare",
        "echo x >> before",
        "--conclude",
        "echo x >> after",
    ])
    .current_dir(&folder)
    .spawn()
    .unwrap();
    let begin = Instant::now();
    while lines(&folder, "starts").is_empty() {
        assert!(begin.elapsed() < Duration::from_mins(1), "it does not start");
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&lab), Signal::INT).unwrap();
    let mut said = String::new();
    lab.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(lab.wait().unwrap().code(), Some(INTERRUPTED));
    assert!(folder.path().join("cleaned").exists());
    assert!(
        said.contains("interrupted")
            && said.contains("--cleanup 'touch cleaned")
            && said.contains("broken"),
        "{said}"
    );
    // What came before the start is undone.
    assert_eq!(lines(&folder, "before").len(), lines(&folder, "after").len());
}

/// The control is treated as A is, and everything else is known by counting.
#[test]
fn commands_around_the_starts_see_a_and_b_and_clean_up_at_the_end() {
    let folder = TempDir::new().unwrap();
    let output = bench(
        &folder,
        &[
            "sh -c 'echo A:$MINE:$BOTH >> starts'",
            "sh -c 'echo B:$MINE:$BOTH >> starts'",
            "--blocks",
            "2",
            "--warmup",
            "3",
            "--env",
            "BOTH=x",
            "--env-a",
            "MINE=a b",
            "--env-b",
            "MINE=2",
            "--setup",
            "echo setup >> around",
            "--cleanup",
            "echo cleanup >> around",
            "--prepare",
            "echo before $HAYPILE_CONDITION >> around",
            "--conclude",
            "echo after $HAYPILE_CONDITION >> around",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    let count = |all: &[String], line: &str| all.iter().filter(|it| *it == line).count();
    let starts = lines(&folder, "starts");
    // Three of each before the first block, then two and one in each of two blocks.
    assert_eq!((count(&starts, "A:a b:x"), count(&starts, "B:2:x"), starts.len()), (7, 5, 12));
    let around = lines(&folder, "around");
    assert_eq!(
        (around.first().unwrap().as_str(), around.last().unwrap().as_str()),
        ("setup", "cleanup")
    );
    let each = ["setup", "cleanup", "before A", "after A", "before B", "after B"];
    assert_eq!(each.map(|line| count(&around, line)), [1, 1, 7, 7, 5, 5], "{around:?}");
    assert_eq!(around.len(), 26, "{around:?}");
}

#[test]
fn each_start_reads_the_input_from_its_beginning() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("input"), "one\ntwo\n").unwrap();
    let words = ["sh -c 'cat >> a'", "sh -c 'cat >> b'", "--blocks", "1", "--input", "input"];
    let output = bench(&folder, &words);
    assert_eq!(output.status.code(), Some(0), "{}", text(output.stderr));
    assert_eq!((lines(&folder, "a").len(), lines(&folder, "b").len()), (6, 4));
    let absent = bench(&folder, &["true", "true", "--input", "absent"]);
    assert_eq!(absent.status.code(), Some(FAILURE));
    assert!(text(absent.stderr).contains("--input absent: No such file"));
}

#[test]
fn a_failure_is_an_error_unless_it_is_accepted() {
    let folder = TempDir::new().unwrap();
    let failing = "sh -c 'exit 3'";
    let run = |more: &[&str]| bench(&folder, &[&["true", failing, "--blocks", "2"], more].concat());
    let refused = run(&["--cleanup", "touch cleaned"]);
    assert_eq!(refused.status.code(), Some(NEGATIVE));
    assert!(text(refused.stdout).contains("error: B: it ended with exit status: 3"));
    assert!(folder.path().join("cleaned").exists());
    for (option, status) in
        [("--ignore-failure", 0), ("--ignore-failure=1,3", 0), ("--ignore-failure=4", NEGATIVE)]
    {
        let output = run(&[option]);
        assert_eq!(output.status.code(), Some(status), "{option}");
        let says =
            text(output.stdout).contains("B ended with another exit status than 0 in 2 starts");
        assert_eq!(says, status == 0, "{option}");
    }
    let killed =
        bench(&folder, &["true", "sh -c 'kill -9 $$'", "--blocks", "1", "--ignore-failure"]);
    assert_eq!(killed.status.code(), Some(NEGATIVE));
    let absent = bench(&folder, &["true", "no-such-program", "--blocks", "1"]);
    assert!(text(absent.stdout).contains("no-such-program cannot be started"));
}

#[test]
fn what_only_a_shell_understands_is_refused_without_one() {
    let folder = TempDir::new().unwrap();
    let piped = ["echo x | cat > a", "echo 'x | y'", "--blocks", "1"];
    let refused = bench(&folder, &piped);
    assert_eq!(refused.status.code(), Some(FAILURE));
    assert!(
        text(refused.stderr)
            .contains("'echo x | cat > a' has '|', which a shell understands: add --shell")
    );
    assert_eq!(bench(&folder, &[&piped[..], &["--shell"]].concat()).status.code(), Some(0));
    assert_eq!(lines(&folder, "a"), ["x"]);
    for (words, said) in [
        (&["true"][..], "2 values required"),
        (&[], "write two commands, each in quotes"),
        (&["true", ""], "commands to compare is empty"),
        (&["true", " ", "--shell"], "commands to compare is empty"),
        (&["'' x", "true"], "has no name of a program"),
        (&["--import-hyperfine", "x", "--blocks", "9"], "cannot be used with"),
        (&["true", "echo 'x"], "a quote, or a backslash, has no end"),
    ] {
        let output = bench(&folder, words);
        assert_eq!(output.status.code(), Some(FAILURE), "{words:?}");
        let error = text(output.stderr);
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn files_for_others_have_the_commands_and_come_back() {
    let folder = TempDir::new().unwrap();
    let markdown = path_in(&folder, "table.md");
    for schema in ["1", "2"] {
        let file = path_in(&folder, "times.json");
        let output = bench(
            &folder,
            &[
                "true",
                "sh -c 'exit 3'",
                "--ignore-failure",
                "--blocks",
                "6",
                "--export-hyperfine",
                &file,
                "--hyperfine-schema",
                schema,
                "--export-markdown",
                &markdown,
            ],
        );
        assert_eq!(output.status.code(), Some(0));
        let refused = bench(&folder, &["--import-hyperfine", &file]);
        assert_eq!(refused.status.code(), Some(FAILURE));
        assert!(
            text(refused.stderr).contains("a run in the file of hyperfine failed (exit code 3)")
        );
        let words = ["--import-hyperfine", &file, "--ignore-failure", "--json"];
        let imported = json(&bench(&folder, &words));
        let commands = imported["commands"].as_array().unwrap();
        let names: Vec<&str> = commands.iter().map(|it| it["command"].as_str().unwrap()).collect();
        assert_eq!(names, ["true", "true (again)", "sh -c 'exit 3'"]);
        assert!(commands[2]["verdict"].is_string() && commands[2]["memory_bytes"].is_number());
    }
    let tables = fs::read_to_string(&markdown).unwrap();
    assert!(tables.contains("| Difference | of | Verdict |"), "{tables}");
    let last = tables.trim_end().lines().last().unwrap();
    assert!(last.contains('B') && last.contains('A') && last.ends_with('.'), "{last}");
    fs::write(&markdown, "{}").unwrap();
    let output = bench(&folder, &["--import-hyperfine", &markdown]);
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(text(output.stderr).contains("not a file of hyperfine"));
}
