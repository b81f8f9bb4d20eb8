//! The table of the source with today's caches in it: the time that a disk cache saves alone and over the memory cache,
//! of our loader, of each browser, and of the source's devices.

use haypile::ByteSize;
use haypile_measure::result::{Sample, Samples};

use super::printout::cell;
use super::source;
use crate::experiment::on_pages::improvement::{
    ColumnName, LinkLoads, UNSHAPED, View, links_of, loaders, noticed,
};
use crate::report::table::NOTHING;

/// Name of our loader in rows, and for people.
const OURS: (&str, &str) = ("http", "haypile");
/// The rows of the source, with the kinds of the columns that they compare.
const ROWS: [(&str, &str, &str, [&str; 5]); 2] = [
    ("Disk Cache Only", "disk", "none", source::DISK_ONLY),
    ("Both Caches", "both", "memory", source::BOTH),
];

/// A table that compares today's load times over one network link with those of Tp4m, a page-load
/// test of 2011.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tp4mTable {
    pub(super) site: String,
    pub(super) link: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Tp4mTable {
    /// Returns the Tp4m table transposed: a row for each browser and size, or device, with the time
    /// that a disk cache saves alone and in addition to memory.
    pub(super) fn by_column(&self) -> Vec<Vec<String>> {
        // Each of `ROWS` has the same browsers.
        let (alone, both) = self.rows.split_at(self.rows.len() / ROWS.len());
        let of_browser = |(alone, both): (&Vec<String>, &Vec<String>)| {
            let has_any = |at: &usize| [alone, both].iter().any(|row| row[*at] != NOTHING);
            let columns = (2..self.header.len()).filter(has_any);
            let row = |at: usize| [&alone[1], &self.header[at], &alone[at], &both[at]];
            columns.map(|at| row(at).map(String::clone).to_vec()).collect::<Vec<_>>()
        };
        alone.iter().zip(both).flat_map(of_browser).collect()
    }
}

/// The loads of one loader over one link, and over no link, where they were counted.
struct LoaderLink {
    name: String,
    link: LinkLoads,
    counted: Option<LinkLoads>,
}

