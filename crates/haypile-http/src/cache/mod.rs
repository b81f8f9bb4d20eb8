//! An HTTP cache in front of anything that answers requests.

mod again;
mod ahead;
mod body;
mod change;
mod crowd;
mod fetch;
mod fill;
mod flights;
mod followed_body;
mod heap;
mod options;
mod origin;
mod purge;
pub(crate) mod range;
mod read;
mod refusal;
mod rescue;
mod search;
mod serve;
mod status;
mod stored_body;
mod whole;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use haypile::{Cache, Clock, SystemClock};
use http::header::{IF_MATCH, IF_UNMODIFIED_SINCE};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;

pub(crate) use body::causes;
pub use body::{Body, BodyError, BoxError};
#[cfg(feature = "proxy")]
pub(crate) use crowd::NotAnswered;
pub use crowd::{ClientNoCache, Collapse};
pub(crate) use heap::on_heap;
pub use options::{CacheKey, CacheMode, CacheTtl};
pub use origin::{CloseDelimited, FollowedRedirect, Origin, ServiceOrigin};
pub use status::{Forwarded, Status};

pub use purge::{Purge, PurgeError};

use crate::semantics::{RequestDirectives, Rules, Target};
use crate::storage::{Storage, StoreTroubles};
use ahead::Ahead;
use flights::Flights;
use search::Searches;

/// The longest time that a call of a store delays a response, unless it is set.
const STORE_LIMIT: Duration = Duration::from_millis(250);

/// An HTTP cache (RFC 9111), which keeps responses in any cache of Haypile.
///
/// Cloning is cheap; clones share everything. Several caches, also of several processes, may share
/// one store: each uses what the others have stored.
#[derive(Clone, Debug)]
pub struct HttpCache {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    storage: Storage,
    flights: Arc<Flights>,
    searches: Searches,
    /// The memory for the responses on their way.
    ahead: Arc<Ahead>,
    rules: Rules,
    /// The user of a private cache.
    partition: Option<String>,
    clock: Arc<dyn Clock>,
    collapse: Collapse,
    client_no_cache: ClientNoCache,
    collapse_wait: Duration,
    largest_body: u64,
    /// The names of the store's levels, the fastest first; none if it has only one level.
    level_names: Vec<Arc<str>>,
}

/// The error of a request that the origin failed to answer, and for which no stored response may be
/// served.
pub(crate) struct Failed {
    /// The reason why the request went to the origin instead of being answered from the cache.
    #[cfg_attr(
        not(feature = "proxy"),
        expect(dead_code, reason = "the proxy's own responses say it")
    )]
    pub(crate) why: Forwarded,
    pub(crate) error: BoxError,
}

impl Failed {
    /// Returns what makes the failure of a request that went to the origin for this reason.
    fn of(why: Forwarded) -> impl FnOnce(BoxError) -> Self {
        move |error| Self { why, error }
    }
}

/// A builder that sets up an [`HttpCache`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    cache: Cache,
    rules: Rules,
    partition: Option<String>,
    clock: Arc<dyn Clock>,
    store_limit: Duration,
    collapse: Collapse,
    client_no_cache: ClientNoCache,
    collapse_wait: Option<Duration>,
    largest_body: Option<u64>,
}

impl Builder {
    /// Sets the rules of HTTP caching that the cache follows; by default, those of a shared cache.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Makes the cache private to one user, under the rules of private caches. The user's name is
    /// part of every key, so that users of one store never get each other's responses; it is stored
    /// as it is.
    pub fn private(mut self, user: impl Into<String>) -> Self {
        self.rules = Rules::private();
        self.partition = Some(user.into());
        self
    }

    /// Sets the clock that decides whether responses are fresh; by default, the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets for how long a call of the store may delay a response (250 ms by default). A read that takes longer counts
    /// as a miss.
    pub fn store_limit(mut self, limit: Duration) -> Self {
        self.store_limit = limit;
        self
    }

    /// Sets which requests wait for the response to another request for the same response; by default, all that it may
    /// answer.
    pub fn collapse(mut self, collapse: Collapse) -> Self {
        self.collapse = collapse;
        self
    }

    /// Sets the effect of a client's `no-cache`; by default, concurrent requests with it become one
    /// request to the origin.
    pub fn client_no_cache(mut self, effect: ClientNoCache) -> Self {
        self.client_no_cache = effect;
        self
    }

    /// Sets for how long, in all, a request waits for the responses to other requests before it goes to the origin
    /// itself; by default, the store's `compute_wait`. A request that takes twice as long as the last one for its URL,
    /// but at least a second, or five seconds, delays no other for longer.
    pub fn collapse_wait(mut self, wait: Duration) -> Self {
        self.collapse_wait = Some(wait);
        self
    }

    /// Sets the size of the largest body that is stored, in bytes; by default, a sixteenth of the
    /// store.
    pub fn largest_body(mut self, bytes: u64) -> Self {
        self.largest_body = Some(bytes);
        self
    }

    /// Builds the HTTP cache with these settings.
    pub fn build(self) -> HttpCache {
        let storage = Storage::new(&self.cache, self.store_limit, self.rules.clone());
        let compute_wait = self.cache.store().compute_wait();
        let inner = Inner {
            flights: Arc::default(),
            searches: Searches::default(),
            ahead: Arc::default(),
            rules: self.rules,
            partition: self.partition,
            clock: self.clock,
            collapse: self.collapse,
            client_no_cache: self.client_no_cache,
            collapse_wait: self.collapse_wait.unwrap_or(compute_wait),
            largest_body: self.largest_body.unwrap_or_else(|| storage.largest_body()),
            level_names: storage.level_names(),
            storage,
        };
        HttpCache { inner: Arc::new(inner) }
    }
}

