//! `stampede`: how often an expired key was computed.

use super::super::case::{Case, Entrant, varying};
use super::super::chart::Bar;
use super::super::estimate::Estimate;
use super::super::number::Quantity;
use super::super::section::Body;
use super::super::table::{NOTHING, Table};
use super::figures::{MAX_BARS, MAX_MULTIPLES, figure};
use haypile_sim::number::grouped;

/// What rows call the computations and the rounds.
const COMPUTED: &str = "computed";
const ASKED: &str = "asked";

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let mut body = Body::default();
    let mut parts: Vec<String> = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for case in cases {
        let mut bars = Vec::new();
        for entrant in &case.entrants {
            let each = per_round(entrant);
            if let Some((computed, asked)) = counts(entrant) {
                let title = case.title(&varying);
                parts.push(format!(
                    "{title}: {} computed it {} in {} rounds",
                    entrant.label,
                    times(computed),
                    grouped(asked)
                ));
            }
            let number = |name| entrant.count(name).map_or_else(|| NOTHING.to_owned(), grouped);
            rows.push(vec![
                case.title(&varying),
                entrant.label.clone(),
                number(ASKED),
                number(COMPUTED),
                each.map_or_else(|| NOTHING.to_owned(), |each| Quantity::Count.write(each)),
                entrant.errors().to_string(),
            ]);
            let value = each.map(Estimate::exact);
            bars.push(Bar { label: entrant.label.clone(), values: vec![value] });
        }
        bars.truncate(MAX_BARS);
        if body.multiples.len() < MAX_MULTIPLES && bars.iter().any(|bar| bar.values[0].is_some()) {
            let title = format!("Computations per round: {}", case.title(&varying));
            let measures = vec!["computations per round".to_owned()];
            body.multiples.push(figure(title, Quantity::Count, measures, bars));
        }
    }
    (body.answer, body.answers) = match parts.as_slice() {
        [] => ("Nothing was measured.".to_owned(), parts),
        [one] => (format!("{one}."), Vec::new()),
        _ => ("The expired key was computed so often:".to_owned(), parts),
    };
    let caption =
        "How often one expired key was computed; one computation per round is the best".to_owned();
    let names = ["Case", "Subject", "Rounds", "Computed", "Per round", "Errors"];
    body.tables.push(Table::of_numbers(caption, &names, rows).with_text_in(&[1]));
    body
}

fn times(computed: u64) -> String {
    if computed == 1 { "once".to_owned() } else { format!("{} times", grouped(computed)) }
}

/// Computations and rounds, of samples that are no errors.
fn counts(entrant: &Entrant<'_>) -> Option<(u64, u64)> {
    let sum = |name| {
        let counts = entrant.good().filter_map(|sample| sample.counts.get(name));
        counts.copied().reduce(u64::saturating_add)
    };
    sum(COMPUTED).zip(sum(ASKED)).filter(|(_, asked)| *asked > 0)
}

#[expect(clippy::cast_precision_loss, reason = "counts below 2^53")]
fn per_round(entrant: &Entrant<'_>) -> Option<f64> {
    counts(entrant).map(|(computed, asked)| computed as f64 / asked as f64)
}
