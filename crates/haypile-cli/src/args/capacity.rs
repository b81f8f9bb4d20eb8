//! Sizes of caches as people write them: `64MiB`, `1.5GB`, `2TB`, `10%` of a working set.

use std::fmt;
use std::str::FromStr;

/// The units of sizes by their names, in any case.
const UNITS: [(&str, u64); 9] = [
    ("", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// A size of a simulated cache as the user wrote it: in bytes or objects, or as a share of the trace's working set (all its
/// entries).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CapacityArgument {
    /// A number of bytes, or of objects, as the option says.
    Count(u64),
    /// A part of the working set, from above 0 to 1.
    Share(f64),
}

/// The error of a text that is not a cache size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CapacityError {
    text: String,
    meant: Option<String>,
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a size: write at least 1 byte, such as 64MiB or 1.5GiB (KiB to TiB are \
             powers of 1024), 100MB or 2TB (KB to TB of 1000), or a share of the working set, such \
             as 10%",
            self.text
        )?;
        self.meant.as_ref().map_or(Ok(()), |meant| write!(f, "; did you mean {meant}?"))
    }
}

impl std::error::Error for CapacityError {}

impl CapacityArgument {
    /// Whether the size is a share of the working set.
    pub(crate) fn is_share(self) -> bool {
        matches!(self, Self::Share(_))
    }

    /// Returns this size of a simulated cache in bytes or entries; `all` is the working set of the
    /// trace, 100 %.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share need not be exact to the byte"
    )]
    pub(crate) fn of(self, all: u64) -> u64 {
        match self {
            Self::Count(bytes) => bytes,
            Self::Share(share) => ((all as f64 * share) as u64).max(1),
        }
    }
}

impl FromStr for CapacityArgument {
    type Err = CapacityError;

    fn from_str(text: &str) -> Result<Self, CapacityError> {
        let error = |meant| CapacityError { text: text.to_owned(), meant };
        let end = text.find(|it: char| !it.is_ascii_digit() && it != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let is_number =
            number.starts_with(|it: char| it.is_ascii_digit()) && !number.ends_with('.');
        let parsed = number.parse::<f64>().ok().filter(|_| is_number).ok_or_else(|| error(None))?;
        if unit == "%" {
            let is_share = parsed > 0.0 && parsed <= 100.0;
            return is_share.then_some(Self::Share(parsed / 100.0)).ok_or_else(|| error(None));
        }
        let name = unit.to_ascii_lowercase();
        let factor = UNITS.iter().find(|(other, _)| *other == name).map(|(_, factor)| *factor);
        let Some(factor) = factor else {
            // 64M is 1000 or 1024 of something, and 64Mi is unfinished.
            let first = unit.chars().next().filter(|first| "kmgtKMGT".contains(*first));
            let meant = first.filter(|_| unit.len() <= 2).map(|first| {
                let first = first.to_ascii_uppercase();
                format!("{number}{first}iB or {number}{first}B")
            });
            return Err(error(meant));
        };
        let whole = number.parse::<u64>().ok().map(|whole| whole.checked_mul(factor));
        let bytes = match whole {
            Some(bytes) => bytes,
            None if factor == 1 => None,
            None => fraction(parsed, factor),
        };
        bytes.filter(|bytes| *bytes > 0).map(Self::Count).ok_or_else(|| error(None))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "who writes a fraction of a unit need not have it to the byte"
)]
fn fraction(number: f64, factor: u64) -> Option<u64> {
    let bytes = number * factor as f64;
    (bytes < u64::MAX as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_people_mean() {
        for (text, bytes) in [
            ("4096", 4096),
            ("64MiB", 64 << 20),
            ("1.5GB", 1_500_000_000),
            ("2TB", 2_000_000_000_000),
            ("2tib", 2 << 40),
            ("0.5KiB", 512),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(CapacityArgument::Count(bytes)), "{text}");
        }
        assert_eq!("10%".parse(), Ok(CapacityArgument::Share(0.1)));
        assert_eq!(CapacityArgument::Share(0.125).of(1000), 125);
        assert_eq!(CapacityArgument::Share(0.001).of(10), 1);
    }

    #[test]
    fn what_is_no_size_says_what_is() {
        for text in [
            "",
            "MiB",
            "1.",
            ".5MiB",
            "1.5",
            "-1",
            "1 MiB",
            "0%",
            "101%",
            "1e6",
            "20000000TiB",
            "٣",
        ] {
            let error = text.parse::<CapacityArgument>().unwrap_err().to_string();
            assert!(error.contains("64MiB"), "{error}");
        }
        let error = "64M".parse::<CapacityArgument>().unwrap_err().to_string();
        assert!(error.ends_with("did you mean 64MiB or 64MB?"), "{error}");
    }
}
