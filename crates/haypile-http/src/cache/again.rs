//! Bodies that are asked for once more, for clients who are too slow for what is kept of them.
//!
//! A body of unknown length may turn out to be too long to be stored. Those who are far behind the first of its readers
//! would lose it then, although each of them would have got it by a request of its own. They get that request now: what
//! they have is left out of its response, if it is the same there.

use std::pin::Pin;

use bytes::Bytes;
use http::header::{
    CONTENT_ENCODING, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, Method, Request, StatusCode, request};
use xxhash_rust::xxh3::Xxh3;

use super::{Body, BodyError, Origin};

type Fetched = Pin<Box<dyn Future<Output = Result<Body, BodyError>> + Send>>;

/// A request that can be sent once more for the body that a client reads, with a digest of what the client has of it.
pub(super) struct Again {
    digest: Box<Xxh3>,
    send: Box<dyn FnOnce() -> Fetched + Send>,
}

/// The rest of a body that was asked for once more.
pub(super) struct Repeated {
    first: Bytes,
    body: Body,
}

impl Again {
    /// Returns what asks once more for the response to a request, which had this head; `None` if the request may not be
    /// repeated.
    pub(super) fn of(
        origin: impl Origin,
        request: &request::Parts,
        (status, head): (StatusCode, &HeaderMap),
    ) -> Option<Self> {
        if request.method != Method::GET {
            return None;
        }
        let mut request = request.clone();
        for name in [IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, RANGE] {
            request.headers.remove(name);
        }
        let said = |head: &HeaderMap| {
            [ETAG, LAST_MODIFIED, CONTENT_ENCODING].map(|name| head.get(name).cloned())
        };
        let before = said(head);
        let send = move || -> Fetched {
            Box::pin(async move {
                let request = Request::from_parts(request, Body::empty());
                let response = origin.send(request).await.map_err(BodyError::new)?;
                if response.status() != status || said(response.headers()) != before {
                    return Err("a part of it was lost, and the origin has another".into());
                }
                Ok(response.into_body())
            })
        };
        Some(Self { digest: Box::default(), send: Box::new(send) })
    }

    /// Takes note of a piece that the client gets.
    pub(super) fn note(&mut self, piece: &[u8]) {
        self.digest.update(piece);
    }

    /// Sends the request, and returns the body from this byte on, up to which the client has it.
    pub(super) async fn rest(self, from: u64) -> Result<Repeated, BodyError> {
        let mut body = (self.send)().await?;
        let (mut digest, mut left, mut first) = (Xxh3::new(), from, Bytes::new());
        while left > 0 {
            let mut piece = body.next_bytes().await.ok_or("the origin's is shorter now")??;
            let known = usize::try_from(left).map_or(piece.len(), |left| left.min(piece.len()));
            first = piece.split_off(known);
            digest.update(&piece);
            left -= known as u64;
        }
        if digest.digest128() != self.digest.digest128() {
            return Err("a part of it was lost, and the origin has another".into());
        }
        Ok(Repeated { first, body })
    }
}

impl Repeated {
    /// Returns the next piece; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if !self.first.is_empty() {
            return Some(Ok(std::mem::take(&mut self.first)));
        }
        self.body.next_bytes().await
    }
}
