//! Results of a simulation as JSON.

use haypile_sim::simulate::{Accounting, Counts, OtherReading, SizeRule};
use haypile_sim::trace::SampledTrace;
use serde::Serialize;

use super::{Results, hit_ratio};

/// Version of this document's form. Fields may be added within a version.
const VERSION: u32 = 1;

#[derive(Serialize)]
pub(crate) struct Document {
    version: u32,
    traces: Vec<TraceResults>,
}

#[derive(Serialize)]
struct TraceResults {
    trace: String,
    requests: u64,
    keys: u64,
    /// The part of the trace that was simulated, of which all results are estimates; null if it is the whole trace.
    sample: Option<SampledTrace>,
    accounting: Accounting,
    /// The rule for a read whose size differs from the previous size of its key.
    sizes: SizeRule,
    /// The hit ratio of the policy with the most hits under the opposite rule, if that differs by more than a point.
    other_reading: Option<OtherReading>,
    /// Whether the simulation was finished; false if it was interrupted.
    complete: bool,
    simulations: Vec<JsonRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lru_curve: Vec<CurvePoint>,
}

#[derive(Serialize)]
struct JsonRow {
    policy: String,
    capacity: u64,
    /// The hit ratio; null without reads.
    hit_ratio: Option<f64>,
    byte_hit_ratio: Option<f64>,
    /// The share of the cost of misses that hits saved; missing without `--miss-cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_saved_ratio: Option<f64>,
    /// The cost of all misses, in nanoseconds; missing without `--miss-cost`.
    #[serde(skip_serializing_if = "Option::is_none")]
    miss_cost_ns: Option<f64>,
    #[serde(flatten)]
    counts: Counts,
    capacity_misses: u64,
    entries: u64,
    used: u64,
    /// Shards of the simulated `memory` store; 1 for everything else.
    shards: usize,
    cpu_ns: u64,
    metadata_bytes: u64,
    /// The hit ratio of each part of the trace; null where a part has no reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    windows: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct CurvePoint {
    capacity: u64,
    miss_ratio: f64,
    /// The error of the miss ratio; null where there is an error that is not known.
    error: Option<f64>,
}

pub(crate) fn document(results: &[Results]) -> Document {
    Document { version: VERSION, traces: results.iter().map(trace).collect() }
}

fn trace(one: &Results) -> TraceResults {
    let rows = one.cells.iter().filter_map(|cell| {
        let outcome = cell.outcome.as_ref()?;
        Some(JsonRow {
            policy: one.sweep.contenders[cell.contender].to_string(),
            capacity: outcome.capacity,
            hit_ratio: hit_ratio(outcome),
            byte_hit_ratio: hit_ratio(outcome)
                .filter(|_| one.has_sizes)
                .map(|_| outcome.counts.byte_hit_ratio()),
            cost_saved_ratio: one.cost_saved_ratio(outcome),
            miss_cost_ns: one.miss_cost.map(|cost| cost.lost_ns(&outcome.counts)),
            counts: outcome.counts,
            capacity_misses: outcome.counts.capacity_misses(),
            entries: outcome.entries,
            used: outcome.used,
            shards: outcome.shards,
            cpu_ns: u64::try_from(outcome.cpu.as_nanos()).unwrap_or(u64::MAX),
            metadata_bytes: outcome.metadata_bytes,
            windows: outcome
                .windows
                .iter()
                .map(|part| (part.reads() > 0).then(|| part.hit_ratio()))
                .collect(),
        })
    });
    let simulations: Vec<JsonRow> = rows.collect();
    TraceResults {
        trace: one.name.clone(),
        requests: one.requests,
        keys: one.keys,
        sample: one.sample,
        accounting: one.accounting,
        sizes: one.sweep.options.sizes,
        other_reading: one.other_reading.clone(),
        complete: one.is_complete(),
        simulations,
        lru_curve: one
            .curve
            .iter()
            .flat_map(|(curve, sizes)| {
                sizes.iter().map(|capacity| {
                    let estimate = curve.at(*capacity);
                    CurvePoint {
                        capacity: *capacity,
                        miss_ratio: estimate.miss_ratio,
                        error: one.curve_error(&estimate),
                    }
                })
            })
            .collect(),
    }
}
