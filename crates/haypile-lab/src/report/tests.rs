//! Tests of whole reports, of rows made by hand.

mod asked;
mod latency;
mod views;

use std::fs;
use std::path::{Path, PathBuf};

use haypile_measure::result::Sample;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::chart::Chart;
use super::{Report, ReportError, body, read};
use crate::experiment::{Known, topics};

/// Rows of one experiment, as a file has them.
struct Rows {
    experiment: &'static str,
    /// The name of the run that samples belong to.
    run: &'static str,
    lines: Vec<Value>,
}

impl Rows {
    fn new(experiment: &'static str) -> Self {
        let run = json!({
            "type": "run", "schema": 1, "run": "r", "experiment": experiment, "seed": 1,
            "command": format!("haypile lab {experiment} --quick"), "started": "2026-01-02T03:04:05Z",
            "machine": {"cpu": "A processor", "cores": 2, "kernel": "Linux 6", "memory_bytes": 1 << 30,
                "load_1m": 5.5},
            "program": {"version": "1.2.3", "commit": "0123456789abcdef", "allocator": "system"},
        });
        Self { experiment, run: "r", lines: vec![run] }
    }

    /// Begins a run that asks this; what is added belongs to it.
    fn ask(&mut self, run: &'static str, asked: &Value) {
        let mut row = self.lines[0].clone();
        row["run"] = run.into();
        row["asked"] = asked.clone();
        self.lines.push(row);
        self.run = run;
    }

    /// A sample of 1,000 operations of this many nanoseconds each, with more fields or others.
    fn add(
        &mut self,
        case: &str,
        parameters: &Value,
        subject: &str,
        block: u64,
        ns: u64,
        more: &Value,
    ) {
        let mut row = json!({
            "type": "sample", "schema": 1, "run": self.run, "experiment": self.experiment, "case": case,
            "parameters": parameters, "seed": 1, "block": block, "position": 0, "operations": 1000,
            "subject": {"name": subject, "version": "1", "language": "rust", "program": "haypile"},
            "wall_ns": ns * 1_000_000, "cpu_ns": ns * 1000, "hits": 1000, "misses": 0,
        });
        let fields = row.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        self.lines.push(row);
    }

    /// Samples in blocks, a little apart: each subject takes as many nanoseconds as it says.
    fn add_blocks(&mut self, case: &str, parameters: &Value, subjects: &[(&str, u64)]) {
        for block in 0..7 {
            for (subject, ns) in subjects {
                self.add(case, parameters, subject, block, ns * (1000 + block) / 1000, &json!({}));
            }
        }
    }

    fn page(&self) -> Page {
        let directory = TempDir::new().unwrap();
        Page::of(&[self.write(directory.path())])
    }

    fn write(&self, directory: &Path) -> PathBuf {
        let path = directory.join("rows.jsonl");
        let lines: Vec<String> = self.lines.iter().map(|row| format!("{row}\n")).collect();
        fs::write(&path, lines.concat()).unwrap();
        path
    }
}

/// A page, and a parser for it.
#[derive(Debug)]
struct Page(String);

impl Page {
    fn of(paths: &[PathBuf]) -> Self {
        Self(Report::new(&read(paths).unwrap(), &topics()).html().unwrap())
    }

