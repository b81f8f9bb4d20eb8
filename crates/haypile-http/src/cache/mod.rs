//! An HTTP cache in front of anything that answers requests.

mod ahead;
mod body;
mod change;
mod fetch;
mod fill;
mod flights;
mod followed_body;
mod origin;
mod purge;
pub(crate) mod range;
mod rescue;
mod serve;
mod status;
mod stored_body;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use haypile::{Cache, Clock, SystemClock};
use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{Method, Request, Response, StatusCode, request};
use http_body::Body as _;
use tokio::time::Instant;

#[cfg(feature = "proxy")]
pub(crate) use body::causes;
pub use body::{Body, BodyError, BoxError};
pub use origin::{CloseDelimited, FollowedRedirect, Origin, ServiceOrigin};
pub use status::{Forwarded, Status};

pub use purge::{Purge, PurgeError};

use crate::semantics::{Assessment, RequestDirectives, Reuse, Rules, Target};
use crate::storage::{Entry, Read, Storage, StoreTroubles, StoredResponse};
use ahead::Ahead;
use fetch::{Fetch, Stale};
use flights::{Boarding, Coming, Flights, Leader, Progress};
use followed_body::followed_body;
use rescue::Rescue;

/// The longest time that a call of a store delays a response, unless it is set.
const STORE_LIMIT: Duration = Duration::from_millis(250);

/// An HTTP cache, which keeps responses in any cache of Haypile.
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
    /// Memory for the responses on their way.
    ahead: Arc<Ahead>,
    rules: Rules,
    /// The user of a private cache.
    partition: Option<String>,
    clock: Arc<dyn Clock>,
    collapse_wait: Duration,
    largest_body: u64,
    /// Those of the store, the fastest first; none if it has only one level.
    level_names: Vec<Arc<str>>,
}

/// A stored response that answers a request.
enum Selected {
    /// The one at this place of its entry.
    At(usize, Assessment),
    /// A part of one that lacks what the request asks for. It is of no use, and need not be
    /// revalidated either.
    Lacking,
}

/// The outcome of asking whether another request has the same response on its way.
enum Joined {
    /// None has. This one tells those that come.
    Lead(Leader),
    /// Its response is stored now.
    LookAgain,
    /// This is its response.
    Answered(Response<Body>),
    /// Its response is for nobody else.
    Alone,
}

/// An origin's failure that no stored response covers.
pub(crate) struct Failed {
    /// Why the request went there.
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

/// Sets up an [`HttpCache`].
#[derive(Debug)]
#[must_use]
pub struct Builder {
    cache: Cache,
    rules: Rules,
    partition: Option<String>,
    clock: Arc<dyn Clock>,
    store_limit: Duration,
    collapse_wait: Option<Duration>,
    largest_body: Option<u64>,
}

impl Builder {
    /// Sets the rules; those of a shared cache otherwise.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Makes it the cache of one user, under the rules of private caches. The name is part of every
    /// key, so that users who share a store never get each other's responses; it is stored as it is.
    pub fn private(mut self, user: impl Into<String>) -> Self {
        self.rules = Rules::private();
        self.partition = Some(user.into());
        self
    }

    /// Sets the clock; that of the system otherwise.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets for how long a call of the store may delay a response, 250 ms otherwise. One that takes
    /// longer counts as a miss.
    pub fn store_limit(mut self, limit: Duration) -> Self {
        self.store_limit = limit;
        self
    }

    /// Sets for how long requests wait for the response to one of the same target before they go to
    /// the origin themselves; otherwise it is the `compute_wait` of the store.
    pub fn collapse_wait(mut self, wait: Duration) -> Self {
        self.collapse_wait = Some(wait);
        self
    }

    /// Sets the length of the largest body that is stored; a sixteenth of the store otherwise.
    pub fn largest_body(mut self, bytes: u64) -> Self {
        self.largest_body = Some(bytes);
        self
    }

    /// Returns the cache.
    pub fn build(self) -> HttpCache {
        let storage = Storage::new(&self.cache, self.store_limit);
        let compute_wait = self.cache.store().compute_wait();
        let inner = Inner {
            flights: Arc::default(),
            ahead: Arc::default(),
            rules: self.rules,
            partition: self.partition,
            clock: self.clock,
            collapse_wait: self.collapse_wait.unwrap_or(compute_wait),
            largest_body: self.largest_body.unwrap_or_else(|| storage.largest_body()),
            level_names: storage.level_names(),
            storage,
        };
        HttpCache { inner: Arc::new(inner) }
    }
}

impl HttpCache {
    /// Begins to set up a cache that keeps responses in this one.
    pub fn builder(cache: Cache) -> Builder {
        Builder {
            cache,
            rules: Rules::shared(),
            partition: None,
            clock: Arc::new(SystemClock::new()),
            store_limit: STORE_LIMIT,
            collapse_wait: None,
            largest_body: None,
        }
    }

    /// Answers a request from the cache, or has the origin answer it. The URI of the request has to
    /// be absolute; with another it goes to the origin.
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

