//! The section of `micro` in the report: throughput by case.

use haypile_measure::figure::{self, Figure};

use crate::report::body::figures::{MAX_MULTIPLES, bars, beyond};
use crate::report::body::{details, front};
use crate::report::case::{Case, varying};
use crate::report::number::count;
use crate::report::section::Body;

/// By both clocks.
const RATES: [&Figure; 2] = [&figure::CPU_RATE, &figure::WALL_RATE];

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let mut body = Body {
        answer: "Processor time per operation:".to_owned(),
        answers: front::of_cases(cases.iter(), &varying, &figure::CPU, &figure::CPU),
        tables: vec![front::table(cases.iter(), &varying, &figure::CPU)],
        ..Body::default()
    };
    for case in cases.iter().take(MAX_MULTIPLES) {
        let title = case.title(&varying);
        let (figure, left_out) = bars(case, title, &RATES, &figure::CPU);
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
