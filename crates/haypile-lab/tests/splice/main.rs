//! Tables in documents.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;

use haypile_lab::splice::{Spliced, splice};
use haypile_measure::result::{Asked, Row, Run};
use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

const END: &str = "<!-- end of table -->\n";

fn row(subject: &str, case: &str, threads: u64, block: u64, cpu_ns: u64) -> String {
    let sample = serde_json::from_value(json!({
        "schema": 1, "run": "r", "experiment": "micro", "case": case,
        "parameters": { "threads": threads }, "seed": 1,
        "subject": { "name": subject, "version": "1", "language": "rust", "program": "haypile" },
        "block": block, "position": 0, "operations": 1000, "wall_ns": 1, "cpu_ns": cpu_ns * 1000,
        "hits": 750, "misses": 250, "memory_bytes": 1 << 20,
    }));
    serde_json::to_string(&Row::Sample(sample.unwrap())).unwrap() + "\n"
}

/// Two subjects, two cases, one and ten threads, three blocks.
fn results() -> String {
    let mut rows = String::new();
    for (block, drift) in [(0, 0), (1, 10), (2, 30)] {
        for (subject, cost) in [("b|x", 200), ("a", 100)] {
            for case in ["get", "set"] {
                for threads in [10, 2] {
                    rows += &row(subject, case, threads, block, (cost + drift) * threads);
                }
            }
        }
    }
    rows
}

fn spliced(document: &str) -> Result<Spliced, String> {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("results.jsonl"), results()).unwrap();
    let path = directory.path().join("document.md");
    fs::write(&path, document).unwrap();
    let folder = format!("{}/", directory.path().display());
    splice(&path).map_err(|error| error.to_string().replace(&folder, ""))
}

#[track_caller]
fn table(settings: &str) -> String {
    let begin = format!("<!-- table: results.jsonl {settings} -->\n");
    let spliced = spliced(&format!("{begin}{END}")).unwrap();
    let table = spliced.text.strip_prefix(&begin).unwrap().strip_suffix(END).unwrap();
    table.trim().to_owned()
}

#[track_caller]
fn problem(settings: &str) -> String {
    spliced(&format!("text\n<!-- table: {settings} -->\n{END}")).unwrap_err()
}

#[test]
fn rows_are_subjects_in_order() {
    assert_eq!(
        table("case=get threads=2 columns=subject,cpu,memory,hit-ratio,samples"),
        "\
| subject | CPU (MAD) | memory | hit ratio | samples |
|---|---:|---:|---:|---:|
| `a` | 225 ns (8.9 %) | 1 MiB | 0.750 | 3 |
| `b\\|x` | 426 ns (4.7 %) | 1 MiB | 0.750 | 3 |"
    );
}

#[test]
fn what_a_run_asks_changes_no_table() {
    let hostile = "| <!-- end of table -->\n".to_owned();
    let [file, question, source, method] = std::array::from_fn(|_| hostile.clone());
    let asked = Some(Asked { file, question, source, method });
    let run = Run { asked, ..Run::begin("micro", String::new(), 1) };
    let run = serde_json::to_string(&Row::Run(run)).unwrap() + "\n";
    let settings = "case=get threads=2 columns=subject,run,cpu";
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("results.jsonl"), run + &results()).unwrap();
    let path = directory.path().join("document.md");
    let begin = format!("<!-- table: results.jsonl {settings} -->\n");
    fs::write(&path, format!("{begin}{END}")).unwrap();
    assert_eq!(splice(&path).unwrap().text, spliced(&format!("{begin}{END}")).unwrap().text);
}

#[test]
fn byte_hit_ratios_have_a_mean_over_what_stands_across() {
    let replay = |subject: &str, percent: u64, hit_bytes: u64| {
        let row = row(subject, "zipf", 1, 0, 1);
        let mut row: serde_json::Value = serde_json::from_str(&row).unwrap();
        row["parameters"] = json!({ "capacity_percent": percent, "requested_bytes": 1000 });
        row["counts"] = json!({ "hit_bytes": hit_bytes });
        row.to_string() + "\n"
    };
    let rows = [("a", 1, 100), ("a", 10, 300), ("b", 1, 200), ("b", 10, 500), ("c", 1, 900)];
    let rows: String =
        rows.map(|(subject, percent, bytes)| replay(subject, percent, bytes)).concat();
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("replay.jsonl"), rows).unwrap();
    let path = directory.path().join("document.md");
    let columns = "columns=subject,mean-byte-hit-ratio,byte-hit-ratio across=capacity_percent";
    let begin = format!("<!-- table: replay.jsonl {columns} sort=mean-byte-hit-ratio -->\n");
    fs::write(&path, format!("{begin}{END}")).unwrap();
    let spliced = splice(&path).unwrap().text;
    assert_eq!(
        spliced.strip_prefix(&begin).unwrap().strip_suffix(END).unwrap().trim(),
        "\
| subject | mean byte hit ratio | byte hit ratio, capacity_percent=1 | byte hit ratio, capacity_percent=10 |
|---|---:|---:|---:|
| `b` | 0.350 | 0.200 | 0.500 |
| `a` | 0.200 | 0.100 | 0.300 |
| `c` | - | 0.900 | - |"
    );
}

