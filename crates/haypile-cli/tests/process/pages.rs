//! Page loads and requests over HTTP: by the counts of the origin, and not by times.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{FAILURE, NEGATIVE, haypile, path_in, text};

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = haypile(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn samples(json: &Value) -> Vec<&Value> {
    json["samples"].as_array().unwrap().iter().collect()
}

fn of<'a>(samples: &[&'a Value], subject: &str, case: &str) -> Vec<&'a Value> {
    let is_it = |sample: &&&Value| sample["subject"]["name"] == subject && sample["case"] == case;
    samples.iter().filter(is_it).copied().collect()
}

const PAGES: [&str; 10] = [
    "lab",
    "pages",
    "--pages",
    "3",
    "--percentile",
    "10",
    "--sizes",
    "10MB",
    "--links",
    "unshaped",
];

#[test]
fn columns_ask_the_origin_for_what_they_do_not_have() {
    let directory = TempDir::new().unwrap();
    let place = directory.path().to_str().unwrap();
    let json = json(&[&PAGES[..], &["--json", "--directory", place, "--kills", "1"]].concat());
    assert_eq!(json["complete"], true);
    let samples = samples(&json);
    assert!(samples.iter().all(|sample| sample["error"].is_null()), "{json}");
    let requests = |subject: &str| -> Vec<u64> {
        let loads = of(&samples, subject, "load");
        loads.iter().map(|load| load["counts"]["origin_requests"].as_u64().unwrap()).collect()
    };
    let none = requests("http:none");
    assert_eq!(none, [24; 9]);
    let memory = requests("http:memory:size=50MiB");
    // Pages of a site share resources, and the later visits find what may be reused.
    assert_eq!(memory[0], 24);
    assert!(memory[1] < 24 && memory[3] < memory[0] && memory[3..6] == memory[6..], "{memory:?}");
    for subject in ["http:file:size=10MB", "http:memory:size=50MiB+file:size=10MB"] {
        assert_eq!(requests(subject), memory, "{subject}");
    }
    let killed = of(&samples, "http:file:size=10MB", "killed");
    assert_eq!(killed.len(), 4);
    for sample in killed {
        assert!(sample["hits"].as_u64().unwrap() > 0, "{sample}");
    }
    assert_eq!(directory.path().read_dir().unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_query_that_makes_no_difference_costs_a_cache_that_knows_nothing_of_it() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "visit.har");
    let har = har(&[("http://a.test/?a=1", "50000"), ("http://a.test/i", "1000")]);
    let har = har.replace(
        r#""headers": []"#,
        r#""headers": [{"name": "Cache-Control", "value": "max-age=600"}]"#,
    );
    fs::write(&path, har).unwrap();
    let arguments =
        ["lab", "pages", &path, "--rounds", "4", "--links", "unshaped", "--sizes", "2MB"];
    let arguments = [&arguments[..], &["--query-per-visit"]].concat();
    let json = json(&[&arguments[..], &["--json"]].concat());
    let samples = samples(&json);
    let requests = |subject: &str| -> Vec<u64> {
        let loads = of(&samples, subject, "load");
        assert!(loads.iter().all(|load| load["error"].is_null()), "{json}");
        let visits: Vec<_> =
            loads.iter().map(|load| load["parameters"]["visit"].as_u64().unwrap()).collect();
        assert_eq!(visits, [1, 2, 3, 4], "of one page: {subject}");
        loads.iter().map(|load| load["counts"]["origin_requests"].as_u64().unwrap()).collect()
    };
    assert_eq!(requests("http:none"), [2; 4]);
    let file = "http:file:size=2MB";
    // The first response says which queries are one, and the second is stored for all of them.
    assert_eq!(requests(file), [2, 1, 0, 0]);
    assert_eq!(requests(&format!("{file} without No-Vary-Search")), [2, 1, 1, 1]);
    let output = haypile(&arguments).output().unwrap();
    let said = text(output.stdout);
    let (_, table) = said.split_once("improvement from No-Vary-Search").expect("a table");
    let row = table.lines().find(|line| line.starts_with("disk 2MB")).expect("a row");
    assert!(row.contains(" 5     3 "), "{said}");
    for other in [["--browser", "firefox"], ["--kills", "1"]] {
        let output = haypile(&[&arguments[..], &other].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE), "{other:?}");
    }
}

