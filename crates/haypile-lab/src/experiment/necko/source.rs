//! What document 000 printed for its Linux server, to hold ours against it.

use super::{LOOP, SEQUENCE};

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
        (LOOP, "memory", 50, 27.34, 2.14),
        (LOOP, "file", 50, 28.10, 2.13),
        (LOOP, "memory", 1_024, 28.60, 2.76),
        (LOOP, "file", 1_024, 29.12, 2.83),
        (LOOP, "memory", 51_200, 96.38, 32.91),
        (LOOP, "file", 51_200, 97.21, 33.40),
        (LOOP, "memory", 524_288, 736.57, 336.87),
        (LOOP, "file", 524_288, 734.50, 337.13),
        (SEQUENCE, "memory", 50, 27.40, 2.03),
        (SEQUENCE, "file", 50, 27.55, 1.84),
        (SEQUENCE, "memory", 1_024, 25.45, 2.66),
        (SEQUENCE, "file", 1_024, 28.81, 2.68),
        (SEQUENCE, "memory", 51_200, 94.42, 32.42),
        (SEQUENCE, "file", 51_200, 94.49, 32.42),
        (SEQUENCE, "memory", 524_288, 750.89, 275.24),
        (SEQUENCE, "file", 524_288, 785.33, 310.23),
    ]
    .into_iter()
    .map(row)
}
