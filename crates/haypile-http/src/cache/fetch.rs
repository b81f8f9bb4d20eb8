//! Requests to the origin, and the storing of its responses.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use haypile::{OwnedClaim, TriedClaim};
use http::header::{DATE, ETAG, HeaderValue, TRAILER, VARY};
use http::{HeaderMap, Method, Request, Response, StatusCode, request, response};
use http_body::Body as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::fill::Fill;
use super::flights::{Coming, Leader, Progress};
use super::followed_body::{Refetch, followed_body};
use super::origin::FollowedRedirect;
use super::read::Selected;
use super::refusal::Refusal;
use super::rescue::Rescue;
use super::{
    Body, BoxError, CacheTtl, Forwarded, HttpCache, Origin, Status, attach, causes, on_heap, tell,
    whole,
};
use crate::semantics::part::whole_of;
use crate::semantics::validation::{
    add_validators, freshen, freshened, head_freshens, is_about_target, is_failure,
};
use crate::semantics::{
    KnownTerms, RequestDirectives, Reuse, Stored, Variant, remove_hop_by_hop, storable_fields,
};
use crate::semantics::{OWN_LIFETIME, set_lifetime};
use crate::storage::{
    Begun, Entry, Group, MOST_GROUPS, Outcome, OutcomeKind, Part, Read, Stamp, StoredBody,
    StoredResponse, room_for_body,
};

/// The number of times that a write is tried while others write first.
const WRITE_ATTEMPTS: u32 = 8;
/// The most bytes by which an entry with a body, or a first part, in chunks is longer than with an empty
/// one.
const MOST_REFERENCE_BYTES: usize = 64;
/// The times after which a waiting request looks again whether another process is done.
const SHORTEST_NAP: Duration = Duration::from_millis(1);
const LONGEST_NAP: Duration = Duration::from_millis(20);

/// The reason why a request for a part of a response is passed on, the whole of which is on its way.
pub(super) const FAR_PART: &str = "the part is far from the begin of the response";

/// A request that goes to the origin, with the cached data about its URL.
pub(super) struct Fetch {
    pub(super) cache: HttpCache,
    pub(super) parts: request::Parts,
    /// The cache directives of the request that the cache obeys.
    pub(super) directives: RequestDirectives,
    pub(super) name: Bytes,
    /// The stored entry of the URL as it was read before the request was sent to the origin; `None` if the store did
    /// not answer.
    pub(super) read: Option<Read>,
    /// The stored response to revalidate at the origin, if there is one.
    pub(super) stale: Option<Stale>,
    pub(super) why: Forwarded,
    /// The guard that informs other requests which wait for the response to this one.
    pub(super) leader: Option<Leader>,
    /// The longest time for which this request waits for a request of another process for the same response.
    pub(super) patience: Duration,
    /// Whether the origin is asked for the whole response, although the client asks for less.
    pub(super) asks_for_all: bool,
}

/// A stored response that the origin has to revalidate before it is used.
pub(super) struct Stale {
    pub(super) response: StoredResponse,
    /// Whether the stored response may be served if the origin fails.
    pub(super) may_be_served_on_error: bool,
}

type Answered = Result<Response<Body>, BoxError>;

/// The outcome of asking whether another process has the same request on its way.
enum ClaimedName {
    /// This one goes to the origin. Others wait for it, if it has the claim.
    Go(Option<OwnedClaim>),
    /// The response is there.
    Answered(Response<Body>),
}

/// A response from the origin, with the times at which its request was sent and at which the response came.
pub(super) struct Received {
    pub(super) response: response::Parts,
    pub(super) body: Body,
    pub(super) requested: SystemTime,
    #[expect(clippy::struct_field_names, reason = "the standard's word, as in Stored")]
    pub(super) received: SystemTime,
}

