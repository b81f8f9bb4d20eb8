//! `search`: what a lookup costs that finds nothing.

use haypile_measure::figure::{self, Estimate};
use haypile_measure::parameters;
use haypile_number::grouped;
use haypile_number::{NBSP, Quantity};
use haypile_sim::plot::Unit;
use haypile_sim::plot::drawing::text::printable;

use crate::report::body::curves::{Over, picture, series};
use crate::report::body::{details, front};
use crate::report::case::{Case, Entrant, labels};
use crate::report::chart::Series;
use crate::report::section::Body;

const ENTRIES: Over =
    Over { parameter: "entries", label: "entries in the cache", unit: Unit::Objects };

/// The name of the parameter that says how full the cache is.
const FILL: &str = "fill";

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let fills = fills(cases);
    let mut all = Vec::new();
    for fill in &fills {
        let suffix = match (fills.len(), fill) {
            (1, _) | (_, None) => String::new(),
            (_, Some(fill)) => format!(", {fill} full"),
        };
        let of_fill: Vec<&Case<'_>> = cases.iter().filter(|case| fill_of(case) == *fill).collect();
        let of_fill = series(&of_fill, ENTRIES, &figure::CPU, &suffix).into_iter();
        let first = all.len();
        all.extend(of_fill.map(|one| Series { place: first + one.place, ..one }));
    }
    let axis = ("processor time per lookup", Quantity::Time);
    let title = "A lookup that finds nothing".to_owned();
    let (figure, left_out) = picture(title, ENTRIES, axis, all, Vec::new());
    let varying = crate::report::case::varying(cases);
    let (answer, answers) = answer(cases, fills.last().and_then(Option::as_deref));
    let mut body = Body {
        answer,
        answers,
        figures: figure.into_iter().collect(),
        left_out: left_out.into_iter().collect(),
        tables: vec![front::table(cases.iter(), &varying, &figure::CPU)],
        ..Body::default()
    };
    details::details(&mut body, cases, &varying);
    body
}

fn fill_of(case: &Case<'_>) -> Option<String> {
    case.parameters.get(FILL).map(|fill| printable(&parameters::text(fill)))
}

/// The fills of caches, the fullest last.
fn fills(cases: &[Case<'_>]) -> Vec<Option<String>> {
    let mut fills: Vec<Option<String>> = cases.iter().map(fill_of).collect();
    let number = |fill: &Option<String>| {
        let digits = fill.as_deref().unwrap_or_default().trim_end_matches(['%', ' ']);
        digits.parse::<f64>().unwrap_or(-1.0)
    };
    fills.sort_by(|one, other| number(one).total_cmp(&number(other)).then_with(|| one.cmp(other)));
    fills.dedup();
    fills
}

/// The increase of a lookup's cost from the fewest entries to the most.
fn answer(cases: &[Case<'_>], fill: Option<&str>) -> (String, Vec<String>) {
    let of_fill = || cases.iter().filter(|case| fill_of(case).as_deref() == fill);
    let ends = |label: &String| {
        let mut with: Vec<(u64, &Entrant<'_>)> = of_fill()
            .filter_map(|case| Some((case.number(ENTRIES.parameter)?, case.entrant(label)?)))
            .filter(|(_, entrant)| entrant.estimate(&figure::CPU).is_some())
            .collect();
        with.sort_by_key(|(entries, _)| *entries);
        Some((*with.first()?, *with.last()?))
    };
    let sentence = |label: &String| {
        let ((few, at_few), (many, at_many)) = ends(label)?;
        let [at_few, at_many] = [at_few, at_many].map(|entrant| entrant.estimate(&figure::CPU));
        let (at_few, at_many) = (at_few?, at_many?);
        let time = |estimate: &Estimate| figure::CPU.write_within(estimate);
        let first = format!("{label} takes {} with {}{NBSP}entries", time(&at_few), grouped(few));
        if few == many {
            return Some(first);
        }
        // They were not measured in turns: there is no interval to tell.
        let change = Quantity::Factor.write(at_many.value / at_few.value);
        let many = grouped(many);
        Some(format!("{first} and {} with {many}, {change} times as much", time(&at_many)))
    };
    let sentences: Vec<String> = labels(cases.iter()).iter().filter_map(sentence).collect();
    if sentences.is_empty() {
        return ("Nothing was measured.".to_owned(), sentences);
    }
    let answer = match fill {
        Some(fill) => format!("In a cache that is {fill} full, a lookup that finds nothing:"),
        None => "A lookup that finds nothing:".to_owned(),
    };
    (answer, sentences)
}