#[test]
fn http2_asks_for_the_same_over_one_connection() {
    let counts = |protocol: &str| {
        let json = json(&[&PAGES[..], &["--json", "--protocol", protocol]].concat());
        let samples = samples(&json);
        assert!(samples.iter().all(|sample| sample["error"].is_null()), "{json}");
        assert!(samples.iter().all(|sample| sample["parameters"]["protocol"] == protocol));
        let loads = of(&samples, "http:none", "load");
        let sum = |name: &str| -> u64 {
            loads.iter().map(|load| load["counts"][name].as_u64().unwrap()).sum()
        };
        (sum("origin_requests"), sum("origin_body_bytes"), sum("origin_connections"))
    };
    let (one, two) = (counts("h1"), counts("h2"));
    assert_eq!((one.0, one.1), (two.0, two.1));
    // One to each host that was asked, kept for all nine visits.
    assert!(two.2 >= 1 && two.2 < one.2, "{one:?} {two:?}");
}

/// A HAR of one page, with these URLs and sizes of bodies.
fn har(entries: &[(&str, &str)]) -> String {
    let entry = |(url, bytes): &(&str, &str)| {
        format!(
            r#"{{"pageref": "p", "startedDateTime": "2020-01-01T00:00:00Z", "time": 5,
                "request": {{"method": "GET", "url": "{url}"}},
                "response": {{"status": 200, "headers": [],
                    "content": {{"size": {bytes}, "mimeType": "text/html"}}}}}}"#
        )
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    let pages = r#"[{"id": "p", "title": "P"}]"#;
    format!(r#"{{"log": {{"pages": {pages}, "entries": [{}]}}}}"#, entries.join(","))
}

#[test]
fn servers_of_one_host_differ_by_scheme_and_port() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "visit.har");
    let entries =
        [("http://a.test/", "1000"), ("https://a.test/", "2000"), ("http://a.test:8080/", "3000")];
    fs::write(&path, har(&entries)).unwrap();
    for protocol in ["h1", "h2"] {
        let arguments =
            ["lab", "pages", &path, "--rounds", "1", "--links", "unshaped", "--sizes", "2MB"];
        let json = json(&[&arguments[..], &["--json", "--protocol", protocol]].concat());
        for sample in samples(&json) {
            assert!(sample["error"].is_null(), "{sample}");
            assert_eq!(sample["counts"]["origin_requests"], 3, "{sample}");
            assert_eq!(sample["counts"]["origin_body_bytes"], 6000, "{sample}");
        }
    }
}

#[test]
fn a_recording_with_waits_has_an_answer_with_them_and_one_without() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "visit.har");
    // The second resource is asked for 300 ms after the first has come.
    let text = har(&[("http://a.test/", "1000"), ("http://a.test/late", "1000")]);
    let (first, last) = text.rsplit_once("T00:00:00Z").unwrap();
    fs::write(&path, format!("{first}T00:00:00.305Z{last}")).unwrap();
    let arguments = ["lab", "pages", &path, "--rounds", "2", "--sizes", "2MB", "--links", "wifi"];
    let links = |json: &Value| -> BTreeSet<String> {
        let all = samples(json);
        all.iter().map(|it| it["parameters"]["link"].as_str().unwrap().to_owned()).collect()
    };
    let both = json(&[&arguments[..], &["--json"]].concat());
    assert_eq!(links(&both), ["unshaped", "wifi", "wifi without waits"].map(str::to_owned).into());
    for sample in samples(&both) {
        assert!(sample["error"].is_null(), "{sample}");
        let is_without = sample["parameters"]["link"] == "wifi without waits";
        assert_eq!(sample["counts"]["waits_ns"].is_null(), is_without, "{sample}");
        assert!(is_without || sample["wall_ns"].as_u64().unwrap() >= 300_000_000, "{sample}");
    }
    let without = json(&[&arguments[..], &["--json", "--no-waits"]].concat());
    assert_eq!(links(&without), ["unshaped", "wifi"].map(str::to_owned).into());
    let output = haypile(&arguments).output().unwrap();
    let shown = crate::program::text(output.stdout);
    assert!(shown.contains("visit.har, wifi: improvement"), "{shown}");
    assert!(shown.contains("visit.har, wifi without waits: improvement"), "{shown}");
}

