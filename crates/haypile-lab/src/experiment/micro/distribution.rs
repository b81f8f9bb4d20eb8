//! The distribution of the keys that are asked for.

use std::fmt;
use std::str::FromStr;

use haypile_sim::trace::Key;
use haypile_sim::trace::generate::{Mixture, Pattern, PatternPart, Spec};

use super::MicroError;

/// The distribution of requests over keys: uniform, or zipf with an exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Zipf's law: key `k`, from 0, in proportion to (`k` + 1)^-`exponent`.
    Zipf {
        /// The skew, from 0 to 20.
        exponent: f64,
    },
    /// All keys are equally probable.
    Uniform,
}

impl Distribution {
    /// The allowed distributions of requests over keys, for error messages.
    pub const ALLOWED: &'static str = "uniform and zipf:EXPONENT, as in zipf:0.99 (from 0 to 20)";

    /// Draws `count` key numbers below `keys` at random, with this distribution of requests. The
    /// same arguments give the same numbers in every version.
    pub(super) fn draw(self, keys: u32, count: u64, seed: u64) -> impl Iterator<Item = u32> {
        let keys = u64::from(keys);
        let pattern = match self {
            Self::Zipf { exponent } => Pattern::Zipf { keys, exponent },
            Self::Uniform => Pattern::Uniform { keys },
        };
        let part = PatternPart { pattern, weight: 1.0, from: Some(0) };
        let spec = Spec { seed, ..Spec::new(Mixture { parts: vec![part] }, count) };
        let requests = spec.generator().expect("keys and exponent are in their ranges");
        requests.map(|request| match request.key {
            Key::Number(number) => u32::try_from(number).expect("below the number of keys"),
            Key::Text(_) => unreachable!("generated keys are numbers"),
        })
    }
}

impl FromStr for Distribution {
    type Err = MicroError;

    fn from_str(text: &str) -> Result<Self, MicroError> {
        if text == "uniform" {
            return Ok(Self::Uniform);
        }
        let exponent = text.strip_prefix("zipf:").and_then(|exponent| exponent.parse().ok());
        let exponent = exponent.filter(|exponent| (0.0..=20.0).contains(exponent));
        let exponent = exponent.ok_or_else(|| MicroError::Unknown {
            what: "distribution",
            text: text.to_owned(),
            allowed: Self::ALLOWED,
        })?;
        Ok(Self::Zipf { exponent })
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Self::Uniform => f.write_str("uniform"),
        }
    }
}
