//! The table of the source: what a run took, by size and cache.

use haypile_measure::result::Sample;
use serde_json::Value;

use crate::ranking::{Figures, Ranking};

use super::over_http::without_suffix;
use super::source::SourceMachine;
use super::{looped, source_rows};

/// Delays of an origin that make ratios of misses to hits comparable with those of the source,
/// whose origin took some 27 ms, in microseconds.
const DELAYS_OF_SOURCE_US: std::ops::RangeInclusive<u64> = 20_000..=35_000;

/// A line of the table that compares this program's measurements with the Necko benchmarks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The size of the resource that was read or written, in bytes.
    pub value_bytes: u64,
    /// The label of the table's line, as the Necko benchmarks write it: `CacheHit (mem-cache)`.
    pub label: String,
    /// Number of repetitions of the measured operation.
    pub runs: u64,
    /// The wall time of one repetition of the operation, in microseconds; `None` if all samples are
    /// errors.
    pub run_us: Option<f64>,
    /// The measured ratio of the time of a miss to the time of a hit in the same cache; `None` for
    /// lines that are not hits.
    pub miss_over_hit: Option<f64>,
    /// The ratio of the time of a miss to the time of a hit on the Linux server of the Necko
    /// benchmarks, whose origin was equally slow; only for hits.
    pub source_miss_over_hit: Option<f64>,
    /// Whether the line of the table is about HTTP requests, and not about the cache alone.
    pub is_over_http: bool,
    /// The time of one repetition of the operation on the Linux server of the Necko benchmarks, in
    /// milliseconds.
    pub ubuntu_ms: Option<f64>,
    /// The time of one repetition of the operation on the phone of the Necko benchmarks, in
    /// milliseconds.
    pub nexus_s_ms: Option<f64>,
}

/// Returns the lines of the table that compares samples with the Necko benchmarks, in the order of
/// the samples.
pub fn lines(rankings: &[Ranking], samples: &[Sample]) -> Vec<Line> {
    let experiment = samples.first().map_or(looped::NAME, |sample| sample.experiment.as_str());
    let mut lines = Vec::new();
    for ranking in rankings {
        let Some(value_bytes) = number(ranking, "value_bytes") else { continue };
        for figures in &ranking.subjects {
            let (case, is_over_http) = without_suffix(&ranking.case);
            let source = SourceCell { experiment, value_bytes, cache: cache(figures) };
            let run_us = run_us_of(figures);
            let mut line = Line {
                value_bytes,
                label: format!("{} ({})", name(case), source.label(figures)),
                runs: number(ranking, "runs").or_else(|| number(ranking, "keys")).unwrap_or(0),
                run_us,
                miss_over_hit: None,
                source_miss_over_hit: None,
                is_over_http,
                ubuntu_ms: source.run_ms(case, SourceMachine::Ubuntu),
                nexus_s_ms: source.run_ms(case, SourceMachine::NexusS),
            };
            if case == "hit" {
                let miss = source.miss();
                let own = rankings.iter().find(|other| {
                    without_suffix(&other.case) == (miss, is_over_http)
                        && other.parameters.get("value_bytes")
                            == ranking.parameters.get("value_bytes")
                });
                let own = own.and_then(|miss| {
                    let own = miss.subjects.iter().find(|one| one.subject == figures.subject);
                    own.and_then(run_us_of)
                });
                line.miss_over_hit = own.zip(run_us).map(|(miss, hit)| miss / hit);
                let delay_us = number(ranking, "origin_delay_us");
                if delay_us.is_some_and(|delay_us| DELAYS_OF_SOURCE_US.contains(&delay_us)) {
                    let miss_ms = source.run_ms(miss, SourceMachine::Ubuntu);
                    line.source_miss_over_hit =
                        miss_ms.zip(line.ubuntu_ms).map(|(miss, hit)| miss / hit);
                }
            }
            lines.push(line);
        }
    }
    lines
}

/// A cache and a size, in the tables of the source.
struct SourceCell<'a> {
    experiment: &'a str,
    value_bytes: u64,
    cache: Option<&'static str>,
}

