//! The section of the report.

use haypile_measure::result::Samples;
use haypile_number::Quantity;
use haypile_sim::plot::drawing::text::printable;

use super::condition::Condition;
use super::difference::{StartCase, StartFigure, cases as start_cases, verdict};
use super::printout::notes;
use super::timelines;
use crate::report::body::details;
use crate::report::case::{Case, varying};
use crate::report::number::list;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let starts = start_cases(samples.iter().copied());
    let answers: Vec<String> = starts.iter().filter_map(answer).collect();
    let mut body = Body {
        answer: if answers.is_empty() {
            "No start was measured with and without a cache.".to_owned()
        } else {
            "What a cache saves until the program is ready:".to_owned()
        },
        answers,
        ..Body::default()
    };
    // Each note once, with the cases that it is about.
    let mut noted: Vec<(String, Vec<String>)> = Vec::new();
    for case in &starts {
        body.tables.extend(table(case));
        let name = format!("{} ({})", printable(case.name), case.page_cache);
        for note in notes(case) {
            match noted.iter_mut().find(|(known, _)| *known == note) {
                Some((_, names)) => names.push(name.clone()),
                None => noted.push((note, vec![name.clone()])),
            }
        }
    }
    body.notes.extend(noted.into_iter().map(|(note, names)| format!("{}: {note}", list(&names))));
    body.figures = timelines::figures(samples.iter().copied());
    details::details(&mut body, cases, &varying(cases));
    body
}

/// The condition to compare with: without the cache, or else with an empty one.
fn other(case: &StartCase<'_>) -> Option<Condition> {
    let others = [Condition::Off, Condition::Fill];
    others.into_iter().find(|other| case.conditions().any(|condition| condition == *other))
}

fn answer(case: &StartCase<'_>) -> Option<String> {
    let found = case.difference(other(case)?, StartFigure::Ready)?;
    let ms = |value: f64| Quantity::Time.write(value.abs() * 1e6);
    let name = format!("{} ({})", printable(case.name), case.page_cache);
    let less = if found.later.median < 0.0 { "more" } else { "less" };
    let share = found.saved.map_or_else(String::new, |it| format!(", {:.1} %", it.abs() * 100.0));
    let certainty = match found.later.interval {
        Some((low, high)) => {
            let (low, high) = (Quantity::Time.write(low * 1e6), Quantity::Time.write(high * 1e6));
            format!("95 % interval {low} to {high}: {}", verdict(&found.later))
        }
        None => "too few blocks for an interval".to_owned(),
    };
    Some(format!("{name}: {} {less}{share} ({certainty})", ms(found.later.median)))
}

fn table(case: &StartCase<'_>) -> Option<Table> {
    let figures = case.figures();
    let row =
        |condition: Condition| {
            let ready = case.difference(condition, StartFigure::Ready);
            let is_with = condition == Condition::With;
            let of = |figure: &StartFigure| {
                let summary = case.summary(condition, *figure);
                summary.map_or_else(|| NOTHING.to_owned(), |it| format!("{:.2}", it.median))
            };
            let difference = ready.filter(|_| !is_with);
            let interval = difference.and_then(|it| it.later.interval);
            let mut cells = vec![condition.to_string()];
            cells.push(
                difference.map_or_else(|| NOTHING.to_owned(), |it| verdict(&it.later).to_owned()),
            );
            cells.push(
                difference
                    .map_or_else(|| NOTHING.to_owned(), |it| format!("{:+.2} ms", it.later.median)),
            );
            cells.push(interval.map_or_else(
                || NOTHING.to_owned(),
                |(low, high)| format!("{low:+.2} to {high:+.2}"),
            ));
            cells.extend(figures.iter().map(of));
            cells
        };
    let has_figures =
        |condition: &Condition| case.summary(*condition, StartFigure::Ready).is_some();
    let rows: Vec<Vec<String>> = case.conditions().filter(has_figures).map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let mut names = vec!["Condition", "Verdict", "Later than with", "95\u{A0}% interval"];
    names.extend(figures.iter().map(|figure| figure.name()));
    let caption = format!(
        "{}, {}, ready: {}; medians, and the median of differences within blocks",
        printable(case.name),
        case.page_cache,
        printable(&case.ready)
    );
    Some(Table::of_numbers(caption, &names, rows).with_text_in(&[1]))
}
