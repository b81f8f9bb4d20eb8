//! Times in the form of hyperfine's JSON, which other tools read and draw.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::{Effect, Rule, Summary};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::condition::Condition;
use super::difference::cases;
use super::options::StartupOptions;
use crate::experiment::{Ended, Host, Printout};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The least number of runs that have an interval.
const MIN_RUNS: usize = 6;

/// A file of hyperfine, of version 1.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HyperfineFile {
    results: Vec<HyperfineResult>,
}

impl HyperfineFile {
    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }
}

/// A command in it. All times are seconds.
#[derive(Debug, Serialize, Deserialize)]
struct HyperfineResult {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Option<Vec<f64>>,
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
}

impl HyperfineResult {
    /// Refuses times that no command takes, and those of commands that failed.
    fn check(&self) -> anyhow::Result<()> {
        let times = self.times.iter().flatten();
        let of_command = [self.mean, self.median, self.user, self.system, self.min, self.max];
        let mut all = times.chain(&of_command).chain(self.stddev.as_ref());
        // They are printed in milliseconds.
        if let Some(time) = all.find(|time| !(**time >= 0.0 && (**time * 1e3).is_finite())) {
            bail!("{time} is not a time");
        }
        let failed = |code: &&Option<i32>| **code != Some(0);
        if let Some(code) = self.exit_codes.iter().find(failed) {
            let code = code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
            bail!("a run failed ({code}), so that its times say nothing");
        }
        Ok(())
    }
}

/// Returns all conditions as commands. The processor time is in `user`: we do not tell it from
/// `system`, which is 0.
pub(super) fn export(samples: &[Sample]) -> HyperfineFile {
    let mut results = Vec::new();
    for case in &cases(samples) {
        for condition in Condition::ALL {
            let own = case.samples(condition);
            let name = format!("{}, {}, {condition}", case.name, case.page_cache);
            results.extend(result(name, own));
        }
    }
    HyperfineFile { results }
}

fn result(command: String, samples: &Samples<'_>) -> Option<HyperfineResult> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let good: Vec<&&Sample> = samples.iter().filter(|sample| sample.error.is_none()).collect();
    let times: Vec<f64> = good.iter().map(|sample| seconds(sample.wall_ns)).collect();
    let summary = Summary::of(&times)?;
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let squares: f64 = times.iter().map(|time| (time - mean).powi(2)).sum();
    Some(HyperfineResult {
        command,
        mean,
        stddev: (times.len() > 1).then(|| (squares / (count - 1.0)).sqrt()),
        median: summary.median,
        user: good.iter().map(|sample| seconds(sample.cpu_ns)).sum::<f64>() / count,
        system: 0.0,
        min: summary.min,
        max: summary.max,
        exit_codes: times.iter().map(|_| Some(0)).collect(),
        times: Some(times),
    })
}

