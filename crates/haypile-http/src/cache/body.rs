//! Bodies of requests and responses.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;

/// A boxed error of any type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The error of a body that breaks off before its end. All readers of the body get the same error.
#[derive(Clone, Debug)]
pub struct BodyError(Arc<str>);

impl BodyError {
    pub(super) fn new(error: impl Into<BoxError>) -> Self {
        let error: BoxError = error.into();
        Self(causes(&*error).into())
    }
}

/// Returns the text of an error with the texts of its sources, because the cause is often in the
/// last of them alone.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl From<&str> for BodyError {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for BodyError {}

type Frames = Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BodyError>> + Send>>;
type Foreign = Pin<Box<dyn HttpBody<Data = Bytes, Error = BodyError> + Send>>;

/// The body of an HTTP request or response: in memory, from a store, or from elsewhere.
pub struct Body(BodyKind);

enum BodyKind {
    Full(Bytes),
    /// The bytes that are left, where that is known.
    Frames(Frames, Option<u64>),
    Foreign(Foreign),
}

impl Body {
    /// Returns an empty body of a request or response.
    pub fn empty() -> Self {
        Self::full(Bytes::new())
    }

    /// Returns a body of a request or response that has these bytes in memory.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(BodyKind::Full(bytes.into()))
    }

    /// Wraps an HTTP body of another type.
    pub fn wrap<B>(body: B) -> Self
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body = BodyExt::map_err(body, BodyError::new);
        Self(BodyKind::Foreign(Box::pin(body)))
    }

    /// Returns the bytes of a body that is in memory, which can be sent more than once; `None` for
    /// any other body.
    #[cfg(feature = "reqwest")]
    pub(crate) fn in_memory(&self) -> Option<Bytes> {
        match &self.0 {
            BodyKind::Full(bytes) => Some(bytes.clone()),
            BodyKind::Frames(..) | BodyKind::Foreign(_) => None,
        }
    }

    /// Returns the next bytes of the body, at least one; `None` at its end. Trailers are left out.
    pub(super) async fn next_bytes(&mut self) -> Option<Result<Bytes, BodyError>> {
        loop {
            match self.frame().await?.map(Frame::into_data) {
                Err(error) => return Some(Err(error)),
                Ok(Ok(piece)) if !piece.is_empty() => return Some(Ok(piece)),
                Ok(_) => {}
            }
        }
    }

    /// Returns a body that reads a stream of HTTP frames, with its length if that is known.
    pub(super) fn frames(
        frames: impl Stream<Item = Result<Frame<Bytes>, BodyError>> + Send + 'static,
        length: Option<u64>,
    ) -> Self {
        // Readers may ask once more after the end, and some decoders do.
        Self(BodyKind::Frames(frames.fuse().boxed(), length))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Body").field(&self.size_hint()).finish()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            BodyKind::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodyKind::Full(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodyKind::Frames(frames, left) => {
                let frame = std::task::ready!(frames.as_mut().poll_next(context));
                if let (Some(left), Some(Ok(frame))) = (left, &frame) {
                    *left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len) as u64);
                }
                Poll::Ready(frame)
            }
            BodyKind::Foreign(body) => body.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Full(bytes) => bytes.is_empty(),
            BodyKind::Frames(_, left) => *left == Some(0),
            BodyKind::Foreign(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyKind::Frames(_, Some(left)) => SizeHint::with_exact(*left),
            BodyKind::Frames(_, None) => SizeHint::default(),
            BodyKind::Foreign(body) => body.size_hint(),
        }
    }
}
