//! Who is in front, and how sure that is.

use super::super::case::{Case, Entrant, Lead};
use super::super::estimate::Cost;
use super::super::number::{Quantity, count, factor, list};
use super::super::table::{NOTHING, Table};
use crate::compare::Pairing;
use crate::statistics::{Effect, Rule, Verdict};

/// What is no cache, and shows what measuring or copying costs by itself.
pub(super) const FLOORS: [&str; 3] = ["copy", "none", "noop"];

/// Who is in front in a case, floors aside unless there is nothing else.
fn lead<'a>(case: &'a Case<'_>, cost: Cost) -> Option<Lead<'a>> {
    case.lead(cost, |entrant: &Entrant<'_>| !is_floor(entrant))
        .or_else(|| case.lead(cost, |_| true))
}

pub(super) fn is_floor(entrant: &Entrant<'_>) -> bool {
    entrant.samples.first().is_some_and(|sample| FLOORS.contains(&sample.subject.name.as_str()))
}

/// What was found in one case, as a sentence without its end: `x takes 95 ns`, and how it stands
/// beside the next one.
pub(super) fn of_case(case: &Case<'_>, cost: Cost, quantity: Quantity) -> Option<String> {
    let lead = lead(case, cost)?;
    let first = format!("{} ({})", lead.first.label, quantity.write(lead.estimate.value));
    Some(match &lead.next {
        None => format!("{first} alone was measured"),
        Some(next) => match next.verdict {
            Verdict::NoDifference => {
                let second = match next.entrant.estimate(cost) {
                    Some(estimate) => {
                        format!("{} ({})", next.entrant.label, quantity.write(estimate.value))
                    }
                    None => next.entrant.label.clone(),
                };
                let others = match lead.level {
                    0 | 1 => String::new(),
                    level => format!(", nor from {} more", level - 1),
                };
                format!("{first} is not shown to differ from {second}{others}")
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

/// Who is in front in how many cases: a sentence about what `what` names.
pub(super) fn of_cases<'c>(
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
    let mut wins: Vec<(&str, usize)> = Vec::new();
    let (mut level, mut alone) = (0, 0);
    for lead in &leads {
        match &lead.next {
            None => alone += 1,
            Some(next) if next.verdict == Verdict::NoDifference => level += 1,
            Some(_) => match wins.iter_mut().find(|(label, _)| *label == lead.first.label) {
                Some((_, wins)) => *wins += 1,
                None => wins.push((&lead.first.label, 1)),
            },
        }
    }
    wins.sort_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    let mut parts: Vec<String> =
        wins.iter().map(|(label, wins)| format!("{label} in {wins}")).collect();
    if parts.is_empty() {
        parts.push("nobody in any".to_owned());
    }
    let mut sentences = vec![format!(
        "Of {} the least {what} is shown for {}",
        count(leads.len(), "case"),
        list(&parts)
    )];
    if level > 0 {
        sentences.push(format!("in {level} no difference is shown between the first two"));
    }
    if alone > 0 {
        sentences.push(format!("in {alone} there is nobody to compare with"));
    }
    sentence(&sentences)
}

/// A row for each case: who is in front, who is next, and what that shows.
pub(super) fn table<'c>(
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
                    Verdict::NoDifference => next.verdict.to_string(),
                    _ => "shown".to_owned(),
                },
            ],
        });
        Some(row)
    });
    let names = [
        "Case",
        "In front",
        "Takes",
        "Next",
        "Takes as much",
        "95 % interval",
        "Blocks",
        "Difference",
    ];
    let caption = format!(
        "Who is in front by {what}. A difference is shown if p < {} and it exceeds {} %.",
        Rule::SIGNIFICANCE,
        Rule::default().noise_floor() * 100.0
    );
    Table::of_numbers(caption, &names, rows.collect()).with_text_in(&[1, 3, 7])
}

/// Parts as one sentence.
pub(super) fn sentence(parts: &[String]) -> String {
    if parts.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("{}.", parts.join("; "))
}

/// The ends of an effect's interval as factors.
pub(super) fn ends(effect: &Effect) -> Option<String> {
    let ends = effect.interval()?;
    Some(format!("{} to {}", factor(1.0 + ends.low), factor(1.0 + ends.high)))
}

fn interval(effect: &Effect) -> Option<String> {
    ends(effect).map(|ends| format!("95 % interval {ends}"))
}
