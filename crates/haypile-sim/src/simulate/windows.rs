//! Parts of a trace that are counted separately.

use zerocopy::little_endian::U64;

use super::SimulateError;
use crate::Trace;

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

/// The most days that are told apart: a log with a wrong time would have millions.
const MOST_DAYS: usize = 1_000;

/// The parts of a trace, after the warm-up, whose hits, misses and so on are counted separately too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Windows {
    /// This number of parts with equally many requests; 0 for none.
    Equal(usize),
    /// This number of days of 24 hours from the first request on, by the times of the requests; the last part has what is left.
    Days(usize),
}

impl Default for Windows {
    fn default() -> Self {
        Self::Equal(0)
    }
}

impl Windows {
    /// Returns the number of parts.
    pub fn count(self) -> usize {
        match self {
            Self::Equal(count) | Self::Days(count) => count,
        }
    }

    /// Returns the whole days of a trace after the first `warmup` requests, at least 1.
    ///
    /// # Errors
    /// [`SimulateError::NoDays`] for a trace without times, [`SimulateError::TooManyDays`] for more than 1,000 days.
    pub fn whole_days(trace: &Trace, warmup: u64) -> Result<Self, SimulateError> {
        let times = trace.times_us().ok_or(SimulateError::NoDays)?;
        let times = times.get(trace.place(warmup)..).unwrap_or_default();
        let last = times.last().map_or(0, |time| time.get());
        let days = last.saturating_sub(begin(times)) / DAY_US;
        match usize::try_from(days) {
            Ok(days) if days <= MOST_DAYS => Ok(Self::Days(days.max(1))),
            _ => Err(SimulateError::TooManyDays { days, most: MOST_DAYS }),
        }
    }
}

fn begin(times: &[U64]) -> u64 {
    times.first().map_or(0, |time| time.get())
}

/// Returns the first request of each day but the first, for that number of days from request `from` on. Where times go back,
/// it is one of the requests around there.
pub(super) fn days(times: &[U64], from: usize, days: usize) -> Vec<usize> {
    let times = &times[from..];
    let mut before = 0;
    let begins = (1..days as u64).map(|day| {
        let begin = begin(times).saturating_add(day.saturating_mul(DAY_US));
        before = times.partition_point(|time| time.get() < begin).max(before);
        from + before
    });
    begins.collect()
}
