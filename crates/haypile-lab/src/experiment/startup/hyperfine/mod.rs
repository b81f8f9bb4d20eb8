//! Times in the forms of hyperfine's JSON, which other tools read and draw: that of version 1 and that of version 2.

mod compare;
mod one;
mod two;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::Summary;
use serde::Deserialize;

use super::condition::Condition;
use super::difference::{StartCase, cases};
use super::exports::HyperfineSchema;

pub(super) use compare::compare;

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// A command in a file, of either form.
#[derive(Clone, Debug, Default, PartialEq)]
struct Timed {
    command: String,
    /// The seconds of each run; empty if the file has only their median.
    times: Vec<f64>,
    /// The median of the runs, in seconds.
    median: f64,
    /// Median of the most memory of each run, in bytes.
    memory: Option<f64>,
    /// The exit status of each run, which an end by a signal does not have; empty in files of early versions.
    exit_codes: Vec<Option<i32>>,
}

impl Timed {
    /// Refuses times that no command takes, and those of commands that failed.
    fn check(&self, accepts_failure: bool) -> anyhow::Result<()> {
        let mut all = self.times.iter().chain([&self.median]);
        // They are printed in nanoseconds.
        let is_wrong = |value: &&f64| !(**value >= 0.0 && (**value * 1e9).is_finite());
        if let Some(time) = all.find(is_wrong) {
            bail!(
                "the file of hyperfine has a time of {time} s; a time has to be 0 or more; measure \
                 again"
            );
        }
        if let Some(memory) = self.memory.iter().find(is_wrong) {
            bail!(
                "the file of hyperfine has a memory use of {memory} bytes; it has to be 0 or more; \
                 measure again"
            );
        }
        let failed =
            |code: &&Option<i32>| **code != Some(0) && !(accepts_failure && code.is_some());
        if let Some(code) = self.exit_codes.iter().find(failed) {
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            bail!(
                "a run in the file of hyperfine failed ({code}), so that its command cannot be \
                 compared; --ignore-failure accepts exit codes"
            );
        }
        Ok(())
    }
}

/// The version of a file.
#[derive(Deserialize)]
struct Version {
    #[serde(default = "Version::first")]
    schema_version: u32,
}

impl Version {
    fn first() -> u32 {
        1
    }
}

/// Reads the commands of a file.
///
/// # Errors
///
/// The file cannot be read, or is not one of hyperfine's.
fn read(path: &Path) -> anyhow::Result<Vec<Timed>> {
    let shown = path.display();
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| shown.to_string())?;
    file.take(MAX_BYTES + 1).read_to_end(&mut text).with_context(|| shown.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{shown} is larger than {MAX_BYTES} bytes, the limit for a file of hyperfine");
    }
    let what = || format!("{shown} is not a file of hyperfine (--export-json)");
    let version: Version = serde_json::from_slice(&text).with_context(what)?;
    let all = match version.schema_version {
        1 => one::read(&text).with_context(what)?,
        2 => two::read(&text).with_context(what)?,
        other => bail!("{shown} has the unknown schema_version {other} of hyperfine (known: 1, 2)"),
    };
    if all.is_empty() {
        bail!("{shown} has no results of hyperfine; measure the commands again with --export-json");
    }
    Ok(all)
}

/// Returns the measured starts in hyperfine's JSON format, with each condition as a command; `None`
/// if no start succeeded.
///
/// # Errors
///
/// It cannot be written as JSON.
pub(super) fn export(
    samples: &[Sample],
    schema: HyperfineSchema,
) -> serde_json::Result<Option<String>> {
    let cases = cases(samples);
    let runs: Vec<Runs<'_>> = cases.iter().flat_map(Runs::of).collect();
    if runs.is_empty() {
        return Ok(None);
    }
    let text = match schema {
        HyperfineSchema::One => serde_json::to_string_pretty(&one::write(&runs))?,
        HyperfineSchema::Two => serde_json::to_string_pretty(&two::write(&runs))?,
    };
    Ok(Some(text + "\n"))
}

/// The runs of a condition that have a result, and what hyperfine would call them.
struct Runs<'a> {
    name: String,
    samples: Samples<'a>,
}

/// The figures of a quantity's runs that both forms have.
struct Moments {
    mean: f64,
    /// The standard deviation, in seconds; `None` of a single run.
    stddev: Option<f64>,
    median: f64,
    min: f64,
    max: f64,
}

impl<'a> Runs<'a> {
    fn of(case: &StartCase<'a>) -> Vec<Self> {
        let of_condition = |condition: Condition| {
            let good = case.samples(condition).iter().filter(|sample| sample.error.is_none());
            let name = match (&case.pair, condition) {
                (Some([first, _]), Condition::First) => first.clone(),
                (Some([first, _]), Condition::FirstAgain) => format!("{first} (again)"),
                (Some([_, second]), _) => second.clone(),
                (None, _) => format!("{}, {}, {condition}", case.name, case.page_cache),
            };
            Self { name, samples: good.copied().collect() }
        };
        let all = Condition::ALL.into_iter().map(of_condition);
        all.filter(|runs| !runs.samples.is_empty()).collect()
    }