impl Fetch {
    /// Sends the client's request to the origin, and returns the response. If the client disconnects, the response is
    /// still stored, and other requests that wait for it still get it.
    pub(super) async fn start(self, origin: impl Origin) -> Answered {
        let (answer, answered) = oneshot::channel();
        if self.parts.method == Method::GET {
            tokio::spawn(on_heap(|| self.run(origin, answer)));
        } else if self.leader.is_none() {
            return self.head(origin).await;
        } else {
            let head = async move { drop(answer.send(self.head(origin).await)) };
            tokio::spawn(on_heap(|| head));
        }
        answered.await.unwrap_or_else(|_| Err("the request was given up".into()))
    }

    /// Returns a response from the origin to the client, and stores it if that is permitted.
    pub(super) async fn keep(
        self,
        origin: impl Origin,
        received: Received,
        begun: Option<Begun>,
    ) -> Answered {
        let (answer, answered) = oneshot::channel();
        tokio::spawn(on_heap(|| self.receive(origin, answer, received, begun)));
        answered.await.unwrap_or_else(|_| Err("the request was given up".into()))
    }

    /// Answers a HEAD: its response is not stored, but tells of the stored one.
    async fn head(mut self, origin: impl Origin) -> Answered {
        let request = Request::from_parts(self.parts.clone(), Body::empty());
        // Without a stored response, there is nothing to tell others.
        let begun = if self.stale.is_some() { self.begin().await } else { None };
        let sent = self.cache.now();
        let (mut head, body) = match origin.send(request).await {
            Ok(response) => response.into_parts(),
            Err(error) => {
                self.origin_failed(begun, sent, unanswered(&error)).await;
                return self.unless_stale(error).await;
            }
        };
        if is_failure(head.status) {
            self.origin_failed(begun, sent, Progress::Failed).await;
        }
        if let Some(response) = self.serve_instead_of(head.status).await {
            return Ok(response);
        }
        add_date(&mut head.headers, self.cache.now());
        let groups = self.learn_from_head(&head).await;
        if let Some(leader) = &self.leader {
            leader.tell(match (begun, groups) {
                (Some(begun), Some(groups)) => Progress::Validated(Some(Arc::new((begun, groups)))),
                _ => Progress::Own,
            });
        }
        let mut response = Response::from_parts(head, body);
        tell(&mut response, Status::forwarded(self.why));
        Ok(response)
    }

    /// Freshens the stored response by that to a HEAD, and returns its groups; forgets it if that is about another.
    async fn learn_from_head(&self, news: &response::Parts) -> Option<Vec<Group>> {
        let (read, stale) = (self.read.as_ref()?, &self.stale.as_ref()?.response);
        let is_elsewhere = news.extensions.get::<FollowedRedirect>().is_some();
        if news.status != stale.head.status || is_elsewhere {
            return None;
        }
        let mut entry = read.entry.clone().expect("it has the response");
        let place = entry.responses.iter().position(|stored| stored == stale)?;
        entry.outcome = None;
        if !head_freshens(&news.headers, &stale.head) {
            entry.responses.remove(place);
            self.cache.inner.storage.write(read, &entry).await;
            return None;
        }
        let now = self.cache.now();
        let mut fresh = stale.head.clone();
        freshen(&self.cache.inner.rules, &mut fresh.headers, &news.headers);
        (fresh.requested, fresh.received) = (now, now);
        // It is stored as if a GET had brought it.
        let mut asked = self.parts.clone();
        asked.method = Method::GET;
        let may_store =
            self.cache.may_store(&asked, &fresh) && same_vary(&fresh.headers, &stale.head.headers);
        if !may_store {
            return None;
        }
        let body = stale.body.clone();
        let fresh = self.cache.stored(&self.name, fresh, body, stale.number);
        // The body is as old as it was, and a soft purge is about that.
        let fresh = StoredResponse { has_expired: stale.has_expired, ..fresh };
        let groups = fresh.groups.clone();
        if !self.cache.inner.storage.join_groups(&fresh).await {
            return None;
        }
        entry.responses[place] = fresh;
        self.cache.inner.storage.write(read, &entry).await.then_some(groups)
    }

