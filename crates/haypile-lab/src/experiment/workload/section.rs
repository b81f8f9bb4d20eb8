//! The section of `workload` in the report: time per operation of the source, and the findings of
//! the proof.

use haypile_measure::figure::{self, Figure};
use haypile_number::Quantity;

use super::source;
use crate::report::body::details::details_of;
use crate::report::body::figures::{MAX_MULTIPLES, bars, picture, written};
use crate::report::body::front;
use crate::report::case::{Case, Entrant, varying};
use crate::report::chart::Bar;
use crate::report::number::list;
use crate::report::section::Body;

/// The case that is about hits and not about time.
const PROOF: &str = "proof";

const TIMES: [&Figure; 2] = [&figure::SOURCE_CPU, &figure::SOURCE_WALL];

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let timed: Vec<&Case<'_>> = cases.iter().filter(|case| case.name != PROOF).collect();
    let mut parts: Vec<String> = Vec::new();
    let answer = "Processor time per operation of the source:".to_owned();
    let mut body = Body { answer, ..Body::default() };
    for case in timed.iter().take(MAX_MULTIPLES) {
        let found = front::of_case(case, TIMES[0], TIMES[0]);
        parts.extend(found.map(|found| format!("{}: {found}", case.title(&varying))));
        let (figure, left_out) = bars(case, case.title(&varying), &TIMES, TIMES[0]);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    if let Some(proof) = cases.iter().find(|case| case.name == PROOF) {
        let ratio = |entrant: &Entrant<'_>| entrant.estimate(&figure::HIT_RATIO);
        let with = proof.entrants.iter().filter(|entrant| ratio(entrant).is_some());
        let found: Vec<String> = with
            .clone()
            .map(|entrant| format!("{} {}", entrant.label, written(entrant, &figure::HIT_RATIO)))
            .collect();
        if !found.is_empty() {
            parts.push(format!("proof, of the first group there is still: {}", list(&found)));
            let bar = |entrant: &Entrant<'_>| Bar::new(entrant.label.clone(), vec![ratio(entrant)]);
            let bars = with.map(bar).collect();
            let title = "proof: found of the first group".to_owned();
            body.multiples.push(picture(
                title,
                Quantity::HitRatio,
                vec!["hit ratio".to_owned()],
                bars,
            ));
        }
    }
    body.answers = parts;
    body.tables.push(front::table(timed.into_iter(), &varying, TIMES[0]));
    body.tables.push(source::table());
    details_of(&mut body, cases, &varying, TIMES);
    body
}
