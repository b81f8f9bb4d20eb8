//! Compares old and new results, with the certainty of each difference.
//!
//! [`read`] reads files or directories, [`compare`] takes the samples of both sides apart by case
//! and subject, pairs those of the same run and block, and judges each pair of groups by a
//! [`Rule`]. Pairs were measured side by side, so that a drift of the machine is not in their
//! ratio. Samples of different runs cannot be paired; the comparison says so, since whatever
//! changed between the runs is then part of the effect.

mod comparison;
mod difference;
mod error;
mod group;
mod json;
mod metric;
mod read;
mod select;

use std::collections::BTreeMap;

use group::{Group, GroupKey, SubjectNaming};

pub use comparison::{Comparison, Gate, Outcome, Pairing, Row, Side};
pub use difference::Difference;
pub use error::CompareError;
pub use metric::{Metric, UnknownMetric};
pub use read::read;
pub use read::read_each;
pub use select::Selector;

use crate::figure::Estimate;
use crate::parameters;
use crate::result::Sample;
use crate::statistics::{Centre, Rule, Summary};

/// The most cases of one side that a message names.
const MOST_NAMED: usize = 5;

/// The settings of a comparison of benchmark samples: the metric, the rule of significance, and the
/// subjects (caches) of the old and of the new samples.
#[derive(Clone, Debug)]
pub struct Question {
    /// The metric to compare, such as processor time.
    pub metric: Metric,
    /// The rule that decides whether a difference between old and new samples is significant.
    pub rule: Rule,
    /// The choices of subjects (caches) from the old and from the new samples; `None` to compare
    /// subjects of the same name.
    pub subjects: Option<(Selector, Selector)>,
}

/// Compares old with new samples of benchmarks; the rows of the comparison are in the order of the
/// old samples.
///
/// # Errors
///
/// [`CompareError`] if nothing is on both sides, or if results of several programs would be mixed.
pub fn compare(
    old: &[Sample],
    new: &[Sample],
    question: &Question,
) -> Result<Comparison, CompareError> {
    let all = (Selector::default(), Selector::default());
    let (choose_old, choose_new) = question.subjects.as_ref().unwrap_or(&all);
    let grouped = |naming| {
        let old = group::groups(old, choose_old, naming, question.metric);
        (old, group::groups(new, choose_new, naming, question.metric))
    };
    let is_one = choose_old.names_one() && choose_new.names_one();
    let (mut old, mut new) = grouped(if is_one { SubjectNaming::One } else { SubjectNaming::Name });
    if let Some(several) = several_programs(&old).or_else(|| several_programs(&new)) {
        if is_one {
            return Err(several);
        }
        (old, new) = grouped(SubjectNaming::Label);
    }
    let old_by_key: BTreeMap<&GroupKey<'_>, &Group<'_>> =
        old.iter().map(|(key, group)| (key, group)).collect();
    let new_by_key: BTreeMap<&GroupKey<'_>, &Group<'_>> =
        new.iter().map(|(key, group)| (key, group)).collect();
    let both = old.iter().chain(&new);
    let (_, varying) = parameters::part(both.map(|(_, group)| group.parameters));
    let describe = |key: &GroupKey<'_>, group: &Group<'_>| describe(key, group, &varying);
    let mut warnings = Vec::new();
    let mut rows = Vec::new();
    for (key, old) in &old {
        if let Some(new) = new_by_key.get(key) {
            warnings.extend(doubts(&describe(key, old), old, new));
            rows.push(row(key, old, new, question.rule));
        }
    }
    if rows.is_empty() {
        let first = |groups: &[(GroupKey<'_>, Group<'_>)]| {
            groups.first().map_or("nothing".to_owned(), |(key, group)| describe(key, group))
        };
        return Err(CompareError::NothingInCommon { old: first(&old), new: first(&new) });
    }
    if rows.iter().all(|row| row.outcome == Outcome::NotMeasured) {
        return Err(CompareError::NotMeasured { metric: question.metric });
    }
    let alone = |groups: &[(GroupKey<'_>, Group<'_>)],
                 other: &BTreeMap<&GroupKey<'_>, &Group<'_>>|
     -> Vec<String> {
        let alone = groups.iter().filter(|(key, _)| !other.contains_key(key));
        alone.map(|(key, group)| describe(key, group)).collect()
    };
    let missing = alone(&old, &new_by_key);
    warnings.extend(only_in("old", &missing));
    warnings.extend(only_in("new", &alone(&new, &old_by_key)));
    let Question { metric, rule, .. } = *question;
    Ok(Comparison { metric, rule, rows, missing, warnings })
}

