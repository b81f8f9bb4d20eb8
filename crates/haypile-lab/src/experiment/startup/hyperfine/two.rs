//! The form of hyperfine 2. Times are seconds, memory is bytes.

use std::collections::BTreeMap;

use haypile_measure::result::Sample;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};

use super::{Moments, Runs, Timed, exit_code, median, seconds};

/// A result file in the JSON format of hyperfine 2.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileTwo {
    schema_version: u32,
    primary_metric: String,
    #[serde(skip_deserializing)]
    metadata: Metadata,
    results: Vec<ResultTwo>,
}

/// The program that wrote a file.
#[derive(Debug, Default, Serialize)]
struct Metadata {
    haypile_version: &'static str,
}

/// A command in it.
#[derive(Debug, Serialize, Deserialize)]
struct ResultTwo {
    command: String,
    measurements: Vec<Measurement>,
    #[serde(skip_deserializing)]
    summary: BTreeMap<&'static str, Summarised>,
}

/// A run. Of the processor time we do not tell the user's from the system's, so that both are left out.
#[derive(Debug, Serialize, Deserialize)]
struct Measurement {
    time_wall_clock: Measured,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_cpu: Option<Measured>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_peak_resident: Option<Measured>,
    /// The exit code, or none: a file may not have it. It is null of an end by a signal.
    #[serde(default, deserialize_with = "present", serialize_with = "first")]
    exit_code: Vec<Option<i32>>,
}

/// Reads a value that may be null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<i32>>, D::Error> {
    Option::deserialize(deserializer).map(|code| vec![code])
}

fn first<S: Serializer>(codes: &[Option<i32>], serializer: S) -> Result<S::Ok, S::Error> {
    codes.first().copied().flatten().serialize(serializer)
}

/// A value and its unit.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
}

/// A quantity of all runs.
#[derive(Debug, Serialize)]
struct Summarised {
    unit: &'static str,
    count: usize,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

const SECOND: &str = "second";
const BYTE: &str = "byte";

/// Converts measured starts to the JSON format of hyperfine 2.
pub(super) fn write(all: &[Runs<'_>]) -> FileTwo {
    let value = |value: f64, unit: &str| Measured { value, unit: Some(unit.to_owned()) };
    let bytes = |sample: &Sample| sample.memory_bytes.map(|bytes| bytes as f64);
    let measurement = |sample: &&Sample| Measurement {
        time_wall_clock: value(seconds(sample.wall_ns), SECOND),
        time_cpu: Some(value(seconds(sample.cpu_ns), SECOND)),
        memory_peak_resident: bytes(sample).map(|bytes| value(bytes, BYTE)),
        exit_code: vec![Some(exit_code(sample))],
    };
    let result = |runs: &Runs<'_>| {
        let cpu: Vec<f64> = runs.samples.iter().map(|sample| seconds(sample.cpu_ns)).collect();
        let memory: Option<Vec<f64>> = runs.samples.iter().map(|sample| bytes(sample)).collect();
        let quantities = [
            ("time_wall_clock", SECOND, Some(runs.times())),
            ("time_cpu", SECOND, Some(cpu)),
            ("memory_peak_resident", BYTE, memory),
        ];
        let summarised = quantities.into_iter().filter_map(|(name, unit, values)| {
            let values = values?;
            let Moments { mean, stddev, median, min, max } = Moments::of(&values)?;
            Some((name, Summarised { unit, count: values.len(), mean, stddev, median, min, max }))
        });
        ResultTwo {
            command: runs.name.clone(),
            measurements: runs.samples.iter().map(measurement).collect(),
            summary: summarised.collect(),
        }
    };
    FileTwo {
        schema_version: 2,
        primary_metric: "time_wall_clock".to_owned(),
        metadata: Metadata { haypile_version: env!("CARGO_PKG_VERSION") },
        results: all.iter().map(result).collect(),
    }
}

/// Reads the commands and their times from a result file of hyperfine 2.
pub(super) fn read(text: &[u8]) -> serde_json::Result<Vec<Timed>> {
    let file: FileTwo = serde_json::from_slice(text)?;
    file.results.into_iter().map(timed).collect()
}

fn timed(result: ResultTwo) -> serde_json::Result<Timed> {
    let in_unit = |measured: &Measured, unit: &str| match &measured.unit {
        Some(other) if other != unit => {
            Err(serde_json::Error::custom(format!("a value is in '{other}' and not in '{unit}'")))
        }
        _ => Ok(measured.value),
    };
    let runs = &result.measurements;
    let times = runs.iter().map(|run| in_unit(&run.time_wall_clock, SECOND));
    let times: Vec<f64> = times.collect::<serde_json::Result<_>>()?;
    let memory = runs.iter().filter_map(|run| run.memory_peak_resident.as_ref());
    let memory: Vec<f64> =
        memory.map(|bytes| in_unit(bytes, BYTE)).collect::<serde_json::Result<_>>()?;
    let Some(middle) = median(&times) else {
        let command = result.command.escape_debug();
        return Err(serde_json::Error::custom(format!("'{command}' has no runs")));
    };
    Ok(Timed {
        median: middle,
        memory: median(&memory),
        exit_codes: runs.iter().flat_map(|run| run.exit_code.clone()).collect(),
        times,
        command: result.command,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_that_is_not_there_is_not_an_end_by_a_signal() {
        let read = |code: &str| {
            let text = format!(
                r#"{{"schema_version": 2, "primary_metric": "time_wall_clock", "results": [{{"command": "a",
                    "measurements": [{{"time_wall_clock": {{"value": 1, "unit": "second"}}{code}}}]}}]}}"#
            );
            read(text.as_bytes()).unwrap().remove(0).exit_codes
        };
        assert_eq!(read(""), []);
        assert_eq!(read(r#", "exit_code": null"#), [None]);
        assert_eq!(read(r#", "exit_code": 3"#), [Some(3)]);
    }
}
