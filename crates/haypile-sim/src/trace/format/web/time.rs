//! Parsers of times as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

use super::super::bad::Bad;

/// Below this, a number counts seconds; below a thousand times that, milliseconds, and so on: each stands for times until the year 5138.
const MOST_SECONDS: u128 = 100_000_000_000;

/// A parser of the times in a log, such as `10/Oct/2000:13:55:36 -0700`. It remembers the last time, because
/// consecutive lines often have the same second.
#[derive(Debug, Default)]
pub(super) struct CommonLog {
    last: Option<(Vec<u8>, u64)>,
}

impl CommonLog {
    pub(super) fn time_us<'a>(&mut self, text: &'a [u8]) -> Result<u64, Bad<'a>> {
        if let Some((last, time_us)) = &self.last
            && last == text
        {
            return Ok(*time_us);
        }
        let time_us = common_log(text).ok_or_else(|| {
            Bad::new("a time like 10/Oct/2000:13:55:36 -0700, from 1970 on", text)
        })?;
        self.last = Some((text.to_vec(), time_us));
        Ok(time_us)
    }
}

fn common_log(text: &[u8]) -> Option<u64> {
    let parts = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
    microseconds(parts.to_timestamp().ok()?)
}

/// Parses a time such as `25/Sep/2018:06:05:27.584`, taken for UTC, and returns it in microseconds since 1970.
pub(super) fn without_zone(text: &[u8]) -> Option<u64> {
    let parts = strtime::parse("%d/%b/%Y:%H:%M:%S%.f", text).ok()?;
    in_utc(parts.to_datetime().ok()?)
}

/// Parses a time such as `20160201164604`, taken for UTC, and returns it in microseconds since 1970.
pub(in crate::trace::format) fn compact_time(text: &[u8]) -> Option<u64> {
    if text.len() != 14 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    in_utc(strtime::parse("%Y%m%d%H%M%S", text).ok()?.to_datetime().ok()?)
}

/// Parses a UTC date such as `2014-05-23` and a time such as `01:13:11`, and returns them in microseconds since 1970.
pub(super) fn of_day(date: &[u8], time: &[u8]) -> Option<u64> {
    let text = [date, b"T", time].concat();
    in_utc(str::from_utf8(&text).ok()?.parse().ok()?)
}

/// Parses a time in any form that logs use, and returns it in microseconds since 1970. The forms are RFC 3339, that of
/// the common log format, and numbers since 1970 in seconds, milliseconds, microseconds or nanoseconds, according to
/// their size.
pub(super) fn any(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.first()?.is_ascii_digit()
        && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    {
        return number(text);
    }
    common_log(text).or_else(|| {
        let text = str::from_utf8(text).ok()?;
        let time = text.parse::<Timestamp>().ok().and_then(microseconds);
        time.or_else(|| in_utc(text.parse().ok()?))
    })
}

/// Reads a number since 1970.
fn number(text: &[u8]) -> Option<u64> {
    let mut parts = str::from_utf8(text).ok()?.splitn(2, '.');
    let whole: u128 = parts.next()?.parse().ok()?;
    let fraction = parts.next().unwrap_or("");
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // In billionths of the unit.
    let billionths: u128 = format!("{fraction:0<9}")[..9].parse().ok()?;
    let unit_ns: u128 = match whole {
        0..MOST_SECONDS => 1_000_000_000,
        _ if whole / 1_000 < MOST_SECONDS => 1_000_000,
        _ if whole / 1_000_000 < MOST_SECONDS => 1_000,
        _ => 1,
    };
    let time_ns = whole.checked_mul(unit_ns)? + billionths * unit_ns / 1_000_000_000;
    u64::try_from(time_ns / 1_000).ok()
}

fn in_utc(time: DateTime) -> Option<u64> {
    microseconds(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn microseconds(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_microsecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_instant_in_many_ways() {
        for text in [
            "1703373474.8155608",
            "1703373474815.5608",
            "1703373474815560",
            "1703373474815560800",
            "2023-12-23T23:17:54.8155608Z",
            "2023-12-24T00:17:54.8155608+01:00",
            "2023-12-23 23:17:54.815560",
        ] {
            assert_eq!(any(text.as_bytes()), Some(1_703_373_474_815_560), "{text}");
        }
        let second = Some(1_703_373_474_000_000);
        assert_eq!(any(b"23/Dec/2023:15:17:54 -0800"), second);
        assert_eq!(of_day(b"2023-12-23", b"23:17:54"), second);
        assert_eq!(without_zone(b"23/Dec/2023:23:17:54.8"), Some(1_703_373_474_800_000));
        for text in [
            "",
            "-",
            "-1",
            "1.2.3",
            "1969-12-31T23:59:59Z",
            "yesterday",
            "99999999999999999999999999999999999999999",
        ] {
            assert_eq!(any(text.as_bytes()), None, "{text}");
        }
    }
}
