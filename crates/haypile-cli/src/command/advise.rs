//! `haypile advise`

use std::num::NonZeroUsize;

use anyhow::bail;
use haypile_plot::{Chart, Curve, MAX_CURVES, Point, Style, Unit};
use haypile_sim::Trace;
use haypile_sim::advise::{Advice, Certainty, Question, advise};
use haypile_sim::simulate::{Accounting, Goal, footprint};

use crate::args::{Advise, CapacityArgument};
use crate::command::reading::other_reading;
use crate::command::watch::Watch;
use crate::output::capacity::capacity;
use crate::output::number::{grouped, ratio};
use crate::output::progress::Progress;
use crate::output::table::{table, wrapped};
use crate::{command, input, interrupt, output};

/// Version of the JSON's form. Fields may be added within a version.
const VERSION: u32 = 2;

/// JSON of the command.
#[derive(serde::Serialize)]
struct AdviceDocument<'a> {
    version: u32,
    #[serde(flatten)]
    advice: &'a Advice,
    certainty: Option<Certainty>,
}

/// Executes `haypile advise`: prints advice on the size and policy of a cache for a trace.
pub(crate) fn run(arguments: &Advise) -> anyhow::Result<()> {
    if let Some(path) = &arguments.plot {
        output::plot::check(path)?;
    }
    interrupt::watch()?;
    let seed = arguments.reading.seed;
    let wanted = input::Wanted { part: arguments.part, next_use: false };
    let (trace, origin) = input::open_with_origin(&arguments.traces, &arguments.reading, wanted)?;
    let simulating = &arguments.simulating;
    let mut question = Question::new();
    question.accounting = simulating.accounting;
    question.budget = arguments.budget.map(|size| budget(size, &trace, question.accounting));
    if let Some(policies) = &arguments.policy {
        question.policies.clone_from(&policies.0);
    }
    question.goal = arguments.goal(&trace)?;
    if let Goal::Cost(cost) = question.goal {
        command::note_free_reads(cost, &trace, &input::name(&arguments.traces));
    }
    question.warmup = simulating.warmup;
    question.operations = simulating.operations();
    question.sizes = simulating.sizes(origin.sizes);
    question.ttl = simulating.ttl();
    question.shards = simulating.shards.map(NonZeroUsize::get);
    question.jobs = simulating.jobs();
    question.whole = arguments.part.is_whole();
    question.seed = seed;
    let progress = Progress::counting("simulating".to_owned(), "requests");
    let advice = advise(&trace, &question, &Watch(&progress))
        .map_err(|error| command::explain(error, &input::name(&arguments.traces)))?;
    progress.finish();
    let Some(advice) = advice else {
        bail!("interrupted while caches were simulated, so that there is no advice")
    };
    if let Some(path) = arguments.plot.as_ref().filter(|_| !advice.sizes.is_empty()) {
        output::plot::write(&chart(&advice, input::name(&arguments.traces)), path)?;
    }
    if arguments.json {
        return output::json(&AdviceDocument {
            version: VERSION,
            certainty: advice.choice.as_ref().map(|choice| advice.certainty(choice)),
            advice: &advice,
        });
    }
    let other = advice.other_reading.as_ref();
    let other = other.map_or_else(String::new, |it| other_reading(advice.accounting, it));
    let text = wrapped(&format!("{other}\n{advice}"));
    output::text(&format!("{}{text}", sizes(&advice, arguments.all)))?;
    Ok(())
}

/// Returns the largest size to recommend, in the unit of the accounting. A share of the working set is a size
/// that people can read and write: three digits of a unit.
fn budget(size: CapacityArgument, trace: &Trace, accounting: Option<Accounting>) -> u64 {
    let known = if trace.sizes().is_some() { Accounting::Bytes } else { Accounting::Objects };
    let accounting = accounting.unwrap_or(known);
    let budget = size.of(footprint(trace, accounting));
    if size.is_share() && accounting != Accounting::Objects { readable(budget) } else { budget }
}

/// Returns the largest size up to this one that has three digits and a unit, such as 803MiB or 17000KiB.
fn readable(bytes: u64) -> u64 {
    let units = [40, 30, 20, 10].map(|bits| 1_u64 << bits);
    let unit = units.into_iter().find(|unit| bytes / unit >= 100).unwrap_or(1);
    let number = bytes / unit;
    let place = 10_u64.pow(number.max(1).ilog10().saturating_sub(2));
    number / place * place * unit
}

/// Returns a chart of all policies at all sizes that were tried, with a mark on the choice.
fn chart(advice: &Advice, title: String) -> Chart {
    let (x_label, unit) = match advice.accounting {
        Accounting::Objects => ("cache size in objects", Unit::Objects),
        _ => ("cache size", Unit::Bytes),
    };
    let curves =
        advice.policies.iter().take(MAX_CURVES).map(|tried| {
            let points = advice.sizes.iter().zip(&tried.hit_ratios).map(|(size, hit_ratio)| {
                Point { capacity: size.capacity, miss_ratio: 1.0 - hit_ratio, error: 0.0 }
            });
            let chosen = advice.choice.as_ref().filter(|choice| choice.policy == tried.policy);
            Curve {
                name: tried.policy.clone(),
                points: points.collect(),
                style: Style::LineAndMarkers,
                optimum: false,
                chosen: chosen.map(|choice| choice.capacity),
            }
        });
    Chart {
        title,
        subtitle: Some(format!(
            "{} requests for {} keys",
            grouped(advice.requests),
            grouped(advice.keys)
        )),
        x_label: x_label.to_owned(),
        unit,
        curves: curves.collect(),
        log_x: true,
    }
}

/// Sizes on each side of the chosen one that are printed.
const NEIGHBOURS: usize = 3;

/// Returns the table of sizes: all of them, or those around the choice.
fn sizes(advice: &Advice, all: bool) -> String {
    let chosen = advice.choice.as_ref().map(|choice| choice.capacity);
    let at = advice.sizes.iter().position(|size| Some(size.capacity) == chosen);
    let shown = match at.filter(|_| !all) {
        Some(at) => at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(advice.sizes.len()),
        None => 0..advice.sizes.len(),
    };
    let rows = advice.sizes[shown].iter().map(|size| {
        vec![
            capacity(advice.accounting, size.capacity),
            size.best.clone(),
            ratio(size.saved),
            ratio(size.lru_saved),
        ]
    });
    let saved = match advice.by {
        Goal::Reads => "Hit ratio",
        Goal::Bytes => "Byte hit ratio",
        Goal::Cost(_) => "Cost saved",
    };
    let header = ["Size", "Best policy", saved, "LRU"].map(str::to_owned).to_vec();
    table(&header, 2, 1, &rows.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::readable;

    #[test]
    fn a_share_is_a_size_that_can_be_written() {
        for (bytes, expected) in [
            (842_216_243, 803 << 20),
            (17_472_257, 17_000 << 10),
            (7_623_566_950, 7_270 << 20),
            (123_456, 120 << 10),
            (99_999, 99_900),
            (7, 7),
            (0, 0),
            (u64::MAX, 16_700_000 << 40),
        ] {
            assert_eq!(readable(bytes), expected, "{bytes}");
        }
    }
}
