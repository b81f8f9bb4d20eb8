//! The results for people.

use haypile_measure::result::Sample;

use super::super::on_pages::improvement::{
    ColumnLoads, ColumnName, LinkLoads, View, links, percent,
};
use crate::experiment::Printout;

const NOTHING: &str = "-";

/// Returns a table for each link.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    for link in &links(samples) {
        printout.gap().append(table(link));
    }
    printout
}

fn table(link: &LinkLoads) -> Printout {
    let mut printout = Printout::default();
    printout.text(format!("{}, {}: mean time of all resources\n", link.site, link.link));
    let none = link.baseline("none");
    let row = |(name, loads): &(ColumnName, ColumnLoads)| {
        let mean = |view| match loads.loads(view) {
            0 => NOTHING.to_owned(),
            number => format!("{:.2}", loads.total_ms(view) / number as f64),
        };
        let saved = |view| match (none, name.kind) {
            (Some(none), kind) if kind != "none" => percent(loads.effect(none, view)),
            _ => NOTHING.to_owned(),
        };
        let count = |name: &str| loads.counts.get(name).copied().unwrap_or(0).to_string();
        vec![
            name.to_string(),
            mean(View::First),
            mean(View::Repeat),
            saved(View::First),
            saved(View::Repeat),
            count("hits"),
            count("origin_requests"),
        ]
    };
    let header =
        ["Cache", "first ms", "repeat ms", "less time, first", "repeat", "Hits", "Requests"];
    let good = link.columns.iter().filter(|(_, loads)| loads.error.is_none());
    printout.table(header, 1, 1, good.map(row).collect());
    for (name, loads) in &link.columns {
        if let Some(error) = &loads.error {
            printout.text(format!("error: {name}: {error}\n"));
        }
    }
    printout
}