    fn parse<T>(&self, look: impl FnOnce(&Document<'_>) -> T) -> T {
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        look(&Document::parse_with_options(&self.0, options).expect("well-formed"))
    }

    /// The texts of all elements that have this class or name.
    fn texts(&self, what: &str) -> Vec<String> {
        self.parse(|page| {
            let is_it = |node: &Node<'_, '_>| {
                let classes = node.attribute("class").unwrap_or_default();
                node.tag_name().name() == what || classes.split(' ').any(|class| class == what)
            };
            page.descendants().filter(is_it).map(|node| text(&node)).collect()
        })
    }

    fn answer(&self) -> String {
        self.texts("answer").join("|")
    }
}

fn text(node: &Node<'_, '_>) -> String {
    let texts: Vec<&str> =
        node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect();
    texts.join(" ").replace('\u{A0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

const SIZES: [u64; 4] = [64, 256, 1024, 4096];

#[test]
fn a_clear_difference_is_told_with_its_interval() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("get-hit", &json!({"keys": 10}), &[("slow", 200), ("fast", 100)]);
    let answer = rows.page().answer();
    assert_eq!(
        answer,
        "Processor time per operation: get-hit: fast 100 ns (100 to 100), slow 200 ns (199 to 201); \
         slow takes 2.00 times as much as fast (99 % interval 1.99 to 2.01)"
    );
}

#[test]
fn where_noise_covers_it_no_difference_is_shown() {
    let mut rows = Rows::new("micro");
    for (block, (one, other)) in
        [(100, 130), (140, 110), (90, 120), (130, 95)].into_iter().enumerate()
    {
        rows.add("get-hit", &json!({}), "one", block as u64, one, &json!({}));
        rows.add("get-hit", &json!({}), "other", block as u64, other, &json!({}));
    }
    let answer = rows.page().answer();
    assert!(
        answer
            .contains("no difference from other is shown of one (one of 155.0 % would have been)"),
        "{answer}"
    );
    assert!(!answer.contains("times as much"), "{answer}");
}

#[test]
fn a_single_block_has_no_verdict_however_large_a_difference() {
    let mut rows = Rows::new("micro");
    rows.add("get-hit", &json!({}), "one", 0, 100, &json!({}));
    rows.add("get-hit", &json!({}), "other", 0, 900, &json!({}));
    let answer = rows.page().answer();
    assert!(
        answer.contains(
            "one 100 ns, other 900 ns; other took 9.00 times as much as one (no verdict: too few blocks)"
        ),
        "{answer}"
    );
}

#[test]
fn what_is_no_cache_is_not_in_front() {
    let mut rows = Rows::new("persist");
    rows.add_blocks("write", &json!({}), &[("copy", 10), ("file", 100), ("memory", 300)]);
    let page = rows.page();
    assert!(
        page.answer()
            .contains("writing everything to disk: file 100 ms (100 to 100), memory 300 ms"),
        "{}",
        page.answer()
    );
    assert!(page.texts("desc")[0].contains("copy: "));
}

#[test]
fn ratios_are_beside_those_with_the_servers_time() {
    let mut rows = Rows::new("ratio");
    for block in 0..7 {
        let server = json!({"server_cpu_ns": 900_000});
        rows.add("1:10 medium", &json!({"sets": 1, "gets": 10}), "remote", block, 100, &server);
        rows.add("1:10 medium", &json!({"sets": 1, "gets": 10}), "local", block, 200, &json!({}));
    }
    let page = rows.page();
    let answer = page.answer();
    assert!(
        answer.contains(
            "time: 1:10 medium: remote 10.0 M/s (10.0 to 10.0), local 5.00 M/s (5.00 to 5.00); local takes 2.00 times"
        ),
        "{answer}"
    );
    assert!(
        answer.contains("with the server's processor time, 1:10 medium: local 5.00 M/s (5.00 to 5.00), remote 1.00 M/s"),
        "{answer}"
    );
    let cells = page.texts("td");
    assert!(
        cells.contains(&"10000000/s".to_owned()) && cells.contains(&"-50%".to_owned()),
        "{cells:?}"
    );
}

#[test]
fn workloads_are_divided_by_the_sources_operations() {
    let mut rows = Rows::new("workload");
    rows.add("pop", &json!({"source_operations": 500}), "memory", 0, 100, &json!({}));
    rows.add(
        "proof",
        &json!({"source_operations": 1}),
        "memory",
        0,
        1,
        &json!({"hits": 1, "misses": 3}),
    );
    let answer = rows.page().answer();
    assert!(answer.contains("pop: memory 200 ns proof"), "{answer}");
    assert!(answer.contains("proof, of the first group there is still: memory 0.250"), "{answer}");
}

#[test]
fn a_crossover_lies_between_sizes() {
    let mut rows = Rows::new("crossover");
    for size in SIZES {
        let slower = if size < 1024 { 100 } else { 150 };
        let parameters =
            json!({"value_bytes": size, "keys": 10, "margin": 0.1, "baseline": "memory"});
        rows.add_blocks("get-hit", &parameters, &[("memory", 100), ("file", slower)]);
    }
    let page = rows.page();
    assert_eq!(
        page.answer(),
        "file is clearly slower than memory from a size between 256 B and 1.0 KiB on."
    );
    assert!(page.texts("desc")[0].ends_with("file slower than memory at 1 KiB."));
}

#[test]
fn a_verdict_has_a_tone_next_to_its_words() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("far", &json!({}), &[("one", 100), ("other", 200)]);
    rows.add_blocks("near", &json!({}), &[("one", 100), ("other", 100)]);
    let page = rows.page();
    assert_eq!(page.texts("worse"), ["slower", "slower"], "of the first two, and of every subject");
    assert!(page.texts("level").iter().all(|said| said.starts_with("none beyond")), "{page:?}");
    assert_eq!(page.texts("level").len(), 2);
}

#[test]
fn a_lookup_is_told_at_both_ends() {
    let mut rows = Rows::new("search");
    for (entries, ns) in [(1_000, 50), (1_000_000, 100)] {
        let parameters = json!({"entries": entries, "fill": "100%"});
        rows.add_blocks("search", &parameters, &[("memory", ns)]);
    }
    let answer = rows.page().answer();
    let expected = "memory takes 50.0 ns (50.0 to 50.0) with 1,000 entries and 100 ns (100 to 100) with 1,000,000, 2.00 times as much";
    assert!(answer.contains(expected), "{answer}");
}

#[test]
fn calls_are_told_by_size() {
    for experiment in ["loop", "sequence"] {
        let mut rows = Rows::new(experiment);
        for size in SIZES {
            rows.add("hit", &json!({"value_bytes": size}), "memory", 0, size, &json!({}));
        }
        let answer = rows.page().answer();
        assert_eq!(
            answer,
            "Wall time of “hit”, with 95 % intervals: values of 64 B: memory 64.0 µs values of 256 B: memory 256 µs \
             values of 1 KiB: memory 1.02 ms values of 4 KiB: memory 4.10 ms"
        );
    }
}

#[test]
fn a_name_within_the_page_is_of_one_thing() {
    let directory = TempDir::new().unwrap();
    // An experiment with several tables.
    let mut rows = Rows::new("ratio");
    let parameters = json!({"gets": 10, "size": "medium"});
    rows.add_blocks("1:10 medium", &parameters, &[("memory", 5), ("file", 9)]);
    let path = |folder: &str| {
        let folder = directory.path().join(folder);
        fs::create_dir(&folder).unwrap();
        rows.write(&folder)
    };
    let page = Page::of(&["a", "b", "c"].map(path));
    let mut names: Vec<String> = page.parse(|page| {
        page.descendants().filter_map(|node| node.attribute("id")).map(str::to_owned).collect()
    });
    let all = names.len();
    names.sort();
    names.dedup();
    assert!(names.len() == all && all > 6, "{names:?}");
}

/// It keeps its colour and shape where another is missing.
#[test]
fn a_cache_looks_alike_in_all_charts_of_a_section() {
    let mut rows = Rows::new("loop");
    for bytes in [50, 100] {
        let size = json!({"value_bytes": bytes});
        rows.add("call", &size, "none", 0, 5, &json!({}));
        rows.add("call", &size, "memory", 0, 9, &json!({}));
        rows.add("hit", &size, "memory", 0, 9, &json!({}));
    }
    let samples = rows.lines[1..].iter().map(|row| serde_json::from_value(row.clone()).unwrap());
    let samples: Vec<Sample> = samples.collect();
    let body = body::body(topics().named("loop"), &samples.iter().collect());
    let places = body.multiples.iter().map(|figure| {
        let Chart::Lines(lines) = &figure.chart else { panic!("lines") };
        lines.series.iter().map(|one| (one.name.as_str(), one.place)).collect::<Vec<_>>()
    });
    let expected = [vec![("none", 0), ("memory", 1)], vec![("memory", 1)]];
    assert_eq!(places.collect::<Vec<_>>(), expected);
}

#[test]
fn a_single_size_has_no_chart_and_a_table() {
    let mut rows = Rows::new("loop");
    rows.add("call", &json!({"value_bytes": 50}), "none", 0, 5, &json!({}));
    rows.add("call", &json!({"value_bytes": 50}), "memory", 0, 9, &json!({}));
    let page = rows.page();
    assert_eq!(page.texts("figure"), [""; 0]);
    let note =
        "Time of a call: call is not drawn, for all of it is at 50 B: the tables have the figures.";
    assert!(page.texts("note").contains(&note.to_owned()), "{:?}", page.texts("note"));
    assert!(page.texts("td").contains(&"5.00 µs".to_owned()));
    rows.add("call", &json!({"value_bytes": 60}), "memory", 0, 9, &json!({}));
    assert_eq!(rows.page().texts("figure").len(), 1);
}

#[test]
fn computations_are_counted_by_key() {
    let mut rows = Rows::new("stampede");
    let counts = json!({"hits": 550, "misses": 250});
    rows.add("expired", &json!({"processes": 8, "keys": 100}), "file", 0, 1, &counts);
    assert_eq!(rows.page().answer(), "expired: file computed 100 keys 250 times.");
}

#[test]
fn a_control_that_fails_is_told() {
    let mut rows = Rows::new("torture");
    let failed = json!({"error": "2 values were lost", "counts": {"lost": 2, "kills": 9}});
    rows.add("keep", &json!({"kills": 9}), "leaky", 0, 1, &failed);
    rows.add("keep", &json!({"kills": 0}), "leaky", 0, 1, &failed);
    rows.add("keep", &json!({"kills": 9}), "tight", 0, 1, &json!({"counts": {"lost": 0}}));
    let page = rows.page();
    let answer = page.answer();
    assert!(
        answer.contains("leaky fails in 1 of 1 (2 lost), and without kills as well"),
        "{answer}"
    );
    assert!(answer.contains("tight holds in all 1 case"), "{answer}");
    assert!(page.texts("said").contains(&"2 values were lost".to_owned()));
    let cells = page.texts("td");
    assert!(cells.contains(&"failed: 2 lost".to_owned()) && cells.contains(&"held".to_owned()));
}

#[test]
fn a_note_on_several_starts_comes_once_and_verdicts_stand_on_the_left() {
    let mut rows = Rows::new("startup");
    for cache in ["warm", "cold"] {
        for (block, condition) in (0..8).flat_map(|block| [(block, "with"), (block, "off")]) {
            let parameters = json!({"page_cache": cache, "ready": "exit"});
            rows.add("x", &parameters, condition, block, 100 + block, &json!({}));
        }
    }
    let page = rows.page();
    let notes = page.texts("note");
    let once = "x (warm) and x (cold): The use of the cache was not verified (--verify, --cache).";
    assert!(notes.contains(&once.to_owned()), "{notes:?}");
    let headers = page.texts("th");
    let at = headers.iter().position(|header| header == "Difference").unwrap();
    assert_eq!(headers[at..at + 3], ["Difference", "of", "Verdict"]);
}

#[test]
fn replays_are_told_by_their_mean() {
    let mut rows = Rows::new("replay");
    for (subject, hit_bytes) in [("good", 750), ("bad", 500)] {
        let parameters = json!({"capacity_percent": 1.0, "requested_bytes": 1000});
        rows.add("zipf", &parameters, subject, 0, 1, &json!({"counts": {"hit_bytes": hit_bytes}}));
    }
    let answer = rows.page().answer();
    assert!(answer.ends_with("for one trace and capacity: good 0.750 and bad 0.500."), "{answer}");
}

#[test]
fn simulations_are_drawn_beside_rows() {
    let directory = TempDir::new().unwrap();
    let outcome = |policy: &str, capacity: u64, hit_ratio: f64| json!({"policy": policy, "capacity": capacity, "hit_ratio": hit_ratio, "byte_hit_ratio": null});
    let simulations = json!({"version": 1, "traces": [{
        "trace": "a & b", "requests": 10, "keys": 5, "accounting": "objects", "complete": false,
        "simulations": [outcome("lru", 1, 0.1), outcome("lru", 2, 0.3), outcome("sieve", 1, 0.2),
            outcome("sieve", 2, 0.4), outcome("belady", 1, 0.5), outcome("belady", 2, 0.6)],
        "lru_curve": [{"capacity": 1, "miss_ratio": 0.9, "error": 0.01},
            {"capacity": 2, "miss_ratio": 0.7, "error": null}],
    }]});
    fs::write(directory.path().join("s.json"), simulations.to_string()).unwrap();
    fs::write(directory.path().join("other.json"), "[]").unwrap();
    fs::write(directory.path().join("notes.jsonl"), "no rows\n").unwrap();
    let page = Page::of(&[directory.path().to_owned()]);
    assert_eq!(
        page.answer(),
        "On a & b, sieve misses least (70.0 % in the mean over 2 sizes), apart from the optimum, which \
         knows the future."
    );
    assert!(page.texts("note").concat().contains("was interrupted"));
    let foot = page.texts("footer").concat();
    assert!(foot.contains("other.json") && foot.contains("notes.jsonl"), "{foot}");
}

#[test]
fn belady_is_called_the_optimum_only_where_entries_weigh_the_same() {
    let directory = TempDir::new().unwrap();
    let page = |accounting: &str| {
        let outcome = |policy: &str, capacity: u64, hit_ratio: f64| json!({"policy": policy, "capacity": capacity, "hit_ratio": hit_ratio, "byte_hit_ratio": null});
        let simulations = json!({"version": 1, "traces": [{
            "trace": "t", "requests": 10, "keys": 5, "accounting": accounting, "complete": true,
            "simulations": [outcome("lru", 1, 0.1), outcome("lru", 2, 0.3),
                outcome("belady", 1, 0.05), outcome("belady", 2, 0.2)],
        }]});
        let path = directory.path().join("s.json");
        fs::write(&path, simulations.to_string()).unwrap();
        Page::of(&[path])
    };
    let by_bytes = page("bytes");
    assert!(!by_bytes.texts("section").concat().contains("optimum"), "{}", by_bytes.answer());
    assert!(by_bytes.answer().ends_with("knows the future and is not a bound by bytes."));
    assert!(by_bytes.texts("th").contains(&"belady, not a bound".to_owned()));
    assert!(by_bytes.texts("desc")[0].contains("belady, not a bound: "));
    // In the wide drawing and in the narrow one.
    let drawn = by_bytes.texts("text").into_iter().filter(|text| text == "belady, not a bound");
    assert_eq!(drawn.count(), 2);
    assert!(by_bytes.texts("note").concat().contains("By bytes, Belady’s choice is not a bound"));
    let by_objects = page("objects");
    assert!(by_objects.texts("th").contains(&"belady, the optimum".to_owned()));
    assert!(!by_objects.texts("section").concat().contains("not a bound"));
}

#[test]
fn what_is_hostile_stays_text() {
    let mut rows = Rows::new("<b>&micro");
    let hostile = "<script>alert(1)</script>]]>\u{0}\u{202e}\" onload=\"x";
    rows.add(hostile, &json!({hostile: hostile}), hostile, 0, 10, &json!({}));
    rows.add(hostile, &json!({}), hostile, 0, 10, &json!({"error": hostile}));
    let mut known = Rows::new("micro");
    known.add_blocks(hostile, &json!({"value_bytes": hostile}), &[(hostile, 10), ("x", 11)]);
    for page in [rows.page(), known.page()] {
        page.parse(|page| {
            let names = ["script", "img", "iframe", "object", "link", "b", "image", "use", "base"];
            for node in page.descendants().filter(Node::is_element) {
                assert!(!names.contains(&node.tag_name().name()), "{node:?}");
                assert!(node.attributes().all(|attribute| !attribute.name().starts_with("on")));
            }
        });
        assert!(page.0.contains("&lt;script&gt;"));
    }
}

#[test]
fn nothing_is_loaded() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("get-hit", &json!({}), &[("https://example.org/x.js", 10), ("x", 11)]);
    let page = rows.page();
    page.parse(|page| {
        for attribute in page.descendants().flat_map(|node| node.attributes()) {
            let loads = ["src", "href", "xlink:href", "srcset", "action", "data"];
            assert!(!loads.contains(&attribute.name()) || attribute.value().starts_with('#'));
            assert!(!attribute.value().contains("url("));
        }
    });
    let style = page.texts("style").concat();
    assert!(
        !style.contains("url(") && !style.contains("@import") && !style.contains("http"),
        "{style}"
    );
}

