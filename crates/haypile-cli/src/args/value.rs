//! Parsers of the arguments' values. Their errors name the values that are allowed.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use haypile::{ByteSize, Ttl};
use haypile_lab::experiment::value::{count, percent};
use haypile_policy::{PolicyError, PolicySpec};
use haypile_sim::simulate::{Contender, MIN_SAMPLED_KEYS, Warmup};
use haypile_sim::trace::format::{BlockSize, CsvOptions, DataSet, SpcAs};
use haypile_sim::trace::generate::{SizeDistribution, SizePer, Sizes};

use super::CapacityArgument;

/// Name of the optimum, which is not a policy of the engine.
const BELADY: &str = "belady";

/// Parses a cache size in objects: a count, or a share of the keys.
pub(crate) fn objects(text: &str) -> anyhow::Result<CapacityArgument> {
    if text.ends_with('%') {
        let share = text.parse().ok();
        return share.with_context(|| format!("'{text}' is not a share above 0% and up to 100%"));
    }
    count(text)
        .map(CapacityArgument::Count)
        .map_err(|error| anyhow!("{error}, or a share of the keys, such as 10%"))
}

/// A list of eviction policies to simulate, separated by commas; it may include the optimum, which
/// knows the future.
#[derive(Clone, Debug)]
pub(crate) struct Contenders(pub(crate) Vec<Contender>);

impl FromStr for Contenders {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut contenders: Vec<Contender> = Vec::new();
        for contender in Contender::parse_list(text).map_err(explain)? {
            if !contenders.contains(&contender) {
                contenders.push(contender);
            }
        }
        if contenders.is_empty() {
            bail!("the list of eviction policies is empty; name at least one, as in lru,sieve");
        }
        Ok(Self(contenders))
    }
}

/// Adds the optimum to the engine's list of known policies.
fn explain(error: PolicyError) -> anyhow::Error {
    match error {
        PolicyError::UnknownPolicy { name } if name == BELADY => {
            anyhow!("invalid parameters of belady (write belady or belady:decline=1)")
        }
        PolicyError::UnknownPolicy { .. } => {
            let text = error.to_string();
            anyhow!("{}, {BELADY})", text.strip_suffix(')').unwrap_or(&text))
        }
        error => error.into(),
    }
}

/// A list of eviction policies, separated by commas.
#[derive(Clone, Debug)]
pub(crate) struct PolicyList(pub(crate) Vec<PolicySpec>);

impl FromStr for PolicyList {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let policies = match PolicySpec::parse_list(text) {
            Err(PolicyError::UnknownPolicy { name }) if name == BELADY => {
                bail!(
                    "belady needs to know future requests, so that no cache can have this policy; \
                     name others, such as lru"
                )
            }
            policies => policies?,
        };
        if policies.is_empty() {
            bail!("the list of eviction policies is empty; name at least one, as in lru,sieve");
        }
        Ok(Self(policies))
    }
}

pub(super) fn columns(text: &str) -> anyhow::Result<CsvOptions> {
    let mut options = CsvOptions::default();
    options.set_columns(text)?;
    Ok(options)
}

/// Parses the sizes that values of a trace are assumed to have: a distribution or a plain size.
/// Each request draws its own size, unless the text has a `per=`.
pub(super) fn assumed_sizes(text: &str) -> anyhow::Result<Sizes> {
    if let Ok(ByteSize(bytes)) = text.parse() {
        let bytes = u32::try_from(bytes).context("a size is at most 4294967295 bytes")?;
        let distribution = SizeDistribution::Fixed { bytes };
        return Ok(Sizes { distribution, per: SizePer::Request });
    }
    let mut sizes: Sizes = text.parse()?;
    if !text.contains("per=") {
        sizes.per = SizePer::Request;
    }
    Ok(sizes)
}

/// Parses a whole number of at least 1 that fits into a `usize`.
pub(super) fn positive(text: &str) -> anyhow::Result<NonZeroUsize> {
    let count = usize::try_from(count(text)?)?;
    NonZeroUsize::new(count).context("write a number of at least 1")
}

/// The interpretation of a trace's lines that the user chose: as those of a public data set, or, of
/// an SPC trace, as requests or disk blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AsArgument {
    /// The lines of an SPC trace are interpreted in this way.
    Spc(SpcAs),
    /// The lines belong to this public data set.
    DataSet(DataSet),
}

