//! The time that a cache saves, from rows: the same visits to the same pages, with a cache and without.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use haypile::ByteSize;
use haypile_measure::result::{Sample, Samples};
use haypile_number::Quantity;
use haypile_pages::{Column, NoVarySearch};

use super::saved::{PairedLoad, Saved};
use crate::report::table::NOTHING;

/// Name of the results' rows that describe page loads.
pub(crate) const LOAD: &str = "load";
/// The name of the network link without limits, over which the origin's requests are counted.
pub(crate) const UNSHAPED: &str = "unshaped";

/// The name of the count of nanoseconds for which a page load only waits (for scripts, timers),
/// which no cache can save.
pub(crate) const WAITS: &str = "waits_ns";

/// A selection of page visits: the first visit of each page, the repeated ones, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    All,
    First,
    Repeat,
}

impl View {
    /// All selections of page visits, with the most different ones first: the sum of all visits
    /// says less than its two parts.
    pub(crate) const ALL: [Self; 3] = [Self::First, Self::Repeat, Self::All];

    fn has(self, visit: &VisitKey) -> bool {
        match self {
            Self::All => true,
            Self::First => visit.visit == 1,
            Self::Repeat => visit.visit > 1,
        }
    }
}

impl View {
    /// Returns the name of this selection of page visits in results.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::First => "first",
            Self::Repeat => "repeat",
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == Self::All { "all visits" } else { self.key() })
    }
}

/// The identity of a page visit, by which loads with and without a cache are paired.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisitKey {
    run: String,
    page: String,
    visit: u64,
    block: u64,
}

/// The page loads with one cache configuration (a column of the table) over one network link.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnLoads {
    /// The load time of each page visit, in nanoseconds.
    pub(crate) wall_ns: BTreeMap<VisitKey, f64>,
    /// The part of these times that are waits of the recording, in nanoseconds.
    waits_ns: BTreeMap<VisitKey, f64>,
    /// Sums of each count (such as cache hits) over all page loads, by the name of the count.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The number of requests and of body bytes that each page load took from the origin.
    pub(crate) seen: Vec<(u64, u64)>,
    pub(crate) error: Option<String>,
}

/// A cache configuration of page loads (a column of the table), parsed from its name in results.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ColumnName {
    pub(crate) kind: &'static str,
    pub(crate) memory_bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) medium: String,
    /// Whether the cache knows `No-Vary-Search`.
    pub(crate) no_vary_search: NoVarySearch,
    pub(crate) subject: String,
}

/// The page loads with all cache configurations over one network link.
#[derive(Clone, Debug)]
pub(crate) struct LinkLoads {
    pub(crate) site: String,
    pub(crate) link: String,
    pub(crate) columns: Vec<NamedLoads>,
    /// The page loads with caches that do not know `No-Vary-Search`, if any were measured.
    pub(crate) without_no_vary_search: Vec<NamedLoads>,
}

/// The name of a cache configuration, and the page loads with it.
pub(crate) type NamedLoads = (ColumnName, ColumnLoads);

impl ColumnName {
    /// Parses a cache configuration from its name in results, such as
    /// `http:memory:size=50MiB+file:size=6MB on card`; `of` is the name before the first colon,
    /// here `http`.
    pub(crate) fn parse(of: &str, subject: &str) -> Option<Self> {
        let cache = subject.strip_prefix(of)?.strip_prefix(':')?;
        let (cache, medium) = cache.split_once(" on ").unwrap_or((cache, ""));
        let (cache, no_vary_search) = match cache.strip_suffix(Column::WITHOUT_NO_VARY_SEARCH) {
            Some(cache) => (cache, NoVarySearch::Ignored),
            None => (cache, NoVarySearch::Heeded),
        };
        let bytes = |level: &str| {
            let size = level.split(['=', ',']).nth(1)?;
            size.parse::<ByteSize>().ok().map(|ByteSize(bytes)| bytes)
        };
        let mut name = Self {
            kind: "none",
            memory_bytes: 0,
            disk_bytes: 0,
            medium: medium.to_owned(),
            no_vary_search,
            subject: subject.to_owned(),
        };
        for level in cache.split('+') {
            match level.split(':').next()? {
                "none" => {}
                // Browsers have memory caches without a size of their own.
                "memory" if level == "memory" => name.kind = "memory",
                "proxy" => {
                    name.memory_bytes = bytes(level)?;
                    name.kind = "proxy";
                }
                "memory" => {
                    name.memory_bytes = bytes(level)?;
                    name.kind = "memory";
                }
                "file" => {
                    name.disk_bytes = bytes(level)?;
                    name.kind = if name.kind == "memory" { "both" } else { "disk" };
                }
                _ => return None,
            }
        }
        Some(name)
    }
}

