//! The subject in front, and how sure that is.

use haypile_measure::compare::{Difference, Pairing};
use haypile_measure::figure::{Figure, write_factors};
use haypile_measure::statistics::{Rule, Verdict};
use haypile_number::{NBSP, Quantity};

use super::super::case::{Case, Entrant, Lead, Next};
use super::super::number::{count, list};
use super::super::table::{NOTHING, Table};

/// Subjects that are not caches, and show the cost of measuring or copying alone.
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

/// The result of one case, as a sentence without its end: `x takes 95 ns`, and how it compares with
/// the next one.
pub(crate) fn of_case(case: &Case<'_>, cost: &Figure) -> Option<String> {
    let lead = lead(case, cost)?;
    let first = format!("{} ({})", lead.first.label, cost.write(&lead.estimate));
    Some(match &lead.next {
        None => format!("{first} alone was measured"),
        Some(next) => match next.verdict {
            verdict if verdict.is_none() => format!(
                "{first} took least, and {} {} times as much: {verdict} for a verdict",
                next.entrant.label,
                Quantity::Factor.write(next.difference.centre.ratio())
            ),
            _ if !lead.level.is_empty() => {
                let level = lead.level.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>();
                let beyond = lead.level.len() - level.len();
                let others = if beyond > 0 { format!(" nor {beyond} more") } else { String::new() };
                // Of several, each has a limit of its own: the table has them.
                let least = next.difference.least_shown(Rule::default());
                let least = least.filter(|_| lead.level.len() == 1);
                let least = least.map_or_else(String::new, |least| {
                    format!(" (one of {:.1}{NBSP}% would have been)", least * 100.0)
                });
                format!("{first}, with no difference shown to {}{others}{least}", list(&level))
            }
            _ => format!(
                "{first} is in front, and {} takes {} times as much{}",
                next.entrant.label,
                Quantity::Factor.write(next.difference.centre.ratio()),
                interval(&next.difference).map(|ends| format!(" ({ends})")).unwrap_or_default(),
            ),
        },
    })
}

/// The subjects in front, and in how many cases: a sentence about what `what` names.
pub(crate) fn of_cases<'c>(
    cases: impl Iterator<Item = &'c Case<'c>> + Clone,
    cost: &Figure,
    what: &str,
) -> String {
    let leads: Vec<Lead<'_>> = cases.clone().filter_map(|case| lead(case, cost)).collect();
    match leads.len() {
        0 => return format!("Nothing was measured of {what}."),
        1 => {
            let found = { cases }.find_map(|case| of_case(case, cost));
            return format!("Of {what}: {}.", found.unwrap_or_default());
        }
        _ => {}
    }
    let (mut alone, mut among): (LeadTally, LeadTally) = (Vec::new(), Vec::new());
    let (mut unopposed, mut unjudged) = (0, 0);
    for lead in &leads {
        match (&lead.next, lead.level.as_slice()) {
            (None, _) => unopposed += 1,
            (Some(next), _) if next.verdict.is_none() => unjudged += 1,
            (Some(next), []) => {
                raise(&mut alone, &lead.first.label, Some(next.difference.centre.ratio()));
            }
            (Some(_), level) => {
                for label in [&lead.first.label].into_iter().chain(level) {
                    raise(&mut among, label, None);
                }
            }
        }
    }
    let mut sentences = Vec::new();
    let cases = count(leads.len(), "case");
    if alone.is_empty() && unjudged == leads.len() {
        return format!(
            "Of {what} nothing can be said: in all {cases} the blocks are too few or too short for a verdict."
        );
    } else if alone.is_empty() {
        sentences.push(format!(
            "In none of {cases} is one subject shown to be alone in front by {what}"
        ));
    } else {
        sentences.push(format!("In {cases}, alone in front by {what}: {}", told(alone)));
    }
    if !among.is_empty() {
        sentences.push(format!("not shown to differ from the first: {}", told(among)));
    }
    if unjudged > 0 {
        sentences.push(format!("in {unjudged} the blocks are too few or too short for a verdict"));
    }
    if unopposed > 0 {
        sentences.push(format!("in {unopposed} there is nobody to compare with"));
    }
    sentence(&sentences)
}

/// Subjects, and the cases in which each leads.
type LeadTally = Vec<(String, Leads)>;

/// The cases in which a subject leads: how many, and the second's cost over the first's in each where
/// that is told.
#[derive(Clone, Debug, Default)]
struct Leads {
    cases: usize,
    ratios: Vec<f64>,
}

impl Leads {
    /// The number of cases with the least and the largest ratio: `2 (the second takes 1.10 to 1.30
    /// times as much)`.
    fn told(&self) -> String {
        let least =
            self.ratios.iter().copied().reduce(f64::min).map(|ratio| Quantity::Factor.write(ratio));
        let most =
            self.ratios.iter().copied().reduce(f64::max).map(|ratio| Quantity::Factor.write(ratio));
        match (least, most) {
            (Some(least), Some(most)) if least == most => {
                format!("{} (the second takes {least} times as much)", self.cases)
            }
            (Some(least), Some(most)) => {
                format!("{} (the second takes {least} to {most} times as much)", self.cases)
            }
            _ => self.cases.to_string(),
        }
    }
}

fn raise(tally: &mut LeadTally, label: &str, ratio: Option<f64>) {
    let at = tally.iter().position(|(other, _)| other == label).unwrap_or_else(|| {
        tally.push((label.to_owned(), Leads::default()));
        tally.len() - 1
    });
    let leads = &mut tally[at].1;
    leads.cases += 1;
    leads.ratios.extend(ratio);
}

/// The most frequent ones, and how often.
fn told(mut tally: LeadTally) -> String {
    tally.sort_by(|(one, a), (other, b)| b.cases.cmp(&a.cases).then_with(|| one.cmp(other)));
    let beyond = tally.len().saturating_sub(MOST_TOLD);
    tally.truncate(MOST_TOLD);
    let mut parts: Vec<String> =
        tally.iter().map(|(label, leads)| format!("{label} in {}", leads.told())).collect();
    if beyond > 0 {
        parts.push(format!("{beyond} more"));
    }
    list(&parts)
}

/// A row for each case: who is in front, who is next, and what that shows.
pub(crate) fn table<'c>(
    cases: impl Iterator<Item = &'c Case<'c>>,
    varying: &[String],
    cost: &Figure,
) -> Table {
    let rows = cases.filter_map(|case| {
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
        Some(row)
    });
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
    Table::of_numbers(caption, &names, rows.collect()).with_text_in(&[1, 2, 3])
}

/// The verdict on a subject that is compared with the first one. What is not shown may be there: up to
/// the difference that would have been.
pub(crate) fn verdict(next: &Next<'_>) -> String {
    match next.verdict {
        Verdict::NoDifference => match next.difference.least_shown(Rule::default()) {
            Some(least) => format!("none beyond {:.1}{NBSP}% shown", least * 100.0),
            None => next.verdict.to_string(),
        },
        verdict => verdict.to_string(),
    }
}

/// Parts as one sentence.
pub(crate) fn sentence(parts: &[String]) -> String {
    if parts.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("{}.", parts.join("; "))
}

/// The ends of the interval that decides, as factors.
pub(crate) fn ends(difference: &Difference) -> Option<String> {
    difference.centre.deciding_interval().map(write_factors)
}

fn interval(difference: &Difference) -> Option<String> {
    ends(difference).map(|ends| format!("99 % interval {ends}"))
}
