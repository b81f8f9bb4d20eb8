//! The section of `replay` in the report: hit ratios by trace and subject.

use haypile_measure::figure::Estimate;
use haypile_measure::result::Sample;
use haypile_number::Quantity;
use haypile_plot::drawing::text::printable;

use super::{Ratios, ReplayRow, ratios};
use crate::report::body::details;
use crate::report::body::figures::{MAX_BARS, MAX_MULTIPLES, picture};
use crate::report::case::Case;
use crate::report::chart::Bar;
use crate::report::number::list;
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

/// Most capacities that a chart can keep apart.
const MAX_MEASURES: usize = 3;

pub(super) fn body(samples: &[&Sample], cases: &[Case<'_>]) -> Body {
    let owned: Vec<Sample> = samples.iter().copied().cloned().collect();
    let (of, rows) = ratios(&owned);
    let mut body = Body { answer: answer(&rows, of.len()), ..Body::default() };
    let means: Vec<Bar> = rows
        .iter()
        .map(|row| {
            let bytes = row.mean.map(|mean| Estimate::exact(mean.bytes));
            let objects = row.mean.map(|mean| Estimate::exact(mean.objects));
            Bar::new(printable(&row.subject), vec![bytes, objects])
        })
        .take(MAX_BARS)
        .collect();
    if !means.is_empty() {
        let measures = ["of bytes", "of requests"].map(str::to_owned).to_vec();
        body.figures.push(picture(
            if of.len() > 1 {
                "Mean hit ratio over all traces and capacities"
            } else {
                "Hit ratio"
            }
            .to_owned(),
            Quantity::HitRatio,
            measures,
            means,
        ));
    }
    let mut traces: Vec<&str> = Vec::new();
    for (trace, _) in &of {
        if !traces.contains(&trace.as_str()) {
            traces.push(trace);
        }
    }
    for trace in traces.into_iter().take(MAX_MULTIPLES) {
        let of_trace = of.iter().enumerate().filter(|(_, (name, _))| name == trace);
        let places: Vec<(usize, f64)> =
            of_trace.map(|(at, (_, percent))| (at, *percent)).take(MAX_MEASURES).collect();
        let measures = places.iter().map(|(_, percent)| capacity(*percent)).collect();
        let bar = |row: &ReplayRow| {
            let value = |(at, _): &(usize, f64)| Some(Estimate::exact(row.cases[*at]?.bytes));
            Bar::new(printable(&row.subject), places.iter().map(value).collect())
        };
        let bars = rows.iter().map(bar).take(MAX_BARS).collect();
        let title = format!("Byte hit ratio: {}", printable(trace));
        body.multiples.push(picture(title, Quantity::HitRatio, measures, bars));
    }
    body.tables.push(table(&of, &rows));
    details::details(&mut body, cases, &crate::report::case::varying(cases));
    body
}

fn capacity(percent: f64) -> String {
    if percent.is_finite() {
        format!("capacity {percent}\u{A0}%")
    } else {
        "capacity not told".to_owned()
    }
}

/// Hit ratios have no interval: the same requests give the same hits, but for chance in the caches.
fn answer(rows: &[ReplayRow], cases: usize) -> String {
    let with_mean = || rows.iter().filter_map(|row| Some((row, row.mean?)));
    let said = |(row, mean): (&ReplayRow, Ratios)| {
        format!("{} {}", printable(&row.subject), Quantity::HitRatio.write(mean.bytes))
    };
    let all: Vec<String> = with_mean().map(said).collect();
    match all.as_slice() {
        [] => "No subject has a byte hit ratio for every trace and capacity.".to_owned(),
        all => {
            let over = match cases {
                1 => "for one trace and capacity".to_owned(),
                cases => format!("in the mean over {cases} pairs of trace and capacity"),
            };
            format!("Of the requested bytes, {over}: {}.", list(all))
        }
    }
}

/// Returns the table of byte hit ratios of replayed traces, with a row for each cache.
pub(super) fn table(of: &[(String, f64)], rows: &[ReplayRow]) -> Table {
    // The mean of one is that one.
    let is_mean = of.len() > 1;
    let write = |ratios: Option<Ratios>| {
        ratios.map_or_else(|| NOTHING.to_owned(), |ratios| Quantity::HitRatio.write(ratios.bytes))
    };
    let row = |row: &ReplayRow| {
        let objects = row.mean.map(|mean| Quantity::HitRatio.write(mean.objects));
        let objects = objects.unwrap_or_else(|| NOTHING.to_owned());
        let mut cells = vec![printable(&row.subject)];
        cells.extend(is_mean.then(|| write(row.mean)));
        cells.push(objects);
        cells.extend(row.cases.iter().map(|ratios| write(*ratios)));
        cells
    };
    let names: Vec<String> = of
        .iter()
        .map(|(trace, percent)| format!("{} {percent}\u{A0}%", printable(trace)))
        .collect();
    let mut columns = vec!["Subject"];
    columns.extend(is_mean.then_some("Mean"));
    columns.push("Of requests");
    columns.extend(names.iter().map(String::as_str));
    let caption = if is_mean {
        "Byte hit ratio by trace and capacity in per cent of its bytes; the mean of all, and of hit ratios of \
         requests"
    } else {
        "Hit ratio of requests, and byte hit ratio by trace and capacity in per cent of its bytes"
    };
    Table::of_numbers(caption.to_owned(), &columns, rows.iter().map(row).collect())
}
