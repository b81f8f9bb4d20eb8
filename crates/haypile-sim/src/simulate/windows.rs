//! Parts of a trace that are counted separately.

use zerocopy::little_endian::U64;

use crate::Trace;

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

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

    /// Returns the whole days of a trace after the first `warmup` requests, at least 1; `None` if the trace has no times.
    pub fn whole_days(trace: &Trace, warmup: u64) -> Option<Self> {
        let times = trace.times_us()?.get(trace.place(warmup)..)?;
        let last = times.last().map_or(0, |time| time.get());
        let days = last.saturating_sub(begin(times)) / DAY_US;
        Some(Self::Days(usize::try_from(days).unwrap_or(usize::MAX).max(1)))
    }
}

fn begin(times: &[U64]) -> u64 {
    times.first().map_or(0, |time| time.get())
}

/// Returns where each day but the first begins among the requests from `from` on. Where times do not ascend, a day begins somewhere among
/// those that go back.
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
