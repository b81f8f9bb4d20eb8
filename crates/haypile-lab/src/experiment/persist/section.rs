//! `persist`: how long writing and opening take as a whole.

use haypile_measure::result::Sample;
use haypile_measure::statistics::Summary;

use crate::report::body::figures::{MAX_MULTIPLES, Measure, bars};
use crate::report::body::{cost, front};
use crate::report::case::{Case, Entrant, varying};
use crate::report::number::Quantity;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

const WHOLE: [Measure; 2] = [
    Measure { name: "wall time", of: |entrant| entrant.estimate(cost::whole_wall) },
    Measure { name: "processor time", of: |entrant| entrant.estimate(cost::whole_cpu) },
];

const OPENED: [Measure; 2] = [
    Measure { name: "until everything was read", of: |entrant| entrant.estimate(cost::whole_wall) },
    Measure { name: "until the first hit", of: |entrant| entrant.estimate(first_hit) },
];

fn first_hit(sample: &Sample) -> Option<f64> {
    sample.counts.get("first_hit_wall_ns").map(|ns| *ns as f64)
}

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
    let varying: Vec<String> = varying(cases)
        .into_iter()
        .filter(|name| name != "capacity_bytes" && name != "wait_ms")
        .collect();
    let answer = "By wall time, the least is taken by:".to_owned();
    let mut body = Body { answer, ..Body::default() };
    let mut parts: Vec<String> = Vec::new();
    for case in cases.iter().take(MAX_MULTIPLES) {
        let found = front::of_case(case, cost::whole_wall, Quantity::Time);
        parts.extend(found.map(|found| format!("{}: {found}", part(&case.name))));
        let opens = case.entrants.iter().any(|entrant| entrant.estimate(first_hit).is_some());
        let measures = if opens { &OPENED } else { &WHOLE };
        let title = format!("{}: {}", case.title(&varying), part(&case.name));
        let (figure, left_out) = bars(case, title, Quantity::Time, measures, cost::whole_wall);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    body.answers = parts;
    let what = "wall time of the whole part";
    body.tables.push(front::table(cases.iter(), &varying, cost::whole_wall, Quantity::Time, what));
    for case in cases {
        let title = case.title(&varying);
        body.tables.push(table(case, &title));
        body.tables.extend(loads(case, &title));
    }
    body
}

fn table(case: &Case<'_>, title: &str) -> Table {
    let mut entrants: Vec<&Entrant<'_>> =
        case.ranking(cost::whole_wall).into_iter().map(|(entrant, _)| entrant).collect();
    let missing = case.entrants.iter().filter(|one| one.estimate(cost::whole_wall).is_none());
    entrants.extend(missing);
    let write = |quantity: Quantity, summary: Option<Summary>| {
        summary.map_or_else(|| NOTHING.to_owned(), |summary| quantity.write(summary.median))
    };
    let row = |entrant: &&Entrant<'_>| {
        let time = |cost| write(Quantity::Time, entrant.summary(cost));
        let ratio = entrant.hit_ratio();
        vec![
            entrant.label.clone(),
            time(cost::whole_wall),
            time(cost::whole_cpu),
            time(|sample| count(sample, "open_wall_ns")),
            time(first_hit),
            write(Quantity::Bytes, entrant.summary(|sample| count(sample, "file_bytes"))),
            ratio.map_or_else(|| NOTHING.to_owned(), |ratio| Quantity::Share.write(ratio)),
            write(Quantity::Bytes, entrant.summary(cost::memory)),
            entrant.samples.len().to_string(),
            entrant.errors().to_string(),
        ]
    };
    let names = [
        "Subject",
        "Wall",
        "CPU",
        "Open",
        "First hit",
        "File",
        "Found",
        "Memory",
        "Samples",
        "Errors",
    ];
    let rows = entrants.iter().map(row).collect();
    Table::of_numbers(format!("{title}: {}, medians", part(&case.name)), &names, rows)
}

/// The parts of opening, of the subjects that load what was saved.
fn loads(case: &Case<'_>, title: &str) -> Option<Table> {
    let row = |entrant: &Entrant<'_>| {
        let parts: [fn(&Sample) -> Option<f64>; 3] = [
            |sample| count(sample, "load_read_ns"),
            |sample| count(sample, "load_check_ns"),
            |sample| count(sample, "load_insert_ns"),
        ];
        let time = |of| Some(Quantity::Time.write(entrant.summary(of)?.median));
        let parts = parts.into_iter().map(time).collect::<Option<Vec<String>>>()?;
        Some([vec![entrant.label.clone()], parts].concat())
    };
    let rows: Vec<Vec<String>> = case.entrants.iter().filter_map(row).collect();
    let names = ["Subject", "Reading the file", "Checking it", "Inserting"];
    let title = format!("{title}: {}, opening told apart, medians", part(&case.name));
    (!rows.is_empty()).then(|| Table::of_numbers(title, &names, rows))
}

fn count(sample: &Sample, name: &str) -> Option<f64> {
    sample.counts.get(name).map(|count| *count as f64)
}