/// The first group whose samples come from several programs.
fn several_programs(groups: &[(GroupKey<'_>, Group<'_>)]) -> Option<CompareError> {
    let group = groups.iter().map(|(_, group)| group).find(|group| group.programs.len() > 1)?;
    let (subject, programs) = (group.subject.to_owned(), group.programs.clone());
    Some(CompareError::SeveralPrograms { subject, programs })
}

fn row(key: &GroupKey<'_>, old: &Group<'_>, new: &Group<'_>, rule: Rule) -> Row {
    Row {
        experiment: key.case.experiment.to_owned(),
        case: key.case.case.to_owned(),
        parameters: old.parameters.clone(),
        old: side(old),
        new: side(new),
        outcome: outcome(old, new, rule),
    }
}

fn side(group: &Group<'_>) -> Side {
    Side {
        subject: group.subject.to_owned(),
        program: group.programs.first().cloned().unwrap_or_default(),
        summary: Summary::of(&group.values.to_vec()),
        estimate: Centre::of(&group.values.to_vec()).map(Estimate::from),
        errors: group.errors,
        first_error: group.first_error.clone(),
        notes: group.notes.clone(),
        has_slow_samples: group.has_slow_samples,
    }
}

fn outcome(old: &Group<'_>, new: &Group<'_>, rule: Rule) -> Outcome {
    match Difference::of(&old.values, &new.values) {
        Ok(difference) => {
            let timing = old.timing.and(new.timing);
            Outcome::Judged { difference, verdict: difference.verdict(rule, timing) }
        }
        Err(_) if !old.values.is_empty() && new.errors == new.samples => Outcome::Failed,
        Err(_) => Outcome::NotMeasured,
    }
}

/// Reasons to doubt a row.
fn doubts(row: &str, old: &Group<'_>, new: &Group<'_>) -> Vec<String> {
    let mut doubts = Vec::new();
    for (side, group) in [("old", old), ("new", new)] {
        let samples = group.samples;
        if let Some(error) = &group.first_error {
            let errors = group.errors;
            doubts.push(format!(
                "{row}: {errors} of {samples} {side} samples are errors, such as: {error}"
            ));
        }
        if group.unmeasured > 0 && !group.values.is_empty() {
            let unmeasured = group.unmeasured;
            doubts.push(format!("{row}: {unmeasured} of {samples} {side} samples lack the metric"));
        }
    }
    let pairs = old.values.paired(&new.values).len();
    let alone = old.values.len() + new.values.len() - 2 * pairs;
    if pairs > 0 && alone > 0 {
        doubts.push(format!(
            "{row}: {alone} samples have no partner in the same block and are left out"
        ));
    }
    if old.seeds != new.seeds && !old.values.is_empty() && !new.values.is_empty() {
        let (old, new) = (list(&old.seeds), list(&new.seeds));
        doubts.push(format!("{row}: the seeds differ ({old} and {new}), so that operations do"));
    }
    doubts
}

/// Says of what only one side has: of a few all, of more how many.
fn only_in(side: &str, alone: &[String]) -> Option<String> {
    let more = alone.len().saturating_sub(MOST_NAMED);
    let named = alone[..alone.len() - more].join("; ");
    match (alone.len(), more) {
        (0, _) => None,
        (_, 0) => Some(format!("only {side} has {named}")),
        _ => Some(format!("only {side} has {named}; and {more} more")),
    }
}

/// A group for people, with those parameters that tell it from others.
fn describe(key: &GroupKey<'_>, group: &Group<'_>, varying: &[String]) -> String {
    let mut parts = vec![key.case.experiment.to_owned(), key.case.case.to_owned()];
    for name in varying {
        let value = group.parameters.get(name).map(parameters::text);
        parts.extend(value.map(|value| format!("{name}={value}")));
    }
    format!("{} of {}", parts.join(" "), group.subject)
}

fn list(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}
