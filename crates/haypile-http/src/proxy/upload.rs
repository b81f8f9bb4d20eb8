//! A bound on the wait for an origin's response, which does not count the time that the client takes
//! to send its request.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::cache::Body;

/// The time since when an origin has been expected to take the next part of a request, or to answer; `None` while the
/// proxy waits for the client to send, which has another limit.
#[derive(Clone, Debug)]
pub(super) struct OriginsTurn(Arc<Mutex<Option<Instant>>>);

impl OriginsTurn {
    /// Starts the timer of an origin that gets a request, and returns the request's body, which records whether client
    /// or origin is expected to act.
    pub(super) fn begin(body: Body) -> (Self, Body) {
        let turn = Self(Arc::new(Mutex::new(Some(Instant::now()))));
        // A body without bytes stays as it is: a request without one may be sent twice.
        let is_empty = body.is_end_stream();
        let body = if is_empty { body } else { Body::wrap(Upload { body, turn: turn.clone() }) };
        (turn, body)
    }

    /// Returns the output of a future that sends a request; `None` if the origin keeps the future waiting longer than
    /// the limit.
    pub(super) async fn bound<T>(
        &self,
        limit: Duration,
        sent: impl Future<Output = T>,
    ) -> Option<T> {
        let mut sent = pin!(sent);
        loop {
            let begun = *self.0.lock();
            let taken = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            match timeout(limit.saturating_sub(taken), &mut sent).await {
                Ok(sent) => return Some(sent),
                Err(_) if begun.is_some() && *self.0.lock() == begun => return None,
                Err(_) => {}
            }
        }
    }
}

/// The body of a request on its way to an origin.
struct Upload {
    body: Body,
    turn: OriginsTurn,
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        *self.turn.0.lock() = frame.is_ready().then(Instant::now);
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
