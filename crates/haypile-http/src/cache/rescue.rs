//! The rest of a body of which a part vanished from the store after its head was sent.

use std::ops::Range;
use std::pin::Pin;

use http::header::{
    IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderValue, Method, Request, request};

use super::{Body, BodyError, Origin};
use crate::semantics::part::{PartPlace, place, strong_tag};
use crate::storage::{StoredBody, StoredResponse};

type Fetched = Pin<Box<dyn Future<Output = Result<Body, BodyError>> + Send>>;

/// Fetches bytes of a response from the origin, if it is still the same.
pub(super) struct Rescue(Box<dyn FnOnce(Range<u64>) -> Fetched + Send>);

impl Rescue {
    /// Returns one for the response to a request; `None` if nothing of it can vanish, or it has no
    /// strong validator, without which nobody knows whether the rest is of the same body.
    pub(super) fn new(
        origin: impl Origin,
        request: &request::Parts,
        stored: &StoredResponse,
    ) -> Option<Self> {
        if matches!(stored.body, StoredBody::Inline(_)) {
            return None;
        }
        let tag = strong_tag(&stored.head.headers)?.clone();
        let whole = stored.body.bytes();
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

    pub(super) async fn fetch(self, range: Range<u64>) -> Result<Body, BodyError> {
        (self.0)(range).await
    }
}
