//! The difference between old and new values, paired where they were measured side by side.

use haypile_number::NBSP;

use super::comparison::Pairing;
use crate::result::Values;
use crate::statistics::{Effect, EffectError, Rule, Timing, Verdict};

/// The ratios of new to old costs (such as times) of a subject: that of the centres (trimmed means)
/// of all blocks (rounds), and that of their arithmetic means.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The ratio of the new to the old centre (a trimmed mean over blocks, the rounds of a
    /// measurement), which a few slow blocks do not change. Verdicts are based on it.
    pub centre: Effect,
    /// The ratio of the arithmetic mean of all new blocks (rounds of a measurement) to that of all
    /// old ones.
    pub mean: Effect,
    /// Whether the old and the new samples were measured in the same blocks (rounds), side by side,
    /// and then in how many.
    pub pairing: Pairing,
}

impl Difference {
    /// Compares new costs with old ones: in pairs if old and new samples share a run and block
    /// (round), and otherwise unpaired.
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

    /// Returns the verdict (faster, slower, no difference shown) on new compared with old costs,
    /// given the timing of the blocks: by the centres, or by the means where the centres show no
    /// difference.
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

    /// Returns the verdict on a difference of old and new costs as text. If no difference is shown,
    /// the text states how large an unnoticed difference can be.
    pub fn write(&self, rule: Rule, verdict: Verdict) -> String {
        let least = self.least_shown(rule).filter(|_| verdict == Verdict::NoDifference);
        least.map_or_else(
            || verdict.to_string(),
            |least| format!("none beyond {:.1}{NBSP}% shown", least * 100.0),
        )
    }

    /// Returns the smallest change of the cost, as a part of 1, that a rule would have called
    /// significant with these samples, in both centre and mean; `None` if it would have called
    /// none.
    pub fn least_shown(&self, rule: Rule) -> Option<f64> {
        Some(rule.least_shown(&self.centre)?.max(rule.least_shown(&self.mean)?))
    }
}
