//! Times of the requests of a trace.

use serde::Serialize;

use crate::trace::Trace;

/// Times of the requests, by the trace's own clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeInfo {
    /// The earliest time.
    pub first_us: u64,
    /// The latest time.
    pub last_us: u64,
    /// The time from the earliest to the latest request.
    pub duration_us: u64,
    /// Requests per second of the duration; `None` if the duration is 0.
    pub requests_per_second: Option<f64>,
    /// Requests that are earlier than the one before them.
    pub out_of_order: u64,
}

impl TimeInfo {
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let times = trace.times_us()?;
        let first_us = times.iter().map(|time| time.get()).min()?;
        let last_us = times.iter().map(|time| time.get()).max()?;
        let duration_us = last_us - first_us;
        let rate = times.len() as f64 / (duration_us as f64 / 1e6);
        Some(Self {
            first_us,
            last_us,
            duration_us,
            requests_per_second: (duration_us > 0).then_some(rate),
            out_of_order: times.windows(2).filter(|pair| pair[1].get() < pair[0].get()).count()
                as u64,
        })
    }
}
