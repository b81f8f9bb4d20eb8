//! The certainty of an advice, and its reasons.
//!
//! A level is an experience and not a probability: `docs/simulator.md` says how often the choice was within a point of the best
//! on a part of a trace that nobody had seen.

use haypile_number::grouped;

use super::{Advice, Choice, Goal, Growth, RollingTest};

/// Evictions per entry below which a trace says little about a cache of that size.
const FEW_TURNOVERS: f64 = 1.0;

/// Reads of equal weight below which hit ratios are anecdotes.
const FEW_READS: u64 = 10_000;

/// The largest mean regret of rolling tests, of all and of the last, that leaves the advice without a doubt.
const LITTLE: f64 = 0.004;

/// The number of rolling tests that count as the last: their choices were made on most of the trace.
const LAST: usize = 3;

/// The largest regret of a single rolling test that leaves the advice without a doubt. It is more than that of all, because the best of a
/// single part is ahead by chance too.
const LITTLE_ONCE: f64 = 0.02;

/// Fewer rolling tests than this say little: nearly all reads are in few parts of the trace.
const FEW_TESTS: usize = 5;

/// The certainty of the advice on a cache, with its reasons.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Certainty {
    /// The level of certainty that the recommended cache is the right one, which the advice prints as a word.
    pub level: Level,
    /// The reasons for the level of certainty, as text: tests that support the advice, or doubts about it.
    pub reasons: Vec<String>,
}

/// A level of certainty that the recommended cache is the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing was evicted, so that no policy had anything to decide.
    NotAtAll,
    /// There is more than one doubt.
    NotVery,
    /// There is a doubt.
    Moderately,
    /// There is no doubt, as far as tomorrow is like the trace.
    Very,
}

impl Advice {
    /// Returns how certain the advice to use the cache `choice` is, with reasons.
    pub fn certainty(&self, choice: &Choice) -> Certainty {
        let few = self.few_reads();
        if choice.turnovers <= 0.0 {
            let reasons = [Some(self.nothing_evicted()), few].into_iter().flatten().collect();
            return Certainty { level: Level::NotAtAll, reasons };
        }
        let mut doubts = Vec::from_iter(few);
        if choice.turnovers < FEW_TURNOVERS {
            doubts.push("the cache was hardly filled once, so record for longer".to_owned());
        }
        let regrets: Vec<f64> = choice.rolling.iter().map(RollingTest::regret).collect();
        if regrets.len() < FEW_TESTS {
            doubts.push(format!(
                "only {} of {} parts of the trace have reads",
                regrets.len() + usize::from(self.reads > 0),
                self.windows.count()
            ));
        }
        let last = mean(&regrets[regrets.len().saturating_sub(LAST)..]);
        let largest = regrets.iter().copied().fold(0.0, f64::max);
        let worst = choice.rolling.iter().find(|test| test.regret() >= largest);
        let all = mean(&regrets);
        let part = self.part();
        let differs = all.max(last) > LITTLE || largest > LITTLE_ONCE;
        if let Some(worst) = worst.filter(|_| differs) {
            doubts.push(format!(
                "chosen on the beginning of the trace, a policy was {:.1} points behind the best of the next {part} on average, \
                 and {:.1} {} {} ({} behind {})",
                100.0 * all,
                100.0 * largest,
                if self.has_days() { "on day" } else { "in part" },
                worst.part,
                worst.policy,
                worst.best,
            ));
        }
        let level = match doubts.len() {
            0 => Level::Very,
            1 => Level::Moderately,
            _ => Level::NotVery,
        };
        if level == Level::Very {
            doubts.push(format!(
                "chosen on its beginning, a policy was {:.1} points behind the best of the next {part} on average, and {:.1} at most \
                 ({} tests)",
                100.0 * all,
                100.0 * largest,
                regrets.len()
            ));
        }
        Certainty { level, reasons: doubts }
    }

    /// The doubt of an advice that rests on few reads, or on few large ones among many.
    fn few_reads(&self) -> Option<String> {
        if self.reads < FEW_READS {
            return Some(format!("there are only {} reads", grouped(self.reads)));
        }
        (self.equal_reads < FEW_READS).then(|| {
            let (values, equal) = match self.by {
                Goal::Cost(_) => ("costly", "cost"),
                Goal::Reads | Goal::Bytes => ("large", "size"),
            };
            format!(
                "{values} values decide: by their {} the {} reads tell as much as {} of equal {equal}",
                self.by.name(),
                grouped(self.reads),
                grouped(self.equal_reads),
            )
        })
    }

    /// The reason of a cache that never had to choose.
    fn nothing_evicted(&self) -> String {
        let nothing = "nothing was evicted, so that this trace says nothing about it";
        if !self.growth.goes_on() {
            return nothing.to_owned();
        }
        let Growth { requests, new_keys, new_keys_per_hour } = self.growth;
        let new_keys = if let Some(per_hour) = new_keys_per_hour {
            format!("at {per_hour:.0} per hour")
        } else {
            format!("with {} of {} requests", grouped(new_keys), grouped(requests))
        };
        format!(
            "{nothing}, nor about the size, of which it has a lower bound: new keys still came {new_keys} at its end"
        )
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}