#[test]
fn what_is_out_of_the_ordinary_is_said() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "visit.har");
    fs::write(&path, har(&[("http://a.test/", "1000")])).unwrap();
    let arguments =
        ["lab", "pages", &path, "--rounds", "1", "--links", "unshaped", "--sizes", "25%"];
    let output = haypile(&arguments).output().unwrap();
    let (said, shown) = (text(output.stderr), text(output.stdout));
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("25 % of the working set is below the smallest size")
            && said.contains("1MiB"),
        "{said}"
    );
    assert!(!shown.contains("-0.0"), "{shown}");
    // A place in which nothing can be written is found before anything is loaded.
    let output = haypile(&[&arguments[..], &["--disk-at", "proc=/proc", "--json"]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    let said = text(output.stderr);
    assert!(
        said.contains("disk caches cannot be created in /proc") && output.stdout.is_empty(),
        "{said}"
    );
}

#[test]
fn a_time_that_is_over_ends_the_pass_without_a_link() {
    let output = haypile(&[&PAGES[..], &["--time", "0s"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    let said = text(output.stderr);
    assert!(
        said.contains("0 of 4 cache configurations were measured, and their results are kept"),
        "{said}"
    );
}

/// The children of a process.
fn children(parent: u32) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
    let is_child = |stat: &String| {
        let parent = parent.to_string();
        stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(1) == Some(&parent)
    };
    let pid = |stat: String| stat.split(' ').next().unwrap().to_owned();
    stats.filter(is_child).map(pid).collect()
}

#[test]
fn a_loader_does_not_outlive_the_laboratory() {
    let dir = TempDir::new().unwrap();
    let path = path_in(&dir, "visit.har");
    // The second resource is asked for hours later.
    let text = har(&[("http://a.test/", "1000"), ("http://a.test/late", "1000")]);
    let (first, last) = text.rsplit_once("T00:00:00Z").unwrap();
    fs::write(&path, format!("{first}T05:00:00Z{last}")).unwrap();
    let arguments = ["lab", "pages", &path, "--rounds", "1", "--links", "unshaped"];
    let mut lab = haypile(&arguments);
    let mut lab = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    let mut loader = (String::new(), Instant::now());
    while loader.0.is_empty() || loader.1.elapsed() < Duration::from_secs(1) {
        assert!(begin.elapsed() < Duration::from_mins(1), "no loader stays");
        let now = children(lab.id()).pop().unwrap_or_default();
        if now != loader.0 {
            loader = (now, Instant::now());
        }
        thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&lab), Signal::TERM).unwrap();
    lab.wait().unwrap();
    let begin = Instant::now();
    // Its process 1 may not reap it, as in containers.
    let stat = format!("/proc/{}/stat", loader.0);
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begin.elapsed() < Duration::from_secs(20), "the loader goes on");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_shaped_link_takes_its_time_and_equal_columns_go_over_it_once() {
    let dir = TempDir::new().unwrap();
    let out = path_in(&dir, "pages.jsonl");
    let arguments = [
        "lab",
        "pages",
        "--pages",
        "1",
        "--percentile",
        "10",
        "--sizes",
        "20MB,40MB",
        "--links",
        "rtt=20ms",
        "--out",
        &out,
    ];
    let output = haypile(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let shown = text(output.stdout);
    assert!(shown.contains("Disk Cache Only") && shown.contains("= "), "{shown}");
    let said = text(output.stderr);
    assert!(
        said.contains("4 of 6 cache configurations are measured over the emulated links"),
        "one of two sizes is enough: {said}"
    );
    let rows: Vec<Value> = fs::read_to_string(&out)
        .unwrap()
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let loads: Vec<&Value> = rows
        .iter()
        .filter(|row| row["parameters"]["link"] == "down=unlimited,up=unlimited,rtt=20ms")
        .collect();
    assert_eq!(loads.len(), 4 * 3);
    for load in loads {
        // A connection and a request are two round trips at least; what is stored takes none.
        let is_asked = load["counts"]["origin_requests"] != 0;
        let wall_ns = load["wall_ns"].as_u64().unwrap();
        assert!(!is_asked || wall_ns >= 20_000_000, "{load}");
    }
    let report = path_in(&dir, "report.html");
    let output = haypile(&["lab", "report", &out, "--output", &report]).output().unwrap();
    assert!(output.status.success(), "{}", text(output.stderr));
    let page = fs::read_to_string(&report).unwrap();
    assert!(page.contains("Page loads with an HTTP cache"), "the section is there");
}

#[test]
fn requests_over_http_are_counted_by_their_origin() {
    let arguments = ["lab", "loop", "--sizes", "50", "-n", "20", "-b", "1", "--json"];
    let json = json(&arguments);
    let samples = samples(&json);
    assert!(samples.iter().all(|sample| sample["error"].is_null()), "{json}");
    let counted = |subject: &str, case: &str| {
        let found = of(&samples, subject, &format!("{case} over HTTP"));
        found.first().map(|sample| sample["counts"]["origin_requests"].as_u64())
    };
    let memory = "http:memory:size=51200KiB";
    assert_eq!(counted(memory, "hit"), Some(Some(1)));
    assert_eq!(counted(memory, "miss (no-store)"), Some(Some(22)));
    assert_eq!(counted(memory, "miss (query)"), Some(Some(20)));
    assert_eq!(counted(memory, "miss (clear)"), Some(Some(21)));
    // A service within the runner answers: the origin is not asked.
    assert_eq!(counted(memory, "call"), Some(None));
    assert_eq!(counted("http:none", "hit"), None);
}

#[test]
fn a_cache_that_keeps_what_must_not_be_stored_is_an_error() {
    // Nothing within a file that is too small for the values is found again.
    let arguments = [
        "lab",
        "sequence",
        "--http",
        "--sizes",
        "51200",
        "-s",
        "memory:size=100KiB",
        "-b",
        "1",
        "--json",
    ];
    let output = haypile(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(NEGATIVE));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let errors: Vec<&str> =
        samples(&json).iter().filter_map(|sample| sample["error"].as_str()).collect();
    assert!(
        !errors.is_empty() && errors.iter().all(|error| error.contains("right by definition")),
        "{errors:?}"
    );
}

#[test]
fn a_list_of_resources_is_loaded() {
    let dir = TempDir::new().unwrap();
    let list = path_in(&dir, "page.txt");
    fs::write(&list, "/a.html 1KB no-store\n  /b.css 1KB max-age=60\n").unwrap();
    let json = json(&["lab", "resources", &list, "-b", "1", "--json"]);
    let samples = samples(&json);
    assert_eq!(samples.len(), 8);
    let requests: Vec<_> = of(&samples, "http:file:size=100MB", "load")
        .iter()
        .map(|load| load["counts"]["origin_requests"].as_u64().unwrap())
        .collect();
    assert_eq!(requests, [2, 1]);
}

#[test]
fn a_list_that_a_browser_does_not_reach_is_refused_before_one_is_started() {
    let dir = TempDir::new().unwrap();
    let list = path_in(&dir, "page.txt");
    for (lines, part) in [
        ("/a.html 1KB\nhttps://site.test/b.css 1KB\n", "1 loads left out: their URL is https"),
        ("http://127.0.0.1/ 1KB\n", "is an address"),
        ("http://a.test/ 1KB\nhttp://a.test:81/ 1KB\n", "another port"),
    ] {
        fs::write(&list, lines).unwrap();
        let output =
            haypile(&["lab", "resources", &list, "--browser", "firefox"]).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE));
        let said = text(output.stderr);
        assert!(said.contains(part) && said.contains("leave --browser out"), "{said}");
    }
}

#[test]
fn wrong_arguments_name_what_is_allowed() {
    for (arguments, part) in [
        (&["pages", "--links", "wi-fi"][..], "wifi"),
        (&["pages", "--sizes", "10KB"], "a disk cache cannot be smaller than 1MiB"),
        (&["pages", "--percentile", "30"], "known: 10, 25, 50, 75, 90"),
        (&["pages", "--disk-at", "card"], "card=/media/card"),
        (&["pages", "--disk-at", "x=/nowhere/at/all"], "/nowhere/at/all"),
        (&["pages", "no-such.har"], "no-such.har"),
        (&["pages", "--manifest", "none.txt"], "none.txt"),
        (&["loop", "--http=false", "--origin-delay", "27ms"], "add --http"),
        (&["loop", "--http", "-s", "moka"], "moka"),
        (&["resources", "nothing.txt"], "nothing.txt"),
        (
            &["resources", "--browser", "chromium"],
            "haypile lab resources page.txt --browser firefox",
        ),
        (&["resources", "--browser", "firefox", "--protocol", "h2"], "leave --protocol h2 out"),
    ] {
        let output = haypile(&[&["lab"], arguments].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE), "{arguments:?}");
        let error = text(output.stderr);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    let short = [&PAGES[..6], &["--links", "gsm", "--time", "1s"]].concat();
    let output = haypile(&short).output().unwrap();
    assert_eq!(output.status.code(), Some(FAILURE));
    assert!(text(output.stderr).contains("--time allows 1s"));
}

#[test]
fn a_number_of_connections_is_for_http_1() {
    for experiment in ["pages", "resources"] {
        let words = ["lab", experiment, "--protocol", "h2", "--connections", "2"];
        let output = haypile(&words).output().unwrap();
        assert_eq!(output.status.code(), Some(FAILURE));
        let said = text(output.stderr);
        assert!(said.contains("--connections is for HTTP/1.1"), "{said}");
    }
}
