//! The section of `icons` in the report.

use haypile_measure::figure::{self, Figure};
use haypile_measure::result::Samples;
use haypile_number::{NBSP, Quantity};
use haypile_plot::drawing::text::printable;

use super::game::{self, game_table, is_game};
use super::printout::{IconCase, cases as icon_cases};
use super::way::Way;
use crate::report::body::figures::{MAX_MULTIPLES, bars, beyond};
use crate::report::body::{details, front};
use crate::report::case::{self, Case, Entrant};
use crate::report::number::count;
use crate::report::section::Body;

/// The time until all icons are there.
const ALL_ICONS: &Figure = &figure::PART_WALL;

pub(super) fn body(samples: &Samples<'_>, all: &[Case<'_>]) -> Body {
    let icons: Samples<'_> = samples.iter().copied().filter(|sample| !is_game(sample)).collect();
    let tables = icon_cases(&icons);
    let cases = case::cases(&icons);
    let named = || tables.iter().map(|table| printable(&table.title)).zip(&cases);
    let answers = named().filter_map(|(title, case)| Some(format!("{title}: {}", answer(case)?)));
    let answers: Vec<String> = answers.chain(game::answer(samples)).collect();
    let mut body = Body {
        answer: if answers.is_empty() {
            "No way of getting icons was measured with and without a cache.".to_owned()
        } else {
            "Time until all icons are there, without a cache and with one:".to_owned()
        },
        answers,
        ..Body::default()
    };
    for (title, case) in named().take(MAX_MULTIPLES) {
        let (figure, left_out) = bars(case, title, &[ALL_ICONS], ALL_ICONS);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    if let Some(beyond) = beyond(cases.len(), MAX_MULTIPLES) {
        let cases = count(beyond, "further case");
        body.left_out.push(format!("{cases} have no chart; the tables have them."));
    }
    let tables = tables.iter().map(IconCase::table).filter(|table| !table.rows.is_empty());
    body.tables.extend(tables);
    body.tables.extend(game_table(samples).map(|game| game.table()));
    details::notes(&mut body, all, &case::varying(all));
    body
}

/// Returns the times with a scan of the folders and with the whole cache, and how many times as long the former is.
fn answer(case: &Case<'_>) -> Option<String> {
    let of = |way: Way| case.entrants.iter().find(|entrant| entrant.label == way.name());
    let (scan, both) = (of(Way::Scan)?, of(Way::Both)?);
    let write = |entrant: &Entrant<'_>| Some(ALL_ICONS.write_within(&entrant.estimate(ALL_ICONS)?));
    let difference = scan.over(both, ALL_ICONS)?.difference;
    let times = Quantity::Factor.write(difference.centre.ratio());
    let ends = front::ends(&difference).map_or_else(
        || "too few blocks for an interval".to_owned(),
        |ends| format!("99{NBSP}% interval {ends}"),
    );
    Some(format!(
        "{} with a scan, {} with the cache: {times} times as long ({ends})",
        write(scan)?,
        write(both)?
    ))
}
