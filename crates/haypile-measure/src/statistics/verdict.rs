//! The verdict on an effect.

use std::fmt;

use super::Effect;

/// A rule that decides whether new costs differ significantly from old ones: by their p-value, and by more than a noise
/// floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    noise_floor: f64,
}

/// The error of a significance rule whose noise floor (the largest difference that it ignores) is not a share from 0 to
/// 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The noise floor is not a number from 0 to 1.
    #[error(
        "the noise floor is {noise_floor}; it has to be a share from 0 to 1, such as 0.01 for 1 %"
    )]
    NoiseFloor {
        /// The noise floor given.
        noise_floor: f64,
    },
}

/// The verdict on a comparison of old and new costs (time or memory, less is better): faster, slower, or no difference
/// shown.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// The new side costs less than the old one.
    Faster,
    /// The new side costs more than the old one.
    Slower,
    /// No difference is shown. There may be one that the samples are too few or too noisy for:
    /// [`Rule::least_shown`] says from which size on one would have been shown.
    NoDifference,
    /// The centres are not shown to differ, and the mean of the new side is less: the old side has blocks that take
    /// long.
    FasterOnAverage,
    /// The centres are not shown to differ, and the mean of the new side is more: it has blocks that take long.
    SlowerOnAverage,
    /// There are fewer blocks than [`Rule::MIN_BLOCKS`], which show nothing.
    TooFew,
    /// The blocks are shorter than [`Rule::MIN_BLOCK_NS`]: a disturbance is as long as the block.
    TooShort,
    /// The reported times are shorter than the laboratory saw, by more than a check of single samples is sure of.
    Unconfirmed,
}

/// The median length of the blocks (rounds) of a comparison, and whether the laboratory's own clock confirms the times
/// in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// The median length of a block (round) in nanoseconds; `None` if it is unknown, or the cost is not a time.
    pub block_ns: Option<u64>,
    /// Whether a measured process (a runner) reported much less time than the laboratory's own clock shows.
    pub is_unconfirmed: bool,
}

impl Timing {
    /// Returns the timing of old and new samples together: the shorter block length of the two, and unconfirmed if
    /// either is.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            block_ns: self.block_ns.into_iter().chain(other.block_ns).min(),
            is_unconfirmed: self.is_unconfirmed || other.is_unconfirmed,
        }
    }
}

impl Rule {
    /// The p-value (0.01) below which a difference is significant, so that a comparison is called faster or slower.
    pub const SIGNIFICANCE: f64 = 0.01;

    /// The smallest number of blocks (rounds) from which a comparison is called faster or slower.
    pub const MIN_BLOCKS: usize = 4;

    /// The length of the shortest blocks (rounds) by which a comparison is called faster or slower, in nanoseconds.
    pub const MIN_BLOCK_NS: u64 = 20_000_000;

    /// Creates a rule with a noise floor: a difference up to it, such as 0.01 for 1 %, is never called significant.
    /// From 0 to 1; a ratio counts alike in both directions, so that 1 % more is as large as 1 % more the other way
    /// round.
    pub fn with_noise_floor(noise_floor: f64) -> Result<Self, RuleError> {
        if (0.0..=1.0).contains(&noise_floor) {
            Ok(Self { noise_floor })
        } else {
            Err(RuleError::NoiseFloor { noise_floor })
        }
    }

    /// Returns the rule's noise floor as a part of 1: differences up to it are never called significant.
    pub fn noise_floor(&self) -> f64 {
        self.noise_floor
    }

    /// Returns the verdict (faster, slower, no difference shown) on a difference of costs that are not times, such as
    /// memory.
    pub fn judge(&self, effect: &Effect) -> Verdict {
        self.judge_timed(effect, Timing::default())
    }

    /// Returns the verdict (faster, slower, no difference shown) on a difference of costs, given the length of the
    /// blocks (rounds) and whether times are confirmed.
    pub fn judge_timed(&self, effect: &Effect, timing: Timing) -> Verdict {
        let log_ratio = effect.log_ratio();
        if effect.samples() < Self::MIN_BLOCKS {
            Verdict::TooFew
        } else if timing.block_ns.is_some_and(|ns| ns < Self::MIN_BLOCK_NS) {
            Verdict::TooShort
        } else if timing.is_unconfirmed {
            Verdict::Unconfirmed
        } else if effect.p_value() >= Self::SIGNIFICANCE
            || log_ratio.abs() <= self.noise_floor.ln_1p()
        {
            Verdict::NoDifference
        } else if log_ratio > 0.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    }

    /// Returns the smallest change of the cost that these samples could have shown, as a part of 1: 0.03 is 3 % more;
    /// `None` if they could have shown none.
    pub fn least_shown(&self, effect: &Effect) -> Option<f64> {
        let least = effect.least_significant().filter(|_| effect.samples() >= Self::MIN_BLOCKS)?;
        Some(least.max(self.noise_floor.ln_1p()).exp_m1()).filter(|least| least.is_finite())
    }
}

impl Default for Rule {
    /// A noise floor of 1 %.
    fn default() -> Self {
        Self { noise_floor: 0.01 }
    }
}

impl Verdict {
    /// Returns the name of the verdict on old and new costs in JSON: `faster`, `slower`, `faster-on-average`,
    /// `slower-on-average`, `no-difference`, `too-few`, `too-short` or `unconfirmed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::FasterOnAverage => "faster-on-average",
            Self::SlowerOnAverage => "slower-on-average",
            Self::NoDifference => "no-difference",
            Self::TooFew => "too-few",
            Self::TooShort => "too-short",
            Self::Unconfirmed => "unconfirmed",
        }
    }

    /// Whether there is no verdict on the costs, because the blocks (rounds) are too few, too short or unconfirmed.
    pub fn is_none(self) -> bool {
        matches!(self, Self::TooFew | Self::TooShort | Self::Unconfirmed)
    }

    /// Returns the verdict of the comparison with old and new exchanged: `faster` becomes `slower`.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            Self::FasterOnAverage => Self::SlowerOnAverage,
            Self::SlowerOnAverage => Self::FasterOnAverage,
            other => other,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FasterOnAverage => "faster on average",
            Self::SlowerOnAverage => "slower on average",
            Self::NoDifference => "no difference shown",
            Self::TooFew => "too few blocks",
            Self::TooShort => "blocks too short",
            Self::Unconfirmed => "times not confirmed",
            verdict => verdict.name(),
        })
    }
}
