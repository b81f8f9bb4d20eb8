//! The columns of a browser, with its own caches: measured after ours, printed in a matrix of their own.

use std::time::Duration;

use anyhow::bail;
use haypile::ByteSize;
use haypile_measure::measure::{Places, Turns};
use haypile_measure::meter::LoadWatch;
use haypile_measure::result::{Sample, SubjectId};
use haypile_origin::link::LinkProfile;
use serde_json::Value;

use super::options::PagesOptions;
use super::printout::{cell, requests};
use crate::experiment::on_pages::improvement::{
    ColumnName, LOAD, LinkLoads, UNSHAPED, View, links_of,
};
use crate::experiment::on_pages::matrix::Disk;
use crate::experiment::on_pages::measure::{Measured, PageRun, estimate, is_counting, passes};
use crate::experiment::session::{Interrupted, Session};
use crate::experiment::{Host, Printout, parameters};
use crate::pages::browser::{
    Browser, BrowserCache, BrowserColumn, BrowserError, BrowserProcess, verify_load, verify_place,
    verify_size, verify_warm,
};
use crate::pages::verify::CountedLoad;
use crate::pages::{LoaderError, LoaderSettings, Protocol, SiteServer};
use crate::site::{Site, SiteBody};

/// Whether a missing browser is an error and not skipped.
const REQUIRED: &str = "HAYPILE_REQUIRE_RIVALS";

/// Finds the browser that the user has named, if it is there.
pub(super) fn find(
    options: &PagesOptions,
    site: &Site,
    host: &dyn Host,
) -> anyhow::Result<Option<Browser>> {
    let Some(named) = &options.browser else { return Ok(None) };
    if options.protocol == Protocol::H2 {
        bail!(
            "browsers speak HTTP/2 over TLS alone, and the origin speaks plain http; leave --protocol h2 out"
        );
    }
    let is_random = |body: &SiteBody| matches!(body, SiteBody::Generated { .. });
    if site.resources.iter().any(|resource| is_random(&resource.body)) {
        bail!(
            "browsers load generated sites alone: the bodies for a HAR are random bytes, which load \
             nothing; leave the HAR out, or --browser"
        );
    }
    match Browser::find(named) {
        Ok(browser) => Ok(Some(browser)),
        Err(BrowserError::Missing(why)) if !is_required() => {
            host.note(&format!("skipped: {why}"));
            Ok(None)
        }
        Err(error) => bail!("{error}"),
    }
}

fn is_required() -> bool {
    std::env::var(REQUIRED).is_ok_and(|value| !value.is_empty() && value != "0")
}

/// The columns: none, memory, a proxy of ours, and disk and both for each size and medium.
fn columns(proxy_bytes: u64, sizes: &[u64], disks: &[Disk]) -> Vec<BrowserColumn> {
    let column = |cache, proxy_bytes, disk_bytes, medium| BrowserColumn {
        cache,
        proxy_bytes,
        disk_bytes,
        medium,
    };
    let mut columns =
        vec![column(BrowserCache::None, 0, 0, None), column(BrowserCache::Memory, 0, 0, None)];
    for disk in disks {
        for cache in [BrowserCache::Disk, BrowserCache::Both] {
            columns.extend(sizes.iter().map(|&bytes| column(cache, 0, bytes, disk.name.clone())));
        }
    }
    columns.push(column(BrowserCache::Proxy, proxy_bytes, 0, None));
    columns
}

/// Measures the browser's columns over all links.
pub(super) fn measure(
    options: &PagesOptions,
    pages: &PageRun<'_>,
    browser: &Browser,
    server: &mut SiteServer,
    sizes: &[u64],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    let ByteSize(proxy_bytes) = options.memory;
    let run = BrowserRun {
        pages,
        browser,
        settings: LoaderSettings { runner: &browser.runner, ..pages.loader },
    };
    let columns = columns(proxy_bytes, sizes, pages.disks);
    let (host, visits) = (pages.host, pages.visits.len() as u64);
    let links: Vec<&LinkProfile> = options.links.iter().filter(|link| !is_counting(link)).collect();
    let blocks = if links.len() < options.links.len() { options.blocks } else { 1 };
    let all = columns.len() as u64 * visits * blocks;
    host.begin(all, format!("loading pages in {} over no link", browser.name))?;
    let counted = run.link(server, &LinkProfile::unshaped(), &columns, blocks, session)?;
    host.finish();
    let distinct = distinct(&columns, &counted);
    let loads = distinct.iter().filter_map(|&at| counted[at].as_ref().ok());
    let estimate: Duration = links
        .iter()
        .flat_map(|link| loads.clone().map(move |loads| estimate(pages.site, link, loads)))
        .sum();
    let blocks = u32::try_from(options.blocks).unwrap_or(u32::MAX);
    let estimate = Duration::from_secs(estimate.saturating_mul(blocks).as_secs() + 1);
    if !links.is_empty() {
        host.note(&format!(
            "{} of {} columns of {} go over the links, which takes about {}",
            distinct.len(),
            columns.len(),
            browser.name,
            humantime::format_duration(estimate)
        ));
        pages.time.map_or(Ok(()), |time| time.check(estimate))?;
    }
    let distinct: Vec<BrowserColumn> = distinct.iter().map(|&at| columns[at].clone()).collect();
    for link in links {
        let all = distinct.len() as u64 * visits * options.blocks;
        host.begin(all, format!("loading pages in {} over {link}", browser.name))?;
        run.link(server, link, &distinct, options.blocks, session)?;
        host.finish();
    }
    Ok(())
}