#[test]
fn a_page_is_built_of_what_helps_to_find_ones_way() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("get-hit", &json!({"value_bytes": 1600}), &[("one", 10), ("other", 11)]);
    let page = rows.page();
    assert_eq!(page.texts("h1").len(), 1);
    page.parse(|page| {
        let all = |name: &'static str| {
            page.descendants().filter(move |node| node.tag_name().name() == name)
        };
        let ids: Vec<&str> = page.descendants().filter_map(|node| node.attribute("id")).collect();
        let mut different = ids.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), ids.len(), "{ids:?}");
        for anchor in all("a") {
            let target = anchor.attribute("href").unwrap().strip_prefix('#').unwrap();
            assert!(ids.contains(&target), "{target}");
        }
        for drawing in all("svg") {
            assert_eq!(drawing.attribute("role"), Some("img"));
            let words = |name| {
                let node = drawing
                    .children()
                    .find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)));
                text(&node.unwrap())
            };
            assert!(!words("title").is_empty());
            assert!(words("desc").contains("100 M/s"), "{}", words("desc"));
        }
        for table in all("table") {
            assert!(table.children().any(|node| node.has_tag_name("caption")));
        }
        assert!(all("th").all(|header| header.attribute("scope").is_some()));
        assert!(all("svg").count() > 0 && all("table").count() > 0);
    });
    assert!(page.texts("machine").concat().contains("A processor"));
    assert!(page.texts("programs").concat().ends_with("commit 0123456789ab"));
    assert!(page.texts("warning").concat().contains("the load of 5.50 exceeded the 2 processors"));
    assert!(page.texts("commands").concat().contains("haypile lab micro --quick"));
}

