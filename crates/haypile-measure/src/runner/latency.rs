//! The times of single operations.

use hdrhistogram::Histogram;

use super::drive::Probe;
use crate::job::Op;
use crate::meter::Meter;

/// The longest time that is told from longer ones: a minute.
const MAX_NS: u64 = 60_000_000_000;

/// Digits that are kept.
const DIGITS: u8 = 3;

/// A histogram of latencies for each kind of operation of a job.
pub(super) struct Latencies<'a> {
    meter: &'a dyn Meter,
    histograms: [Histogram<u64>; Op::ALL.len()],
}

impl<'a> Latencies<'a> {
    pub(super) fn new(meter: &'a dyn Meter) -> Self {
        let histogram = |_| {
            Histogram::new_with_bounds(1, MAX_NS, DIGITS).expect("bounds and digits that it allows")
        };
        Self { meter, histograms: Op::ALL.map(histogram) }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (histogram, other) in self.histograms.iter_mut().zip(&other.histograms) {
            histogram.add(other).expect("both have the same bounds");
        }
    }

    /// Returns the percentiles of the latencies as names and values of the runner's protocol.
    pub(super) fn lines(&self) -> Vec<(String, String)> {
        let mut lines = Vec::new();
        for (op, histogram) in Op::ALL.iter().zip(&self.histograms) {
            if histogram.is_empty() {
                continue;
            }
            let mut line = |name: &str, value: String| {
                lines.push((format!("latency_{}_{name}", op.name()), value));
            };
            line("count", histogram.len().to_string());
            for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
                line(name, histogram.value_at_quantile(quantile).to_string());
            }
            line("max", histogram.max().to_string());
            line("mean", format!("{:.1}", histogram.mean()));
        }
        lines
    }
}

impl Probe for Latencies<'_> {
    type Begun = u64;

    fn begin(&mut self) -> u64 {
        self.meter.wall_ns()
    }

    fn end(&mut self, op: Op, begun: u64) {
        self.histograms[op as usize].saturating_record(self.meter.wall_ns() - begun);
    }
}
