//! The tables of a command, as terminal and report show them.

use haypile_measure::figure::{Estimate, Figure};
use haypile_measure::statistics::Interval;
use haypile_number::{NBSP, Quantity};
use haypile_plot::drawing::text::printable;

use super::condition::Condition;
use super::difference::{Difference, StartCase};
use super::figures::{CPU, READY};
use crate::report::table::{NOTHING, Table, Tone};

/// Returns the table of a command's figures (times, memory) under each condition; `None` if no
/// start has succeeded.
pub(super) fn conditions(case: &StartCase<'_>) -> Option<Table> {
    let figures = case.figures();
    let row = |condition: Condition| {
        let cell = |figure: &&Figure| {
            let estimate = case.estimate(condition, figure);
            estimate.map_or_else(|| NOTHING.to_owned(), |estimate| with_spread(figure, &estimate))
        };
        [condition.to_string()].into_iter().chain(figures.iter().map(cell)).collect()
    };
    let good = case.conditions().filter(|condition| case.has_figures(*condition));
    let rows: Vec<Vec<String>> = good.map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let names: Vec<&str> =
        ["Condition"].into_iter().chain(figures.iter().map(|figure| figure.title)).collect();
    let caption = format!(
        "{}, ready: {}; medians, and the median absolute deviation as a share",
        title(case),
        printable(&case.ready)
    );
    Some(Table::of_numbers(caption, &names, rows))
}

fn with_spread(figure: &Figure, estimate: &Estimate) -> String {
    let value = figure.write(estimate);
    match figure.write_spread(estimate) {
        Some(spread) if estimate.value > 0.0 => format!("{value} ({spread})"),
        _ => value,
    }
}

/// Returns the table of differences between starts under each condition and the reference (the full
/// cache, or the first command); `None` if nothing can be compared.
pub(super) fn differences(case: &StartCase<'_>) -> Option<Table> {
    let is_nothing = |condition, figure| {
        case.estimate(condition, figure).is_none_or(|estimate| estimate.value <= 0.0)
    };
    // Of the control, the two that people compare say enough; two medians of 0 say nothing.
    let is_shown = |found: &Difference| {
        let both = [found.condition, case.reference()];
        (!found.condition.is_control() || [&READY, &CPU].contains(&found.figure))
            && !both.into_iter().all(|condition| is_nothing(condition, found.figure))
    };
    let row = |found: Difference| {
        let quantity = found.figure.quantity;
        let last = if case.pair.is_some() {
            found.change.map(|change| format!("{:+.1}{NBSP}%", change * 100.0))
        } else {
            found.saved_by_cache().map(|saved| Quantity::Share.write(saved))
        };
        let row = vec![
            name(found.condition),
            found.figure.title.to_owned(),
            found.verdict.name().to_owned(),
            quantity.write_signed(found.later.median),
            found.interval().map_or_else(|| NOTHING.to_owned(), |ends| range(quantity, ends)),
            quantity.write_signed(found.mean),
            last.unwrap_or_else(|| NOTHING.to_owned()),
        ];
        (row, tone(&found))
    };
    let (rows, tones): (Vec<Vec<String>>, Vec<Tone>) =
        case.differences().into_iter().filter(is_shown).map(row).unzip();
    if rows.is_empty() {
        return None;
    }
    let interval = format!("95{NBSP}% interval");
    let last = if case.pair.is_some() { "Change" } else { "Saved" };
    let names = ["Difference", "of", "Verdict", "Median", &interval, "Mean", last];
    let caption = format!("{}: differences within blocks", title(case));
    Some(Table::of_numbers(caption, &names, rows).with_text_in(&[1]).with_verdicts(2, tones))
}

/// Returns the two ends of the interval of a difference between starts under two conditions, with
/// their signs, as text.
pub(super) fn range(quantity: Quantity, ends: Interval) -> String {
    format!("{} to {}", quantity.write_signed(ends.low), quantity.write_signed(ends.high))
}

/// Returns the title of a table on starts: the command and the state of the page cache, or the two
/// commands.
pub(super) fn title(case: &StartCase<'_>) -> String {
    match &case.pair {
        Some([a, b]) => format!("A: {}; B: {}", printable(a), printable(b)),
        None => format!("{}, {}", printable(case.name), case.page_cache),
    }
}

/// Returns the tone of a difference: more than with the cache, or than A, is worse.
fn tone(found: &Difference) -> Tone {
    match found.verdict.is_significant() {
        None => Tone::Open,
        Some(false) => Tone::Level,
        Some(true) if found.later.median < 0.0 => Tone::Better,
        Some(true) => Tone::Worse,
    }
}

/// Returns the name of the difference of a condition from the reference.
fn name(condition: Condition) -> String {
    match condition {
        Condition::Again => "control: with - with".to_owned(),
        Condition::FirstAgain => "control: A - A".to_owned(),
        Condition::Second => "B - A".to_owned(),
        other => format!("{other} - with"),
    }
}
