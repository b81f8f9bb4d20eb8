//! Tables of a simulation in the form of RelStorage's: a row per file and size, a column per policy.

use std::fmt::Write;

use haypile_sim::simulate::{Accounting, Cell, Contender, Outcome, Windows};

use super::{Results, details};
use crate::command::reading::other_reading;
use crate::output::capacity::capacity;
use crate::output::number::{grouped, percent, ratio, seconds};
use crate::output::table::table;

/// Marks the best of a row.
const BEST: &str = "*";

/// Cell without a value.
const NONE: &str = "-";

/// Cell of a ratio of reads where there were none.
const NO_READS: &str = "no reads";

/// Warning that Belady's choice ignores weights. With weights, the optimum is NP-hard to find.
const BELADY_BY_BYTES: &str =
    "belady is the optimum only where all entries weigh the same; by bytes others may hit more.\n";

/// Returns the results of simulations as tables for a terminal.
pub(crate) fn text(results: &[Results], details: bool, all: bool) -> String {
    let mut text = String::new();
    for one in results {
        header(&mut text, one);
    }
    if results.iter().any(|one| outcomes(one).next().is_some()) {
        if details {
            text.push_str(&details::counts(results));
        } else if !results.iter().any(|one| one.is_of_curve) {
            matrices(&mut text, results, all);
        }
    }
    for one in results {
        over_time(&mut text, one);
        super::curve::text(&mut text, one);
    }
    text
}

/// Appends the hit ratios of the parts of a trace, if they were asked for: a row for each part, a column for each simulation.
fn over_time(text: &mut String, one: &Results) {
    let windows = one.sweep.options.windows.count();
    let is_days = matches!(one.sweep.options.windows, Windows::Days(_));
    let finished = one.cells.iter().filter_map(|cell| Some((cell, cell.outcome.as_ref()?)));
    let finished: Vec<(&Cell, &Outcome)> = finished.collect();
    if windows == 0 || finished.is_empty() {
        return;
    }
    let _ = write!(text, "\nHit ratio over time on {}\n", one.name);
    let mut header = vec![if is_days { "Day" } else { "Part" }.to_owned()];
    header.extend(finished.iter().map(|(cell, outcome)| {
        let contender = &one.sweep.contenders[cell.contender];
        format!("{contender} {}", capacity(one.accounting, outcome.capacity))
    }));
    let rows = (0..windows).map(|part| {
        let mut row = vec![format!("{} of {windows}", part + 1)];
        row.extend(finished.iter().map(|(_, outcome)| {
            let counts = &outcome.windows[part];
            if counts.reads() > 0 { ratio(counts.hit_ratio()) } else { NO_READS.to_owned() }
        }));
        row
    });
    text.push_str(&table(&header, 1, 1, &rows.collect::<Vec<_>>()));
}

fn header(text: &mut String, one: &Results) {
    let (requests, keys) = (grouped(one.requests), grouped(one.keys));
    let _ = write!(text, "{}: {requests} requests for {keys} keys", one.name);
    if let Some(outcome) = outcomes(one).next() {
        let counts = &outcome.counts;
        if counts.reads() > 0 {
            let cold = counts.cold_misses as f64 / counts.reads() as f64;
            let _ = write!(
                text,
                "; {} reads, {} of them cold misses, which no cache avoids",
                grouped(counts.reads()),
                percent(cold)
            );
        }
    }
    text.push('\n');
    if let Some(sample) = &one.sample {
        let _ = writeln!(text, "Sampled: all results are estimates from {sample}.");
    }
    if let Some(other) = &one.other_reading {
        text.push_str(&other_reading(one.accounting, other));
    }
}

fn outcomes(one: &Results) -> impl Iterator<Item = &Outcome> {
    one.cells.iter().filter_map(|cell| cell.outcome.as_ref())
}

fn matrices(text: &mut String, results: &[Results], all: bool) {
    let _ = write!(text, "\nHit ratio of reads ({BEST} best)\n");
    let value = |one: &Outcome| one.counts.hit_ratio();
    matrix(text, results, Some(&value), |_, one| hit_ratio_text(one));
    if results.iter().any(is_belady_no_bound) {
        text.push_str(BELADY_BY_BYTES);
    }
    if results.iter().any(|one| one.miss_cost.is_some()) {
        let _ = write!(text, "\nCost of misses saved\n");
        let cost = results.iter().find_map(|one| one.miss_cost);
        let value = |one: &Outcome| cost.map_or(0.0, |cost| cost.saved_ratio(&one.counts));
        matrix(text, results, Some(&value), cost_saved_text);
    }
    if !all {
        return;
    }
    if results.iter().any(|one| one.has_sizes) {
        let _ = write!(text, "\nByte hit ratio\n");
        let value = |one: &Outcome| one.counts.byte_hit_ratio();
        matrix(text, results, Some(&value), byte_hit_ratio);
    }
    let _ = write!(text, "\nProcessor time\n");
    let value = |one: &Outcome| -one.cpu.as_secs_f64();
    matrix(text, results, Some(&value), |_, one| seconds(one.cpu));
    let _ = write!(text, "\nUsed at the end, in {}\n", unit(results));
    matrix(text, results, None, |_, one| grouped(one.used));
}

