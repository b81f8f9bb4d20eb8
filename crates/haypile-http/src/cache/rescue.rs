//! The rest of a body of which a part vanished from the store after its head was sent.

use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Request, request};

use super::{Body, BodyError, Origin};
use crate::semantics::part::{PartPlace, place, strong_tag};
use crate::storage::{StoredBody, StoredResponse};

type Fetched = Pin<Box<dyn Future<Output = Result<Body, BodyError>> + Send>>;

/// A function that fetches missing bytes of a stored response from the origin, if the response is
/// still the same there.
pub(super) struct Rescue(Box<dyn FnOnce(Range<u64>) -> Fetched + Send>);

/// A source of the rest of a response body, which fetches it from the origin if the stored rest has
/// vanished from the store.
pub(super) struct Rest {
    rescue: Option<Rescue>,
    body: Option<Body>,
}

impl Rescue {
    /// Returns a function that fetches vanished parts of a stored response from the origin; `None`
    /// if no part can vanish, or as for [`Rescue::of`].
    pub(super) fn new(
        origin: impl Origin,
        request: &request::Parts,
        stored: &StoredResponse,
    ) -> Option<Self> {
        if matches!(stored.body, StoredBody::Inline(_)) {
            return None;
        }
        Self::of(origin, request, &stored.head.headers, stored.body.bytes())
    }

    /// Returns a function that fetches missing parts of a response from the origin, given its
    /// header fields and length; `None` without a strong validator, which proves that both parts
    /// are of the same body.
    pub(super) fn of(
        origin: impl Origin,
        request: &request::Parts,
        head: &HeaderMap,
        whole: u64,
    ) -> Option<Self> {
        let tag = strong_tag(head)?.clone();
        let mut request = request.clone();
        request.method = Method::GET;
        for name in [IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE] {
            request.headers.remove(name);
        }
        request.headers.insert(IF_RANGE, tag.clone());
        Some(Self(Box::new(move |range| {
            Box::pin(async move {
                let text = format!("bytes={}-{}", range.start, range.end - 1);
                let text = HeaderValue::try_from(text).expect("digits");
                request.headers.insert(RANGE, text);
                let request = Request::from_parts(request, Body::empty());
                let response = origin.send(request).await.map_err(BodyError::new)?;
                let found = place(response.status(), response.headers());
                let is_right = found == Some(PartPlace { range, whole })
                    && strong_tag(response.headers()) == Some(&tag);
                if !is_right {
                    return Err("a part of it was evicted, and the origin has another".into());
                }
                Ok(response.into_body())
            })
        })))
    }
}

impl Rest {
    pub(super) fn new(rescue: Option<Rescue>) -> Self {
        Self { rescue, body: None }
    }

    /// Whether the rest of the body is being fetched from the origin, so that the store is not read
    /// any more.
    pub(super) fn is_needed(&self) -> bool {
        self.body.is_some()
    }

    /// Returns the next piece of the rest of the response body, from the origin.
    pub(super) async fn next(&mut self, left: Range<u64>) -> Result<Bytes, BodyError> {
        if self.body.is_none() {
            let Rescue(fetch) = self.rescue.take().ok_or("a part of it was evicted")?;
            self.body = Some(fetch(left).await?);
        }
        let body = self.body.as_mut().expect("it is there now");
        body.next_bytes()
            .await
            .unwrap_or_else(|| Err("the origin's rest of it is too short".into()))
    }
}
