//! Sizes in bytes, as people write them.
//!
//! Published parsers of such sizes accept fractions, spaces and any case, and print rounded
//! numbers. A size in a cache's URL must survive a round trip exactly, so this parser is strict.

use std::fmt;
use std::str::FromStr;

/// The known units.
const UNITS: [(&str, u64); 6] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

/// A number of bytes: `64MiB`, `100KB`, `4096`.
///
/// It prints in the largest unit that yields a whole number, and so always parses back to itself.
///
/// ```
/// use haypile::ByteSize;
///
/// assert_eq!("64MiB".parse::<ByteSize>().unwrap(), ByteSize(64 << 20));
/// assert_eq!(ByteSize(2_000_000).to_string(), "2MB");
/// assert!("64 mb".parse::<ByteSize>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(
    /// The size as a number of bytes.
    pub u64,
);

/// The error of parsing a text as a size in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{text}' is not a size: write a whole number of bytes, at most 18446744073709551615, alone or \
     followed without a space by KiB, MiB, GiB (1024s) or KB, MB, GB (1000s), as in 64MiB"
)]
pub struct SizeError {
    text: String,
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let error = || SizeError { text: text.to_owned() };
        let unit_at = text.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(unit_at);
        let factor = match unit {
            "" => 1,
            unit => UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?.1,
        };
        let number: u64 = digits.parse().map_err(|_| error())?;
        number.checked_mul(factor).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(_, factor): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*factor);
        match UNITS.iter().filter(exact).max_by_key(|(_, factor)| factor) {
            Some((name, factor)) => f.pad(&format!("{}{name}", self.0 / factor)),
            None => f.pad(&self.0.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_are_what_they_say() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("1KiB", 1024),
            ("3MiB", 3 << 20),
            ("2GiB", 2 << 30),
            ("1KB", 1000),
            ("5MB", 5_000_000),
            ("7GB", 7_000_000_000),
        ] {
            assert_eq!(text.parse::<ByteSize>().unwrap(), ByteSize(bytes), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_what_is_allowed() {
        for text in [
            "",
            "MiB",
            "-1",
            "+1",
            "1.5GiB",
            "1 MiB",
            "1mib",
            "1M",
            "1B",
            "1TiB",
            "0x10",
            "1e6",
            "18446744073709551616",
            "18014398509481984KiB",
            "٣",
        ] {
            let message = text.parse::<ByteSize>().unwrap_err().to_string();
            assert!(message.contains("KiB, MiB, GiB"), "{message}");
            assert!(message.contains("KB, MB, GB"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn prints_what_reads_back(bytes in prop_oneof![any::<u64>(), 0..100_000u64]) {
            prop_assert_eq!(ByteSize(bytes).to_string().parse(), Ok(ByteSize(bytes)));
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = text.parse::<ByteSize>();
        }
    }
}
