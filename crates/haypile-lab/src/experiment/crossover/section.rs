//! The section of `crossover` in the report.

use haypile_measure::figure;
use haypile_measure::result::Sample;
use haypile_number::Quantity;

use super::{Crossover, FoundCrossovers, find};
use crate::report::body::curves::{VALUE_BYTES, picture, series};
use crate::report::body::{details, front};
use crate::report::case::{Case, varying};
use crate::report::chart::Spot;
use crate::report::section::Body;

/// Returns the report's section on the experiment `crossover`, with the crossovers found in its
/// samples.
pub(super) fn body(samples: &[&Sample], cases: &[Case<'_>]) -> Body {
    let found = find(samples.iter().copied());
    let spots = found.iter().flat_map(|found| found.crossovers.iter().map(|at| spot(found, at)));
    let axis = ("wall time of a hit", Quantity::Time);
    let series = series(&cases.iter().collect::<Vec<_>>(), VALUE_BYTES, &figure::WALL, "");
    let title = "The cost of a hit by the size of its value".to_owned();
    let (figure, left_out) = picture(title, VALUE_BYTES, axis, series, spots.collect());
    let varying = varying(cases);
    let mut answers: Vec<String> = found.iter().map(FoundCrossovers::answer).collect();
    let answer = match answers.len() {
        0 => "Two caches that can be compared were not measured.".to_owned(),
        1 => format!("{}.", answers.remove(0)),
        _ => "By size of the entry:".to_owned(),
    };
    let mut body = Body {
        answer,
        answers,
        figures: figure.into_iter().collect(),
        left_out: left_out.into_iter().collect(),
        tables: vec![front::table(cases.iter(), &varying, &figure::WALL)],
        ..Body::default()
    };
    details::details(&mut body, cases, &varying);
    body
}

fn spot(found: &FoundCrossovers, crossover: &Crossover) -> Spot {
    let change = if crossover.is_slower_after { "slower" } else { "not shown to be slower" };
    Spot {
        at: crossover.to_bytes.into(),
        interval: Some((crossover.from_bytes.into(), crossover.to_bytes.into())),
        label: format!("{} {change} than {}", found.subject, found.baseline),
    }
}
