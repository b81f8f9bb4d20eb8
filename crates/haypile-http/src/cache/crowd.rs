//! Collapsing of requests: of many requests for the same response at the same time, one goes to the
//! origin, and the others wait for its response, but only where that serves them, and not for long.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, RANGE};
use http::{HeaderMap, Method, Response, request};
use tokio::time::{Instant, timeout_at};

use super::flights::{Boarding, Coming, Followed, Leader, Progress};
use super::followed_body::{Refetch, followed_body};
use super::{Body, Forwarded, HttpCache, Origin, Status, tell, whole};
use crate::semantics::{RequestDirectives, Stored, Terms, Variant};
use crate::storage::{Entry, variant_name};

/// A request that takes this long, or twice as long as the last one if that is less, but at least
/// [`SHORTEST_PATIENCE`], delays no other.
const LONGEST_PATIENCE: Duration = Duration::from_secs(5);
const SHORTEST_PATIENCE: Duration = Duration::from_secs(1);
/// The requests in succession to which the origin gives no response before those that waited for them give up.
const MOST_UNANSWERED: u32 = 2;
/// The requests that may take too long before one goes to the origin whatever others do.
const MOST_STUCK: u32 = 2;

/// A choice of which requests may wait for the response to another request in progress for the same URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Collapse {
    /// All requests that the other response may answer. Those with `Authorization` wait only where
    /// the last response permits to share what they get (RFC 9111, section 3.5).
    #[default]
    All,
    /// All requests that the other response may answer, except those with `Cookie`.
    WithoutCookie,
    /// No requests.
    Off,
}

/// The way in which an HTTP cache treats a client's `no-cache` and `max-age=0`, which browsers send when a user reloads
/// a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientNoCache {
    /// Each such request goes to the origin.
    Obey,
    /// Several such requests that come while another is on its way become one request to the origin, which is sent once
    /// all of them have come: none gets a response that is older than itself.
    #[default]
    Collapse,
    /// The directives have no effect.
    Ignore,
}

/// A request that may wait for the response to another request for the same response.
pub(super) struct Waiting<'a> {
    pub(super) parts: &'a request::Parts,
    pub(super) asked: &'a RequestDirectives,
    /// The key that all requests for the same response have in common.
    pub(super) key: Bytes,
    pub(super) why: Forwarded,
    /// The longest time for which another request for the same response may delay this one, before this one is sent to
    /// the origin too.
    pub(super) patience: Duration,
    /// Whether a stale stored response can be served instead of waiting longer.
    pub(super) has_stale: bool,
    /// Whether the last request for the target (URL) failed.
    pub(super) is_failing: bool,
    /// The serial number of this request, if only the response to a request that is sent later may answer it (as after
    /// `no-cache`).
    pub(super) ticket: Option<u64>,
}

/// The outcome of waiting for the response to another request: that response, a stale stored one, or the right to ask
/// the origin.
pub(super) enum Joined {
    /// No other request is on its way: this one goes to the origin, and leads those that come
    /// later.
    Lead(Leader),
    /// The response of the other request is stored now.
    LookAgain,
    /// The response to the request.
    Answered(Response<Body>),
    /// The other request fails or takes too long, and a stale response may be served.
    Stale,
    /// The response of the other request can serve no other.
    Alone,
    /// The right to ask the origin for a part of the response alone: it is far from the begin of the whole, which another
    /// request brings.
    Part,
    /// The failure of this request too: the origin gave no response to several others in succession.
    Unanswered(NotAnswered),
}

/// The error of a request that waited for others, to which the origin gave no response.
#[derive(Debug, thiserror::Error)]
#[error(
    "gave no response to {MOST_UNANSWERED} requests in succession, for which this one waited; to the last: {0}"
)]
pub(crate) struct NotAnswered(Arc<str>);

/// The reason why a response on its way does not answer a request.
enum Unfollowed {
    /// It is the response to another.
    Other,
    /// The begin of its body is gone from memory. The store may have all of it.
    Begun,
    /// It is the whole response, whose begin is far from the part that the request asks for.
    Far,
}

/// The requests for the same that are on their way: one, or two where the origin fails.
struct Ahead {
    first: Followed,
    second: Option<Followed>,
}

impl Ahead {
    /// Waits for news of one of them, and returns which one, and what; `None` if it takes too long.
    async fn news(&mut self, end: Instant) -> Option<(&Followed, Progress)> {
        let Self { first, second } = self;
        let news = async {
            let Some(second) = second else { return (true, changed(first).await) };
            tokio::select! {
                biased;
                progress = changed(first) => (true, progress),
                progress = changed(second) => (false, progress),
            }
        };
        let (is_first, progress) = timeout_at(end, news).await.ok()?;
        let followed = if is_first { &self.first } else { self.second.as_ref()? };
        Some((followed, progress))
    }
}

/// Waits until something is known of a request that is on its way.
async fn changed(followed: &mut Followed) -> Progress {
    let news = followed.progress.wait_for(|now| !matches!(now, Progress::Waiting)).await;
    news.map_or(Progress::Alone, |now| now.clone())
}

