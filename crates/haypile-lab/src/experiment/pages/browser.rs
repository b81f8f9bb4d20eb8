//! The columns of a browser, with its own caches: measured after ours, printed in a matrix of their own.

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_measure::measure::Places;
use haypile_measure::result::{Sample, SubjectId};
use haypile_origin::link::LinkProfile;
use serde_json::Value;

use super::kills::Victim;
use super::options::PagesOptions;
use super::printout::{cell, requests};
use crate::experiment::on_pages::improvement::{
    ColumnName, LOAD, LinkLoads, UNSHAPED, View, links_of,
};
use crate::experiment::on_pages::links::ColumnLoader;
use crate::experiment::on_pages::matrix::Disk;
use crate::experiment::on_pages::measure::{Measured, PageRun, passes, patient};
use crate::experiment::session::Session;
use crate::experiment::{Host, Printout, parameters};
use haypile_pages::browser::{
    Browser, BrowserCache, BrowserColumn, BrowserError, BrowserProcess, FIREFOX, verify_load,
    verify_place, verify_size, verify_warm,
};
use haypile_pages::site::Site;
use haypile_pages::site::replay::{Reach, for_browsers};
use haypile_pages::verify::CountedLoad;
use haypile_pages::{LoaderError, LoaderSettings, Protocol, SiteServer};

/// Whether a missing browser is an error and not skipped.
const REQUIRED: &str = "HAYPILE_REQUIRE_RIVALS";

/// Finds the browsers that the user has named; notes and leaves out those that are not installed.
pub(super) fn find(options: &PagesOptions, host: &dyn Host) -> anyhow::Result<Vec<Browser>> {
    if options.browsers.is_empty() {
        return Ok(Vec::new());
    }
    if options.protocol == Protocol::H2 {
        bail!(
            "browsers use HTTP/2 only over TLS, and the origin server speaks plain HTTP; leave \
             --protocol h2 out"
        );
    }
    let mut found = Vec::new();
    for named in &options.browsers {
        match Browser::find(named) {
            Ok(browser) => found.push(browser),
            Err(BrowserError::Missing(why)) if !is_required() => {
                host.note(&format!("the browser '{named}' is not measured: {why}"));
            }
            Err(error) => bail!("{error}"),
        }
    }
    Ok(found)
}

/// Returns the recorded pages in the form in which these browsers can load them, and notes for the
/// user in which ways it differs from the recording.
pub(super) fn replay(site: &Site, browsers: &[Browser], host: &dyn Host) -> anyhow::Result<Site> {
    if let Some(browser) = browsers.iter().find(|browser| !browser.loads_recordings()) {
        bail!(
            "the browser {} can load only generated sites, not recorded ones; leave the HAR out, \
             or load it in firefox, as in haypile lab pages visit.har --browser firefox",
            browser.name
        );
    }
    // Browsers have no reason to trust the origin's certificates.
    let replay = for_browsers(site, Reach { https: false })?;
    for note in replay.counts.notes() {
        host.note(&note);
    }
    host.note(
        "all cache configurations load these changed pages, including those of haypile's cache; \
         browsers load them without the waits of the recording",
    );
    Ok(replay.site)
}

fn is_required() -> bool {
    std::env::var(REQUIRED).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// The columns: none, memory, a proxy of ours, and disk and both for each size and medium.
fn columns(
    browser: &Browser,
    memory_bytes: u64,
    sizes: &[u64],
    disks: &[Disk],
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
    columns.push(column(BrowserCache::Proxy, memory_bytes, 0, None));
    columns
}

/// Measures page loads in a browser with each of its cache configurations over all network links,
/// then kills the browser.
pub(super) fn measure(
    options: &PagesOptions,
    pages: &PageRun<'_>,
    browser: &Browser,
    server: &mut SiteServer,
    sizes: &[u64],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    let ByteSize(memory_bytes) = options.memory;
    let run = BrowserRun {
        pages,
        browser,
        settings: LoaderSettings { runner: &browser.runner, ..pages.loader },
    };
    let columns = columns(browser, memory_bytes, sizes, pages.disks);
    run.links(server, &options.links, &columns, options.blocks, session)?;
    if options.kills == 0 {
        return Ok(());
    }
    if !browser.reports_remains() {
        pages
            .host
            .note(&format!("{} is not killed: its loader does not support that", browser.name));
        return Ok(());
    }
    let disk = columns.iter().filter(|column| column.cache == BrowserCache::Disk);
    let disk = disk.max_by_key(|column| column.disk_bytes).context("no column has a disk cache")?;
    run.kills(server, disk, options, session)
}

/// Everything that the columns of a browser have in common.
struct BrowserRun<'a> {
    pages: &'a PageRun<'a>,
    browser: &'a Browser,
    settings: LoaderSettings<'a>,
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
            let how = (is_kept, is_verified_after);
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
        for pass in passes(visits.as_slice()) {
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
            let parameters = parameters([
                ("site", self.pages.site_name.into()),
                ("link", link.name.as_str().into()),
                ("page", page),
                ("visit", visit),
                ("protocol", self.settings.protocol.name().into()),
                ("connections", self.settings.connections.into()),
                // As browsers are, whatever the option says for our loader.
                ("partitioned", true.into()),
            ]);
            let run = &self.pages.run;
            Sample::blank(run, &*run.experiment, LOAD, parameters, subject.clone())
        };
        self.pages.rows(measured, row)
    }
}

