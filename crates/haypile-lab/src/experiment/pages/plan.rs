//! The site, the visits and the columns of a run.

use std::time::SystemTime;

use haypile::ByteSize;

use super::options::PagesOptions;
use crate::experiment::Host;
use crate::experiment::on_pages::improvement::GENERATED;
use haypile_pages::site::generate::Generator;
use haypile_pages::site::manifest::{Manifest, Visits};
use haypile_pages::site::{Site, har};

/// Reads or generates the web site whose pages are loaded; also returns its name in results.
pub(super) fn site(options: &PagesOptions, host: &dyn Host) -> anyhow::Result<(Site, String)> {
    let now = SystemTime::now();
    if options.hars.is_empty() {
        let (seed, pages) = (options.run.seed, options.pages as usize);
        let is_https = options.generated.https;
        let generator = match options.weight {
            Some(ByteSize(weight)) => Generator::of_weight(seed, pages, weight),
            None => Generator::at_percentile(seed, pages, options.percentile),
        };
        let size = options.weight.map_or_else(|| options.percentile.to_string(), |w| w.to_string());
        let generator = Generator { is_https, ..generator };
        let scheme = if is_https { " by https" } else { "" };
        return Ok((generator.generate(now)?, format!("{GENERATED}{pages}x{size}{scheme}")));
    }
    let (mut site, mut names) = (Site::default(), Vec::new());
    for path in &options.hars {
        let read = har::read(path, now)?;
        for warning in &read.warnings {
            host.note(&format!("warning: in the recording {}: {warning}", path.display()));
        }
        site.append(read.site);
        let name = path.file_name().unwrap_or(path.as_os_str());
        names.push(name.to_string_lossy().into_owned());
    }
    site.validate()?;
    Ok((site, names.join("+")))
}

/// Returns the page visits of a run: the order in which pages are loaded.
pub(super) fn visits(options: &PagesOptions, site: &Site) -> anyhow::Result<Visits> {
    if let Some(path) = &options.manifest {
        return Ok(Manifest::read(path)?.visits(site)?);
    }
    let pages = site.pages.len();
    Ok(match options.rounds {
        Some(rounds) => Visits::of_pages((0..rounds).flat_map(|_| 0..pages)),
        None => Visits::in_groups(pages),
    })
}
