use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::site::{Resource, ResourceKind, Site};

/// Sunday, 13 September 2020, 12:26:40.
fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_600_000_000)
}

fn parse_text(text: &str) -> Result<SiteSource, SiteError> {
    parse(Path::new("x.har"), text.as_bytes(), now())
}

fn har(pages: &Value, entries: &Value) -> SiteSource {
    let har = json!({"log": {"version": "1.2", "pages": pages, "entries": entries}});
    parse_text(&har.to_string()).unwrap()
}

/// An entry that starts at a millisecond of 1 January 2020, 00:00:00.
fn entry(url: &str, start_ms: u64, took_ms: i64, media_type: &str) -> Value {
    let (second, rest) = (start_ms / 1000, start_ms % 1000);
    json!({
        "pageref": "p",
        "startedDateTime": format!("2020-01-01T00:00:{second:02}.{rest:03}Z"),
        "time": took_ms,
        "request": {"method": "GET", "url": url},
        "response": {
            "status": 200,
            "headers": [],
            "content": {"size": 1000, "mimeType": media_type, "text": "SECRET"},
        },
    })
}

fn with(mut entry: Value, path: &str, value: Value) -> Value {
    let mut place = &mut entry;
    for name in path.split('.') {
        place = &mut place[name];
    }
    *place = value;
    entry
}

fn urls(site: &Site) -> Vec<&str> {
    site.resources.iter().map(|resource| resource.url.as_str()).collect()
}

fn causes(site: &Site, page: usize) -> Vec<(Option<usize>, u64, bool)> {
    let cause = |load: &crate::site::PageLoad| {
        (load.after, u64::try_from(load.wait.as_millis()).unwrap(), load.is_inferred)
    };
    site.pages[page].loads.iter().map(cause).collect()
}

#[test]
fn a_har_becomes_a_page_with_inferred_initiators() {
    let entries = json!([
        entry("http://a/", 0, 100, "text/html"),
        entry("http://a/x.css", 60, 50, "text/css"),
        entry("http://a/x.js", 110, 20, "application/javascript"),
        entry("http://a/data", 140, 5, "application/json"),
        entry("http://a/f.woff", 150, 5, "font/woff"),
        entry("http://a/i.png", 500, 5, "image/png"),
    ]);
    let site = har(&json!([{"id": "p", "title": "A page"}]), &entries).site;
    assert_eq!(site.pages[0].name, "A page");
    assert_eq!(
        causes(&site, 0),
        [
            (None, 0, false),
            // Began while the document arrived.
            (Some(0), 0, true),
            // Not the style sheet's, which ended later than the document: it causes no script.
            (Some(0), 10, true),
            (Some(2), 10, true),
            // A font is a style sheet's, an image any's.
            (Some(1), 40, true),
            (Some(2), 370, true),
        ]
    );
    assert!(site.resources.iter().all(|resource| resource.body_len() == 1000));
    assert!(!serde_json::to_string(&site).unwrap().contains("SECRET"));
}

#[test]
fn named_initiators_precede_inferred_ones() {
    let stack = json!({"type": "script", "stack": {
        "callFrames": [{"url": ""}],
        "parent": {"callFrames": [{"url": "http://a/x.js"}]},
    }});
    let redirect = with(entry("http://a/", 0, 10, ""), "response.status", json!(301));
    let entries = json!([
        with(redirect, "response.redirectURL", json!("/home")),
        entry("http://a/home", 10, 10, "text/html"),
        with(
            entry("http://a/x.js", 30, 10, "text/javascript"),
            "_initiator",
            json!({"type": "parser", "url": "http://a/home#x"})
        ),
        with(entry("http://a/1", 50, 1, "image/png"), "_initiator", stack),
        with(entry("http://a/2", 60, 1, "image/png"), "_initiator", json!("http://a/home")),
        with(
            entry("http://a/3", 70, 1, "image/png"),
            "_initiator_detail",
            json!("{\"url\":\"http://a/home\"}")
        ),
        with(entry("http://a/4", 80, 1, "image/png"), "_initiator", json!({"type": "other"})),
        with(entry("http://a/5", 90, 1, "image/png"), "_initiator", json!("http://unknown/")),
    ]);
    let site = har(&json!([]), &entries).site;
    assert_eq!(
        causes(&site, 0),
        [
            (None, 0, false),
            (Some(0), 0, false),
            (Some(1), 10, false),
            (Some(2), 10, false),
            (Some(1), 40, false),
            (Some(1), 50, false),
            (Some(2), 40, true),
            (Some(2), 50, true),
        ]
    );
}