    /// Waits, for a while, for another process that has the same request on its way.
    async fn claim(&mut self) -> ClaimedName {
        if self.leader.as_ref().is_some_and(|leader| leader.has_waited)
            && let Some(response) = self.read_again().await
        {
            return ClaimedName::Answered(response);
        }
        // Others go to the origin whatever other processes do.
        let is_first = |leader: &&Leader| !leader.is_second && !self.directives.no_cache;
        let Some(leader) = self.leader.as_ref().filter(is_first) else {
            return ClaimedName::Go(None);
        };
        let claimed = leader.name().clone();
        let cache = self.cache.clone();
        let storage = &cache.inner.storage;
        let begun = Instant::now();
        let mut nap = SHORTEST_NAP;
        let mut has_waited = false;
        let claim = loop {
            match storage.try_claim(&claimed).await {
                TriedClaim::Held(claim) => break Some(claim),
                TriedClaim::Taken(_) if begun.elapsed() < self.patience => {
                    has_waited = true;
                    sleep(nap).await;
                    nap = LONGEST_NAP.min(nap * 2);
                }
                _ => break None,
            }
        };
        if claim.is_none() && !has_waited {
            return ClaimedName::Go(None);
        }
        // The last holder may have stored the response.
        if let Some(response) = self.read_again().await {
            return ClaimedName::Answered(response);
        }
        // The response answered none of the waiting processes: they all go to the origin at once.
        ClaimedName::Go(claim.filter(|_| !has_waited))
    }

    /// Reads the entry again after a wait, in which it may have been purged, and returns the response if it is there now.
    async fn read_again(&mut self) -> Option<Response<Body>> {
        self.read = self.cache.inner.storage.read(&self.name, &self.parts.headers).await;
        let response = self.look_again().await;
        if response.is_none() {
            self.forget_what_is_gone();
        }
        response
    }

    /// Revalidates nothing that was invalidated since it was read.
    fn forget_what_is_gone(&mut self) {
        // A store that does not answer keeps nothing that comes either.
        let Some(read) = &self.read else { return };
        let is_there = |stale: &Stale| {
            let is_it = |other: &StoredResponse| {
                other.head == stale.response.head && other.body == stale.response.body
            };
            read.entry.as_deref().is_some_and(|entry| entry.responses.iter().any(is_it))
        };
        if !self.stale.as_ref().is_some_and(is_there) {
            self.stale = None;
        }
    }

    /// Returns the response that another process has stored in the meantime.
    async fn look_again(&self) -> Option<Response<Body>> {
        let read = self.read.as_ref()?;
        let entry = read.entry.as_deref()?;
        let selected = self.cache.select(&self.parts, &self.directives, entry)?;
        let Selected::At(place, assessment) = selected else { return None };
        if !matches!(assessment.reuse, Reuse::Fresh | Reuse::Stale) {
            return None;
        }
        let stored = entry.responses[place].clone();
        let mut response = self.cache.serve(&self.parts, stored, assessment.age, None).await?;
        let mut status = self.cache.hit(&assessment, read.level);
        status.is_collapsed = true;
        tell(&mut response, status);
        Some(response)
    }

