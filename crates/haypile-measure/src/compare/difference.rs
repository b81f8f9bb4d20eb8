//! The difference between old and new values, paired where they were measured side by side.

use haypile_number::NBSP;

use super::comparison::Pairing;
use crate::result::Values;
use crate::statistics::{Effect, EffectError, Rule, Timing, Verdict};

/// The ratio of new to old costs, of the centres of blocks and of the means of all blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The ratio of the centres, which a few slow blocks do not move: verdicts are on it.
    pub centre: Effect,
    /// The ratio of the means, in which every block counts.
    pub mean: Effect,
    /// Whether samples were measured side by side.
    pub pairing: Pairing,
}

impl Difference {
    /// Compares new with old values: in pairs if both sides share a place, and otherwise unpaired.
    ///
    /// # Errors
    ///
    /// [`EffectError`] if a side has nothing.
    pub fn of(old: &Values<'_>, new: &Values<'_>) -> Result<Self, EffectError> {
        let pairs = old.paired(new);
        if pairs.is_empty() {
            let (old, new) = (old.to_vec(), new.to_vec());
            let (centre, mean) = (Effect::unpaired(&old, &new)?, Effect::of_means(&old, &new)?);
            return Ok(Self { centre, mean, pairing: Pairing::Unpaired });
        }
        let (centre, mean) = (Effect::paired(&pairs)?, Effect::of_sums(&pairs)?);
        Ok(Self { centre, mean, pairing: Pairing::Paired { blocks: pairs.len() } })
    }

    /// Returns the verdict, with the timing of the blocks of both sides: on the centre, or on the mean where the
    /// centre shows no difference.
    pub fn verdict(&self, rule: Rule, timing: Timing) -> Verdict {
        match rule.judge_timed(&self.centre, timing) {
            Verdict::NoDifference => match rule.judge_timed(&self.mean, timing) {
                Verdict::Slower => Verdict::SlowerOnAverage,
                Verdict::Faster => Verdict::FasterOnAverage,
                _ => Verdict::NoDifference,
            },
            verdict => verdict,
        }
    }

    /// Returns a verdict for people. If no difference is shown, there may be one: up to the one that would have been
    /// shown of the centre and of the mean.
    pub fn write(&self, rule: Rule, verdict: Verdict) -> String {
        let least = self.least_shown(rule).filter(|_| verdict == Verdict::NoDifference);
        least.map_or_else(
            || verdict.to_string(),
            |least| format!("none beyond {:.1}{NBSP}% shown", least * 100.0),
        )
    }

    /// Returns the smallest change that would have been shown both of the centre and of the mean, as a part: below
    /// it, nothing is said to be equal. `None` where no change would have been.
    pub fn least_shown(&self, rule: Rule) -> Option<f64> {
        Some(rule.least_shown(&self.centre)?.max(rule.least_shown(&self.mean)?))
    }
}
