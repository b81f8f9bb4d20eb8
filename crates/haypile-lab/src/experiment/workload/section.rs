//! `workload`: time per operation of the source, and what the proof finds.

use haypile_measure::result::Sample;

use crate::report::body::figures::{MAX_MULTIPLES, Measure, bars, figure, table};
use crate::report::body::front;
use crate::report::case::{Case, varying};
use crate::report::chart::Bar;
use crate::report::estimate::Estimate;
use crate::report::number::{Quantity, list};
use crate::report::section::Body;

/// The case that is about hits and not about time.
const PROOF: &str = "proof";

const TIMES: [Measure; 2] = [
    Measure { name: "processor time", of: |entrant| entrant.estimate(cpu) },
    Measure { name: "wall time", of: |entrant| entrant.estimate(wall) },
];

/// Processor time per operation as the source counts operations.
fn cpu(sample: &Sample) -> Option<f64> {
    per_operation(sample, sample.cpu_ns)
}

fn wall(sample: &Sample) -> Option<f64> {
    per_operation(sample, sample.wall_ns)
}

fn per_operation(sample: &Sample, time_ns: u64) -> Option<f64> {
    let named = sample.parameters.get("source_operations").and_then(serde_json::Value::as_u64);
    let operations = named.unwrap_or(sample.operations);
    (operations > 0).then(|| time_ns as f64 / operations as f64)
}

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let timed: Vec<&Case<'_>> = cases.iter().filter(|case| case.name != PROOF).collect();
    let mut parts: Vec<String> = Vec::new();
    let answer = "By processor time per operation of the source, the least is taken by:".to_owned();
    let mut body = Body { answer, ..Body::default() };
    for case in timed.iter().take(MAX_MULTIPLES) {
        let found = front::of_case(case, cpu, Quantity::Time);
        parts.extend(found.map(|found| format!("{}: {found}", case.title(&varying))));
        let (figure, left_out) = bars(case, case.title(&varying), Quantity::Time, &TIMES, cpu);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    if let Some(proof) = cases.iter().find(|case| case.name == PROOF) {
        let ratios: Vec<(&str, f64)> = proof
            .entrants
            .iter()
            .filter_map(|entrant| Some((entrant.label.as_str(), entrant.hit_ratio()?)))
            .collect();
        let found: Vec<String> = ratios
            .iter()
            .map(|(label, ratio)| format!("{label} {}", Quantity::Share.write(*ratio)))
            .collect();
        if !found.is_empty() {
            parts.push(format!("proof, of the first group there is still: {}", list(&found)));
            let bar = |(label, ratio): &(&str, f64)| Bar {
                label: (*label).to_owned(),
                values: vec![Some(Estimate::exact(*ratio))],
            };
            let bars = ratios.iter().map(bar).collect();
            let title = "proof: found of the first group".to_owned();
            body.multiples.push(figure(title, Quantity::Share, vec!["hit ratio".to_owned()], bars));
        }
    }
    body.answers = parts;
    let what = "processor time per operation of the source";
    body.tables.push(front::table(timed.into_iter(), &varying, cpu, Quantity::Time, what));
    let details = cases.iter().take(crate::report::body::figures::MAX_TABLES);
    body.tables.extend(
        details.map(|case| {
            table(case, &case.title(&varying), "per operation of the source", cpu, wall)
        }),
    );
    body
}
