//! The columns of a matrix, and the directories of their caches.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_measure::measure::Places;
use haypile_number::grouped;

use super::options::Medium;
use haypile_pages::site::Site;
use haypile_pages::site::manifest::Visits;
use haypile_pages::{Column, ColumnKind};

/// A directory, and the name of the medium that it lies on.
pub(crate) struct Disk {
    pub(crate) name: Option<String>,
    pub(crate) directory: PathBuf,
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
