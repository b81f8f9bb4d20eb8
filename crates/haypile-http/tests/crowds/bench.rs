//! A cache in virtual time: nothing waits for real, and each wait is exact.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use haypile::{Cache, Clock};
use haypile_http::{Body, BoxError, Builder, HttpCache, Origin};
use http::{HeaderMap, Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, sleep};

use super::of_length::OfLength;

pub(crate) const URL: &str = "http://example.org/a";
pub(crate) const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];
pub(crate) const PRIVATE: &[(&str, &str)] = &[("cache-control", "private")];
/// The time that the origin takes, if a test does not say.
pub(crate) const PAGE: Duration = Duration::from_millis(500);

pub(crate) type Fields<'a> = &'a [(&'a str, &'a str)];

/// The clock of the runtime, which stands still while anything runs.
#[derive(Debug)]
struct Virtual(Instant);

impl Clock for Virtual {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos().try_into().expect("a short test")
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000_000) + self.0.elapsed()
    }
}

/// An answer of the origin.
pub(crate) enum Say {
    /// This status, with these fields and this body, after this time.
    After(Duration, u16, Vec<(String, String)>, Bytes),
    /// No connection, after this time.
    Fail(Duration),
    /// This status after [`PAGE`], with these fields, and this body in pieces after that. It says how long it is if this
    /// is true.
    Pieces(u16, Vec<(String, String)>, Bytes, bool),
    /// Nothing, ever.
    Hang,
}

impl Say {
    pub(crate) fn page(fields: Fields<'_>) -> Self {
        Self::after(PAGE, 200, fields)
    }

    pub(crate) fn after(time: Duration, status: u16, fields: Fields<'_>) -> Self {
        Self::After(time, status, owned(fields), Bytes::from_static(b"body"))
    }

    /// Returns a page in pieces, which does not say how long it is.
    pub(crate) fn unmarked(fields: Fields<'_>, body: impl Into<Bytes>) -> Self {
        Self::Pieces(200, owned(fields), body.into(), false)
    }

    /// Returns a response in pieces, which says how long it is.
    pub(crate) fn slowly(status: u16, fields: Fields<'_>, body: impl Into<Bytes>) -> Self {
        Self::Pieces(status, owned(fields), body.into(), true)
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Self {
        match self {
            Self::After(time, status, fields, _) => Self::After(time, status, fields, body.into()),
            Self::Pieces(status, fields, _, is_marked) => {
                Self::Pieces(status, fields, body.into(), is_marked)
            }
            other => other,
        }
    }
}

fn owned(fields: Fields<'_>) -> Vec<(String, String)> {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns a body that comes in pieces, one after the other, and does not say how long it is.
fn in_pieces(body: &Bytes) -> Body {
    let pieces: Vec<_> = body.chunks(64 << 10).map(|piece| body.slice_ref(piece)).collect();
    let frames = stream::iter(pieces).then(async |piece| {
        sleep(PAGE / 50).await;
        Ok::<_, Infallible>(Frame::data(piece))
    });
    Body::wrap(StreamBody::new(Box::pin(frames)))
}

type Answering = dyn Fn(usize, &Request<Body>) -> Say + Send + Sync;

/// An origin that answers in its time, and counts.
#[derive(Clone)]
pub(crate) struct Slow(Arc<Counted>);

struct Counted {
    answer: Box<Answering>,
    requests: AtomicUsize,
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Counts a request that the origin works on.
struct Working<'a>(&'a Counted);

impl<'a> Working<'a> {
    fn begin(counted: &'a Counted) -> Self {
        let now = counted.now.fetch_add(1, Ordering::SeqCst) + 1;
        counted.most.fetch_max(now, Ordering::SeqCst);
        Self(counted)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Origin for Slow {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let counted = &*self.0;
        let number = counted.requests.fetch_add(1, Ordering::SeqCst);
        let _working = Working::begin(counted);
        match (counted.answer)(number, &request) {
            Say::Hang => std::future::pending().await,
            Say::Fail(time) => {
                sleep(time).await;
                Err("no connection".into())
            }
            Say::After(time, status, fields, body) => {
                sleep(time).await;
                Ok(response(status, fields, Body::full(body)))
            }
            Say::Pieces(status, fields, body, is_marked) => {
                sleep(PAGE).await;
                let pieces = in_pieces(&body);
                let length = body.len() as u64;
                let body = if is_marked { Body::wrap(OfLength(pieces, length)) } else { pieces };
                Ok(response(status, fields, body))
            }
        }
    }
}

fn response(status: u16, fields: Vec<(String, String)>, body: Body) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in fields {
        response = response.header(name, value);
    }
    response.body(body).expect("a response")
}

/// A response, and the time that it took.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) took: Duration,
}

impl Answer {
    pub(crate) fn cache_status(&self) -> &str {
        self.field("cache-status")
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.cache_status().starts_with("haypile; hit")
    }
}

pub(crate) struct Bench {
    pub(crate) cache: HttpCache,
    pub(crate) store: Cache,
    origin: Slow,
    clock: Arc<Virtual>,
}

impl Bench {
    pub(crate) fn new(
        answer: impl Fn(usize, &Request<Body>) -> Say + Send + Sync + 'static,
    ) -> Self {
        Self::with(answer, |builder| builder)
    }

