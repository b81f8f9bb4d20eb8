//! The section of the report.

use haypile_measure::result::Samples;
use haypile_number::Quantity;

use super::super::on_pages::improvement::{ColumnLoads, ColumnName, LinkLoads, View, links};
use crate::report::body::details;
use crate::report::case::{Case, varying};
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let links = links(samples.iter().copied());
    let mut body = Body { answer: answer(&links), ..Body::default() };
    body.tables.extend(links.iter().map(table));
    details::details(&mut body, cases, &varying(cases));
    body
}

/// The time of a repeated load without a cache, and with each.
fn answer(links: &[LinkLoads]) -> String {
    let of_link = |link: &LinkLoads| {
        let times: Vec<String> = link
            .columns
            .iter()
            .filter_map(|(name, loads)| {
                let mean_ns = loads.mean_ns(View::Repeat)?;
                Some(format!("{name} {}", Quantity::Time.write(mean_ns)))
            })
            .collect();
        (!times.is_empty()).then(|| format!("{}: {}", link.link, times.join(", ")))
    };
    let found: Vec<String> = links.iter().filter_map(of_link).collect();
    if found.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("Mean time of the second load over {}.", found.join("; "))
}

/// Returns the table of a link: times and requests of its columns.
pub(super) fn table(link: &LinkLoads) -> Table {
    let none = link.baseline("none");
    let row = |(name, loads): &(ColumnName, ColumnLoads)| {
        let saved = |view| {
            let none = none.filter(|_| name.kind != "none")?;
            Some(loads.saved(none, view)?.to_string())
        };
        let saved = |view| saved(view).unwrap_or_else(|| NOTHING.to_owned());
        let count = |name: &str| loads.count(name).to_string();
        vec![
            name.to_string(),
            loads.mean(View::First),
            loads.mean(View::Repeat),
            saved(View::First),
            saved(View::Repeat),
            count("hits"),
            count("origin_requests"),
        ]
    };
    let names = [
        "Cache",
        "First",
        "Repeat",
        "Less time, first",
        "Repeat",
        "Hits",
        "Requests to the origin",
    ];
    let caption = format!("{}, {}: mean time of all resources", link.site, link.link);
    let good = link.columns.iter().filter(|(_, loads)| loads.error.is_none());
    Table::of_numbers(caption, &names, good.map(row).collect())
}
