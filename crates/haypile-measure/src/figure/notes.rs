//! Notes for people on samples whose centre does not tell all.

use std::collections::BTreeMap;

use haypile_number::Quantity;

use super::{CPU, Figure, WALL};
use crate::result::{Identity, MEMORY_FOUND, Sample, Samples};
use crate::statistics::{Note, Turn};

/// A share of a sample's delay that other work has to explain.
const EXPLAINED: f64 = 0.5;

/// The samples of a case in the order in which they were measured, for finding notes on them, such as a trend.
#[derive(Clone, Debug)]
pub struct CaseNotes<'a> {
    subjects: Vec<Identity<'a>>,
    /// The number of the subject at each place.
    places: BTreeMap<Turned<'a>, usize>,
}

/// The run, the block, and the position within the block.
type Turned<'a> = (&'a str, u64, u64);

impl<'a> CaseNotes<'a> {
    /// Collects all samples of a case in the order in which they were measured, for finding notes on them.
    pub fn of(case: &Samples<'a>) -> Self {
        let by_subject = case.by_subject();
        let of_subject = |(number, (_, samples)): (usize, &(Identity<'a>, Samples<'a>))| {
            samples.iter().map(|sample| (place(sample), number)).collect::<Vec<_>>()
        };
        let places = by_subject.iter().enumerate().flat_map(of_subject).collect();
        Self { subjects: by_subject.iter().map(|(subject, _)| *subject).collect(), places }
    }

    /// Returns notes for people, such as a trend, on the samples of one subject (cache under test): on processor time,
    /// on wall time if that differs, and on memory that was left out.
    pub fn on(&self, own: &Samples<'_>) -> Vec<String> {
        let [cpu, wall] = [&CPU, &WALL].map(|figure| self.of_figure(figure, own));
        let label = |subject: usize| self.subjects[subject].label(self.subjects.iter().copied());
        let text = |what: &str, (note, of): &(Note, usize)| {
            format!("{what}: {}", written(note, *of, label))
        };
        let is_new = |(note, _): &&(Note, usize)| !cpu.iter().any(|(other, _)| note.is_like(other));
        let on_cpu = cpu.iter().map(|note| text("processor time", note));
        let on_wall = wall.iter().filter(is_new).map(|note| text("wall time", note));
        on_cpu.chain(on_wall).chain(left_out(own)).collect()
    }

    /// Returns whether some samples of one subject (cache under test) are far slower than its others by a figure such
    /// as wall time, without other work on the machine as the cause.
    pub fn has_slow_samples(&self, figure: &Figure, own: &Samples<'_>) -> bool {
        let is_slow = |note: &Note| match note {
            Note::Slow { count, excused, .. } => count > excused,
            Note::First { .. } | Note::TwoSpeeds { .. } | Note::Mean { .. } => true,
            Note::Trend { .. } | Note::After { .. } => false,
        };
        self.of_figure(figure, own).iter().any(|(note, _)| is_slow(note))
    }

    /// Returns the notes on a figure of one subject's samples, each with the number of samples that it is about. Runs
    /// are told of apart, the first that has a kind of note: a change between them is not a trend.
    fn of_figure(&self, figure: &Figure, own: &Samples<'_>) -> Vec<(Note, usize)> {
        let mut found: Vec<(Note, usize)> = Vec::new();
        for (run, own) in own.grouped(|sample| &sample.run) {
            let usual_ns = own.median_wall_ns().unwrap_or(0);
            let turn = |sample: &Sample| {
                let before = self.places.range((run.as_str(), 0, 0)..place(sample)).next_back();
                Some(Turn {
                    cost: figure.of_sample(sample)?,
                    predecessor: before.map(|(_, number)| *number),
                    // Waiting takes no processor time.
                    is_excused: *figure == WALL && is_excused(sample, usual_ns),
                })
            };
            let mut ordered: Vec<&Sample> = own.iter().copied().collect();
            ordered.sort_by_key(|sample| (sample.block, sample.position));
            let turns: Vec<Turn> = ordered.into_iter().filter_map(turn).collect();
            for note in Note::of(&turns) {
                if !found.iter().any(|(other, _)| note.is_of_kind(other)) {
                    found.push((note, turns.len()));
                }
            }
        }
        found
    }
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

/// Returns where a sample was measured.
fn place(sample: &Sample) -> Turned<'_> {
    (&sample.run, sample.block, sample.position)
}

/// Whether other work took at least half of what a measured sample's wall time is above the usual.
fn is_excused(sample: &Sample, usual_ns: u64) -> bool {
    let delay_ns = sample.wall_ns.saturating_sub(usual_ns);
    delay_ns > 0 && sample.kept_waiting_ns() as f64 >= EXPLAINED * delay_ns as f64
}

/// Returns a note for people: on this number of samples, with the labels of subjects.
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
