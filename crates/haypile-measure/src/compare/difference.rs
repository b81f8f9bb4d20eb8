//! The difference between old and new values, paired where they were measured side by side.

use haypile_number::NBSP;

use super::comparison::Pairing;
use crate::result::Values;
use crate::statistics::{Effect, EffectError, Rule, Timing, Verdict};

/// The ratio of new to old costs, such as times: one of the centres of blocks, and one of the means
/// of all blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The ratio of the centres of new and old blocks, which a few slow blocks do not change.
    /// Verdicts are based on it.
    pub centre: Effect,
    /// The ratio of the mean of all new blocks to the mean of all old ones.
    pub mean: Effect,
    /// Whether the old and the new samples were measured in the same blocks, side by side.
    pub pairing: Pairing,
}

impl Difference {
    /// Compares new costs with old ones: in pairs if old and new samples share a run and block, and
    /// otherwise unpaired.
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

    /// Returns the verdict on the difference, given the timing of all blocks: by the centres, or by
    /// the means where the centres show no difference.
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

    /// Returns a verdict on a difference as text. If no difference is shown, the text states how
    /// large an unnoticed difference can be.
    pub fn write(&self, rule: Rule, verdict: Verdict) -> String {
        let least = self.least_shown(rule).filter(|_| verdict == Verdict::NoDifference);
        least.map_or_else(
            || verdict.to_string(),
            |least| format!("none beyond {:.1}{NBSP}% shown", least * 100.0),
        )
    }

    /// Returns the smallest change of the cost, as a part of 1, that the samples could have shown
    /// in both centre and mean; `None` if no change could have been shown.
    pub fn least_shown(&self, rule: Rule) -> Option<f64> {
        Some(rule.least_shown(&self.centre)?.max(rule.least_shown(&self.mean)?))
    }
}