/// The columns, by index, whose counts are not equal to those of another one of the same cache.
fn distinct(columns: &[BrowserColumn], counted: &[Measured]) -> Vec<usize> {
    let seen = |at: usize| {
        let loads = counted[at].as_ref().ok()?;
        Some(loads.iter().map(|load| load.origin.seen()).collect::<Vec<_>>())
    };
    let is_equal = |at: usize, other: usize| {
        (columns[at].cache, &columns[at].medium) == (columns[other].cache, &columns[other].medium)
            && seen(at) == seen(other)
    };
    let is_first = |at: &usize| counted[*at].is_ok() && !(0..*at).any(|other| is_equal(*at, other));
    (0..columns.len()).filter(is_first).collect()
}

/// Everything that the columns of a browser have in common.
struct BrowserRun<'a> {
    pages: &'a PageRun<'a>,
    browser: &'a Browser,
    settings: LoaderSettings<'a>,
}

impl BrowserRun<'_> {
    /// Measures columns over a link, as [`PageRun::link`] does.
    fn link(
        &self,
        server: &mut SiteServer,
        link: &LinkProfile,
        columns: &[BrowserColumn],
        blocks: u64,
        session: &mut Session<'_>,
    ) -> anyhow::Result<Vec<Measured>> {
        let seed = self.pages.run.seed;
        let mut turns = Turns::new(seed, 0, columns.len());
        let mut first: Vec<Option<Measured>> = columns.iter().map(|_| None).collect();
        for block in 0..blocks {
            for (position, &at) in turns.next_block().iter().enumerate() {
                let done = block * columns.len() as u64 + position as u64;
                self.pages.check_time(link, (done, blocks * columns.len() as u64))?;
                server.over(link, seed.wrapping_add(block))?;
                let column = &columns[at];
                let watch = LoadWatch::begin();
                let measured = match self.column(server, column, is_counting(link)) {
                    Ok(loads) => Ok(loads),
                    Err(LoaderError::Interrupted) => return Err(Interrupted.into()),
                    Err(LoaderError::Failed(error)) => Err(error),
                };
                let load = Some(watch.end(None));
                for sample in self.samples(link, column, &measured) {
                    let (position, load) = (position as u64, load.clone());
                    session.keep(Sample { block, position, load, ..sample })?;
                }
                if block == 0 {
                    first[at] = Some(measured);
                }
                self.pages.host.advance(self.pages.visits.len() as u64);
            }
        }
        Ok(first.into_iter().flatten().collect())
    }

    /// Loads all visits with the cache of a column, empty at first, and verifies the counts.
    fn column(
        &self,
        server: &SiteServer,
        column: &BrowserColumn,
        is_verified_after: bool,
    ) -> Result<Vec<CountedLoad>, LoaderError> {
        let failed = |error: std::io::Error| LoaderError::Failed(error.to_string());
        let disks = self.pages.disks;
        let disk = disks.iter().find(|disk| disk.name == column.medium).unwrap_or(&disks[0]);
        let places = Places::new(&disk.directory).map_err(failed)?;
        let place = places.next().map_err(failed)?;
        let is_interrupted = || self.pages.host.is_interrupted();
        let start = |is_kept| {
            BrowserProcess::start(self.settings, server, column, &place, is_kept, &is_interrupted)
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

    /// The rows of a column: one for each visit, or one with the error.
    fn samples(
        &self,
        link: &LinkProfile,
        column: &BrowserColumn,
        measured: &Measured,
    ) -> Vec<Sample> {
        let medium = column.medium.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        let subject = SubjectId {
            name: format!("{}:{column}{medium}", self.browser.name),
            version: self.browser.version.clone(),
            language: self.browser.language.clone(),
            program: self.browser.runner.label.clone(),
        };
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
            Sample::blank(&self.pages.run, self.pages.experiment, LOAD, parameters, subject.clone())
        };
        self.pages.rows(measured, row)
    }
}

/// Returns the browser's matrix for each link, and what its columns asked the origin for.
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
    printout.text(
        "memory: its HTTP cache in memory, which has no switch for its size. disk: its HTTP cache on disk.\n\
         both: the same, and one tab for all views, whose renderer keeps what it has. proxy: no cache of\n\
         its own, and haypile proxy with one in memory.\n",
    );
    printout
}

/// The names of a matrix's columns.
pub(super) const COLUMNS: [&str; 5] = ["Cache", "over", "first", "repeat", "all visits"];

/// The rows of a matrix: each cache over none, and those on disk over memory alone.
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