impl Default for AsArgument {
    fn default() -> Self {
        Self::Spc(SpcAs::default())
    }
}

impl FromStr for AsArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Ok(spc_as) = text.parse() {
            return Ok(Self::Spc(spc_as));
        }
        text.parse().map(Self::DataSet).map_err(|_| {
            let sets = DataSet::ALL.map(DataSet::name).join(", ");
            anyhow!(
                "unknown meaning of the trace's lines (known: relstorage and blocks, for SPC \
                 traces; the data sets {sets})"
            )
        })
    }
}

/// Parses the size of blocks that requests of a block trace are divided into.
pub(super) fn block_size(text: &str) -> anyhow::Result<BlockSize> {
    match text.parse()? {
        CapacityArgument::Count(bytes) => Ok(BlockSize::new(bytes)?),
        CapacityArgument::Share(_) => {
            bail!("the size of a block cannot be a percentage; write it in bytes, such as 4KiB")
        }
    }
}

/// The share of a trace's keys that are simulated: all of them, or a sample such as 1 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SampleArgument {
    /// All of them.
    Whole,
    /// A share, above 0 and below 1.
    Share(f64),
    /// A number of keys, which a first pass over the trace chooses.
    Keys(u32),
}

/// The parts of a trace whose hit ratios are printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum WindowsArgument {
    /// This number of parts with equally many requests.
    Equal(NonZeroUsize),
    /// Days, by the times of the requests.
    Days,
}

impl FromStr for WindowsArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.parse() {
            Ok(count) => Ok(Self::Equal(count)),
            Err(_) if text == "days" => Ok(Self::Days),
            Err(_) => bail!("write a number of parts, at least 1, or days"),
        }
    }
}

/// Smallest number of keys of a sample that is stated as such.
const MIN_KEYS: u32 = MIN_SAMPLED_KEYS + 1;

impl FromStr for SampleArgument {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let rate = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
            None => text.parse(),
        };
        match rate {
            Ok(1.0) => Ok(Self::Whole),
            Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(Self::Share(rate)),
            _ => match text.parse::<u32>() {
                Ok(keys) if keys >= MIN_KEYS => Ok(Self::Keys(keys)),
                Ok(keys) if keys > 1 => bail!(
                    "a sample of {keys} keys says nothing: write at least {MIN_KEYS} keys, or a share, such as 0.01 or 1%"
                ),
                _ => bail!(
                    "write the share of keys to sample, above 0, such as 0.01 or 1%, or their number, such as 50000; 1 is the \
                     whole trace"
                ),
            },
        }
    }
}

pub(super) fn warmup(text: &str) -> anyhow::Result<Warmup> {
    Ok(if text.ends_with('%') {
        Warmup::Percent(percent(text)? * 100.0)
    } else {
        match text.parse() {
            Ok(0) => Warmup::None,
            Ok(requests) => Warmup::Requests(requests),
            Err(_) => bail!(
                "write the length of the warm-up as a number of requests, such as 1000, or as a \
                 share of all requests, such as 10%"
            ),
        }
    })
}

/// Parses the lifetime of an entry, such as `30s` or `never`.
pub(super) fn ttl(text: &str) -> anyhow::Result<Ttl> {
    if text == "never" {
        return Ok(Ttl::Never);
    }
    duration(text)
        .map(Ttl::After)
        .map_err(|error| anyhow!("{error}; or write never, for entries that do not expire"))
}

/// Parses a duration above zero with its unit, such as `500ms` or `24h`.
pub(super) fn duration(text: &str) -> anyhow::Result<Duration> {
    match humantime::parse_duration(text) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("write a time above zero with its unit, as in 500ms, 30s, 10m, 24h, 7d"),
    }
}

/// A change to a counter: a number to add or to subtract.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Delta {
    Add(u64),
    Subtract(u64),
}

impl FromStr for Delta {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (digits, delta): (_, fn(u64) -> Self) = match text.strip_prefix('-') {
            Some(digits) => (digits, Self::Subtract),
            None => (text, Self::Add),
        };
        let number = digits.parse().ok().with_context(|| {
            format!("write a whole number up to {}, with a minus sign to subtract", u64::MAX)
        })?;
        Ok(delta(number))
    }
}
