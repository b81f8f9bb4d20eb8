//! Answers to GET and HEAD.

use bytes::Bytes;
use http::{Method, Request, Response, request};

use super::crowd::{ClientNoCache, Joined, Waiting, without_reload};
use super::fetch::{FAR_PART, Fetch, Stale};
use super::flights::{Boarding, Leader};
use super::rescue::Rescue;
use super::{
    Body, CacheMode, Failed, Forwarded, HttpCache, Origin, Status, attach, gateway_timeout,
    on_heap, tell, whole,
};
use crate::semantics::{Assessment, RequestDirectives, Reuse};
use crate::storage::{Entry, Outcome, Read, StoredResponse};

/// The most often that a request waits for others, and finds that what they have stored is purged.
const MOST_WAITS: u32 = 3;

/// The stored response that answers a request, with the decision on its use, such as serving or
/// revalidating it.
pub(super) enum Selected {
    /// The response at this index of its entry.
    At(usize, Assessment),
    /// A stored part of a response that lacks the requested part; it is of no use, and need not be
    /// revalidated either.
    Lacking,
}

/// The wishes of a request, as the cache heeds them.
struct Asking {
    directives: RequestDirectives,
    /// The ticket that orders requests, if the response has to be newer than this request.
    ticket: Option<u64>,
    /// The number of times that it has waited for other requests.
    waits: u32,
    /// The generation of the entry before it waited last; `None` if there was no entry.
    generation: Option<u64>,
}

/// The outcome of a look at the store.
enum Looked {
    Served(Response<Body>),
    Missing(Box<Missing>),
}

/// The findings of a request that no stored response answers.
struct Missing {
    /// The entry; `None` if the store does not answer.
    read: Option<Read>,
    /// The response to revalidate.
    stale: Option<Stale>,
    why: Forwarded,
}

impl Asking {
    /// Goes on with what it waited for, whose entry had this generation before.
    fn has_waited(&mut self, generation: Option<u64>) {
        self.waits += 1;
        self.generation = generation;
        if self.ticket.take().is_some() {
            self.directives = without_reload(&self.directives);
        }
    }
}

impl Missing {
    fn entry(&self) -> Option<&Entry> {
        self.read.as_ref()?.entry.as_deref()
    }

    fn generation(&self) -> Option<u64> {
        self.entry().map(|entry| entry.generation)
    }

    /// Returns the outcome of the last request, if its response is not stored.
    fn outcome(&self) -> Option<Outcome> {
        self.read.as_ref()?.outcome()
    }
}

impl HttpCache {
    /// Answers a GET or HEAD request from the store or from the origin.
    pub(super) async fn read(
        &self,
        origin: impl Origin,
        parts: request::Parts,
        name: Bytes,
    ) -> Result<Response<Body>, Failed> {
        let mut asking = self.asking(&parts);
        loop {
            let missing = match self.look(origin.clone(), &parts, &name, &asking).await {
                Looked::Served(response) => {
                    self.learn(&parts, &name, response.headers());
                    return Ok(response);
                }
                Looked::Missing(missing) => *missing,
            };
            if asking.directives.only_if_cached {
                return Ok(gateway_timeout());
            }
            let mut leader = None;
            // Hits are many: what others need lies on the heap, and not in the way.
            match on_heap(|| self.wait(origin.clone(), &parts, &name, &asking, &missing)).await {
                Joined::Lead(first) => leader = Some(first),
                Joined::Alone => {}
                Joined::Answered(response) => return Ok(response),
                Joined::Unanswered(error) => return Err(Failed::of(missing.why)(error.into())),
                Joined::Part => {
                    let request = Request::from_parts(parts, Body::empty());
                    return on_heap(|| self.pass(origin, request, FAR_PART.into())).await;
                }
                Joined::LookAgain => {
                    asking.has_waited(missing.generation());
                    continue;
                }
                Joined::Stale => {
                    let served = Box::pin(self.serve_at_once(&parts, &missing)).await;
                    if let Some(response) = served {
                        return Ok(response);
                    }
                }
            }
            let why = missing.why;
            let fetch = self.fetch(parts, asking.directives, name, missing, leader);
            return on_heap(|| fetch.start(origin)).await.map_err(Failed::of(why));
        }
    }

