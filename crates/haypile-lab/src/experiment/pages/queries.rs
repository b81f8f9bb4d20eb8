//! The table of how much time `No-Vary-Search` saves where each visit to a page comes by a link with a query of its own.

use haypile_number::{Quantity, grouped};
use haypile_pages::site::manifest::Visits;
use haypile_pages::site::{QueriedSite, Site};

use super::printout::cell;
use crate::experiment::on_pages::improvement::{LinkLoads, NamedLoads, View};

/// The end of the names of sites whose visits have a query each, in results.
pub(super) const OF_SITE: &str = ", a query per visit";

/// The columns of the table.
pub(super) const COLUMNS: [&str; 8] = [
    "Cache",
    "Less time, first",
    "repeat",
    "all visits",
    "Requests without",
    "with",
    "From the origin without",
    "with",
];

/// Returns the site, the visits and the names of its pages, where each visit asks for its document by another URL.
pub(super) fn site(site: &Site, visits: &Visits) -> anyhow::Result<(Site, Visits, Vec<String>)> {
    let QueriedSite { site, visits, names } = site.with_query_per_visit(visits);
    site.validate()?;
    Ok((site, visits, names))
}

/// Returns the title of the table of a link.
pub(super) fn title(link: &LinkLoads) -> String {
    format!(
        "{}, {}: improvement from No-Vary-Search (less load time than the same cache without it, 95 % interval)",
        link.site, link.link
    )
}

/// Returns a row for each cache that was also measured without knowledge of `No-Vary-Search`; none if no cache was.
pub(super) fn rows(link: &LinkLoads, counted: Option<&LinkLoads>) -> Vec<Vec<String>> {
    let of_counted = counted.unwrap_or(link);
    let row = |(without, counts_without): &NamedLoads| {
        let (with, counts_with) =
            of_counted.columns.iter().find(|(name, _)| name.is_same_cache(without))?;
        let (baseline, _) = link.or_equal(without, counted)?;
        let saved = |view| cell(Some(baseline), link.or_equal(with, counted), view);
        let mut row = vec![with.to_string()];
        row.extend(View::ALL.map(saved));
        let counts = [counts_without, counts_with];
        row.extend(counts.map(|loads| grouped(loads.count("origin_requests"))));
        row.extend(
            counts.map(|loads| Quantity::Bytes.write(loads.count("origin_body_bytes") as f64)),
        );
        Some(row)
    };
    of_counted.without_no_vary_search.iter().filter_map(row).collect()
}