    /// Returns the seconds of each run.
    fn times(&self) -> Vec<f64> {
        self.samples.iter().map(|sample| seconds(sample.wall_ns)).collect()
    }

    /// Returns the mean of the processor time in seconds.
    fn mean_cpu(&self) -> f64 {
        let all = self.samples.iter().map(|sample| seconds(sample.cpu_ns));
        all.sum::<f64>() / self.samples.len() as f64
    }
}

impl Moments {
    fn of(values: &[f64]) -> Option<Self> {
        let summary = Summary::of(values)?;
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let stddev = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, stddev, median: summary.median, min: summary.min, max: summary.max })
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Returns the exit status of a start; 0 in results of earlier versions, which accepted no other.
fn exit_code(sample: &Sample) -> i32 {
    let code = sample.counts.get("exit_code").copied().unwrap_or(0);
    i32::try_from(code).unwrap_or(i32::MAX)
}

/// Returns the median of values, if there are any.
fn median(values: &[f64]) -> Option<f64> {
    Summary::of(values).map(|summary| summary.median)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_that_no_command_takes_and_failed_runs_are_refused() {
        let good =
            Timed { times: vec![1.0], median: 1.0, exit_codes: vec![Some(0)], ..Timed::default() };
        good.check(false).unwrap();
        Timed { times: Vec::new(), exit_codes: Vec::new(), ..good.clone() }.check(false).unwrap();
        let error = |timed: Timed| timed.check(false).unwrap_err().to_string();
        for (timed, text) in [
            (Timed { times: vec![1.0, -1.0], ..good.clone() }, "a time of -1 s; a time has"),
            (Timed { median: 1e308, ..good.clone() }, "s; a time has to be 0 or more"),
            (Timed { median: -0.5, ..good.clone() }, "a time of -0.5 s; a time has"),
            (Timed { exit_codes: vec![Some(0), Some(3)], ..good.clone() }, "exit code 3"),
            (Timed { exit_codes: vec![None], ..good.clone() }, "a signal"),
            (Timed { memory: Some(-5.0), ..good.clone() }, "of -5 bytes"),
        ] {
            let error = error(timed);
            assert!(error.contains(text), "{error}");
        }
        let failed = Timed { exit_codes: vec![Some(3)], ..good.clone() };
        failed.check(true).unwrap();
        let killed = Timed { exit_codes: vec![None], ..good };
        assert!(killed.check(true).unwrap_err().to_string().contains("a signal"));
    }

    /// A start of 10, 30 and 50 ms.
    fn samples() -> Vec<Sample> {
        let sample = |condition: Condition, block: u64, wall_ns: u64| -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "startup", "case": "x", "seed": 1,
                "position": 0, "parameters": { "page_cache": "warm", "ready": "exit" },
                "subject": {
                    "name": condition.name(), "program": "haypile", "language": "", "version": ""
                },
                "block": block, "operations": 1, "wall_ns": wall_ns, "cpu_ns": 1_000_000,
                "memory_bytes": 1 << 20, "hits": 0, "misses": 0, "counts": { "exit_code": 3 },
            }))
            .unwrap()
        };
        vec![
            sample(Condition::With, 0, 10_000_000),
            sample(Condition::With, 1, 30_000_000),
            sample(Condition::Off, 0, 50_000_000),
        ]
    }

    #[test]
    fn what_is_exported_in_either_form_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        for schema in [HyperfineSchema::One, HyperfineSchema::Two] {
            let path = folder.path().join("times.json");
            std::fs::write(&path, export(&samples(), schema).unwrap().unwrap()).unwrap();
            let read = read(&path).unwrap();
            let memory = Some(f64::from(1 << 20));
            let with = Timed {
                command: "x, warm, with".to_owned(),
                times: vec![0.01, 0.03],
                median: 0.02,
                memory,
                exit_codes: vec![Some(3); 2],
            };
            let off = Timed {
                command: "x, warm, off".to_owned(),
                times: vec![0.05],
                median: 0.05,
                memory,
                exit_codes: vec![Some(3)],
            };
            assert_eq!(read, [with, off], "{schema:?}");
        }
        assert_eq!(export(&[], HyperfineSchema::Two).unwrap(), None);
    }

    #[test]
    fn a_form_of_the_future_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.json");
        std::fs::write(&path, r#"{"schema_version": 3, "results": []}"#).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("the unknown schema_version 3 of hyperfine (known: 1, 2)"),
            "{error}"
        );
    }
}
