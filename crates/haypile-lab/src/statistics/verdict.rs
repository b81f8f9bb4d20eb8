//! The verdict on an effect.

use std::fmt;

use super::Effect;

/// A rule by which effects are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    noise_floor: f64,
}

/// A rule that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// The noise floor is not a part of something.
    #[error(
        "the noise floor is {noise_floor}; it has to be a part from 0 to 1, such as 0.01 for 1 %"
    )]
    NoiseFloor {
        /// The noise floor given.
        noise_floor: f64,
    },
}

/// The verdict on an effect on a cost: of time or memory, less is better.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// New costs less than old.
    Faster,
    /// New costs more than old.
    Slower,
    /// No difference is shown. There may be one that the samples are too few or too noisy for.
    NoDifference,
}

impl Rule {
    /// A verdict other than "no difference shown" needs a p-value below this.
    pub const SIGNIFICANCE: f64 = 0.01;

    /// With a noise floor as a part: effects up to 0.01 are not told from noise however sure they
    /// are. From 0 to 1; a ratio counts alike in both directions, so that 1 % more is as large as
    /// 1 % more the other way round.
    pub fn with_noise_floor(noise_floor: f64) -> Result<Self, RuleError> {
        if (0.0..=1.0).contains(&noise_floor) {
            Ok(Self { noise_floor })
        } else {
            Err(RuleError::NoiseFloor { noise_floor })
        }
    }

    /// The noise floor, as a part.
    pub fn noise_floor(&self) -> f64 {
        self.noise_floor
    }

    /// Judges an effect on a cost.
    pub fn judge(&self, effect: &Effect) -> Verdict {
        let log_ratio = effect.log_ratio();
        if effect.p_value() >= Self::SIGNIFICANCE || log_ratio.abs() <= self.noise_floor.ln_1p() {
            Verdict::NoDifference
        } else if log_ratio > 0.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    }
}

impl Default for Rule {
    /// A noise floor of 1 %.
    fn default() -> Self {
        Self { noise_floor: 0.01 }
    }
}

impl Verdict {
    /// Its name for programs: `faster`, `slower` or `no-difference`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::NoDifference => "no-difference",
        }
    }

    /// The verdict with old and new in each other's place.
    #[must_use]
    pub fn inverse(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            Self::NoDifference => Self::NoDifference,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NoDifference => "no difference shown",
            verdict => verdict.name(),
        })
    }
}