    async fn run(mut self, origin: impl Origin, mut answer: oneshot::Sender<Answered>) {
        let _claim = match self.claim().await {
            ClaimedName::Go(claim) => claim,
            ClaimedName::Answered(response) => {
                if let Some(leader) = &self.leader {
                    leader.tell(Progress::Found);
                }
                let _ = answer.send(Ok(response));
                return;
            }
        };
        let mut headers = self.parts.headers.clone();
        let is_conditional = match &self.stale {
            Some(stale) => add_validators(&mut headers, &[&stale.response.head]),
            None => false,
        };
        if self.asks_for_all {
            whole::widen(&mut headers);
        }
        let begun = self.begin().await;
        let sent = self.cache.now();
        let is_for_client_alone = self.leader.is_none()
            && self.last_outcome().is_some_and(|last| last.is_alone(self.cache.now()));
        let received = tokio::select! {
            received = self.send(origin.clone(), headers) => received,
            // Nobody else waits, and nothing would be stored.
            () = answer.closed(), if is_for_client_alone => return,
        };
        let received = match received {
            Ok(received) => received,
            Err(error) => {
                self.origin_failed(begun, sent, unanswered(&error)).await;
                return self.failed(answer, error).await;
            }
        };
        let status = received.response.status;
        if is_conditional && status == StatusCode::NOT_MODIFIED {
            return on_heap(|| self.not_modified(origin, answer, received, begun)).await;
        }
        if let Some(response) = self.serve_instead_of(status).await {
            self.origin_failed(begun, sent, Progress::Failed).await;
            let _ = answer.send(Ok(response));
            return;
        }
        self.receive(origin, answer, received, begun).await;
    }

    async fn send(&self, origin: impl Origin, headers: HeaderMap) -> Result<Received, BoxError> {
        let mut parts = self.parts.clone();
        parts.headers = headers;
        let requested = self.cache.now();
        let response = origin.send(Request::from_parts(parts, Body::empty())).await?;
        let received = self.cache.now();
        let (mut response, body) = response.into_parts();
        let is_elsewhere = response.extensions.get::<FollowedRedirect>().is_some();
        if !is_elsewhere {
            self.cache.heed_clearing(&self.parts.uri, &response).await;
        }
        response.headers.remove(OWN_LIFETIME);
        add_date(&mut response.headers, received);
        Ok(Received { response, body, requested, received })
    }

    /// Returns the outcome of the last request for the URL before this one, if no other request could use its response.
    fn last_outcome(&self) -> Option<Outcome> {
        self.read.as_ref()?.outcome()
    }

    /// Whether the origin was asked for a whole response, or its news of a stale one, whatever part of it or condition
    /// the client had written.
    fn asks_for_more_than_its_client(&self) -> bool {
        self.asks_for_all || self.stale.is_some()
    }

    /// Returns the place from which on the response may be stored; `None` if it may not be.
    async fn begin(&self) -> Option<Begun> {
        if self.directives.no_store {
            return None;
        }
        self.cache.begin(&self.parts, &self.name, self.read.as_ref()).await
    }

    /// Says why a response may not be stored; `None` if it may be.
    async fn refusal(
        &self,
        response: &response::Parts,
        length: Option<u64>,
        received: SystemTime,
    ) -> Option<Refusal> {
        let news = (response.status, &response.headers);
        if !self.cache.learn_anew(&self.parts, &self.name, news).await {
            return Some(Refusal::of_request(
                "not stored: the response's No-Vary-Search is not that of its path",
            ));
        }
        self.cache.refusal(&self.parts, response, length, received)
    }

    /// Takes note that the origin fails, and tells those who wait in which way.
    async fn origin_failed(&mut self, begun: Option<Begun>, sent: SystemTime, how: Progress) {
        self.note(begun, OutcomeKind::Failed, sent).await;
        if let Some(leader) = self.leader.take() {
            leader.tell(how);
        }
    }

    /// Takes note of what a request came to that was sent at this time, and is of no use to others.
    async fn note(&self, begun: Option<Begun>, kind: OutcomeKind, sent: SystemTime) {
        let Some(begun) = begun else { return };
        // Most say what is known.
        if Outcome::after(self.last_outcome(), kind, self.cache.now(), Duration::ZERO).is_some() {
            self.cache.note(&self.name, begun, kind, sent).await;
        }
    }

    /// Forgets the stale response, in whose place the origin has answered with one that is not stored: it would come
    /// back when the origin fails, or be served while it is revalidated.
    async fn forget_stale(&self, begun: Option<Begun>) {
        let (Some(Stale { response: stale, .. }), Some(begun)) = (&self.stale, begun) else {
            return;
        };
        // What another request has brought in the meantime stays.
        let is_it = |other: &StoredResponse| other.head == stale.head && other.body == stale.body;
        let forget = |entry: &mut Entry| entry.responses.retain(|other| !is_it(other));
        self.cache.change(&self.name, Some(&self.parts.headers), begun, forget).await;
    }

