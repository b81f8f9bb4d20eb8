//! Times of single operations.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Page, Rows, text};
use crate::experiment::topics;
use crate::report::{Report, read};

const SVG: &str = "http://www.w3.org/2000/svg";

/// The percentiles of 50,000 operations, of which the median takes `p50` nanoseconds.
fn latency(p50: u64, max: u64) -> Value {
    json!({"count": 50_000, "p50": p50, "p90": p50 * 2, "p99": p50 * 10, "p999": p50 * 100, "max": max,
        "mean": 1.5})
}

fn rows(cases: &[(&str, Value)]) -> Rows {
    let mut rows = Rows::new("micro");
    for (block, slower) in [(0, 0), (1, 2), (2, 1)] {
        for (case, parameters) in cases {
            for (subject, p50) in [("slow", 900), ("fast", 95)] {
                let get = latency(p50 + slower, 5_000_000 + slower);
                let timed = json!({"latency_ns": {"get": get, "set": latency(2000, 900_000)}});
                rows.add(case, parameters, subject, block, p50, &timed);
            }
        }
    }
    rows
}

/// The rows of the table that has a column of this name.
fn table(page: &Page, column: &str) -> Vec<Vec<String>> {
    page.parse(|page| {
        let rows = |table: roxmltree::Node<'_, '_>| -> Vec<Vec<String>> {
            let rows = table.descendants().filter(|node| node.has_tag_name("tr"));
            rows.map(|row| row.children().map(|cell| text(&cell)).collect()).collect()
        };
        let mut tables = page.descendants().filter(|node| node.has_tag_name("table")).map(rows);
        tables.find(|rows| rows[0].iter().any(|name| name == column)).unwrap_or_default()
    })
}

#[test]
fn percentiles_are_medians_over_samples_and_the_longest_is_the_longest_of_all() {
    let page = rows(&[("mixed", json!({}))]).page();
    let expected = [
        ["Subject", "Operation", "p50", "p90", "p99", "p99.9", "max", "Mean", "Count", "Samples"],
        [
            "fast", "get", "96.0 ns", "192 ns", "960 ns", "9.60 µs", "5.00 ms", "1.50 ns",
            "150,000", "3",
        ],
        [
            "slow", "get", "901 ns", "1.80 µs", "9.01 µs", "90.1 µs", "5.00 ms", "1.50 ns",
            "150,000", "3",
        ],
        [
            "slow", "set", "2.00 µs", "4.00 µs", "20.0 µs", "200 µs", "900 µs", "1.50 ns",
            "150,000", "3",
        ],
        [
            "fast", "set", "2.00 µs", "4.00 µs", "20.0 µs", "200 µs", "900 µs", "1.50 ns",
            "150,000", "3",
        ],
    ];
    assert_eq!(table(&page, "p99.9"), expected);
}

/// The text of the first drawing that has these words.
fn letters(page: &Page, words: &str) -> Vec<String> {
    page.parse(|page| {
        let is_it = |node: &roxmltree::Node<'_, '_>| {
            node.has_tag_name((SVG, "svg")) && text(node).contains(words)
        };
        let drawing = page.descendants().find(is_it).unwrap();
        let letters = drawing.descendants().filter(|node| node.has_tag_name((SVG, "text")));
        letters.map(|letters| text(&letters)).collect()
    })
}

#[test]
fn a_chart_names_percentiles_and_has_them_in_words() {
    let page = rows(&[("mixed", json!({}))]).page();
    let words = page.texts("desc");
    let of_get: Vec<&String> = words.iter().filter(|it| it.contains("a single get")).collect();
    assert!(!of_get.is_empty());
    for words in of_get {
        assert_eq!(
            words,
            "Percentiles of the time of a single get. fast: p50 96.0 ns, p90 192 ns, p99 960 ns, p99.9 9.60 \
             µs, max 5.00 ms. slow: p50 901 ns, p90 1.80 µs, p99 9.01 µs, p99.9 90.1 µs, max 5.00 ms."
        );
    }
    let drawn = letters(&page, "Percentiles of get");
    let names =
        ["p50", "p90", "p99", "p99.9", "max", "percentile", "1 µs", "100 µs", "fast", "slow"];
    for name in names {
        assert!(drawn.iter().any(|drawn| drawn == name), "{name}: {drawn:?}");
    }
}

