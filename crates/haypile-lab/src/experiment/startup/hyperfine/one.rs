//! The form of hyperfine 1. All times are seconds.

use serde::{Deserialize, Serialize};

use super::{Moments, Runs, Timed, exit_code, median};

/// A result file in the JSON format of hyperfine 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileOne {
    results: Vec<ResultOne>,
}

/// A command in it.
#[derive(Debug, Serialize, Deserialize)]
struct ResultOne {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Option<Vec<f64>>,
    /// The memory of each run in bytes, from hyperfine 1.20 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_usage_byte: Option<Vec<u64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
}

/// Converts measured starts to the JSON format of hyperfine 1. The whole processor time is in
/// `user`; `system` is 0.
pub(super) fn write(all: &[Runs<'_>]) -> FileOne {
    let result = |runs: &Runs<'_>| {
        let times = runs.times();
        let Moments { mean, stddev, median, min, max } = Moments::of(&times)?;
        Some(ResultOne {
            command: runs.name.clone(),
            mean,
            stddev,
            median,
            user: runs.mean_cpu(),
            system: 0.0,
            min,
            max,
            times: Some(times),
            memory_usage_byte: runs.samples.iter().map(|sample| sample.memory_bytes).collect(),
            exit_codes: runs.samples.iter().map(|sample| Some(exit_code(sample))).collect(),
        })
    };
    FileOne { results: all.iter().filter_map(result).collect() }
}

/// Reads the commands and their times from a result file of hyperfine 1.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Vec<Timed>> {
    let file: FileOne = serde_json::from_slice(text)?;
    let timed = |result: ResultOne| {
        let memory = result.memory_usage_byte.unwrap_or_default();
        let memory: Vec<f64> = memory.into_iter().map(|bytes| bytes as f64).collect();
        Timed {
            command: result.command,
            times: result.times.unwrap_or_default(),
            median: result.median,
            memory: median(&memory),
            exit_codes: result.exit_codes,
        }
    };
    Ok(file.results.into_iter().map(timed).collect())
}
