//! Checks that a cache did what its name says, by the counts of the origin.
//!
//! A loader that counts its own hits could be wrong about them, and a cache could hold more than it
//! may. The origin sees which resources it was asked for: what it was not asked for came from the
//! cache.

use std::collections::BTreeSet;

use super::column::{Column, ColumnKind};
use super::orders::LoadReport;
use super::site_server::LoadCounts;
use crate::site::{Resource, Site};

/// A load of a page, with the loader's report and the origin's counts.
#[derive(Clone, Debug)]
pub struct CountedLoad {
    /// The index in the site of the loaded page.
    pub page: usize,
    /// The loader's report on the page load.
    pub report: LoadReport,
    /// The origin's counts during the page load.
    pub origin: LoadCounts,
    /// Whether the request for each resource of the page reached the origin server, in the order of
    /// the page's loads.
    pub was_asked: Vec<bool>,
}

/// Checks that the counts of one page load (such as requests and hits) fit the page and its cache;
/// the error describes the contradiction.
///
/// # Errors
///
/// A response that is not the site's, or counts that contradict each other.
pub fn load(site: &Site, column: &Column, load: &CountedLoad) -> Result<(), String> {
    let CountedLoad { page, report, origin, .. } = load;
    let name = &site.pages[*page].name;
    if let Some(failure) = &report.first_failure {
        return Err(format!("page '{name}': {} requests failed: {failure}", report.failed));
    }
    if report.wrong > 0 {
        return Err(format!(
            "page '{name}': {} responses were not those of the site",
            report.wrong
        ));
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
    // A response that the origin confirms by a 304, and of which the cache has evicted a part in the
    // meantime, is asked for again as a whole.
    let most = requests + origin.not_modified.saturating_sub(report.revalidated);
    if sum < requests || is_exact && sum > most {
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

/// Checks that a page load used at most one connection to each of its hosts, as HTTP/2 does.
///
/// # Errors
///
/// The connections that the origin accepted.
pub fn one_connection(site: &Site, load: &CountedLoad) -> Result<(), String> {
    let origins: BTreeSet<&str> = site.pages[load.page]
        .loads
        .iter()
        .map(|place| {
            let url = site.resources[place.resource].url.as_str();
            let host = url.find("://").map_or(0, |at| at + 3);
            url[host..].find(['/', '?', '#']).map_or(url, |end| &url[..host + end])
        })
        .collect();
    let (hosts, connections) = (origins.len() as u64, load.origin.connections);
    if connections > hosts {
        let name = &site.pages[load.page].name;
        return Err(format!(
            "page '{name}': {connections} connections over HTTP/2 to {hosts} hosts"
        ));
    }
    Ok(())
}

/// Whether a stored response may be served while it is revalidated.
pub(super) fn is_revalidated_later(resource: &Resource) -> bool {
    let mut values = resource.header_values("cache-control");
    values.any(|value| value.to_ascii_lowercase().contains("stale-while-revalidate"))
}

/// Checks that an HTTP cache held no more bytes than its size allows: in a pass over different
/// pages, resources that come from the cache at their first request were all in it when the pass
/// began.
///
/// # Errors
///
/// The bytes that came from a cache of fewer.
pub fn size(site: &Site, column: &Column, pass: &[CountedLoad]) -> Result<(), String> {
    size_of(site, column.capacity_bytes(), pass)
}

/// Checks that a cache of `capacity_bytes` held no more bytes than that, in a pass over different
/// pages.
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

/// Checks that an HTTP cache is in memory or on disk as its configuration says, by a page load in a
/// new process after the first one has closed the cache.
///
/// # Errors
///
/// A memory cache that outlives its process, or a file that has nothing.
pub fn place(
    site: &Site,
    column: &Column,
    last: &CountedLoad,
    after: &CountedLoad,
) -> Result<(), String> {
    let (hits, before) = (after.report.hits, last.report.hits);
    // In a smaller one, what a page stores last evicts what it stored first.
    let has_room = column.disk_bytes >= 2 * site.page_weight_bytes(after.page);
    if !column.is_on_disk() && hits > 0 {
        return Err(format!("{hits} hits in a new process, and the cache is not on disk"));
    }
    // What the last load stored is there for the next one.
    if column.is_on_disk() && has_room && before > 0 && hits == 0 {
        return Err(format!(
            "no hits in a new process, and {before} in the last one: nothing is on disk"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::NoVarySearch;
    use crate::site::list;

    fn site() -> Site {
        let text = "[a]\n/a 600KB max-age=9\n  /b 600KB max-age=9\n[c]\n/c 600KB max-age=9\n";
        list::parse(Path::new("l"), text.as_bytes()).unwrap().site
    }

    fn column(kind: ColumnKind, disk_bytes: u64) -> Column {
        Column {
            kind,
            memory_bytes: 1_000_000,
            disk_bytes,
            medium: None,
            no_vary_search: NoVarySearch::Heeded,
        }
    }

    /// A load of the first page of which the origin was asked for the second resource, or not.
    fn counted(hits: u64, asked: [bool; 2]) -> CountedLoad {
        let requests = asked.iter().filter(|asked| **asked).count() as u64;
        CountedLoad {
            page: 0,
            report: LoadReport { requests: 2, hits, ..LoadReport::default() },
            origin: LoadCounts { requests, ..LoadCounts::default() },
            was_asked: asked.to_vec(),
        }
    }

    #[test]
    fn hits_that_the_origin_has_answered_are_lies() {
        let (site, disk) = (site(), column(ColumnKind::Disk, 4 << 20));
        load(&site, &disk, &counted(1, [true, false])).unwrap();
        // It was confirmed by a 304 first, and then asked for as a whole.
        let mut again = counted(1, [true, true]);
        assert!(load(&site, &disk, &again).is_err());
        again.origin.not_modified = 1;
        load(&site, &disk, &again).unwrap();
        for (hits, asked) in [(2, [true, false]), (0, [true, false]), (1, [true, true])] {
            let error = load(&site, &disk, &counted(hits, asked)).unwrap_err();
            assert!(error.contains("of 2 resources"), "{error}");
        }
    }

    #[test]
    fn more_connections_than_hosts_are_not_http2() {
        let (site, mut counted) = (site(), counted(0, [true, true]));
        counted.origin.connections = 1;
        one_connection(&site, &counted).unwrap();
        counted.origin.connections = 2;
        assert!(one_connection(&site, &counted).unwrap_err().contains("2 connections"));
    }

    #[test]
    fn hits_without_a_cache_and_in_levels_that_are_not_there_are_lies() {
        let site = site();
        let error = load(&site, &column(ColumnKind::None, 0), &counted(1, [true, false]));
        assert!(error.unwrap_err().contains("hits without a cache"));
        let mut both = counted(1, [true, false]);
        let is_right = |both: &CountedLoad| load(&site, &column(ColumnKind::Both, 4 << 20), both);
        assert!(is_right(&both).unwrap_err().contains("levels"));
        both.report.by_level = BTreeMap::from([("file".to_owned(), 1)]);
        is_right(&both).unwrap();
    }

    #[test]
    fn wrong_failed_and_missing_responses_are_errors() {
        let (site, disk) = (site(), column(ColumnKind::Disk, 4 << 20));
        let good = counted(1, [true, false]);
        let with = |change: &dyn Fn(&mut LoadReport)| {
            let mut changed = good.clone();
            change(&mut changed.report);
            load(&site, &disk, &changed).unwrap_err()
        };
        assert!(with(&|report| report.wrong = 1).contains("not those of the site"));
        assert!(with(&|report| report.requests = 1).contains("1 resources were loaded"));
        let failed = with(&|report| report.first_failure = Some("no server".to_owned()));
        assert!(failed.contains("no server"), "{failed}");
    }

    #[test]
    fn a_cache_that_holds_more_than_it_says_is_caught() {
        let (site, small) = (site(), column(ColumnKind::Disk, 1 << 20));
        let all = counted(2, [false, false]);
        let error = size(&site, &small, std::slice::from_ref(&all)).unwrap_err();
        assert_eq!(error, "1200000 bytes came from a cache of 1048576");
        size(&site, &column(ColumnKind::Disk, 2 << 20), std::slice::from_ref(&all)).unwrap();
        // What was asked for earlier in the pass may be there again.
        let again = [counted(1, [true, false]), counted(2, [false, false])];
        size(&site, &small, &again).unwrap();
    }

    #[test]
    fn a_cache_is_where_its_name_says() {
        let (none, some) = (counted(0, [true, true]), counted(2, [false, false]));
        let [memory, disk] =
            [ColumnKind::Memory, ColumnKind::Disk].map(|kind| column(kind, 4 << 20));
        let place = |column, last, after| place(&site(), column, last, after);
        place(&memory, &some, &none).unwrap();
        assert!(place(&memory, &some, &some).unwrap_err().contains("not on disk"));
        place(&disk, &some, &some).unwrap();
        assert!(place(&disk, &some, &none).unwrap_err().contains("nothing is on disk"));
        place(&disk, &none, &none).unwrap();
        // The page has 1.2 MB: a smaller cache may have evicted all of it.
        place(&column(ColumnKind::Disk, 1 << 20), &some, &none).unwrap();
    }
}