/// Compares the commands of a file with its first one, and prints that.
///
/// # Errors
///
/// The file cannot be read, or is not one of hyperfine.
pub(super) fn compare(
    path: &Path,
    options: &StartupOptions,
    host: &dyn Host,
) -> anyhow::Result<Ended> {
    let shown = path.display();
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| shown.to_string())?;
    file.take(MAX_BYTES + 1).read_to_end(&mut text).with_context(|| shown.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        bail!("{shown}: it is larger than {MAX_BYTES} bytes");
    }
    let file: HyperfineFile = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not a file of hyperfine (--export-json)"))?;
    let Some(first) = file.results.first() else { bail!("{shown} has no results") };
    for result in &file.results {
        result.check().with_context(|| format!("{shown}: '{}'", result.command.escape_debug()))?;
    }
    let times = |result: &HyperfineResult| result.times.clone().unwrap_or_default();
    let baseline = times(first);
    let effect = |result: &HyperfineResult| Effect::unpaired(&baseline, &times(result)).ok();
    // As of our own starts: fewer runs have no interval, and no verdict.
    let is_enough = |effect: &&Effect| effect.samples() >= MIN_RUNS;
    if options.run.json {
        let all = file.results.iter().map(|result| {
            let effect = effect(result);
            json!({
                "command": result.command, "median_ms": result.median * 1e3,
                "change": effect.as_ref().map(|effect| effect.ratio() - 1.0),
                "interval": effect.as_ref().filter(is_enough).and_then(Effect::interval)
                    .map(|it| [it.low, it.high]),
                "verdict": effect.as_ref().filter(is_enough)
                    .map(|effect| Rule::default().judge(effect).to_string()),
            })
        });
        host.print_json(
            &json!({ "baseline": first.command, "commands": all.collect::<Vec<_>>() }),
        )?;
        return Ok(Ended::Well);
    }
    let row = |result: &HyperfineResult| {
        let effect = effect(result).filter(|_| !std::ptr::eq(result, first));
        let percent = |part: f64| format!("{:+.1} %", part * 100.0);
        let judged = effect.as_ref().filter(is_enough);
        let interval = judged.and_then(Effect::interval);
        vec![
            result.command.clone(),
            format!("{:.2}", result.median * 1e3),
            times(result).len().to_string(),
            effect.as_ref().map_or("-".to_owned(), |effect| percent(effect.ratio() - 1.0)),
            interval.map_or("-".to_owned(), |it| {
                format!("{} to {}", percent(it.low), percent(it.high))
            }),
            judged.map_or("-".to_owned(), |it| Rule::default().judge(it).to_string()),
        ]
    };
    let mut printout = Printout::default();
    let header = ["Command", "median ms", "runs", "change", "95 % interval", "verdict"];
    printout.table(header, 1, 1, file.results.iter().map(row).collect());
    printout.text(
        "Compared with the first command. hyperfine's runs are not paired: what changed between them is \
         part of the change.\n",
    );
    host.print(&printout)?;
    Ok(Ended::Well)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_that_no_command_takes_and_failed_runs_are_refused() {
        let check = |part: serde_json::Value| {
            let mut result = json!({
                "command": "a", "mean": 1.0, "median": 1.0, "user": 0.0, "system": 0.0,
                "min": 1.0, "max": 1.0, "stddev": null, "times": [1.0], "exit_codes": [0],
            });
            result.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            serde_json::from_value::<HyperfineResult>(result).unwrap().check()
        };
        check(json!({})).unwrap();
        check(json!({ "times": null, "exit_codes": [] })).unwrap();
        for (part, text) in [
            (json!({ "times": [1.0, -1.0] }), "-1 is not a time"),
            (json!({ "median": 1e308 }), "is not a time"),
            (json!({ "mean": -0.5 }), "-0.5 is not a time"),
            (json!({ "exit_codes": [0, 3] }), "exit code 3"),
            (json!({ "exit_codes": [0, null] }), "a signal"),
        ] {
            let error = check(part).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn what_is_exported_is_hyperfines_form_and_is_read_again() {
        let sample = |condition: Condition, block: u64, wall_ns: u64| -> Sample {
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "startup", "case": "x", "seed": 1,
                "position": 0, "parameters": { "page_cache": "warm", "ready": "exit" },
                "subject": {
                    "name": condition.name(), "program": "haypile", "language": "", "version": ""
                },
                "block": block, "operations": 1, "wall_ns": wall_ns, "cpu_ns": 1_000_000,
                "hits": 0, "misses": 0,
            }))
            .unwrap()
        };
        let samples = [
            sample(Condition::With, 0, 10_000_000),
            sample(Condition::With, 1, 30_000_000),
            sample(Condition::Off, 0, 50_000_000),
        ];
        let text = serde_json::to_string(&export(&samples)).unwrap();
        let file: HyperfineFile = serde_json::from_str(&text).unwrap();
        let names: Vec<&str> = file.results.iter().map(|it| it.command.as_str()).collect();
        assert_eq!(names, ["x, warm, with", "x, warm, off"]);
        let with = &file.results[0];
        assert_eq!(with.times, Some(vec![0.01, 0.03]));
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        assert!(close(with.mean, 0.02) && close(with.user, 0.001) && close(with.max, 0.03));
        assert!(close(with.stddev.unwrap(), 0.000_2_f64.sqrt()), "{with:?}");
        assert_eq!(file.results[1].stddev, None);
    }
}