impl fmt::Display for ColumnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.kind {
            "memory" if self.memory_bytes == 0 => "memory".to_owned(),
            "memory" | "proxy" => format!("{} {}", self.kind, ByteSize(self.memory_bytes)),
            "none" => "none".to_owned(),
            kind if self.medium.is_empty() => format!("{kind} {}", ByteSize(self.disk_bytes)),
            kind => format!("{kind} {} on {}", ByteSize(self.disk_bytes), self.medium),
        };
        match self.no_vary_search {
            NoVarySearch::Heeded => f.pad(&text),
            NoVarySearch::Ignored => f.pad(&format!("{text}{}", Column::WITHOUT_NO_VARY_SEARCH)),
        }
    }
}

/// Groups the page loads of our own loader by site and network link, in the order of the rows.
pub(crate) fn links<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<LinkLoads> {
    links_of("http", samples)
}

/// Groups the page loads of one loader by site and network link: `http` is our own loader, and
/// browsers have other names.
pub(crate) fn links_of<'a>(
    of: &str,
    samples: impl IntoIterator<Item = &'a Sample>,
) -> Vec<LinkLoads> {
    let mut links: Vec<LinkLoads> = Vec::new();
    for sample in samples {
        let Some((site, link)) = place_of(sample) else { continue };
        let Some(column) = ColumnName::parse(of, &sample.subject.name) else { continue };
        let at = links.iter().position(|other| other.link == link && other.site == site);
        let at = at.unwrap_or_else(|| {
            let link = link.to_owned();
            let (columns, without_no_vary_search) = (Vec::new(), Vec::new());
            links.push(LinkLoads { site, link, columns, without_no_vary_search });
            links.len() - 1
        });
        let columns = match column.no_vary_search {
            NoVarySearch::Heeded => &mut links[at].columns,
            NoVarySearch::Ignored => &mut links[at].without_no_vary_search,
        };
        let at = columns.iter().position(|(other, _)| *other == column);
        let at = at.unwrap_or_else(|| {
            columns.push((column, ColumnLoads::default()));
            columns.len() - 1
        });
        columns[at].1.add(sample);
    }
    for link in &mut links {
        for columns in [&mut link.columns, &mut link.without_no_vary_search] {
            columns.sort_by(|(one, _), (other, _)| one.cmp_for_table(other));
        }
    }
    links
}

/// Returns the web site and the emulated network (link) of the page load in a result row; `None` if
/// the row is not about a page load.
pub(crate) fn place_of(sample: &Sample) -> Option<(String, &str)> {
    let text = |name: &str| sample.parameters.get(name).and_then(serde_json::Value::as_str);
    let (site, link) = (text("site")?, text("link")?);
    // Loads of different protocols are never put together.
    let site = match text("protocol") {
        Some("h2") => format!("{site} by HTTP/2"),
        _ => site.to_owned(),
    };
    (sample.case == LOAD).then_some((site, link))
}

/// Returns the names of the page loaders in the samples: `http`, which is our own, and browsers.
pub(crate) fn loaders<'a>(samples: &Samples<'a>) -> BTreeSet<&'a str> {
    let names = samples.iter().filter_map(|sample| sample.subject.name.split_once(':'));
    names.map(|(name, _)| name).collect()
}

