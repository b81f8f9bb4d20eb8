//! A bound on the time until a body is complete.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::cache::{Body, BoxError};

/// Returns the error of a request that takes longer than its timeout; `reqwest` recognizes its
/// kind.
pub(super) fn timed_out() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the response did not come within the timeout")
}

/// A response body that fails if it has not ended by a deadline, although another request that
/// receives the same body has more time.
pub(super) struct BodyDeadline {
    body: Body,
    end: Pin<Box<Sleep>>,
}

impl BodyDeadline {
    pub(super) fn new(body: Body, end: Instant) -> Self {
        Self { body, end: Box::pin(sleep_until(end)) }
    }
}

impl HttpBody for BodyDeadline {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // First, for the client's own timeout ends at the same time, with a worse error.
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(timed_out().into())));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
