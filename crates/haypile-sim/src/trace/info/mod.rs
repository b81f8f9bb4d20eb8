//! Description of a trace, without any cache.

mod costs;
mod popularity;
mod reuse;
mod sizes;
mod time;
pub(crate) mod working_set;

pub use costs::CostInfo;
pub use popularity::{OneHits, Skew, ZipfFit};
pub use reuse::{DistanceClass, ReuseDistances};
pub use sizes::{SizeInfo, SizeSummary};
pub use time::TimeInfo;
pub use working_set::Window;

use serde::Serialize;

use super::{Op, Trace};

/// A description of a trace: counts, popularity, reuse and sizes.
///
/// Everything is exact, in one to three passes per part and with memory for the keys alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TraceInfo {
    /// Number of all requests in the trace.
    pub requests: u64,
    /// Number of requests in the trace that are reads.
    pub reads: u64,
    /// Number of requests in the trace that are writes.
    pub writes: u64,
    /// Number of requests in the trace that are deletions.
    pub deletes: u64,
    /// Number of distinct keys in the trace.
    pub keys: u64,
    /// Sum of the lengths of all distinct keys as text, in bytes.
    pub key_text_bytes: u64,
    /// The sizes of the values in the trace; `None` if the trace has no sizes.
    pub sizes: Option<SizeInfo>,
    /// The number of keys that are requested only once, and their shares of all keys and of all requests.
    pub one_hits: OneHits,
    /// The skew: how unevenly requests are distributed over keys.
    pub skew: Skew,
    /// The LRU stack distances between requests for the same key.
    pub reuse: ReuseDistances,
    /// The working set (distinct keys and their bytes) of each part of the trace; parts have equally many requests.
    pub working_set: Vec<Window>,
    /// The times of the requests; `None` if the trace has no times.
    pub time: Option<TimeInfo>,
    /// The costs of misses that the trace states; `None` if it states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<CostInfo>,
}

impl TraceInfo {
    /// Describes a trace, and divides it into `windows` parts for the working set. No part is empty, so that a trace
    /// with fewer requests has fewer parts.
    pub fn of(trace: &Trace, windows: usize) -> Self {
        let requests = trace.requests() as u64;
        let (mut writes, mut deletes) = (0, 0);
        for &op in trace.ops().unwrap_or_default() {
            writes += u64::from(op == Op::Write as u8);
            deletes += u64::from(op == Op::Delete as u8);
        }
        let frequencies = popularity::frequencies(trace);
        Self {
            requests,
            reads: requests - writes - deletes,
            writes,
            deletes,
            keys: u64::from(trace.keys()),
            key_text_bytes: (0..trace.keys()).map(|id| u64::from(trace.key_bytes(id))).sum(),
            sizes: SizeInfo::of(trace),
            one_hits: OneHits::of(&frequencies, requests),
            skew: Skew::of(&frequencies, requests),
            reuse: ReuseDistances::of(trace),
            working_set: working_set::windows(trace, windows),
            time: TimeInfo::of(trace),
            costs: CostInfo::of(trace),
        }
    }
}

/// The position in an ordered list of `count` values below or at which a share of them lies,
/// `percent` of 100, by the nearest-rank definition. `count` is not 0.
fn rank(percent: u64, count: u64) -> u64 {
    let rank = (u128::from(count) * u128::from(percent)).div_ceil(100).max(1) - 1;
    u64::try_from(rank).unwrap_or(u64::MAX)
}