#[test]
fn first_and_repeat_view_are_two_pages_over_the_same_resources() {
    let second = |entry| with(entry, "pageref", json!("q"));
    let not_modified = |url, start| {
        let entry = with(entry(url, start, 1, ""), "response.status", json!(304));
        second(with(entry, "response.content.size", json!(0)))
    };
    let pages = json!([{"id": "p", "title": "view"}, {"id": "q", "title": "view"}]);
    let source = har(
        &pages,
        &json!([
            not_modified("http://a/x.css", 5000),
            entry("http://a/", 0, 10, "text/html"),
            entry("http://a/x.css", 20, 10, "text/css"),
            second(with(entry("http://a/", 4000, 1, "text/html"), "_fromCache", json!("disk"))),
            not_modified("http://a/only", 6000),
            with(not_modified("http://a/had", 6500), "response.content.size", json!(700)),
        ]),
    );
    let site = &source.site;
    assert_eq!((site.pages.len(), site.resources.len()), (2, 4));
    assert_eq!(site.pages[1].name, "view (2)");
    let css = site.resources.iter().find(|resource| resource.url == "http://a/x.css").unwrap();
    assert_eq!((css.status, css.kind, css.body_len()), (200, ResourceKind::Css, 1000));
    let only = site.resources.iter().find(|resource| resource.url.ends_with("only")).unwrap();
    assert_eq!((only.status, only.body_len()), (200, 0));
    assert!(source.warnings.iter().any(|w| w.contains("1 resources known by a 304")));
    // The browser had it, and a load without a cache needs it.
    let had = site.resources.iter().find(|resource| resource.url.ends_with("had")).unwrap();
    assert_eq!((had.status, had.body_len()), (200, 700));
}

#[test]
fn odd_entries_are_skipped_and_reported() {
    let entries = json!([
        entry("data:image/png;base64,xx", 0, 0, "image/png"),
        entry("blob:http://a/x", 0, 0, ""),
        entry("chrome-extension://x/y.js", 0, 0, ""),
        with(entry("http://a/post", 0, 0, ""), "request.method", json!("POST")),
        with(entry("http://a/failed", 0, 0, ""), "response.status", json!(0)),
        with(entry("http://a/failed", 0, 0, ""), "response.status", json!(-2)),
        with(entry("wss", 0, 0, ""), "response.status", json!(101)),
        with(entry("http://a/upgraded", 0, 0, ""), "response.status", json!(101)),
        with(entry("http://a/ok#top", 0, -1, "text/html"), "response.status", json!("200")),
        entry("http://a/ok", 1, 1, "text/html"),
        Value::Null,
        json!([1]),
        json!({"request": {"url": "http://a/no-response"}}),
    ]);
    let source = har(&Value::Null, &entries);
    assert_eq!(urls(&source.site), ["http://a/ok"]);
    let warnings = source.warnings.join("\n");
    for part in [
        "skipped 3 entries: their URL is not http",
        "skipped 1 entries: their method",
        "skipped 3 entries: they have no response",
        "skipped 3 entries: their URL is missing",
        "skipped 1 entries: their status",
        "1 entries skipped: their page loads the same URL already",
    ] {
        assert!(warnings.contains(part), "{part}:\n{warnings}");
    }
}