    async fn failed(self, answer: oneshot::Sender<Answered>, error: BoxError) {
        let answered = self.unless_stale(error).await;
        let _ = answer.send(answered);
    }

    /// Returns the stale response if it may be served though the origin does not answer, or its error.
    async fn unless_stale(&self, error: BoxError) -> Answered {
        self.serve_stale(None).await.ok_or(error)
    }

    /// Returns the stale response if it may be served in the place of the origin's, which is a failure.
    async fn serve_instead_of(&self, status: StatusCode) -> Option<Response<Body>> {
        if is_failure(status) { self.serve_stale(Some(status)).await } else { None }
    }

    /// Serves the stale response because the origin fails, if that is permitted.
    async fn serve_stale(&self, origin: Option<StatusCode>) -> Option<Response<Body>> {
        let failure = if origin.is_some() { "answers with an error" } else { "does not answer" };
        let status = Status {
            forwarded: Some(self.why),
            origin_status: origin.map(|status| status.as_u16()),
            detail: Some(format!("the origin {failure}")),
            ..Status::default()
        };
        self.cache.serve_stale(&self.parts, self.stale.as_ref(), status).await
    }

    /// The stored response is still the right one.
    async fn not_modified(
        mut self,
        origin: impl Origin,
        answer: oneshot::Sender<Answered>,
        received: Received,
        begun: Option<Begun>,
    ) {
        let Some(stale) = self.stale.take() else { return };
        let Received { response, requested, received, body: _ } = received;
        let is_elsewhere = response.extensions.get::<FollowedRedirect>().is_some();
        let mut news = response.headers;
        if let Some(CacheTtl(lifetime)) = self.parts.extensions.get() {
            set_lifetime(&mut news, *lifetime);
        }
        let freshen = |stored: &StoredResponse| {
            let mut head = stored.head.clone();
            freshen(&self.cache.inner.rules, &mut head.headers, &news);
            (head.requested, head.received) = (requested, received);
            let number = begun.map_or(stored.number, |begun| begun.number);
            self.cache.stored(&self.name, head, stored.body.clone(), number)
        };
        let is_meant = !is_elsewhere && !freshened(&news, &[&stale.response.head]).is_empty();
        let fresh = is_meant.then(|| {
            let mut fresh = freshen(&stale.response);
            if news.contains_key(VARY) {
                let selection = self.cache.inner.rules.selection();
                let (asked, now) = (&self.parts.headers, &fresh.head.headers);
                fresh.head.variant = Variant::selected(selection, asked, now);
            }
            fresh
        });
        let served = match &fresh {
            Some(fresh) => {
                let rescue = Rescue::new(origin.clone(), &self.parts, fresh);
                let age = fresh.head.age(self.cache.now());
                self.cache.serve(&self.parts, fresh.clone(), age, rescue).await
            }
            None => None,
        };
        let (Some(fresh), Some(mut response)) = (fresh, served) else {
            // It is about a response that is not there.
            let received = match self.send(origin.clone(), self.parts.headers.clone()).await {
                Ok(received) => received,
                Err(error) => return self.failed(answer, error).await,
            };
            return self.receive(origin, answer, received, begun).await;
        };
        if let Some(begun) = begun {
            let storage = &self.cache.inner.storage;
            let whole = (fresh.head.status, &fresh.head.headers);
            let may_store = self.cache.learn_anew(&self.parts, &self.name, whole).await
                && self.cache.may_store(&self.parts, &fresh.head)
                && storage.join_groups(&fresh).await;
            let change = |entry: &mut Entry| {
                entry.outcome = None;
                entry.responses.retain(|other| other.head.variant != stale.response.head.variant);
                // The same representation for other requests. It does not say which ones those are
                // if it varies with other fields now.
                for other in &mut entry.responses {
                    if news.contains_key(ETAG)
                        && !freshened(&news, &[&other.head]).is_empty()
                        && (!news.contains_key(VARY) || same_vary(&news, &other.head.headers))
                    {
                        let fresh = freshen(other);
                        if self.cache.may_store(&self.parts, &fresh.head) {
                            *other = fresh;
                        }
                    }
                }
                if may_store && fresh.head.variant.is_some() {
                    entry.insert(fresh.clone());
                }
            };
            self.cache.change(&self.name, Some(&self.parts.headers), begun, change).await;
        }
        if let Some(leader) = &self.leader {
            let of = |begun| Arc::new((begun, fresh.groups.clone()));
            leader.tell(Progress::Validated(begun.map(of)));
        }
        let mut status = Status::forwarded(self.why);
        status.origin_status = Some(StatusCode::NOT_MODIFIED.as_u16());
        tell(&mut response, status);
        let _ = answer.send(Ok(response));
    }

