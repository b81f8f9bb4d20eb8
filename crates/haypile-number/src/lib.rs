//! Ratios of counts, numbers for people, and random numbers that are the same everywhere.

pub mod quantity;
pub mod splitmix;

pub use quantity::{NBSP, Quantity, with_plain_spaces};

/// Returns the ratio of two counts, `part` divided by `whole`; 0 if the whole is 0.
pub fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Formats a number with its digits in groups of three: `1,234,567`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of bytes as text, rounded to one decimal in powers of two: `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    bytesize::ByteSize(bytes).display().iec().to_string()
}

/// Formats a share (from 0 to 1) as a percentage with one decimal: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Tenths of a unit from 1.0 to 1,023.9, the last that is printed in it.
const TENTHS: u64 = 10 * 1024 - 10;

/// Returns the position of a size, rounded down, in the ascending list of all sizes that [`bytes`] can print. Below 1
/// KiB every number of bytes has a position.
pub fn printed_place(size: u64) -> u64 {
    let power = u64::from(size.checked_ilog2().unwrap_or(0) / 10);
    if power == 0 {
        return size;
    }
    let unit = 1_u128 << (10 * power);
    // The largest number of tenths whose bytes, without a fraction, are not above the size.
    let tenths = u64::try_from((u128::from(size) * 10 + 9) / unit).unwrap_or(u64::MAX);
    1024 + (power - 1) * TENTHS + tenths.min(TENTHS + 9) - 10
}

/// Returns the size in bytes at a position in the ascending list of all sizes that [`bytes`] can print, as programs
/// parse the printed text.
pub fn printed_size(place: u64) -> u64 {
    if place < 1024 {
        return place;
    }
    let (power, tenths) = ((place - 1024) / TENTHS + 1, (place - 1024) % TENTHS + 10);
    let size = (1_u128 << (10 * power)) * u128::from(tenths) / 10;
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Rounds down to a size that [`bytes`] prints without an error.
    fn printed_bytes(size: u64) -> u64 {
        printed_size(printed_place(size))
    }

    /// The size of a printed one, as a person would compute it.
    fn read(text: &str) -> f64 {
        let (number, unit) = text.split_once(' ').unwrap();
        let power =
            ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].iter().position(|it| *it == unit);
        number.parse::<f64>().unwrap() * 1024_f64.powi(i32::try_from(power.unwrap()).unwrap())
    }

    proptest! {
        #[test]
        fn a_printed_size_is_what_it_says(size in prop_oneof![1_u64..3 << 20, 1_u64..1 << 50]) {
            let printed = printed_bytes(size);
            prop_assert!(printed <= size && printed_size(printed_place(size) + 1) > size);
            prop_assert_eq!(printed_bytes(printed), printed);
            let off = read(&bytes(printed)) - printed as f64;
            prop_assert!((0.0..1.0).contains(&off), "{} for {printed}", bytes(printed));
        }
    }

    #[test]
    fn places_follow_each_other() {
        for place in 0..40_000 {
            let size = printed_size(place);
            assert_eq!(printed_place(size), place);
            assert!(size < printed_size(place + 1));
        }
        assert_eq!([0, 1, 1023, 1024].map(printed_bytes), [0, 1, 1023, 1024]);
        assert_eq!(printed_bytes(12_593_324), 12 << 20);
    }
}
