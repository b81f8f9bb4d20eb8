//! `resources`: a list of resources, hierarchical, loaded as a page is; the driver that the Necko
//! benchmarks wished for.

mod browser;
mod options;
mod printout;
mod section;

use std::path::Path;
use std::time::SystemTime;

use clap::{ArgMatches, Args, Command};
use haypile::ByteSize;
use haypile_measure::figure::Findings;
use haypile_measure::measure::Runner;
use haypile_measure::result::{Asked, Samples};

pub use options::ResourcesOptions;

use super::fill::Filled;
use super::on_pages::findings::findings;
use super::on_pages::links::ColumnLoader;
use super::on_pages::matrix;
use super::on_pages::measure::PageRun;
use super::session::{Session, no_fields};
use super::{Ended, Experiment, Host};
use haypile_pages::site::manifest::Visits;
use haypile_pages::site::{SiteSource, har, list};
use haypile_pages::{Column, LoaderSettings, SiteServer};

/// Name of the experiment `resources` in results.
pub const NAME: &str = "resources";

/// The list that is loaded where the user names none.
const SAMPLE: &str = include_str!("sample.txt");

/// The experiment `resources`: the time of loading each web resource of a list, with and without
/// caches.
pub(crate) struct ResourcesExperiment;

impl Experiment for ResourcesExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "A list of resources"
    }

    fn file(&self) -> &'static str {
        include_str!("resources.toml")
    }

    fn arguments(&self, command: Command) -> Command {
        ResourcesOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let options = filled.get::<ResourcesOptions>()?;
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

fn run(options: &ResourcesOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    let mut session = Session::new(NAME, asked, &options.run, host)?;
    let disks = matrix::disks(&options.disk_at, &options.run.absolute_directory()?)?;
    let (source, site_name) = source(options.list.as_deref())?;
    for warning in &source.warnings {
        host.note(&format!("warning: in the list of resources: {warning}"));
    }
    let mut site = source.site;
    if options.no_waits {
        site.drop_waits();
    }
    let browsers = browser::find(options, &site, host)?;
    let visits = Visits::of_pages([0, 0]);
    let (ByteSize(memory_bytes), ByteSize(disk_bytes)) = (options.memory, options.size);
    let columns = matrix::columns(memory_bytes, &[disk_bytes], &disks);
    session.begin(None)?;
    host.note(&matrix::description(&site, &visits));
    if let Some(warning) = matrix::refusals(&site, &columns) {
        host.note(&warning);
    }
    let runner = Runner::own()?;
    let mut server = SiteServer::start(&site, options.protocol)?;
    let pages = PageRun {
        site: &site,
        site_name: &site_name,
        names: &site.page_names(),
        visits: &visits,
        disks: &disks,
        loader: LoaderSettings {
            runner: &runner,
            protocol: options.protocol,
            connections: options.protocol.connections(options.connections.into()),
            is_partitioned: false,
            limit: options.run.timeout,
        },
        run: session.run.clone(),
        host,
        time: None,
        passes: 1,
    };
    let mut measured = measure(options, &pages, &mut server, &columns, &mut session);
    for browser in &browsers {
        if measured.is_ok() {
            measured = browser::measure(options, &pages, browser, &mut server, &mut session);
        }
    }
    session.end(measured, no_fields, printout::printout)
}

/// Measures all links.
fn measure(
    options: &ResourcesOptions,
    pages: &PageRun<'_>,
    server: &mut SiteServer,
    columns: &[Column],
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    for link in &options.links {
        let all = columns.len() as u64 * pages.visits.len() as u64 * options.blocks;
        pages.host.begin(all, format!("loading resources over {link}"))?;
        pages.link(server, link, columns, options.blocks, session)?;
        pages.host.finish();
    }
    Ok(())
}

/// Reads the resources, and returns what results call them as well.
fn source(path: Option<&Path>) -> anyhow::Result<(SiteSource, String)> {
    let Some(path) = path else {
        return Ok((list::parse(Path::new("sample"), SAMPLE.as_bytes())?, "sample".to_owned()));
    };
    let is_har = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("har"));
    let source = if is_har { har::read(path, SystemTime::now())? } else { list::read(path)? };
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok((source, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_a_page_whose_resources_cause_others() {
        let (source, _) = source(None).unwrap();
        assert!(source.warnings.is_empty(), "{:?}", source.warnings);
        let page = &source.site.pages[0];
        assert_eq!((source.site.pages.len(), page.loads.len()), (1, 10));
        let causes: Vec<_> = page.loads.iter().map(|load| load.after).collect();
        let expected = [None, Some(0), Some(1), Some(1), Some(0), Some(4), Some(4)];
        assert_eq!(causes[..7], expected);
        assert_eq!(source.site.page_weight_bytes(0), 361_000);
    }
}
