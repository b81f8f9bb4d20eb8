//! The differences between conditions.

use haypile_measure::figure::{CaseNotes, Estimate, Figure, Finding, Findings};
use haypile_measure::result::{DISTURBED, Sample, Samples, StartCalls};
use haypile_measure::statistics::{Interval, MedianInterval};
use haypile_number::Quantity;

use super::condition::Condition;
use super::figures::{READY, SETTLED, START_FIGURES, WALL_FIGURES};
use super::row::is_watched;

/// The samples of all starts of one command, warm or cold, by condition (such as with and without
/// its cache); or those of two compared commands.
#[derive(Clone, Debug)]
pub(super) struct StartCase<'a> {
    pub(super) name: &'a str,
    pub(super) page_cache: String,
    pub(super) ready: String,
    /// The two commands that are compared; `None` if the case is about one command with and without
    /// its cache.
    pub(super) pair: Option<[String; 2]>,
    by_condition: Vec<(Condition, Samples<'a>)>,
    /// The calls of the traced start of each condition.
    calls: Vec<(Condition, &'a StartCalls)>,
}

/// The difference in one figure, such as time, between starts under a condition and under the
/// reference (with the cache, or the first of two commands).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) condition: Condition,
    pub(super) figure: &'static Figure,
    /// The difference of the figure (such as the start time) in a block: under the condition minus
    /// under the reference; its median and interval over all blocks.
    pub(super) later: MedianInterval,
    /// The mean over all blocks of the figure under the condition minus that under the reference,
    /// which a few slow starts can change.
    pub(super) mean: f64,
    pub(super) verdict: StartVerdict,
    /// The median difference from the reference (the full cache), divided by the figure's median
    /// under the condition: the share of the figure that the cache saves.
    pub(super) saved: Option<f64>,
    /// The median difference from the reference, divided by the figure's median under the
    /// reference: 0.1 is 10 % more than, for example, the first of two commands.
    pub(super) change: Option<f64>,
}

impl Difference {
    /// Returns the share of the figure (such as the start time) that the cache saves; `None` for
    /// the control, which has the same cache, and for two commands.
    pub(super) fn saved_by_cache(&self) -> Option<f64> {
        self.saved.filter(|_| matches!(self.condition, Condition::Off | Condition::Fill))
    }

    /// Returns the 95 % interval of the median difference between starts under the condition and
    /// under the reference, in the unit of the figure.
    pub(super) fn interval(&self) -> Option<Interval> {
        self.later.ends()
    }
}

/// The verdict on whether starts under a condition differ from those under the reference:
/// significant, not significant, too few blocks and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartVerdict {
    /// The interval leaves 0 out, and no other variant applies.
    Significant,
    /// The interval holds 0.
    NotSignificant,
    /// There are fewer blocks than an interval needs.
    TooFew,
    /// The difference is certain, and so small that it counts as none, wherever it lies in its interval.
    Small,
    /// The difference is certain, and whether it is large enough to count is open.
    OpenSize,
    /// The reference differs from its control as much.
    WithinControl,
    /// In most blocks a start waited for a processor: wall time says nothing of the cache.
    Disturbed,
}

impl StartVerdict {
    /// Returns the words for this verdict in tables and JSON results, such as `significant` or `too
    /// few blocks`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Significant => "significant",
            Self::NotSignificant => "not significant",
            Self::TooFew => "too few blocks",
            Self::Small => "below the least size",
            Self::OpenSize => "of open size",
            Self::WithinControl => "not larger than the control",
            Self::Disturbed => "disturbed",
        }
    }

    /// Returns whether starts under a condition are shown to differ from those under the reference;
    /// `None` if the measurements do not decide.
    pub(super) fn is_significant(self) -> Option<bool> {
        match self {
            Self::Significant => Some(true),
            Self::NotSignificant | Self::Small | Self::WithinControl => Some(false),
            Self::TooFew | Self::Disturbed | Self::OpenSize => None,
        }
    }
}

