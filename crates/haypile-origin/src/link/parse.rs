//! The text form of links.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::profile::LinkProfile;

/// The error of a text that does not describe a network link, or of a link's property that is out
/// of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkProfileError {
    /// A name that no profile has.
    #[error(
        "unknown link '{0}' (known: {known}, or properties such as 'down=1.6Mbit/s,up=768kbit/s,\
         rtt=150ms,jitter=20ms,loss=1%')",
        known = LinkProfile::NAMES.join(", ")
    )]
    UnknownName(String),
    /// A property that no link has.
    #[error("unknown property '{0}' of a link (known: down, up, rtt, jitter, loss)")]
    UnknownProperty(String),
    /// A property that is there twice.
    #[error("the link has '{0}' twice; name each property once")]
    Twice(String),
    /// A rate that cannot be read or is out of its range.
    #[error(
        "the rate '{0}' of the link is not 'unlimited' or a number of bit/s, kbit/s, Mbit/s or \
         Gbit/s, from 1bit/s to 1000Gbit/s"
    )]
    Rate(&'static str),
    /// A round trip that cannot be read or is out of its range.
    #[error("'rtt' of the link is not a number of us, ms or s, at most 60s")]
    RoundTrip,
    /// A jitter that cannot be read or is out of its range.
    #[error("'jitter' of the link is not a number of us, ms or s, at most 'rtt'")]
    Jitter,
    /// A loss that cannot be read or is out of its range.
    #[error("'loss' of the link is not a number with % and at most 6 decimals, from 0% to 50%")]
    Loss,
}

/// Units of rates, with the power of ten that they are in bits per second, the largest first.
const RATES: [(&str, u32); 4] = [("Gbit/s", 9), ("Mbit/s", 6), ("kbit/s", 3), ("bit/s", 0)];
/// Units of times, with the power of ten that they are in nanoseconds.
const TIMES: [(&str, u32); 3] = [("ms", 6), ("us", 3), ("s", 9)];
/// The power of ten of one per cent in units of a loss.
const PER_CENT: u32 = 6;

impl FromStr for LinkProfile {
    type Err = LinkProfileError;

    fn from_str(text: &str) -> Result<Self, LinkProfileError> {
        let mut profile = Self::unshaped();
        let mut seen = Vec::new();
        for (place, part) in text.split(',').map(str::trim).enumerate() {
            let Some((key, value)) = part.split_once('=') else {
                if place > 0 {
                    return Err(LinkProfileError::UnknownProperty(part.to_owned()));
                }
                let named = Self::named(part);
                profile = named.ok_or_else(|| LinkProfileError::UnknownName(part.to_owned()))?;
                continue;
            };
            if seen.contains(&key) {
                return Err(LinkProfileError::Twice(key.to_owned()));
            }
            seen.push(key);
            match key {
                "down" => profile.down_bits_per_second = rate("down", value)?,
                "up" => profile.up_bits_per_second = rate("up", value)?,
                "rtt" => profile.round_trip = time(value).ok_or(LinkProfileError::RoundTrip)?,
                "jitter" => profile.jitter = time(value).ok_or(LinkProfileError::Jitter)?,
                "loss" => profile.loss = loss(value).ok_or(LinkProfileError::Loss)?,
                _ => return Err(LinkProfileError::UnknownProperty(key.to_owned())),
            }
        }
        profile.check()?;
        if !seen.is_empty() {
            profile.name = Properties(&profile).to_string();
        }
        Ok(profile)
    }
}

/// Writes the name of a profile that has one, or else the properties. The text is read as the same
/// link if its loss has no more than 6 decimals of a per cent.
impl fmt::Display for LinkProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if Self::named(&self.name).as_ref() == Some(self) {
            return f.pad(&self.name);
        }
        f.pad(&Properties(self).to_string())
    }
}

struct Properties<'a>(&'a LinkProfile);

impl fmt::Display for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let profile = self.0;
        let down = rate_text(profile.down_bits_per_second);
        write!(f, "down={down},up={}", rate_text(profile.up_bits_per_second))?;
        write!(f, ",rtt={}", time_text(profile.round_trip))?;
        if !profile.jitter.is_zero() {
            write!(f, ",jitter={}", time_text(profile.jitter))?;
        }
        if profile.loss > 0.0 {
            let per_cent = format!("{:.6}", profile.loss * 100.0);
            write!(f, ",loss={}%", per_cent.trim_end_matches('0').trim_end_matches('.'))?;
        }
        Ok(())
    }
}

fn rate(key: &'static str, text: &str) -> Result<Option<u64>, LinkProfileError> {
    if text == "unlimited" {
        return Ok(None);
    }
    with_unit(text, &RATES).map(Some).ok_or(LinkProfileError::Rate(key))
}

fn time(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    with_unit(text, &TIMES).map(Duration::from_nanos)
}

fn loss(text: &str) -> Option<f64> {
    let millionths = with_unit(text, &[("%", PER_CENT)])?;
    Some(f64::from(u32::try_from(millionths).ok()?) / 1e8)
}

fn with_unit(text: &str, units: &[(&str, u32)]) -> Option<u64> {
    let number = |(unit, power): &(&str, u32)| {
        let number = text.strip_suffix(unit)?;
        decimal(number, *power)
    };
    units.iter().find_map(number)
}

/// Returns a decimal number times a power of ten, if that is a whole number.
fn decimal(text: &str, power: u32) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let decimals = u32::try_from(fraction.len()).ok()?;
    let rest = 10_u64.checked_pow(power.checked_sub(decimals)?)?;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    digits.checked_mul(rest)
}

fn rate_text(rate: Option<u64>) -> String {
    let Some(rate) = rate else { return "unlimited".to_owned() };
    let fits = |(_, power): &&(&str, u32)| rate >= 10_u64.pow(*power);
    let (unit, power) = RATES.iter().find(fits).unwrap_or(&("bit/s", 0));
    decimal_text(u128::from(rate), *power) + unit
}

fn time_text(time: Duration) -> String {
    decimal_text(time.as_nanos(), 6) + "ms"
}

/// Returns a number divided by a power of ten, with the decimals that it needs.
fn decimal_text(number: u128, power: u32) -> String {
    let (whole, rest) = (number / 10_u128.pow(power), number % 10_u128.pow(power));
    if rest == 0 {
        return whole.to_string();
    }
    let width = usize::try_from(power).expect("a power of ten is small");
    let decimals = format!("{rest:0width$}");
    format!("{whole}.{}", decimals.trim_end_matches('0'))
}