    /// Passes on a response that is not stored, and tells those who wait what it is to them.
    async fn pass_on(
        self,
        origin: impl Origin,
        answer: oneshot::Sender<Answered>,
        Received { response, body, requested, received }: Received,
        begun: Option<Begun>,
        refusal: Refusal,
    ) {
        let has_failed = is_failure(response.status);
        if refusal.ends_stored && is_about_target(response.status) {
            self.forget_stale(begun).await;
        }
        let outcome = if has_failed { Some(OutcomeKind::Failed) } else { refusal.outcome };
        match outcome {
            Some(kind) => self.note(begun, kind, requested).await,
            None => self.cache.inner.storage.settle(&self.name).await,
        }
        let serves_none = match outcome {
            Some(OutcomeKind::Failed) => Progress::Failed,
            Some(OutcomeKind::Alone) => Progress::Alone,
            Some(OutcomeKind::Personal) | None => self.cache.serves_none(&self.parts),
        };
        if let Some(leader) = &self.leader {
            leader.tell(serves_none);
        }
        let mut status = Status::forwarded(self.why);
        status.origin_status = Some(response.status.as_u16());
        status.detail = Some(refusal.reason);
        let length = body.size_hint().exact();
        let head = self
            .asks_for_more_than_its_client()
            .then(|| Stored::new(&self.parts, response.clone(), requested, received));
        let is_far = |whole| whole::asks_for_far_part(&self.parts, whole, length);
        if head.as_ref().is_some_and(is_far) {
            return self.cache.pass_for_part(origin, &self.parts, answer);
        }
        let mut response = Response::from_parts(response, body);
        if let Some(head) = head {
            whole::narrow(&self.parts, &head, length, &mut response);
        }
        attach(&mut response, status);
        let _ = answer.send(Ok(response));
    }

