use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::env;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::site::body::{ContentCoding, SiteBody};
use crate::site::resource::ResourceKind;
use crate::site::{BodyFormat, har};

const ALL: Reach = Reach { https: true };
const PLAIN: Reach = Reach { https: false };

fn site(entries: &[Value]) -> Site {
    let har = json!({"log": {"entries": entries}}).to_string();
    har::parse(Path::new("x.har"), har.as_bytes(), UNIX_EPOCH).unwrap().site
}

/// An entry of a page, of 3,000 bytes, that was requested `start` ms after the page began.
fn entry(page: &str, start: usize, url: &str, media_type: &str, initiator: &str) -> Value {
    let (second, rest) = (start / 1000, start % 1000);
    let mut entry = json!({
        "pageref": page, "startedDateTime": format!("2026-01-01T00:00:{second:02}.{rest:03}Z"), "time": 1,
        "request": {"method": "GET", "url": url},
        "response": {"status": 200, "headers": [], "bodySize": 3000,
            "content": {"size": 3000, "mimeType": media_type}},
    });
    if !initiator.is_empty() {
        entry["_initiator"] = json!({"url": initiator});
    }
    entry
}

fn with(mut entry: Value, field: &str, value: Value) -> Value {
    entry["response"][field] = value;
    entry
}

fn redirect(page: &str, start: usize, url: &str, location: &str, initiator: &str) -> Value {
    let entry = with(entry(page, start, url, "", initiator), "status", json!(302));
    with(entry, "headers", json!([{"name": "Location", "value": location}]))
}

