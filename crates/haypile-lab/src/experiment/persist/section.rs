//! The section of `persist` in the report: the whole time of writing and of opening.

use haypile_measure::figure::{self, Figure};

use super::source;
use crate::report::body::figures::{MAX_MULTIPLES, bars, written};
use crate::report::body::front;
use crate::report::case::{self, Case, Entrant};
use crate::report::section::Body;
use crate::report::table::Table;

const WHOLE: [&Figure; 2] = [&figure::PART_WALL, &figure::PART_CPU];

const OPENED: [&Figure; 2] = [&figure::PART_WALL, &figure::FIRST_HIT];

/// The figures of a part, which its tables have as columns.
const COLUMNS: [&Figure; 9] = [
    &figure::PART_WALL,
    &figure::PART_CPU,
    &figure::OPEN,
    &figure::FIRST_HIT,
    &figure::FILE,
    &figure::DISK,
    &figure::KEYS_FOUND,
    &figure::HIT_RATIO,
    &figure::MEMORY,
];

/// The parts of opening, of caches that load what was saved.
const LOADS: [&Figure; 3] = [&figure::LOAD_READ, &figure::LOAD_CHECK, &figure::LOAD_INSERT];

/// A part, in words.
fn part(name: &str) -> &str {
    match name {
        "fill" => "setting every entry",
        "write" => "writing everything to disk",
        "open" => "opening it and reading everything",
        "open-half" => "opening it with half of the room and reading what was used often",
        "write-aged" => "writing it when a part is old",
        "open-aged" => "opening that and reading everything",
        name => name,
    }
}

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let answer = "Wall time:".to_owned();
    let mut body = Body { answer, ..Body::default() };
    let mut parts: Vec<String> = Vec::new();
    for case in cases.iter().take(MAX_MULTIPLES) {
        let found = front::of_case(case, &figure::PART_WALL, &figure::PART_WALL);
        parts.extend(found.map(|found| format!("{}: {found}", part(&case.name))));
        let opens =
            case.entrants.iter().any(|entrant| entrant.estimate(&figure::FIRST_HIT).is_some());
        let measures = if opens { &OPENED } else { &WHOLE };
        let title = format!("{}: {}", case.title(&varying), part(&case.name));
        let (figure, left_out) = bars(case, title, measures, &figure::PART_WALL);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    body.answers = parts;
    body.tables.push(front::table(cases.iter(), &varying, &figure::PART_WALL));
    body.tables.extend(tables(cases));
    body.tables.push(source::table());
    body
}

/// Returns the parameters that differ between cases and do not follow from others.
fn varying(cases: &[Case<'_>]) -> Vec<String> {
    let derived = ["capacity_bytes", "wait_ms"];
    case::varying(cases).into_iter().filter(|name| !derived.contains(&name.as_str())).collect()
}

/// Returns the tables of results for each part of the experiment `persist`, for the report and the
/// terminal.
pub(super) fn tables(cases: &[Case<'_>]) -> Vec<Table> {
    let varying = varying(cases);
    let of_case = |case: &Case<'_>| {
        let title = case.title(&varying);
        [Some(table(case, &title)), loads(case, &title)]
    };
    cases.iter().flat_map(of_case).flatten().collect()
}

fn table(case: &Case<'_>, title: &str) -> Table {
    let mut entrants: Vec<&Entrant<'_>> =
        case.ranking(&figure::PART_WALL).into_iter().map(|(entrant, _)| entrant).collect();
    let missing = case.entrants.iter().filter(|one| one.estimate(&figure::PART_WALL).is_none());
    entrants.extend(missing);
    let row = |entrant: &&Entrant<'_>| {
        let mut row = vec![entrant.label.clone()];
        row.extend(COLUMNS.map(|figure| written(entrant, figure)));
        row.extend([entrant.samples.len().to_string(), entrant.errors().to_string()]);
        row
    };
    let mut names = vec!["Subject"];
    names.extend(COLUMNS.map(|figure| figure.title));
    names.extend(["Samples", "Errors"]);
    let rows = entrants.iter().map(row).collect();
    Table::of_numbers(format!("{title}: {}", part(&case.name)), &names, rows)
}

/// The parts of opening, of the subjects that load what was saved.
fn loads(case: &Case<'_>, title: &str) -> Option<Table> {
    let row = |entrant: &Entrant<'_>| {
        entrant.estimate(LOADS[0])?;
        let mut row = vec![entrant.label.clone()];
        row.extend(LOADS.map(|figure| written(entrant, figure)));
        Some(row)
    };
    let rows: Vec<Vec<String>> = case.entrants.iter().filter_map(row).collect();
    let mut names = vec!["Subject"];
    names.extend(LOADS.map(|figure| figure.title));
    let title = format!("{title}: {}, opening told apart", part(&case.name));
    (!rows.is_empty()).then(|| Table::of_numbers(title, &names, rows))
}
