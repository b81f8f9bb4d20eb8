//! The cache in front of an origin that follows a script, under a clock that the tests move.

mod bodies;
mod collapsing;
mod filling;
#[path = "../support/of_length.rs"]
mod of_length;
mod origin;
mod partial;
mod poisoning;
mod purging;
mod requests;
mod search;
mod shared;
mod troubled;
mod variants;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haypile::{Cache, ManualClock};
use haypile_http::{Body, Builder, HttpCache};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt;

use origin::Script;

const URL: &str = "http://example.org/a";

/// A cache, its clock, and what is behind it.
struct Bench {
    cache: HttpCache,
    clock: Arc<ManualClock>,
    store: Cache,
    origin: Script,
}

/// A response that has been read to its end.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl Bench {
    fn new(origin: Script) -> Self {
        Self::with(origin, "memory:size=16MiB", |builder| builder)
    }

    fn with(origin: Script, url: &str, set_up: impl FnOnce(Builder) -> Builder) -> Self {
        let store = Cache::open(url).expect("it opens");
        Self::on(store, origin, set_up)
    }

    fn on(store: Cache, origin: Script, set_up: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = Arc::new(ManualClock::new());
        let builder = HttpCache::builder(store.clone()).clock(clock.clone());
        Self { cache: set_up(builder).build(), clock, store, origin }
    }

    fn wait(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    async fn get(&self, url: &str) -> Answer {
        self.ask(Method::GET, url, &[]).await
    }

    async fn ask(&self, method: Method, url: &str, fields: &[(&str, &str)]) -> Answer {
        read(self.send(method, url, fields).await.expect("a response")).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        fields: &[(&str, &str)],
    ) -> Result<Response<Body>, haypile_http::BoxError> {
        self.cache.answer(self.origin.clone(), request(method, url, fields)).await
    }
}

impl Answer {
    fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("text")
    }

    fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// Returns the cache's own words on how it handled the request.
    fn cache_status(&self) -> &str {
        self.field("cache-status").strip_prefix("haypile; ").expect("it says so")
    }

    fn is_hit(&self) -> bool {
        self.cache_status().starts_with("hit")
    }
}

fn request(method: Method, url: &str, fields: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).expect("a request")
}

async fn read(response: Response<Body>) -> Answer {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}
