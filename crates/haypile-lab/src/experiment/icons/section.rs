//! The section of the report.

use haypile_measure::result::Samples;
use haypile_number::Quantity;
use haypile_sim::plot::drawing::text::printable;

use super::game::{self, game_table, is_game};
use super::printout::{IconCase, cases as icon_cases};
use crate::report::body::details;
use crate::report::case::{Case, varying};
use crate::report::section::Body;

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let icons: Samples<'_> = samples.iter().copied().filter(|sample| !is_game(sample)).collect();
    let found = icon_cases(&icons);
    let answers = found.iter().filter_map(answer).chain(game::answer(samples));
    let answers: Vec<String> = answers.collect();
    let mut body = Body {
        answer: if answers.is_empty() {
            "No way of getting icons was measured with and without a cache.".to_owned()
        } else {
            "Time until all icons are there, without a cache and with one:".to_owned()
        },
        answers,
        ..Body::default()
    };
    let tables = found.iter().map(IconCase::table).filter(|table| !table.rows.is_empty());
    body.tables.extend(tables);
    body.tables.extend(game_table(samples).map(|game| game.table()));
    details::details(&mut body, cases, &varying(cases));
    body
}

fn answer(case: &IconCase) -> Option<String> {
    let ns = |name: &str| Some(case.ways.iter().find(|way| way.name == name)?.wall()?.value);
    let (scan, both) = (ns("scan")?, ns("both")?);
    let write = |ns: f64| Quantity::Time.write(ns);
    let times = Quantity::Factor.write(scan / both.max(f64::MIN_POSITIVE));
    Some(format!(
        "{}: {} with a scan, {} with the cache ({times} times)",
        printable(&case.title),
        write(scan),
        write(both)
    ))
}
