//! A list in a browser, by its requests and through its own caches: measured after ours.

use anyhow::bail;
use haypile::ByteSize;
use haypile_pages::browser::Browser;
use haypile_pages::site::Site;
use haypile_pages::site::replay::{Reach, out_of_reach};
use haypile_pages::{LoaderSettings, Protocol, SiteServer};

use super::options::ResourcesOptions;
use crate::experiment::Host;
use crate::experiment::on_pages::browser::{BrowserRun, columns, find_all};
use crate::experiment::on_pages::links::ColumnLoader;
use crate::experiment::on_pages::measure::PageRun;
use crate::experiment::session::Session;

/// Finds the browsers that the user has named, if they can load all of the list; notes and leaves out those that are not
/// installed.
pub(super) fn find(
    options: &ResourcesOptions,
    site: &Site,
    host: &dyn Host,
) -> anyhow::Result<Vec<Browser>> {
    if options.browsers.is_empty() {
        return Ok(Vec::new());
    }
    if options.protocol == Protocol::H2 {
        bail!(
            "browsers use HTTP/2 only over TLS, and a list is loaded in them by plain HTTP; leave --protocol h2 out"
        );
    }
    // The browser has no reason to trust the origin's certificates.
    let out = out_of_reach(site, Reach { https: false });
    if !out.is_empty() {
        let reasons: Vec<String> =
            out.iter().map(|(why, count)| format!("{count} {}", why.reason())).collect();
        bail!(
            "a browser cannot load the whole list ({}); write other URLs, such as http://site.test/a.js, or leave \
             --browser out",
            reasons.join("; ")
        );
    }
    find_all(&options.browsers, Browser::find_for_lists, host)
}

/// Loads the list in a browser with each of its cache configurations over all network links.
pub(super) fn measure(
    options: &ResourcesOptions,
    pages: &PageRun<'_>,
    browser: &Browser,
    server: &mut SiteServer,
    session: &mut Session<'_>,
) -> anyhow::Result<()> {
    let (ByteSize(memory_bytes), ByteSize(disk_bytes)) = (options.memory, options.size);
    let run = BrowserRun {
        pages,
        browser,
        settings: LoaderSettings { runner: &browser.runner, ..pages.loader },
        compares_always: true,
    };
    let columns = columns(browser, memory_bytes, &[disk_bytes], pages.disks, false);
    for link in &options.links {
        run.columns(server, link, &columns, options.blocks, session)?;
    }
    Ok(())
}
