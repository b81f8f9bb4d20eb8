//! Results that the Necko benchmarks printed for its Linux server, to compare ours with.

use super::{looped, sequence};

/// A miss and a hit of the source, in milliseconds per run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceRow {
    /// `loop` or `sequence`.
    pub experiment: &'static str,
    /// `memory` or `file`.
    pub cache: &'static str,
    /// The size of the resource, in bytes.
    pub value_bytes: u32,
    /// Loading it from the server: what must not be stored (`loop`), or what is stored (`sequence`).
    pub miss_ms: f64,
    /// Loading it from the cache.
    pub hit_ms: f64,
}

/// Its rows.
pub fn source_rows() -> impl Iterator<Item = SourceRow> {
    let row = |(experiment, cache, value_bytes, miss_ms, hit_ms)| SourceRow {
        experiment,
        cache,
        value_bytes,
        miss_ms,
        hit_ms,
    };
    [
        (looped::NAME, "memory", 50, 27.34, 2.14),
        (looped::NAME, "file", 50, 28.10, 2.13),
        (looped::NAME, "memory", 1_024, 28.60, 2.76),
        (looped::NAME, "file", 1_024, 29.12, 2.83),
        (looped::NAME, "memory", 51_200, 96.38, 32.91),
        (looped::NAME, "file", 51_200, 97.21, 33.40),
        (looped::NAME, "memory", 524_288, 736.57, 336.87),
        (looped::NAME, "file", 524_288, 734.50, 337.13),
        (sequence::NAME, "memory", 50, 27.40, 2.03),
        (sequence::NAME, "file", 50, 27.55, 1.84),
        (sequence::NAME, "memory", 1_024, 25.45, 2.66),
        (sequence::NAME, "file", 1_024, 28.81, 2.68),
        (sequence::NAME, "memory", 51_200, 94.42, 32.42),
        (sequence::NAME, "file", 51_200, 94.49, 32.42),
        (sequence::NAME, "memory", 524_288, 750.89, 275.24),
        (sequence::NAME, "file", 524_288, 785.33, 310.23),
    ]
    .into_iter()
    .map(row)
}
