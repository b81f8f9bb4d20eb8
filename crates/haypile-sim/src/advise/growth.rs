//! Growth of the working set at the end of a trace.

use super::WINDOWS;
use crate::Trace;
use crate::trace::info::Window;
use crate::trace::info::working_set::windows_to;

/// Share of the requests at the end that have to be for new keys if the working set still grows.
const GROWING: f64 = 0.01;

/// The keys that are requested for the first time in the last tenth of a trace, which show whether
/// the working set still grows.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Growth {
    /// Number of requests in the last tenth of the trace.
    pub requests: u64,
    /// Number of keys that are requested for the first time in the last tenth of the trace.
    pub new_keys: u64,
    /// Number of keys that are new in the last tenth of the trace, per hour; `None` if the trace has no times, or the
    /// last tenth takes no time.
    pub new_keys_per_hour: Option<f64>,
}

impl Growth {
    pub(super) fn of(trace: &Trace) -> Self {
        let requests = trace.whole_requests().div_ceil(WINDOWS as u64);
        let begin = trace.place(trace.whole_requests() - requests);
        let windows = windows_to(trace, [begin, trace.requests()]);
        let Window { new_keys, .. } = windows[1];
        let new_keys = trace.scaled_up(new_keys);
        let hours = trace.times_us().and_then(|times| {
            let last = times.last()?.get();
            let us = last.saturating_sub(times.get(begin)?.get());
            (us > 0).then(|| us as f64 / 3.6e9)
        });
        let new_keys_per_hour = hours.map(|hours| new_keys as f64 / hours);
        Self { requests, new_keys, new_keys_per_hour }
    }

    /// Whether the working set still grows at the end of the trace: over 1 % of the requests in its last tenth are for
    /// keys that were never requested before.
    pub fn goes_on(&self) -> bool {
        self.new_keys as f64 > GROWING * self.requests as f64
    }
}