impl HttpCache {
    /// Whether a request may wait for the response to another request, and other requests for the response to this one.
    pub(super) fn may_wait(
        &self,
        parts: &request::Parts,
        asked: &RequestDirectives,
        is_reload: bool,
        (entry, has_stored): (Option<&Entry>, bool),
    ) -> bool {
        let headers = &parts.headers;
        let (last, now) = (entry.and_then(|entry| entry.outcome), self.now());
        let is_alone = last.is_some_and(|last| {
            let is_of_user = || self.inner.rules.may_be_personal(headers);
            last.is_alone(now) || (last.is_personal(now) && is_of_user())
        });
        // What is stored answers those who ask for little too, once it is validated.
        let may_share = has_stored || !asks_for_little(parts);
        // An origin that fails is asked by few all the same.
        let is_failing = last.is_some_and(|last| last.is_failing(now));
        let may_help = is_failing || {
            let last =
                entry.and_then(|entry| self.last_serves_others(parts, asked, is_reload, entry));
            last != Some(false)
        };
        let waits_with_cookie = self.inner.collapse == Collapse::All;
        // What such a request gets is for others only where the response says so.
        let is_shared = || {
            let responses = entry.map(|entry| &entry.responses[..]).unwrap_or_default();
            responses
                .first()
                .is_some_and(|last| self.inner.rules.permits_sharing(&last.head.headers))
        };
        self.inner.collapse != Collapse::Off
            && may_share
            && !asked.no_store
            && !(is_reload && self.inner.client_no_cache == ClientNoCache::Obey)
            && !is_alone
            && may_help
            && (waits_with_cookie || !headers.contains_key(COOKIE))
            && (!headers.contains_key(AUTHORIZATION) || is_shared())
    }

    /// Whether a response such as the stored one, when it comes, could answer this request though it was sent for another;
    /// `None` if that is not known. One that has to be validated each time, or comes with an age beyond its lifetime,
    /// cannot.
    fn last_serves_others(
        &self,
        parts: &request::Parts,
        asked: &RequestDirectives,
        is_reload: bool,
        entry: &Entry,
    ) -> Option<bool> {
        let asked = if is_reload { &without_reload(asked) } else { asked };
        let rules = &self.inner.rules;
        entry.responses.iter().find_map(|last| {
            let terms = last.terms.or_read(rules, &last.head);
            rules.serves_others(&parts.headers, asked, (&last.head, &terms))
        })
    }

    /// Whether the response to a request may be of no use to others only because of what it asks for, or of whom it is.
    fn is_particular(&self, parts: &request::Parts) -> bool {
        asks_for_little(parts) || self.inner.rules.may_be_personal(&parts.headers)
    }

    /// Returns the progress of a request whose response serves no other.
    pub(super) fn serves_none(&self, parts: &request::Parts) -> Progress {
        if self.is_particular(parts) { Progress::Own } else { Progress::Alone }
    }

    /// Returns the longest time for which one request to the origin may delay another one for the same URL.
    pub(super) fn patience(&self, entry: Option<&Entry>) -> Duration {
        let of_last = |entry: &Entry| {
            let response = entry.responses.first().map(|response| &response.head);
            let took = |head: &Stored| head.received.duration_since(head.requested).ok();
            entry.outcome.map(|last| last.took).or(response.and_then(took))
        };
        let bound = |took: Duration| (took * 2).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
        entry.and_then(of_last).map_or(LONGEST_PATIENCE, bound).min(self.inner.collapse_wait)
    }

