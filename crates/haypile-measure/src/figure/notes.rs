//! Notes on samples of which the centre does not tell all, for people.

use std::collections::BTreeMap;

use haypile_number::Quantity;

use super::{CPU, Figure, WALL, of_good};
use crate::result::{Identity, MEMORY_FOUND, Sample, Samples};
use crate::statistics::{Note, Turn};

/// A share of a sample's delay that other work has to explain.
const EXPLAINED: f64 = 0.5;

/// Returns the notes on the samples of one subject among all samples of its case: on processor time, on wall time where
/// that differs, and on memory that is left out.
pub fn notes(case: &Samples<'_>, own: &Samples<'_>) -> Vec<String> {
    let subjects: Vec<Identity<'_>> = case.by_subject().into_iter().map(|it| it.0).collect();
    let [cpu, wall] = [&CPU, &WALL].map(|figure| of_figure(figure, case, own, &subjects));
    let label = |subject: usize| subjects[subject].label(subjects.iter().copied());
    let text =
        |what: &str, (note, of): &(Note, usize)| format!("{what}: {}", written(note, *of, label));
    let is_new = |(note, _): &&(Note, usize)| !cpu.iter().any(|(other, _)| note.is_like(other));
    let on_cpu = cpu.iter().map(|note| text("processor time", note));
    let on_wall = wall.iter().filter(is_new).map(|note| text("wall time", note));
    on_cpu.chain(on_wall).chain(left_out(own)).collect()
}

/// Returns the reason why the memory of samples is left out.
fn left_out(own: &Samples<'_>) -> Option<String> {
    let marked = own.iter().find(|sample| sample.counts.contains_key(MEMORY_FOUND))?;
    let bytes = |bytes: Option<u64>| Quantity::Bytes.write(bytes.unwrap_or(0) as f64);
    Some(format!(
        "memory is not comparable and left out: {} by its runner, and the values that were found have {}",
        bytes(marked.memory_bytes),
        bytes(marked.counts.get(MEMORY_FOUND).copied())
    ))
}

/// Returns the notes on a figure of one subject's samples, with the number of samples that each is about. Runs are
/// told of apart, the first that has a kind of note: a change between them is not a trend.
fn of_figure(
    figure: &Figure,
    case: &Samples<'_>,
    own: &Samples<'_>,
    subjects: &[Identity<'_>],
) -> Vec<(Note, usize)> {
    let places: BTreeMap<_, usize> = in_order(case)
        .into_iter()
        .map(|sample| {
            let number = subjects.iter().position(|it| *it == sample.subject.identity());
            (place(sample), number.expect("a subject of the case"))
        })
        .collect();
    let mut found: Vec<(Note, usize)> = Vec::new();
    for (_, own) in own.grouped(|sample| &sample.run) {
        let usual_ns = own.median_wall_ns().unwrap_or(0);
        let turn = |sample: &Sample| {
            let before = places.range(..place(sample)).next_back();
            let is_same_run = |(other, _): &(&(&str, u64, u64), &usize)| other.0 == sample.run;
            Some(Turn {
                cost: figure.of_sample(sample)?,
                predecessor: before.filter(is_same_run).map(|(_, number)| *number),
                // Waiting takes no processor time.
                is_excused: *figure == WALL && is_excused(sample, usual_ns),
            })
        };
        let turns: Vec<Turn> = in_order(&own).into_iter().filter_map(turn).collect();
        for note in Note::of(&turns) {
            if !found.iter().any(|(other, _)| note.is_of_kind(other)) {
                found.push((note, turns.len()));
            }
        }
    }
    found
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
