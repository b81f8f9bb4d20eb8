//! The matrix on a site of three pages, in virtual time.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use haypile_http::BoxError;
use http::Response;
use http::header::{ETAG, IF_NONE_MATCH};
use parking_lot::Mutex;
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::site::list;
use crate::site::manifest::Visits;

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Three pages of one site, which share a style sheet. What is indented is caused by the line above.
const SITE: &str = "\
[one]
http://a.test/one.html 10KB no-cache etag
  http://a.test/style.css 20KB max-age=3600
    http://a.test/font.woff2 30KB max-age=3600
  http://a.test/news.json 1KB no-store
[two]
http://a.test/two.html 10KB no-cache etag
  http://a.test/style.css
[three]
http://b.test/three.html 5KB max-age=3600
  http://a.test/style.css
";

/// A server of a site that answers a round trip later, over a line without a bound.
#[derive(Clone)]
struct VirtualServer {
    site: Arc<Site>,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
    garbles: bool,
}

impl Origin for VirtualServer {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        sleep(ROUND_TRIP).await;
        let url = request.uri().to_string();
        let resource = self.site.resources.iter().find(|resource| resource.url == url);
        let resource = resource.ok_or("no such resource")?;
        let value = |name: &str| resource.header_values(name).next().map(str::to_owned);
        let etag = value("etag");
        let has_it = etag.is_some()
            && request.headers().get(IF_NONE_MATCH).and_then(|tag| tag.to_str().ok())
                == etag.as_deref();
        let status = if has_it { 304 } else { 200 };
        self.asked.lock().push((url, status));
        let body = if has_it { Vec::new() } else { resource.body_bytes() };
        let body = if self.garbles { vec![0; body.len()] } else { body };
        let mut response = Response::new(Body::full(Bytes::from(body)));
        *response.status_mut() = StatusCode::from_u16(status)?;
        for (name, value) in [(CACHE_CONTROL, value("cache-control")), (ETAG, etag)] {
            if let Some(value) = value {
                response.headers_mut().insert(name, value.parse()?);
            }
        }
        Ok(response)
    }
}

impl Origins for VirtualServer {
    type Origin = Self;

    fn of(&self, _uri: &Uri) -> Self {
        self.clone()
    }
}

/// The loads of the visits with a cache, and what the server was asked for by visit.
fn visited(url: &str, garbles: bool) -> Vec<(LoadReport, Vec<(String, u16)>)> {
    let site = Arc::new(list::parse(Path::new("site"), SITE.as_bytes()).unwrap().site);
    let checksums: Vec<u64> =
        site.resources.iter().map(|resource| xxh3_64(&resource.body_bytes())).collect();
    let server = VirtualServer { site: Arc::clone(&site), asked: Arc::default(), garbles };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let cache = Cache::open(url).unwrap();
    let loader = Loader::new(&site, &checksums, cache, (false, u64::MAX), server.clone());
    let visits = Visits::in_groups(site.pages.len());
    let load = |visit: &crate::site::manifest::Visit| {
        let report = runtime.block_on(loader.load(visit.page));
        (report, std::mem::take(&mut *server.asked.lock()))
    };
    visits.iter().map(load).collect()
}

fn ms(report: &LoadReport) -> u64 {
    report.wall_ns / 1_000_000
}

#[test]
fn without_a_cache_every_visit_asks_for_everything() {
    let loads = visited("none://", false);
    assert_eq!(loads.len(), 9);
    for (visit, (report, asked)) in loads.iter().enumerate() {
        let (resources, depth) = [(4, 3), (2, 2), (2, 2)][visit % 3];
        assert_eq!((report.requests, asked.len() as u64), (resources, resources));
        assert_eq!((report.hits, report.wrong, report.failed), (0, 0, 0));
        // As many round trips as resources wait for each other, and not a millisecond more.
        assert_eq!(ms(report), 100 * depth);
    }
}

/// Caches so large that no shard of theirs evicts anything.
#[test]
fn with_a_cache_repeat_views_ask_for_what_may_not_be_reused() {
    let directory = tempfile::tempdir().unwrap();
    let file = format!("file://{}/cache?size=64MiB", directory.path().display());
    let both =
        format!("memory://?size=64MiB -> file://{}/both?size=64MiB", directory.path().display());
    for url in ["memory://?size=64MiB", file.as_str(), both.as_str()] {
        let loads = visited(url, false);
        let asked: Vec<usize> = loads.iter().map(|(_, asked)| asked.len()).collect();
        // The first view of the second and third page finds the style sheet of the first.
        assert_eq!(asked, [4, 1, 1, 2, 1, 0, 2, 1, 0], "{url}");
        let first_again = &loads[3];
        let mut kinds: Vec<(&str, u16)> =
            first_again.1.iter().map(|(url, status)| (url.as_str(), *status)).collect();
        kinds.sort_unstable();
        let expected = [("http://a.test/news.json", 200), ("http://a.test/one.html", 304)];
        assert_eq!(kinds, expected, "{url}");
        let report = &first_again.0;
        assert_eq!((report.hits, report.revalidated, report.wrong), (2, 1, 0), "{url}");
        // A round trip for the document, one for the news; the rest is stored.
        assert_eq!(ms(report), 200, "{url}");
        assert_eq!(ms(&loads[5].0), 0, "{url}");
        assert_eq!(report.body_bytes, 61_000, "{url}");
    }
}

#[test]
fn levels_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let both =
        format!("memory://?size=64MiB -> file://{}/both?size=64MiB", directory.path().display());
    let loads = visited(&both, false);
    let levels = |visit: usize| &loads[visit].0.by_level;
    assert_eq!(levels(5).values().sum::<u64>(), 2);
    // The upper level keeps a copy of an entry that the lower one had.
    assert_eq!(levels(8).get("memory"), Some(&2));
}

#[test]
fn bytes_that_are_not_the_site_s_are_wrong() {
    let loads = visited("none://", true);
    assert_eq!(loads[0].0.wrong, 4);
}

#[test]
fn a_partition_has_the_site_of_the_page() {
    for (host, site) in [
        ("www.site.test", "site.test"),
        ("a.b.site.test", "site.test"),
        ("site.test", "site.test"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
    ] {
        assert_eq!(registrable(host), site);
    }
}
