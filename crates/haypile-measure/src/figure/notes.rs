//! Notes on samples of which the centre does not tell all, for people.

use std::collections::BTreeMap;

use haypile_number::Quantity;

use super::{CPU, Figure, WALL, of_good};
use crate::result::{Identity, MEMORY_FOUND, MEMORY_SAID, Sample, Samples};
use crate::statistics::{Note, Turn};

/// A share of a sample's delay that other work has to explain.
const EXPLAINED: f64 = 0.5;

/// Returns the notes on the samples of one subject among all samples of its case: those on processor time, and
/// those on wall time that processor time does not have.
pub fn notes(case: &Samples<'_>, own: &Samples<'_>) -> Vec<String> {
    let label = |subject: Identity<'_>| {
        let all = case.by_subject();
        subject.label(all.iter().map(|(other, _)| *other))
    };
    let subjects: Vec<Identity<'_>> = case.by_subject().into_iter().map(|it| it.0).collect();
    let cpu = of_figure(&CPU, case, own, &subjects);
    let is_new = |note: &Note| {
        let kind = std::mem::discriminant(note);
        !cpu.iter().any(|other| std::mem::discriminant(other) == kind)
    };
    let wall = of_figure(&WALL, case, own, &subjects).into_iter().filter(is_new);
    let count = own.iter().filter(|sample| sample.error.is_none()).count();
    let text = |note: &Note| written(note, count, |subject| label(subjects[subject]));
    let on_cpu = cpu.iter().map(text);
    let on_wall = wall.map(|note| format!("wall time: {}", text(&note)));
    on_cpu.chain(on_wall).chain(left_out(own)).collect()
}

/// Returns the reason why the memory of samples is left out.
fn left_out(own: &Samples<'_>) -> Option<String> {
    let sample = own.iter().find(|sample| sample.counts.contains_key(MEMORY_SAID))?;
    let bytes =
        |name: &str| Quantity::Bytes.write(sample.counts.get(name).copied().unwrap_or(0) as f64);
    Some(format!(
        "memory is not comparable and left out: {} by its runner, and the values that were found have {}",
        bytes(MEMORY_SAID),
        bytes(MEMORY_FOUND)
    ))
}

/// Returns the notes on a figure of one subject's samples.
fn of_figure(
    figure: &Figure,
    case: &Samples<'_>,
    own: &Samples<'_>,
    subjects: &[Identity<'_>],
) -> Vec<Note> {
    let usual_ns = own.median_wall_ns().unwrap_or(0);
    let places: BTreeMap<_, usize> = in_order(case)
        .into_iter()
        .map(|sample| {
            let number = subjects.iter().position(|it| *it == sample.subject.identity());
            (place(sample), number.expect("a subject of the case"))
        })
        .collect();
    let turn = |sample: &Sample| {
        let before = places.range(..place(sample)).next_back();
        let is_same_run = |(other, _): &(&(&str, u64, u64), &usize)| other.0 == sample.run;
        Some(Turn {
            cost: figure.of_sample(sample)?,
            predecessor: before.filter(is_same_run).map(|(_, number)| *number),
            is_excused: is_excused(sample, usual_ns),
        })
    };
    Note::of(&in_order(own).into_iter().filter_map(turn).collect::<Vec<_>>())
}

/// The run, the block and the position within it.
fn place(sample: &Sample) -> (&str, u64, u64) {
    (&sample.run, sample.block, sample.position)
}

/// Returns samples in the order in which they were measured.
fn in_order<'a>(samples: &Samples<'a>) -> Vec<&'a Sample> {
    let mut ordered: Vec<&Sample> = samples.iter().copied().collect();
    ordered.sort_by(|a, b| place(a).cmp(&place(b)));
    ordered
}

/// Whether other work took at least half of what the sample's wall time is above the usual.
fn is_excused(sample: &Sample, usual_ns: u64) -> bool {
    let delay =
        of_good(sample, |sample| Some(sample.wall_ns as f64)).unwrap_or(0.0) - usual_ns as f64;
    delay > 0.0 && sample.kept_waiting_ns() as f64 >= EXPLAINED * delay
}

fn written(note: &Note, samples: usize, label: impl Fn(usize) -> String) -> String {
    let factor = |times: f64| Quantity::Factor.write(times);
    let share = |change: f64| Quantity::Share.write(change.abs());
    match *note {
        Note::First { times } => {
            format!("the first sample took {} times the centre", factor(times))
        }
        Note::Slow { count, excused, times } => {
            let times = factor(times);
            let slow = match count {
                1 => format!("1 of {samples} samples took {times} times the centre"),
                _ => format!("{count} of {samples} samples took up to {times} times the centre"),
            };
            match excused {
                0 => slow,
                all if all == count => format!("{slow}, while other work had the processor"),
                some => format!("{slow}, {some} of them while other work had the processor"),
            }
        }
        Note::TwoSpeeds { slower, times } => format!(
            "two speeds: {slower} of {samples} samples took {} times as long as the others",
            factor(times)
        ),
        Note::Trend { change } => {
            let verb = if change > 0.0 { "grew" } else { "fell" };
            format!("{verb} by {} over the blocks", share(change))
        }
        Note::After { predecessor, times } => {
            format!("took {} times as long after {}", factor(times), label(predecessor))
        }
        Note::Mean { change } => format!("the mean is {} above the centre", share(change)),
    }
}
