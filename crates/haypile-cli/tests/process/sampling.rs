//! Parts of traces on the command line: one sample from every form of a trace, in every command, and days.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{fail, path_in, print, print_json, print_with_input};

/// Writes a trace of many keys, and returns its path.
fn generated(dir: &TempDir, name: &str) -> String {
    let path = path_in(dir, name);
    print(&[
        "trace",
        "generate",
        "zipf:keys=60000,exponent=0.7",
        "--requests",
        "300000",
        "--sizes",
        "lognormal:median=400,sigma=1,per=key",
        "--output",
        &path,
    ]);
    path
}

/// The results without what differs from one run to another.
fn results(trace: &str, arguments: &[&str]) -> Value {
    let all =
        [&["simulate", trace, "--json", "--policy", "lru,s3fifo", "--size", "5%,20%"], arguments];
    let mut document = print_json(&all.concat());
    let trace = &mut document["traces"][0];
    trace["trace"] = Value::Null;
    for row in trace["simulations"].as_array_mut().unwrap() {
        row["cpu_ns"] = Value::Null;
    }
    document
}

#[test]
fn every_form_of_a_trace_has_one_sample() {
    let dir = TempDir::new().unwrap();
    let (csv, hpt, sample) =
        (generated(&dir, "t.csv"), path_in(&dir, "t.hpt"), path_in(&dir, "sample.hpt"));
    print(&["trace", "convert", &csv, &hpt]);
    let written = print(&["trace", "convert", &hpt, &sample, "--sample", "20%", "--seed", "3"]);
    assert!(written.contains("of the keys (rate 0.2, seed 3), of 300,000 requests"), "{written}");
    let info = print_json(&["trace", "info", &sample, "--json"]);
    assert_eq!(info["sample"]["of_requests"], 300_000);
    assert_eq!(info["sample"]["requests"], info["requests"]);
    assert!(print(&["trace", "info", &sample]).starts_with("A sample of 300,000 requests"));
    let expected = results(&csv, &["--sample", "0.2", "--seed", "3"]);
    assert_eq!(expected["traces"][0]["requests"], 300_000);
    assert_eq!(expected["traces"][0]["sample"]["rate"], 0.2);
    assert_eq!(results(&hpt, &["--sample", "0.2", "--seed", "3"]), expected);
    assert_eq!(results(&sample, &[]), expected);
    let piped = [
        "simulate", "-", "--sample", "0.2", "--seed", "3", "--policy", "lru", "--size", "5%",
        "--json",
    ];
    let piped: Value =
        serde_json::from_str(&print_with_input(&piped, &fs::read(&csv).unwrap())).unwrap();
    assert_eq!(piped["traces"][0]["sample"], expected["traces"][0]["sample"]);
    let again = fail(&["simulate", &sample, "--sample", "0.2"]);
    assert!(again.contains("is a sample already"), "{again}");
    let whole = results(&hpt, &["--sample", "1"]);
    assert_eq!(whole["traces"][0]["sample"], Value::Null);
    for (estimate, truth) in expected["traces"][0]["simulations"]
        .as_array()
        .unwrap()
        .iter()
        .zip(whole["traces"][0]["simulations"].as_array().unwrap())
    {
        let ratio = |row: &Value| row["hit_ratio"].as_f64().unwrap();
        assert!((ratio(estimate) - ratio(truth)).abs() < 0.03, "{estimate} {truth}");
    }
}

#[test]
fn every_command_takes_a_sample() {
    let dir = TempDir::new().unwrap();
    let trace = generated(&dir, "t.hpt");
    let advice = print(&["advise", &trace, "--budget", "20%", "--sample", "0.3"]);
    assert!(advice.contains("Sampled: all figures are estimates from"), "{advice}");
    let plot = path_in(&dir, "curve.svg");
    let arguments = ["--curve", "lru,s3fifo,belady", "--sample", "0.3", "--plot", &plot];
    let curves = print(&[&["simulate", trace.as_str()], &arguments[..]].concat());
    assert!(curves.contains("Sampled: all results are estimates from"), "{curves}");
    let header = curves.lines().find(|line| line.trim_start().starts_with("Size")).unwrap();
    let columns: Vec<&str> = header.split_whitespace().collect();
    assert_eq!(columns, ["Size", "lru", "Spread", "s3fifo", "belady"], "{curves}");
    assert!(fs::read_to_string(&plot).unwrap().contains("belady"));
    let few = fail(&["simulate", &trace, "--sample", "0.3", "--objects", "100", "--policy", "lru"]);
    assert!(few.contains("name sizes of at least"), "{few}");
}

/// A number of keys: the first of two passes finds the rate, of a file, of standard input and of a pipe with a name alike.
#[test]
fn a_sample_has_the_number_of_keys_that_was_asked_for() {
    let dir = TempDir::new().unwrap();
    let (csv, hpt) = (generated(&dir, "t.csv"), path_in(&dir, "t.hpt"));
    print(&["trace", "convert", &csv, &hpt]);
    let expected = results(&csv, &["--sample", "12000", "--seed", "3"]);
    assert_eq!(expected["traces"][0]["sample"]["keys"], 12_000);
    assert_eq!(results(&hpt, &["--sample", "12000", "--seed", "3"]), expected);
    let rate = expected["traces"][0]["sample"]["rate"].as_f64().unwrap();
    assert_eq!(results(&csv, &["--sample", &rate.to_string(), "--seed", "3"]), expected);
    let other = results(&csv, &["--sample", "12000", "--seed", "4"]);
    assert_eq!(other["traces"][0]["sample"]["keys"], 12_000);
    assert_ne!(other["traces"][0]["sample"]["rate"], expected["traces"][0]["sample"]["rate"]);

    let log = fs::read(&csv).unwrap();
    let piped = ["simulate", "-", "--sample", "12000", "--seed", "3", "--policy", "lru", "--json"];
    let piped: Value = serde_json::from_str(&print_with_input(&piped, &log)).unwrap();
    assert_eq!(piped["traces"][0]["sample"], expected["traces"][0]["sample"]);
    let sample = path_in(&dir, "sample.hpt");
    let script = format!(
        "cat {csv} | {} trace convert /dev/stdin {sample} --sample 12000 --seed 3",
        env!("CARGO_BIN_EXE_haypile")
    );
    let pipe = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(pipe.status.success(), "{}", String::from_utf8_lossy(&pipe.stderr));
    assert_eq!(results(&sample, &[]), expected);

    // As many keys as there are, or more, are the whole trace.
    let all = results(&hpt, &["--sample", "1000000"]);
    assert_eq!(all, results(&hpt, &[]));
    let few = fail(&["simulate", &csv, "--sample", "50"]);
    assert!(few.contains("a sample of 50 keys says nothing: write at least 4097 keys"), "{few}");
    let twice = fail(&["simulate", "--join", "-", &csv, "--sample", "12000"]);
    assert!(twice.contains("standard input can be read only once"), "{twice}");
    let packed = fail(&["advise", "/dev/null", "--sample", "12000"]);
    assert!(packed.contains("/dev/null"), "{packed}");
}

#[test]
fn hit_ratios_over_time_may_be_those_of_days() {
    let log = "time,key\n0,a\n10,a\n86399,a\n86400,b\n90000,b\n180000,a\n";
    let days = ["simulate", "-", "--policy", "lru", "--objects", "2", "--windows", "days"];
    let text = print_with_input(&days, log.as_bytes());
    let over_time = text.split_once("Hit ratio over time on standard input\n").unwrap().1;
    assert_eq!(over_time.trim_end(), "Day     lru 2\n1 of 2  0.667\n2 of 2  0.667");
}
