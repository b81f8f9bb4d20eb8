//! Whether a cache did what its name says, by the counts of the origin.
//!
//! A loader that counts its own hits could be wrong about them, and a cache could hold more than it
//! may. The origin sees which resources it was asked for: what it was not asked for came from the
//! cache.

use super::column::{Column, ColumnKind};
use super::orders::LoadReport;
use super::site_server::LoadCounts;
use crate::site::{Resource, Site};

/// A load of a page, as its loader and the origin counted it.
#[derive(Clone, Debug)]
pub(crate) struct CountedLoad {
    pub(crate) page: usize,
    pub(crate) report: LoadReport,
    pub(crate) origin: LoadCounts,
    /// Whether the origin was asked for each load of the page, in the page's order.
    pub(crate) was_asked: Vec<bool>,
}

/// Returns what is wrong with one load.
///
/// # Errors
///
/// A response that is not the site's, or counts that contradict each other.
pub(crate) fn load(site: &Site, column: &Column, load: &CountedLoad) -> Result<(), String> {
    let CountedLoad { page, report, origin, .. } = load;
    let name = &site.pages[*page].name;
    if let Some(failure) = &report.first_failure {
        return Err(format!("page '{name}': {} requests failed: {failure}", report.failed));
    }
    if report.wrong > 0 {
        return Err(format!("page '{name}': {} responses were not those of the site", report.wrong));
    }
    let requests = site.pages[*page].loads.len() as u64;
    if report.requests != requests {
        return Err(format!(
            "page '{name}': {} resources were loaded, and it has {requests}",
            report.requests
        ));
    }
    let asked = origin.requests - origin.rests;
    // What is revalidated in the background is a hit, and asked for as well; what is asked for again
    // may have been counted before.
    let is_exact = report.again == 0 && !site.resources.iter().any(is_revalidated_later);
    let sum = report.hits + asked;
    if sum < requests || is_exact && sum > requests {
        return Err(format!(
            "page '{name}': {} hits and {asked} requests to the origin, of {requests} resources",
            report.hits
        ));
    }
    if column.kind == ColumnKind::None && report.hits > 0 {
        return Err(format!("page '{name}': {} hits without a cache", report.hits));
    }
    let level = |name: &str| report.by_level.get(name).copied().unwrap_or(0);
    if column.kind == ColumnKind::Both && level("memory") + level("file") != report.hits {
        return Err(format!("page '{name}': hits in levels that the cache does not have"));
    }
    Ok(())
}

/// Whether a stored response may be served while it is revalidated.
fn is_revalidated_later(resource: &Resource) -> bool {
    let mut values = resource.header_values("cache-control");
    values.any(|value| value.to_ascii_lowercase().contains("stale-while-revalidate"))
}

/// Finds out whether a cache held more than it may: in a pass over different pages, resources that
/// come from the cache at their first request of the pass were all in it when the pass began.
///
/// # Errors
///
/// The bytes that came from a cache of fewer.
pub(crate) fn size(site: &Site, column: &Column, pass: &[CountedLoad]) -> Result<(), String> {
    size_of(site, column.capacity_bytes(), pass)
}

/// The same for any cache of this capacity.
pub(super) fn size_of(
    site: &Site,
    capacity_bytes: u64,
    pass: &[CountedLoad],
) -> Result<(), String> {
    let mut is_seen = vec![false; site.resources.len()];
    let mut bytes = 0;
    for load in pass {
        for (place, was_asked) in site.pages[load.page].loads.iter().zip(&load.was_asked) {
            let is_first = !std::mem::replace(&mut is_seen[place.resource], true);
            if is_first && !was_asked {
                bytes += site.resources[place.resource].body_len();
            }
        }
    }
    if bytes > capacity_bytes {
        return Err(format!("{bytes} bytes came from a cache of {capacity_bytes}"));
    }
    Ok(())
}

/// Finds out whether the cache is where its name says, by a page that another process loads after
/// the first one has closed the cache.
///
/// # Errors
///
/// A memory cache that outlives its process, or a file that has nothing.
pub(crate) fn place(
    column: &Column,
    last: &CountedLoad,
    after: &CountedLoad,
) -> Result<(), String> {
    let (hits, before) = (after.report.hits, last.report.hits);
    if !column.is_on_disk() && hits > 0 {
        return Err(format!("{hits} hits in a new process, and the cache is not on disk"));
    }
    // What the last load stored is there for the next one.
    if column.is_on_disk() && before > 0 && hits == 0 {
        return Err(format!(
            "no hits in a new process, and {before} in the last one: nothing is on disk"
        ));
    }
    Ok(())
}