#[test]
fn a_body_has_the_size_that_the_browser_transferred() {
    let sized = |size: Value, body: Value| {
        let entry = entry("http://a/", 0, 0, "text/html");
        let entry = with(entry, "response.content.size", size);
        let source = har(&json!([]), &json!([with(entry, "response.bodySize", body)]));
        (source.site.resources[0].body_len(), source.warnings.len())
    };
    assert_eq!(sized(json!(5), json!(3)), (3, 0));
    assert_eq!(sized(json!(-1), json!(3)), (3, 0));
    assert_eq!(sized(json!("7"), json!(-1)), (7, 1), "the size after decoding is said to be that");
    assert_eq!(sized(json!(0), json!(0)), (0, 0));
    assert_eq!(sized(json!(-1), json!(-1)), (0, 1));
    assert_eq!(sized(json!(1e300), json!(1e300)), (crate::site::MAX_BODY_BYTES, 1));
}

/// A page of 100,000 bytes as they came, which are a million after decoding; its repeat view, which a cache of
/// the browser answered, and which lacks the size; and an image that only that cache had.
#[test]
fn what_the_cache_of_the_browser_answered_is_said_and_completed() {
    let page =
        with(entry("http://a/", 0, 0, "text/html"), "response.content.size", json!(1_000_000));
    let first = with(page.clone(), "response.bodySize", json!(100_000));
    let cached = |entry: Value| {
        let entry = with(entry, "_fromCache", json!("disk"));
        with(entry, "response.bodySize", json!(0))
    };
    let image = cached(entry("http://a/i", 5, 0, "image/png"));
    for entries in
        [json!([first, cached(page.clone()), image]), json!([cached(page), first, image])]
    {
        let source = har(&json!([]), &entries);
        let sizes: Vec<u64> = source.site.resources.iter().map(Resource::body_len).collect();
        assert_eq!(sizes, [100_000, 1000]);
        for said in [
            "2 entries that the browser's cache answered",
            "1 resources known by the browser's cache alone",
            "1 resources whose transferred size is not known",
        ] {
            assert!(
                source.warnings.iter().any(|it| it.contains(said)),
                "{said}: {:?}",
                source.warnings
            );
        }
    }
}

#[test]
fn dates_move_with_the_first_request() {
    let headers = json!([
        {"name": "Date", "value": "Wed, 01 Jan 2020 00:00:10 GMT"},
        {"name": "EXPIRES", "value": "Wed, 01 Jan 2020 01:00:00 GMT"},
        {"name": "Content-Encoding", "value": "gzip"},
        {"name": "Set-Cookie", "value": "a=secret\nb=secret; Path=/"},
        {"value": "x"},
    ]);
    let late = with(entry("http://a/", 9000, 0, "text/html"), "response.headers", headers);
    let site = har(&json!([]), &json!([late, entry("http://a/first", 0, 0, "text/html")])).site;
    let resource = site.resources.iter().find(|resource| resource.url == "http://a/").unwrap();
    let value = |name| resource.header_values(name).collect::<Vec<_>>();
    assert_eq!(value("date"), ["Sun, 13 Sep 2020 12:26:50 GMT"]);
    assert_eq!(value("expires"), ["Sun, 13 Sep 2020 13:26:40 GMT"]);
    assert_eq!(value("set-cookie"), ["a=xxxxxx", "b=xxxxxx; Path=/"]);
    assert_eq!(value("content-encoding"), [""; 0]);
    assert_eq!(value("content-type"), ["text/html"]);
}

#[test]
fn entries_without_a_page_go_to_the_page_that_began_last() {
    let pages = json!([
        {"id": "p", "startedDateTime": "2020-01-01T00:00:00Z"},
        {"id": "q", "startedDateTime": "2020-01-01T00:00:10Z"},
        {"id": "empty"},
    ]);
    let unpaged = |entry| with(entry, "pageref", Value::Null);
    let source = har(
        &pages,
        &json!([
            entry("http://a/", 0, 0, "text/html"),
            unpaged(entry("http://a/1", 9000, 0, "")),
            unpaged(entry("http://a/2", 11_000, 0, "")),
            with(entry("http://a/3", 0, 0, ""), "pageref", json!("unknown")),
        ]),
    );
    let pages: Vec<_> =
        source.site.pages.iter().map(|p| (p.name.as_str(), p.loads.len())).collect();
    assert_eq!(pages, [("p", 2), ("q", 1), ("unknown", 1)]);
    assert!(source.warnings.contains(&"1 pages skipped: they have nothing to load".to_owned()));
}