    pub(crate) fn with(
        answer: impl Fn(usize, &Request<Body>) -> Say + Send + Sync + 'static,
        set_up: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        Self::on("memory:size=64MiB", answer, set_up)
    }

    /// Returns a bench with a store of this URL.
    pub(crate) fn on(
        store: &str,
        answer: impl Fn(usize, &Request<Body>) -> Say + Send + Sync + 'static,
        set_up: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let counted = Counted {
            answer: Box::new(answer),
            requests: AtomicUsize::new(0),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        };
        let store = Cache::open(store).expect("it opens");
        let clock = Arc::new(Virtual(Instant::now()));
        let builder = HttpCache::builder(store.clone()).clock(clock.clone());
        let cache = set_up(builder).build();
        Self { cache, store, origin: Slow(Arc::new(counted)), clock }
    }

    /// Returns another cache, as of another process, on the same store and origin.
    pub(crate) fn another(&self) -> Self {
        let (store, origin, clock) =
            (self.store.clone(), self.origin.clone(), Arc::clone(&self.clock));
        let cache = HttpCache::builder(store.clone()).clock(clock.clone()).build();
        Self { cache, store, origin, clock }
    }

    pub(crate) async fn get(&self, fields: Fields<'_>) -> Answer {
        self.ask(URL, fields).await.expect("a response")
    }

    pub(crate) async fn ask(&self, url: &str, fields: Fields<'_>) -> Result<Answer, BoxError> {
        Self::receive(self.open(url, fields)).await
    }

    pub(crate) async fn head(&self, fields: Fields<'_>) -> Result<Answer, BoxError> {
        Self::receive(self.send(Method::HEAD, URL, fields)).await
    }

    async fn receive(
        sent: impl Future<Output = Result<Response<Body>, BoxError>>,
    ) -> Result<Answer, BoxError> {
        let begun = Instant::now();
        let (parts, body) = sent.await?.into_parts();
        let body = body.collect().await.expect("a whole body").to_bytes();
        let (status, headers) = (parts.status.as_u16(), parts.headers);
        Ok(Answer { status, headers, body, took: begun.elapsed() })
    }

    /// Asks, and returns the response, of whose body nothing has been read.
    pub(crate) async fn open(
        &self,
        url: &str,
        fields: Fields<'_>,
    ) -> Result<Response<Body>, BoxError> {
        self.send(Method::GET, url, fields).await
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        fields: Fields<'_>,
    ) -> Result<Response<Body>, BoxError> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        self.cache.answer(self.origin.clone(), request).await
    }

    /// Sends a POST, and returns the status of its response.
    pub(crate) async fn post(&self, url: &str) -> Result<u16, BoxError> {
        let request = Request::post(url).body(Body::empty()).expect("a request");
        let response = self.cache.answer(self.origin.clone(), request).await?;
        Ok(response.status().as_u16())
    }

    /// Asks as many times at once, in order.
    pub(crate) async fn crowd(&self, clients: usize, fields: Fields<'_>) -> Vec<Answer> {
        join_all((0..clients).map(|_| self.get(fields))).await
    }

    /// Asks one after the other, one each `pause`, without waiting for the responses.
    pub(crate) async fn stream(
        &self,
        clients: u32,
        pause: Duration,
        fields: Fields<'_>,
    ) -> Vec<Answer> {
        let ask = async |client: u32| {
            sleep(pause * client).await;
            self.get(fields).await
        };
        join_all((0..clients).map(ask)).await
    }

    pub(crate) fn requests(&self) -> usize {
        self.origin.0.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of requests that the origin works on now.
    pub(crate) fn at_the_origin(&self) -> usize {
        self.origin.0.now.load(Ordering::SeqCst)
    }

    /// Returns the most requests that the origin worked on at the same time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.origin.0.most.load(Ordering::SeqCst)
    }
}

/// Returns the longest wait of a crowd.
pub(crate) fn slowest(answers: &[Answer]) -> Duration {
    answers.iter().map(|answer| answer.took).max().expect("a crowd")
}
