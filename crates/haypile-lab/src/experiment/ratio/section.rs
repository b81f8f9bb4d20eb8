//! The section of `ratio` in the report: rates per second of the client's processor, and
//! Benchmark.pm's comparison.

use haypile_measure::figure;

use super::cmpthese;
use crate::report::body::details::details;
use crate::report::body::figures::{MAX_MULTIPLES, bars, has_server};
use crate::report::body::front;
use crate::report::case::{self, Case, Entrant};
use crate::report::section::Body;
use crate::report::table::Table;

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying: Vec<String> = Vec::new();
    let has_server = has_server(cases);
    let mut answers = front::of_cases(cases.iter(), &varying, &figure::CPU, &figure::CPU_RATE);
    if has_server {
        let (cost, rate) = (&figure::TOGETHER, &figure::TOGETHER_RATE);
        let both = front::of_cases(cases.iter(), &varying, cost, rate).into_iter();
        answers.extend(both.map(|both| format!("with the server's processor time, {both}")));
    }
    let answer = "Operations per second of the client's processor time:".to_owned();
    let rates = [&figure::CPU_RATE, &figure::TOGETHER_RATE];
    let rates = if has_server { &rates[..] } else { &rates[..1] };
    let mut body = Body { answer, answers, ..Body::default() };
    for case in cases.iter().take(MAX_MULTIPLES) {
        let title = format!("Operations per second: {}", case.title(&varying));
        let (figure, left_out) = bars(case, title, rates, &figure::CPU);
        body.multiples.extend(figure);
        body.left_out.extend(left_out);
    }
    body.tables.push(front::table(cases.iter(), &varying, &figure::CPU));
    body.tables.extend(cases.iter().take(MAX_MULTIPLES).filter_map(|case| cross(case, &varying)));
    details(&mut body, cases, &case::varying(cases));
    body
}

/// Rates, and each against each in per cent, the slowest first, as Benchmark.pm prints them.
fn cross(case: &Case<'_>, varying: &[String]) -> Option<Table> {
    let rate = |entrant: &Entrant<'_>| {
        Some((entrant.label.clone(), entrant.estimate(&figure::CPU_RATE)?.value))
    };
    let rates: Vec<(String, f64)> = case.entrants.iter().filter_map(rate).collect();
    let mut rows = cmpthese::cells(&rates);
    let mut names = rows.remove(0);
    "Subject".clone_into(&mut names[0]);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let caption = format!(
        "{}: operations per second of the client's processor, and each row over each column",
        case.title(varying)
    );
    (!rates.is_empty()).then(|| Table::of_numbers(caption, &names, rows))
}