#[test]
fn files_that_are_not_hars_are_refused() {
    for (text, part) in [
        ("", "not a HAR file"),
        ("{}", "it has no 'log'"),
        ("[]", "not a HAR file"),
        ("{\"log\": 5}", "the log of a HAR"),
        ("{\"log\": {\"entries\": 5}}", "a list of entries"),
        ("{\"log\": {\"entries\": [1e999]}}", "not a HAR file"),
        ("\u{feff}{\"log\": {\"entries\": []}}", "no GET with a response"),
        ("\u{feff}{\"log\": {}}", "no GET with a response"),
    ] {
        let error = parse_text(text).unwrap_err().to_string();
        assert!(error.starts_with("x.har: ") && error.contains(part), "{text}: {error}");
    }
    let entries = vec!["0"; MAX_HAR_ENTRIES + 1].join(",");
    let error = parse_text(&format!("{{\"log\": {{\"entries\": [{entries}]}}}}")).unwrap_err();
    assert!(error.to_string().contains("more than 100000 entries"), "{error}");
    assert!(read(Path::new("none.har"), now()).unwrap_err().to_string().contains("none.har"));
}

/// The recorded HARs, which may not be committed.
fn recorded() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = env::var_os("HAYPILE_SHARED").map_or_else(default, PathBuf::from);
    let folder = shared.join("traces/har");
    if !folder.is_dir() {
        println!("skipped: {} does not exist", folder.display());
        return None;
    }
    Some(folder)
}

#[test]
fn recorded_hars_are_read() {
    let Some(folder) = recorded() else { return };
    // Bytes as they came, summed up from the JSON by another program. Decoded, the second has 1,649,043.
    for (name, pages, expected_bytes) in [
        ("aftonbladet-first-and-repeat.har", 2, 1_363_112),
        ("chrome_github.com_home.har", 1, 636_339),
        ("wpt_h2_www.filamentgroup.com.har", 1, 191_761),
    ] {
        let source = read(&folder.join(name), now()).unwrap();
        let site = &source.site;
        println!("{name}: {:?}\n{:#?}", site.counts(), source.warnings);
        println!("{} {}", site.page_weight_bytes(0), site.working_set_bytes());
        assert_eq!(site.pages.len(), pages, "{name}");
        let bytes: u64 = site.resources.iter().map(Resource::body_len).sum();
        assert_eq!(bytes, expected_bytes, "{name}");
        let json = serde_json::to_string(site).unwrap();
        assert_eq!(serde_json::from_str::<Site>(&json).unwrap(), *site);
    }
}

#[test]
fn the_repeat_view_loads_resources_of_the_first() {
    let Some(folder) = recorded() else { return };
    let site = read(&folder.join("aftonbladet-first-and-repeat.har"), now()).unwrap().site;
    let resources = |page: usize| -> std::collections::HashSet<_> {
        site.pages[page].loads.iter().map(|load| load.resource).collect()
    };
    assert_eq!(site.pages.iter().map(|page| page.loads.len()).sum::<usize>(), 206);
    assert_eq!(resources(0).intersection(&resources(1)).count(), 10);
}

