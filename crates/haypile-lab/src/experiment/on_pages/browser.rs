//! A browser with its own caches as a loader: its cache configurations, and the loads of a site with each of them.

use anyhow::bail;
use haypile_measure::measure::Places;
use haypile_measure::result::{Sample, SubjectId};
use haypile_origin::link::LinkProfile;
use serde_json::Value;

use super::improvement::LOAD;
use super::links::ColumnLoader;
use super::matrix::Disk;
use super::measure::{Measured, PageRun, passes};
use crate::experiment::{Host, parameters};
use haypile_pages::browser::{
    Browser, BrowserCache, BrowserColumn, BrowserError, BrowserProcess, verify_load, verify_place,
    verify_protocols, verify_size, verify_warm,
};
use haypile_pages::verify::CountedLoad;
use haypile_pages::{LoaderError, LoaderSettings, SiteServer};

/// The parameter of rows of pages with https, which browsers load over TLS.
pub(crate) const HTTPS: &str = "https";

/// Whether a missing browser is an error and not skipped.
const REQUIRED: &str = "HAYPILE_REQUIRE_RIVALS";

/// Finds the loaders of the browsers that the user has named, each by `find_one`; notes and leaves out those that are not
/// installed.
pub(crate) fn find_all(
    named: &[String],
    find_one: impl Fn(&str) -> Result<Browser, BrowserError>,
    host: &dyn Host,
) -> anyhow::Result<Vec<Browser>> {
    let mut found = Vec::new();
    for named in named {
        match find_one(named) {
            Ok(browser) => found.push(browser),
            Err(BrowserError::Missing(why)) if !is_required() => {
                host.note(&format!("the browser '{named}' is not measured: {why}"));
            }
            Err(error) => bail!("{error}"),
        }
    }
    Ok(found)
}

fn is_required() -> bool {
    std::env::var(REQUIRED).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// Returns the cache configurations of a browser: none, memory, disk and both for each size and medium, and a proxy of
/// ours unless the pages have https: the proxy does not end TLS, so that nothing of them would be in its cache.
pub(crate) fn columns(
    browser: &Browser,
    memory_bytes: u64,
    sizes: &[u64],
    disks: &[Disk],
    has_https: bool,
) -> Vec<BrowserColumn> {
    let column = |cache, memory_bytes, disk_bytes, medium| BrowserColumn {
        cache,
        memory_bytes,
        disk_bytes,
        medium,
    };
    let own_bytes = if browser.sets_memory_size() { memory_bytes } else { 0 };
    let mut columns = vec![
        column(BrowserCache::None, 0, 0, None),
        column(BrowserCache::Memory, own_bytes, 0, None),
    ];
    for disk in disks {
        for cache in [BrowserCache::Disk, BrowserCache::Both] {
            columns.extend(sizes.iter().map(|&bytes| column(cache, 0, bytes, disk.name.clone())));
        }
    }
    if !has_https {
        columns.push(column(BrowserCache::Proxy, memory_bytes, 0, None));
    }
    columns
}

/// Everything that the columns of a browser have in common.
pub(crate) struct BrowserRun<'a> {
    pub(crate) pages: &'a PageRun<'a>,
    pub(crate) browser: &'a Browser,
    pub(crate) settings: LoaderSettings<'a>,
    /// Whether all bodies are compared at each load, and not only in the pass that counts: for loaders that compare
    /// when the time is over.
    pub(crate) compares_always: bool,
}

