//! Requests that the cache answers, or that get to the origin.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use haypile::Cache;
use haypile_http::HttpCache;
use haypile_http::reqwest::CacheMiddleware;
use http::{Extensions, HeaderMap, HeaderValue};
use parking_lot::Mutex;
use reqwest_middleware::{ClientBuilder, Middleware, Next};

use super::net::{Reply, Server, response};
use super::{FRESH, builder, cache, client, get, is_hit, read, status};

#[tokio::test]
async fn the_second_response_is_from_the_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{},size=16MiB", folder.path().join("cache").display());
    for url in ["memory:size=16MiB", &file] {
        let cache = HttpCache::builder(Cache::open(url).expect("it opens")).build();
        let server = Server::start(|number, _| response(200, &[FRESH], number.to_string())).await;
        let client = client(&cache);
        let first = get(&client, server.url("/a#part")).await;
        assert_eq!(first.url().as_str(), server.url("/a#part"));
        assert!(!is_hit(&first) && status(&first).is_stored);
        assert_eq!(first.text().await.expect("a body"), "0");
        let second = get(&client, server.url("/a#other")).await;
        assert_eq!(second.url().as_str(), server.url("/a#other"));
        assert_eq!((second.status().as_u16(), is_hit(&second)), (200, true));
        assert_eq!(second.content_length(), Some(1));
        assert_eq!(second.text().await.expect("a body"), "0");
        assert_eq!(server.requests(), 1, "{url}");
    }
}

#[tokio::test]
async fn a_long_body_passes_and_comes_back() {
    let long = "0123456789abcdef".repeat(20_000);
    let own = long.clone();
    let server = Server::start(move |_, _| response(200, &[FRESH], &own)).await;
    let client = client(&cache());
    for is_hit in [false, true] {
        assert_eq!(read(&client, server.url("/")).await, (long.clone(), is_hit));
    }
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_does_not_end_the_storing() {
    let long = "0123456789abcdef".repeat(20_000);
    let own = long.clone();
    let server = Server::start(move |_, _| response(200, &[FRESH], &own)).await;
    let client = client(&cache());
    drop(get(&client, server.url("/")).await);
    // The next request gets what has come, and then the rest.
    assert_eq!(read(&client, server.url("/")).await.0, long);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_stale_response_is_revalidated_after_it_was_served() {
    let fields = [("cache-control", "max-age=0, stale-while-revalidate=60"), ("etag", "\"a\"")];
    let server = Server::start(move |number, _| response(200, &fields, number.to_string())).await;
    let client = client(&cache());
    assert_eq!(read(&client, server.url("/")).await, ("0".to_owned(), false));
    assert_eq!(read(&client, server.url("/")).await, ("0".to_owned(), true));
    let end = Instant::now() + Duration::from_mins(1);
    while server.requests() < 2 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.requests(), 2);
    assert_eq!(server.seen()[1].field("if-none-match"), "\"a\"");
}

#[tokio::test]
async fn the_cache_sees_default_headers() {
    let server = Server::start(|_, _| response(200, &[FRESH], "x")).await;
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("me"));
    headers.insert("x-other", HeaderValue::from_static("default"));
    let client = builder(&cache()).default_headers(headers).build().expect("a client");
    let response = client.get(server.url("/")).header("x-other", "own").send().await;
    let response = response.expect("a response");
    assert_eq!(
        status(&response).detail.as_deref(),
        Some(
            "not stored: the request had Authorization, and the response does not allow sharing, such as by public"
        )
    );
    let seen = &server.seen()[0];
    assert_eq!((seen.field("authorization"), seen.field("x-other")), ("me", "own"));
}

#[tokio::test]
async fn a_timeout_ends_a_request_whose_origin_hangs() {
    let server = Server::start(|_, seen| match seen.path() {
        "/head" => Reply::SendAndHang(Vec::new()),
        "/moved" => response(302, &[("location", "/head")], ""),
        _ => Reply::SendAndHang(
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\ncache-control: max-age=60\r\n\r\nabc"
                .to_vec(),
        ),
    })
    .await;
    let client = client(&cache());
    let short = Duration::from_secs(1);
    for path in ["/head", "/moved"] {
        let sent = client.get(server.url(path)).timeout(short).send().await;
        let error = sent.expect_err("it hangs");
        assert!(error.is_timeout(), "{error:?}");
    }
    let response = client.get(server.url("/body")).timeout(short).send().await;
    let error = response.expect("a head").text().await.expect_err("it hangs");
    assert!(error.is_timeout(), "{error:?}");
    // One that waits for the response to a request that has more time.
    let leader = get(&client, server.url("/both")).await;
    let response = client.get(server.url("/both")).timeout(short).send().await;
    let response = response.expect("a head");
    assert!(status(&response).is_collapsed);
    let error = response.text().await.expect_err("it hangs");
    assert!(error.is_timeout(), "{error:?}");
    drop(leader);
    // Too long to be a time.
    let fast = Server::start(|_, _| response_of_one()).await;
    let endless = client.get(fast.url("/")).timeout(Duration::MAX).send().await;
    assert_eq!(endless.expect("a response").text().await.expect("a body"), "x");
}

fn response_of_one() -> Reply {
    response(200, &[], "x")
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_an_error_of_the_client() {
    let client = client(&cache());
    let error = client.get("http://127.0.0.1:1/").send().await.expect_err("nobody listens");
    assert!(error.is_connect(), "{error:?}");
    let error = client.get("ftp://example.org/").send().await.expect_err("it knows only http");
    assert!(error.is_builder(), "{error:?}");
}

/// A path, and the number among the extensions.
type Watched = (String, Option<u32>);

/// Notes the requests that it sees.
#[derive(Clone, Default)]
struct Watch(Arc<Mutex<Vec<Watched>>>);

#[async_trait]
impl Middleware for Watch {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let number = extensions.get().copied();
        self.0.lock().push((request.url().path().to_owned(), number));
        next.run(request, extensions).await
    }
}

#[tokio::test]
async fn middlewares_stand_above_and_below() {
    let server = Server::start(|_, seen| match seen.path() {
        "/a" => response(301, &[FRESH, ("location", "/b")], ""),
        _ => response(200, &[FRESH], "b"),
    })
    .await;
    let (above, below) = (Watch::default(), Watch::default());
    let builder = builder(&cache()).with_below(below.clone());
    let (client, middleware): (_, CacheMiddleware) = builder.build_parts().expect("a client");
    let client = ClientBuilder::new(client).with(above.clone()).with(middleware).build();
    for _ in 0..2 {
        let response = client.get(server.url("/a")).with_extension(7_u32).send().await;
        assert_eq!(response.expect("a response").url().path(), "/b");
    }
    let seven = |path: &str| (path.to_owned(), Some(7));
    assert_eq!(*above.0.lock(), [seven("/a"), seven("/a")]);
    assert_eq!(*below.0.lock(), [seven("/a"), seven("/b")]);
}

#[tokio::test]
async fn errors_have_their_causes() {
    let server = Server::start(|_, _| Reply::SendAndClose(b"nonsense".to_vec())).await;
    let error = client(&cache()).get(server.url("/")).send().await.expect_err("it is not HTTP");
    assert!(error.is_request() && error.source().is_some(), "{error:?}");
}
