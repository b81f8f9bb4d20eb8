//! The section of `resources` in the report.

use haypile_measure::figure::Estimate;
use haypile_measure::result::Samples;
use haypile_number::Quantity;

use super::super::on_pages::improvement::{ColumnLoads, ColumnName, LinkLoads, View, links};
use crate::report::body::details;
use crate::report::body::figures::of_columns;
use crate::report::case::{Case, varying};
use crate::report::chart::{Bar, Picture};
use crate::report::section::Body;
use crate::report::table::{NOTHING, Table};

pub(super) fn body(samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
    let links = links(samples.iter().copied());
    let mut body = Body { answer: answer(&links), ..Body::default() };
    for (figure, left_out) in links.iter().map(bars) {
        body.figures.extend(figure);
        body.left_out.extend(left_out);
    }
    body.tables.extend(links.iter().map(table));
    details::details(&mut body, cases, &varying(cases));
    body
}

/// The time of a repeated load without a cache, and with each.
fn answer(links: &[LinkLoads]) -> String {
    let of_link = |link: &LinkLoads| {
        let none = link.baseline("none");
        let time = |(name, loads): &(ColumnName, ColumnLoads)| {
            let mean = Quantity::Time.write(loads.mean_ns(View::Repeat)?);
            let saved = none.filter(|_| name.kind != "none");
            let saved = saved.and_then(|none| loads.saved(none, View::Repeat));
            let saved =
                saved.map_or_else(String::new, |saved| format!(", less time in sum {saved}"));
            Some(format!("{name} {mean}{saved}"))
        };
        let times: Vec<String> = link.columns.iter().filter_map(time).collect();
        (!times.is_empty()).then(|| format!("{}: {}", link.link, times.join("; ")))
    };
    let found: Vec<String> = links.iter().filter_map(of_link).collect();
    if found.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    format!("Mean time of the second load over {}.", found.join(". Over "))
}

/// Returns a chart of the mean times of the first and of the second load.
fn bars(link: &LinkLoads) -> (Option<Picture>, Option<String>) {
    let views = [View::First, View::Repeat];
    let bar = |(name, loads): &(ColumnName, ColumnLoads)| {
        let value = |view| loads.mean_ns(view).map(Estimate::exact);
        Bar::new(name.to_string(), views.map(value).to_vec())
    };
    let good = link.columns.iter().filter(|(_, loads)| loads.error.is_none());
    let bars: Vec<Bar> = good.map(bar).collect();
    let measures = views.map(|view| format!("{view} loads")).to_vec();
    let title = format!("Mean time of all resources over {}, {}", link.link, link.site);
    of_columns(title, Quantity::Time, measures, bars)
}

/// Returns the table of a network link: loading times and requests of the resources with each cache
/// configuration.
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
