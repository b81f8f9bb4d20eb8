//! Times of the requests of a trace.

use serde::Serialize;

use crate::trace::Trace;

/// The times of a trace's requests, by the trace's own clock, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TimeInfo {
    /// The time of the earliest request, in microseconds.
    pub first_us: u64,
    /// The time of the latest request, in microseconds.
    pub last_us: u64,
    /// The time from the earliest to the latest request, in microseconds.
    pub duration_us: u64,
    /// The mean number of requests per second; `None` if all requests have the same time.
    pub requests_per_second: Option<f64>,
    /// Number of requests whose time is earlier than that of the request before them.
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