/// The text that a browser gets from a body.
fn text(body: &SiteBody) -> String {
    let bytes = body.bytes();
    assert_eq!(bytes.len() as u64, body.len());
    let mut decoded = Vec::new();
    match body.coding() {
        None => decoded = bytes,
        Some(ContentCoding::Gzip) => {
            GzDecoder::new(&bytes[..]).read_to_end(&mut decoded).unwrap();
        }
        Some(ContentCoding::Brotli) => {
            let mut reader = brotli_decompressor::Decompressor::new(&bytes[..], 4096);
            reader.read_to_end(&mut decoded).unwrap();
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The URLs that a body requests, found without knowledge of its recipe.
fn requested(resource: &Resource) -> Vec<String> {
    let text = text(&resource.body);
    let of = |quoted: &str| {
        let quoted = quoted.trim_start_matches("url('").trim_end_matches("')");
        let url = quoted.replace("&amp;", "&").replace("\\\\", "\\");
        (url.starts_with("http://") || url.starts_with("https://")).then_some(url)
    };
    let mut found: Vec<String> = text.split('"').skip(1).step_by(2).filter_map(of).collect();
    // The name space of SVG is not requested.
    found.retain(|url| !url.contains("www.w3.org"));
    found.extend(resource.header_values("location").map(str::to_owned));
    found
}

/// Requests a page of a site as a browser does, from its document on; returns the initiator of each request.
fn browse(site: &Site, page: &Page) -> BTreeMap<String, Vec<String>> {
    let known: HashMap<&str, &Resource> =
        site.resources.iter().map(|resource| (resource.url.as_str(), resource)).collect();
    let first = site.resources[page.loads[0].resource].url.clone();
    let mut initiators = BTreeMap::from([(first.clone(), vec![String::new()])]);
    let mut open = vec![first];
    while let Some(url) = open.pop() {
        for child in requested(known[url.as_str()]) {
            let known = initiators.entry(child.clone()).or_default();
            if known.is_empty() {
                open.push(child);
            }
            known.push(url.clone());
        }
    }
    initiators
}

/// Checks that a browser requests exactly the loads of each page, once, and each from the load that its list names.
fn check(replay: &Replay) {
    let site = &replay.site;
    site.validate().unwrap();
    for page in &site.pages {
        let url = |at: usize| site.resources[page.loads[at].resource].url.clone();
        let expected: BTreeMap<String, Vec<String>> = (0..page.loads.len())
            .map(|at| (url(at), vec![page.loads[at].after.map_or_else(String::new, url)]))
            .collect();
        assert_eq!(browse(site, page), expected, "{}", page.name);
    }
    let loads: usize = site.pages.iter().map(|page| page.loads.len()).sum();
    assert_eq!(replay.counts.requested, loads);
    marks_are_in_the_documents(site);
}

/// Checks that no two rules of a document are for one element, and that it has all elements.
fn marks_are_in_the_documents(site: &Site) {
    for page in &site.pages {
        let mut used: HashMap<usize, HashSet<u32>> = HashMap::new();
        for (at, load) in page.loads.iter().enumerate().skip(1) {
            let parent = load.after.unwrap();
            let content = content(&site.resources[page.loads[parent].resource].body);
            let url = &site.resources[load.resource].url;
            let child = content.children.iter().find(|child| child.url == *url);
            let Some(child) = child.filter(|child| child.kind != ResourceKind::Css) else {
                continue;
            };
            if content.format != BodyFormat::Css && child.kind != ResourceKind::Font
                || content.format == BodyFormat::Script
            {
                continue;
            }
            let mut document = at;
            while self::content(&site.resources[page.loads[document].resource].body).format
                != BodyFormat::Html
            {
                document = page.loads[document].after.unwrap();
            }
            let resource = page.loads[document].resource;
            assert!(used.entry(resource).or_default().insert(child.mark), "{url}: used twice");
            let marks = self::content(&site.resources[resource].body).marks;
            assert!((1..=marks).contains(&child.mark), "{url}: {} of {marks}", child.mark);
        }
    }
}

fn content(body: &SiteBody) -> crate::site::TypedBody {
    match body {
        SiteBody::Typed(content) => content.clone(),
        SiteBody::Encoded(body) => body.content.clone(),
        SiteBody::Generated { .. } => panic!("a body that requests nothing"),
    }
}

fn initiator<'a>(found: &'a BTreeMap<String, Vec<String>>, url: &str) -> &'a str {
    &found[url][0]
}

#[test]
fn a_page_requests_what_was_recorded_from_the_recorded_initiators() {
    let recorded = site(&[
        redirect("p", 0, "http://a.test/", "http://www.a.test/", ""),
        entry("p", 1, "http://www.a.test/", "text/html", ""),
        entry("p", 2, "http://www.a.test/x.css?a=1&copy;=2", "text/css", "http://www.a.test/"),
        entry("p", 3, "http://cdn.test/x.js?\\n", "text/javascript", "http://www.a.test/"),
        entry(
            "p",
            4,
            "http://www.a.test/f.woff2",
            "font/woff2",
            "http://www.a.test/x.css?a=1&copy;=2",
        ),
        entry("p", 5, "http://cdn.test/data", "application/json", "http://cdn.test/x.js?\\n"),
        entry("p", 6, "http://cdn.test/f", "text/html", "http://cdn.test/x.js?\\n"),
        redirect("p", 7, "http://t.test/p", "/q.gif", "http://cdn.test/x.js?\\n"),
        entry("p", 8, "http://t.test/q.gif", "image/gif", ""),
        entry("p", 9, "http://www.a.test/i.png", "image/png", "http://cdn.test/f"),
        // What a style sheet and an image cannot request.
        entry(
            "p",
            10,
            "http://www.a.test/z.js",
            "text/javascript",
            "http://www.a.test/x.css?a=1&copy;=2",
        ),
        entry("p", 11, "http://www.a.test/j.png", "image/png", "http://www.a.test/i.png"),
    ]);
    let replay = for_browsers(&recorded, PLAIN).unwrap();
    check(&replay);
    let found = browse(&replay.site, &replay.site.pages[0]);
    assert_eq!(found.len(), 12);
    assert_eq!(initiator(&found, "http://cdn.test/data"), "http://cdn.test/x.js?\\n");
    assert_eq!(initiator(&found, "http://t.test/q.gif"), "http://t.test/p");
    assert_eq!(initiator(&found, "http://www.a.test/z.js"), "http://www.a.test/");
    assert_eq!(initiator(&found, "http://www.a.test/j.png"), "http://www.a.test/");
    assert_eq!((replay.counts.moved, replay.counts.left_out.len()), (2, 0), "{:?}", replay.counts);
    let by_url =
        |url: &str| replay.site.resources.iter().find(|resource| resource.url == url).unwrap();
    // All sizes are those that were recorded.
    assert!(replay.site.resources.iter().all(|resource| resource.body_len() == 3000));
    assert_eq!(
        by_url("http://www.a.test/f.woff2").header_values("access-control-allow-origin").count(),
        1
    );
    let data = by_url("http://cdn.test/data");
    assert_eq!(
        data.header_values("content-type").collect::<Vec<_>>(),
        ["text/javascript; charset=utf-8"]
    );
    // Elements without CORS.
    for resource in &replay.site.resources {
        assert!(!text(&resource.body).contains("crossorigin"));
    }
}

#[test]
fn bodies_have_the_recorded_coding_and_both_of_its_sizes() {
    let encoded = |entry: Value, coding: &str, bytes: u64| {
        let headers = json!([{"name": "Content-Encoding", "value": coding}]);
        let entry = with(with(entry, "headers", headers), "bodySize", json!(bytes));
        with(entry, "content", json!({"size": 9000, "mimeType": "text/css"}))
    };
    let css =
        |number: usize| entry("p", number, &format!("http://a.test/{number}.css"), "text/css", "");
    let secure = entry("p", 8, "https://a.test/9.css", "text/css", "");
    let recorded = site(&[
        entry("p", 0, "http://a.test/", "text/html", ""),
        encoded(css(1), "gzip", 2000),
        encoded(css(2), "br", 2000),
        encoded(css(3), "gzip", 10),
        encoded(secure, "br", 2000),
    ]);
    let replay = for_browsers(&recorded, ALL).unwrap();
    check(&replay);
    let codings: Vec<_> =
        replay.site.resources[1..].iter().map(|resource| resource.body.coding()).collect();
    // Browsers accept br over TLS alone.
    assert_eq!(
        codings,
        [Some(ContentCoding::Gzip), Some(ContentCoding::Gzip), None, Some(ContentCoding::Brotli)]
    );
    let sizes: Vec<_> = replay.site.resources[1..].iter().map(Resource::body_len).collect();
    assert_eq!(sizes, [2000, 2000, 10, 2000]);
    assert_eq!(text(&replay.site.resources[1].body).len(), 9000);
    assert_eq!(replay.counts.uncoded, 1);
}

#[test]
fn what_does_not_fit_into_a_file_comes_from_the_document() {
    let script = "http://a.test/x.js";
    let mut entries = vec![
        with(entry("p", 0, "http://a.test/", "text/html", ""), "bodySize", json!(400)),
        with(entry("p", 1, script, "text/javascript", ""), "bodySize", json!(200)),
    ];
    let image = |number| {
        entry("p", number, &format!("http://a.test/image-{number}.png"), "image/png", script)
    };
    entries.extend((2..12).map(image));
    let replay = for_browsers(&site(&entries), PLAIN).unwrap();
    check(&replay);
    let found = browse(&replay.site, &replay.site.pages[0]);
    let by_script = found.values().filter(|initiators| initiators[0] == script).count();
    assert!((2..8).contains(&by_script), "{by_script}");
    assert_eq!(replay.counts.moved, 10 - by_script);
    assert_eq!(replay.site.resources[1].body_len(), 200);
    // Something has to request them.
    assert_eq!(replay.counts.enlarged, 1);
    assert!(replay.site.resources[0].body_len() > 400);
}

#[test]
fn pages_share_files_that_request_the_same_in_all_of_them() {
    let page = |page: &str, at: usize, images: &[&str]| {
        let top = format!("http://a.test/{page}");
        let mut entries = vec![
            entry(page, at, &top, "text/html", ""),
            entry(page, at + 1, "http://a.test/x.js", "text/javascript", &top),
            entry(page, at + 2, "http://a.test/x.css", "text/css", &top),
        ];
        for (number, image) in images.iter().enumerate() {
            let by = if number == 0 { "http://a.test/x.css" } else { "http://a.test/x.js" };
            entries.push(entry(
                page,
                at + 3 + number,
                &format!("http://a.test/{image}.png"),
                "image/png",
                by,
            ));
        }
        entries
    };
    let mut entries = page("p", 0, &["0", "1", "2"]);
    entries.extend(page("q", 1000, &["0", "1", "3"]));
    // A second view of a page, and a frame that is a page.
    entries.extend(page("p", 2000, &["4"]).into_iter().map(|mut entry| {
        entry["pageref"] = json!("r");
        entry
    }));
    entries.push(entry("q", 1100, "http://a.test/p", "text/html", "http://a.test/q"));
    let replay = for_browsers(&site(&entries), PLAIN).unwrap();
    check(&replay);
    let names: Vec<_> = replay.site.pages.iter().map(|page| page.name.as_str()).collect();
    assert_eq!(names, ["p", "q"]);
    let found = browse(&replay.site, &replay.site.pages[1]);
    let of = |image: &str| initiator(&found, &format!("http://a.test/{image}.png")).to_owned();
    assert_eq!(
        (of("0"), of("1"), of("3")),
        ("http://a.test/x.css".into(), "http://a.test/x.js".into(), "http://a.test/q".into())
    );
    assert_eq!(replay.counts.moved, 2);
    let left_out = BTreeMap::from([(LeftOut::Document, 1), (LeftOut::RepeatView, 1)]);
    assert_eq!(replay.counts.left_out, left_out);
    assert!(replay.counts.notes().contains(&format!("1 {}", LeftOut::RepeatView.reason())));
}

#[test]
fn what_a_browser_cannot_reach_is_left_out_and_counted() {
    let recorded = site(&[
        entry("p", 0, "http://a.test/", "text/html", ""),
        entry("p", 1, "https://a.test/1", "text/css", ""),
        entry("p", 2, "http://a.test:81/2", "text/css", ""),
        entry("p", 3, "http://127.0.0.1/3", "text/css", ""),
        entry("p", 4, "http://a.test/4", "image/png", "http://a.test:81/2"),
        redirect("p", 5, "http://a.test/5", "/nowhere", ""),
    ]);
    let replay = for_browsers(&recorded, PLAIN).unwrap();
    check(&replay);
    let expected = BTreeMap::from([(LeftOut::Https, 1), (LeftOut::Address, 1), (LeftOut::Port, 1)]);
    assert_eq!((&replay.counts.left_out, replay.counts.unfollowed), (&expected, 1));
    assert_eq!(for_browsers(&recorded, ALL).unwrap().counts.requested, 4);
    let secure = site(&[entry("p", 0, "https://a.test/", "text/html", "")]);
    let error = for_browsers(&secure, PLAIN).unwrap_err().to_string();
    assert!(error.contains("1 pages left out"), "{error}");
    let image = site(&[entry("p", 0, "http://a.test/", "image/png", "")]);
    assert!(for_browsers(&image, PLAIN).unwrap_err().to_string().contains("begin with a document"));
}

/// The recorded HARs, which may not be committed.
fn recorded_hars() -> Vec<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder =
        env::var_os("HAYPILE_SHARED").map_or_else(default, PathBuf::from).join("traces/har");
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: {} does not exist", folder.display());
        return Vec::new();
    };
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn recorded_hars_are_replayed() {
    for path in recorded_hars() {
        let recorded = har::read(&path, UNIX_EPOCH).unwrap().site;
        let replay = for_browsers(&recorded, ALL).unwrap();
        check(&replay);
        println!("{}: {:#?}", path.display(), replay.counts.notes());
        let first = recorded.pages[0].loads.len();
        let played = replay.site.pages[0].loads.len();
        assert_eq!(played, first, "{}", path.display());
        assert_eq!(replay.counts.enlarged, 0);
    }
}