impl ColumnName {
    /// Returns the kinds of cache configurations that this one is compared with: `none`, and
    /// `memory` as well if it has a disk cache.
    pub(crate) fn baselines(&self) -> &'static [&'static str] {
        match self.kind {
            "none" => &[],
            "disk" | "both" => &["none", "memory"],
            _ => &["none"],
        }
    }

    /// Whether two configurations differ in nothing, or in `No-Vary-Search` alone.
    pub(crate) fn is_same_cache(&self, other: &Self) -> bool {
        (self.kind, self.memory_bytes, self.disk_bytes, &self.medium)
            == (other.kind, other.memory_bytes, other.disk_bytes, &other.medium)
    }

    fn cmp_for_table(&self, other: &Self) -> std::cmp::Ordering {
        let place = |name: &Self| {
            let kind = ["none", "memory", "disk", "both", "proxy"]
                .iter()
                .position(|kind| *kind == name.kind);
            (kind, name.medium.clone(), name.disk_bytes)
        };
        place(self).cmp(&place(other))
    }
}

impl ColumnLoads {
    fn add(&mut self, sample: &Sample) {
        if let Some(error) = &sample.error {
            self.error.get_or_insert_with(|| error.clone());
            return;
        }
        let page = sample.parameters.get("page").and_then(serde_json::Value::as_str);
        let visit = sample.parameters.get("visit").and_then(serde_json::Value::as_u64);
        let (Some(page), Some(visit)) = (page, visit) else { return };
        let key =
            VisitKey { run: sample.run.clone(), page: page.to_owned(), visit, block: sample.block };
        if let Some(&waits_ns) = sample.counts.get(WAITS) {
            self.waits_ns.insert(key.clone(), waits_ns as f64);
        }
        self.wall_ns.insert(key, sample.wall_ns as f64);
        for (name, count) in &sample.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        *self.counts.entry("hits".to_owned()).or_default() += sample.hits;
        let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
        self.seen.push((count("origin_requests"), count("origin_body_bytes")));
    }

    /// Returns the mean time of the page loads in a selection of visits, in nanoseconds; `None` if
    /// there are none.
    pub(crate) fn mean_ns(&self, view: View) -> Option<f64> {
        let of_view = || self.wall_ns.iter().filter(|(key, _)| view.has(key));
        let number = of_view().count();
        let total: f64 = of_view().map(|(_, wall_ns)| wall_ns).sum();
        (number > 0).then(|| total / number as f64)
    }

    /// Returns the mean time of the page loads in a selection of visits, as text.
    pub(crate) fn mean(&self, view: View) -> String {
        let mean_ns = self.mean_ns(view);
        mean_ns.map_or_else(|| NOTHING.to_owned(), |ns| Quantity::Time.write(ns))
    }

    /// Returns the share of the load time, in a selection of visits, in which the pages wait for
    /// scripts and timers, as recorded; `None` if no waits were recorded.
    pub(crate) fn waits(&self, view: View) -> Option<f64> {
        let sum = |times: &BTreeMap<VisitKey, f64>| -> f64 {
            times.iter().filter(|(key, _)| view.has(key)).map(|(_, ns)| ns).sum()
        };
        let (waits, all) = (sum(&self.waits_ns), sum(&self.wall_ns));
        (waits > 0.0 && all > 0.0).then(|| (waits / all).min(1.0))
    }

    /// Returns the sum of the count with this name (such as cache hits) over all page loads; 0 if
    /// none has it.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    /// Returns the share of the load time that this cache configuration saves compared with
    /// another, over the selected visits that were loaded with both.
    pub(crate) fn saved(&self, from: &Self, view: View) -> Option<Saved> {
        let of_view = self.wall_ns.iter().filter(|(key, _)| view.has(key));
        let both = of_view.filter_map(|(key, new)| Some((key, *from.wall_ns.get(key)?, *new)));
        Saved::of(both.map(|(key, old, new)| PairedLoad {
            block: (&key.run, key.block),
            page: &key.page,
            visit: key.visit,
            times: (old, new),
        }))
    }
}

