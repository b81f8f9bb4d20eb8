//! The section of `startup` in the report.

use haypile_measure::figure::Figure;
use haypile_measure::result::Samples;
use haypile_number::Quantity;
use haypile_plot::drawing::text::printable;

use super::condition::Condition;
use super::difference::{StartCase, cases as start_cases};
use super::figures::{CPU, READY};
use super::printout::{case_tables, notes};
use super::{bench, explain, tables, timelines};
use crate::report::body::details;
use crate::report::body::figures::picture;
use crate::report::case::{Case, varying};
use crate::report::chart::{Bar, Picture};
use crate::report::number::list;
use crate::report::section::Body;

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let starts = start_cases(samples.iter().copied());
    let answers: Vec<String> = starts.iter().filter_map(answer).collect();
    let mut body = Body {
        answer: if answers.is_empty() {
            "No start was measured under two conditions.".to_owned()
        } else {
            let is_pair = starts.iter().any(|case| case.pair.is_some());
            let question = if is_pair {
                "Which of two commands is faster:"
            } else {
                "What a cache saves until the program is ready:"
            };
            question.to_owned()
        },
        answers,
        ..Body::default()
    };
    // Each note once, with the cases that it is about.
    let mut noted: Vec<(String, Vec<String>)> = Vec::new();
    for case in &starts {
        body.multiples.extend(bars(case));
        body.tables.extend(case_tables(case, &starts));
        if case.resident_share().is_none() {
            body.tables.extend(explain::table(case));
        }
        let name = name(case);
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

/// Returns a chart of a case: time and processor time of each condition but the control, with a dot for each start.
fn bars(case: &StartCase<'_>) -> Option<Picture> {
    let measures = [&READY, &CPU];
    let starts = |condition, figure: &Figure| {
        let good = case.samples(condition).iter().filter(|sample| sample.error.is_none());
        good.filter_map(|sample| figure.in_sample(sample)).collect()
    };
    let bar = |condition: Condition| Bar {
        label: condition.to_string(),
        values: measures.iter().map(|figure| case.estimate(condition, figure)).collect(),
        blocks: measures.iter().map(|figure| starts(condition, figure)).collect(),
    };
    let shown = case.conditions().filter(|it| !it.is_control() && case.has_figures(*it));
    let bars: Vec<Bar> = shown.map(bar).collect();
    let names = measures.iter().map(|figure| figure.what.to_owned()).collect();
    (bars.len() > 1).then(|| picture(name(case), Quantity::Time, names, bars))
}

/// The condition to compare with: without the cache, or else with an empty one.
fn other(case: &StartCase<'_>) -> Option<Condition> {
    Condition::LACKING
        .into_iter()
        .find(|other| case.conditions().any(|condition| condition == *other))
}

/// Returns what answers and notes call a case.
fn name(case: &StartCase<'_>) -> String {
    match case.pair {
        Some(_) => tables::title(case),
        None => format!("{} ({})", printable(case.name), case.page_cache),
    }
}

/// Returns a sentence that says how much earlier the command is ready with the cache, and how
/// certain that is.
pub(super) fn answer(case: &StartCase<'_>) -> Option<String> {
    if let Some([a, b]) = &case.pair {
        let (a, b) = (printable(a), printable(b));
        return bench::sentence(case).map(|sentence| format!("{a} (A), {b} (B): {sentence}"));
    }
    let name = name(case);
    let found = case.difference(other(case)?, &READY)?;
    let less = if found.later.median < 0.0 { "more" } else { "less" };
    let share = |saved: f64| format!(", {}", Quantity::Share.write(saved.abs()));
    let share = found.saved.map_or_else(String::new, share);
    let certainty = match found.interval() {
        Some(ends) => {
            let range = tables::range(Quantity::Time, ends);
            format!("95 % interval {range}: {}", found.verdict.name())
        }
        None => "too few blocks for an interval".to_owned(),
    };
    let median = Quantity::Time.write(found.later.median.abs());
    Some(format!("{name}: {median} {less}{share} ({certainty})"))
}
