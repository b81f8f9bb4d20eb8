//! Patterns of access.

use std::str::FromStr;

use super::fields::{Fields, SpecError, Usage, bad_value};
use super::random::Random;
use super::zipf::Zipf;

/// The largest number of keys of a pattern, and the largest first key.
const MAX_KEYS: u64 = 1 << 48;

/// A pattern of the order in which keys of a generated trace are requested. Keys are numbers from 0, to which the
/// mixture adds an offset.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Pattern {
    /// Zipf's law: key `k` (from 0) is asked for with a probability in proportion to
    /// (`k` + 1)^-`exponent`.
    Zipf {
        /// Number of distinct keys.
        keys: u64,
        /// The skew; 0 is uniform, and web traffic is between 0.6 and 1.1.
        exponent: f64,
    },
    /// Every key is equally probable.
    Uniform {
        /// Number of distinct keys.
        keys: u64,
    },
    /// Runs over neighbouring keys, each from a random key on, around the end.
    Scan {
        /// Number of distinct keys.
        keys: u64,
        /// Number of keys of one run; a run of all keys begins at the first.
        length: u64,
    },
    /// All keys in order, over and over.
    Loop {
        /// Number of distinct keys.
        keys: u64,
    },
    /// A hot set of neighbouring keys, which moves on after some time.
    Hotspot {
        /// Number of distinct keys.
        keys: u64,
        /// Number of keys of the hot set.
        hot: u64,
        /// The share of the requests that go to the hot set; the others go to any key.
        share: f64,
        /// Number of requests of this pattern after which the next `hot` keys become hot.
        every: u64,
    },
}

/// A pattern by which a generated trace chooses keys (such as Zipf), as one part of a mixture, with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PatternPart {
    /// The pattern by which this part of the mixture chooses keys.
    pub pattern: Pattern,
    /// The share of the requests that follow this pattern, in proportion to the weights of the other parts.
    pub weight: f64,
    /// The number of the pattern's first key; `None` for the number after the last key of the previous part.
    pub from: Option<u64>,
}

/// A mixture of key patterns, between which a generated trace alternates at random; or a single pattern.
///
/// As a text: parts joined by `+`, each `PATTERN:FIELD=VALUE,...`, followed by `@WEIGHT` where the
/// weight is not 1: `zipf:keys=100000,exponent=0.99@0.8+loop:keys=5000@0.2`. Each part has keys of
/// its own; `from=` states its first key instead, so that parts can share keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture {
    /// The key patterns of the mixture, at least one.
    pub parts: Vec<PatternPart>,
}

const USAGES: [Usage; 5] = [
    Usage { kind: "zipf", fields: "keys=N,exponent=X[,from=N]" },
    Usage { kind: "uniform", fields: "keys=N[,from=N]" },
    Usage { kind: "scan", fields: "keys=N[,length=N][,from=N]" },
    Usage { kind: "loop", fields: "keys=N[,from=N]" },
    Usage { kind: "hotspot", fields: "keys=N,hot=N,every=N[,share=X][,from=N]" },
];

impl FromStr for Mixture {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(Self { parts: text.split('+').map(str::parse).collect::<Result<_, _>>()? })
    }
}

impl FromStr for PatternPart {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (pattern, weight) = match text.rsplit_once('@') {
            None => (text, 1.0),
            Some((pattern, text)) => {
                let weight = text.trim().parse().ok().filter(|&weight| is_weight(weight));
                let allowed = "a number above 0 and up to 1000000000";
                (pattern, weight.ok_or_else(|| bad_value("@weight", text, allowed))?)
            }
        };
        let mut fields = Fields::split(pattern.trim(), "pattern", &USAGES)?;
        let keys = fields.need("keys", (1, MAX_KEYS))?;
        let pattern = match fields.kind {
            "zipf" => Pattern::Zipf { keys, exponent: fields.need("exponent", (0.0, 20.0))? },
            "uniform" => Pattern::Uniform { keys },
            "scan" => {
                Pattern::Scan { keys, length: fields.take("length", (1, keys))?.unwrap_or(keys) }
            }
            "loop" => Pattern::Loop { keys },
            _ => Pattern::Hotspot {
                keys,
                hot: fields.need("hot", (1, keys))?,
                share: fields.take("share", (0.0, 1.0))?.unwrap_or(0.9),
                every: fields.need("every", (1, u64::MAX))?,
            },
        };
        let from = fields.take("from", (0, MAX_KEYS))?;
        fields.end()?;
        Ok(Self { pattern, weight, from })
    }
}