/// The beginning of the names of generated web sites in results.
pub(crate) const GENERATED: &str = "generated:";

/// Returns the page loads over emulated networks, where a user would notice the time that a cache
/// saves. Without any, returns all.
pub(crate) fn noticed(links: &[LinkLoads]) -> impl Iterator<Item = &LinkLoads> {
    // Without the waits of a recording, it has words behind its name.
    let is_network = |link: &LinkLoads| !link.link.starts_with(UNSHAPED);
    let has_network = links.iter().any(is_network);
    links.iter().filter(move |link| !has_network || is_network(link))
}

impl LinkLoads {
    /// Whether the pages of these loads were generated, so that the question of the original
    /// measurement applies to them.
    pub(crate) fn is_generated(&self) -> bool {
        self.site.starts_with(GENERATED)
    }

    /// Returns a sentence on the part of the load time that is recorded waits of pages; `None` if
    /// it is below a hundredth.
    pub(crate) fn waits(&self) -> Option<String> {
        let none = self.baseline("none")?;
        let parts: Vec<String> = [View::First, View::Repeat]
            .into_iter()
            .filter_map(|view| {
                let share = none.waits(view).filter(|share| *share >= 0.01)?;
                Some(format!("{} of {view} views", Quantity::Share.write(share)))
            })
            .collect();
        let link = if self.link == UNSHAPED { "no link" } else { &*self.link };
        (!parts.is_empty()).then(|| {
            format!(
                "Over {link}, {} without a cache are waits of the pages (scripts, timers), which no cache shortens",
                parts.join(" and ")
            )
        })
    }

    /// Returns the page loads with the first configuration of a kind that has no disk cache: `none`
    /// or `memory`.
    pub(crate) fn baseline(&self, kind: &str) -> Option<&ColumnLoads> {
        self.columns.iter().find(|(name, _)| name.kind == kind).map(|(_, loads)| loads)
    }

