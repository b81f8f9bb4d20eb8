//! `search`: what a lookup costs that finds nothing.

use haypile_measure::figure::{self, Estimate};
use haypile_measure::parameters;
use haypile_number::grouped;
use haypile_number::{NBSP, Quantity};
use haypile_plot::Unit;
use haypile_plot::drawing::text::printable;
use serde_json::Value;

use super::KILLED;

use crate::report::body::curves::{Over, picture, series};
use crate::report::body::{details, front};
use crate::report::case::{Case, Entrant, labels};
use crate::report::chart::Series;
use crate::report::section::Body;

const ENTRIES: Over =
    Over { parameter: "entries", label: "entries in the cache", unit: Unit::Objects };

/// The name of the parameter that says how full the cache is.
const FILL: &str = "fill";

/// Follows the name of a cache.
const AFTER_A_KILL: &str = " after a kill";

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let states = states(cases);
    let has_one_fill = states.iter().all(|state| state.fill == states[0].fill);
    let mut all = Vec::new();
    for state in &states {
        let mut suffix = match &state.fill {
            Some(fill) if !has_one_fill => format!(", {fill} full"),
            _ => String::new(),
        };
        if state.is_killed {
            suffix.push_str(AFTER_A_KILL);
        }
        let of_state: Vec<&Case<'_>> =
            cases.iter().filter(|case| State::of(case) == *state).collect();
        let of_state = series(&of_state, ENTRIES, &figure::CPU, &suffix).into_iter();
        let first = all.len();
        all.extend(of_state.map(|one| Series { place: first + one.place, ..one }));
    }
    let axis = ("processor time per lookup", Quantity::Time);
    let title = "A lookup that finds nothing".to_owned();
    let (figure, left_out) = picture(title, ENTRIES, axis, all, Vec::new());
    let varying = crate::report::case::varying(cases);
    let (answer, answers) = answer(cases, states.last().and_then(|state| state.fill.as_deref()));
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

/// The state of a cache when a key is looked up.
#[derive(Clone, Debug, PartialEq)]
struct State {
    /// The percentage of its entries that are there.
    fill: Option<String>,
    /// Whether the process that filled it was killed.
    is_killed: bool,
}

impl State {
    fn of(case: &Case<'_>) -> Self {
        let text = |name| case.parameters.get(name).map(|it| printable(&parameters::text(it)));
        let is_killed = case.parameters.get(KILLED).and_then(Value::as_bool) == Some(true);
        Self { fill: text(FILL), is_killed }
    }

    fn percent(&self) -> f64 {
        let digits = self.fill.as_deref().unwrap_or_default().trim_end_matches(['%', ' ']);
        digits.parse().unwrap_or(-1.0)
    }
}

/// The states of caches, the fullest last.
fn states(cases: &[Case<'_>]) -> Vec<State> {
    let mut states: Vec<State> = cases.iter().map(State::of).collect();
    states.sort_by(|one, other| {
        let by_fill = one.percent().total_cmp(&other.percent());
        by_fill.then_with(|| (&one.fill, one.is_killed).cmp(&(&other.fill, other.is_killed)))
    });
    states.dedup();
    states
}

/// The increase of a lookup's cost from the fewest entries to the most.
fn answer(cases: &[Case<'_>], fill: Option<&str>) -> (String, Vec<String>) {
    let ends = |label: &String, is_killed: bool| {
        let state = State { fill: fill.map(str::to_owned), is_killed };
        let of_state = cases.iter().filter(|case| State::of(case) == state);
        let mut with: Vec<(u64, &Entrant<'_>)> = of_state
            .filter_map(|case| Some((case.number(ENTRIES.parameter)?, case.entrant(label)?)))
            .filter(|(_, entrant)| entrant.estimate(&figure::CPU).is_some())
            .collect();
        with.sort_by_key(|(entries, _)| *entries);
        Some((*with.first()?, *with.last()?))
    };
    let sentence = |label: &String, is_killed: bool| {
        let ((few, at_few), (many, at_many)) = ends(label, is_killed)?;
        let after = if is_killed { AFTER_A_KILL } else { "" };
        let [at_few, at_many] = [at_few, at_many].map(|entrant| entrant.estimate(&figure::CPU));
        let (at_few, at_many) = (at_few?, at_many?);
        let time = |estimate: &Estimate| figure::CPU.write_within(estimate);
        let first =
            format!("{label}{after} takes {} with {}{NBSP}entries", time(&at_few), grouped(few));
        if few == many {
            return Some(first);
        }
        // They were not measured in turns: there is no interval to tell.
        let change = Quantity::Factor.write(at_many.value / at_few.value);
        let many = grouped(many);
        Some(format!("{first} and {} with {many}, {change} times as much", time(&at_many)))
    };
    let labels = labels(cases.iter());
    let both = |label| [false, true].into_iter().filter_map(move |is| sentence(label, is));
    let sentences: Vec<String> = labels.iter().flat_map(both).collect();
    if sentences.is_empty() {
        return ("Nothing was measured.".to_owned(), sentences);
    }
    let answer = match fill {
        Some(fill) => format!("In a cache that is {fill} full, a lookup that finds nothing:"),
        None => "A lookup that finds nothing:".to_owned(),
    };
    (answer, sentences)
}
