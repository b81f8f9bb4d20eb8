//! Times of single operations, for people.

use std::time::Instant;

use haypile_measure::figure::{Operations, PERCENTILES};
use haypile_measure::parameters;
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;

use crate::experiment::Printout;

/// Looks at the clock to find out what one takes.
const LOOKS: usize = 1001;

/// Adds to the printout a table of latency percentiles for each case of which single operations
/// were timed.
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
        let columns = PERCENTILES.iter().map(|percentile| percentile.name);
        let header = ["Subject", "Operation"].into_iter().chain(columns);
        printout.gap().text(heading).table(header, 2, 2, rows);
    }
    printout.gap().text(format!(
        "Single operations: medians of the blocks' percentiles, and the longest of all. Each contains one look \
         at the clock, of about {} ns here.\n",
        look_ns()
    ));
}

/// A row for each kind of operation of a subject.
fn rows(samples: &Samples<'_>) -> Vec<Vec<String>> {
    let row = |kind: &&str| {
        let times = Operations::of(samples, kind)?.percentiles;
        let mut row = vec![samples[0].subject.name.clone(), (*kind).to_owned()];
        row.extend(times.map(|ns| Quantity::Time.write(ns)));
        Some(row)
    };
    Operations::kinds(samples).iter().filter_map(row).collect()
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
