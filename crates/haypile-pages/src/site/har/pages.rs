//! The pages of a HAR, with the loads of each in the order of their starts.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::causes::{Candidates, Cause, find_cause};
use super::document::{HarPage, Log};
use super::entry::{Exchange, HarEntry};
use crate::site::model::{MAX_LOADS_PER_PAGE, Site};
use crate::site::names::PageNames;
use crate::site::page::{MAX_WAIT, Page, PageLoad};

/// An entry of a HAR file that loaded one resource of a page, as a possible initiator (cause) of
/// the page's other loads.
pub(super) struct Loaded<'a> {
    pub(super) exchange: &'a Exchange,
    /// The time at which the request for the entry's resource began, in milliseconds since 1970.
    pub(super) started_ms: f64,
    /// The time at which the response with the entry's resource ended, in milliseconds since 1970.
    pub(super) ended_ms: f64,
}

/// Adds a page to the site for each page of the HAR file that loads something.
pub(super) fn add(log: &Log, site: &mut Site, warnings: &mut Vec<String>) {
    let resources: HashMap<_, _> =
        site.resources.iter().map(|resource| resource.url.as_str()).zip(0..).collect();
    let mut names = PageNames::default();
    let (mut pages, mut empty, mut repeated, mut beyond) = (Vec::new(), 0, 0, 0);
    for (title, loaded_ms, entries) in by_page(log) {
        let mut loads = in_order(&entries);
        let count = loads.len();
        let mut seen = HashSet::new();
        loads.retain(|load| seen.insert(load.exchange.url.as_str()));
        repeated += count - loads.len();
        beyond += loads.len().saturating_sub(MAX_LOADS_PER_PAGE);
        loads.truncate(MAX_LOADS_PER_PAGE);
        if loads.is_empty() {
            empty += 1;
            continue;
        }
        let first_url = loads[0].exchange.url.as_str();
        let name = names.unused(if title.trim().is_empty() { first_url } else { title });
        let loads = page_loads(&loads, &resources, loaded_ms);
        pages.push(Page { name, loads });
    }
    for (count, what) in [
        (repeated, "entries skipped: their page loads the same URL already"),
        (beyond, "entries skipped: their page has too many"),
        (empty, "pages skipped: they have nothing to load"),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {what}"));
        }
    }
    site.pages = pages;
}

/// Groups entries by page, in the order of the HAR's pages; then those that name an unknown page.
fn by_page(log: &Log) -> Vec<(&str, Option<f64>, Vec<&HarEntry>)> {
    let mut groups: Vec<(&str, Option<f64>, Vec<&HarEntry>)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for page in &log.pages {
        known.entry(page.id.as_str()).or_insert(groups.len());
        let name = if page.title.trim().is_empty() { &page.id } else { &page.title };
        groups.push((name, page.loaded_ms, Vec::new()));
    }
    for entry in &log.entries {
        let without_page = || page_at(&log.pages, entry.started_ms);
        let index = match known.get(entry.page.as_str()) {
            Some(&index) => index,
            None if entry.page.is_empty() && !log.pages.is_empty() => without_page(),
            None => {
                known.insert(&entry.page, groups.len());
                groups.push((&entry.page, None, Vec::new()));
                groups.len() - 1
            }
        };
        groups[index].2.push(entry);
    }
    groups
}

/// The page that began last before a time, or the first one.
fn page_at(pages: &[HarPage], time_ms: Option<f64>) -> usize {
    let began = |page: &HarPage| page.started_ms.zip(time_ms).is_some_and(|(page, at)| page <= at);
    pages.iter().rposition(began).unwrap_or(0)
}

/// Sorts entries by their starts; one without a time starts with the one before it.
fn in_order<'a>(entries: &[&'a HarEntry]) -> Vec<Loaded<'a>> {
    let mut last_ms = entries.iter().find_map(|entry| entry.started_ms).unwrap_or(0.0);
    let mut loads = Vec::new();
    for entry in entries {
        last_ms = entry.started_ms.unwrap_or(last_ms);
        if let Ok(exchange) = &entry.exchange {
            let ended_ms = entry.ended_ms().unwrap_or(last_ms + entry.took_ms);
            loads.push(Loaded { exchange, started_ms: last_ms, ended_ms });
        }
    }
    loads.sort_by(|one, other| one.started_ms.total_cmp(&other.started_ms));
    loads
}

/// Makes the loads of a page that the browser reported as loaded at a time, if it did.
fn page_loads(
    loads: &[Loaded<'_>],
    resources: &HashMap<&str, usize>,
    loaded_ms: Option<f64>,
) -> Vec<PageLoad> {
    let mut by_url = HashMap::new();
    let mut redirects = HashMap::new();
    let mut made = Vec::with_capacity(loads.len());
    let mut candidates = Candidates::default();
    for (index, load) in loads.iter().enumerate() {
        let Cause { after, is_inferred } =
            find_cause(load, &by_url, &redirects, &candidates, index);
        let wait_ms = after.map_or(0.0, |after: usize| load.started_ms - loads[after].ended_ms);
        let wait = Duration::try_from_secs_f64(wait_ms.max(0.0) / 1000.0);
        // Microseconds: what is finer comes from the conversion.
        let wait = wait.map_or(MAX_WAIT, |wait| Duration::from_micros(micros(wait))).min(MAX_WAIT);
        let resource = resources[load.exchange.url.as_str()];
        let is_needed =
            index == 0 || loaded_ms.is_none_or(|loaded_ms| load.started_ms <= loaded_ms);
        made.push(PageLoad { resource, after, wait, is_inferred, is_needed });
        by_url.insert(load.exchange.url.as_str(), index);
        if let Some(target) = &load.exchange.redirects_to {
            redirects.insert(target.as_str(), index);
        }
        candidates.add(index, load);
    }
    made
}

fn micros(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros()).unwrap_or(u64::MAX)
}
