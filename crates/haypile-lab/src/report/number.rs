//! Numbers as the report writes them.

use haypile_sim::plot::axis;

/// Keeps a number and its unit on one line.
pub(crate) const NBSP: char = '\u{A0}';

/// The kind of a value, which decides how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// Something per second.
    Rate,
    /// A time in nanoseconds.
    Time,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A count.
    Count,
    /// Memory, or the size of a file.
    Bytes,
}

impl Quantity {
    /// About three digits and the unit.
    pub(crate) fn write(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", scaled(value, &["", "k", "M", "G", "T"], three_digits)),
            Self::Time => time(value, three_digits),
            Self::Share => share(value),
            Self::Count => three_digits(value),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "bytes below 2^53, for people"
            )]
            Self::Bytes => bytes(value as u64),
        }
    }

    /// The same for a round value at an axis: no digit that says nothing.
    pub(crate) fn write_round(self, value: f64) -> String {
        match self {
            Self::Rate => scaled(value, &["", "k", "M", "G", "T"], shortest),
            Self::Time => time(value, shortest),
            Self::Count => scaled(value, &["", "k", "M", "G", "T"], shortest).replace(NBSP, ""),
            Self::Share => axis::percent(value),
            Self::Bytes => self.write(value),
        }
    }
}

/// A size as people write it, in powers of two.
pub(crate) fn bytes(bytes: u64) -> String {
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][power as usize];
    let value = bytes as f64 / 1024_f64.powi(power.cast_signed());
    format!("{}{NBSP}{unit}", shortest(value))
}

/// A change of cost as a factor: `1.25` is a quarter more.
pub(crate) fn factor(value: f64) -> String {
    if value.is_finite() { three_digits(value) } else { "∞".to_owned() }
}

fn share(value: f64) -> String {
    let percent = value * 100.0;
    let decimals = if percent > 0.0 && percent < 0.95 { 2 } else { 1 };
    format!("{percent:.decimals$}{NBSP}%")
}

fn time(ns: f64, digits: fn(f64) -> String) -> String {
    let (value, unit) = match ns {
        ..999.5 => (ns, "ns"),
        999.5..999_500.0 => (ns / 1e3, "µs"),
        999_500.0..999_500_000.0 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{}{NBSP}{unit}", digits(value))
}

fn scaled(value: f64, units: &[&str], digits: fn(f64) -> String) -> String {
    let mut value = value;
    let mut at = 0;
    while value >= 999.5 && at + 1 < units.len() {
        value /= 1e3;
        at += 1;
    }
    format!("{}{NBSP}{}", digits(value), units[at]).trim_end_matches(NBSP).to_owned()
}

fn three_digits(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The same without zeros at the end.
fn shortest(value: f64) -> String {
    let digits = three_digits(value);
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        digits
    }
}

/// The text, with its end left out if it has more characters than this.
pub(crate) fn bounded(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// `one`, or how many of them: `3 blocks`.
pub(crate) fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1{NBSP}{one}") } else { format!("{number}{NBSP}{one}s") }
}

/// Words with commas and an `and`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [words @ .., last] => format!("{} and {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits_and_a_unit() {
        for (quantity, value, text) in [
            (Quantity::Rate, 12_345_678.0, "12.3\u{A0}M/s"),
            (Quantity::Rate, 980.0, "980/s"),
            (Quantity::Rate, 999_700.0, "1.00\u{A0}M/s"),
            (Quantity::Time, 95.13, "95.1\u{A0}ns"),
            (Quantity::Time, 999.6, "1.00\u{A0}µs"),
            (Quantity::Time, 2_345_678.0, "2.35\u{A0}ms"),
            (Quantity::Time, 12e9, "12.0\u{A0}s"),
            (Quantity::Share, 0.6831, "68.3\u{A0}%"),
            (Quantity::Share, 1.0, "100.0\u{A0}%"),
            (Quantity::Share, 0.0034, "0.34\u{A0}%"),
            (Quantity::Bytes, 539_927_761.0, "515\u{A0}MiB"),
            (Quantity::Bytes, 262_144.0, "256\u{A0}KiB"),
            (Quantity::Bytes, 1_392_640.0, "1.33\u{A0}MiB"),
            (Quantity::Bytes, 50.0, "50\u{A0}B"),
            (Quantity::Count, 1.0, "1.00"),
        ] {
            assert_eq!(quantity.write(value), text);
        }
        assert_eq!(Quantity::Rate.write_round(20e6), "20\u{A0}M");
        assert_eq!(Quantity::Time.write_round(0.5), "0.5\u{A0}ns");
        assert_eq!(Quantity::Time.write_round(100.0), "100\u{A0}ns");
        assert_eq!(Quantity::Count.write_round(0.0), "0");
        assert_eq!(factor(f64::INFINITY), "∞");
    }

    #[test]
    fn words_are_joined() {
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&words), "a, b and c");
        assert_eq!(list(&words[..1]), "a");
        assert_eq!(
            (count(1, "block"), count(2, "block")),
            ("1\u{A0}block".into(), "2\u{A0}blocks".into())
        );
    }
}