pub(super) fn is_weight(weight: f64) -> bool {
    weight > 0.0 && weight <= 1e9
}

impl Pattern {
    /// Returns the number of distinct keys that the pattern can request.
    pub fn keys(&self) -> u64 {
        match *self {
            Self::Zipf { keys, .. }
            | Self::Uniform { keys }
            | Self::Scan { keys, .. }
            | Self::Loop { keys }
            | Self::Hotspot { keys, .. } => keys,
        }
    }

    /// Checks that the fields of the pattern are in their ranges, because a program may have set them.
    pub(super) fn validate(&self) -> Result<(), SpecError> {
        let within = |field, value: u64, min: u64, max: u64| {
            let allowed = || format!("a number from {min} to {max}");
            (min..=max)
                .contains(&value)
                .then_some(())
                .ok_or_else(|| bad_value(field, value, allowed()))
        };
        within("keys", self.keys(), 1, MAX_KEYS)?;
        match *self {
            Self::Zipf { exponent, .. } if !(0.0..=20.0).contains(&exponent) => {
                Err(bad_value("exponent", exponent, "a number from 0 to 20"))
            }
            Self::Scan { keys, length } => within("length", length, 1, keys),
            Self::Hotspot { share, .. } if !(0.0..=1.0).contains(&share) => {
                Err(bad_value("share", share, "a number from 0 to 1"))
            }
            Self::Hotspot { keys, hot, every, .. } => {
                within("hot", hot, 1, keys)?;
                within("every", every, 1, u64::MAX)
            }
            _ => Ok(()),
        }
    }
}

/// A generator of the keys of one key pattern, with its position in the pattern.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    pattern: Pattern,
    zipf: Option<Zipf>,
    random: Random,
    requests: u64,
    /// Position of the scan, the loop or the hot set.
    at: u64,
}

impl Walk {
    /// Creates a generator of the keys of a key pattern, before the first key. The pattern has been checked.
    pub(super) fn new(pattern: Pattern, random: Random) -> Self {
        let zipf = match pattern {
            Pattern::Zipf { keys, exponent } => Some(Zipf::new(keys, exponent)),
            _ => None,
        };
        Self { pattern, zipf, random, requests: 0, at: 0 }
    }

    /// Returns the next key of the pattern, as a number from 0.
    pub(super) fn next(&mut self) -> u64 {
        let request = self.requests;
        self.requests += 1;
        match (self.pattern, &self.zipf) {
            (Pattern::Zipf { .. }, Some(zipf)) => zipf.next(&mut self.random) - 1,
            (Pattern::Zipf { keys, .. } | Pattern::Uniform { keys }, _) => self.random.below(keys),
            (Pattern::Loop { keys }, _) => request % keys,
            (Pattern::Scan { keys, length }, _) => {
                if length < keys && request.is_multiple_of(length) {
                    self.at = self.random.below(keys);
                }
                let key = self.at;
                self.at = (key + 1) % keys;
                key
            }
            (Pattern::Hotspot { keys, hot, share, every }, _) => {
                if request > 0 && request.is_multiple_of(every) {
                    self.at = (self.at + hot) % keys;
                }
                if self.random.unit() < share {
                    (self.at + self.random.below(hot)) % keys
                } else {
                    self.random.below(keys)
                }
            }
        }
    }
}