/// The summary's links, questions and answers.
fn summary(page: &Page) -> Vec<[String; 3]> {
    let links: Vec<String> = page.parse(|page| {
        let nav = page.descendants().find(|node| node.has_tag_name("nav")).unwrap();
        let links = nav.descendants().filter_map(|node| node.attribute("href"));
        links.map(str::to_owned).collect()
    });
    let texts = page.texts("asked").into_iter().zip(page.texts("found"));
    links.into_iter().zip(texts).map(|(link, (asked, found))| [link, asked, found]).collect()
}

#[test]
fn the_summary_has_each_question_with_its_answer_and_the_verdict_as_it_is() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, blocks: u64, costs: fn(u64) -> (u64, u64)| {
        let mut rows = Rows::new("micro");
        for block in 0..blocks {
            let (one, other) = costs(block);
            rows.add("get-hit", &json!({}), "one", block, one, &json!({}));
            rows.add("get-hit", &json!({}), "other", block, other, &json!({}));
        }
        let folder = directory.path().join(name);
        fs::create_dir(&folder).unwrap();
        rows.write(&folder)
    };
    let files = [
        file("clear", 7, |block| (1000 + block, 2000 + block)),
        file("open", 7, |block| (1000 + block * 40, 1250 - block * 40)),
        file("few", 2, |_| (100, 900)),
    ];
    let found = summary(&Page::of(&files));
    let anchors: Vec<&str> = found.iter().map(|[link, ..]| link.as_str()).collect();
    assert_eq!(anchors, ["#micro-rows", "#micro-rows-2", "#micro-rows-3"]);
    for ([_, asked, said], expected) in found.iter().zip([
        "other 2.00 µs (2.00 to 2.01); other takes 2.00 times as much as one (99 % interval 1.99 to 2.00)",
        "no difference from one is shown of other",
        "one 100 ns (100 to 100), other 900 ns (900 to 900); other took 9.00 times as much as one (no verdict: too few blocks)",
    ]) {
        assert_eq!(asked, "What do a hit, a miss and a write cost?");
        assert!(said.contains(expected), "{said}");
    }
    // What the samples would have shown.
    assert!(found[1][2].contains("% would have been)"), "{}", found[1][2]);
}

