//! Popularity of keys.

use haypile_number::ratio;
use serde::Serialize;

use crate::trace::Trace;

/// Returns the number of requests for each key of the trace, in descending order.
pub(super) fn frequencies(trace: &Trace) -> Vec<u32> {
    let mut frequencies = vec![0_u32; trace.keys() as usize];
    for id in trace.ids() {
        frequencies[id.get() as usize] += 1;
    }
    frequencies.sort_unstable_by(|a, b| b.cmp(a));
    frequencies
}

/// Counts of keys that are requested only once: no cache can hit them, and admission should not take them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OneHits {
    /// Number of keys that are requested only once.
    pub keys: u64,
    /// Number of keys that are requested only once, divided by the number of all keys, from 0 to 1.
    pub share_of_keys: f64,
    /// Number of requests for keys that are requested only once, divided by the number of all requests, from 0 to 1.
    pub share_of_requests: f64,
}

impl OneHits {
    pub(super) fn of(frequencies: &[u32], requests: u64) -> Self {
        let more = frequencies.partition_point(|&frequency| frequency > 1);
        let keys = (frequencies.len() - more) as u64;
        Self {
            keys,
            share_of_keys: ratio(keys, frequencies.len() as u64),
            share_of_requests: ratio(keys, requests),
        }
    }
}

/// The skew: how unevenly requests are distributed over keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Skew {
    /// The share of the requests that go to the most requested 1 % of the keys (at least one key).
    pub top_1_percent: f64,
    /// The share of the requests that go to the most requested 10 % of the keys (at least one key).
    pub top_10_percent: f64,
    /// Zipf's law, fitted to the numbers of requests for the keys; `None` if all keys are requested equally often.
    pub zipf: Option<ZipfFit>,
}

impl Skew {
    pub(super) fn of(frequencies: &[u32], requests: u64) -> Self {
        let top = |percent: usize| {
            let keys = frequencies.len().saturating_mul(percent).div_ceil(100);
            let top: u64 = frequencies[..keys].iter().map(|&frequency| u64::from(frequency)).sum();
            ratio(top, requests)
        };
        Self { top_1_percent: top(1), top_10_percent: top(10), zipf: ZipfFit::of(frequencies) }
    }
}

/// Zipf's law, fitted to a trace: a straight line through the logarithms of rank and frequency, by least squares over
/// all keys.
///
/// Most keys are in the tail, so the tail decides. A low `r_squared` says that the trace does not
/// follow Zipf's law, and that the exponent means little.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ZipfFit {
    /// The exponent of Zipf's law: the frequency of a key falls with its rank to the power of minus this number.
    pub exponent: f64,
    /// The share of the variance of the logarithm of frequency that the fitted line explains, from 0 to 1.
    pub r_squared: f64,
}

impl ZipfFit {
    fn of(frequencies: &[u32]) -> Option<Self> {
        if frequencies.first() == frequencies.last() {
            return None;
        }
        let n = frequencies.len() as f64;
        let points = || {
            let ranks = 1_u64..;
            ranks.zip(frequencies).map(|(rank, &f)| ((rank as f64).ln(), f64::from(f).ln()))
        };
        let (sum_x, sum_y) = points().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
        let (mean_x, mean_y) = (sum_x / n, sum_y / n);
        let (xx, xy, yy) = points().fold((0.0, 0.0, 0.0), |(xx, xy, yy), (x, y)| {
            let (x, y) = (x - mean_x, y - mean_y);
            (xx + x * x, xy + x * y, yy + y * y)
        });
        Some(Self { exponent: -xy / xx, r_squared: xy * xy / (xx * yy) })
    }
}