    /// The same, and of a failure why the request went to the origin.
    pub(crate) async fn try_answer(
        &self,
        origin: impl Origin,
        request: Request<Body>,
    ) -> Result<Response<Body>, Failed> {
        let Ok(target) = Target::of(request.uri()) else {
            if is_safe_and_only_if_cached(&request) {
                return Ok(gateway_timeout());
            }
            return Box::pin(self.pass(origin, request, Forwarded::Bypass)).await;
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
            return Box::pin(self.pass(origin, request, Forwarded::Bypass)).await;
        }
        let (parts, _empty) = request.into_parts();
        self.read(origin, parts, self.name(&target)).await
    }

    /// The name of a target's entry, with the user's where it is one user's cache.
    fn name(&self, target: &Target) -> Bytes {
        self.partitioned(target.as_str())
    }

    /// A target, or the begin of one, with the user's name before it where it is one user's cache.
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

    /// Sends a request whose response is not stored.
    async fn pass(
        &self,
        origin: impl Origin,
        request: Request<Body>,
        why: Forwarded,
    ) -> Result<Response<Body>, Failed> {
        let mut response = origin.send(request).await.map_err(Failed::of(why))?;
        tell(&mut response, Status::forwarded(why));
        Ok(response)
    }

    /// Answers a GET or HEAD.
    async fn read(
        &self,
        origin: impl Origin,
        parts: request::Parts,
        name: Bytes,
    ) -> Result<Response<Body>, Failed> {
        let asked = RequestDirectives::read(&parts.headers);
        let mut may_wait = parts.method == Method::GET
            && !parts.headers.contains_key(RANGE)
            && !(asked.no_cache || asked.no_store);
        let mut has_waited = false;
        loop {
            let mut read = self.inner.storage.read(&name).await;
            let entry = read.as_ref().and_then(|read| read.entry.as_ref());
            let mut why = match entry {
                Some(entry) if !entry.responses.is_empty() => Forwarded::VaryMiss,
                _ => Forwarded::UriMiss,
            };
            let selected = entry.and_then(|entry| self.select(&parts, &asked, entry));
            let mut stale = None;
            match selected {
                None => {}
                Some(Selected::Lacking) => why = Forwarded::Partial,
                Some(Selected::At(place, assessment)) if assessment.reuse.is_served() => {
                    let is_stale = assessment.reuse == Reuse::StaleWhileRevalidate;
                    let revalidated = is_stale.then(|| read.clone());
                    let level = read.as_ref().map_or(0, |read| read.level);
                    // Whoever needs the entry from here on needs its generation only.
                    let stored = responses(&mut read).swap_remove(place);
                    let rescue = Rescue::new(origin.clone(), &parts, &stored);
                    let served = self.serve(&parts, stored, assessment.age, rescue).await;
                    if let Some(mut response) = served {
                        if let Some(mut read) = revalidated {
                            let stored = responses(&mut read)[place].clone();
                            self.revalidate(origin, parts, name, read, stored);
                        }
                        let mut status = self.hit(&assessment, level);
                        status.is_collapsed = has_waited;
                        tell(&mut response, status);
                        return Ok(response);
                    }
                    // A part of it was evicted.
                    why = Forwarded::UriMiss;
                }
                Some(Selected::At(place, assessment)) => {
                    why = if assessment.is_refused_by_request {
                        Forwarded::Request
                    } else {
                        Forwarded::Stale
                    };
                    if let Reuse::Revalidate { may_be_served_on_error } = assessment.reuse {
                        let response = responses(&mut read)[place].clone();
                        stale = Some(Stale { response, may_be_served_on_error });
                    }
                }
            }
            if asked.only_if_cached {
                return Ok(gateway_timeout());
            }
            let joined = if may_wait {
                self.join(origin.clone(), &parts, &name, why).await
            } else {
                Joined::Alone
            };
            let leader = match joined {
                Joined::Lead(leader) => Some(leader),
                Joined::Alone => None,
                Joined::Answered(response) => return Ok(response),
                Joined::LookAgain => {
                    // Nobody waits twice.
                    (may_wait, has_waited) = (false, true);
                    continue;
                }
            };
            let fetch = Fetch { cache: self.clone(), parts, name, read, stale, why, leader };
            return Box::pin(fetch.start(origin)).await.map_err(Failed::of(why));
        }
    }

    /// Returns the latest of the responses that answer a request, and how it may be used.
    fn select(
        &self,
        parts: &request::Parts,
        asked: &RequestDirectives,
        entry: &Entry,
    ) -> Option<Selected> {
        let now = self.now();
        let assess = |(place, response): (usize, &StoredResponse)| {
            let StoredResponse { head, has_expired, .. } = response;
            let rules = &self.inner.rules;
            let assessment = rules.assess(&parts.headers, asked, head, now, *has_expired)?;
            Some((place, assessment))
        };
        let (place, assessment) = entry.responses.iter().enumerate().find_map(assess)?;
        let has_all = Self::has_asked_part(parts, &entry.responses[place]);
        Some(if has_all { Selected::At(place, assessment) } else { Selected::Lacking })
    }

