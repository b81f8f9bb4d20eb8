//! From measuring to a verdict, on a clock that is made up.

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, NEGATIVE, haypile};

/// Measures a cache on a fake clock beside the same cache that does 3 of 100 operations twice.
fn measure(directory: &TempDir) -> String {
    let path = directory.path().join("results.jsonl").to_str().unwrap().to_owned();
    let measured = haypile(&["lab", "micro", "--case", "get-hit", "--keys", "200"])
        .args(["--operations", "1000", "--blocks", "3", "--out", &path])
        .args(["--subject", "again:0:mock:100ns,again:3:mock:100ns"])
        .output()
        .unwrap();
    assert!(measured.status.success(), "{measured:?}");
    path
}

#[test]
fn a_planted_slowdown_is_found() {
    let directory = TempDir::new().unwrap();
    let path = measure(&directory);
    let compare = |subjects: &str, more: &[&str]| {
        let arguments = ["lab", "compare", &path, "--json", "--subjects", subjects];
        let output = haypile(&arguments).args(more).output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code().unwrap(), value)
    };
    let slower = "again:0:mock:100ns,again:3:mock:100ns";
    let (status, value) = compare(slower, &["--fail-above", "2%"]);
    assert_eq!(status, NEGATIVE);
    let row = &value["rows"][0];
    assert_eq!(row["verdict"], "slower");
    assert_eq!((&row["pairing"], &row["pairs"]), (&"paired".into(), &3.into()));
    let change = row["effect"]["change"].as_f64().unwrap();
    assert!((change - 0.03).abs() < 1e-9, "{value:#}");
    assert_eq!(
        (row["old"]["median"].as_f64(), row["new"]["median"].as_f64()),
        (Some(100.0), Some(103.0))
    );

    assert_eq!(compare(slower, &["--fail-above", "4%"]).0, 0);
    assert_eq!(compare(slower, &["--noise-floor", "5%"]).1["rows"][0]["verdict"], "no-difference");
    let faster = "again:3:mock:100ns,again:0:mock:100ns";
    let (status, value) = compare(faster, &["--fail-above", "0%"]);
    assert_eq!((status, &value["rows"][0]["verdict"]), (0, &"faster".into()));
    let same = "again:3:mock:100ns,again:3:mock:100ns";
    assert_eq!(compare(same, &[]).1["rows"][0]["verdict"], "no-difference");
    assert_eq!(compare("again:3:mock:100ns,mock:100ns", &[]).0, FAILURE);
}
