//! An origin that sends requests by a client of `reqwest`.

use std::pin::Pin;
use std::task::{Context, Poll};

use ::reqwest::Url;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Extensions, Request, Response, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use reqwest_middleware::ClientWithMiddleware;
use tokio::time::Instant;

use crate::cache::{Body, BoxError, CloseDelimited, FollowedRedirect, Origin};

/// A `reqwest` client that acts as the origin of the cache, with the caller's options for one request.
#[derive(Clone, Debug)]
pub(super) struct ClientOrigin {
    pub(super) client: ClientWithMiddleware,
    pub(super) extensions: Extensions,
    pub(super) deadline: Option<Instant>,
}

/// The URL from which the client got a response, as an extension of the response.
#[derive(Clone, Debug)]
pub(super) struct ResponseUrl(pub(super) Url);

impl Origin for ClientOrigin {
    async fn send(mut self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let mut request = ::reqwest::Request::try_from(request.map(to_reqwest))?;
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            *request.timeout_mut() = Some(left);
        }
        let asked = request.url().clone();
        let sent = self.client.execute_with_extensions(request, &mut self.extensions);
        let response = sent.await?;
        let url = response.url().clone();
        let response = Response::<::reqwest::Body>::from(response);
        let is_marked = is_end_marked(&response);
        let mut response = response.map(Body::wrap);
        let extensions = response.extensions_mut();
        if url != asked {
            extensions.insert(FollowedRedirect);
        }
        if !is_marked {
            extensions.insert(CloseDelimited);
        }
        extensions.insert(ResponseUrl(url));
        Ok(response)
    }
}

/// Whether the end of the body is told from a connection that breaks. A body that the client has
/// decoded looks as if it were not: its length is removed.
fn is_end_marked(response: &Response<::reqwest::Body>) -> bool {
    let headers = response.headers();
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked = match (codings.next(), codings.next()) {
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        _ => false,
    };
    response.version() > Version::HTTP_11
        || response.body().is_end_stream()
        || headers.contains_key(CONTENT_LENGTH)
        || (is_chunked && response.version() == Version::HTTP_11)
}

/// Converts the body of a `reqwest` request. One that is in memory stays so, and can be sent again.
pub(super) async fn from_reqwest(body: ::reqwest::Body) -> Result<Body, ::reqwest::Error> {
    if body.as_bytes().is_none() {
        return Ok(Body::wrap(body));
    }
    Ok(Body::full(body.collect().await?.to_bytes()))
}

/// Converts a body of this crate to one of `reqwest`.
pub(super) fn to_reqwest(body: Body) -> ::reqwest::Body {
    match body.in_memory() {
        Some(bytes) => bytes.into(),
        None => wrap(body),
    }
}

/// Wraps a body that only one thread may hold into a body of `reqwest`.
pub(super) fn wrap<B>(body: B) -> ::reqwest::Body
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    ::reqwest::Body::wrap(Shared(Mutex::new(body)))
}

/// A body that several threads may hold, as `reqwest` demands. Only one polls it, so that the lock is
/// never contended.
struct Shared<B>(Mutex<B>);

impl<B: HttpBody + Unpin> HttpBody for Shared<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(self.0.get_mut()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.lock().size_hint()
    }
}
