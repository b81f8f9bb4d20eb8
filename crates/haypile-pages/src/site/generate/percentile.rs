//! Percentiles of HTTP Archive's pages.

use std::fmt;
use std::str::FromStr;

/// A kilobyte in HTTP Archive's statistics of page weights, in bytes.
pub(super) const KB: u64 = 1024;

/// A percentile of web pages by number of requests and page weight, as HTTP Archive publishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Percentile {
    /// The 10th percentile: 24 requests, 607 KB.
    P10,
    /// The 25th percentile: 42 requests, 1,275 KB.
    #[default]
    P25,
    /// The median: 71 requests, 2,412 KB.
    P50,
    /// The 75th percentile: 115 requests, 4,570 KB.
    P75,
    /// The 90th percentile: 176 requests, 9,179 KB.
    P90,
}

impl Percentile {
    /// All percentiles of web pages, in ascending order.
    pub const ALL: [Self; 5] = [Self::P10, Self::P25, Self::P50, Self::P75, Self::P90];

    /// Returns the number of requests of a web page at this percentile.
    pub fn requests(self) -> u32 {
        match self {
            Self::P10 => 24,
            Self::P25 => 42,
            Self::P50 => 71,
            Self::P75 => 115,
            Self::P90 => 176,
        }
    }

    /// Returns the total length of a web page's bodies at this percentile, in bytes.
    pub fn page_bytes(self) -> u64 {
        let kilobytes = match self {
            Self::P10 => 607,
            Self::P25 => 1_275,
            Self::P50 => 2_412,
            Self::P75 => 4_570,
            Self::P90 => 9_179,
        };
        kilobytes * KB
    }

    /// Returns the percentile as a number, such as 50.
    pub fn number(self) -> u32 {
        match self {
            Self::P10 => 10,
            Self::P25 => 25,
            Self::P50 => 50,
            Self::P75 => 75,
            Self::P90 => 90,
        }
    }
}

/// The error of a text that is not a percentile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown percentile '{text}' (known: 10, 25, 50, 75, 90)")]
pub struct UnknownPercentile {
    text: String,
}

impl FromStr for Percentile {
    type Err = UnknownPercentile;

    fn from_str(text: &str) -> Result<Self, UnknownPercentile> {
        let is_it = |percentile: &Self| percentile.number().to_string() == text;
        let found = Self::ALL.into_iter().find(is_it);
        found.ok_or_else(|| UnknownPercentile { text: text.to_owned() })
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.number().to_string())
    }
}

/// Returns the usual number of requests of a web page whose bodies have this total length in bytes.
pub(super) fn requests_of_weight(page_bytes: u64) -> u32 {
    let (first, last) = (Percentile::P10, Percentile::P90);
    if page_bytes <= first.page_bytes() {
        return first.requests();
    }
    for pair in Percentile::ALL.windows(2) {
        let (low, high) = (pair[0].page_bytes(), pair[1].page_bytes());
        if page_bytes <= high {
            let span = u64::from(pair[1].requests() - pair[0].requests());
            let more = span * (page_bytes - low) / (high - low);
            return pair[0].requests() + u32::try_from(more).unwrap_or(0);
        }
    }
    last.requests()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_written_as_numbers() {
        for percentile in Percentile::ALL {
            assert_eq!(percentile.to_string().parse(), Ok(percentile));
            assert_eq!(requests_of_weight(percentile.page_bytes()), percentile.requests());
        }
        let error = "33".parse::<Percentile>().unwrap_err().to_string();
        assert!(error.contains("'33'") && error.contains("10, 25"), "{error}");
    }

    #[test]
    fn requests_grow_with_the_weight() {
        let weights = [0, 700, 1_800, 3_000, 6_000, 20_000].map(|kilobytes| kilobytes * KB);
        let requests = weights.map(requests_of_weight);
        assert!(requests.is_sorted(), "{requests:?}");
        assert_eq!((requests[0], requests[5]), (24, 176));
    }
}
