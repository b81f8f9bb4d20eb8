//! Numbers for people.

use std::time::Duration;

pub(crate) use haypile_number::{bytes, grouped, percent};

/// Returns a hit ratio as text with three decimals, as the literature prints hit ratios.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.3}")
}

/// Returns a duration as text in microseconds, milliseconds or seconds.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        0.0..0.01 => format!("{:.0} µs", seconds * 1e6),
        0.01..1.0 => format!("{:.0} ms", seconds * 1e3),
        _ => format!("{seconds:.2} s"),
    }
}
