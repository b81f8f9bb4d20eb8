//! The columns of a browser, with its own caches: measured after ours, printed in a matrix of their own.

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_measure::result::Sample;
use haypile_origin::link::LinkProfile;

use super::kills::Victim;
use super::options::PagesOptions;
use super::printout::{cell, requests};
use crate::experiment::on_pages::browser::{BrowserRun, columns, find_all};
use crate::experiment::on_pages::improvement::{ColumnName, LinkLoads, UNSHAPED, View, links_of};
use crate::experiment::on_pages::links::ColumnLoader;
use crate::experiment::on_pages::measure::{HTTP2_REQUESTS, PageRun, TLS_REQUESTS, patient};
use crate::experiment::session::Session;
use crate::experiment::{Host, Printout};
use haypile_pages::browser::{Browser, BrowserCache, BrowserColumn, BrowserProcess, FIREFOX};
use haypile_pages::site::Site;
use haypile_pages::site::replay::{Reach, for_browsers};
use haypile_pages::{LoaderSettings, Protocol, SiteServer};

/// Finds the browsers that the user has named; notes and leaves out those that are not installed.
pub(super) fn find(options: &PagesOptions, host: &dyn Host) -> anyhow::Result<Vec<Browser>> {
    if options.browsers.is_empty() {
        return Ok(Vec::new());
    }
    find_all(&options.browsers, Browser::find, host)
}

/// Checks that these browsers can load the pages of a site as the options say.
///
/// # Errors
///
/// HTTP/2 without https, and a browser that loads http alone.
pub(super) fn check(
    options: &PagesOptions,
    site: &Site,
    browsers: &[Browser],
) -> anyhow::Result<()> {
    if !browsers.is_empty() && options.protocol == Protocol::H2 && !site.has_https() {
        let change = if options.hars.is_empty() { "add --https, or " } else { "" };
        bail!(
            "browsers speak HTTP/2 over TLS alone, and the pages have no https; {change}leave --protocol h2 out"
        );
    }
    if let Some(browser) = browsers.iter().find(|browser| !browser.speaks_https())
        && site.has_https()
    {
        bail!(
            "{} does not load pages by https here yet; leave --https out, or load them in firefox, as in haypile \
             lab pages --https --browser firefox",
            browser.name
        );
    }
    Ok(())
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
    let replay = for_browsers(site, Reach { https: true })?;
    for note in replay.counts.notes() {
        host.note(&note);
    }
    host.note(
        "all cache configurations load these changed pages, including those of haypile's cache; \
         browsers load them without the waits of the recording",
    );
    Ok(replay.site)
}

/// Measures page loads in each of the browsers, on a server for them.
pub(super) fn measure_all(
    options: &PagesOptions,
    pages: &PageRun<'_>,
    browsers: &[Browser],
    sizes: &[u64],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    if browsers.is_empty() {
        return Ok(());
    }
    let mut server = SiteServer::for_browsers(pages.site, options.protocol)?;
    for browser in browsers {
        measure(options, pages, browser, &mut server, sizes, session)?;
    }
    Ok(())
}

/// Measures page loads in a browser with each of its cache configurations over all network links,
/// then kills the browser.
fn measure(
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
        compares_always: false,
    };
    let has_https = pages.site.has_https();
    if has_https {
        pages.host.note(&format!(
            "{}: the column proxy is left out, because the pages have https, and haypile proxy does not end TLS",
            browser.name
        ));
    }
    let columns = columns(browser, memory_bytes, sizes, pages.disks, has_https);
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
    kill(&run, server, disk, options, session)
}

/// Kills the browser with a dirty cache on disk, and has another one load what is left.
fn kill(
    run: &BrowserRun<'_>,
    server: &mut SiteServer,
    column: &BrowserColumn,
    options: &PagesOptions,
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    server.over(&LinkProfile::unshaped(), options.run.seed)?;
    let server = &*server;
    let is_interrupted = || run.pages.host.is_interrupted();
    let victim = Victim {
        subject: run.subject(column),
        medium: column.medium.as_deref(),
        reports_remains: true,
        has_tls: true,
        start: &|place, is_kept, limit| {
            let settings = patient(run.settings, limit);
            let how = (is_kept, true);
            BrowserProcess::start(settings, server, column, place, how, &is_interrupted)
                .map(|process| process.loader)
        },
    };
    run.pages.kills(server, &victim, options.kills, session)
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
    if let Some(protocols) = protocols(counted.unwrap_or(link)) {
        printout.text(protocols);
    }
    printout
}

/// Returns a sentence about the requests of all columns that came over TLS; `None` if there are none.
fn protocols(link: &LinkLoads) -> Option<String> {
    let sum = |name: &str| link.columns.iter().map(|(_, loads)| loads.count(name)).sum::<u64>();
    let (all, tls, http2) = (sum("origin_requests"), sum(TLS_REQUESTS), sum(HTTP2_REQUESTS));
    (tls > 0).then(|| {
        format!(
            "https: of {all} requests to the origin, {tls} came over TLS 1.3, of which {http2} by HTTP/2. A proxy does \
             not end\nTLS, so that there is no such column.\n"
        )
    })
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