/// Returns, for each emulated network link, a table that compares the load times of generated sites
/// with the published ones of Tp4m, a page-load test of 2011. A user's own site has none, because
/// it was not among the published ones.
pub(super) fn tables<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<Tp4mTable> {
    let samples: Samples<'a> = samples.into_iter().collect();
    let mut all: Vec<LoaderLink> = Vec::new();
    let mut names = loaders(&samples);
    names.remove(OURS.0);
    for name in std::iter::once(OURS.0).chain(names) {
        let links = links_of(name, samples.iter().copied());
        let counted = |site: &str| {
            links.iter().find(|link| link.link == UNSHAPED && link.site == site).cloned()
        };
        all.extend(noticed(&links).filter(|link| link.is_generated()).map(|link| LoaderLink {
            name: with_version(name, &samples),
            counted: counted(&link.site),
            link: link.clone(),
        }));
    }
    let mut places: Vec<(&str, &str)> = Vec::new();
    for found in &all {
        let place = (&*found.link.site, &*found.link.link);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let is_of =
        |found: &&LoaderLink, place: (&str, &str)| (&*found.link.site, &*found.link.link) == place;
    places
        .iter()
        .map(|&place| table(&all.iter().filter(|found| is_of(found, place)).collect::<Vec<_>>()))
        .collect()
}

/// Returns the name of a loader for people: browsers have their version.
fn with_version(name: &str, samples: &Samples<'_>) -> String {
    if name == OURS.0 {
        return OURS.1.to_owned();
    }
    let is_own = |sample: &&&Sample| sample.subject.name.split(':').next() == Some(name);
    let version = samples.iter().find(is_own).map_or("", |sample| &*sample.subject.version);
    format!("{name} {version}").trim_end().to_owned()
}

impl LoaderLink {
    fn names(&self) -> impl Iterator<Item = &ColumnName> {
        let counted = self.counted.as_ref().unwrap_or(&self.link);
        counted.columns.iter().map(|(name, _)| name)
    }

    fn media(&self) -> Vec<&str> {
        let disks = self.names().filter(|name| name.disk_bytes > 0);
        let mut media: Vec<&str> = disks.map(|name| &*name.medium).collect();
        media.sort_unstable();
        media.dedup();
        media
    }

    /// Returns what a kind of columns saves over another, by size.
    fn cells(&self, (kind, baseline): (&str, &str), medium: &str, sizes: &[u64]) -> Vec<String> {
        let counted = self.counted.as_ref();
        let of_size = |size: &u64| {
            let is_own = |name: &&ColumnName| {
                (name.kind, name.disk_bytes, &*name.medium) == (kind, *size, medium)
            };
            let found =
                self.names().find(is_own).and_then(|name| self.link.or_equal(name, counted));
            cell(self.link.baseline(baseline), found, View::All)
        };
        sizes.iter().map(of_size).collect()
    }
}

/// Puts the loaders over one link together.
fn table(loaders: &[&LoaderLink]) -> Tp4mTable {
    let mut sizes: Vec<u64> = loaders
        .iter()
        .flat_map(|loader| loader.names().map(|name| name.disk_bytes))
        .filter(|bytes| *bytes > 0)
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut header = vec!["All visits".to_owned(), "Browser".to_owned()];
    header.extend(sizes.iter().map(|&bytes| ByteSize(bytes).to_string()));
    header.extend(source::DEVICES.map(str::to_owned));
    let blank = |count: usize| std::iter::repeat_n(NOTHING.to_owned(), count);
    let mut rows = Vec::new();
    for (label, kind, baseline, of_source) in ROWS {
        for loader in loaders {
            for medium in loader.media() {
                let on = if medium.is_empty() { String::new() } else { format!(" on {medium}") };
                let mut row = vec![label.to_owned(), format!("{}{on}", loader.name)];
                row.extend(loader.cells((kind, baseline), medium, &sizes));
                row.extend(blank(of_source.len()));
                rows.push(row);
            }
        }
        let mut row = vec![label.to_owned(), "the source's, 2011".to_owned()];
        row.extend(blank(sizes.len()));
        row.extend(of_source.map(str::to_owned));
        rows.push(row);
    }
    let of = |part: fn(&LinkLoads) -> &String| {
        loaders.first().map(|loader| part(&loader.link).clone()).unwrap_or_default()
    };
    Tp4mTable { site: of(|link| &link.site), link: of(|link| &link.link), header, rows }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(subject: &str, site: &str, (link, visit): (&str, u64), ms: u64) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "pages", "case": "load", "seed": 1,
            "parameters": { "site": site, "link": link, "page": "p", "visit": visit },
            "subject": { "name": subject, "program": "haypile", "language": "", "version": "7.1" },
            "block": 0, "position": 0, "operations": 1, "wall_ns": ms * 1_000_000, "cpu_ns": 1,
            "hits": 0, "misses": 0,
        }))
        .unwrap()
    }

    fn samples(site: &str) -> Vec<Sample> {
        let columns = [
            ("http:none", 100),
            ("http:file:size=6MB", 60),
            ("firefox:none", 200),
            ("firefox:memory:size=50MiB", 100),
            ("firefox:file:size=100MB", 80),
            ("firefox:memory+file:size=100MB", 90),
        ];
        let of = |(subject, ms): (&'static str, u64)| {
            let unshaped = (1..3).map(move |visit| sample(subject, site, (UNSHAPED, visit), 1));
            unshaped.chain((1..3).map(move |visit| sample(subject, site, ("wifi", visit), ms)))
        };
        columns.into_iter().flat_map(of).collect()
    }

    #[test]
    fn browsers_and_devices_stand_in_one_table() {
        let tables = tables(&samples("generated:1x10"));
        let [table] = &*tables else { panic!("one link is a network: {tables:?}") };
        assert_eq!((&*table.site, &*table.link), ("generated:1x10", "wifi"));
        assert_eq!(table.header[..5], ["All visits", "Browser", "6MB", "100MB", "Galaxy Tab"]);
        let part = |row: usize, at: usize| table.rows[row][at].split(" (").next().unwrap();
        let row = |row: usize| [0, 1, 2, 3, 4].map(|at| part(row, at).replace('\u{a0}', " "));
        assert_eq!(row(0), ["Disk Cache Only", "haypile", "40 %", NOTHING, NOTHING]);
        assert_eq!(row(1), ["Disk Cache Only", "firefox 7.1", NOTHING, "60 %", NOTHING]);
        assert_eq!(row(2), ["Disk Cache Only", "the source's, 2011", NOTHING, NOTHING, "94 %*"]);
        // Over its memory cache, and not over none.
        assert_eq!(row(4), ["Both Caches", "firefox 7.1", NOTHING, "10 %", NOTHING]);
        assert_eq!(table.rows.len(), 6);
        assert!(table.rows.iter().all(|row| row.len() == table.header.len()));
        let by_column = table.by_column();
        let part = |row: usize| by_column[row].iter().map(|cell| cell.split(" (").next().unwrap());
        let row = |row: usize| part(row).collect::<Vec<_>>().join("|").replace('\u{a0}', " ");
        assert_eq!(row(0), format!("haypile|6MB|40 %|{NOTHING}"));
        assert_eq!(row(1), "firefox 7.1|100MB|60 %|10 %");
        assert_eq!(row(2), "the source's, 2011|Galaxy Tab|94 %*|14 %");
        assert_eq!(by_column.len(), 2 + source::DEVICES.len());
    }

    #[test]
    fn somebodys_own_site_has_no_such_table() {
        assert_eq!(super::tables(&samples("visit.har")), []);
    }
}