    /// Passes a response on, and stores it if it may be.
    async fn receive(
        self,
        origin: impl Origin,
        answer: oneshot::Sender<Answered>,
        received: Received,
        begun: Option<Begun>,
    ) {
        let Received { mut response, body, requested, received } = received;
        let mut status = Status::forwarded(self.why);
        status.origin_status = Some(response.status.as_u16());
        let length = body.size_hint().exact();
        // A part is stored with the head of the whole.
        let (mut whole, place) = match whole_of(&response) {
            Some((whole, place)) if length == Some(place.range.end - place.range.start) => {
                (whole, Some(place))
            }
            _ => (response.clone(), None),
        };
        if let Some(CacheTtl(lifetime)) = self.parts.extensions.get() {
            set_lifetime(&mut whole.headers, *lifetime);
        }
        let refusal = self.refusal(&whole, length, received).await;
        remove_hop_by_hop(&mut response.headers);
        remove_hop_by_hop(&mut whole.headers);
        let kept = match (refusal, begun) {
            (Some(refusal), _) => Err(refusal),
            (None, None) => Err(Refusal::of_request("not stored: the store does not answer")),
            (None, Some(begun)) => {
                let cache = &self.cache;
                let selection = cache.inner.rules.selection();
                let mut head = Stored::selected(selection, &self.parts, whole, requested, received);
                head.headers = storable_fields(&cache.inner.rules, &head.headers);
                let body = StoredBody::Inline(Bytes::new());
                let mut one = alone(&self.name, cache.stored(&self.name, head, body, begun.number));
                let room = room_for_body(&one).filter(|room| *room >= MOST_REFERENCE_BYTES);
                room.map(|room| (begun, one.responses.swap_remove(0), room))
                    .ok_or(Refusal::of_all("not stored: the response's head is too long"))
            }
        };
        let (begun, with_head, room) = match kept {
            Ok(kept) => kept,
            Err(refusal) => {
                let received = Received { response, body, requested, received };
                return self.pass_on(origin, answer, received, begun, refusal).await;
            }
        };
        let is_narrowed = self.asks_for_more_than_its_client();
        let Self { cache, parts, name, leader, .. } = self;
        let (fill, reader) = Fill::new(cache.inner.storage.clone(), Arc::clone(&cache.inner.ahead));
        let leader = leader.and_then(|leader| {
            // A part is not the whole that others wait for: they do not wait for its end either.
            if place.is_some() {
                leader.tell(cache.serves_none(&parts));
                return None;
            }
            let (head, groups) = (with_head.head.clone(), with_head.groups.clone());
            let coming = Coming { head, fill: Arc::clone(&fill), begun, groups, length };
            leader.tell(Progress::Coming(Arc::new(coming)));
            Some(leader)
        });
        status.is_stored = true;
        if is_narrowed && whole::asks_for_far_part(&parts, &with_head.head, length) {
            drop(reader);
            cache.pass_for_part(origin, &parts, answer);
        } else {
            let head = (with_head.head.status, &with_head.head.headers);
            let refetch = match place {
                // A part has one reader, who loses nothing.
                Some(_) => Refetch::Never,
                None => Refetch::of(origin, &parts, head, length),
            };
            let followed = followed_body(reader, length, refetch);
            // Those who come later do not get them either.
            response.headers.remove(TRAILER);
            let mut response = Response::from_parts(response, followed);
            if is_narrowed {
                whole::narrow(&parts, &with_head.head, length, &mut response);
            }
            attach(&mut response, status);
            let _ = answer.send(Ok(response));
        }
        let is_part = place.is_some();
        let has_room_inline = move |length| !is_part && length <= room;
        let largest = cache.inner.largest_body;
        let (storing, stored_name) = (cache.clone(), name.clone());
        let commit = async move |body: StoredBody| {
            let insert = |entry: &mut Entry| match (&place, &body) {
                (Some(place), StoredBody::Chunks(chunks)) => {
                    let part = Part { begin: place.range.start, chunks: *chunks };
                    entry.insert_part(with_head.clone(), place.whole, part);
                }
                _ => entry.insert(StoredResponse { body: body.clone(), ..with_head.clone() }),
            };
            if storing.inner.storage.join_groups(&with_head).await {
                storing.change(&stored_name, Some(&parts.headers), begun, insert).await;
            }
            // Before the last byte is passed on: who has it finds the response in the store, and not on its way.
            drop(leader);
        };
        fill.run(body, largest, has_room_inline, commit).await;
        if fill.is_given_up() {
            // It was longer than the origin had said, or the store was in trouble.
            cache.note(&name, begun, OutcomeKind::Alone, requested).await;
        }
        cache.inner.storage.settle(&name).await;
    }
}

impl HttpCache {
    /// Sends a client's own request for a part of a response, the whole of which takes longer to come so far.
    fn pass_for_part(
        &self,
        origin: impl Origin,
        parts: &request::Parts,
        answer: oneshot::Sender<Answered>,
    ) {
        let (cache, request) = (self.clone(), Request::from_parts(parts.clone(), Body::empty()));
        tokio::spawn(on_heap(|| async move {
            let passed = cache.pass(origin, request, FAR_PART.into()).await;
            let _ = answer.send(passed.map_err(|failed| failed.error));
        }));
    }

