//! The layer for servers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use haypile::Cache;
use haypile_http::{
    Body, BoxError, CacheKey, CacheLayer, CacheMode, CacheTtl, HttpCache, Purge, Status,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tower_layer::Layer;
use tower_service::Service;

/// A service that answers with the URI that it got, and counts.
#[derive(Clone, Default)]
struct Echo {
    requests: Arc<AtomicUsize>,
    fields: &'static [(&'static str, &'static str)],
    fails: bool,
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(
        &mut self,
        _context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), BoxError>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.fails {
            return std::future::ready(Err("the database at 10.0.0.1 is gone".into()));
        }
        let mut response = Response::builder();
        for (name, value) in self.fields {
            response = response.header(*name, *value);
        }
        let body = format!("{} {number}", request.uri());
        std::future::ready(Ok(response.body(Full::from(body)).expect("a response")))
    }
}

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];

fn cache() -> HttpCache {
    HttpCache::builder(Cache::open("memory:size=16MiB").expect("it opens")).build()
}

fn request(uri: &str, host: &str) -> http::request::Builder {
    let request = Request::get(uri);
    if host.is_empty() { request } else { request.header("host", host) }
}

async fn ask<S>(service: &mut S, request: http::request::Builder) -> (StatusCode, String, String)
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    let request = request.body(Body::empty()).expect("a request");
    let response = service.call(request).await.expect("it does not fail");
    let status = response.extensions().get::<Status>().map(Status::to_string).unwrap_or_default();
    let code = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, String::from_utf8(body.into()).expect("text"), status)
}

#[tokio::test]
async fn a_server_s_responses_are_cached_by_their_host() {
    let cache = cache();
    let echo = Echo { fields: FRESH, ..Echo::default() };
    let mut service = CacheLayer::server(cache.clone()).layer(echo);
    for (uri, host, body, is_hit) in [
        ("/a?b", "example.org", "/a?b 0", false),
        ("/a?b", "Example.org", "/a?b 0", true),
        ("http://example.org/a?b", "", "/a?b 0", true),
        ("/a?b", "other.example", "/a?b 1", false),
        ("/a?b", "other.example:80", "/a?b 1", true),
        ("/", "example.org", "/ 2", false),
    ] {
        let (_, found, status) = ask(&mut service, request(uri, host)).await;
        assert_eq!((found.as_str(), status.contains("; hit")), (body, is_hit), "{uri} {host}");
    }
    // Purges name the URL.
    cache.purge(Purge::url("http://example.org/a?b")).await.expect("it takes note");
    assert_eq!(ask(&mut service, request("/a?b", "example.org")).await.1, "/a?b 3");
    let mut secure =
        CacheLayer::server(cache.clone()).https().layer(Echo { fields: FRESH, ..Echo::default() });
    assert_eq!(ask(&mut secure, request("/a?b", "example.org")).await.1, "/a?b 0");
}

#[tokio::test]
async fn what_is_not_cached_says_why() {
    let mut service = CacheLayer::server(cache()).layer(Echo { fields: FRESH, ..Echo::default() });
    for (asked, why) in [
        (
            request("/", ""),
            "fwd=bypass; fwd-status=200; detail=\"the URL has a scheme other than http and https\"",
        ),
        (request("/", "a b"), "fwd=bypass; fwd-status=200; detail=\"the URL has a scheme"),
        (
            request("/", "a").header("if-match", "\"a\""),
            "fwd=bypass; fwd-status=200; detail=\"the request has If-Match",
        ),
    ] {
        let (code, body, status) = ask(&mut service, asked).await;
        assert!(code == 200 && body.starts_with('/'), "{body}");
        assert!(status.contains(why), "{status}");
    }
    let mut service = CacheLayer::server(cache()).layer(Echo::default());
    let (_, _, status) = ask(&mut service, request("/", "a")).await;
    assert!(
        status.contains(
            "not stored: the response has neither a lifetime (max-age, Expires) nor a validator"
        ),
        "{status}"
    );
}

#[tokio::test]
async fn errors_of_the_service_are_answered_and_kept_from_clients() {
    let mut service = CacheLayer::server(cache()).layer(Echo { fails: true, ..Echo::default() });
    let (code, body, _) = ask(&mut service, request("/", "a")).await;
    assert_eq!(
        (code, body.as_str()),
        (StatusCode::INTERNAL_SERVER_ERROR, "internal server error\n")
    );
}

#[tokio::test]
async fn a_program_says_what_it_wants_of_one_request() {
    let echo =
        Echo { fields: &[("cache-control", "max-age=0"), ("etag", "\"a\"")], ..Echo::default() };
    let mut service = CacheLayer::server(cache()).layer(echo.clone());
    let mut numbers = Vec::new();
    for mode in [
        CacheMode::Default,
        CacheMode::ForceCache,
        CacheMode::OnlyIfCached,
        CacheMode::NoCache,
        CacheMode::NoStore,
        CacheMode::ForceCache,
    ] {
        let (_, body, _) = ask(&mut service, request("/", "a").extension(mode)).await;
        numbers.push(body);
    }
    assert_eq!(numbers, ["/ 0", "/ 0", "/ 0", "/ 1", "/ 2", "/ 1"]);
    let missing = request("/other", "a").extension(CacheMode::OnlyIfCached);
    assert_eq!(ask(&mut service, missing).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(echo.requests.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_program_gives_a_response_a_lifetime_and_a_name() {
    let echo = Echo { fields: &[("cache-control", "max-age=0")], ..Echo::default() };
    let mut service = CacheLayer::server(cache()).layer(echo);
    let minute = || request("/", "a").extension(CacheTtl(Duration::from_mins(1)));
    assert_eq!(ask(&mut service, minute()).await.1, "/ 0");
    let (_, body, status) = ask(&mut service, request("/", "a")).await;
    assert!(body == "/ 0" && status.contains("; hit; ttl=60"), "{status}");
    // Nobody learns of it.
    let response = service.call(request("/", "a").body(Body::empty()).expect("a request")).await;
    let response = response.expect("it does not fail");
    assert_eq!(response.headers()["cache-control"], "max-age=0");
    assert!(!response.headers().keys().any(|name| name.as_str().starts_with("haypile")));

    let named = |uri: &str, key: &str| request(uri, "a").extension(CacheKey(key.to_owned()));
    let forever = |uri: &str, key: &str| named(uri, key).extension(CacheTtl(Duration::MAX));
    assert_eq!(ask(&mut service, forever("/x?1", "x")).await.1, "/x?1 1");
    assert_eq!(ask(&mut service, named("/x?2", "x")).await.1, "/x?1 1");
    assert_eq!(ask(&mut service, named("/x?2", "y")).await.1, "/x?2 2");
}

#[tokio::test]
async fn a_lifetime_makes_nothing_storable_that_is_private() {
    for control in ["private", "no-store", "private, max-age=60"] {
        let fields: &[(&str, &str)] = Box::leak(Box::new([("cache-control", control)]));
        let mut service = CacheLayer::server(cache()).layer(Echo { fields, ..Echo::default() });
        for number in 0..2 {
            let asked = request("/", "a").extension(CacheTtl(Duration::from_mins(1)));
            assert_eq!(ask(&mut service, asked).await.1, format!("/ {number}"), "{control}");
        }
    }
}
