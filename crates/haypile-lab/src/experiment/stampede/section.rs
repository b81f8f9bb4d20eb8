//! The section of `stampede` in the report: the number of computations of an expired key.

use haypile_measure::figure::{COMPUTATIONS, KEY_WALL};
use haypile_number::{Quantity, grouped};

use crate::report::body::figures::{MAX_BARS, MAX_MULTIPLES, picture, written};
use crate::report::case::{Case, Entrant, varying};
use crate::report::chart::Bar;
use crate::report::number::count;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let mut body = Body::default();
    let mut parts: Vec<String> = Vec::new();
    for case in cases {
        let mut bars = Vec::new();
        let mut of_case = Vec::new();
        for entrant in &case.entrants {
            let counts = counts(case, entrant);
            if let Some((computed, keys)) = counts {
                let title = case.title(&varying);
                let text = format!(
                    "{title}: {} computed {} {}",
                    entrant.label,
                    count(usize::try_from(keys).unwrap_or(usize::MAX), "key"),
                    times(computed)
                );
                of_case.push((computed as f64 / (keys as f64).max(1.0), text));
            }
            let value = entrant.estimate(&COMPUTATIONS);
            bars.push(Bar::new(entrant.label.clone(), vec![value]));
        }
        // Those that compute the least stand first, as in the chart.
        of_case.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        parts.extend(of_case.into_iter().map(|(_, text)| text));
        bars.sort_by(|one: &Bar, other: &Bar| {
            let computed = |bar: &Bar| bar.values[0].as_ref().map_or(f64::MAX, |each| each.value);
            computed(one).total_cmp(&computed(other)).then_with(|| one.label.cmp(&other.label))
        });
        bars.truncate(MAX_BARS);
        if body.multiples.len() < MAX_MULTIPLES && bars.iter().any(|bar| bar.values[0].is_some()) {
            let title = format!("Computations per key: {}", case.title(&varying));
            let measures = vec!["computations per key".to_owned()];
            body.multiples.push(picture(title, Quantity::Count, measures, bars));
        }
    }
    (body.answer, body.answers) = match parts.as_slice() {
        [] => ("Nothing was measured.".to_owned(), parts),
        [one] => (format!("{one}."), Vec::new()),
        _ => ("Computations of expired keys:".to_owned(), parts),
    };
    body.tables.push(table(cases));
    body
}

/// Returns the table of how often each missing value was computed, with a row for each case and
/// cache.
pub(super) fn table(cases: &[Case<'_>]) -> Table {
    let varying = varying(cases);
    let row = |case: &Case<'_>, entrant: &Entrant<'_>| {
        let counts = counts(case, entrant);
        let number = |number: Option<u64>| number.map_or_else(|| NOTHING.to_owned(), grouped);
        let range = |of: fn(f64, f64) -> f64| {
            let each =
                entrant.good().filter_map(|one| COMPUTATIONS.of(&[one].into_iter().collect()));
            let end = each.map(|each| each.value).reduce(of);
            end.map_or_else(|| NOTHING.to_owned(), |end| COMPUTATIONS.quantity.write(end))
        };
        vec![
            case.title(&varying),
            entrant.label.clone(),
            number(counts.map(|(_, keys)| keys)),
            number(counts.map(|(computed, _)| computed)),
            written(entrant, &COMPUTATIONS),
            range(f64::min),
            range(f64::max),
            written(entrant, &KEY_WALL),
            entrant.errors().to_string(),
        ]
    };
    let rows = cases
        .iter()
        .flat_map(|case| case.entrants.iter().map(|it| row(case, it)).collect::<Vec<_>>());
    let caption = "How often expired keys were computed; once per key is the best. A process that computed nothing \
         got what another has computed, or the old value, whatever the cache does then";
    let names = [
        "Case",
        "Subject",
        "Keys",
        "Computed",
        COMPUTATIONS.title,
        "At least",
        "At most",
        KEY_WALL.title,
        "Errors",
    ];
    Table::of_numbers(caption.to_owned(), &names, rows.collect()).with_text_in(&[1])
}

fn times(computed: u64) -> String {
    if computed == 1 { "once".to_owned() } else { format!("{} times", grouped(computed)) }
}

/// Computations and keys, of samples that are not errors. Each read that misses is a computation.
fn counts(case: &Case<'_>, entrant: &Entrant<'_>) -> Option<(u64, u64)> {
    let keys = case.number("keys").filter(|keys| *keys > 0)?;
    let good = || entrant.good();
    let computed = good().map(|sample| sample.misses).reduce(u64::saturating_add)?;
    Some((computed, keys.saturating_mul(good().count() as u64)))
}
