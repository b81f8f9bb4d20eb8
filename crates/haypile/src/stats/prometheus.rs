//! Statistics in the text format of Prometheus.

use std::fmt::{self, Write};

use super::{Event, LevelStats, Stats};
use crate::url::CacheUrl;

impl LevelStats {
    /// Returns the statistics of the levels of a cache, the fastest first, in the text format of Prometheus, version
    /// 0.0.4. Over HTTP its type is `text/plain; version=0.0.4`.
    ///
    /// Each sample has the labels `level`, counted from zero, and `store`, the level's URL without a
    /// password. The text ends with a line feed and may be joined with other texts whose metrics have
    /// other names.
    ///
    /// | metric | type | what it counts |
    /// |---|---|---|
    /// | `haypile_operations_total` | counter | calls by `operation` and `result`, see below |
    /// | `haypile_evictions_total` | counter | [`Stats::evictions`] |
    /// | `haypile_expirations_total` | counter | [`Stats::expired`] |
    /// | `haypile_declined_total` | counter | [`Stats::declined`] |
    /// | `haypile_corrupt_total` | counter | [`Stats::corrupt`] |
    /// | `haypile_unreachable_total` | counter | [`Stats::unreachable`] |
    /// | `haypile_unfenced_total` | counter | [`Stats::unfenced`] |
    /// | `haypile_failed_reads_total` | counter | [`Stats::failed_reads`] |
    /// | `haypile_refused_values_total` | counter | [`Stats::refused_values`] |
    /// | `haypile_failed_refreshes_total` | counter | [`Stats::failed_refreshes`] |
    /// | `haypile_revoked_total` | counter | [`Stats::revoked`] |
    /// | `haypile_entries` | gauge | [`Stats::entries`] |
    /// | `haypile_size_bytes` | gauge | [`Stats::bytes`] |
    /// | `haypile_capacity_bytes` | gauge | [`Stats::capacity_bytes`], where it is known |
    ///
    /// The label `operation` is `get`, `set` (all writes of a value), `delete`, `touch` or `count`
    /// (`incr` and `decr`); `result` is `hit` or `miss`, and for `set` it is `stored` or `unmet`. Each
    /// call is counted once, so that sums over both labels have a meaning.
    pub fn prometheus(levels: &[LevelStats]) -> String {
        let mut text = String::new();
        write_all(&mut text, levels).expect("writing to a string does not fail");
        text
    }
}

/// The Prometheus metric for an event of a store: its name, its help text, and its labels, if it
/// has any.
pub(super) struct EventMetric {
    name: &'static str,
    help: &'static str,
    /// The operation and its result, if the metric is shared by all operations.
    call: Option<Call>,
}

type Call = (&'static str, &'static str);

/// Returns the Prometheus metric of an event that is one result of an operation, such as the miss
/// of a read.
pub(super) const fn operation(operation: &'static str, result: &'static str) -> EventMetric {
    EventMetric {
        name: "haypile_operations_total",
        help: "Operations on the cache, by what they did and what came of it.",
        call: Some((operation, result)),
    }
}

/// Returns a Prometheus metric with a name of its own that counts one event.
pub(super) const fn alone(name: &'static str, help: &'static str) -> EventMetric {
    EventMetric { name, help, call: None }
}

/// Sizes of a store's contents, and their bounds.
struct Gauge {
    name: &'static str,
    help: &'static str,
    value: fn(&Stats) -> Option<u64>,
}

const GAUGES: [Gauge; 3] = [
    Gauge { name: "haypile_entries", help: "Entries held.", value: |stats| Some(stats.entries) },
    Gauge {
        name: "haypile_size_bytes",
        help: "Bytes held: keys, values and metadata.",
        value: |stats| Some(stats.bytes),
    },
    Gauge {
        name: "haypile_capacity_bytes",
        help: "The bound on the bytes held.",
        value: |stats| stats.capacity_bytes,
    },
];

/// Returns how many calls ended with an event, each call once.
fn calls(stats: &Stats, event: Event) -> u64 {
    match event {
        // A counter that was counted is a write as well.
        Event::Set => stats.sets.saturating_sub(stats.counts),
        event => stats[event],
    }
}

fn write_all(text: &mut String, levels: &[LevelStats]) -> fmt::Result {
    let stores: Vec<String> = levels.iter().map(|level| label_value(&level.url)).collect();
    let levels: Vec<(&Stats, &str)> =
        levels.iter().zip(&stores).map(|(level, store)| (&level.stats, store.as_str())).collect();
    for events in Event::ALL.chunk_by(|a, b| a.metric().name == b.metric().name) {
        let EventMetric { name, help, .. } = events[0].metric();
        write_metric(text, &levels, [name, "counter", help], |stats| {
            events.iter().map(|event| (event.metric().call, calls(stats, *event))).collect()
        })?;
    }
    for Gauge { name, help, value } in GAUGES {
        write_metric(text, &levels, [name, "gauge", help], |stats| {
            value(stats).map(|value| (None, value)).into_iter().collect()
        })?;
    }
    Ok(())
}

