//! Every view of the same rows has the same figures: terminal, document, page and findings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use haypile_measure::figure::{
    CPU, FIGURES, Figure, Finding, Findings, HIT_RATIO, MEMORY, SERVER, WALL,
};
use haypile_measure::parameters;
use haypile_measure::result::{Parameters, Row, Sample, Samples, SubjectId, read};
use haypile_number::NBSP;
use tempfile::TempDir;

use super::Rows;
use crate::experiment::on_caches::table::printout_of;
use crate::experiment::{Block, topics};
use crate::report::body::figures::MAX_TABLES;
use crate::report::{self, Report};
use crate::splice::splice;

/// The figures that all views have.
const SHOWN: [&Figure; 5] = [&CPU, &WALL, &SERVER, &HIT_RATIO, &MEMORY];

/// A figure as all texts write it; nothing where there is none.
fn text(findings: &[&Finding], figure: &Figure) -> Option<String> {
    let found = findings.iter().find(|finding| finding.figure == figure.name)?;
    assert_eq!(found.quantity, figure.quantity);
    Some(figure.quantity.write(found.estimate.value).replace(NBSP, " "))
}

/// Findings by subject and case.
type ByKey<'f> = BTreeMap<String, Vec<&'f Finding>>;

fn key(case: &str, parameters: &Parameters, subject: &SubjectId) -> String {
    format!("{case} {parameters:?} {}", subject.identity())
}

fn by_key(findings: &Findings) -> ByKey<'_> {
    let mut all = ByKey::new();
    for found in &findings.0 {
        all.entry(key(&found.case, &found.parameters, &found.subject)).or_default().push(found);
    }
    all
}

/// The rows of each of the terminal's tables of cases.
fn terminal(samples: &[Sample], names: &[(String, String)]) -> Vec<Vec<Vec<String>>> {
    let printout = printout_of(samples, names);
    let tables = printout.blocks().iter().filter_map(|block| match block {
        Block::Table { header, rows, .. } if header[1] == CPU.title => Some(rows.clone()),
        _ => None,
    });
    tables.collect()
}

/// Compares all views of the rows of one run; returns the number of figures compared.
fn compare(samples: &[Sample]) -> usize {
    let all: Samples<'_> = samples.iter().collect();
    let findings = Findings::of(&all, FIGURES);
    let by_key = by_key(&findings);
    let identities = all.by_subject();
    let names: Vec<(String, String)> =
        identities.iter().map(|(it, _)| (it.name.to_owned(), it.program.to_owned())).collect();
    let directory = TempDir::new().unwrap();
    let rows = directory.path().join("rows.jsonl");
    let lines = samples.iter().map(|it| serde_json::to_string(&Row::Sample(it.clone())).unwrap());
    fs::write(&rows, lines.map(|line| line + "\n").collect::<String>()).unwrap();
    let parameters: BTreeSet<&String> = all.iter().flat_map(|it| it.parameters.keys()).collect();
    let parameters: Vec<&String> = parameters.into_iter().collect();
    let names_of_parameters = parameters.iter().map(|name| name.as_str()).collect::<Vec<_>>();
    let document = directory.path().join("document.md");
    let marker = format!(
        "<!-- table: rows.jsonl columns=case,subject,program,version,language,{},cpu,wall,server,\
         hit-ratio,memory -->\n<!-- end of table -->\n",
        names_of_parameters.join(",")
    );
    fs::write(&document, marker).unwrap();
    let spliced = splice(&document).unwrap().text;
    let page = Report::new(&report::read(&[rows]).unwrap(), &topics()).html().unwrap();

    let mut compared = 0;
    let tables = terminal(samples, &names);
    assert_eq!(tables.len(), all.cases().len());
    for (case, table) in all.cases().iter().zip(tables) {
        let subjects = identities.iter().map(|(identity, _)| case.of_subject(*identity));
        for (own, cells) in subjects.filter(|own| !own.is_empty()).zip(table) {
            // A subject with nothing but errors may have no figure at all.
            let key = key(&own[0].case, &own[0].parameters, &own[0].subject);
            let found = by_key.get(&key).map_or(&[][..], Vec::as_slice);
            let known = own.iter().find(|sample| sample.error.is_none()).unwrap_or(&own[0]);
            let mut line = format!(
                "| {} | `{}` | {} | {} | {} |",
                known.case,
                known.subject.name,
                known.subject.program,
                known.subject.version,
                known.subject.language
            );
            for name in &parameters {
                let value = known.parameters.get(*name).map(parameters::text).unwrap_or_default();
                line = format!("{line} {value} |");
            }
            let own_line = spliced.lines().find(|text| text.starts_with(&line));
            let own_line = own_line.unwrap_or_else(|| panic!("no line of {line}"));
            for figure in SHOWN {
                let Some(value) = text(found, figure) else { continue };
                assert!(cells.contains(&value), "{value} of {} is not in {cells:?}", figure.name);
                let is_cell = |cell: &str| cell == value || cell.starts_with(&format!("{value} ("));
                let has_cell =
                    own_line.split(" | ").map(|cell| cell.trim_end_matches(" |")).any(is_cell);
                assert!(has_cell, "{value} of {} is not in {own_line}", figure.name);
                compared += 1;
            }
        }
    }
    // The page has a table of each case, up to a bound, unless the experiment counts in another way.
    if page.contains(&format!("{} and {}", CPU.what, WALL.what)) && all.cases().len() <= MAX_TABLES
    {
        for finding in &findings.0 {
            if finding.figure == CPU.name {
                let value = CPU.quantity.write(finding.estimate.value);
                assert!(page.contains(&value), "{value} is not in the page");
                compared += 1;
            }
        }
    }
    compared
}

fn record() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let mut files = Vec::new();
    for folder in fs::read_dir(root).unwrap().filter_map(Result::ok) {
        let Ok(entries) = fs::read_dir(folder.path()) else { continue };
        files.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    files
}

#[test]
fn views_of_the_record_have_one_value_for_each_figure() {
    let mut compared = 0;
    for file in record() {
        // Other programs write files of lines as well.
        let Ok(results) = read(&file) else { continue };
        let all: Samples<'_> = results.samples.iter().collect();
        for ((_, experiment), own) in all.grouped(|it| (it.run.clone(), it.experiment.clone())) {
            // Its rows are each a finding, and no blocks of a subject.
            if experiment == "torture" {
                continue;
            }
            let own: Vec<Sample> = own.iter().copied().cloned().collect();
            compared += compare(&own);
        }
    }
    assert!(compared > 1_000, "{compared}");
}

#[test]
fn views_of_failures_and_single_blocks_have_one_value_for_each_figure() {
    let mut rows = Rows::new("micro");
    let parameters = serde_json::json!({"value_bytes": 100});
    for (block, ns) in [(0, 100), (1, 90_000), (2, 104)] {
        let counts = serde_json::json!({"hits": 3 * block, "misses": 1, "memory_bytes": 5000});
        rows.add("get-hit", &parameters, "memory", block, ns, &counts);
    }
    rows.add("get-hit", &parameters, "memory", 3, 7, &serde_json::json!({"error": "crashed"}));
    rows.add("get-hit", &parameters, "file", 0, 12_345, &serde_json::json!({}));
    rows.add("set", &parameters, "file", 0, 50, &serde_json::json!({"error": "crashed"}));
    let rows = rows.lines.iter().map(|row| serde_json::from_value(row.clone()).unwrap());
    let samples = rows.filter_map(|row| match row {
        Row::Sample(sample) => Some(sample),
        _ => None,
    });
    assert!(compare(&samples.collect::<Vec<_>>()) >= 8);
}