/// The least wait that disturbs: shorter ones are how a scheduler works.
const LEAST_WAIT_NS: u64 = 5_000_000;

/// A difference counts from this part of the larger of both medians on.
const LEAST_SHARE: f64 = 0.01;

/// A difference counts from this size on, in the unit of the quantity: the clocks and the kernel's counts are not finer.
fn least_size(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Time => 100_000.0,
        Quantity::Bytes => 65_536.0,
        _ => 0.5,
    }
}

/// Returns the results of measured starts: the figures of each condition, their difference from the
/// reference, and the part of it that a cache saves.
pub(super) fn findings(samples: &Samples<'_>) -> Findings {
    let measured = measured(samples.iter().copied());
    let mut findings = Findings::of(&measured, &START_FIGURES).0;
    for case in cases(measured.iter().copied()) {
        let Some(with) = Finding::of(case.samples(case.reference())) else { continue };
        for found in case.differences() {
            let Some(other) = Finding::of(case.samples(found.condition)) else { continue };
            let (name, quantity) = (found.figure.name, found.figure.quantity);
            let later = Estimate::exact(found.later.median).within(found.interval());
            let saved = found.saved_by_cache().map(|saved| {
                let over = Some(&other.subject);
                with.clone().with(
                    format!("saved:{name}"),
                    Quantity::Share,
                    Estimate::exact(saved),
                    over,
                )
            });
            let over = Some(&with.subject);
            findings.push(other.clone().with(format!("later:{name}"), quantity, later, over));
            findings.extend(saved);
        }
    }
    Findings(findings)
}

/// Starts that were watched are not measurements.
fn measured<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Samples<'a> {
    samples.into_iter().filter(|sample| !is_watched(sample)).collect()
}

/// Groups the samples of starts by command and state of the page cache, in the order of the
/// samples.
pub(super) fn cases<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<StartCase<'a>> {
    let samples: Samples<'a> = samples.into_iter().collect();
    let traced: Vec<&'a Sample> =
        samples.iter().copied().filter(|sample| sample.calls.is_some()).collect();
    let case = |samples: &Samples<'a>| {
        let text = |name: &str| {
            let value = samples[0].parameters.get(name).and_then(|value| value.as_str());
            value.unwrap_or_default().to_owned()
        };
        let of = |condition: &Condition| {
            let own = samples.iter().copied();
            own.filter(|sample| sample.subject.name == condition.name()).collect()
        };
        let pair =
            ["a", "b"].map(|name| samples[0].parameters.get(name)?.as_str().map(str::to_owned));
        let [a, b] = pair;
        StartCase {
            name: &samples[0].case,
            page_cache: text("page_cache"),
            ready: text("ready"),
            pair: a.zip(b).map(|(a, b)| [a, b]),
            by_condition: Condition::ALL
                .iter()
                .map(|condition| (*condition, of(condition)))
                .collect(),
            calls: Condition::ALL
                .iter()
                .filter_map(|condition| {
                    let mut own = traced.iter().filter(|sample| {
                        (&*sample.case, &*sample.subject.name)
                            == (&*samples[0].case, condition.name())
                    });
                    Some((*condition, own.next()?.calls.as_deref()?))
                })
                .collect(),
        }
    };
    measured(samples.iter().copied()).cases().iter().map(case).collect()
}