    /// Waits, for a while, for another request that has the same response on its way.
    async fn join(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        name: &Bytes,
        why: Forwarded,
    ) -> Joined {
        let flights = &self.inner.flights;
        let end = Instant::now() + self.inner.collapse_wait;
        loop {
            let mut progress = match flights.board(name) {
                Boarding::Lead(leader) => return Joined::Lead(leader),
                Boarding::Follow(progress) => progress,
            };
            let has_come = progress.wait_for(|now| !matches!(now, Progress::Waiting));
            let now = tokio::time::timeout_at(end, has_come).await;
            match now.ok().and_then(Result::ok).map(|now| now.clone()) {
                Some(Progress::LookAgain) => return Joined::LookAgain,
                Some(Progress::Coming(coming)) if self.is_current(name, &coming).await => {
                    let followed = self.follow(origin, parts, &coming, why);
                    return followed.map_or(Joined::Alone, Joined::Answered);
                }
                // This request may have come after the change, and must not get what was before it.
                Some(Progress::Coming(_)) => match flights.supersede(name, &progress) {
                    Some(leader) => return Joined::Lead(leader),
                    // Another request was first: this one waits for that.
                    None if Instant::now() < end => {}
                    None => return Joined::Alone,
                },
                _ => return Joined::Alone,
            }
        }
    }

    /// Whether a response that is on its way has not been invalidated, as far as the store says.
    async fn is_current(&self, name: &Bytes, coming: &Coming) -> bool {
        self.inner.storage.is_current(name, coming.begun, &coming.groups).await
    }

    /// Joins a response that another request has caused, if it answers this one.
    fn follow(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        coming: &Coming,
        why: Forwarded,
    ) -> Option<Response<Body>> {
        let reuse = self.inner.rules.reuse(parts, &coming.head, self.now());
        if !reuse.is_served() {
            return None;
        }
        let of = |length| Rescue::of(origin, parts, &coming.head.headers, length);
        let rescue = coming.length.and_then(of);
        let body = followed_body(coming.fill.reader()?, coming.length, rescue);
        let (head, age) = (coming.head.clone(), coming.head.age(self.now()));
        let mut response = Self::response(parts, head, age, coming.length, body);
        let mut status = Status::forwarded(why);
        status.is_collapsed = true;
        tell(&mut response, status);
        Some(response)
    }

    /// Revalidates a stale response that has been served, unless another request does so.
    fn revalidate(
        &self,
        origin: impl Origin,
        mut parts: request::Parts,
        name: Bytes,
        read: Option<Read>,
        response: StoredResponse,
    ) {
        let Boarding::Lead(leader) = self.inner.flights.board(&name) else { return };
        parts.method = Method::GET;
        // It is not this client's any more.
        for name in [RANGE, IF_RANGE, IF_NONE_MATCH, IF_MODIFIED_SINCE] {
            parts.headers.remove(name);
        }
        let stale = Some(Stale { response, may_be_served_on_error: false });
        let (cache, leader, why) = (self.clone(), Some(leader), Forwarded::Stale);
        let fetch = Fetch { cache, parts, name, read, stale, why, leader };
        tokio::spawn(async move {
            // Only the stored response is of use.
            drop(fetch.start(origin).await);
        });
    }

    /// Returns the counts of the store in Prometheus' text format; `None` if it does not say them.
    pub async fn prometheus(&self) -> Option<String> {
        self.inner.storage.prometheus().await
    }

    /// Returns the calls of the store that were of no help so far.
    pub fn store_troubles(&self) -> StoreTroubles {
        self.inner.storage.troubles()
    }

    /// Returns the status of a response from the cache, whose entry this level had.
    fn hit(&self, assessment: &Assessment, level: u8) -> Status {
        let mut status = Status::hit(assessment.lifetime, assessment.age);
        status.level = self.inner.level_names.get(usize::from(level)).cloned();
        status
    }

    fn status_of(&self, stored: &StoredResponse) -> Status {
        let head = &stored.head;
        let lifetime = self.inner.rules.lifetime(head.status, &head.headers, head.received);
        let (lifetime, age) = (lifetime.duration(), head.age(self.now()));
        Status::hit(if stored.has_expired { lifetime.min(age) } else { lifetime }, age)
    }
}

/// Returns the responses of an entry, one of which was selected.
fn responses(read: &mut Option<Read>) -> &mut Vec<StoredResponse> {
    let entry = read.as_mut().and_then(|read| read.entry.as_mut());
    &mut entry.expect("a response of it was selected").responses
}

/// Adds what the cache did to a response of an origin.
pub(crate) fn tell(response: &mut Response<Body>, mut status: Status) {
    if status.forwarded.is_some() && status.origin_status.is_none() {
        status.origin_status = Some(response.status().as_u16());
    }
    attach(response, status);
}

/// Puts a status into the fields and the extensions of a response.
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
