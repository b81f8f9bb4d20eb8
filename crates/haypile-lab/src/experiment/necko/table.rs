//! The table of the source: what a run took, by size and cache.

use crate::ranking::{Figures, Ranking};
use crate::result::Sample;

use super::{looped, source_rows};

/// A line of the table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// The size of the resource, in bytes.
    pub value_bytes: u64,
    /// As the source writes it: `CacheHit (mem-cache)`.
    pub label: String,
    /// The number of runs.
    pub runs: u64,
    /// The median time of a run, in microseconds; `None` where there is nothing but errors.
    pub run_us: Option<f64>,
    /// The ratio of the time of a miss to that of a hit of the same cache, here; for hits alone.
    pub miss_over_hit: Option<f64>,
    /// The same in the source.
    pub source_miss_over_hit: Option<f64>,
}

/// The lines, in the order of the samples.
pub fn lines(rankings: &[Ranking], samples: &[Sample]) -> Vec<Line> {
    let mut lines = Vec::new();
    for ranking in rankings {
        let Some(value_bytes) =
            ranking.parameters.get("value_bytes").and_then(serde_json::Value::as_u64)
        else {
            continue;
        };
        for figures in &ranking.subjects {
            let experiment =
                samples.first().map_or(looped::NAME, |sample| sample.experiment.as_str());
            let run_us = median_us(figures);
            let mut line = Line {
                value_bytes,
                label: format!("{} ({})", name(&ranking.case), cache(&figures.subject.name)),
                runs: runs(ranking),
                run_us,
                miss_over_hit: None,
                source_miss_over_hit: None,
            };
            if ranking.case == "hit" {
                let miss = rankings.iter().find(|other| {
                    let is_miss =
                        if experiment == looped::NAME { "miss (no-store)" } else { "miss" };
                    other.case == is_miss
                        && other.parameters.get("value_bytes")
                            == ranking.parameters.get("value_bytes")
                });
                let miss = miss.and_then(|miss| {
                    let own = miss.subjects.iter().find(|one| one.subject == figures.subject);
                    own.and_then(median_us)
                });
                line.miss_over_hit = miss.zip(run_us).map(|(miss, hit)| miss / hit);
                let source = source_rows().find(|row| {
                    row.experiment == experiment
                        && u64::from(row.value_bytes) == value_bytes
                        && cache(row.cache) == cache(&figures.subject.name)
                });
                line.source_miss_over_hit = source.map(|row| row.miss_ms / row.hit_ms);
            }
            lines.push(line);
        }
    }
    lines
}

/// The cost of a clearing belongs to the run, and is not counted as an operation: so it is divided
/// by runs.
fn median_us(figures: &Figures) -> Option<f64> {
    figures.wall_ns.as_ref().map(|summary| summary.median / 1000.0)
}

fn runs(ranking: &Ranking) -> u64 {
    let of = |name: &str| ranking.parameters.get(name).and_then(serde_json::Value::as_u64);
    of("runs").or_else(|| of("keys")).unwrap_or(0)
}

fn name(case: &str) -> &str {
    match case {
        "call" => "Calloverhead",
        "call + clear" => "Calloverhead+ClearCache",
        "miss (clear)" => "CacheMiss (clrcache)",
        "miss (no-store)" => "CacheMiss (nocache)",
        "miss" => "CacheMiss (q-url)",
        "hit" => "CacheHit",
        other => other,
    }
}

/// The caches of the source by its names, whatever options they have here.
fn cache(subject: &str) -> &str {
    let schemes: Vec<&str> =
        subject.split('+').map(|level| level.split(':').next().unwrap_or(level)).collect();
    match schemes[..] {
        ["none"] => "no-cache",
        ["memory"] => "mem-cache",
        ["file"] => "disk-cache",
        ["memory", "file"] => "both",
        _ => subject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_have_the_names_of_the_source() {
        for (subject, name) in [
            ("none", "no-cache"),
            ("memory:size=51200KiB", "mem-cache"),
            ("file", "disk-cache"),
            ("memory:size=1MiB+file:size=1GiB", "both"),
            ("memory+memcached", "memory+memcached"),
        ] {
            assert_eq!(cache(subject), name);
        }
    }
}
