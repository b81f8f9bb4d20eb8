//! The site, the visits and the columns of a run.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_measure::measure::Places;
use haypile_number::grouped;

use super::options::{Medium, PagesOptions};
use crate::experiment::Host;
use crate::pages::{Column, ColumnKind};
use crate::site::generate::Generator;
use crate::site::manifest::{Manifest, Visits};
use crate::site::{Site, har};

/// A directory, and the name of the medium that it lies on.
pub(crate) struct Disk {
    pub(crate) name: Option<String>,
    pub(crate) directory: PathBuf,
}

/// Reads or generates the site; returns what results call it as well.
pub(super) fn site(options: &PagesOptions, host: &dyn Host) -> anyhow::Result<(Site, String)> {
    let now = SystemTime::now();
    if options.hars.is_empty() {
        let (seed, pages) = (options.run.seed, options.pages as usize);
        let generator = match options.weight {
            Some(ByteSize(weight)) => Generator::of_weight(seed, pages, weight),
            None => Generator::at_percentile(seed, pages, options.percentile),
        };
        let size = options.weight.map_or_else(|| options.percentile.to_string(), |w| w.to_string());
        return Ok((generator.generate(now)?, format!("generated:{pages}x{size}")));
    }
    let (mut site, mut names) = (Site::default(), Vec::new());
    for path in &options.hars {
        let read = har::read(path, now)?;
        for warning in &read.warnings {
            host.note(&format!("warning: {}: {warning}", path.display()));
        }
        site.append(read.site);
        let name = path.file_name().unwrap_or(path.as_os_str());
        names.push(name.to_string_lossy().into_owned());
    }
    site.validate()?;
    Ok((site, names.join("+")))
}

/// The order in which pages are visited.
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

/// The columns of the matrix: none, memory, and disk and both for each size and medium.
pub(crate) fn columns(memory_bytes: u64, disk_bytes: &[u64], disks: &[Disk]) -> Vec<Column> {
    let column = |kind, disk_bytes, medium| Column { kind, memory_bytes, disk_bytes, medium };
    let mut columns = vec![column(ColumnKind::None, 0, None), column(ColumnKind::Memory, 0, None)];
    for disk in disks {
        for kind in [ColumnKind::Disk, ColumnKind::Both] {
            let of_size = |&bytes: &u64| column(kind, bytes, disk.name.clone());
            columns.extend(disk_bytes.iter().map(of_size));
        }
    }
    columns
}

/// The directories for disk caches.
pub(crate) fn disks(media: &[Medium], directory: &Path) -> anyhow::Result<Vec<Disk>> {
    for (at, medium) in media.iter().enumerate() {
        if media[..at].iter().any(|other| other.name == medium.name) {
            bail!("two media are called '{}'", medium.name);
        }
    }
    let named = media.iter().map(|medium| {
        let directory = std::path::absolute(&medium.path)?;
        Ok(Disk { name: Some(medium.name.clone()), directory })
    });
    let disks: Vec<Disk> = if media.is_empty() {
        vec![Disk { name: None, directory: directory.to_owned() }]
    } else {
        named.collect::<anyhow::Result<_>>()?
    };
    for disk in &disks {
        let is_there = disk.directory.metadata();
        let is_there =
            is_there.with_context(|| format!("no caches in {}", disk.directory.display()))?;
        if !is_there.is_dir() {
            bail!("no caches in {}: not a directory", disk.directory.display());
        }
        // Found before the first column is loaded, and not at the first one with a file.
        Places::new(&disk.directory)
            .with_context(|| format!("no caches in {}", disk.directory.display()))?;
    }
    Ok(disks)
}

/// A sentence about the pages, for users.
pub(crate) fn description(site: &Site, visits: &Visits) -> String {
    let counts = site.counts();
    let inferred = match counts.inferred {
        0 => String::new(),
        inferred => format!(
            "; what caused {} of the loads is inferred from times",
            grouped(inferred as u64)
        ),
    };
    format!(
        "{} pages with {} resources of {} hosts, {} visits; working set {} (larger caches differ in \
         nothing){inferred}",
        counts.pages,
        grouped(counts.resources as u64),
        counts.hosts,
        visits.len(),
        ByteSize(site.working_set_bytes()),
    )
}
