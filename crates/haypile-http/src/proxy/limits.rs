//! The bounds on all waits of the proxy.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

/// The time limits of a proxy's waits, for origins and for clients.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The longest wait until a connection to an origin is established.
    pub connect: Duration,
    /// The longest wait for the head of an origin's response after the request was sent, and for
    /// the origin to take the next part of a request.
    pub first_byte: Duration,
    /// The longest wait for the next part of an origin's response.
    pub pause: Duration,
    /// The longest wait for a client: for its next request or the next part of that, and for it to
    /// take the next part of a response.
    pub client: Duration,
    /// The longest time for the whole body of a client's request, or of an origin's response.
    pub body: Duration,
    /// The longest wait for the next byte of a WebSocket, in either direction.
    pub tunnel: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: Duration = Duration::from_mins(1);
        Self {
            connect: Duration::from_secs(10),
            first_byte: MINUTE,
            pause: MINUTE,
            client: MINUTE,
            body: Duration::from_hours(24),
            tunnel: Duration::from_mins(10),
        }
    }
}

/// A time limit that applies to each of several waits (such as for the parts of a body), one after
/// the other.
#[derive(Debug)]
pub(super) struct Timer {
    limit: Duration,
    /// The timer of the current wait.
    over: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, over: None }
    }

    /// Applies the time limit to the poll of a future: returns its output, or `None` if it takes
    /// too long.
    pub(super) fn bound<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<T>,
    ) -> Poll<Option<T>> {
        if let Poll::Ready(outcome) = outcome {
            self.over = None;
            return Poll::Ready(Some(outcome));
        }
        let limit = self.limit;
        let over = self.over.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(over.as_mut().poll(context));
        Poll::Ready(None)
    }
}
