//! The leading subject of a case, and the certainty of its lead.

use haypile_measure::compare::{Difference, Pairing};
use haypile_measure::figure::{Figure, write_factors};
use haypile_measure::statistics::{Rule, Verdict};
use haypile_number::{NBSP, Quantity};

use super::super::case::{Case, Entrant, Lead, Next};
use super::super::number::list;
use super::super::table::{NOTHING, Table, Tone};

/// Names of measured subjects that are not caches, and show the cost of measuring or copying alone.
pub(crate) const FLOORS: [&str; 3] = ["copy", "none", "noop"];

/// Most subjects that an answer names.
const MOST_TOLD: usize = 5;

/// The subject in front in a case, floors aside unless there is nothing else.
fn lead<'a>(case: &'a Case<'_>, cost: &Figure) -> Option<Lead<'a>> {
    case.lead(cost, |entrant: &Entrant<'_>| !is_floor(entrant))
        .or_else(|| case.lead(cost, |_| true))
}

pub(crate) fn is_floor(entrant: &Entrant<'_>) -> bool {
    entrant.samples.first().is_some_and(|sample| FLOORS.contains(&sample.subject.name.as_str()))
}

/// Returns the costs (such as processor times) of the caches measured in a case, the lowest first,
/// and the ratio of the first two: `memory 97.0 ns (93.0 to 101), file 173 ns (168 to 180); file
/// takes 1.78 times as much as memory (99 % interval 1.70 to 1.86)`. Subjects are ordered by
/// `cost`, and shown with `shown`, which is the same figure or its rate.
pub(crate) fn of_case(case: &Case<'_>, cost: &Figure, shown: &Figure) -> Option<String> {
    let lead = lead(case, cost)?;
    let ranking = case.ranking(cost);
    let caches = || ranking.iter().filter(|(entrant, _)| !is_floor(entrant));
    let told: Vec<_> =
        if caches().next().is_some() { caches().collect() } else { ranking.iter().collect() };
    let mut parts: Vec<String> = told
        .iter()
        .take(MOST_TOLD)
        .filter_map(|(entrant, _)| {
            let estimate = entrant.estimate(shown)?;
            Some(format!("{} {}", entrant.label, shown.write_within(&estimate)))
        })
        .collect();
    if let Some(more) = told.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        parts.push(format!("{more} more"));
    }
    let mut text = parts.join(", ");
    if let Some(next) = &lead.next {
        text = format!("{text}; {}", of_next(&lead.first.label, next));
    }
    // Of the second it is said already.
    let second = lead.next.as_ref().map(|next| next.entrant.label.as_str());
    let level: Vec<String> =
        lead.level.iter().filter(|label| Some(label.as_str()) != second).cloned().collect();
    if !level.is_empty() {
        let named = level.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>();
        let beyond = level.len() - named.len();
        let more = if beyond > 0 { format!(" nor of {beyond} more") } else { String::new() };
        text = format!("{text}; no difference is shown of {}{more}", list(&named));
    }
    Some(text)
}

/// Returns what the second of a case shows.
fn of_next(first: &str, next: &Next<'_>) -> String {
    let times = Quantity::Factor.write(next.difference.centre.ratio());
    let second = &next.entrant.label;
    match next.verdict {
        verdict if verdict.is_none() => {
            format!("{second} took {times} times as much as {first} (no verdict: {verdict})")
        }
        Verdict::NoDifference => {
            let least = next.difference.least_shown(Rule::default());
            let least = least.map_or_else(String::new, |least| {
                format!(" (one of {:.1}{NBSP}% would have been)", least * 100.0)
            });
            format!("no difference from {first} is shown of {second}{least}")
        }
        Verdict::SlowerOnAverage | Verdict::FasterOnAverage => {
            let mean = Quantity::Factor.write(next.difference.mean.ratio());
            format!(
                "{second} takes {mean} times as much as {first} on average, but not in most blocks"
            )
        }
        _ => format!(
            "{second} takes {times} times as much as {first}{}",
            interval(&next.difference).map(|ends| format!(" ({ends})")).unwrap_or_default(),
        ),
    }
}

/// Returns a text for each case: its title, and the costs (such as processor times) of the caches
/// measured in it.
pub(crate) fn of_cases<'c>(
    cases: impl Iterator<Item = &'c Case<'c>>,
    varying: &[String],
    cost: &Figure,
    shown: &Figure,
) -> Vec<String> {
    let of =
        |case: &Case<'_>| Some(format!("{}: {}", case.title(varying), of_case(case, cost, shown)?));
    cases.filter_map(of).collect()
}

/// Returns a table with a row for each case: the cache with the lowest `cost`, the one with the
/// second-lowest, and the verdict on whether they differ.
pub(crate) fn table<'c>(
    cases: impl Iterator<Item = &'c Case<'c>>,
    varying: &[String],
    cost: &Figure,
) -> Table {
    let row = |case: &'c Case<'c>| {
        let lead = lead(case, cost)?;
        let mut row = vec![case.title(varying), lead.first.label.clone()];
        let takes = cost.write(&lead.estimate);
        row.extend(match &lead.next {
            None => [NOTHING, NOTHING, &takes, NOTHING, NOTHING, NOTHING].map(str::to_owned),
            Some(next) => [
                next.entrant.label.clone(),
                verdict(next),
                takes,
                format!("{}{NBSP}×", Quantity::Factor.write(next.difference.centre.ratio())),
                ends(&next.difference).unwrap_or_else(|| NOTHING.to_owned()),
                match next.difference.pairing {
                    Pairing::Paired { blocks } => blocks.to_string(),
                    Pairing::Unpaired => "unpaired".to_owned(),
                },
            ],
        });
        let tone = lead.next.as_ref().map_or(Tone::Open, |next| Tone::of(next.verdict));
        Some((row, tone))
    };
    let (rows, tones) = cases.filter_map(row).unzip();
    let names = [
        "Case",
        "First",
        "Second",
        "Verdict",
        "First takes",
        "Over first",
        "99 % interval",
        "Blocks",
    ];
    let caption = format!(
        "The first two by {}, and the verdict on the second. A difference is shown if p < {} and it \
         exceeds {} %",
        cost.what,
        Rule::SIGNIFICANCE,
        Rule::default().noise_floor() * 100.0
    );
    Table::of_numbers(caption, &names, rows).with_text_in(&[1, 2]).with_verdicts(3, tones)
}

/// Returns as text the verdict on whether a cache's cost (such as processor time) differs from that
/// of the cheapest cache.
pub(crate) fn verdict(next: &Next<'_>) -> String {
    next.difference.write(Rule::default(), next.verdict)
}

/// Returns as text the 99 % interval of the ratio of two caches' costs, which decides whether they
/// differ; `None` without an interval.
pub(crate) fn ends(difference: &Difference) -> Option<String> {
    difference.centre.deciding_interval().map(write_factors)
}

fn interval(difference: &Difference) -> Option<String> {
    ends(difference).map(|ends| format!("99 % interval {ends}"))
}