/// Recordings of up to three pages over the same files, any of which may initiate any other.
fn any_recording() -> impl Strategy<Value = Vec<Value>> {
    let kinds =
        ["text/html", "text/css", "text/javascript", "image/png", "font/woff2", "video/mp4"];
    let load = (0..20_usize, 0..kinds.len(), 0..8_usize, 0..5000_u64, 0..4_usize, 0..20_usize);
    let page = prop::collection::vec(load, 0..25);
    prop::collection::vec(page, 1..4).prop_map(move |pages| {
        let mut entries = Vec::new();
        for (page, loads) in pages.into_iter().enumerate() {
            let name = format!("p{page}");
            let url = |number: usize| format!("http://h{}.test/{number}?a&lt;\\", number % 3);
            entries.push(entry(
                &name,
                page * 1000,
                &format!("http://h0.test/top{page}"),
                "text/html",
                "",
            ));
            let mut earlier = vec![format!("http://h0.test/top{page}")];
            for (at, (number, kind, initiator, bytes, coding, target)) in
                loads.into_iter().enumerate()
            {
                let by = earlier[initiator % earlier.len()].clone();
                let start = page * 1000 + at + 1;
                let mut made = if target < 4 {
                    redirect(&name, start, &url(number), &url(target), &by)
                } else {
                    entry(&name, start, &url(number), kinds[kind], &by)
                };
                made["response"]["bodySize"] = json!(bytes);
                if coding < 2 && target >= 4 {
                    let name = ["gzip", "br"][coding];
                    made["response"]["headers"] =
                        json!([{"name": "content-encoding", "value": name}]);
                }
                entries.push(made);
                earlier.push(url(number));
            }
        }
        entries
    })
}

proptest! {
    #[test]
    fn a_browser_requests_exactly_the_recorded_urls(entries in any_recording()) {
        let recorded = site(&entries);
        let replay = for_browsers(&recorded, PLAIN).unwrap();
        check(&replay);
        prop_assert_eq!(replay.site.pages.len(), recorded.pages.len());
        for (played, page) in replay.site.pages.iter().zip(&recorded.pages) {
            let urls = |site: &Site, page: &Page| -> BTreeSet<String> {
                page.loads.iter().map(|load| site.resources[load.resource].url.clone()).collect()
            };
            prop_assert_eq!(urls(&replay.site, played), urls(&recorded, page));
        }
        // Only documents of pages may have another size.
        let tops = |resource: &&Resource| !resource.url.contains("/top");
        for resource in replay.site.resources.iter().filter(tops) {
            let same = recorded.resources.iter().find(|other| other.url == resource.url).unwrap();
            prop_assert_eq!(resource.body_len(), same.body_len(), "{}", resource.url);
        }
    }
}
