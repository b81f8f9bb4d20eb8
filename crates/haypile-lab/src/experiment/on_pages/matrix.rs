//! The columns of a matrix, and the directories of their caches.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_measure::measure::Places;
use haypile_number::{Quantity, grouped, with_plain_spaces};

use super::improvement::ColumnName;
use super::options::Medium;
use haypile_pages::site::manifest::Visits;
use haypile_pages::site::{Resource, Site};
use haypile_pages::{Column, ColumnKind, NoVarySearch};

/// A directory for disk caches, and the name of the storage medium that it lies on.
pub(crate) struct Disk {
    pub(crate) name: Option<String>,
    pub(crate) directory: PathBuf,
}

/// Returns the cache configurations to measure: no cache, memory alone, and disk with and without
/// memory for each size and medium.
pub(crate) fn columns(memory_bytes: u64, disk_bytes: &[u64], disks: &[Disk]) -> Vec<Column> {
    let column = |kind, disk_bytes, medium| Column {
        kind,
        memory_bytes,
        disk_bytes,
        medium,
        no_vary_search: NoVarySearch::Heeded,
    };
    let mut columns = vec![column(ColumnKind::None, 0, None), column(ColumnKind::Memory, 0, None)];
    for disk in disks {
        for kind in [ColumnKind::Disk, ColumnKind::Both] {
            let of_size = |&bytes: &u64| column(kind, bytes, disk.name.clone());
            columns.extend(disk_bytes.iter().map(of_size));
        }
    }
    columns
}

/// Adds, for each cache, one of the same configuration that does not know `No-Vary-Search`.
pub(crate) fn add_without_no_vary_search(columns: &mut Vec<Column>) {
    let caches = columns.iter().filter(|column| column.kind != ColumnKind::None);
    let without =
        |column: &Column| Column { no_vary_search: NoVarySearch::Ignored, ..column.clone() };
    let without: Vec<Column> = caches.map(without).collect();
    columns.extend(without);
}

/// Checks that the directories for disk caches exist and can be written, and returns one for each
/// storage medium.
pub(crate) fn disks(media: &[Medium], directory: &Path) -> anyhow::Result<Vec<Disk>> {
    for (at, medium) in media.iter().enumerate() {
        if media[..at].iter().any(|other| other.name == medium.name) {
            bail!("two storage media have the name '{}'; give each a name of its own", medium.name);
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
        let is_there = is_there.with_context(|| {
            format!("disk caches cannot be created in {}", disk.directory.display())
        })?;
        if !is_there.is_dir() {
            bail!(
                "disk caches cannot be created in {}, which is not a directory; name another path",
                disk.directory.display()
            );
        }
        // Found before the first column is loaded, and not at the first one with a file.
        Places::new(&disk.directory).with_context(|| {
            format!("disk caches cannot be created in {}", disk.directory.display())
        })?;
    }
    Ok(disks)
}

/// Returns a sentence for users about the web pages and visits of a run.
pub(crate) fn description(site: &Site, visits: &Visits) -> String {
    let counts = site.counts();
    let inferred = match counts.inferred {
        0 => String::new(),
        inferred => format!(
            "; what caused {} of the loads is inferred from times",
            grouped(inferred as u64)
        ),
    };
    let working_set_bytes = site.working_set_bytes();
    let largest = site.cacheable().map(Resource::body_len).max().unwrap_or(0);
    let enough_bytes = working_set_bytes.max(largest.saturating_mul(Column::LARGEST_BODIES));
    let larger = if enough_bytes > working_set_bytes {
        format!("caches above {} differ in nothing", ByteSize(enough_bytes))
    } else {
        "larger caches differ in nothing".to_owned()
    };
    format!(
        "{} pages with {} resources of {} hosts, {} visits; working set {} ({larger}){inferred}",
        counts.pages,
        grouped(counts.resources as u64),
        counts.hosts,
        visits.len(),
        ByteSize(working_set_bytes),
    )
}

/// Returns a warning about web resources that caches refuse because of their size; `None` if none
/// is refused.
pub(crate) fn refusals(site: &Site, columns: &[Column]) -> Option<String> {
    let refused = |column: &Column| {
        let largest = column.largest_body_bytes();
        let refused = site.cacheable().map(Resource::body_len).filter(|bytes| *bytes > largest);
        let (count, bytes) = refused.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes));
        let name = ColumnName::parse("http", &column.subject())?;
        let text = format!("{name} {count} ({} in all)", Quantity::Bytes.write(bytes as f64));
        (count > 0).then_some(text)
    };
    let cached = columns.iter().filter(|column| column.kind != ColumnKind::None);
    let refused: Vec<String> = cached.filter_map(refused).collect();
    (!refused.is_empty()).then(|| {
        with_plain_spaces(&format!(
            "warning: a cache refuses bodies above an eighth of its size, as browsers do, and saves nothing of their time: {} of \
             {} cacheable resources",
            refused.join(", "),
            grouped(site.cacheable().count() as u64)
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::SystemTime;

    use haypile_pages::site::har;
    use serde_json::json;

    use super::*;

    /// A page of 10 kB with an image of 1 MB.
    fn site() -> Site {
        let entry = |url: &str, bytes: u64| {
            json!({
                "request": {"method": "GET", "url": url}, "startedDateTime": "2026-11-20T10:00:00Z",
                "response": {"status": 200, "headers": [{"name": "Cache-Control", "value": "max-age=86400"}],
                    "bodySize": bytes, "content": {"size": bytes}},
            })
        };
        let entries = [entry("http://a.test/", 10_000), entry("http://a.test/i.png", 1_000_000)];
        let har = json!({"log": {"entries": entries}}).to_string();
        har::parse(Path::new("x.har"), har.as_bytes(), SystemTime::UNIX_EPOCH).unwrap().site
    }

    #[test]
    fn bodies_that_are_refused_for_their_size_are_named() {
        let site = site();
        let disks = [Disk { name: None, directory: PathBuf::from("/") }];
        let columns = |sizes: &[u64]| columns(50_000_000, sizes, &disks);
        let said = refusals(&site, &columns(&[6_000_000, 20_000_000])).unwrap();
        assert!(
            said.contains("disk 6MB 1 (977") && said.ends_with("of 2 cacheable resources"),
            "{said}"
        );
        assert!(
            !said.contains("20MB") && !said.contains("both") && !said.contains("memory"),
            "{said}"
        );
        assert_eq!(refusals(&site, &columns(&[8_000_000])), None, "an eighth is stored");
        let visits = Visits::of_pages([0, 0]);
        let description = description(&site, &visits);
        assert!(description.contains("(caches above 8MB differ in nothing)"), "{description}");
    }
}
