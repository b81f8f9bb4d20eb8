//! One file of rows has one hit ratio: on the terminal, in the report and in a spliced table.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fs;

use haypile_lab::experiment::topics;
use haypile_lab::ranking::rankings;
use haypile_lab::report::{self, Report};
use haypile_lab::splice::splice;
use haypile_measure::figure::{BYTE_HIT_RATIO, HIT_RATIO};
use haypile_measure::result::{Row, Run, Sample, Samples, read};
use serde_json::json;
use tempfile::TempDir;

/// A row of a subject: hits and misses of one block.
fn sample(run: &Run, block: u64, (hits, misses): (u64, u64), error: Option<&str>) -> Sample {
    serde_json::from_value(json!({
        "schema": 1, "run": run.run, "experiment": "micro", "case": "get-hit",
        "parameters": { "requested_bytes": 1000 }, "seed": 1, "block": block, "position": 0,
        "subject": { "name": "memory", "version": "1", "language": "rust", "program": "haypile" },
        "operations": 2000, "wall_ns": 100_000_000, "cpu_ns": 100_000_000, "hits": hits,
        "misses": misses, "counts": { "hit_bytes": hits / 4 }, "error": error,
    }))
    .unwrap()
}

/// Three blocks that were measured, of which the last one missed nearly everything, and one that
/// crashed: 4,020 of 6,000 reads hit. With the crashed block it would be half, and the median of the
/// blocks is all.
fn samples(run: &Run) -> Vec<Sample> {
    let blocks = [(2000, 0), (2000, 0), (20, 1980)];
    let good = blocks.into_iter().zip(0..).map(|(reads, block)| sample(run, block, reads, None));
    good.chain([sample(run, 3, (0, 2000), Some("crashed"))]).collect()
}

#[test]
fn terminal_report_and_documents_have_one_hit_ratio() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| directory.path().join(name);
    let run = Run::begin("micro", String::new(), 1);
    let rows =
        [Row::Run(run.clone())].into_iter().chain(samples(&run).into_iter().map(Row::Sample));
    let lines: Vec<String> = rows.map(|row| serde_json::to_string(&row).unwrap() + "\n").collect();
    fs::write(path("rows.jsonl"), lines.concat()).unwrap();

    // As a person computes it, from the lines of the file.
    let results = read(&path("rows.jsonl")).unwrap();
    let good: Vec<&Sample> = results.samples.iter().filter(|row| row.error.is_none()).collect();
    let hits: u64 = good.iter().map(|row| row.hits).sum();
    let reads: u64 = good.iter().map(|row| row.hits + row.misses).sum();
    assert_eq!((hits, reads), (4020, 6000));

    let of_all = results.samples.iter().collect::<Samples<'_>>();
    assert!((HIT_RATIO.of(&of_all).unwrap().value - 0.67).abs() < 1e-12);
    assert!((BYTE_HIT_RATIO.of(&of_all).unwrap().value - 1005.0 / 3000.0).abs() < 1e-12);

    let names = [("memory".to_owned(), "haypile".to_owned())];
    let terminal = &rankings(&results.samples, &names)[0].subjects[0];
    assert!((terminal.hit_ratio.unwrap().value - 0.67).abs() < 1e-12);
    assert_eq!(terminal.errors, 1);

    let marker = "<!-- table: rows.jsonl columns=subject,hit-ratio,byte-hit-ratio,samples -->\n";
    fs::write(path("document.md"), format!("{marker}<!-- end of table -->\n")).unwrap();
    let spliced = splice(&path("document.md")).unwrap().text;
    assert!(spliced.contains("| `memory` | 0.670 | 0.335 | 4, 1 of them errors |"), "{spliced}");

    let page =
        Report::new(&report::read(&[path("rows.jsonl")]).unwrap(), &topics()).html().unwrap();
    assert!(page.contains(">0.670<"), "the report has another one");
    assert!(!page.contains(">1.000<"), "the report has a second one");
}

#[test]
fn rows_without_reads_or_with_errors_alone_have_none() {
    let run = Run::begin("micro", String::new(), 1);
    let ratio =
        |samples: &[Sample]| HIT_RATIO.of(&samples.iter().collect()).map(|ratio| ratio.value);
    assert_eq!(ratio(&[]), None);
    assert_eq!(ratio(&[sample(&run, 0, (0, 0), None)]), None);
    assert_eq!(ratio(&[sample(&run, 0, (1, 1), Some("crashed"))]), None);
    assert_eq!(ratio(&[sample(&run, 0, (u64::MAX, 0), None)]), Some(1.0));
}