/// A HAR in which anything may be missing or of another type.
fn any_har() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "(GET|POST|http://[ab]/[xyz]|data:x|2020-01-01T00:00:0[0-9]Z|text/(html|css)|.{0,5})"
            .prop_map(Value::from),
        Just(json!([{"name": "Date", "value": "Wed, 01 Jan 2020 00:00:10 GMT"}, {"name": "vary"}])),
        Just(json!({"url": "http://a/x", "stack": {"callFrames": [5]}})),
    ];
    let names = [
        "pageref",
        "startedDateTime",
        "time",
        "request.url",
        "request.method",
        "response.status",
        "response.headers",
        "response.content",
        "response.content.size",
        "response.bodySize",
        "response.redirectURL",
        "_initiator",
        "request",
        "response",
        "_initiator_detail",
    ];
    let change = (prop::sample::select(names.to_vec()), leaf);
    let changed = (
        prop::sample::select(vec!["http://a/x", "http://a/y", "https://b/"]),
        0..5000_u64,
        prop::collection::vec(change, 0..4),
    );
    let entries = prop::collection::vec(changed, 0..12);
    entries.prop_map(|entries| {
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(url, start, changes)| {
                changes.into_iter().fold(
                    entry(url, start, 5, "text/html"),
                    |entry, (path, value)| {
                        // A part that is not an object any more cannot be changed.
                        let parent = path.split_once('.').map(|(parent, _)| parent);
                        let is_object = parent.is_none_or(|parent| {
                            entry[parent].is_object()
                                && (!path.contains("content.")
                                    || entry[parent]["content"].is_object())
                        });
                        if is_object { with(entry, path, value) } else { entry }
                    },
                )
            })
            .collect();
        json!({"log": {"entries": entries, "pages": [{"id": "p"}]}})
    })
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(Path::new("x"), &bytes, now());
    }

    #[test]
    fn odd_hars_become_valid_sites_or_errors(har in any_har()) {
        if let Ok(source) = parse_text(&har.to_string()) {
            source.site.validate().unwrap();
            prop_assert!(!source.site.pages.is_empty());
        }
    }

    #[test]
    fn damaged_hars_do_not_panic(at in 0..800_usize, byte in any::<u8>()) {
        let entries = [entry("http://a/", 0, 5, "text/html"), entry("http://a/x", 9, 5, "")];
        let mut bytes = json!({"log": {"entries": entries}}).to_string().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(source) = parse(Path::new("x"), &bytes, now()) {
            source.site.validate().unwrap();
        }
    }
}

#[test]
fn what_a_browser_requests_after_a_page_is_loaded_is_not_waited_for() {
    let pages = |on_load: Value| {
        json!([{
            "id": "p", "title": "", "startedDateTime": "2020-01-01T00:00:00.000Z",
            "pageTimings": {"onLoad": on_load},
        }])
    };
    let entries = json!([
        entry("http://a.test/", 2_000, 10, "text/html"),
        entry("http://a.test/early.png", 2_400, 10, "image/png"),
        entry("http://a.test/late.js", 2_501, 10, "text/javascript"),
    ]);
    let needed = |on_load: Value| {
        let site = har(&pages(on_load), &entries).site;
        site.pages[0].loads.iter().map(|load| load.is_needed).collect::<Vec<_>>()
    };
    assert_eq!(needed(json!(2500)), [true, true, false]);
    // A page needs its document, whatever the recording says.
    assert_eq!(needed(json!(1)), [true, false, false]);
    for unknown in [json!(-1), json!(null), json!("x")] {
        assert_eq!(needed(unknown), [true; 3]);
    }
}

#[test]
fn a_call_around_a_har_and_gzip_are_taken_off() {
    let text =
        json!({"log": {"pages": [], "entries": [entry("http://a.test/", 0, 5, "text/html")]}});
    let text = text.to_string();
    for whole in [
        format!("onInputData({text});"),
        format!("\u{feff} a.b_c$1 ({text})\n"),
        format!("x({text})  ;  "),
    ] {
        let site = parse_text(&whole).unwrap().site;
        assert_eq!(urls(&site), ["http://a.test/"], "{whole}");
    }
    for wrong in
        [format!("({text})"), format!("a-b({text})"), format!("x({text}"), "x()".to_owned()]
    {
        assert!(parse_text(&wrong).unwrap_err().to_string().contains("not a HAR file"), "{wrong}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.har.gz");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(&path, &packed).unwrap();
    assert_eq!(urls(&read(&path, now()).unwrap().site), ["http://a.test/"]);
    std::fs::write(&path, &packed[..packed.len() - 9]).unwrap();
    assert!(read(&path, now()).is_err(), "a part of a file");
    // What is small compressed may be enormous.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..=MAX_HAR_BYTES >> 20 {
        bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    std::fs::write(&path, bomb.finish().unwrap()).unwrap();
    let error = read(&path, now()).unwrap_err().to_string();
    assert!(error.contains("268435456") || error.contains("256"), "{error}");
}