#[test]
fn the_summary_has_the_first_parts_of_a_long_answer_and_counts_the_others() {
    let mut rows = Rows::new("search");
    for subject in 'a'..='n' {
        let parameters = json!({"entries": 1000, "fill": "100%"});
        rows.add("search", &parameters, &subject.to_string(), 0, 100, &json!({}));
    }
    let page = rows.page();
    let [_, _, said] = &summary(&page)[0];
    assert_eq!(
        said,
        "In a cache that is 100% full, a lookup that finds nothing: a takes 100 ns with 1,000 entries b takes 100 ns \
         with 1,000 entries c takes 100 ns with 1,000 entries and 11 more"
    );
    // The section has all of them, the last ones folded.
    assert!(page.answer().contains("8 more g takes"), "{}", page.answer());
    assert!(page.answer().ends_with("n takes 100 ns with 1,000 entries"), "{}", page.answer());
}

#[test]
fn cases_that_are_told_together_say_by_how_much() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("a", &json!({}), &[("one", 1000), ("other", 1100)]);
    rows.add_blocks("b", &json!({}), &[("one", 1000), ("other", 1500)]);
    rows.add_blocks("c", &json!({}), &[("one", 1000), ("other", 1000)]);
    let answer = rows.page().answer();
    for expected in [
        "a: one 1.00 µs (1.00 to 1.01), other 1.10 µs (1.10 to 1.11); other takes 1.10 times as much as one (99 % ",
        "b: one 1.00 µs (1.00 to 1.01), other 1.50 µs (1.50 to 1.51); other takes 1.50 times",
        "c: one 1.00 µs (1.00 to 1.01), other 1.00 µs (1.00 to 1.01); no difference from one is shown of other (one",
    ] {
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn too_few_blocks_are_said_in_every_case() {
    let mut rows = Rows::new("micro");
    for case in ["a", "b"] {
        rows.add(case, &json!({}), "one", 0, 100, &json!({}));
        rows.add(case, &json!({}), "other", 0, 900, &json!({}));
    }
    let answer = rows.page().answer();
    for case in ["a", "b"] {
        let said = "one 100 ns, other 900 ns; other took 9.00 times as much as one (no verdict: too few blocks)";
        assert!(answer.contains(&format!("{case}: {said}")), "{answer}");
    }
}

#[test]
fn a_table_has_the_verdict_on_each_subject() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("a", &json!({}), &[("one", 1000), ("other", 1100), ("same", 1000)]);
    let page = rows.page();
    let detail = page.parse(|page| {
        let details = page.descendants().find(|node| node.has_tag_name("details")).unwrap();
        let rows = details.descendants().filter(|node| node.has_tag_name("tr"));
        rows.map(|row| row.children().map(|cell| text(&cell)).collect()).collect::<Vec<Vec<_>>>()
    });
    let at = detail[0].iter().position(|name| name == "Verdict").unwrap();
    let verdicts: Vec<&str> = detail[1..].iter().map(|row| row[at].as_str()).collect();
    assert_eq!(verdicts, ["–", "none beyond 1.0 % shown", "slower"]);
}

