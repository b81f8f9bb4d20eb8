//! Any bytes as a HAR, a list of resources or a manifest: an error, or a site that obeys the rules of sites and
//! comes back from JSON.
//!
//! `cargo +nightly fuzz run site`

#![no_main]

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use haypile_pages::site::manifest::Manifest;
use haypile_pages::site::{Site, SiteError, SiteSource, har, list};
use libfuzzer_sys::fuzz_target;

/// The part of a HAR around its entries: the fuzzer rarely finds it by itself.
const ENTRIES: (&[u8], &[u8]) = (b"{\"log\":{\"pages\":[{\"id\":\"p\"}],\"entries\":[", b"]}}");
/// The part of an entry around its fields, which a response makes one that is loaded.
const ENTRY: (&[u8], &[u8]) = (
    b"{\"request\":{\"url\":\"http://a/\"},\"response\":{\"status\":200,\"content\":{\"size\":9}},",
    b"}",
);

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("x");
    let now = UNIX_EPOCH + Duration::from_secs(1_600_000_000);
    let entry = [ENTRY.0, bytes, ENTRY.1].concat();
    for entries in [bytes, &entry] {
        check(har::parse(path, &[ENTRIES.0, entries, ENTRIES.1].concat(), now));
    }
    check(har::parse(path, bytes, now));
    let list = list::parse(path, bytes);
    if let (Ok(manifest), Ok(list)) = (Manifest::parse(path, bytes), &list)
        && let Ok(visits) = manifest.visits(&list.site)
    {
        assert_eq!(visits.len(), manifest.pages().len());
        assert!(visits.iter().all(|visit| visit.page < list.site.pages.len()));
    }
    check(list);
});

fn check(read: Result<SiteSource, SiteError>) {
    let Ok(SiteSource { site, .. }) = read else { return };
    site.validate().expect("readers make valid sites");
    let json = serde_json::to_string(&site).expect("a site is JSON");
    assert_eq!(serde_json::from_str::<Site>(&json).expect("and comes back"), site);
}