impl HttpCache {
    /// Creates a builder of an HTTP cache that keeps responses in the given store.
    pub fn builder(cache: Cache) -> Builder {
        Builder {
            cache,
            rules: Rules::shared(),
            partition: None,
            clock: Arc::new(SystemClock::new()),
            store_limit: STORE_LIMIT,
            collapse: Collapse::default(),
            client_no_cache: ClientNoCache::default(),
            collapse_wait: None,
            largest_body: None,
        }
    }

    /// Answers a request from the cache, or forwards it to the origin. The URI of the request has
    /// to be absolute; a request with another one is forwarded.
    ///
    /// # Errors
    ///
    /// Those of the origin, where no stored response may be served in the place of its own.
    pub async fn answer(
        &self,
        origin: impl Origin,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        self.try_answer(origin, request).await.map_err(|failed| failed.error)
    }

    /// Answers a request like [`answer`](Self::answer), and in case of failure also returns why the
    /// request was forwarded to the origin.
    pub(crate) async fn try_answer(
        &self,
        origin: impl Origin,
        request: Request<Body>,
    ) -> Result<Response<Body>, Failed> {
        let target = match Target::of(request.uri()) {
            Ok(target) => target,
            Err(error) => {
                if is_safe_and_only_if_cached(&request) {
                    return Ok(gateway_timeout());
                }
                return Box::pin(self.pass(origin, request, error.to_string())).await;
            }
        };
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        if !is_read {
            if is_safe_and_only_if_cached(&request) {
                return Ok(gateway_timeout());
            }
            // Hits are many: what others need lies on the heap, and not in the way.
            return Box::pin(self.send_and_invalidate(origin, request, &target)).await;
        }
        let asks_origin = [IF_MATCH, IF_UNMODIFIED_SINCE]
            .iter()
            .any(|condition| request.headers().contains_key(condition));
        if asks_origin || !request.body().is_end_stream() {
            if is_safe_and_only_if_cached(&request) {
                return Ok(gateway_timeout());
            }
            let reason = "the request has If-Match, If-Unmodified-Since or a body";
            return Box::pin(self.pass(origin, request, reason.into())).await;
        }
        let (parts, _empty) = request.into_parts();
        let name = match parts.extensions.get::<CacheKey>() {
            None => self.named(&target),
            // No target begins so.
            Some(CacheKey(key)) => self.partitioned(&format!("key:{key}")),
        };
        self.read(origin, parts, name).await
    }

    /// Returns the name of a target's entry, with the user's where it is one user's cache.
    fn name(&self, target: &Target) -> Bytes {
        self.partitioned(target.as_str())
    }

    /// Returns a target, or the begin of one, with the user's name before it where it is one user's
    /// cache.
    fn partitioned(&self, target: &str) -> Bytes {
        match &self.inner.partition {
            None => target.to_owned().into(),
            // No target has a space. The length tells users apart of whom one is called as the other begins.
            Some(user) => format!("{} {user} {target}", user.len()).into(),
        }
    }

    fn now(&self) -> SystemTime {
        self.inner.clock.wall()
    }

    /// Sends a request that no stored response may answer, for this reason.
    async fn pass(
        &self,
        origin: impl Origin,
        request: Request<Body>,
        reason: String,
    ) -> Result<Response<Body>, Failed> {
        let why = Forwarded::Bypass;
        let mut response = origin.send(request).await.map_err(Failed::of(why))?;
        tell(&mut response, Status { detail: Some(reason), ..Status::forwarded(why) });
        Ok(response)
    }

    /// Returns the counts (such as hits and misses) of the store below the HTTP cache in Prometheus' text format;
    /// `None` if the store cannot report them.
    pub async fn prometheus(&self) -> Option<String> {
        self.inner.storage.prometheus().await
    }

    /// Returns the counts of store calls that failed, were too slow, or were skipped.
    pub fn store_troubles(&self) -> StoreTroubles {
        self.inner.storage.troubles()
    }
}

/// Adds the `Cache-Status` field of this cache, with the origin's status code, to a response that came from the origin.
pub(crate) fn tell(response: &mut Response<Body>, mut status: Status) {
    if status.forwarded.is_some() && status.origin_status.is_none() {
        status.origin_status = Some(response.status().as_u16());
    }
    attach(response, status);
}

/// Adds a `Cache-Status` to the header fields and the extensions of a response.
pub(crate) fn attach(response: &mut Response<Body>, status: Status) {
    status.append_to(response.headers_mut());
    response.extensions_mut().insert(status);
}

/// Whether a request that no stored response answers may not go to the origin. One of an unsafe method
/// has to (RFC 9111, section 4), whatever it says.
fn is_safe_and_only_if_cached(request: &Request<Body>) -> bool {
    request.method().is_safe() && RequestDirectives::read(request.headers()).only_if_cached
}

/// Returns the response to a request that allows none but a stored one.
fn gateway_timeout() -> Response<Body> {
    let text = "no stored response may answer this request, and it allows no other\n";
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
    attach(&mut response, Status::refused("only-if-cached"));
    response
}
