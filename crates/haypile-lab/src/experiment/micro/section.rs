//! `micro`: throughput by case.

use crate::report::body::figures::{MAX_MULTIPLES, Measure, SECOND_NS, bars, beyond};
use crate::report::body::{cost, details, front};
use crate::report::case::{Case, varying};
use crate::report::number::{Quantity, count};
use crate::report::section::Body;

/// Operations per second, by the clocks.
const RATES: [Measure; 2] = [
    Measure {
        name: "operations per second of processor time",
        of: |entrant| Some(entrant.estimate(cost::cpu)?.inverse(SECOND_NS)),
    },
    Measure {
        name: "operations per second",
        of: |entrant| Some(entrant.estimate(cost::wall)?.inverse(SECOND_NS)),
    },
];

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let what = "processor time per operation";
    let mut body = Body {
        answer: front::of_cases(cases.iter(), cost::cpu, Quantity::Time, what),
        tables: vec![front::table(cases.iter(), &varying, cost::cpu, Quantity::Time, what)],
        ..Body::default()
    };
    for case in cases.iter().take(MAX_MULTIPLES) {
        let title = case.title(&varying);
        let (figure, left_out) = bars(case, title, Quantity::Rate, &RATES, cost::cpu);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    if let Some(beyond) = beyond(cases.len(), MAX_MULTIPLES) {
        body.left_out.push(format!(
            "{} have no chart; the tables have them.",
            count(beyond, "further case")
        ));
    }
    details::details(&mut body, cases, &varying);
    body
}