    /// Returns the page loads with a cache configuration over this link; if it was not measured,
    /// those with another one that took equally many requests and bytes from the origin. Counts are
    /// compared in the pass that counted all of them.
    pub(crate) fn or_equal<'a>(
        &'a self,
        name: &ColumnName,
        counted: Option<&LinkLoads>,
    ) -> Option<(&'a ColumnLoads, Option<&'a ColumnName>)> {
        let columns = self.columns_as(name);
        if let Some((_, own)) = columns.iter().find(|(other, _)| other.subject == name.subject) {
            return Some((own, None));
        }
        let counted = counted?.columns_as(name);
        let find = |subject: &str| counted.iter().find(|(name, _)| name.subject == subject);
        let (_, own) = find(&name.subject)?;
        let is_equal = |(other, _): &&NamedLoads| {
            (other.kind, &other.medium) == (name.kind, &name.medium)
                && find(&other.subject).is_some_and(|(_, other)| other.seen == own.seen)
        };
        columns.iter().find(is_equal).map(|(other, loads)| (loads, Some(other)))
    }

    /// Returns the cache configurations that heed or ignore `No-Vary-Search` as this one does.
    fn columns_as(&self, name: &ColumnName) -> &[NamedLoads] {
        match name.no_vary_search {
            NoVarySearch::Heeded => &self.columns,
            NoVarySearch::Ignored => &self.without_no_vary_search,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loads of a column: page, visit, block, and milliseconds.
    fn column(loads: &[(&str, u64, u64, f64)]) -> ColumnLoads {
        let mut column = ColumnLoads::default();
        for &(page, visit, block, ms) in loads {
            let key = VisitKey { run: "r".to_owned(), page: page.to_owned(), visit, block };
            column.wall_ns.insert(key, ms * 1e6);
        }
        column
    }

    /// The times that an outside test took of one page, over 8 Mbit/s and 100 ms: a person who adds them
    /// gets 60.5 % less time. The trimmed mean of logarithms over all three visits was 82 %.
    #[test]
    fn less_time_is_what_a_person_gets_from_the_sums() {
        let none = column(&[("p", 1, 0, 1601.6), ("p", 2, 0, 1508.6), ("p", 3, 0, 1505.0)]);
        let disk = column(&[("p", 1, 0, 1593.9), ("p", 2, 0, 113.7), ("p", 3, 0, 114.4)]);
        let saved = |view| disk.saved(&none, view).unwrap().estimate().value;
        let (with, of): (f64, f64) = (1593.9 + 113.7 + 114.4, 1601.6 + 1508.6 + 1505.0);
        assert!((saved(View::All) - (1.0 - with / of)).abs() < 1e-9);
        let shown = |view| disk.saved(&none, view).unwrap().to_string();
        assert_eq!(shown(View::All), "61 % (no interval)");
        assert_eq!(shown(View::First), "0 % (no interval)");
        assert_eq!(shown(View::Repeat), "92 % (no interval)");
    }

    /// A heavy page that gains nothing outweighs light ones that gain most of their time.
    #[test]
    fn heavy_pages_weigh_as_much_as_they_take() {
        let pages: Vec<String> = (0..12).map(|page| format!("p{page}")).collect();
        let loads = |light: f64, heavy: f64| {
            let of = |(at, page)| (page, 1, 0, if at == 0 { heavy } else { light });
            let names = pages.iter().map(String::as_str);
            column(&names.enumerate().map(of).collect::<Vec<_>>())
        };
        let saved = loads(10.0, 890.0).saved(&loads(100.0, 900.0), View::All).unwrap();
        assert!((saved.estimate().value - 0.5).abs() < 1e-9);
    }

    #[test]
    fn waits_of_a_recording_are_a_share_of_the_time() {
        let mut none = column(&[("p", 1, 0, 1000.0), ("p", 2, 0, 500.0), ("p", 3, 0, 500.0)]);
        assert_eq!(none.waits(View::All), None);
        none.waits_ns = none.wall_ns.keys().map(|key| (key.clone(), 450e6)).collect();
        assert!((none.waits(View::First).unwrap() - 0.45).abs() < 1e-9);
        assert!((none.waits(View::Repeat).unwrap() - 0.9).abs() < 1e-9);
        let name = ColumnName::parse("http", "http:none").unwrap();
        let (site, link) = ("s".to_owned(), "wifi".to_owned());
        let without_no_vary_search = Vec::new();
        let link = LinkLoads { site, link, columns: vec![(name, none)], without_no_vary_search };
        let said = link.waits().unwrap().replace('\u{A0}', " ");
        assert!(
            said.starts_with("Over wifi, 45.0 % of first views and 90.0 % of repeat views"),
            "{said}"
        );
    }

    #[test]
    fn names_of_subjects_are_columns() {
        let parse = |text: &str| ColumnName::parse("http", text).map(|name| name.to_string());
        assert_eq!(parse("http:none").unwrap(), "none");
        assert_eq!(parse("http:memory:size=50MiB").unwrap(), "memory 50MiB");
        assert_eq!(parse("http:file:size=6MB").unwrap(), "disk 6MB");
        assert_eq!(
            parse("http:memory:size=50MiB+file:size=1GB on card").unwrap(),
            "both 1GB on card"
        );
        assert_eq!(
            parse("http:file:size=1GB without No-Vary-Search on card").unwrap(),
            "disk 1GB on card without No-Vary-Search"
        );
        for other in ["memory", "http:redis", "http:file", "chromium:none", ""] {
            assert_eq!(parse(other), None, "{other}");
        }
        let parse = |text: &str| ColumnName::parse("chromium", text).map(|name| name.to_string());
        assert_eq!(parse("chromium:memory").unwrap(), "memory");
        assert_eq!(parse("chromium:memory+file:size=6MB").unwrap(), "both 6MB");
        assert_eq!(parse("chromium:proxy:size=50MiB").unwrap(), "proxy 50MiB");
        assert_eq!(parse("chromium2:none"), None);
    }
}
