//! Parsers of option values. Their errors name the values allowed.

use std::time::Duration;

use anyhow::{Context, bail};
use haypile::ByteSize;

/// Parses the size of a cache in bytes, which is above 0.
///
/// # Errors
///
/// The text is not such a size.
pub fn size(text: &str) -> anyhow::Result<ByteSize> {
    match text.parse()? {
        ByteSize(0) => bail!("write a size of at least 1 byte"),
        size => Ok(size),
    }
}

/// Parses a whole number of at least 1, such as the number of blocks.
///
/// # Errors
///
/// The text is not such a number.
pub fn count(text: &str) -> anyhow::Result<u64> {
    match text.parse() {
        Ok(0) => bail!("write a number of at least 1"),
        Ok(count) => Ok(count),
        Err(_) => bail!("write a whole number in digits, from 1 to {}", u64::MAX),
    }
}

/// Parses a percentage from 0 to 100, and returns it as a share from 0 to 1.
///
/// # Errors
///
/// The text is not such a percentage.
pub fn percent(text: &str) -> anyhow::Result<f64> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let number: f64 = number.parse().ok().context("write a percentage, such as 10 or 2.5")?;
    if !(0.0..=100.0).contains(&number) {
        bail!("write a percentage from 0 to 100");
    }
    Ok(number / 100.0)
}

/// Parses a number of seconds above 0, which may have a fraction, as a duration.
///
/// # Errors
///
/// The text is not such a number.
pub fn seconds(text: &str) -> anyhow::Result<Duration> {
    let seconds = text.parse().ok().context("write a number of seconds, such as 60 or 0.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("write a time above 0 and up to 10^19 seconds"),
    }
}