#[test]
fn a_machine_is_described_once_and_named_where_it_measured() {
    let directory = TempDir::new().unwrap();
    let file = |name: &str, cpu: &str, load: f64, version: &str| {
        let mut rows = Rows::new("micro");
        rows.lines[0]["machine"]["cpu"] = cpu.into();
        rows.lines[0]["machine"]["load_1m"] = load.into();
        rows.lines[0]["program"]["version"] = version.into();
        rows.add_blocks("get-hit", &json!({}), &[("one", 10), ("other", 11)]);
        let folder = directory.path().join(name);
        fs::create_dir(&folder).unwrap();
        rows.write(&folder)
    };
    let files = [
        file("a", "First", 0.1, "1"),
        file("b", "First", 0.2, "2"),
        file("c", "Second", 0.3, "1"),
        file("d", "First", 0.4, "1"),
    ];
    let page = Page::of(&files);
    assert_eq!(page.texts("machine").len(), 2);
    assert_eq!(page.texts("programs").len(), 2);
    let programs = &page.texts("programs")[0];
    assert_eq!(programs.matches("Haypile").count(), 2, "{programs}");
    let links: Vec<String> = page.parse(|page| {
        let links = page.descendants().filter_map(|node| node.attribute("href"));
        links.filter(|link| link.starts_with("#machine_")).map(str::to_owned).collect()
    });
    assert_eq!(links, ["#machine_1", "#machine_1", "#machine_2", "#machine_1"]);
    let measured = "Measured on machine 1 (First) with Haypile 2 (commit 0123456789ab), started \
                    2026-01-02T03:04:05Z; load before the start 0.20.";
    assert!(page.texts("p").contains(&measured.to_owned()), "{:?}", page.texts("p"));
}

