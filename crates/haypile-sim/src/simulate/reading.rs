//! The hit ratio under the opposite reading of sizes that change.

use std::ops::ControlFlow;

use haypile_number::ratio;

use super::{
    Contender, Counts, Options, SimulateError, SizeRule, Windows, changed_reads, simulate,
};
use crate::Trace;

/// Difference of hit ratios above which it matters how sizes that change are read.
const MATTERS: f64 = 0.01;

/// The hit ratios of one cache under two rules for reads whose size changed, which count them as hits or as misses.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct OtherReading {
    /// Number of reads in the trace whose value has another size than at the previous request for their key.
    pub changed_reads: u64,
    /// The name of the simulated policy.
    pub policy: String,
    /// The size of the simulated cache, in bytes or objects.
    pub capacity: u64,
    /// The rule (such as `first`) by which the first simulation treated reads whose size differs from the previous one
    /// of their key.
    pub sizes: SizeRule,
    /// The hit ratio in the first simulation, by its own rule for reads with a changed size.
    pub hit_ratio: f64,
    /// The opposite rule for reads with a changed size, used in the second simulation: they are misses instead of hits,
    /// or hits instead of misses.
    pub other_sizes: SizeRule,
    /// The hit ratio in the second simulation, by the opposite rule for reads with a changed size.
    pub other_hit_ratio: f64,
}

/// Simulates a cache again with the opposite rule for reads with a changed size, and returns the hit ratios under both
/// rules.
///
/// `counts` are those of the simulation by `options`. `None` if the hit ratios differ by a point or less,
/// and if `progress` ends the simulation.
///
/// # Errors
/// As [`simulate`].
pub fn other_reading(
    trace: &Trace,
    (contender, capacity): (&Contender, u64),
    options: &Options,
    counts: &Counts,
    progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<OtherReading>, SimulateError> {
    if trace.sizes().is_none() || !trace.size_changes().is_any {
        return Ok(None);
    }
    let changed_reads = trace.scaled_up(changed_reads(trace, options.operations));
    if ratio(changed_reads, counts.reads()) <= MATTERS {
        return Ok(None);
    }
    let other_sizes = match options.sizes {
        SizeRule::First | SizeRule::Last => SizeRule::Changed,
        SizeRule::Changed => SizeRule::Last,
    };
    let other = Options { sizes: other_sizes, windows: Windows::default(), ..*options };
    let Some(outcome) = simulate(trace, contender, capacity, &other, progress)? else {
        return Ok(None);
    };
    let (hit_ratio, other_hit_ratio) = (counts.hit_ratio(), outcome.counts.hit_ratio());
    Ok(((hit_ratio - other_hit_ratio).abs() > MATTERS).then(|| OtherReading {
        changed_reads,
        policy: contender.to_string(),
        capacity,
        sizes: options.sizes,
        hit_ratio,
        other_sizes,
        other_hit_ratio,
    }))
}
