//! Results that the Necko benchmarks printed for its two machines, to compare ours with.

use std::sync::LazyLock;

/// One row of the published tables of the Necko benchmarks (of Firefox's network library).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SourceRow {
    /// The experiment of ours that repeats the row's measurement: `loop` or `sequence`.
    pub experiment: &'static str,
    /// The machine on which the row of the Necko benchmarks was measured.
    pub machine: SourceMachine,
    /// The size of the resource that was read or written, in bytes.
    pub value_bytes: u64,
    /// The name that this program's results use for the measured case, such as `miss (no-store)`.
    pub case: &'static str,
    /// The cache that the row's figures are for: `none`, `memory` or `file`.
    pub cache: &'static str,
    /// Total time of all repetitions of the measured operation, in milliseconds.
    pub total_ms: f64,
    /// Number of repetitions of the measured operation.
    pub runs: u64,
    /// Time of one repetition of the measured operation, in milliseconds.
    pub run_ms: f64,
}

/// A machine on which the Necko benchmarks were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceMachine {
    /// A server with Ubuntu 10.4, 64 bits.
    Ubuntu,
    /// A phone, the Nexus S.
    NexusS,
}

static ROWS: LazyLock<Vec<SourceRow>> = LazyLock::new(|| {
    // The first two lines are a comment and the names of the columns.
    let lines = include_str!("source.csv").lines().skip(2);
    lines.map(|line| row(line).expect("a test reads all lines")).collect()
});

/// Returns all rows of the published tables of the Necko benchmarks.
pub fn source_rows() -> impl Iterator<Item = SourceRow> {
    ROWS.iter().copied()
}

fn row(line: &'static str) -> Option<SourceRow> {
    let fields: Vec<&'static str> = line.split(',').collect();
    let [experiment, machine, value_bytes, case, cache, total_ms, runs, run_ms] = fields[..] else {
        return None;
    };
    let machine = match machine {
        "ubuntu" => SourceMachine::Ubuntu,
        "nexus-s" => SourceMachine::NexusS,
        _ => return None,
    };
    Some(SourceRow {
        experiment,
        machine,
        value_bytes: value_bytes.parse().ok()?,
        case,
        cache,
        total_ms: total_ms.parse().ok()?,
        runs: runs.parse().ok()?,
        run_ms: run_ms.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_has_four_tables_whose_times_agree_with_their_runs() {
        assert_eq!(source_rows().count(), 96);
        for row in source_rows() {
            let per_run = row.total_ms / row.runs as f64;
            assert!((per_run - row.run_ms).abs() < 0.02, "{row:?}");
        }
    }
}
