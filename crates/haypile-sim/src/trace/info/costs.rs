//! Costs of misses.

use serde::Serialize;

use crate::trace::{Op, Trace};

/// The costs that a trace states for its reads: the time that a miss then takes, in nanoseconds. A read without one counts
/// with that of its key ([`Trace::costs_ns`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CostInfo {
    /// The sum of the costs of all reads, in nanoseconds: what they would take without a cache.
    pub total_ns: u64,
    /// The mean cost of the reads whose cost is known, in nanoseconds; 0 if there are none.
    pub mean_ns: f64,
    /// The largest cost of a read, in nanoseconds.
    pub max_ns: u64,
    /// The number of reads that cost nothing, because no request for their key states a cost, or states 0.
    pub free_reads: u64,
}

impl CostInfo {
    /// Describes the costs of a trace; `None` if it has none.
    pub fn of(trace: &Trace) -> Option<Self> {
        let costs = trace.costs_ns()?;
        let is_read = |at: usize| trace.ops().is_none_or(|ops| ops[at] == Op::Read as u8);
        let (mut total_ns, mut max_ns, mut known, mut free_reads) = (0_u64, 0, 0_u64, 0);
        for (_, cost) in costs.iter().enumerate().filter(|(at, _)| is_read(*at)) {
            let cost_ns = cost.get();
            total_ns = total_ns.saturating_add(cost_ns);
            max_ns = cost_ns.max(max_ns);
            *(if cost_ns > 0 { &mut known } else { &mut free_reads }) += 1;
        }
        let mean_ns = total_ns as f64 / known.max(1) as f64;
        Some(Self { total_ns, mean_ns, max_ns, free_reads })
    }
}
