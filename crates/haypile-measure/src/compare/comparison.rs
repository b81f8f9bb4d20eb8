//! The outcome of comparing results.

use std::fmt;

use super::difference::Difference;
use super::metric::Metric;
use crate::figure::Estimate;
use crate::result::{Identity, Parameters};
use crate::statistics::{Effect, Rule, Summary, Verdict};

/// The results of comparing an old set of benchmark samples with a new one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The metric that was compared, such as processor time.
    pub metric: Metric,
    /// The rule that decides which differences between old and new samples are significant.
    pub rule: Rule,
    /// The compared results: one row for each case and subject (cache under test) that both sets of samples have.
    pub rows: Vec<Row>,
    /// The cases that only the old set of samples has, as text: case and subject (cache under test).
    pub missing: Vec<String>,
    /// Warnings for the reader of a comparison about rows that may be wrong, and about cases that only one side (old or
    /// new) has.
    pub warnings: Vec<String>,
}

/// The comparison of one subject (cache under test) in one case (setting of parameters) of an experiment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Row {
    /// The name of the experiment that was measured, such as `micro`.
    pub experiment: String,
    /// The name of the experiment's case, in which both sides were measured.
    pub case: String,
    /// The parameters of the experiment's case, such as its number of threads.
    pub parameters: Parameters,
    /// The summary of the old samples, with which the new ones are compared.
    pub old: Side,
    /// The summary of the new samples, which are compared with the old ones.
    pub new: Side,
    /// The outcome of comparing old with new samples of this subject and case: a verdict (such as slower), failed, or
    /// not measured.
    pub outcome: Outcome,
}

/// The old or the new side of a comparison: the subject, its program, and a summary of its samples in one case.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Side {
    /// The name of the subject (cache under test).
    pub subject: String,
    /// The name of the program that ran the subject (cache under test).
    pub program: String,
    /// The summary (median, extremes and so on) of the samples of this side (old or new), with one value for each run
    /// and block (round); `None` if there are none.
    pub summary: Option<Summary>,
    /// The estimated value of the compared metric (such as processor time per operation) over this side's samples (old
    /// or new); `None` if it was not measured.
    pub estimate: Option<Estimate>,
    /// The number of samples of this side (old or new) that are errors.
    pub errors: u64,
    /// The text of the first error among the samples of this side (old or new).
    pub first_error: Option<String>,
    /// Notes for people on facts about the samples that their median does not show, such as a trend.
    pub notes: Vec<String>,
    /// Whether some samples of this side (old or new) are far slower than the others, beyond what chance and other work
    /// on the machine explain.
    pub has_slow_samples: bool,
}

/// The statistic (median, mean, or slow samples) by which a slowdown fails a check.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Gate {
    /// The centre and the mean, each at half of the level of a [`Rule`] in the one direction that counts: the mean
    /// finds slow samples that are too few to move the centre.
    #[default]
    Both,
    /// The centre alone.
    Median,
    /// The centre, the mean, and slow samples in the new side where the old one has none. A few blocks find a tail by
    /// this, and a subject that has always had one fails now and then: where 1 of 20 samples is slow, in 1 of 4 checks.
    Tails,
}

/// The outcome of comparing old with new samples of a case: a verdict (such as slower), failed, or not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// Both sides were measured.
    Judged {
        /// The ratio of the new cost to the old one.
        difference: Difference,
        /// The verdict that follows from the change.
        verdict: Verdict,
    },
    /// The old side was measured, and the new side has nothing but errors.
    Failed,
    /// A side has no figures: nothing but errors on the old side, or the metric was not measured.
    NotMeasured,
}

/// The way in which old and new samples are paired: in the same blocks (rounds), or not at all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pairing {
    /// Both sides were measured side by side, in the same blocks.
    Paired {
        /// The number of pairs.
        blocks: usize,
    },
    /// Both sides were measured in different runs.
    Unpaired,
}

impl Side {
    /// Returns the name of the subject (cache under test), and of the program that ran it.
    pub fn identity(&self) -> Identity<'_> {
        Identity { name: &self.subject, program: &self.program }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Paired { .. } => "paired",
            Self::Unpaired => "unpaired",
        })
    }
}

impl Outcome {
    /// Returns the name of the comparison's outcome in JSON: that of the verdict (such as `slower`), `failed` or
    /// `not-measured`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Judged { verdict, .. } => verdict.name(),
            Self::Failed => "failed",
            Self::NotMeasured => "not-measured",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Judged { verdict, .. } => verdict.fmt(f),
            Self::Failed => f.pad("failed"),
            Self::NotMeasured => f.pad("not measured"),
        }
    }
}

impl Comparison {
    /// Returns the rows of the comparison whose slowdown exceeds a part of 1 (0.03 is 3 %), and those whose new samples
    /// are all errors or lack the metric.
    ///
    /// A row counts if it is significantly slower, beyond the noise floor, and its estimate lies beyond the part.
    /// Blocks that are too few or too short for a verdict are not beyond. What is [`missing`](Self::missing) has no
    /// row.
    pub fn beyond(&self, part: f64, gate: Gate) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| match row.outcome {
            Outcome::Judged { verdict, .. } if verdict.is_none() => false,
            Outcome::Judged { ref difference, verdict } => {
                let most = part.max(self.rule.noise_floor());
                // Of both directions; half of it is the one that counts.
                let is_beyond = |effect: &Effect| {
                    effect.p_value() < Rule::SIGNIFICANCE && effect.change() > most
                };
                let both = || [&difference.centre, &difference.mean].into_iter().any(is_beyond);
                match gate {
                    Gate::Median => verdict == Verdict::Slower && difference.centre.change() > part,
                    Gate::Both => both(),
                    Gate::Tails => {
                        let is_new = row.new.has_slow_samples && !row.old.has_slow_samples;
                        both() || is_new && difference.mean.change() > most
                    }
                }
            }
            Outcome::Failed => true,
            Outcome::NotMeasured => row.old.summary.is_some(),
        })
    }
}
