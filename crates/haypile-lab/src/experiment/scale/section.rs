//! The section of `scale` in the report.

use haypile_measure::figure;
use haypile_measure::result::Samples;
use haypile_number::Quantity;
use haypile_plot::Unit;
use haypile_plot::drawing::text::printable;

use super::speedup::{Scaling, Workers, scalings};
use crate::report::body::curves::{Over, picture, series};
use crate::report::body::details;
use crate::report::case::{Case, labels, varying};
use crate::report::chart::Series;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

const THREADS: Over = Over { parameter: "threads", label: "threads", unit: Unit::Objects };
const PROCESSES: Over = Over { parameter: "processes", label: "processes", unit: Unit::Objects };

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let scalings = scalings(samples);
    let (answer, answers) = answer(&scalings);
    let mut body = Body { answer, answers, ..Body::default() };
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.dedup();
    // A cache looks alike in all charts, wherever it is missing.
    let all = labels(cases.iter());
    for name in names {
        for (over, other) in [(THREADS, PROCESSES), (PROCESSES, THREADS)] {
            let is_it =
                |case: &&Case<'_>| case.name == name && case.number(other.parameter) == Some(1);
            let own: Vec<&Case<'_>> = cases.iter().filter(is_it).collect();
            let lines = series(&own, over, &figure::WALL_RATE, "").into_iter();
            let lines = lines.filter(|line| line.points.len() > 1).map(|line| alike(line, &all));
            let title = format!("{name} by {}", over.label);
            let axis = ("operations per second of all together", Quantity::Rate);
            let (figure, left_out) = picture(title, over, axis, lines.collect(), Vec::new());
            body.multiples.extend(figure);
            body.left_out.extend(left_out);
        }
    }
    body.tables.push(table(&scalings));
    details::details(&mut body, cases, &varying(cases));
    body
}

/// Gives a line the look that it has in the other charts.
fn alike(line: Series, all: &[String]) -> Series {
    let place = all.iter().position(|label| *label == line.name).unwrap_or(line.place);
    Series { place, ..line }
}

/// Tells what the most workers bring.
fn answer(scalings: &[Scaling]) -> (String, Vec<String>) {
    let sentence = |scaling: &Scaling| {
        let last = scaling.points.last()?;
        let efficiency = Quantity::Share.write(last.efficiency);
        let interval = last.interval.map_or_else(
            || "too few blocks for an interval".to_owned(),
            |ends| format!("95\u{A0}% interval {}", figure::write_factors(ends)),
        );
        Some(format!(
            "{} {}: {} with {} {} ({interval}; {efficiency} of perfect)",
            printable(&scaling.subject),
            scaling.case,
            Quantity::Factor.write(last.speedup),
            last.workers,
            scaling.workers.parameter()
        ))
    };
    let sentences: Vec<String> = scalings.iter().filter_map(sentence).collect();
    if sentences.is_empty() {
        return ("No cache was measured with several numbers of workers.".to_owned(), sentences);
    }
    ("Times as many operations per second as with one worker:".to_owned(), sentences)
}

/// Returns the table of speed-ups, a row for each cache and number of threads or processes.
pub(super) fn table(scalings: &[Scaling]) -> Table {
    let mut rows = Vec::new();
    for scaling in scalings {
        for point in &scaling.points {
            let interval = point.interval.map_or_else(|| NOTHING.to_owned(), figure::write_factors);
            let is = |workers| {
                let number = point.workers.to_string();
                if scaling.workers == workers { number } else { "1".to_owned() }
            };
            rows.push(vec![
                scaling.case.clone(),
                printable(&scaling.subject),
                is(Workers::Threads),
                is(Workers::Processes),
                Quantity::Rate.write(point.rate),
                Quantity::Factor.write(point.speedup),
                interval,
                Quantity::Share.write(point.efficiency),
            ]);
        }
    }
    let names = [
        "Case",
        "Subject",
        "Threads",
        "Processes",
        "Operations",
        "Speed-up",
        "95\u{A0}% interval",
        "Efficiency",
    ];
    let caption = "Operations per second of all workers together, the speed-up over the fewest \
                   workers, and the efficiency: the speed-up per worker"
        .to_owned();
    Table::of_numbers(caption, &names, rows).with_text_in(&[1])
}