    /// Looks for a stored response that may be served.
    async fn look(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        name: &Bytes,
        asking: &Asking,
    ) -> Looked {
        let mut read = self.inner.storage.read(name, &parts.headers).await;
        let entry = read.as_ref().and_then(|read| read.entry.as_deref());
        let mut why = match entry {
            Some(entry) if !entry.is_empty() => Forwarded::VaryMiss,
            _ => Forwarded::UriMiss,
        };
        let mut stale = None;
        match entry.and_then(|entry| self.select(parts, &asking.directives, entry)) {
            None => {}
            Some(Selected::Lacking) => why = Forwarded::Partial,
            Some(Selected::At(place, assessment)) if assessment.reuse.is_served() => {
                let is_stale = assessment.reuse == Reuse::StaleWhileRevalidate;
                let is_due = is_stale && self.is_due(read.as_ref());
                let revalidated = is_due.then(|| (origin.clone(), read.clone()));
                let level = read.as_ref().map_or(0, |read| read.level);
                if let Some(read) = &read
                    && let Some(noted) = read.with_use(&responses_of(read)[place])
                {
                    Box::pin(self.inner.storage.write(read, &noted)).await;
                }
                // Whoever needs the entry from here on needs its generation only.
                let stored = responses(&mut read).swap_remove(place);
                let rescue = Rescue::new(origin, parts, &stored);
                let served = self.serve(parts, stored, assessment.age, rescue).await;
                if let Some(mut response) = served {
                    if let Some((origin, mut read)) = revalidated {
                        let stored = responses(&mut read)[place].clone();
                        self.revalidate(origin, parts, name, read, stored);
                    }
                    let mut status = self.hit(&assessment, level);
                    status.is_collapsed = asking.waits > 0;
                    tell(&mut response, status);
                    return Looked::Served(response);
                }
                // A part of it was evicted.
                why = Forwarded::UriMiss;
            }
            Some(Selected::At(place, assessment)) => {
                let is_refused = assessment.is_refused_by_request;
                why = if is_refused { Forwarded::Request } else { Forwarded::Stale };
                if let Reuse::Revalidate { may_be_served_on_error } = assessment.reuse {
                    let response = responses(&mut read)[place].clone();
                    stale = Some(Stale { response, may_be_served_on_error });
                }
                let missing = Missing { read, stale, why };
                // The origin failed the last time: nobody waits to see it fail again.
                if missing.outcome().is_some_and(|last| last.is_failing(self.now()))
                    && !is_refused
                    && let Some(response) = Box::pin(self.serve_at_once(parts, &missing)).await
                {
                    if self.is_due(missing.read.as_ref())
                        && let Some(Stale { response, .. }) = missing.stale
                    {
                        self.revalidate(origin, parts, name, missing.read, response);
                    }
                    return Looked::Served(response);
                }
                return Looked::Missing(Box::new(missing));
            }
        }
        Looked::Missing(Box::new(Missing { read, stale, why }))
    }

    /// Waits for another request, where a request may.
    async fn wait(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        name: &Bytes,
        asking: &Asking,
        missing: &Missing,
    ) -> Joined {
        let (asked, ticket) = (&asking.directives, asking.ticket);
        let entry = missing.entry();
        // Nobody waits twice for the same: what was purged since is another.
        let has_waited = asking.waits == MOST_WAITS
            || (asking.waits > 0 && asking.generation == missing.generation());
        if has_waited
            || !self.may_wait(parts, asked, ticket.is_some(), (entry, missing.stale.is_some()))
        {
            return Joined::Alone;
        }
        // Whoever reloads a page wants what the origin has.
        let may_be_stale = ticket.is_none()
            && missing.stale.as_ref().is_some_and(|stale| stale.may_be_served_on_error);
        let waiting = Waiting {
            parts,
            asked,
            key: entry
                .and_then(|entry| {
                    let selection = self.inner.rules.selection();
                    entry.variants.latest_name(selection, name, &parts.headers)
                })
                .unwrap_or_else(|| name.clone()),
            why: missing.why,
            patience: self.patience(entry),
            has_stale: may_be_stale,
            is_failing: missing.outcome().is_some_and(|last| last.is_failing(self.now())),
            ticket,
        };
        self.join(origin, name, waiting).await
    }

    /// Returns the request to the origin for what is missing.
    fn fetch(
        &self,
        parts: request::Parts,
        directives: RequestDirectives,
        name: Bytes,
        missing: Missing,
        leader: Option<Leader>,
    ) -> Fetch {
        // Where it is known to be of no use to others, it need not be whole.
        let is_alone = missing.outcome().is_some_and(|last| last.is_alone(self.now()));
        let asks_for_all = missing.stale.is_none()
            && parts.method == Method::GET
            && !directives.no_store
            && !is_alone
            && whole::asks_for_less(&parts.headers);
        let patience = self.patience(missing.entry());
        let (cache, Missing { read, stale, why }) = (self.clone(), missing);
        Fetch { cache, parts, directives, name, read, stale, why, leader, patience, asks_for_all }
    }

