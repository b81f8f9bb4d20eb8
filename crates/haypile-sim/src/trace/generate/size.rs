//! Sizes of values by distribution.

use std::str::FromStr;

use haypile_number::splitmix::SplitMix64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::fields::{Fields, SpecError, Usage, bad_value};
use super::random::{Random, below, unit};
use crate::trace::Key;

/// A distribution of the sizes of values in bytes. A size is rounded to 1 to 2^32 - 1 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum SizeDistribution {
    /// All sizes are equal.
    Fixed {
        /// The size in bytes.
        bytes: u32,
    },
    /// Every size in a range is equally probable.
    Uniform {
        /// The smallest size.
        min_bytes: u32,
        /// The largest size.
        max_bytes: u32,
    },
    /// Sizes are normally distributed.
    Normal {
        /// The mean of the distribution.
        mean_bytes: f64,
        /// The standard deviation of the distribution.
        sd_bytes: f64,
    },
    /// Sizes whose logarithms are normally distributed: files, web objects.
    LogNormal {
        /// The median: half of the sizes are below it.
        median_bytes: f64,
        /// The standard deviation of the natural logarithm.
        sigma: f64,
    },
    /// A heavy tail: sizes above `x` have a share of (`min_bytes` / `x`)^`shape`.
    Pareto {
        /// The smallest size.
        min_bytes: u32,
        /// The shape of the tail: the smaller, the heavier; a shape of at most 1 has no mean.
        shape: f64,
    },
}

/// The rule by which values get random sizes: one for each key, or another for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizePer {
    /// The size depends on the key and the seed alone.
    Key,
    /// Each request draws a size of its own.
    Request,
}

/// The description of the sizes of values in a generated trace: their distribution, and whether each key or each
/// request draws one.
///
/// As a text: `fixed:bytes=4KiB`, `uniform:min=100,max=2000`, `normal:mean=10000,sd=512`,
/// `lognormal:median=4096,sigma=1.5` or `pareto:min=100,shape=1.2`, each with `per=key` (the
/// default) or `per=request`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The distribution of the values' sizes.
    pub distribution: SizeDistribution,
    /// Whether a random size is drawn once for each key, or for each request.
    pub per: SizePer,
}

const USAGES: [Usage; 5] = [
    Usage { kind: "fixed", fields: "bytes=N" },
    Usage { kind: "uniform", fields: "min=N,max=N[,per=key|request]" },
    Usage { kind: "normal", fields: "mean=X,sd=X[,per=key|request]" },
    Usage { kind: "lognormal", fields: "median=X,sigma=X[,per=key|request]" },
    Usage { kind: "pareto", fields: "min=N,shape=X[,per=key|request]" },
];

const MAX_BYTES: f64 = u32::MAX as f64;

impl FromStr for Sizes {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut fields = Fields::split(text, "distribution of sizes", &USAGES)?;
        let distribution = match fields.kind {
            "fixed" => SizeDistribution::Fixed { bytes: fields.need_bytes("bytes")? },
            "uniform" => {
                let (min_bytes, max_bytes) = (fields.need_bytes("min")?, fields.need_bytes("max")?);
                if min_bytes > max_bytes {
                    return Err(bad_value("max", max_bytes, format!("at least min={min_bytes}")));
                }
                SizeDistribution::Uniform { min_bytes, max_bytes }
            }
            "normal" => SizeDistribution::Normal {
                mean_bytes: fields.need("mean", (0.0, MAX_BYTES))?,
                sd_bytes: fields.need("sd", (0.0, MAX_BYTES))?,
            },
            "lognormal" => SizeDistribution::LogNormal {
                median_bytes: fields.need("median", (1.0, MAX_BYTES))?,
                sigma: fields.need("sigma", (0.0, 10.0))?,
            },
            _ => SizeDistribution::Pareto {
                min_bytes: fields.need_bytes("min")?,
                shape: fields.need("shape", (0.01, 1000.0))?,
            },
        };
        let per = match fields.take_text("per") {
            None | Some("key") => SizePer::Key,
            Some("request") => SizePer::Request,
            Some(other) => return Err(bad_value("per", other, "key or request")),
        };
        fields.end()?;
        Ok(Self { distribution, per })
    }
}

impl SizeDistribution {
    /// Draws a size from random integers.
    fn draw(&self, mut any: impl FnMut() -> u64) -> u32 {
        match *self {
            Self::Fixed { bytes } => bytes.max(1),
            Self::Uniform { min_bytes, max_bytes } => {
                let sizes = u64::from(max_bytes.saturating_sub(min_bytes)) + 1;
                let bytes = u64::from(min_bytes) + below(any(), sizes);
                u32::try_from(bytes).unwrap_or(u32::MAX).max(1)
            }
            Self::Normal { mean_bytes, sd_bytes } => {
                whole(mean_bytes + sd_bytes * normal(any(), any()))
            }
            Self::LogNormal { median_bytes, sigma } => {
                whole(median_bytes * libm::exp(sigma * normal(any(), any())))
            }
            Self::Pareto { min_bytes, shape } => {
                whole(f64::from(min_bytes) * libm::pow(1.0 - unit(any()), -1.0 / shape))
            }
        }
    }
}

/// Rounds to whole bytes; what is no number becomes 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
fn whole(bytes: f64) -> u32 {
    (libm::floor(bytes + 0.5).clamp(1.0, MAX_BYTES) as u32).max(1)
}

/// A normally distributed number of mean 0 and deviation 1: Box and Muller, "A note on the
/// generation of random normal deviates" (1958). Its second number is not used.
fn normal(any: u64, other: u64) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit(any)));
    radius * libm::cos(2.0 * std::f64::consts::PI * unit(other))
}

/// A generator of random sizes of values for the requests of a trace.
#[derive(Clone, Debug)]
pub(crate) struct SizeSource {
    sizes: Sizes,
    seed: u64,
    random: Random,
}

impl SizeSource {
    /// Creates a generator of the sizes of a trace's values; `stream` separates its random numbers from others of the
    /// same seed.
    pub(crate) fn new(sizes: Sizes, seed: u64, stream: u64) -> Self {
        Self { sizes, seed, random: Random::new(seed, stream) }
    }

    /// Returns the size of the value of the next request, which is for `key`, in bytes.
    pub(crate) fn next(&mut self, key: Key<'_>) -> u32 {
        match self.sizes.per {
            SizePer::Request => self.sizes.distribution.draw(|| self.random.next()),
            SizePer::Key => {
                let hash = match key {
                    Key::Number(number) => xxh3_64_with_seed(&number.to_le_bytes(), self.seed),
                    Key::Text(text) => xxh3_64_with_seed(text, self.seed),
                };
                let mut random = SplitMix64::new(hash);
                self.sizes.distribution.draw(|| random.number())
            }
        }
    }
}