impl BrowserRun<'_> {
    fn subject(&self, column: &BrowserColumn) -> SubjectId {
        let medium = column.medium.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        SubjectId {
            name: format!("{}:{column}{medium}", self.browser.name),
            version: self.browser.version.clone(),
            language: self.browser.language.clone(),
            program: self.browser.runner.label.clone(),
        }
    }

    /// Kills the browser with a dirty cache on disk, and has another one load what is left.
    fn kills(
        &self,
        server: &mut SiteServer,
        column: &BrowserColumn,
        options: &PagesOptions,
        session: &mut Session<'_>,
    ) -> anyhow::Result<()> {
        server.over(&LinkProfile::unshaped(), options.run.seed)?;
        let server = &*server;
        let is_interrupted = || self.pages.host.is_interrupted();
        let victim = Victim {
            subject: self.subject(column),
            medium: column.medium.as_deref(),
            reports_remains: true,
            start: &|place, is_kept, limit| {
                let settings = patient(self.settings, limit);
                let how = (is_kept, true);
                BrowserProcess::start(settings, server, column, place, how, &is_interrupted)
                    .map(|process| process.loader)
            },
        };
        self.pages.kills(server, &victim, options.kills, session)
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
        Ok(load)
    }
}

/// Returns a table of the load time that a browser's caches save over each network link, and the
/// requests that reached the origin.
pub(super) fn printout(browser: &Browser, samples: &[Sample]) -> Printout {
    let links = links_of(&browser.name, samples);
    let counted = links.iter().find(|link| link.link == UNSHAPED);
    let mut printout = Printout::default();
    for link in &links {
        printout.gap().append(matrix(browser, link, counted));
    }
    if let Some(counted) = counted {
        printout.gap().append(requests(counted));
    }
    printout
}

/// The improvements by each cache of the browser over none, and of its disk over its memory.
fn matrix(browser: &Browser, link: &LinkLoads, counted: Option<&LinkLoads>) -> Printout {
    let mut printout = Printout::default();
    let mut title = browser.name.clone();
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    printout.text(format!(
        "{title}'s matrix: {}, {}, version {} (less load time, 95 % interval)\n",
        link.site, link.link, browser.version
    ));
    printout.table(COLUMNS, 2, 2, rows(link, counted));
    printout.text(if browser.name == FIREFOX { OF_FIREFOX } else { OF_CHROMIUM });
    printout
}

/// The meaning of the rows of Chromium, and of programs that drive browsers as its loader does.
const OF_CHROMIUM: &str = "\
memory: its HTTP cache in memory, which has no switch for its size. disk: its HTTP cache on disk.
both: the same, and one tab for all views, whose renderer keeps what it has. proxy: no cache of
its own, and haypile proxy with one in memory.
";

/// The meaning of the rows of Firefox.
const OF_FIREFOX: &str = "\
memory: its HTTP cache in memory. disk: its HTTP cache on disk. both: both of them on, which is the one on
disk (in memory is only what may not be on disk), and the page's process keeps images and style sheets,
which all other columns empty before each view. proxy: no cache of its own, and haypile proxy with one in
memory.
";

/// The headings of a table of the load time that caches save.
pub(super) const COLUMNS: [&str; 5] = ["Cache", "over", "first", "repeat", "all visits"];

/// Returns the rows of a table of the load time that caches save: each cache compared with none,
/// and disk caches compared with memory alone.
pub(super) fn rows(link: &LinkLoads, counted: Option<&LinkLoads>) -> Vec<Vec<String>> {
    let columns = &counted.unwrap_or(link).columns;
    let of = |name: &ColumnName, baseline: &str| {
        let found = link.or_equal(name, counted);
        View::ALL.map(|view| cell(link.baseline(baseline), found, view))
    };
    let mut rows = Vec::new();
    for (name, _) in columns.iter().filter(|(name, _)| name.kind != "none") {
        rows.push(row(name, "none", of(name, "none")));
        if ["disk", "both"].contains(&name.kind) {
            rows.push(row(name, "memory", of(name, "memory")));
        }
    }
    rows
}

fn row(name: &ColumnName, over: &str, cells: [String; 3]) -> Vec<String> {
    [name.to_string(), over.to_owned()].into_iter().chain(cells).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use haypile_measure::measure::Runner;

    use super::*;

    #[test]
    fn firefox_has_the_memory_that_all_columns_have_and_chromium_its_own() {
        let disks = [Disk { name: None, directory: PathBuf::from("/") }];
        let labels = |name: &str| {
            let browser = Browser {
                runner: Runner::rival("/bin/true"),
                name: name.to_owned(),
                version: String::new(),
                language: String::new(),
            };
            let columns = columns(&browser, 50 << 20, &[6_000_000], &disks);
            columns.iter().map(BrowserColumn::label).collect::<Vec<_>>()
        };
        let rest = ["file:size=6MB", "memory+file:size=6MB", "proxy:size=50MiB"];
        assert_eq!(labels("firefox"), [&["none", "memory:size=50MiB"][..], &rest].concat());
        assert_eq!(labels("chromium"), [&["none", "memory"][..], &rest].concat());
    }
}
