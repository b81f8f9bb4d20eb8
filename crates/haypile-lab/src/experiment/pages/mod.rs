//! `pages`: Tp4m, the page loads of a browser, with caches in memory, on disk and both, by size and
//! network.
//!
//! ```text
//! HAR or generator ─> Site ─┐                       ┌─> every column unshaped: counts, verified
//! manifest ────────> Visits ┼─> columns, per block ─┤
//! --sizes, --disk-at ───────┘                       └─> distinct columns over each link ─> rows
//! ```
//!
//! Rows have the time of each load; `improvement` pairs them by page and visit.

mod advice;
mod browser;
mod kills;
mod left;
mod options;
mod plan;
mod printout;
mod queries;
mod section;
mod source;
mod tp4m;

use anyhow::Context;
use clap::{ArgMatches, Args, Command};
use haypile::ByteSize;
use haypile_measure::figure::Findings;
use haypile_measure::measure::Runner;
use haypile_measure::result::{Asked, Sample, Samples};
use haypile_origin::link::LinkProfile;

pub use options::{DiskSize, PagesOptions};

use super::fill::Filled;
use super::on_pages::findings::findings;
use super::on_pages::links::ColumnLoader;
use super::on_pages::matrix;
use super::on_pages::measure::{PageRun, TimeLimit, patient, subject};
use super::session::{Session, no_fields};
use super::{Ended, Experiment, Host};
use haypile_pages::site::Site;
use haypile_pages::{Column, ColumnKind, LoaderProcess, LoaderSettings, SiteServer};

/// Name of the experiment `pages` in results.
pub const NAME: &str = "pages";

/// The experiment `pages`: the time that caches save in loading web pages.
pub(crate) struct PagesExperiment;

impl Experiment for PagesExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Page loads with an HTTP cache"
    }

    fn file(&self) -> &'static str {
        include_str!("pages.toml")
    }

    fn arguments(&self, command: Command) -> Command {
        PagesOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let options = filled.get::<PagesOptions>()?;
        options.protocol.check(filled.is_written("connections"))?;
        run(&options, filled.asked, host)
    }

    fn findings(&self, samples: &Samples<'_>) -> Findings {
        findings(samples)
    }

    fn body(
        &self,
        samples: &Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}

fn run(options: &PagesOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    let mut session = Session::new(NAME, asked, &options.run, host)?;
    let disks = matrix::disks(&options.disk_at, &options.run.absolute_directory()?)?;
    let (mut site, mut site_name) = plan::site(options, host)?;
    let browsers = browser::find(options, host)?;
    if !options.hars.is_empty() && !browsers.is_empty() {
        site = browser::replay(&site, &browsers, host)?;
    }
    browser::check(options, &site, &browsers)?;
    if options.no_waits {
        site.drop_waits();
    }
    let mut visits = plan::visits(options, &site)?;
    let description = matrix::description(&site, &visits);
    let mut names = site.page_names();
    if options.visits.query_per_visit {
        (site, visits, names) = queries::site(&site, &visits)?;
        site_name.push_str(queries::OF_SITE);
    }
    let working_set_bytes = site.working_set_bytes();
    for size in options.sizes.iter().filter(|size| size.is_raised(working_set_bytes)) {
        host.note(&format!(
            "warning: {size} of the working set is below the smallest size of a disk cache; {} \
             is used instead",
            ByteSize(size.bytes(working_set_bytes))
        ));
    }
    let mut sizes: Vec<u64> =
        options.sizes.iter().map(|size| size.bytes(working_set_bytes)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ByteSize(memory_bytes) = options.memory;
    let mut columns = matrix::columns(memory_bytes, &sizes, &disks);
    if options.visits.query_per_visit {
        matrix::add_without_no_vary_search(&mut columns);
    }
    session.begin(None)?;
    host.note(&description);
    if let Some(warning) = matrix::refusals(&site, &columns) {
        host.note(&warning);
    }
    let runner = Runner::own()?;
    let mut server = SiteServer::start(&site, options.protocol)?;
    let pages = PageRun {
        site: &site,
        site_name: &site_name,
        names: &names,
        visits: &visits,
        disks: &disks,
        loader: LoaderSettings {
            runner: &runner,
            protocol: options.protocol,
            connections: options.protocol.connections(options.connections.into()),
            is_partitioned: options.partition,
            limit: options.run.timeout,
        },
        run: session.run.clone(),
        host,
        time: options.time.map(TimeLimit::begin),
        passes: if has_recorded_waits(options, &site) { 2 } else { 1 },
    };
    let mut measured = measure(options, &pages, &mut server, &columns, &mut session);
    // Its bodies are in memory, and browsers have a server of their own.
    drop(server);
    if measured.is_ok() {
        measured = browser::measure_all(options, &pages, &browsers, &sizes, &mut session);
    }
    session.end(measured, no_fields, |samples| {
        let mut printout = printout::printout(samples, memory_bytes, options.advise);
        for browser in &browsers {
            printout.gap().append(browser::printout(browser, samples));
        }
        printout
    })
}

/// Measures all links, and kills.
fn measure(
    options: &PagesOptions,
    pages: &PageRun<'_>,
    server: &mut SiteServer,
    columns: &[Column],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    let distinct = pages.links(server, &options.links, columns, options.blocks, session)?;
    without_waits(options, pages, &distinct, session)?;
    if options.kills == 0 {
        return Ok(());
    }
    let disk = columns.iter().filter(|column| column.kind == ColumnKind::Disk);
    let disk = disk.max_by_key(|column| column.disk_bytes).context("no column has a disk cache")?;
    server.over(&LinkProfile::unshaped(), options.run.seed)?;
    let server = &*server;
    let is_interrupted = || pages.host.is_interrupted();
    let victim = kills::Victim {
        subject: subject(disk),
        medium: disk.medium.as_deref(),
        reports_remains: false,
        has_tls: false,
        start: &|place, is_kept, limit| {
            let settings = patient(pages.loader, limit);
            LoaderProcess::start(settings, server, disk, place, is_kept, &is_interrupted)
        },
    };
    pages.kills(server, &victim, options.kills, session)
}

/// Measures the same columns over the same links without the waits of a recording, if it has any: how much a cache
/// saves of a load depends on them more than on the cache.
fn without_waits(
    options: &PagesOptions,
    pages: &PageRun<'_>,
    columns: &[Column],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    if !has_recorded_waits(options, pages.site) {
        return Ok(());
    }
    let mut site = pages.site.clone();
    site.drop_waits();
    let pages = PageRun { site: &site, run: pages.run.clone(), ..*pages };
    let mut server = SiteServer::start(&site, options.protocol)?;
    for link in &options.links {
        let link = LinkProfile { name: format!("{}{NO_WAITS}", link.name), ..link.clone() };
        pages.columns(&mut server, &link, columns, options.blocks, session)?;
    }
    Ok(())
}

/// Returns whether pages wait as a recording did.
fn has_recorded_waits(options: &PagesOptions, site: &Site) -> bool {
    !options.hars.is_empty() && site.pages.iter().any(|page| !page.waits().is_zero())
}

/// The end of the name of a link over which the waits of a recording were left out.
const NO_WAITS: &str = " without waits";

/// The rows of kills.
fn killed<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> impl Iterator<Item = &'a Sample> {
    samples.into_iter().filter(|sample| sample.case == kills::KILLED)
}
