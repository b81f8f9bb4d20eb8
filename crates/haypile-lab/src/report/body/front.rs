//! The subject in front, and how sure that is.

use super::super::case::{Case, Entrant, Lead};
use super::super::estimate::Cost;
use super::super::number::{Quantity, count, factor, list};
use super::super::table::{NOTHING, Table};
use crate::compare::Pairing;
use crate::statistics::{Effect, Rule, Verdict};

/// Subjects that are not caches, and show the cost of measuring or copying alone.
pub(crate) const FLOORS: [&str; 3] = ["copy", "none", "noop"];

/// Most subjects that an answer names.
const MOST_TOLD: usize = 5;

/// The subject in front in a case, floors aside unless there is nothing else.
fn lead<'a>(case: &'a Case<'_>, cost: Cost) -> Option<Lead<'a>> {
    case.lead(cost, |entrant: &Entrant<'_>| !is_floor(entrant))
        .or_else(|| case.lead(cost, |_| true))
}

pub(crate) fn is_floor(entrant: &Entrant<'_>) -> bool {
    entrant.samples.first().is_some_and(|sample| FLOORS.contains(&sample.subject.name.as_str()))
}

/// The result of one case, as a sentence without its end: `x takes 95 ns`, and how it compares with
/// the next one.
pub(crate) fn of_case(case: &Case<'_>, cost: Cost, quantity: Quantity) -> Option<String> {
    let lead = lead(case, cost)?;
    let first = format!("{} ({})", lead.first.label, quantity.write(lead.estimate.value));
    Some(match &lead.next {
        None => format!("{first} alone was measured"),
        Some(next) => match next.verdict {
            verdict if verdict.is_none() => format!(
                "{first} took least, and {} {} times as much: {verdict} for a verdict",
                next.entrant.label,
                factor(next.effect.ratio())
            ),
            _ if !lead.level.is_empty() => {
                let level = lead.level.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>();
                let beyond = lead.level.len() - level.len();
                let others = if beyond > 0 { format!(" nor {beyond} more") } else { String::new() };
                format!("{first}, with no difference shown to {}{others}", list(&level))
            }
            _ => format!(
                "{first} is in front, and {} takes {} times as much{}",
                next.entrant.label,
                factor(next.effect.ratio()),
                interval(&next.effect).map(|ends| format!(" ({ends})")).unwrap_or_default(),
            ),
        },
    })
}

/// The subjects in front, and in how many cases: a sentence about what `what` names.
pub(crate) fn of_cases<'c>(
    cases: impl Iterator<Item = &'c Case<'c>> + Clone,
    cost: Cost,
    quantity: Quantity,
    what: &str,
) -> String {
    let leads: Vec<Lead<'_>> = cases.clone().filter_map(|case| lead(case, cost)).collect();
    match leads.len() {
        0 => return format!("Nothing was measured of {what}."),
        1 => {
            let found = { cases }.find_map(|case| of_case(case, cost, quantity));
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
            (Some(_), []) => raise(&mut alone, &lead.first.label),
            (Some(_), level) => {
                for label in [&lead.first.label].into_iter().chain(level) {
                    raise(&mut among, label);
                }
            }
        }
    }
    let mut sentences = Vec::new();
    let cases = count(leads.len(), "case");
    if alone.is_empty() && unjudged == leads.len() {
        sentences.push(format!("Of {what} nothing can be said"));
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

/// Subjects, and the number of cases in which each leads.
type LeadTally = Vec<(String, usize)>;

fn raise(tally: &mut LeadTally, label: &str) {
    match tally.iter_mut().find(|(other, _)| other == label) {
        Some((_, times)) => *times += 1,
        None => tally.push((label.to_owned(), 1)),
    }
}

/// The most frequent ones, and how often.
fn told(mut tally: LeadTally) -> String {
    tally.sort_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    let beyond = tally.len().saturating_sub(MOST_TOLD);
    tally.truncate(MOST_TOLD);
    let mut parts: Vec<String> =
        tally.iter().map(|(label, times)| format!("{label} in {times}")).collect();
    if beyond > 0 {
        parts.push(format!("{beyond} more"));
    }
    list(&parts)
}

/// A row for each case: who is in front, who is next, and what that shows.
pub(crate) fn table<'c>(
    cases: impl Iterator<Item = &'c Case<'c>>,
    varying: &[String],
    cost: Cost,
    quantity: Quantity,
    what: &str,
) -> Table {
    let rows = cases.filter_map(|case| {
        let lead = lead(case, cost)?;
        let mut row = vec![
            case.title(varying),
            lead.first.label.clone(),
            quantity.write(lead.estimate.value),
        ];
        row.extend(match &lead.next {
            None => [NOTHING; 5].map(str::to_owned),
            Some(next) => [
                next.entrant.label.clone(),
                format!("{} ×", factor(next.effect.ratio())),
                ends(&next.effect).unwrap_or_else(|| NOTHING.to_owned()),
                match next.pairing {
                    Pairing::Paired { blocks } => blocks.to_string(),
                    Pairing::Unpaired => "unpaired".to_owned(),
                },
                match next.verdict {
                    Verdict::NoDifference => match Rule::default().least_shown(&next.effect) {
                        Some(least) => format!("none beyond {:.1} % shown", least * 100.0),
                        None => next.verdict.to_string(),
                    },
                    Verdict::TooFew | Verdict::TooShort => next.verdict.to_string(),
                    Verdict::Faster | Verdict::Slower => "shown".to_owned(),
                },
            ],
        });
        Some(row)
    });
    let names =
        ["Case", "First", "Takes", "Second", "Over first", "95 % interval", "Blocks", "Difference"];
    let caption = format!(
        "Who is in front by {what}. A difference is shown if p < {} and it exceeds {} %",
        Rule::SIGNIFICANCE,
        Rule::default().noise_floor() * 100.0
    );
    Table::of_numbers(caption, &names, rows.collect()).with_text_in(&[1, 3, 7])
}

/// Parts as one sentence.
pub(crate) fn sentence(parts: &[String]) -> String {
    if parts.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("{}.", parts.join("; "))
}

/// The ends of an effect's interval as factors.
pub(crate) fn ends(effect: &Effect) -> Option<String> {
    let ends = effect.interval()?;
    Some(format!("{} to {}", factor(1.0 + ends.low), factor(1.0 + ends.high)))
}

fn interval(effect: &Effect) -> Option<String> {
    ends(effect).map(|ends| format!("95 % interval {ends}"))
}
