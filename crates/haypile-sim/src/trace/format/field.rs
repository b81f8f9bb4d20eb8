//! Parsers of numbers, keys and times in text.

use super::super::Key;
use super::bad::Bad;
use super::options::TimeUnit;

/// Parses a decimal number in a trace's text; surrounding blanks and leading zeros are allowed.
pub(super) fn decimal(text: &[u8]) -> Option<u64> {
    digits(text.trim_ascii())
}

/// Parses a decimal number in a trace's text; the error says that `expected` was expected.
pub(super) fn number<'a>(text: &'a [u8], expected: &'static str) -> Result<u64, Bad<'a>> {
    decimal(text).ok_or_else(|| Bad::new(expected, text))
}

/// Decimal digits and nothing else.
fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a hexadecimal number that begins with `0x`, or a decimal number.
pub(super) fn decimal_or_hex(text: &[u8]) -> Option<u64> {
    match text {
        [b'0', b'x' | b'X', hex @ ..] => {
            let hex = str::from_utf8(hex).ok()?;
            // from_str_radix would take a sign.
            if hex.starts_with(['+', '-']) { None } else { u64::from_str_radix(hex, 16).ok() }
        }
        _ => digits(text),
    }
}

/// Parses the text of a trace's key: it becomes a number if it is the normal form of one, so that `7` and `07` stay two
/// keys and every number can be turned back into its text.
pub(super) fn key(text: &[u8]) -> Key<'_> {
    if matches!(text, [b'0', _, ..]) {
        return Key::Text(text);
    }
    digits(text).map_or(Key::Text(text), Key::Number)
}

/// Parses the text of a time (a whole number or a decimal fraction) in the given unit, and returns it in microseconds;
/// smaller fractions are cut off.
pub(super) fn time_us(text: &[u8], unit: TimeUnit) -> Option<u64> {
    match unit {
        TimeUnit::Seconds => shifted(text, 6),
        TimeUnit::Milliseconds => shifted(text, 3),
        TimeUnit::Microseconds => shifted(text, 0),
        TimeUnit::Nanoseconds => shifted(text, -3),
    }
}

/// Parses the text of a time as [`time_us`] does, and returns it in nanoseconds.
pub(super) fn time_ns(text: &[u8], unit: TimeUnit) -> Option<u64> {
    match unit {
        TimeUnit::Seconds => shifted(text, 9),
        TimeUnit::Milliseconds => shifted(text, 6),
        TimeUnit::Microseconds => shifted(text, 3),
        TimeUnit::Nanoseconds => shifted(text, 0),
    }
}

/// Parses a whole number or a decimal fraction, moves its decimal point by some places to the right (or to the left if they are
/// negative), and cuts off what is behind it.
fn shifted(text: &[u8], places: i32) -> Option<u64> {
    let text = text.trim_ascii();
    let point = memchr::memchr(b'.', text);
    let (whole, fraction) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let Some(whole) = digits(whole) else { return scientific(text, places) };
    let kept = usize::try_from(places).unwrap_or(0);
    let mut rest = 0;
    for place in 0..kept.max(fraction.len()) {
        let digit = fraction.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return scientific(text, places);
        }
        if place < kept {
            rest = rest * 10 + u64::from(digit - b'0');
        }
    }
    let power = 10_u64.pow(places.unsigned_abs());
    if places < 0 {
        return Some(whole / power);
    }
    whole.checked_mul(power)?.checked_add(rest)
}

/// Whether a text is a whole number or a decimal fraction, of any size.
pub(super) fn is_fractional(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let points = memchr::memchr_iter(b'.', text).count();
    text.first().is_some_and(u8::is_ascii_digit)
        && points <= 1
        && text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// A number such as `1.5e9`, which spreadsheet programs write, times a power of ten.
fn scientific(text: &[u8], places: i32) -> Option<u64> {
    if !text.first()?.is_ascii_digit() || !text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
        return None;
    }
    let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
    let shifted = number * 10_f64.powi(places);
    // 2^63: everything below it converts.
    if !(0.0..9.223_372_036_854_776e18).contains(&shifted) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range was checked; fractions are cut off by intent"
    )]
    Some(shifted as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal_and_fit() {
        assert_eq!(decimal(b" 007 "), Some(7));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"18446744073709551616", b"-1", b"+1", b"1.0", b"a"] {
            assert_eq!(decimal(bad), None, "{bad:?}");
        }
        assert_eq!(decimal_or_hex(b"0xFf"), Some(255));
        assert_eq!(decimal_or_hex(b"255"), Some(255));
        for bad in [&b"0x"[..], b"0x+1", b"ff", b"0x10000000000000000", b"0x\xff"] {
            assert_eq!(decimal_or_hex(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn only_canonical_numbers_are_number_keys() {
        assert_eq!(key(b"0"), Key::Number(0));
        assert_eq!(key(b"42"), Key::Number(42));
        for text in [&b"042"[..], b"00", b"-1", b"1e3", b"18446744073709551616", b"/a", b""] {
            assert_eq!(key(text), Key::Text(text));
        }
    }

    #[test]
    fn times_are_cut_to_microseconds() {
        use TimeUnit::{Microseconds, Milliseconds, Nanoseconds, Seconds};
        for (text, unit, us) in [
            ("0.551706", Seconds, Some(551_706)),
            ("12", Seconds, Some(12_000_000)),
            ("1.", Seconds, Some(1_000_000)),
            ("1.00000099", Seconds, Some(1_000_000)),
            ("1.5e3", Seconds, Some(1_500_000_000)),
            ("2.0005", Milliseconds, Some(2_000)),
            ("2.5", Milliseconds, Some(2_500)),
            ("7.9", Microseconds, Some(7)),
            ("1999", Nanoseconds, Some(1)),
            ("18446744073709551615", Nanoseconds, Some(18_446_744_073_709_551)),
            ("18446744073709551615", Seconds, None),
            ("1e300", Seconds, None),
            ("-1", Seconds, None),
            ("", Seconds, None),
            (".", Seconds, None),
            ("nan", Seconds, None),
            ("1.2.3", Seconds, None),
            ("1.x", Microseconds, None),
        ] {
            assert_eq!(time_us(text.as_bytes(), unit), us, "{text}");
        }
        for (text, unit, ns) in [
            ("0.0521", Seconds, Some(52_100_000)),
            ("1.0000000019", Seconds, Some(1_000_000_001)),
            ("2.5", Milliseconds, Some(2_500_000)),
            ("7.9", Microseconds, Some(7_900)),
            ("42.9", Nanoseconds, Some(42)),
            ("1.5e-3", Seconds, Some(1_500_000)),
            ("18446744074", Seconds, None),
            ("-1", Milliseconds, None),
        ] {
            assert_eq!(time_ns(text.as_bytes(), unit), ns, "{text}");
        }
    }
}
