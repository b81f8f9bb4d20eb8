//! Kinds of quantities, and the one rounding that all texts for people share.

/// The no-break space, which keeps a number and its unit on one line.
pub const NBSP: char = '\u{A0}';

/// Prefixes of multiples of a thousand.
const THOUSANDS: [&str; 5] = ["", "k", "M", "G", "T"];

/// A kind of quantity (time, size, ratio and so on), which decides how its values are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number of things per second.
    Rate,
    /// A time in nanoseconds.
    Time,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A ratio of hits to reads, which the literature writes with three decimals.
    HitRatio,
    /// The multiple of something.
    Factor,
    /// A mean of counts.
    Count,
    /// A count of things, which is exact.
    Number,
    /// Memory, or the size of a file.
    Bytes,
}

impl Quantity {
    /// Formats a value of this kind of quantity (a time, a size and so on) as text with about three digits and its
    /// unit, joined by a [`NBSP`].
    pub fn write(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{}/s", scaled(value, three_digits)),
            Self::Time => time(value, three_digits),
            Self::Share => share(value),
            Self::HitRatio => format!("{value:.3}"),
            Self::Factor if value.is_infinite() => "∞".to_owned(),
            Self::Factor | Self::Count => three_digits(value),
            Self::Number => crate::grouped(whole(value)),
            Self::Bytes => bytes(whole(value)),
        }
    }

    /// Formats the difference of two values of this kind of quantity as text with its sign and unit, such as `+1.20
    /// ms`.
    pub fn write_signed(self, value: f64) -> String {
        let sign = match value {
            ..0.0 => "-",
            0.0 => "",
            _ => "+",
        };
        format!("{sign}{}", self.write(value.abs()))
    }

    /// Formats the two ends of an interval, such as a confidence interval, as text: `0.98 to 1.02`.
    pub fn write_range(self, low: f64, high: f64) -> String {
        format!("{} to {}", self.write(low), self.write(high))
    }

    /// Formats a round value of this kind of quantity as text for the axis of a chart, without superfluous digits: `5
    /// ms`.
    pub fn write_round(self, value: f64) -> String {
        match self {
            Self::Rate => scaled(value, shortest),
            Self::Time => time(value, shortest),
            Self::Count | Self::Number | Self::Factor => scaled(value, shortest).replace(NBSP, ""),
            Self::Share | Self::HitRatio => percent(value),
            Self::Bytes => self.write(value),
        }
    }
}

/// Replaces the no-break spaces of a text by plain ones, so that it can be searched and copied.
pub fn with_plain_spaces(text: &str) -> String {
    text.replace(NBSP, " ")
}

/// Formats a number of bytes as text in powers of two, with about three digits: `1.33 MiB`.
pub fn bytes(bytes: u64) -> String {
    let power = bytes.checked_ilog2().unwrap_or(0) / 10;
    let unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][power as usize];
    let value = bytes as f64 / 1024_f64.powi(power.cast_signed());
    format!("{}{NBSP}{unit}", shortest(value))
}

/// Formats a ratio as a percentage in text, with about three digits and no zeros at the end.
pub fn percent(ratio: f64) -> String {
    let percent = ratio * 100.0;
    let decimals = if percent >= 10.0 { 1 } else { 4 };
    format!("{}{NBSP}%", without_zeros(&format!("{percent:.decimals$}")))
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

fn scaled(value: f64, digits: fn(f64) -> String) -> String {
    let mut value = value;
    let mut at = 0;
    while value >= 999.5 && at + 1 < THOUSANDS.len() {
        value /= 1e3;
        at += 1;
    }
    format!("{}{NBSP}{}", digits(value), THOUSANDS[at]).trim_end_matches(NBSP).to_owned()
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
    without_zeros(&three_digits(value)).to_owned()
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts below 2^53, for people"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
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
            (Quantity::HitRatio, 0.6831, "0.683"),
            (Quantity::Bytes, 539_927_761.0, "515\u{A0}MiB"),
            (Quantity::Bytes, 262_144.0, "256\u{A0}KiB"),
            (Quantity::Bytes, 1_392_640.0, "1.33\u{A0}MiB"),
            (Quantity::Bytes, 50.0, "50\u{A0}B"),
            (Quantity::Count, 1.0, "1.00"),
            (Quantity::Number, 1234.0, "1,234"),
            (Quantity::Factor, f64::INFINITY, "∞"),
        ] {
            assert_eq!(quantity.write(value), text);
        }
        assert_eq!(Quantity::Time.write_signed(1_200_000.0), "+1.20\u{A0}ms");
        assert_eq!(Quantity::Time.write_signed(-30_004_000.0), "-30.0\u{A0}ms");
        assert_eq!(Quantity::Time.write_signed(0.0), "0.00\u{A0}ns");
        assert_eq!(Quantity::Rate.write_round(20e6), "20\u{A0}M");
        assert_eq!(Quantity::Time.write_round(0.5), "0.5\u{A0}ns");
        assert_eq!(Quantity::Time.write_round(100.0), "100\u{A0}ns");
        assert_eq!(Quantity::Count.write_round(0.0), "0");
        assert_eq!(Quantity::Share.write_round(0.05), "5\u{A0}%");
    }
}
