//! Statistics as Prometheus reads them.

use std::fmt::{self, Write};

use super::{LevelStats, Stats};
use crate::url::CacheUrl;

/// The statistics of the levels of a cache, the fastest first, in the text format of Prometheus,
/// version 0.0.4. Over HTTP its type is `text/plain; version=0.0.4`.
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

struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: fn(&Stats) -> Vec<Sample>,
}

/// The labels of a sample beside those of its level, and its value.
type Sample = (&'static [(&'static str, &'static str)], u64);

const METRICS: [Metric; 9] = [
    Metric {
        name: "haypile_operations_total",
        kind: "counter",
        help: "Operations on the cache, by what they did and what came of it.",
        samples: operations,
    },
    Metric {
        name: "haypile_evictions_total",
        kind: "counter",
        help: "Entries that left because room was needed.",
        samples: |stats| vec![(&[], stats.evictions)],
    },
    Metric {
        name: "haypile_expirations_total",
        kind: "counter",
        help: "Entries that left because their TTL had passed.",
        samples: |stats| vec![(&[], stats.expired)],
    },
    Metric {
        name: "haypile_declined_total",
        kind: "counter",
        help: "New entries that the policy did not retain.",
        samples: |stats| vec![(&[], stats.declined)],
    },
    Metric {
        name: "haypile_corrupt_total",
        kind: "counter",
        help: "Values that were found damaged and taken for a miss.",
        samples: |stats| vec![(&[], stats.corrupt)],
    },
    Metric {
        name: "haypile_unreachable_total",
        kind: "counter",
        help: "Operations that were answered without the server, which could not be reached.",
        samples: |stats| vec![(&[], stats.unreachable)],
    },
    Metric {
        name: "haypile_entries",
        kind: "gauge",
        help: "Entries held.",
        samples: |stats| vec![(&[], stats.entries)],
    },
    Metric {
        name: "haypile_size_bytes",
        kind: "gauge",
        help: "Bytes held: keys, values and metadata.",
        samples: |stats| vec![(&[], stats.bytes)],
    },
    Metric {
        name: "haypile_capacity_bytes",
        kind: "gauge",
        help: "The bound on the bytes held.",
        samples: |stats| stats.capacity_bytes.map(|bytes| (&[][..], bytes)).into_iter().collect(),
    },
];

fn operations(stats: &Stats) -> Vec<Sample> {
    vec![
        (&[("operation", "get"), ("result", "hit")], stats.hits),
        (&[("operation", "get"), ("result", "miss")], stats.misses),
        // A counter that was counted is a write as well; here each call is one thing.
        (&[("operation", "set"), ("result", "stored")], stats.sets.saturating_sub(stats.counts)),
        (&[("operation", "set"), ("result", "unmet")], stats.unmet),
        (&[("operation", "delete"), ("result", "hit")], stats.deletes),
        (&[("operation", "delete"), ("result", "miss")], stats.delete_misses),
        (&[("operation", "touch"), ("result", "hit")], stats.touches),
        (&[("operation", "touch"), ("result", "miss")], stats.touch_misses),
        (&[("operation", "count"), ("result", "hit")], stats.counts),
        (&[("operation", "count"), ("result", "miss")], stats.count_misses),
    ]
}

fn write_all(text: &mut String, levels: &[LevelStats]) -> fmt::Result {
    let stores: Vec<String> = levels.iter().map(|level| label_value(&level.store)).collect();
    for metric in METRICS {
        let Metric { name, kind, help, samples } = metric;
        let mut described = false;
        for (number, (level, store)) in levels.iter().zip(&stores).enumerate() {
            for (labels, value) in samples(&level.stats) {
                if !described {
                    write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n")?;
                    described = true;
                }
                write!(text, "{name}{{level=\"{number}\",store=\"{store}\"")?;
                for (label, value) in labels {
                    write!(text, ",{label}=\"{value}\"")?;
                }
                writeln!(text, "}} {value}")?;
            }
        }
    }
    Ok(())
}

/// A store's name without a password, escaped as the format asks for.
fn label_value(store: &str) -> String {
    let store = store.parse::<CacheUrl>().map_or_else(
        // Not a URL. Should it have a password all the same, that stands before an @.
        |_| store.rsplit('@').next().unwrap_or_default().to_owned(),
        |url| url.redacted().to_string(),
    );
    store.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use prometheus_parse::{Scrape, Value};

    use super::*;

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
            entries: 15,
            bytes: 16,
            capacity_bytes: Some(u64::from(u32::MAX)),
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
        let level = LevelStats::new("memory://".to_owned(), distinct());
        let samples = parse(&prometheus(&[level]));
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
        let bounded = LevelStats::new("memory://".to_owned(), distinct());
        let unbounded = LevelStats::new("redis://h".to_owned(), Stats::default());
        let text = prometheus(&[bounded, unbounded]);
        assert_eq!(text.matches("# TYPE haypile_entries gauge\n").count(), 1);
        assert!(text.contains("haypile_entries{level=\"1\",store=\"redis://h\"} 0\n"));
        assert_eq!(text.matches("\nhaypile_capacity_bytes{").count(), 1);
        assert_eq!(prometheus(&[]), "");
    }

    #[test]
    fn labels_are_escaped_and_show_no_password() {
        let level = |store: &str| LevelStats::new(store.to_owned(), Stats::default());
        let text =
            prometheus(&[level("a \"b\" \\ c\nd"), level("redis://ann:secret@h:6379/0?ttl=1s")]);
        assert!(text.contains("store=\"a \\\"b\\\" \\\\ c\\nd\""), "{text}");
        assert!(text.contains("store=\"redis://ann:xxxxx@h:6379/0?ttl=1s\""), "{text}");
        assert!(!prometheus(&[level("no URL ann:secret@host")]).contains("secret"));
    }
}