#[test]
fn counts_of_errors_are_shown_as_well() {
    let torture = |subject: &str, kills: u64, counts: serde_json::Value, error: Option<&str>| {
        let mut row: serde_json::Value =
            serde_json::from_str(&row(subject, "keep", 1, 0, 0)).unwrap();
        row["parameters"] = json!({ "kills": kills });
        row["counts"] = counts;
        row["error"] = json!(error);
        row.to_string() + "\n"
    };
    let wrong = json!({ "acknowledged": 1234, "lost": 2, "longest_write_ns": 1_260_000 });
    let more = json!({ "acknowledged": 1, "lost": 0, "longest_write_ns": 1_000_000 });
    let rows = [
        torture("b", 5, wrong, Some("lost: 2")),
        torture("b", 5, more, None),
        torture("a", 5, json!({ "acknowledged": 7 }), None),
    ];
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("torture.jsonl"), rows.concat()).unwrap();
    let path = directory.path().join("document.md");
    let columns = "columns=case,kills,subject,count:acknowledged,count:lost,count:longest_write_ns";
    let begin = format!("<!-- table: torture.jsonl {columns} -->\n");
    fs::write(&path, format!("{begin}{END}")).unwrap();
    let spliced = splice(&path).unwrap().text;
    assert_eq!(
        spliced.strip_prefix(&begin).unwrap().strip_suffix(END).unwrap().trim(),
        "\
| case | kills | subject | acknowledged | lost | longest write |
|---|---|---|---:|---:|---:|
| keep | 5 | `a` | 7 | - | - |
| keep | 5 | `b` | 1,235 | 2 | 1.26 ms |"
    );
    fs::write(&path, format!("<!-- table: torture.jsonl columns=count:losst -->\n{END}")).unwrap();
    let error = splice(&path).unwrap_err().to_string();
    assert!(
        error.contains("these results have no field or parameter count:losst (known: count:ack"),
        "{error}"
    );
}

#[test]
fn numbers_are_sorted_as_numbers() {
    assert_eq!(
        table("case=get subject=a columns=threads,cpu"),
        "\
| threads | CPU (MAD) |
|---|---:|
| 2 | 225 ns (8.9 %) |
| 10 | 1.13 µs (8.9 %) |"
    );
    let sorted = table("case=get threads=2 columns=subject,cpu sort=cpu");
    assert!(sorted.find("`a`") < sorted.find("`b"));
}

#[test]
fn parameters_stand_across_and_times_are_paired() {
    // Within blocks: 200 / 100, 210 / 110 and 230 / 130, of which the mean logarithm counts.
    assert_eq!(
        table("case=get columns=subject,times across=threads baseline=a"),
        "\
| subject | cpu relative (95 %), threads=2 | cpu relative (95 %), threads=10 |
|---|---:|---:|
| `a` | 1.00 | 1.00 |
| `b\\|x` | 1.89 (1.62 to 2.20) | 1.89 (1.62 to 2.20) |"
    );
}

#[test]
fn what_a_table_cannot_be_made_of_is_an_error() {
    for (settings, message) in [
        ("results.jsonl columns=subject", "one of them with figures"),
        ("results.jsonl", "one of them with figures"),
        ("columns=subject,cpu", "name the results first"),
        ("results.jsonl columns=subject,cpu wide", "\"wide\" is not a setting"),
        (
            "results.jsonl columns=subject,cpu,cpus",
            "these results have no field or parameter cpus (known: ",
        ),
        ("results.jsonl columns=subject,cpu case=got", "no result has case=got (known: get, set)"),
        ("results.jsonl columns=subject,cpu case=get", "mix samples with threads 10 and 2"),
        ("results.jsonl columns=subject,times", "baseline=NAME"),
        ("results.jsonl columns=case,subject,threads,times baseline=c", "(known: a, b|x"),
        (
            "results.jsonl columns=subject,cpu across=case threads=2 sort=wall",
            "the table cannot be sorted by wall",
        ),
        ("results.jsonl columns=subject,times baseline=a metric=rss", "unknown metric 'rss'"),
        ("missing.jsonl columns=subject,cpu", "missing.jsonl: No such file"),
    ] {
        let problem = problem(settings);
        assert!(problem.starts_with("document.md: line 2: "), "{settings}: {problem}");
        assert!(problem.contains(message), "{settings}: {problem}");
    }
}

#[test]
fn a_document_that_was_spliced_is_up_to_date() {
    let begin = "<!-- table: results.jsonl columns=subject,cpu case=get threads=2 -->\n";
    let document = format!("# Title\r\n\n{begin}old\n{END}\nbetween\n\n{begin}{END}no newline");
    let once = spliced(&document).unwrap();
    assert_eq!((once.stale, once.tables), (vec![3, 9], 2));
    assert!(
        once.text.starts_with("# Title\r\n\n") && once.text.ends_with(&format!("{END}no newline"))
    );
    let twice = spliced(&once.text).unwrap();
    assert_eq!((twice.stale, twice.text), (Vec::new(), once.text));
}

proptest! {
    /// A document without tables stays as it is, and nothing panics.
    #[test]
    fn documents_without_tables_stay(text in "(\\PC|\n|```|<!--|-->){0,60}") {
        prop_assert_eq!(spliced(&text).unwrap().text, text);
    }

    #[test]
    fn any_settings_are_a_table_or_an_error(
        settings in "(results.jsonl )?(columns=|across=|sort=|case|=|,|cpu|subject| |threads|get){0,12}"
    ) {
        let _ = spliced(&format!("<!-- table: {settings} -->\n{END}"));
    }
}