    /// Returns the state of invalidations (the entry's generation, which changes with each, and the number of the last
    /// purge) for a request to the origin that begins now; a response is stored only if both are unchanged. Returns
    /// `None` if the response may not be stored.
    pub(super) async fn begin(
        &self,
        parts: &request::Parts,
        name: &Bytes,
        read: Option<&Read>,
    ) -> Option<Begun> {
        // Of a request that forbids storing, not even its target is.
        if RequestDirectives::read(&parts.headers).no_store {
            return None;
        }
        self.inner.storage.begin(read?, name).await
    }

    /// Whether a stored response with news of a later one may be stored, which this request brought.
    fn may_store(&self, parts: &request::Parts, head: &Stored) -> bool {
        let rules = &self.inner.rules;
        let has_few_groups = rules.groups(&head.headers).len() <= MOST_GROUPS;
        has_few_groups && rules.may_store(parts, &received_parts(head)).is_ok()
    }

    /// Returns a response as it is stored under a name, with the number of the last purge before its
    /// request.
    fn stored(&self, name: &Bytes, head: Stored, body: StoredBody, number: u64) -> StoredResponse {
        let groups = self.groups(name, &self.inner.rules.groups(&head.headers));
        let terms = KnownTerms::default();
        StoredResponse { head, body, number, groups, has_expired: false, terms }
    }

    /// Writes into an entry what a request came to that was sent at this time.
    async fn note(&self, name: &Bytes, begun: Begun, kind: OutcomeKind, sent: SystemTime) {
        let now = self.now();
        let took = now.duration_since(sent).unwrap_or_default();
        let note = |entry: &mut Entry| {
            if let Some(outcome) = Outcome::after(entry.outcome, kind, now, took) {
                entry.outcome = Some(outcome);
            }
        };
        self.change(name, None, begun, note).await;
    }

    /// Changes an entry, with the variants that may answer a request of these fields, unless its responses
    /// were invalidated since its generation was read.
    async fn change(
        &self,
        name: &Bytes,
        request: Option<&HeaderMap>,
        begun: Begun,
        change: impl Fn(&mut Entry),
    ) -> bool {
        let storage = &self.inner.storage;
        for _ in 0..WRITE_ATTEMPTS {
            let read = match request {
                Some(request) => storage.read(name, request).await,
                None => storage.read_own(name).await,
            };
            let Some(read) = read else { return false };
            let is_same = |entry: &&Entry| entry.generation == begun.generation;
            let Some(mut entry) = read.entry.as_deref().filter(is_same).cloned() else {
                return false;
            };
            change(&mut entry);
            if storage.write(&read, &entry).await {
                return true;
            }
        }
        false
    }
}

/// Returns what those who wait are told of a request that got no response.
fn unanswered(error: &BoxError) -> Progress {
    Progress::Unanswered(causes(&**error).into())
}

/// Adds the time at which a response came to one that does not say when it was sent: RFC 9110, section
/// 6.6.1. A stored response that it freshens has another.
fn add_date(headers: &mut HeaderMap, received: SystemTime) {
    if !headers.contains_key(DATE)
        && let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(received))
    {
        headers.insert(DATE, date);
    }
}

/// Returns an entry with one response, of which only the head has come.
fn alone(name: &Bytes, response: StoredResponse) -> Entry {
    let mut entry = Entry::empty(name.clone(), Stamp::default());
    entry.insert(response);
    entry
}

fn same_vary(one: &HeaderMap, other: &HeaderMap) -> bool {
    one.get_all(VARY).iter().eq(other.get_all(VARY))
}

/// Returns the head of a stored response as one that comes.
fn received_parts(head: &Stored) -> response::Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = head.status;
    parts.headers = head.headers.clone();
    parts
}
