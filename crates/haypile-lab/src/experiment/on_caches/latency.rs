//! Times of single operations, for people.

use std::time::Instant;

use haypile_measure::parameters;
use haypile_measure::result::{Latency, Sample, Samples};
use haypile_measure::statistics::Summary;

use crate::experiment::Printout;

/// The names of the columns behind the subject and the operation.
const COLUMNS: [&str; 6] = ["Subject", "Operation", "p50 ns", "p99 ns", "p99.9 ns", "Longest ns"];

/// Looks at the clock to find out what one takes.
const LOOKS: usize = 1001;

/// Adds a table for each case whose single operations were timed.
pub(super) fn latencies(samples: &[Sample], printout: &mut Printout) {
    let timed: Samples<'_> = samples.iter().filter(|it| it.latency_ns.is_some()).collect();
    let cases = timed.cases();
    if cases.is_empty() {
        return;
    }
    let (_, varying) = parameters::part(cases.iter().map(|case| &case[0].parameters));
    for case in &cases {
        let parts = varying.iter().filter_map(|name| {
            let value = case[0].parameters.get(name)?;
            Some(format!(" {name}={}", parameters::text(value)))
        });
        let heading = format!("{}, single operations{}\n", case[0].case, parts.collect::<String>());
        let rows = case.by_subject().iter().flat_map(|(_, own)| rows(own)).collect();
        printout.gap().text(heading).table(COLUMNS, 2, 2, rows);
    }
    printout.gap().text(format!(
        "Single operations: medians of the blocks' percentiles, and the longest of all. Each contains one look \
         at the clock, of about {} ns here.\n",
        look_ns()
    ));
}

/// A row for each operation of a subject.
fn rows(samples: &Samples<'_>) -> Vec<Vec<String>> {
    let mut operations: Vec<&String> =
        samples.iter().filter_map(|it| it.latency_ns.as_ref()).flat_map(|it| it.keys()).collect();
    operations.sort_unstable();
    operations.dedup();
    let row = |operation: &&String| {
        let own: Vec<&Latency> =
            samples.iter().filter_map(|it| it.latency_ns.as_ref()?.get(*operation)).collect();
        let median = |of: fn(&Latency) -> u64| {
            let values: Vec<f64> = own.iter().map(|it| of(it) as f64).collect();
            Summary::of(&values).map_or_else(String::new, |it| format!("{:.0}", it.median))
        };
        vec![
            samples[0].subject.name.clone(),
            (*operation).clone(),
            median(|it| it.p50),
            median(|it| it.p99),
            median(|it| it.p999),
            own.iter().map(|it| it.max).max().unwrap_or(0).to_string(),
        ]
    };
    operations.iter().map(row).collect()
}

/// The time that one look at the clock takes.
fn look_ns() -> u128 {
    let mut last = Instant::now();
    let mut times: Vec<u128> = (0..LOOKS)
        .map(|_| {
            let now = Instant::now();
            (now - std::mem::replace(&mut last, now)).as_nanos()
        })
        .collect();
    times.sort_unstable();
    times[LOOKS / 2]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn percentiles_are_medians_over_blocks_and_the_longest_is_of_all() {
        let sample = |block: u64, p50: u64, max: u64| -> Sample {
            let latency = json!({"count": 9, "p50": p50, "p90": 2, "p99": 3, "p999": 4, "max": max, "mean": 1.5});
            serde_json::from_value(json!({
                "schema": 1, "run": "r", "experiment": "micro", "case": "get-hit", "parameters": {"keys": 1},
                "seed": 1, "block": block, "position": 0,
                "subject": {"name": "memory", "version": "", "language": "", "program": "haypile"},
                "operations": 9, "wall_ns": 1, "cpu_ns": 1, "hits": 0, "misses": 0,
                "latency_ns": {"get": latency},
            }))
            .unwrap()
        };
        let samples = [sample(0, 100, 7), sample(1, 300, 9), sample(2, 200, 8)];
        let rows = rows(&samples.iter().collect());
        assert_eq!(rows, [["memory", "get", "200", "3", "4", "9"].map(str::to_owned)]);
        let mut printout = Printout::default();
        latencies(&samples, &mut printout);
        assert_ne!(printout, Printout::default());
        let mut nothing = Printout::default();
        latencies(&[Sample { latency_ns: None, ..samples[0].clone() }], &mut nothing);
        assert_eq!(nothing, Printout::default());
    }
}
