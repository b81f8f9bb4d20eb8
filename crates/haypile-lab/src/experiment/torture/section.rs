//! The section of `torture` in the report: stale, lost, wrong and slow operations.

use haypile_measure::figure::count as count_of;
use haypile_number::{Quantity, grouped};

use crate::report::case::{Case, Entrant, labels, varying};
use crate::report::number::{count, list};
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

/// Counts that mean an error where they are above 0, by name.
const WRONG: [&str; 6] = ["stale", "lost", "wrong", "failed", "crashed", "hung"];

/// Counts of the slowest operations, by name.
const LONGEST: [(&str, &str); 4] = [
    ("longest_write_ns", "Longest write"),
    ("longest_read_ns", "Longest read"),
    ("longest_open_ns", "Longest open"),
    ("longest_takeover_ns", "Longest takeover"),
];

pub(super) fn body(cases: &[Case<'_>]) -> Body {
    let varying = varying(cases);
    let rows = cases.iter().flat_map(|case| {
        case.entrants.iter().map(|entrant| row(case, entrant, &varying)).collect::<Vec<_>>()
    });
    let mut names =
        vec!["Case", "Subject", "Outcome", "Kills", "Acknowledged", "Compared", "Over 100 ms"];
    names.extend(LONGEST.map(|(_, name)| name));
    let caption = "What was stale, lost, wrong and slow. Of several rows of a case, counts are sums and times the \
        longest. An outcome is failed where a row has an error, which is listed below; held means that nothing \
        was stale, lost, wrong, failed, crashed or hung";
    let table = Table::of_numbers(caption.to_owned(), &names, rows.collect()).with_text_in(&[1, 2]);
    let (answer, answers) = answer(cases);
    Body { answer, answers, tables: vec![table], ..Body::default() }
}

/// Whether a row is a control, in which nobody is killed.
fn is_control(case: &Case<'_>) -> bool {
    case.number("kills") == Some(0)
}

fn answer(cases: &[Case<'_>]) -> (String, Vec<String>) {
    let of = |label: &String| {
        let entrants =
            || cases.iter().filter(|case| !is_control(case)).filter_map(|case| case.entrant(label));
        let all = entrants().count();
        let failed = entrants().filter(|entrant| entrant.errors() > 0).count();
        let wrong = wrong(&entrants().collect::<Vec<_>>());
        let controls = cases.iter().filter(|case| is_control(case));
        let control_fails =
            controls.filter_map(|case| case.entrant(label)).any(|entrant| entrant.errors() > 0);
        let control = if control_fails { ", and without kills as well" } else { "" };
        (all > 0).then(|| match failed {
            0 => format!("{label} holds in all {}", count(all, "case")),
            _ if wrong.is_empty() => format!("{label} fails in {failed} of {all}{control}"),
            _ => format!("{label} fails in {failed} of {all} ({}){control}", list(&wrong)),
        })
    };
    let found: Vec<String> = labels(cases.iter()).iter().filter_map(of).collect();
    if found.is_empty() {
        return ("Nobody was killed or stopped in these rows.".to_owned(), found);
    }
    ("When processes are killed and stopped:".to_owned(), found)
}

/// The counts that mean an error, in words: `2 lost`.
fn wrong(entrants: &[&Entrant<'_>]) -> Vec<String> {
    let of = |name: &&str| {
        let counts = entrants.iter().filter_map(|entrant| count_of(&entrant.samples, name));
        let sum = counts.fold(0, u64::saturating_add);
        (sum > 0).then(|| format!("{} {name}", grouped(sum)))
    };
    WRONG.iter().filter_map(of).collect()
}

fn row(case: &Case<'_>, entrant: &Entrant<'_>, varying: &[String]) -> Vec<String> {
    let title = if is_control(case) {
        format!("{}, control without kills", case.name)
    } else {
        case.title(varying)
    };
    let number =
        |name: &&str| count_of(&entrant.samples, name).map_or_else(|| NOTHING.to_owned(), grouped);
    let mut outcome = if entrant.errors() == 0 { "held" } else { "failed" }.to_owned();
    let wrong = wrong(&[entrant]);
    if !wrong.is_empty() {
        outcome = format!("{outcome}: {}", list(&wrong));
    }
    let mut row = vec![title, entrant.label.clone(), outcome];
    row.extend(["kills", "acknowledged", "compared"].iter().map(number));
    row.push(number(&"over_100ms"));
    let longest = |(name, _): &(&str, &str)| {
        let longest = count_of(&entrant.samples, name).filter(|ns| *ns > 0);
        longest.map_or_else(|| NOTHING.to_owned(), |ns| Quantity::Time.write(ns as f64))
    };
    row.extend(LONGEST.iter().map(longest));
    row
}