/// Writes the samples of one metric; one that has none is not mentioned.
fn write_metric(
    text: &mut String,
    levels: &[(&Stats, &str)],
    [name, kind, help]: [&str; 3],
    samples: impl Fn(&Stats) -> Vec<(Option<Call>, u64)>,
) -> fmt::Result {
    let mut described = false;
    for (number, (stats, store)) in levels.iter().enumerate() {
        for (call, value) in samples(stats) {
            if !described {
                write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n")?;
                described = true;
            }
            write!(text, "{name}{{level=\"{number}\",store=\"{store}\"")?;
            if let Some((operation, result)) = call {
                write!(text, ",operation=\"{operation}\",result=\"{result}\"")?;
            }
            writeln!(text, "}} {value}")?;
        }
    }
    Ok(())
}

/// Returns a store's URL without a password, escaped.
fn label_value(url: &CacheUrl) -> String {
    label_value_of(&url.redacted().to_string())
}

/// Returns the text, escaped as the format asks for.
fn label_value_of(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prometheus_parse::{Scrape, Value};

    use super::*;

    fn url(text: &str) -> CacheUrl {
        text.parse().expect("a URL")
    }

    fn distinct() -> Stats {
        Stats {
            hits: 1,
            misses: 2,
            sets: 30,
            unmet: 4,
            deletes: 5,
            delete_misses: 6,
            touches: 7,
            touch_misses: 8,
            counts: 9,
            count_misses: 10,
            evictions: 11,
            expired: 12,
            declined: 13,
            corrupt: 14,
            unreachable: 17,
            unfenced: 21,
            failed_reads: 18,
            refused_values: 19,
            failed_refreshes: 20,
            revoked: 22,
            entries: 15,
            bytes: 16,
            capacity_bytes: Some(u64::from(u32::MAX)),
            loading: None,
        }
    }

    /// The samples as another program reads them, by all that names them.
    fn parse(text: &str) -> BTreeMap<String, f64> {
        let scrape = Scrape::parse(text.lines().map(|line| Ok(line.to_owned()))).unwrap();
        let value = |value: &Value| match value {
            Value::Counter(value) | Value::Gauge(value) => *value,
            other => panic!("no other kinds of metric are written: {other:?}"),
        };
        let label = |sample: &prometheus_parse::Sample, name| {
            sample.labels.get(name).map(|value| format!(" {value}")).unwrap_or_default()
        };
        let name = |sample: &prometheus_parse::Sample| {
            let labels = ["level", "store", "operation", "result"].map(|name| label(sample, name));
            format!("{}{}", sample.metric, labels.concat())
        };
        let samples = scrape.samples.iter();
        samples.map(|sample| (name(sample), value(&sample.value))).collect()
    }

    #[test]
    fn every_number_is_there_once() {
        // Without options: the parser takes an equals sign in a label's value for a separator.
        let level = LevelStats::new(url("memory://"), distinct());
        let samples = parse(&LevelStats::prometheus(&[level]));
        let at = " 0 memory://";
        let expected = [
            ("haypile_operations_total", " get hit", 1),
            ("haypile_operations_total", " get miss", 2),
            ("haypile_operations_total", " set stored", 21),
            ("haypile_operations_total", " set unmet", 4),
            ("haypile_operations_total", " delete hit", 5),
            ("haypile_operations_total", " delete miss", 6),
            ("haypile_operations_total", " touch hit", 7),
            ("haypile_operations_total", " touch miss", 8),
            ("haypile_operations_total", " count hit", 9),
            ("haypile_operations_total", " count miss", 10),
            ("haypile_evictions_total", "", 11),
            ("haypile_expirations_total", "", 12),
            ("haypile_declined_total", "", 13),
            ("haypile_corrupt_total", "", 14),
            ("haypile_unreachable_total", "", 17),
            ("haypile_unfenced_total", "", 21),
            ("haypile_failed_reads_total", "", 18),
            ("haypile_refused_values_total", "", 19),
            ("haypile_failed_refreshes_total", "", 20),
            ("haypile_revoked_total", "", 22),
            ("haypile_entries", "", 15),
            ("haypile_size_bytes", "", 16),
            ("haypile_capacity_bytes", "", u32::MAX),
        ];
        let expected = expected
            .map(|(metric, labels, value)| (format!("{metric}{at}{labels}"), f64::from(value)));
        assert_eq!(samples, expected.into());
    }

    #[test]
    fn levels_share_one_description() {
        let bounded = LevelStats::new(url("memory://"), distinct());
        let unbounded = LevelStats::new(url("redis://h"), Stats::default());
        let text = LevelStats::prometheus(&[bounded, unbounded]);
        assert_eq!(text.matches("# TYPE haypile_entries gauge\n").count(), 1);
        assert!(text.contains("haypile_entries{level=\"1\",store=\"redis://h\"} 0\n"));
        assert_eq!(text.matches("\nhaypile_capacity_bytes{").count(), 1);
        assert_eq!(LevelStats::prometheus(&[]), "");
    }

    #[test]
    fn labels_are_escaped_and_show_no_password() {
        let level = |store: &str| LevelStats::new(url(store), Stats::default());
        let text = LevelStats::prometheus(&[
            level("file:///a%20%22b%22%20%5C%20c%0Ad"),
            level("redis://ann:secret@h:6379/0?ttl=1s"),
        ]);
        assert!(text.contains("store=\"file:///a%20%22b%22%20%5C%20c%0Ad\""), "{text}");
        assert!(text.contains("store=\"redis://ann:xxxxx@h:6379/0?ttl=1s\""), "{text}");
        assert!(!text.contains("secret"), "{text}");
        let quoted = label_value_of("a \"b\" \\ c\nd");
        assert_eq!(quoted, "a \\\"b\\\" \\\\ c\\nd");
    }
}
