//! Times and durations in fields.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The longest duration in a header field; longer ones count as this one (RFC 9111, section 1.2.2).
pub(super) const LONGEST: Duration = Duration::from_secs(1 << 31);

/// Parses a number of seconds in a header field, at most [`LONGEST`]; `None` if it is not a number.
pub(super) fn seconds(digits: &[u8]) -> Option<Duration> {
    if digits.is_empty() {
        return None;
    }
    let seconds = digits.iter().try_fold(0_u64, |seconds, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        Some((seconds * 10 + digit).min(LONGEST.as_secs()))
    })?;
    Some(Duration::from_secs(seconds))
}

/// Parses the date in a header field that may occur once (RFC 9110, section 5.6.7), letters in any
/// case.
///
/// # Errors
///
/// `Err` for a field that is there and not a date, or several times.
pub(super) fn date(headers: &HeaderMap, name: &HeaderName) -> Result<Option<SystemTime>, Invalid> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(line), None) => parse_date(line).map(Some).ok_or(Invalid),
        (Some(_), Some(_)) => Err(Invalid),
    }
}

/// The error of a header field that is present and cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invalid;

fn parse_date(value: &HeaderValue) -> Option<SystemTime> {
    let text = value.to_str().ok()?.trim_ascii();
    // Nearly all are of this form.
    if let Ok(date) = httpdate::parse_http_date(text) {
        return Some(date);
    }
    let mut is_first = true;
    let canonical: String = text
        .chars()
        .map(|letter| {
            let upper = std::mem::replace(&mut is_first, !letter.is_ascii_alphabetic());
            if upper { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
        })
        .collect();
    httpdate::parse_http_date(&canonical.replace(" Gmt", " GMT")).ok()
}

/// Returns the time from `earlier` to `later`; zero if it is negative, because clocks step back.
pub(super) fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::header::EXPIRES;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_seconds() {
        for (digits, expected) in [
            ("0", Some(0)),
            ("003600", Some(3600)),
            ("2147483647", Some(2_147_483_647)),
            ("2147483648", Some(1 << 31)),
            ("99999999999999999999999999", Some(1 << 31)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.0", None),
            ("1a", None),
            ("'1'", None),
            (" 1", None),
        ] {
            assert_eq!(seconds(digits.as_bytes()), expected.map(Duration::from_secs), "{digits}");
        }
    }

    #[test]
    fn dates() {
        let expected = UNIX_EPOCH + Duration::from_secs(2_544_400_878);
        for (text, is_date) in [
            ("Thu, 18 Aug 2050 02:01:18 GMT", true),
            ("THU, 18 Aug 2050 02:01:18 GMT", true),
            ("Thu, 18 AUG 2050 02:01:18 GMT", true),
            ("thu, 18 aug 2050 02:01:18 gMT", true),
            ("Thursday, 18-Aug-50 02:01:18 GMT", true),
            ("Thu Aug 18 02:01:18 2050", true),
            ("Thu, 18 Aug 2050 02:01:18 UTC", false),
            ("Thu, 18 Aug 2050 02:01:18 AEST", false),
            ("Thu, 18 Aug 50 02:01:18 GMT", false),
            ("Thu 18 Aug 2050 02:01:18 GMT", false),
            ("Thu, 18  Aug  2050 02:01:18 GMT", false),
            ("Thu, 18-Aug-2050 02:01:18 GMT", false),
            ("Thu, 18 Aug 2050 02.01.18 GMT", false),
            ("Thu, 18 Aug 2050 2:01:18 GMT", false),
            ("Thu, 30 Feb 2050 02:01:18 GMT", false),
            ("0", false),
            ("", false),
        ] {
            let found = parse_date(&HeaderValue::from_str(text).expect("a value"));
            assert_eq!(found, is_date.then_some(expected), "{text}");
        }
    }

    #[test]
    fn a_date_that_stands_twice_is_invalid() {
        let mut headers = HeaderMap::new();
        assert_eq!(date(&headers, &EXPIRES), Ok(None));
        for expected in [Ok(Some(UNIX_EPOCH)), Err(Invalid)] {
            headers.append(EXPIRES, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
            assert_eq!(date(&headers, &EXPIRES), expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[ -~]{0,40}", digits in "[0-9]{0,30}") {
            if let Ok(value) = HeaderValue::from_str(&text) {
                let _ = parse_date(&value);
            }
            prop_assert_eq!(seconds(digits.as_bytes()).is_some(), !digits.is_empty());
        }
    }
}