/// A load before says little about what was measured, where samples say it themselves.
#[test]
fn other_work_is_told_by_the_samples_where_they_know() {
    let mut rows = Rows::new("micro");
    for block in 0..4 {
        let waited_ns = if block == 0 { 60_000_000 } else { 0 };
        let load = json!({"load": {"seen_ns": 100_000_000, "waited_ns": waited_ns}});
        rows.add("get-hit", &json!({"threads": 1}), "memory", block, 100, &load);
    }
    let warning = rows.page().texts("warning").concat();
    assert!(warning.contains("other work disturbed 1 of 4 samples"), "{warning}");
    assert!(!warning.contains("the load of"), "{warning}");
}

#[test]
fn what_is_too_much_is_left_out_and_told() {
    let mut rows = Rows::new("micro");
    for case in 0..70 {
        for subject in 0..3 {
            let failed = json!({"error": format!("failure {case}")});
            let more = if subject == 2 { &failed } else { &json!({}) };
            rows.add(&format!("case {case}"), &json!({}), &format!("s{subject}"), 0, 10, more);
        }
    }
    for subject in 0..40 {
        rows.add("case 0", &json!({}), &format!("many{subject}"), 0, 10, &json!({}));
    }
    let page = rows.page();
    let notes = page.texts("note").join(" ");
    for left_out in [
        "62 further cases have no chart",
        "10 further cases have no table of their own",
        "27 further subjects of case 0 are in the table alone",
        "30 further kinds of errors are not listed here",
    ] {
        assert!(notes.contains(left_out), "{left_out}: {notes}");
    }
}

