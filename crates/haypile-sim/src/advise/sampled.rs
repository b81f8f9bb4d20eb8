//! Decision whether to simulate a long trace by a sample.

use super::Question;
use crate::Trace;
use crate::simulate::{Accounting, MIN_SAMPLED_ENTRIES, MIN_SAMPLED_KEYS, footprint};
use crate::trace::{Sampling, TraceError};

/// Traces with more requests than this are sampled: advice simulates each request some hundred times.
const EXACT_REQUESTS: usize = 2_000_000;

/// Share of the requests that a sample should have, and the bounds of their number: the time that an advice takes grows with the trace,
/// up to a bound.
const SAMPLED_SHARE: f64 = 0.03;
const MIN_SAMPLED_REQUESTS: f64 = 500_000.0;
const MAX_SAMPLED_REQUESTS: f64 = 3_000_000.0;

/// Keys that it should have, and of these the ones that the largest cache within the budget should hold.
const SAMPLED_KEYS: f64 = 4.0 * MIN_SAMPLED_KEYS as f64;
const SAMPLED_ENTRIES: f64 = 2.0 * MIN_SAMPLED_ENTRIES as f64;

/// A sample of more than this is hardly faster than the whole.
const LARGEST_RATE: f64 = 0.5;

/// Returns the rate and seed of the sample of the trace's keys that advice simulates to answer quickly; `None` if it
/// simulates the trace as it is.
pub(super) fn sampling(
    trace: &Trace,
    question: &Question,
    accounting: Accounting,
) -> Result<Option<Sampling>, TraceError> {
    let requests = trace.requests() as f64;
    if question.whole || trace.requests() <= EXACT_REQUESTS || trace.sample_of().is_some() {
        return Ok(None);
    }
    let keys = f64::from(trace.keys());
    let wanted = (requests * SAMPLED_SHARE).clamp(MIN_SAMPLED_REQUESTS, MAX_SAMPLED_REQUESTS);
    let rates = [wanted / requests, SAMPLED_KEYS / keys];
    let by_budget = question.budget.map(|budget| {
        let entries = budget as f64 / footprint(trace, accounting) as f64 * keys;
        SAMPLED_ENTRIES / entries
    });
    let rate = rates.into_iter().chain(by_budget).fold(0.0, f64::max);
    let (rate, _) = Sampling::rounded_up(rate);
    if rate > LARGEST_RATE {
        return Ok(None);
    }
    Sampling::new(rate, question.seed).map(Some)
}