/// Returns the hit ratio of a simulation as text; `no reads` without reads.
pub(crate) fn hit_ratio_text(outcome: &Outcome) -> String {
    super::hit_ratio(outcome).map_or_else(|| NO_READS.to_owned(), ratio)
}

/// Returns the byte hit ratio of a simulation as text; a dash if the trace has no sizes.
pub(crate) fn byte_hit_ratio(of: &Results, outcome: &Outcome) -> String {
    match super::hit_ratio(outcome) {
        None => NO_READS.to_owned(),
        Some(_) if of.has_sizes => ratio(outcome.counts.byte_hit_ratio()),
        Some(_) => NONE.to_owned(),
    }
}

/// Returns the share of the cost of misses that a simulation's hits saved, as text; without a known
/// cost, the hit ratio.
pub(crate) fn cost_saved_text(of: &Results, outcome: &Outcome) -> String {
    match of.cost_saved_ratio(outcome) {
        Some(saved) => ratio(saved),
        None => hit_ratio_text(outcome),
    }
}

/// Whether the simulation has Belady's policy with entries of different weights, where it is not the
/// optimum.
fn is_belady_no_bound(one: &Results) -> bool {
    one.accounting != Accounting::Objects && one.sweep.contenders.iter().any(Contender::is_belady)
}

/// Returns the unit of the capacities.
fn unit(results: &[Results]) -> &'static str {
    let objects = results.iter().filter(|one| one.accounting == Accounting::Objects).count();
    match objects {
        0 => "bytes",
        all if all == results.len() => "objects",
        _ => "bytes or objects",
    }
}

/// Returns the heading of a table's column of cache sizes.
pub(crate) fn capacity_header(results: &[Results]) -> String {
    if unit(results) == "objects" { "Objects" } else { "Size" }.to_owned()
}

/// Appends a table with a row per file and size and a column per policy. With a `value`, it marks
/// the cells of a row that look like the one with the greatest value, unless all look alike.
fn matrix(
    text: &mut String,
    results: &[Results],
    value: Option<&dyn Fn(&Outcome) -> f64>,
    show: impl Fn(&Results, &Outcome) -> String,
) {
    let Some(first) = results.first() else { return };
    // The name of a single file stands above the tables.
    let files = usize::from(results.len() > 1);
    let mut header = vec!["File".to_owned(); files];
    header.push(capacity_header(results));
    header.extend(first.sweep.contenders.iter().map(ToString::to_string));
    let mut rows = Vec::new();
    for one in results {
        let show = |outcome: &Outcome| show(one, outcome);
        for (at, size) in one.sweep.capacities.iter().enumerate() {
            let outcomes: Vec<Option<&Outcome>> = (0..one.sweep.contenders.len())
                .map(|contender| outcome_of(one, at, contender))
                .collect();
            if outcomes.iter().all(Option::is_none) {
                continue;
            }
            let best = value.and_then(|value| best(&outcomes, value, show));
            let mut row = vec![one.name.clone(); files];
            row.push(capacity(one.accounting, *size));
            row.extend(outcomes.iter().map(|outcome| {
                let shown = outcome.map_or_else(|| NONE.to_owned(), show);
                let mark = if best.as_ref() == Some(&shown) { BEST } else { " " };
                format!("{shown}{mark}")
            }));
            rows.push(row);
        }
    }
    text.push_str(&table(&header, files, files + 1, &rows));
}

/// Returns the text of the best cell of a row, unless all look like it or some are missing.
fn best(
    outcomes: &[Option<&Outcome>],
    value: &dyn Fn(&Outcome) -> f64,
    show: impl Fn(&Outcome) -> String,
) -> Option<String> {
    let outcomes: Vec<&Outcome> = outcomes.iter().copied().collect::<Option<_>>()?;
    let outcomes = || outcomes.iter().copied();
    let best = outcomes().max_by(|one, other| value(one).total_cmp(&value(other))).map(&show)?;
    outcomes().any(|one| show(one) != best).then_some(best)
}

pub(super) fn outcome_of(one: &Results, capacity: usize, contender: usize) -> Option<&Outcome> {
    let is_it = |cell: &&Cell| cell.capacity == capacity && cell.contender == contender;
    one.cells.iter().find(is_it)?.outcome.as_ref()
}
