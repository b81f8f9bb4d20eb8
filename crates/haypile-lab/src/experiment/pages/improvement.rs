//! The time that a cache saves, from rows: the same visits to the same pages, with a cache and without.

use std::collections::BTreeMap;
use std::fmt;

use haypile::ByteSize;

use crate::result::Sample;
use crate::statistics::Effect;

/// Name of the rows of loads.
pub(crate) const LOAD: &str = "load";
/// The link of the pass that counts.
pub(crate) const UNSHAPED: &str = "unshaped";

/// The part of the visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    All,
    First,
    Repeat,
}

impl View {
    pub(crate) const ALL: [Self; 3] = [Self::All, Self::First, Self::Repeat];

    fn has(self, visit: &VisitKey) -> bool {
        match self {
            Self::All => true,
            Self::First => visit.visit == 1,
            Self::Repeat => visit.visit > 1,
        }
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::All => "all visits",
            Self::First => "first",
            Self::Repeat => "repeat",
        })
    }
}

/// A visit, by which loads are paired: first and repeat views are never put together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VisitKey {
    run: String,
    page: String,
    visit: u64,
    block: u64,
}

/// The loads of one column over one link.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnLoads {
    /// Time of each visit in nanoseconds.
    pub(crate) wall_ns: BTreeMap<VisitKey, f64>,
    /// Sums over all visits by name, from the counts of rows.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Requests and bytes of each visit, as the origin counted them.
    pub(crate) seen: Vec<(u64, u64)>,
    pub(crate) error: Option<String>,
}

/// The identity of a column, from the name of its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ColumnName {
    pub(crate) kind: &'static str,
    pub(crate) memory_bytes: u64,
    pub(crate) disk_bytes: u64,
    pub(crate) medium: String,
    pub(crate) subject: String,
}

/// Everything that one link showed.
#[derive(Clone, Debug)]
pub(crate) struct LinkLoads {
    pub(crate) site: String,
    pub(crate) link: String,
    pub(crate) columns: Vec<(ColumnName, ColumnLoads)>,
}

impl ColumnName {
    /// Reads the name of a subject, such as `http:memory:size=50MiB+file:size=6MB on card`, where
    /// `of` is `http`.
    pub(crate) fn parse(of: &str, subject: &str) -> Option<Self> {
        let cache = subject.strip_prefix(of)?.strip_prefix(':')?;
        let (cache, medium) = cache.split_once(" on ").unwrap_or((cache, ""));
        let bytes = |level: &str| {
            let size = level.split(['=', ',']).nth(1)?;
            size.parse::<ByteSize>().ok().map(|ByteSize(bytes)| bytes)
        };
        let mut name = Self {
            kind: "none",
            memory_bytes: 0,
            disk_bytes: 0,
            medium: medium.to_owned(),
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
        f.pad(&text)
    }
}

/// Puts the rows of our loader together, by site and link in the order of the rows.
pub(crate) fn links<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<LinkLoads> {
    links_of("http", samples)
}

/// Puts the rows of a loader together: `http` is ours, and browsers have others.
pub(crate) fn links_of<'a>(
    of: &str,
    samples: impl IntoIterator<Item = &'a Sample>,
) -> Vec<LinkLoads> {
    let mut links: Vec<LinkLoads> = Vec::new();
    for sample in samples {
        let text = |name: &str| sample.parameters.get(name).and_then(serde_json::Value::as_str);
        let (Some(site), Some(link)) = (text("site"), text("link")) else { continue };
        let Some(column) = ColumnName::parse(of, &sample.subject.name) else { continue };
        if sample.case != LOAD {
            continue;
        }
        // Loads of different protocols are never put together.
        let site = match text("protocol") {
            Some("h2") => format!("{site} by HTTP/2"),
            _ => site.to_owned(),
        };
        let at = links.iter().position(|other| other.link == link && other.site == site);
        let at = at.unwrap_or_else(|| {
            let link = link.to_owned();
            links.push(LinkLoads { site, link, columns: Vec::new() });
            links.len() - 1
        });
        let columns = &mut links[at].columns;
        let at = columns.iter().position(|(other, _)| *other == column);
        let at = at.unwrap_or_else(|| {
            columns.push((column, ColumnLoads::default()));
            columns.len() - 1
        });
        columns[at].1.add(sample);
    }
    for link in &mut links {
        link.columns.sort_by(|(one, _), (other, _)| one.cmp_for_table(other));
    }
    links
}