#[test]
fn the_words_name_the_lines_that_are_drawn_where_there_are_too_many() {
    let mut rows = Rows::new("micro");
    // One letter each, which has room at the end of its line.
    let names: Vec<String> = ('A'..='Z').chain('a'..='d').map(String::from).collect();
    for (name, faster) in names.iter().zip(0..) {
        let timed = json!({"latency_ns": {"get": latency(5_000 - faster * 100, 5_000_000)}});
        rows.add("mixed", &json!({}), name, 0, 100, &timed);
    }
    let page = rows.page();
    let drawn = letters(&page, "Percentiles of get");
    let drawn: Vec<&String> = names.iter().filter(|name| drawn.contains(name)).collect();
    assert_eq!(drawn, names[..24].iter().collect::<Vec<_>>());
    // Long words are cut; they begin by the fastest of these.
    let words = page.texts("desc").into_iter().find(|it| it.contains("a single get")).unwrap();
    assert!(words.contains("a single get. X: p50 2.70 µs"), "{words}");
    let note = "6 further lines of Percentiles of get: mixed are in the table alone.";
    assert!(page.texts("note").contains(&note.to_owned()), "{:?}", page.texts("note"));
}

#[test]
fn the_method_says_that_it_is_a_closed_loop() {
    let method = |page: &Page| page.texts("p").concat().contains("coordinated omission");
    assert!(method(&rows(&[("get-hit", json!({}))]).page()));
    let mut without = Rows::new("micro");
    without.add("get-hit", &json!({}), "memory", 0, 100, &json!({"latency_ns": null}));
    let failed = json!({"latency_ns": {"get": latency(1, 1)}, "error": "lost"});
    without.add("get-hit", &json!({}), "memory", 1, 100, &failed);
    without.add("get-hit", &json!({}), "memory", 2, 100, &json!({"latency_ns": {}}));
    let without = without.page();
    assert!(!method(&without));
    assert!(!without.0.contains("p99") && !without.texts("h3").contains(&"Latency".to_owned()));
}

#[test]
fn cases_have_a_column_and_charts_where_there_are_several() {
    let sizes = [1_u64, 2, 3, 4, 5].map(|size| ("get", json!({"value_bytes": size})));
    let rows = rows(&sizes);
    let page = rows.page();
    let table = table(&page, "p99.9");
    assert_eq!(table[0][..3], ["Case", "Subject", "Operation"]);
    assert_eq!(table[1][..4], ["get, values of 1 B", "fast", "get", "96.0 ns"]);
    assert_eq!(table.len(), 1 + 5 * 2 * 2);
    let note = "2 further charts of percentiles are not drawn; the table has them.";
    assert!(page.texts("note").contains(&note.to_owned()), "{:?}", page.texts("note"));
    let directory = TempDir::new().unwrap();
    let report = Report::new(&read(&[rows.write(directory.path())]).unwrap(), &topics());
    let plots = report.plots().unwrap();
    let of_latency: Vec<&str> = plots
        .iter()
        .map(|plot| plot.name.as_str())
        .filter(|name| name.contains("percentiles"))
        .collect();
    assert_eq!(of_latency.len(), 8);
    assert_eq!(of_latency[1], "micro-percentiles-of-set-get-values-of-1-b");
}

#[test]
fn times_at_the_ends_of_their_range_and_hostile_names_do_no_harm() {
    let mut rows = Rows::new("micro");
    let hostile = "<script>|\u{202e}";
    for (block, (count, mean)) in [(0, 0.0), (1, -1e300), (u64::MAX, 1e300)].into_iter().enumerate()
    {
        let extreme = |ns: u64| json!({"count": count, "p50": ns, "p90": ns, "p99": 0, "p999": ns, "max": ns, "mean": mean});
        let timed =
            json!({"latency_ns": {hostile: extreme(u64::MAX), "none": extreme(0), "": extreme(1)}});
        rows.add(hostile, &json!({}), hostile, block as u64, 10, &timed);
    }
    for operation in 0..20 {
        let timed = json!({"latency_ns": {format!("o{operation}"): latency(1, 2)}});
        rows.add("many", &json!({}), "one", operation, 10, &timed);
    }
    let page = rows.page();
    let table = table(&page, "p99.9");
    assert_eq!(table.len(), 1 + 3 + 16);
    // Without a mean that can be one, and in the order of the names.
    assert_eq!(table[1][2..5], ["", "1.00 ns", "1.00 ns"]);
    assert_eq!(
        table[2][2..],
        [
            "<script>|",
            "18446744074 s",
            "18446744074 s",
            "0.00 ns",
            "18446744074 s",
            "18446744074 s",
            "0.00 ns",
            "18,446,744,073,709,551,615",
            "3"
        ]
    );
    let notes = page.texts("note").join(" ");
    assert!(notes.contains("4 further kinds of operations of many are not shown."), "{notes}");
    page.parse(|page| assert!(page.descendants().all(|node| !node.has_tag_name("script"))));
}
