//! The table of the entries that are left of caches whose process was killed.

use haypile_measure::figure::HIT_RATIO;
use haypile_measure::result::{Sample, Samples};
use haypile_number::{Quantity, grouped};

use super::killed;
use super::kills::{ANSWERING, INDEX, STORABLE};
use crate::experiment::on_caches::table::written;
use crate::report::table::NOTHING;

/// The headings of the table on the disk caches whose process was killed.
pub(super) const COLUMNS: [&str; 8] =
    ["Cache", "Killed", "Times", "Wrong", "Entries that answer", "Hit ratio", "Index", "Flush"];

/// The caption of the table on the disk caches whose process was killed.
pub(super) const CAPTION: &str = "What is left of a disk cache whose process is killed";

/// Returns the rows of the table on the disk caches whose process was killed: one for each cache
/// and each state at the kill.
pub(super) fn rows<'a>(samples: impl IntoIterator<Item = &'a Sample>) -> Vec<Vec<String>> {
    let all: Samples<'a> = killed(samples).collect();
    let key = |sample: &Sample| (sample.subject.name.clone(), when(sample).to_owned());
    all.grouped(key)
        .into_iter()
        .map(|((cache, when), samples)| row(cache, when, &samples))
        .collect()
}

fn when(sample: &Sample) -> &str {
    sample.parameters.get("when").and_then(serde_json::Value::as_str).unwrap_or("")
}

fn row(cache: String, when: String, samples: &Samples<'_>) -> Vec<String> {
    let good = || samples.iter().filter(|sample| sample.error.is_none());
    let sum = |name: &str| good().filter_map(|sample| sample.counts.get(name)).sum::<u64>();
    let (runs, flush) = (good().count() as u64, sum("flush_ns"));
    let mean = |name| grouped(sum(name).checked_div(runs).unwrap_or(0));
    vec![
        cache,
        when,
        grouped(samples.len() as u64),
        grouped(samples.len() as u64 - runs),
        if sum(STORABLE) == 0 {
            NOTHING.to_owned()
        } else {
            format!("{} of {}", mean(ANSWERING), mean(STORABLE))
        },
        written(&HIT_RATIO, HIT_RATIO.of(samples)),
        index(samples),
        if flush == 0 {
            NOTHING.to_owned()
        } else {
            Quantity::Time.write(flush as f64 / runs as f64)
        },
    ]
}

/// Returns what browsers had to do with their index, and how often.
fn index(samples: &Samples<'_>) -> String {
    let mut found = std::collections::BTreeMap::<&str, u64>::new();
    for (name, count) in samples.iter().flat_map(|sample| &sample.counts) {
        if let Some(state) = name.strip_prefix(INDEX) {
            *found.entry(state).or_default() += count;
        }
    }
    let found: Vec<String> =
        found.iter().map(|(state, times)| format!("{state} {times}")).collect();
    if found.is_empty() { NOTHING.to_owned() } else { found.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sample(
        subject: &str,
        when: &str,
        counts: &serde_json::Value,
        error: Option<&str>,
    ) -> Sample {
        serde_json::from_value(json!({
            "schema": 1, "run": "r", "experiment": "pages", "case": "killed", "seed": 1,
            "parameters": { "site": "s", "when": when },
            "subject": { "name": subject, "program": "haypile", "language": "", "version": "" },
            "block": 0, "position": 0, "operations": 1, "wall_ns": 1, "cpu_ns": 1,
            "hits": 3, "misses": 1, "counts": counts, "error": error,
        }))
        .unwrap()
    }

    #[test]
    fn each_cache_has_rows_of_its_own() {
        let left = |answering: u64, index: &str| json!({ STORABLE: 200, ANSWERING: answering, format!("{INDEX}{index}"): 1 });
        let samples = [
            sample(
                "http:file:size=1GB",
                "while it loads",
                &json!({ STORABLE: 9, ANSWERING: 9 }),
                None,
            ),
            sample("firefox:file:size=1GB", "while it loads", &left(150, "rebuild"), None),
            sample("firefox:file:size=1GB", "while it loads", &left(170, "update"), None),
            sample("firefox:file:size=1GB", "while it loads", &json!({}), Some("1 responses")),
        ];
        let rows = rows(&samples);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0][4..7], ["9 of 9", "0.750", NOTHING]);
        assert_eq!(rows[1][2..5], ["3", "1", "160 of 200"]);
        assert_eq!(rows[1][6], "rebuild 1, update 1");
    }
}