impl SourceCell<'_> {
    fn run_ms(&self, case: &str, machine: SourceMachine) -> Option<f64> {
        let cache = self.cache?;
        let is_it = |row: &super::SourceRow| {
            (row.experiment, row.machine, row.value_bytes, row.case, row.cache)
                == (self.experiment, machine, self.value_bytes, case, cache)
        };
        source_rows().find(is_it).map(|row| row.run_ms)
    }

    /// The case of the source whose time over that of a hit is compared.
    fn miss(&self) -> &'static str {
        if self.experiment == looped::NAME { "miss (no-store)" } else { "miss" }
    }

    /// As the source calls the cache, or as the subject is called: a browser's caches are named after it.
    fn label<'s>(&self, figures: &'s Figures) -> &'s str {
        match self.cache.filter(|_| browser_cache(&figures.subject.name).is_none()) {
            Some("none") => "no-cache",
            Some("memory") => "mem-cache",
            Some("file") => "disk-cache",
            Some("both") => "both",
            _ => &figures.subject.name,
        }
    }
}

fn number(ranking: &Ranking, name: &str) -> Option<u64> {
    ranking.parameters.get(name).and_then(Value::as_u64)
}

/// The cost of a clearing belongs to the run, and is not counted as an operation: so it is divided
/// by runs.
fn run_us_of(figures: &Figures) -> Option<f64> {
    Some(figures.wall?.value / 1000.0)
}

fn name(case: &str) -> &str {
    match case {
        "call" => "Calloverhead",
        "call + clear" => "Calloverhead+ClearCache",
        "miss (clear)" => "CacheMiss (clrcache)",
        "miss (no-store)" => "CacheMiss (nocache)",
        "miss" | "miss (query)" => "CacheMiss (q-url)",
        "hit" => "CacheHit",
        "hit, cold" => "CacheHit, cold",
        other => other,
    }
}

/// The kind of cache that the source has too, whatever options it has here.
fn cache(figures: &Figures) -> Option<&'static str> {
    kind(&figures.subject.name)
}

/// Returns the cache of the source's browser that a subject is, as in `necko:disk`.
fn browser_cache(subject: &str) -> Option<&str> {
    let (name, cache) = subject.split_once(':').unwrap_or((subject, "disk"));
    (name == "necko").then(|| cache.split(',').next().unwrap_or(cache))
}

fn kind(subject: &str) -> Option<&'static str> {
    match browser_cache(subject) {
        Some("none") => return Some("none"),
        Some("memory") => return Some("memory"),
        Some("disk") => return Some("file"),
        Some("both") => return Some("both"),
        _ => {}
    }
    let subject = subject.strip_prefix("http:").unwrap_or(subject);
    let schemes: Vec<&str> =
        subject.split('+').map(|level| level.split(':').next().unwrap_or(level)).collect();
    match schemes[..] {
        ["none"] => Some("none"),
        ["memory"] => Some("memory"),
        ["file"] => Some("file"),
        ["memory", "file"] => Some("both"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_the_kinds_of_the_source() {
        for (subject, name) in [
            ("none", Some("none")),
            ("memory:size=51200KiB", Some("memory")),
            ("http:memory:size=51200KiB", Some("memory")),
            ("file", Some("file")),
            ("http:none", Some("none")),
            ("memory:size=1MiB+file:size=1GiB", Some("both")),
            ("memory+memcached", None),
            ("necko:none", Some("none")),
            ("necko:memory,size=6000KB", Some("memory")),
            ("necko:disk", Some("file")),
            ("necko", Some("file")),
            ("necko:both", Some("both")),
            ("necko:other", None),
        ] {
            assert_eq!(kind(subject), name);
        }
    }

    #[test]
    fn a_cell_has_the_time_of_the_source() {
        let cell = SourceCell { experiment: "loop", value_bytes: 50, cache: Some("memory") };
        assert_eq!(cell.run_ms("hit", SourceMachine::Ubuntu), Some(2.14));
        assert_eq!(cell.run_ms("hit", SourceMachine::NexusS), Some(2.16));
        assert_eq!(cell.run_ms(cell.miss(), SourceMachine::Ubuntu), Some(27.34));
        assert_eq!(cell.run_ms("miss (query)", SourceMachine::Ubuntu), None);
        let other = SourceCell { cache: None, ..cell };
        assert_eq!(other.run_ms("hit", SourceMachine::Ubuntu), None);
    }
}
