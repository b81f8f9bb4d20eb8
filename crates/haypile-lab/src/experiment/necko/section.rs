//! `loop` and `sequence`: what a call costs, by the size of its value.

use haypile_measure::figure;
use haypile_number::{NBSP, Quantity};
use haypile_plot::Unit;
use haypile_plot::axis::capacity;

use super::over_http::without_suffix;
use crate::report::body::curves::{VALUE_BYTES, picture, series};
use crate::report::body::details;
use crate::report::case::{Case, labels};
use crate::report::number::list;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let mut names: Vec<&str> = Vec::new();
    for case in cases {
        if !names.contains(&case.name.as_str()) {
            names.push(&case.name);
        }
    }
    let (answer, answers) = answer(cases, &names);
    let mut body = Body { answer, answers, ..Body::default() };
    // A cache looks alike in all charts, wherever it is missing.
    let all = labels(cases.iter());
    for name in &names {
        let of_name: Vec<&Case<'_>> = cases.iter().filter(|case| case.name == *name).collect();
        let mut series = series(&of_name, VALUE_BYTES, &figure::WALL, "");
        for one in &mut series {
            one.place = all.iter().position(|label| *label == one.name).unwrap_or(0);
        }
        series.sort_by_key(|one| one.place);
        let title = format!("Time of a call: {name}");
        let axis = ("wall time per call", Quantity::Time);
        let (figure, left_out) = picture(title, VALUE_BYTES, axis, series, Vec::new());
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    body.tables.push(table(cases, &names));
    details::details(&mut body, cases, &crate::report::case::varying(cases));
    body
}

fn sizes(cases: &[Case<'_>]) -> Vec<u64> {
    let mut sizes: Vec<u64> =
        cases.iter().filter_map(|case| case.number(VALUE_BYTES.parameter)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Writes the cost of a hit by size; without hits, that of the last case.
fn answer(cases: &[Case<'_>], names: &[&str]) -> (String, Vec<String>) {
    let nothing = || ("Nothing was measured.".to_owned(), Vec::new());
    let finds = |name: &&&str| without_suffix(name).0 == "hit";
    let Some(name) = names.iter().find(finds).or(names.last()) else { return nothing() };
    let at = |size: &u64| {
        let is_it = |case: &&Case<'_>| {
            case.name == *name && case.number(VALUE_BYTES.parameter) == Some(*size)
        };
        let ranking = cases.iter().find(is_it)?.ranking(&figure::WALL);
        let costs: Vec<String> = ranking
            .iter()
            .map(|(entrant, estimate)| {
                format!("{} {}", entrant.label, figure::WALL.write_within(estimate))
            })
            .collect();
        (!costs.is_empty())
            .then(|| format!("values of {}: {}", capacity(*size, Unit::Bytes), list(&costs)))
    };
    let found: Vec<String> = sizes(cases).iter().filter_map(at).collect();
    if found.is_empty() {
        return nothing();
    }
    (format!("Wall time of “{name}”, with 95{NBSP}% intervals:"), found)
}

/// A row for each case and subject, and the sizes across.
fn table(cases: &[Case<'_>], names: &[&str]) -> Table {
    let sizes = sizes(cases);
    let mut rows = Vec::new();
    for name in names {
        for label in labels(cases.iter()) {
            let cell = |size: &u64| {
                let of_size = |case: &&Case<'_>| {
                    case.name == *name && case.number(VALUE_BYTES.parameter) == Some(*size)
                };
                let estimate =
                    cases.iter().find(of_size)?.entrant(&label)?.estimate(&figure::WALL)?;
                Some(Quantity::Time.write(estimate.value))
            };
            let cells: Vec<Option<String>> = sizes.iter().map(cell).collect();
            if cells.iter().any(Option::is_some) {
                let mut row = vec![(*name).to_owned(), label];
                row.extend(
                    cells.into_iter().map(|cell| cell.unwrap_or_else(|| NOTHING.to_owned())),
                );
                rows.push(row);
            }
        }
    }
    let across: Vec<String> = sizes.iter().map(|size| capacity(*size, Unit::Bytes)).collect();
    let mut columns = vec!["Case", "Subject"];
    columns.extend(across.iter().map(String::as_str));
    let caption = "Wall time per call by the size of its value, trimmed means".to_owned();
    Table::of_numbers(caption, &columns, rows).with_text_in(&[1])
}