    /// Whether the origin may be asked again, after it failed.
    fn is_due(&self, read: Option<&Read>) -> bool {
        read.and_then(Read::outcome).is_none_or(|last| !last.spares_origin(self.now()))
    }

    /// Returns what a request asks for.
    fn asking(&self, parts: &request::Parts) -> Asking {
        let mut directives = RequestDirectives::read(&parts.headers);
        if let Some(mode) = parts.extensions.get::<CacheMode>() {
            mode.apply(&mut directives);
        }
        let is_zero = directives.max_age.is_some_and(|longest| longest.is_zero());
        let mut ticket = None;
        if directives.no_cache || is_zero {
            match self.inner.client_no_cache {
                ClientNoCache::Ignore => directives = without_reload(&directives),
                _ => ticket = Some(self.inner.flights.ticket()),
            }
        }
        Asking { directives, ticket, waits: 0, generation: None }
    }

    /// Selects the latest of the stored responses that answer a request, and decides how it may be
    /// used.
    pub(super) fn select(
        &self,
        parts: &request::Parts,
        asked: &RequestDirectives,
        entry: &Entry,
    ) -> Option<Selected> {
        let now = self.now();
        let assess = |(place, response): (usize, &StoredResponse)| {
            let StoredResponse { head, has_expired, terms, .. } = response;
            let rules = &self.inner.rules;
            let terms = terms.or_read(rules, head);
            let assessment =
                rules.assess(&parts.headers, asked, (head, &terms), now, *has_expired)?;
            Some((place, assessment))
        };
        let (place, assessment) = entry.responses.iter().enumerate().find_map(assess)?;
        let has_all = Self::has_asked_part(parts, &entry.responses[place]);
        Some(if has_all { Selected::At(place, assessment) } else { Selected::Lacking })
    }

    /// Serves a stale response without waiting for the origin, where that is permitted.
    async fn serve_at_once(
        &self,
        parts: &request::Parts,
        missing: &Missing,
    ) -> Option<Response<Body>> {
        let detail = Some("the origin fails, or takes long".into());
        let status = Status { detail, ..Status::default() };
        self.serve_stale(parts, missing.stale.as_ref(), status).await
    }

    /// Serves a stale stored response instead of the origin's, if there is one and that is
    /// permitted. `status` becomes its `Cache-Status`.
    pub(super) async fn serve_stale(
        &self,
        parts: &request::Parts,
        stale: Option<&Stale>,
        status: Status,
    ) -> Option<Response<Body>> {
        let stale = &stale.filter(|stale| stale.may_be_served_on_error)?.response;
        let age = stale.head.age(self.now());
        let mut response = self.serve(parts, stale.clone(), age, None).await?;
        attach(&mut response, Status { ttl: self.status_of(stale).ttl, ..status });
        Some(response)
    }

    /// Revalidates a stale response that has been served, unless another request does so.
    fn revalidate(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        name: &Bytes,
        read: Option<Read>,
        response: StoredResponse,
    ) {
        let key = self.variant_key(name, &parts.headers, &response.head.headers);
        let key = key.unwrap_or_else(|| name.clone());
        let Boarding::Lead(leader) = self.inner.flights.board(&key) else { return };
        let mut parts = parts.clone();
        parts.method = Method::GET;
        // It is not this client's any more.
        whole::widen(&mut parts.headers);
        let directives = RequestDirectives::read(&parts.headers);
        let stale = Some(Stale { response, may_be_served_on_error: false });
        let missing = Missing { read, stale, why: Forwarded::Stale };
        let fetch = self.fetch(parts, directives, name.clone(), missing, Some(leader));
        tokio::spawn(on_heap(|| async move {
            // Only the stored response is of use.
            drop(fetch.start(origin).await);
        }));
    }

    /// Returns the `Cache-Status` of a response that came from a level of the store, by the number
    /// `level` (0 is the fastest).
    pub(super) fn hit(&self, assessment: &Assessment, level: u8) -> Status {
        let mut status = Status::hit(assessment.lifetime, assessment.age);
        status.level = self.inner.level_names.get(usize::from(level)).cloned();
        status
    }

    pub(super) fn status_of(&self, stored: &StoredResponse) -> Status {
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

/// Returns the responses of an entry, to read them.
fn responses_of(read: &Read) -> &[StoredResponse] {
    read.entry.as_deref().map(|entry| &entry.responses[..]).unwrap_or_default()
}