impl ColumnName {
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
        #[expect(clippy::cast_precision_loss, reason = "a time below 2^53 ns")]
        self.wall_ns.insert(key, sample.wall_ns as f64);
        for (name, count) in &sample.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        *self.counts.entry("hits".to_owned()).or_default() += sample.hits;
        let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
        self.seen.push((count("origin_requests"), count("origin_body_bytes")));
    }

    /// Total time of the visits of a view, in milliseconds.
    pub(crate) fn total_ms(&self, view: View) -> f64 {
        let of_view = self.wall_ns.iter().filter(|(key, _)| view.has(key));
        of_view.map(|(_, wall_ns)| wall_ns / 1e6).sum()
    }

    /// The number of loads of a view.
    pub(crate) fn loads(&self, view: View) -> usize {
        self.wall_ns.keys().filter(|key| view.has(key)).count()
    }

    /// The change of the time of a visit from the other column to this one.
    pub(crate) fn effect(&self, from: &Self, view: View) -> Option<Effect> {
        let pairs: Vec<(f64, f64)> = self
            .wall_ns
            .iter()
            .filter(|(key, _)| view.has(key))
            .filter_map(|(key, new)| Some((*from.wall_ns.get(key)?, *new)))
            .collect();
        Effect::paired(&pairs).ok()
    }
}

impl LinkLoads {
    /// The column of a name.
    pub(crate) fn column(&self, subject: &str) -> Option<&ColumnLoads> {
        self.columns.iter().find(|(name, _)| name.subject == subject).map(|(_, loads)| loads)
    }

    /// The first column of a kind that has no size of its own: `none` or `memory`.
    pub(crate) fn baseline(&self, kind: &str) -> Option<&ColumnLoads> {
        self.columns.iter().find(|(name, _)| name.kind == kind).map(|(_, loads)| loads)
    }

    /// The column itself, or the one over this link whose counts are equal to its own; by the pass
    /// that counted all of them.
    pub(crate) fn or_equal<'a>(
        &'a self,
        name: &ColumnName,
        counted: Option<&LinkLoads>,
    ) -> Option<(&'a ColumnLoads, Option<&'a ColumnName>)> {
        if let Some(own) = self.column(&name.subject) {
            return Some((own, None));
        }
        let counted = counted?;
        let own = counted.column(&name.subject)?;
        let is_equal = |(other, _): &&(ColumnName, ColumnLoads)| {
            (other.kind, &other.medium) == (name.kind, &name.medium)
                && counted.column(&other.subject).is_some_and(|other| other.seen == own.seen)
        };
        self.columns.iter().find(is_equal).map(|(other, loads)| (loads, Some(other)))
    }
}

/// An interval that reaches this far, ten times the time, says nothing.
const UNKNOWN: f64 = 10.0;

/// An improvement in per cent with its 95 % interval: how much less time.
pub(crate) fn percent(effect: Option<Effect>) -> String {
    let Some(effect) = effect else { return "-".to_owned() };
    let less = |change: f64| -change * 100.0;
    match effect.interval() {
        Some(ends) if ends.high > UNKNOWN => {
            format!("{:.0} % (too few loads)", less(effect.change()))
        }
        Some(ends) => format!(
            "{:.0} % ({:.0} to {:.0})",
            less(effect.change()),
            less(ends.high),
            less(ends.low)
        ),
        None => format!("{:.0} %", less(effect.change())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_improvement_has_an_interval_unless_that_says_nothing() {
        let effect = |pairs: &[(f64, f64)]| Effect::paired(pairs).ok();
        assert_eq!(percent(None), "-");
        assert_eq!(percent(effect(&[(100.0, 50.0)])), "50 %");
        let many: Vec<(f64, f64)> = (0..20).map(|n| (100.0, 49.0 + f64::from(n % 3))).collect();
        assert_eq!(percent(effect(&many)), "50 % (49 to 51)");
        assert_eq!(percent(effect(&[(100.0, 5.0), (100.0, 500.0)])), "50 % (too few loads)");
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