#[test]
fn numbers_at_the_ends_of_their_range_do_no_harm() {
    let known = Known::all().map(Known::name);
    for experiment in known.chain(["other"]) {
        let mut rows = Rows::new(experiment);
        for (block, number) in [0, 1, u64::MAX, u64::MAX - 1].into_iter().enumerate() {
            let counts =
                ["asked", "computed", "lost", "first_hit_wall_ns", "hit_bytes", "file_bytes"];
            let counts: serde_json::Map<String, Value> =
                counts.iter().map(|name| ((*name).to_owned(), number.into())).collect();
            let more = json!({"cpu_ns": number, "wall_ns": u64::MAX - number, "operations": number,
                "hits": number, "misses": number, "memory_bytes": number, "server_cpu_ns": number,
                "counts": counts});
            for parameters in [
                json!({"value_bytes": number, "entries": number, "requested_bytes": number,
                    "threads": number, "processes": 1}),
                json!({"value_bytes": -1, "entries": "many", "fill": [], "requested_bytes": 0.5}),
            ] {
                rows.add("hit", &parameters, "one", block as u64, 0, &more);
                rows.add("hit", &parameters, "", block as u64, 0, &more);
            }
        }
        assert_eq!(rows.page().texts("h1"), ["Laboratory report"]);
    }
}

#[test]
fn a_plot_has_a_name_and_is_a_picture() {
    let mut rows = Rows::new("micro");
    rows.add_blocks("get-hit", &json!({}), &[("one", 10), ("far", 11_000)]);
    let directory = TempDir::new().unwrap();
    let path = rows.write(directory.path());
    let report = Report::new(&read(&[path.clone(), path]).unwrap(), &topics());
    let plots = report.plots().unwrap();
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names, ["micro-rows-get-hit", "micro-rows-2-get-hit"]);
    assert!(!plots[0].svg.contains("var("));
    let document = Document::parse(&plots[0].svg).unwrap();
    assert!(document.root_element().has_tag_name(("http://www.w3.org/2000/svg", "svg")));
}

#[test]
fn what_is_nothing_and_what_is_wrong_is_refused() {
    let directory = TempDir::new().unwrap();
    let refused = |name: &str, content: &str| {
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        read(&[path]).unwrap_err()
    };
    assert!(matches!(refused("empty.jsonl", ""), ReportError::Nothing { .. }));
    assert!(matches!(
        refused("x.json", "{\"version\": 9, \"traces\": []}"),
        ReportError::Simulation { .. }
    ));
    assert!(matches!(refused("x.jsonl", "garbage\n"), ReportError::Rows(_)));
    assert!(matches!(read(&[directory.path().join("none")]).unwrap_err(), ReportError::Io { .. }));
    assert!(matches!(read(&[]).unwrap_err(), ReportError::Nothing { .. }));
}