    /// Waits, for a limited time, for the response to another request for the same response.
    pub(super) async fn join(
        &self,
        origin: impl Origin,
        name: &Bytes,
        waiting: Waiting<'_>,
    ) -> Joined {
        let (flights, storage) = (&self.inner.flights, &self.inner.storage);
        let Waiting { parts, patience, has_stale, ticket, .. } = waiting;
        let (mut key, mut is_failing) = (waiting.key.clone(), waiting.is_failing);
        let end = Instant::now() + self.inner.collapse_wait;
        let (mut stuck, mut unanswered) = (0, 0);
        let mut has_waited = false;
        loop {
            let first = match flights.board(&key) {
                Boarding::Lead(mut leader) => {
                    leader.has_waited = has_waited;
                    return Joined::Lead(leader);
                }
                Boarding::Follow(first) => first,
            };
            // An origin that fails is asked by two at a time, as one that is stuck would hide that it is well.
            let second = match is_failing.then(|| flights.board(&second(&key))) {
                Some(Boarding::Lead(leader)) => return Joined::Lead(leader),
                Some(Boarding::Follow(second)) => Some(second),
                None => None,
            };
            let mut ahead = Ahead { first, second };
            has_waited = true;
            let Some((followed, progress)) = ahead.news(end.min(Instant::now() + patience)).await
            else {
                if has_stale {
                    return Joined::Stale;
                }
                stuck += 1;
                if stuck == MOST_STUCK || Instant::now() >= end {
                    return Joined::Alone;
                }
                match flights.reinforce(&key, &ahead.first) {
                    Some(leader) => return Joined::Lead(leader),
                    None => continue,
                }
            };
            // One that was sent before this request came may not know of what its client has just done.
            let is_too_old = ticket.is_some_and(|ticket| !followed.is_after(ticket));
            match progress {
                Progress::Alone => return Joined::Alone,
                Progress::Failed | Progress::Unanswered(_) if has_stale => return Joined::Stale,
                Progress::Failed => is_failing = true,
                // A crowd does not find out one by one that nobody answers.
                Progress::Unanswered(reason) => {
                    unanswered += 1;
                    if unanswered == MOST_UNANSWERED {
                        return Joined::Unanswered(NotAnswered(reason));
                    }
                }
                Progress::Own if self.is_particular(parts) => return Joined::Alone,
                // One of those who ask for the whole brings it now.
                Progress::Own | Progress::Waiting | Progress::Superseded => {}
                Progress::Validated(None) if !is_too_old => return Joined::LookAgain,
                Progress::Validated(Some(validated))
                    if !is_too_old && storage.is_current(name, validated.0, &validated.1).await =>
                {
                    return Joined::LookAgain;
                }
                Progress::Found if ticket.is_none() => return Joined::LookAgain,
                Progress::Coming(coming)
                    if !is_too_old
                        && storage.is_current(name, coming.begun, &coming.groups).await =>
                {
                    match self.follow(origin.clone(), &waiting, &coming) {
                        Ok(response) => return Joined::Answered(response),
                        // The store may have an older one, which no reload may get.
                        Err(Unfollowed::Begun) if ticket.is_some() => return Joined::Alone,
                        Err(Unfollowed::Begun) => return Joined::LookAgain,
                        Err(Unfollowed::Far) => return Joined::Part,
                        Err(Unfollowed::Other) => {}
                    }
                    let own = self.variant_key(name, &parts.headers, &coming.head.headers);
                    match own.filter(|own| *own != key) {
                        // Those who ask for the same variant ask once.
                        Some(own) => key = own,
                        None => return Joined::Alone,
                    }
                }
                // This request may have come after a change, and must not get what was before it.
                Progress::Coming(_) | Progress::Validated(_) | Progress::Found => {
                    if let Some(leader) = flights.supersede(&key, followed) {
                        return Joined::Lead(leader);
                    }
                    // Another request was first: this one waits for that.
                }
            }
            if Instant::now() >= end {
                return Joined::Alone;
            }
        }
    }

    /// Returns the key of the variant of a URL that a request asks for, by the fields in the `Vary` of a response;
    /// `None` if the response answers one request alone.
    pub(super) fn variant_key(
        &self,
        name: &Bytes,
        request: &HeaderMap,
        response: &HeaderMap,
    ) -> Option<Bytes> {
        let variant = Variant::selected(self.inner.rules.selection(), request, response);
        variant.map(|variant| variant_name(name, &variant))
    }

    /// Joins a response that another request has caused, if it answers this one.
    fn follow(
        &self,
        origin: impl Origin,
        waiting: &Waiting<'_>,
        coming: &Coming,
    ) -> Result<Response<Body>, Unfollowed> {
        let Waiting { parts, asked, why, .. } = waiting;
        let asked = if waiting.ticket.is_some() { &without_reload(asked) } else { *asked };
        let now = self.now();
        let (rules, head) = (&self.inner.rules, &coming.head);
        let terms = Terms::of(rules, head);
        let assessment = rules.assess(&parts.headers, asked, (head, &terms), now, false);
        let assessment = assessment.filter(|assessment| assessment.reuse.is_served());
        let assessment = assessment.ok_or(Unfollowed::Other)?;
        if whole::asks_for_far_part(parts, head, coming.length) {
            return Err(Unfollowed::Far);
        }
        let reader = coming.fill.reader().ok_or(Unfollowed::Begun)?;
        let head = (coming.head.status, &coming.head.headers);
        let refetch = Refetch::of(origin, parts, head, coming.length);
        let body = followed_body(reader, coming.length, refetch);
        let (head, age) = (coming.head.clone(), assessment.age);
        let mut response = Self::response(parts, head, age, coming.length, body);
        if parts.method == Method::GET {
            whole::narrow_to_range(parts, &coming.head, coming.length, &mut response);
        }
        let mut status = Status::forwarded(*why);
        status.is_collapsed = true;
        tell(&mut response, status);
        Ok(response)
    }
}

/// Whether a request is for less than can be stored: for the head, or for bytes in the middle.
fn asks_for_little(parts: &request::Parts) -> bool {
    let headers = &parts.headers;
    parts.method != Method::GET
        || (headers.contains_key(RANGE) && !whole::asks_from_first_byte(headers))
}

/// Returns the cache directives of a request without those that browsers send on a reload: `no-cache` and `max-age=0`.
pub(super) fn without_reload(asked: &RequestDirectives) -> RequestDirectives {
    let max_age = asked.max_age.filter(|longest| !longest.is_zero());
    RequestDirectives { no_cache: false, max_age, ..asked.clone() }
}

/// Returns what the second of two requests for the same is called.
fn second(key: &Bytes) -> Bytes {
    [&key[..], b"\0\0"].concat().into()
}
