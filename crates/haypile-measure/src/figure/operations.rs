//! Percentiles of the times of single operations.

use crate::result::{Latency, Samples};
use crate::statistics::Summary;

/// A percentile of the latencies of single operations, such as reads.
#[derive(Debug)]
pub struct Percentile {
    /// The name of the percentile in results, such as `p99`.
    pub name: &'static str,
    of: fn(&Latency) -> u64,
}

/// The percentiles of latencies that results have, in ascending order. The last one is the longest
/// operation.
pub static PERCENTILES: [Percentile; 5] = [
    Percentile { name: "p50", of: |latency| latency.p50 },
    Percentile { name: "p90", of: |latency| latency.p90 },
    Percentile { name: "p99", of: |latency| latency.p99 },
    Percentile { name: "p99.9", of: |latency| latency.p999 },
    Percentile { name: "max", of: |latency| latency.max },
];

/// The latencies of one kind of operation, such as reads, of one subject in one case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Operations {
    /// The latencies in nanoseconds by percentile, in the order of [`PERCENTILES`]: medians over
    /// samples, and the maximum of all samples.
    pub percentiles: [f64; PERCENTILES.len()],
    /// The median of the samples' mean latencies, in nanoseconds; `None` if they were not measured.
    pub mean: Option<f64>,
    /// The number of timed operations in all samples.
    pub count: u64,
    /// The number of samples that timed operations of this kind.
    pub samples: usize,
}

impl Operations {
    /// Returns the kinds of operations (such as `get`) whose latencies were measured, in
    /// alphabetical order.
    pub fn kinds<'a>(samples: &Samples<'a>) -> Vec<&'a str> {
        let good = samples.iter().filter(|sample| sample.error.is_none());
        let timed = good.filter_map(|sample| sample.latency_ns.as_ref());
        let mut kinds: Vec<&str> =
            timed.flat_map(|kinds| kinds.keys().map(String::as_str)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Returns the latencies of one kind of operation, from samples without errors; `None` if no
    /// sample has any.
    pub fn of(samples: &Samples<'_>, kind: &str) -> Option<Self> {
        let good = samples.iter().filter(|sample| sample.error.is_none());
        let all: Vec<&Latency> =
            good.filter_map(|sample| sample.latency_ns.as_ref()?.get(kind)).collect();
        let longest = all.iter().map(|latency| latency.max).max()? as f64;
        let median = |values: Vec<f64>| Summary::of(&values).map(|summary| summary.median);
        let mut percentiles = [longest; PERCENTILES.len()];
        let medians = PERCENTILES.len() - 1;
        for (value, percentile) in percentiles.iter_mut().zip(&PERCENTILES[..medians]) {
            *value = median(all.iter().map(|one| (percentile.of)(one) as f64).collect())?;
        }
        // It is the one number of rows that can be anything.
        let is_time = |mean: &f64| (0.0..=longest).contains(mean);
        let means = all.iter().map(|latency| latency.mean).filter(is_time);
        Some(Self {
            percentiles,
            mean: median(means.collect()),
            count: all.iter().fold(0, |sum: u64, one| sum.saturating_add(one.count)),
            samples: all.len(),
        })
    }
}
