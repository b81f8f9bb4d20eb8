//! Results of a sample as estimates of those of the whole trace.
//!
//! What misses in the sample stands for as many misses as the sample is smaller; all other reads of the whole trace hit. That is the
//! correction of SHARDS: a sample with too many or too few reads has them of its hottest keys, which hit in a cache of any size.

use super::file::segments;
use super::{Accounting, Contender, Counts, Operations, SimulateError, Sweep, footprint};
use crate::Trace;
use crate::trace::{Mark, Sample};

/// Number of keys that a sample must exceed to be simulated. With fewer, the choice of hot keys changes all results;
/// the SHARDS paper finds 8,192 enough for 1 %. So small a trace is simulated quickly as a whole.
pub const MIN_SAMPLED_KEYS: u32 = 4096;

/// The smallest number of a sample's keys that a simulated cache must have room for; with fewer, a single key changes
/// the result.
pub const MIN_SAMPLED_ENTRIES: u64 = 500;

/// Each segment of a simulated file has to hold this number of the sample's keys: what its end wastes is a part of an entry.
const MIN_SEGMENT_ENTRIES: u64 = 64;

/// Returns the smallest cache size that can be simulated with a sample, for these policies, in bytes or objects; 1 for
/// a whole trace.
pub fn least_capacity(trace: &Trace, accounting: Accounting, contenders: &[Contender]) -> u64 {
    if trace.sample_of().is_none() {
        return 1;
    }
    let entries = contenders.iter().map(|contender| match contender {
        Contender::Policy(spec) if spec.is_of_file_store() => MIN_SEGMENT_ENTRIES * segments(spec),
        _ => 0,
    });
    let entries = entries.fold(MIN_SAMPLED_ENTRIES, u64::max);
    let keys = u128::from(trace.keys()).max(1);
    let least = u128::from(footprint(trace, accounting)) * u128::from(entries) / keys;
    u64::try_from(least).unwrap_or(u64::MAX).max(1)
}

/// Returns an error if the trace is a sample with too few keys to be simulated.
pub(crate) fn check_sample(trace: &Trace) -> Result<(), SimulateError> {
    match trace.sample_of() {
        Some(sample) if trace.keys() <= MIN_SAMPLED_KEYS => {
            Err(SimulateError::SmallSample { rate: sample.rate(), keys: trace.keys() })
        }
        _ => Ok(()),
    }
}

/// Returns an error if the trace is a sample, and the smallest cache of a sweep would hold too few of its keys.
pub(super) fn check_capacities(trace: &Trace, sweep: &Sweep) -> Result<(), SimulateError> {
    let Some(sample) = trace.sample_of() else { return Ok(()) };
    let least = least_capacity(trace, sweep.options.accounting, &sweep.contenders);
    match sweep.capacities.iter().copied().min() {
        Some(capacity) if capacity < least => {
            Err(SimulateError::SmallSampledCache { rate: sample.rate(), capacity, least })
        }
        _ => Ok(()),
    }
}

/// A boundary between two requests at which a simulated window begins or ends; for a sample, with the whole trace's
/// totals before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// Number of requests of the simulated trace before the boundary.
    pub(super) at: usize,
    mark: Mark,
}

/// A converter of the counts of a simulated sample into estimates for the whole trace.
#[derive(Clone, Copy)]
pub(super) struct Scale<'a> {
    sample: Option<Sample<'a>>,
    operations: Operations,
}

impl<'a> Scale<'a> {
    pub(super) fn new(trace: &'a Trace, operations: Operations) -> Self {
        Self { sample: trace.sample_of(), operations }
    }

    /// Returns the boundary before the request with number `request` in the whole trace.
    pub(super) fn edge(&self, request: u64) -> Edge {
        let mark = match &self.sample {
            Some(sample) => sample.mark_near(request),
            None => Mark { sampled: request, ..Mark::default() },
        };
        Edge { at: usize::try_from(mark.sampled).expect("a place in memory"), mark }
    }

    /// Returns the boundary before request number `at` of the simulated trace; for a sample, the nearest one with known totals.
    pub(super) fn edge_at(&self, at: usize) -> Edge {
        let mark = match &self.sample {
            Some(sample) => sample.mark_at(at as u64),
            None => Mark { sampled: at as u64, ..Mark::default() },
        };
        Edge { at: usize::try_from(mark.sampled).expect("a place in memory"), mark }
    }

    /// Scales the hits, misses and so on of a sample between two boundaries to estimates for the whole trace; counts of
    /// a whole trace stay the same.
    pub(super) fn counts(&self, counts: Counts, from: &Edge, to: &Edge) -> Counts {
        let Some(sample) = &self.sample else { return counts };
        let (before, after) = (&from.mark.totals, &to.mark.totals);
        let writes = after.writes - before.writes;
        let deletes = after.deletes - before.deletes;
        let read_bytes = after.read_bytes - before.read_bytes;
        let write_bytes = after.write_bytes - before.write_bytes;
        let reads = after.reads - before.reads;
        let is_read = self.operations == Operations::AllReads;
        let (reads, bytes) = if is_read {
            (reads + writes + deletes, read_bytes.saturating_add(write_bytes))
        } else {
            (reads, read_bytes)
        };
        // Nobody knows the sizes of what is deleted.
        let knows_bytes = sample.knows_bytes() && !(is_read && deletes > 0);
        let up = |count| sample.scaled_up(count);
        let misses = up(counts.misses).min(reads);
        let miss_bytes = up(counts.miss_bytes);
        let (miss_bytes, hit_bytes) = if knows_bytes {
            let miss_bytes = miss_bytes.min(bytes);
            (miss_bytes, bytes - miss_bytes)
        } else {
            (miss_bytes, up(counts.hit_bytes))
        };
        Counts {
            hits: reads - misses,
            misses,
            cold_misses: up(counts.cold_misses).min(misses),
            hit_bytes,
            miss_bytes,
            // Nobody has added up the costs of the whole trace.
            hit_cost_ns: up(counts.hit_cost_ns),
            miss_cost_ns: up(counts.miss_cost_ns),
            writes: if is_read { 0 } else { writes },
            deletes: if is_read { 0 } else { deletes },
            evictions: up(counts.evictions),
            refused: up(counts.refused),
        }
    }
}