impl ColumnLoader for BrowserRun<'_> {
    type Column = BrowserColumn;

    fn pages(&self) -> &PageRun<'_> {
        self.pages
    }

    fn browser(&self) -> Option<&str> {
        Some(&self.browser.name)
    }

    fn is_alike(one: &BrowserColumn, other: &BrowserColumn) -> bool {
        (one.cache, &one.medium) == (other.cache, &other.medium)
    }

    fn column(
        &self,
        server: &SiteServer,
        column: &BrowserColumn,
        is_verified_after: bool,
    ) -> Result<Vec<CountedLoad>, LoaderError> {
        let failed = |error: std::io::Error| LoaderError::Failed(error.to_string());
        let directory = self.pages.directory(column.medium.as_deref());
        let places = Places::new(directory).map_err(failed)?;
        let place = places.next().map_err(failed)?;
        let is_interrupted = || self.pages.host.is_interrupted();
        let start = |is_kept| {
            // The pass that counts also compares all bodies.
            let how = (is_kept, is_verified_after || self.compares_always);
            BrowserProcess::start(self.settings, server, column, &place, how, &is_interrupted)
        };
        let (site, visits) = (self.pages.site, self.pages.visits);
        let mut process = start(false)?;
        let mut loads = Vec::with_capacity(visits.len());
        for visit in visits {
            loads.push(self.load(&mut process, server, column, visit.page)?);
        }
        process.loader.end(&is_interrupted)?;
        let wrong = LoaderError::Failed;
        for pass in passes(self.pages.names, visits.as_slice()) {
            verify_size(site, column, &loads[pass]).map_err(wrong)?;
        }
        verify_warm(site, column, &loads).map_err(wrong)?;
        if is_verified_after && let (Some(last), Some(visit)) = (loads.last(), visits.iter().last())
        {
            let mut process = start(true)?;
            let after = self.load(&mut process, server, column, visit.page)?;
            process.loader.end(&is_interrupted)?;
            verify_place(column, last, &after).map_err(wrong)?;
        }
        Ok(loads)
    }

    fn samples(
        &self,
        link: &LinkProfile,
        column: &BrowserColumn,
        measured: &Measured,
    ) -> Vec<Sample> {
        let subject = self.subject(column);
        let row = |page: Value, visit: Value| {
            let mut parameters = parameters([
                ("site", self.pages.site_name.into()),
                ("link", link.name.as_str().into()),
                ("page", page),
                ("visit", visit),
                ("protocol", self.settings.protocol.name().into()),
                ("connections", self.settings.connections.into()),
                // As browsers are, whatever the option says for our loader.
                ("partitioned", true.into()),
            ]);
            if self.pages.site.has_https() {
                parameters.insert(HTTPS.to_owned(), true.into());
            }
            let run = &self.pages.run;
            Sample::blank(run, &*run.experiment, LOAD, parameters, subject.clone())
        };
        self.pages.rows(measured, row)
    }
}

impl BrowserRun<'_> {
    /// Returns the name of a cache configuration of the browser in results.
    pub(crate) fn subject(&self, column: &BrowserColumn) -> SubjectId {
        let medium = column.medium.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        SubjectId {
            name: format!("{}:{column}{medium}", self.browser.name),
            version: self.browser.version.clone(),
            language: self.browser.language.clone(),
            program: self.browser.runner.label.clone(),
        }
    }

    /// Loads a page and verifies its counts.
    fn load(
        &self,
        process: &mut BrowserProcess,
        server: &SiteServer,
        column: &BrowserColumn,
        page: usize,
    ) -> Result<CountedLoad, LoaderError> {
        let site = self.pages.site;
        let before = server.requests_by_resource();
        let (report, origin) =
            process.loader.load(page, server, &|| self.pages.host.is_interrupted())?;
        let after = server.requests_by_resource();
        let loads = site.pages[page].loads.iter();
        let asked: Vec<u64> =
            loads.map(|load| after[load.resource] - before[load.resource]).collect();
        let was_asked = asked.iter().map(|&times| times > 0).collect();
        let load = CountedLoad { page, report, origin, was_asked };
        verify_load(site, column, &load, &asked).map_err(LoaderError::Failed)?;
        verify_protocols(site, self.settings.protocol, &load, &asked)
            .map_err(LoaderError::Failed)?;
        Ok(load)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use haypile_measure::measure::Runner;

    use super::*;

    #[test]
    fn firefox_has_the_memory_that_all_columns_have_and_chromium_its_own() {
        let disks = [Disk { name: None, directory: PathBuf::from("/") }];
        let labels = |name: &str, has_https| {
            let browser = Browser {
                runner: Runner::rival("/bin/true"),
                name: name.to_owned(),
                version: String::new(),
                language: String::new(),
            };
            let columns = columns(&browser, 50 << 20, &[6_000_000], &disks, has_https);
            columns.iter().map(BrowserColumn::label).collect::<Vec<_>>()
        };
        let rest = ["file:size=6MB", "memory+file:size=6MB", "proxy:size=50MiB"];
        assert_eq!(labels("firefox", false), [&["none", "memory:size=50MiB"][..], &rest].concat());
        let https = [&["none", "memory:size=50MiB"][..], &rest[..2]].concat();
        assert_eq!(labels("firefox", true), https);
        assert_eq!(labels("chromium", false), [&["none", "memory"][..], &rest].concat());
    }
}
