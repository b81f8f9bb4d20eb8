//! From measuring to a verdict, on a fake clock.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, NEGATIVE, haypile};

/// Measures a cache on a fake clock, and the same cache with 3 of 100 operations more.
fn measure(directory: &TempDir, cases: &str) -> String {
    let path = directory.path().join("results.jsonl").to_str().unwrap().to_owned();
    let measured = haypile(&["lab", "micro", "--case", cases, "--keys", "200"])
        .args(["--operations", "30000", "--blocks", "4", "--out", &path])
        .args(["--subject", "again:0:mock:1000ns,again:3:mock:1000ns"])
        .output()
        .unwrap();
    assert!(measured.status.success(), "{measured:?}");
    path
}

#[test]
fn a_planted_slowdown_is_found() {
    let directory = TempDir::new().unwrap();
    let path = measure(&directory, "get-hit");
    let compare = |subjects: &str, more: &[&str]| {
        let arguments = ["lab", "compare", &path, "--json", "--subjects", subjects];
        let output = haypile(&arguments).args(more).output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), value)
    };
    let slower = "again:0:mock:1000ns,again:3:mock:1000ns";
    let (status, value) = compare(slower, &["--fail-above", "2%"]);
    assert_eq!(status, NEGATIVE);
    let row = &value["rows"][0];
    assert_eq!(row["verdict"], "slower");
    assert_eq!((&row["pairing"], &row["pairs"]), (&"paired".into(), &4.into()));
    let change = row["effect"]["change"].as_f64().unwrap();
    assert!((change - 0.03).abs() < 1e-9, "{value:#}");
    assert_eq!(
        (row["old"]["median"].as_f64(), row["new"]["median"].as_f64()),
        (Some(1000.0), Some(1030.0))
    );

    assert_eq!(compare(slower, &["--fail-above", "4%"]).0, 0);
    assert_eq!(compare(slower, &["--noise-floor", "5%"]).1["rows"][0]["verdict"], "no-difference");
    let faster = "again:3:mock:1000ns,again:0:mock:1000ns";
    let (status, value) = compare(faster, &["--fail-above", "0%"]);
    assert_eq!((status, &value["rows"][0]["verdict"]), (0, &"faster".into()));
    let same = "again:3:mock:1000ns,again:3:mock:1000ns";
    assert_eq!(compare(same, &[]).1["rows"][0]["verdict"], "no-difference");
    assert_eq!(compare("again:3:mock:1000ns,mock:1000ns", &[]).0, FAILURE);
}

/// A case that was not measured again may have become slower.
#[test]
fn a_case_that_is_missing_in_new_is_no_success() {
    let directory = TempDir::new().unwrap();
    let old = measure(&directory, "get-hit,get-miss");
    let new = directory.path().join("new.jsonl").to_str().unwrap().to_owned();
    let rows = fs::read_to_string(&old).unwrap();
    let kept: Vec<&str> =
        rows.lines().filter(|row| !row.contains(r#""case":"get-miss""#)).collect();
    assert_eq!((rows.lines().count(), kept.len()), (17, 9), "the run, and four blocks of two");
    fs::write(&new, kept.join("\n") + "\n").unwrap();

    let compare = |old: &str, new: &str, more: &[&str]| {
        let output = haypile(&["lab", "compare", old, new]).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = compare(&old, &new, &["--fail-above", "3%"]);
    assert_eq!(status, NEGATIVE, "{text}");
    assert!(text.contains("0 beyond 3 %\n2 missing in new"), "{text}");
    let (status, json) = compare(&old, &new, &["--fail-above", "3%", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["beyond"]), (NEGATIVE, &0.into()));
    let missing = json["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 2, "{json:#}");
    assert!(missing[0].as_str().unwrap().starts_with("micro get-miss"), "{json:#}");

    assert_eq!(compare(&old, &new, &[]).0, 0, "nobody has asked");
    assert_eq!(compare(&new, &old, &["--fail-above", "3%"]).0, 0, "what is new was never faster");
    assert_eq!(compare(&old, &old, &["--fail-above", "3%"]).0, 0);
}

#[test]
fn one_subject_alone_is_told_that_two_are_needed() {
    let directory = TempDir::new().unwrap();
    let path = measure(&directory, "get-hit");
    let only = "again:3:mock:1000ns";
    let output = haypile(&["lab", "compare", &path, "--subjects", only]).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("--subjects again:3:mock:1000ns names one subject"), "{message}");
    assert!(message.contains("(known: again:0:mock:1000ns@haypile again:3"), "{message}");
}

/// A tail that does not move the centre fails the gate, unless it is told to look at the centre alone.
#[test]
fn slow_samples_fail_the_gate_and_are_noted() {
    let directory = TempDir::new().unwrap();
    let path = measure(&directory, "get-hit");
    let rows = fs::read_to_string(&path).unwrap();
    let first = rows.lines().find(|row| row.contains(r#""type":"sample""#)).unwrap();
    let of = |name: &str, is_tailed: bool| {
        let path = directory.path().join(name).to_str().unwrap().to_owned();
        let mut text = format!("{}\n", rows.lines().next().unwrap());
        for block in 0..96 {
            let mut row: Value = serde_json::from_str(first).unwrap();
            let cost = row["cpu_ns"].as_u64().unwrap();
            row["block"] = block.into();
            row["cpu_ns"] = if is_tailed && block % 6 == 5 { 5 * cost } else { cost }.into();
            text = text + &row.to_string() + "\n";
        }
        fs::write(&path, text).unwrap();
        path
    };
    let (old, new) = (of("old.jsonl", false), of("tail.jsonl", true));
    let compare = |more: &[&str]| {
        let arguments = ["lab", "compare", &old, &new, "--fail-above", "3%"];
        let output = haypile(&arguments).args(more).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (status, text) = compare(&[]);
    assert_eq!(status, NEGATIVE, "{text}");
    assert!(
        text.contains("processor time: 16 of 96 samples took up to 5.00 times the centre"),
        "{text}"
    );
    assert!(
        text.contains("slower on average")
            && text.contains("+66.7 %")
            && text.contains("1 beyond 3 %"),
        "{text}"
    );
    assert_eq!(compare(&["--gate", "median"]).0, 0);
}
