//! Sizes of values.

use haypile_number::ratio;
use serde::Serialize;

use super::rank;
use crate::trace::{Op, Trace};

/// A summary of the sizes of the values in a trace, without deletions, which transfer no value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeInfo {
    /// The sum of the sizes of all requests' values, in bytes.
    pub requested_bytes: u64,
    /// The sum of the last known sizes of all keys' values, in bytes: the content of a cache without a bound at the
    /// end, without keys and metadata.
    pub distinct_bytes: u64,
    /// The distribution of the sizes of values over requests; `None` without reads and writes.
    pub by_request: Option<SizeSummary>,
    /// The distribution of the last sizes of values over keys; `None` without reads and writes.
    pub by_key: Option<SizeSummary>,
    /// Number of keys whose value has different sizes in different requests.
    pub keys_that_change: u64,
}

/// A distribution of the sizes of values, in bytes. Quantiles are sizes that occur (nearest rank).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SizeSummary {
    /// The smallest of the values' sizes, in bytes.
    pub min_bytes: u32,
    /// The median of the values' sizes, in bytes.
    pub median_bytes: u32,
    /// The arithmetic mean of the values' sizes, in bytes.
    pub mean_bytes: f64,
    /// The 90th percentile of the values' sizes, in bytes.
    pub p90_bytes: u32,
    /// The 99th percentile of the values' sizes, in bytes.
    pub p99_bytes: u32,
    /// The largest of the values' sizes, in bytes.
    pub max_bytes: u32,
}

impl SizeInfo {
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let sizes = trace.sizes()?;
        let is_kept = |n: usize| trace.ops().is_none_or(|ops| ops[n] != Op::Delete as u8);
        let requested = (0..trace.requests()).filter(|&n| is_kept(n));

        let mut last: Vec<Option<u32>> = vec![None; trace.keys() as usize];
        let mut changes = vec![false; trace.keys() as usize];
        for n in requested.clone() {
            let (id, bytes) = (trace.ids()[n].get() as usize, sizes[n].get());
            changes[id] |= last[id].is_some_and(|last| last != bytes);
            last[id] = Some(bytes);
        }
        let by_request = requested.map(|n| sizes[n].get());
        let by_key = last.iter().filter_map(|&bytes| bytes);
        Some(Self {
            requested_bytes: by_request.clone().map(u64::from).sum(),
            distinct_bytes: by_key.clone().map(u64::from).sum(),
            by_request: SizeSummary::of(by_request),
            by_key: SizeSummary::of(by_key),
            keys_that_change: changes.into_iter().filter(|&changes| changes).count() as u64,
        })
    }
}

impl SizeSummary {
    fn of(sizes: impl Iterator<Item = u32> + Clone) -> Option<Self> {
        let mut halves = HighHalves::of(sizes.clone());
        if halves.total == 0 {
            return None;
        }
        let sum: u64 = sizes.clone().map(u64::from).sum();
        let mut quantile = |percent| halves.quantile(percent, sizes.clone());
        Some(Self {
            min_bytes: sizes.clone().min()?,
            median_bytes: quantile(50),
            p90_bytes: quantile(90),
            p99_bytes: quantile(99),
            max_bytes: sizes.max()?,
            mean_bytes: ratio(sum, halves.total),
        })
    }
}

/// Exact quantiles without a list of all values: the high halves are counted first, then the low
/// halves of the one high half in which the quantile is.
struct HighHalves {
    counts: Vec<u64>,
    total: u64,
    /// The high half whose low halves were counted last: the next quantile is often there too.
    low: Option<(usize, Vec<u64>)>,
}

const HALF: usize = 1 << 16;

impl HighHalves {
    fn of(values: impl Iterator<Item = u32>) -> Self {
        let mut counts = vec![0; HALF];
        let mut total = 0;
        for value in values {
            counts[value as usize / HALF] += 1;
            total += 1;
        }
        Self { counts, total, low: None }
    }

    /// The value at a rank; there has to be one.
    fn quantile(&mut self, percent: u64, values: impl Iterator<Item = u32>) -> u32 {
        let (high, rank) = locate(&self.counts, rank(percent, self.total));
        let low = match self.low.take() {
            Some((counted, low)) if counted == high => low,
            _ => {
                let mut low = vec![0; HALF];
                let same = values.filter(|&value| value as usize / HALF == high);
                same.for_each(|value| low[value as usize % HALF] += 1);
                low
            }
        };
        let (value, _) = locate(&low, rank);
        self.low = Some((high, low));
        u32::try_from(high * HALF + value).expect("two halves of 16 bits")
    }
}

/// The class in which a rank is, and its rank in the class.
fn locate(counts: &[u64], rank: u64) -> (usize, u64) {
    let mut left = rank;
    for (class, &count) in counts.iter().enumerate() {
        if left < count {
            return (class, left);
        }
        left -= count;
    }
    (counts.len() - 1, 0)
}