impl<'a> StartCase<'a> {
    pub(super) fn samples(&self, condition: Condition) -> &Samples<'a> {
        let found = self.by_condition.iter().find(|(it, _)| *it == condition);
        &found.expect("all conditions are there").1
    }

    /// Returns the system calls of the traced start under a condition; `None` if no such start was
    /// traced.
    pub(super) fn calls(&self, condition: Condition) -> Option<&'a StartCalls> {
        self.calls.iter().find(|(it, _)| *it == condition).map(|(_, calls)| *calls)
    }

    /// Returns the condition whose starts all others are compared with: the command with its full cache, or the first
    /// of two commands.
    pub(super) fn reference(&self) -> Condition {
        if self.pair.is_some() { Condition::First } else { Condition::With }
    }

    /// Returns the same once more.
    fn control_condition(&self) -> Condition {
        if self.pair.is_some() { Condition::FirstAgain } else { Condition::Again }
    }

    /// Returns the conditions under which starts of the command were measured.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Condition> {
        let with = self.by_condition.iter().filter(|(_, samples)| !samples.is_empty());
        with.map(|(condition, _)| *condition)
    }

    /// Returns the estimate of a figure of starts, such as the processor time, under a condition.
    pub(super) fn estimate(&self, condition: Condition, figure: &Figure) -> Option<Estimate> {
        figure.of(self.samples(condition))
    }

    /// Whether at least one start of the command has succeeded under a condition.
    pub(super) fn has_figures(&self, condition: Condition) -> bool {
        self.estimate(condition, &READY).is_some()
    }

    /// Returns the figures of starts (such as processor time) that were measured in this case and
    /// are not all 0.
    pub(super) fn figures(&self) -> Vec<&'static Figure> {
        let is_known = |figure: &Figure| {
            let samples = |condition| self.samples(condition).iter();
            let mut values =
                self.conditions().flat_map(samples).filter_map(|sample| figure.in_sample(sample));
            values.any(|value| value > 0.0)
        };
        // Of a command that is ready when it exits, being settled is nothing of its own.
        let is_needed = |figure: &Figure| *figure != SETTLED || self.ready != "exit";
        let figures = START_FIGURES.into_iter();
        figures.filter(|figure| is_needed(figure) && is_known(figure)).collect()
    }

    /// Compares starts under a condition (such as without the cache) with those under the reference
    /// in one figure (such as the start time), block by block.
    pub(super) fn difference(
        &self,
        condition: Condition,
        figure: &'static Figure,
    ) -> Option<Difference> {
        let differences = self.later(condition, figure);
        let later = MedianInterval::of(&differences)?;
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        let part_of = |condition| {
            let median = self.estimate(condition, figure).map(|estimate| estimate.value);
            median.filter(|median| *median > 0.0).map(|median| later.median / median)
        };
        let (saved, change) = (part_of(condition), part_of(self.reference()));
        let verdict = self.verdict(condition, figure, &later);
        Some(Difference { condition, figure, later, mean, verdict, saved, change })
    }

    /// Returns how much larger than under the reference a figure is, in each block.
    fn later(&self, condition: Condition, figure: &Figure) -> Vec<f64> {
        let value = |sample: &Sample| figure.in_sample(sample);
        let pairs = self.samples(self.reference()).paired(self.samples(condition), value);
        pairs.iter().map(|(reference, other)| other - reference).collect()
    }

    fn verdict(
        &self,
        condition: Condition,
        figure: &Figure,
        later: &MedianInterval,
    ) -> StartVerdict {
        let Some((low, high)) = later.interval else { return StartVerdict::TooFew };
        if WALL_FIGURES.contains(&figure) && self.is_disturbed(condition) {
            return StartVerdict::Disturbed;
        }
        if low <= 0.0 && high >= 0.0 {
            return StartVerdict::NotSignificant;
        }
        let both = [condition, self.reference()].map(|one| self.estimate(one, figure));
        let larger = both.into_iter().flatten().map(|one| one.value).fold(0.0, f64::max);
        let size = later.median.abs();
        let least = least_size(figure.quantity).max(LEAST_SHARE * larger);
        if low.abs().max(high.abs()) < least {
            return StartVerdict::Small;
        }
        if size < least {
            return StartVerdict::OpenSize;
        }
        if !condition.is_control() && size <= self.control(figure) {
            return StartVerdict::WithinControl;
        }
        StartVerdict::Significant
    }

    /// Returns the difference of the reference from itself: if it is certain that there is one, as large as it may be.
    fn control(&self, figure: &Figure) -> f64 {
        let Some(found) = MedianInterval::of(&self.later(self.control_condition(), figure)) else {
            return 0.0;
        };
        match found.interval {
            Some((low, high)) if found.is_significant() == Some(true) => low.abs().max(high.abs()),
            _ => found.median.abs(),
        }
    }

    /// Whether in most blocks a start waited for a processor, under a condition or under the reference.
    fn is_disturbed(&self, condition: Condition) -> bool {
        let share = |sample: &Sample| {
            let waited_ns = Some(sample.kept_waiting_ns()).filter(|ns| *ns >= LEAST_WAIT_NS);
            Some(waited_ns.unwrap_or(0) as f64 / (sample.wall_ns as f64).max(1.0))
        };
        let pairs = self.samples(self.reference()).paired(self.samples(condition), share);
        let disturbed = pairs.iter().filter(|(one, other)| one.max(*other) > DISTURBED).count();
        2 * disturbed > pairs.len()
    }

    /// Compares starts under each other condition (such as without the cache) with those under the
    /// reference, in each figure (such as the start time).
    pub(super) fn differences(&self) -> Vec<Difference> {
        let others = self.conditions().filter(|condition| !condition.is_reference());
        let figures = self.figures();
        others
            .flat_map(|it| figures.iter().filter_map(move |figure| self.difference(it, figure)))
            .collect()
    }

    /// Returns notes for users on facts about the starts of each condition that the medians do not
    /// show, such as a slow first start.
    pub(super) fn notes(&self) -> Vec<String> {
        let all =
            self.by_condition.iter().flat_map(|(_, samples)| samples.iter().copied()).collect();
        let notes = CaseNotes::of(&all);
        let mut found = Vec::new();
        for (condition, samples) in &self.by_condition {
            found.extend(notes.on(samples).iter().map(|note| format!("{condition}: {note}.")));
        }
        found
    }

    /// Returns the sum of a named count (such as page faults) over all starts under a condition.
    pub(super) fn count(&self, condition: Condition, name: &str) -> u64 {
        let counts = self.samples(condition).iter().filter_map(|sample| sample.counts.get(name));
        counts.sum()
    }

    /// Returns the first error of starts under each condition, and how many starts failed there.
    pub(super) fn errors(&self) -> Vec<(Condition, &'a str, usize)> {
        let of = |(condition, samples): &(Condition, Samples<'a>)| {
            let errors: Vec<&'a str> =
                samples.iter().filter_map(|sample| sample.error.as_deref()).collect();
            Some((*condition, *errors.first()?, errors.len()))
        };
        self.by_condition.iter().filter_map(of).collect()
    }

    /// Returns the largest part of the program's files that was in memory before a cold start;
    /// `None` if the starts are warm.
    pub(super) fn resident_share(&self) -> Option<f64> {
        let share = |sample: &&Sample| {
            let of = |name: &str| sample.counts.get(name).map(|bytes| *bytes as f64);
            Some(of("cold_resident_bytes")? / of("cold_file_bytes")?.max(1.0))
        };
        let all = self.by_condition.iter().flat_map(|(_, samples)| samples.iter());
        all.filter_map(share).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::figures::CPU;
    use super::*;

    fn sample(condition: Condition, block: u64, wall_ns: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "startup", "case": "x", "seed": 1, "position": 0,
            "parameters": { "page_cache": "warm", "ready": "exit" },
            "subject": { "name": condition.name(), "program": "haypile", "language": "", "version": "" },
            "block": block, "operations": 1, "wall_ns": wall_ns, "cpu_ns": 5_000_000, "hits": 0,
            "misses": 0, "counts": { "cold_file_bytes": 100, "cold_resident_bytes": block },
        }))
        .unwrap()
    }

    /// With 10, 11, … ms and without 30 ms more, in blocks that differ much more from each other.
    #[test]
    fn differences_are_of_blocks_and_their_median_is_exact() {
        let mut samples = Vec::new();
        for block in 0..8 {
            let base = 10_000_000 * (block + 1);
            samples.push(sample(Condition::With, block, base));
            samples.push(sample(Condition::Again, block, base + block % 3 * 1_000_000 - 1_000_000));
            samples.push(sample(Condition::Off, block, base + 30_000_000 + block * 1_000));
        }
        let mut watched = sample(Condition::With, 0, 900_000_000);
        watched.parameters.insert("watched".to_owned(), json!(true));
        samples.push(watched);
        samples[0].error = Some("late".to_owned());
        let cases = cases(&samples);
        assert_eq!(cases.len(), 1);
        let off = cases[0].difference(Condition::Off, &READY).unwrap();
        assert_eq!(off.later.count, 7);
        assert!((off.later.median - 30_004_000.0).abs() < 1e-9, "{off:?}");
        assert_eq!(off.verdict, StartVerdict::Significant);
        let again = cases[0].difference(Condition::Again, &READY).unwrap();
        assert_eq!(again.verdict, StartVerdict::NotSignificant);
        assert_eq!(cases[0].difference(Condition::Fill, &READY), None);
        assert_eq!(cases[0].errors(), [(Condition::With, "late", 1)]);
        assert!((cases[0].resident_share().unwrap() - 0.07).abs() < 1e-9);
        assert_eq!(cases[0].figures(), [&READY, &CPU]);
        let findings = findings(&samples.iter().collect()).0;
        let value = |figure: &str, subject: &str| {
            let is_it = |it: &&Finding| (&*it.figure, &*it.subject.name) == (figure, subject);
            let mut found = findings.iter().filter(is_it);
            (found.next().map(|it| it.estimate.value), found.count())
        };
        assert_eq!(value("later:ready", "off"), (Some(off.later.median), 0));
        assert_eq!(value("saved:ready", "with"), (off.saved, 0), "the control saves nothing");
        assert_eq!(
            value("ready", "with"),
            (Some(50_000_000.0), 0),
            "nobody counts what was watched"
        );
    }

    /// Starts of 100 ms with the cache, others that differ from these, and their times of waiting.
    fn verdicts(off_ns: i64, control_ns: i64, waited_ns: u64) -> [StartVerdict; 2] {
        let mut samples = Vec::new();
        for block in 0..8_u64 {
            // No two differences are equal.
            let at = |later: i64| {
                100_000_000_u64
                    .checked_add_signed(later + later / 100 * (block.cast_signed() % 3))
                    .unwrap()
            };
            samples.push(sample(Condition::With, block, 100_000_000));
            samples.push(sample(Condition::Again, block, at(control_ns)));
            let mut off = sample(Condition::Off, block, at(off_ns));
            let load = haypile_measure::result::Load {
                seen_ns: 1,
                waited_ns: Some(waited_ns),
                ..Default::default()
            };
            off.load = Some(load);
            samples.push(off);
        }
        let cases = cases(&samples);
        [Condition::Off, Condition::Again]
            .map(|it| cases[0].difference(it, &READY).unwrap().verdict)
    }

    #[test]
    fn a_difference_is_larger_than_the_control_and_than_the_least_size() {
        use StartVerdict::{
            Disturbed, NotSignificant, OpenSize, Significant, Small, WithinControl,
        };
        assert_eq!(verdicts(30_000_000, 0, 0), [Significant, NotSignificant]);
        assert_eq!(verdicts(-30_000_000, 2_000_000, 0), [Significant, Significant]);
        assert_eq!(verdicts(3_000_000, -3_100_000, 0), [WithinControl, Significant]);
        // The control may be as large as the end of its interval.
        assert_eq!(verdicts(3_020_000, 3_000_000, 0), [WithinControl, Significant]);
        assert_eq!(verdicts(900_000, 0, 0), [Small, NotSignificant]);
        // Its interval reaches beyond a hundredth.
        assert_eq!(verdicts(995_000, 0, 0), [OpenSize, NotSignificant]);
        assert_eq!(verdicts(30_000_000, 0, 7_000_000), [Disturbed, NotSignificant]);
        assert_eq!(verdicts(30_000_000, 0, 6_000_000), [Significant, NotSignificant]);
    }
}
