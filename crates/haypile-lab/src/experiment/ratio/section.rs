//! `ratio`: rates per second of the client's processor, and Benchmark.pm's comparison.

use crate::report::body::details::details;
use crate::report::body::figures::{MAX_MULTIPLES, Measure, SECOND_NS, bars};
use crate::report::body::{cost, front};
use crate::report::case::{self, Case};
use crate::report::number::Quantity;
use crate::report::section::Body;
use crate::report::table::Table;

const CLIENT: Measure = Measure {
    name: "per second of the client's processor",
    of: |entrant| Some(entrant.estimate(cost::cpu)?.inverse(SECOND_NS)),
};

const BOTH: Measure = Measure {
    name: "of client's and server's",
    of: |entrant| Some(entrant.estimate(cost::both)?.inverse(SECOND_NS)),
};

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying: Vec<String> = Vec::new();
    let has_server = cost::has_server(cases);
    let what = "processor time of the client";
    let mut answer = front::of_cases(cases.iter(), cost::cpu, Quantity::Time, what);
    if has_server {
        let together = "processor time of client and server together";
        let both = front::of_cases(cases.iter(), cost::both, Quantity::Time, together);
        answer = format!("{answer} {both}");
    }
    let measures: &[Measure] = if has_server { &[CLIENT, BOTH] } else { &[CLIENT] };
    let mut body = Body { answer, ..Body::default() };
    for case in cases.iter().take(MAX_MULTIPLES) {
        let title = format!("Operations per second: {}", case.title(&varying));
        let (figure, left_out) = bars(case, title, Quantity::Rate, measures, cost::cpu);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    body.tables.push(front::table(cases.iter(), &varying, cost::cpu, Quantity::Time, what));
    body.tables.extend(cases.iter().take(MAX_MULTIPLES).filter_map(|case| cross(case, &varying)));
    details(&mut body, cases, &case::varying(cases));
    body
}

/// Rates, and each against each in per cent, the slowest first, as Benchmark.pm prints them.
fn cross(case: &Case<'_>, varying: &[String]) -> Option<Table> {
    let mut rates: Vec<(String, f64)> = Vec::new();
    for (entrant, estimate) in case.ranking(cost::cpu) {
        rates.push((entrant.label.clone(), SECOND_NS / estimate.value));
    }
    rates.reverse();
    if rates.is_empty() {
        return None;
    }
    let row = |(label, rate): &(String, f64)| {
        let mut row = vec![label.clone(), format!("{rate:.0}/s")];
        row.extend(rates.iter().map(|(other, of_other)| {
            if label == other {
                "--".to_owned()
            } else {
                format!("{:.0}\u{A0}%", (rate / of_other - 1.0) * 100.0)
            }
        }));
        row
    };
    let rows = rates.iter().map(row).collect();
    let mut names = vec!["Subject", "Rate"];
    names.extend(rates.iter().map(|(label, _)| label.as_str()));
    let caption = format!(
        "{}: operations per second of the client's processor, and each row over each column",
        case.title(varying)
    );
    Some(Table::of_numbers(caption, &names, rows))
}
