//! Bounds on the time between two parts of a body, and on the time that all of it takes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use tokio::time::Instant;

use super::limits::Timer;
use crate::cache::BoxError;

/// Limits the time of an HTTP body: it fails if its next part does not come within `pause`, or its
/// end not within `whole`.
pub(super) fn limit<B>(body: B, pause: Duration, whole: Duration) -> Limited<B> {
    Limited { body, pause, timer: Timer::new(pause), begun: Instant::now(), whole }
}

pub(super) struct Limited<B> {
    body: B,
    pause: Duration,
    timer: Timer,
    begun: Instant,
    whole: Duration,
}

impl<B> HttpBody for Limited<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        // A wait for the next part ends by its own bound.
        if !this.body.is_end_stream() && this.begun.elapsed() > this.whole {
            return Poll::Ready(Some(Err(format!("it takes longer than {:?}", this.whole).into())));
        }
        let frame = Pin::new(&mut this.body).poll_frame(context);
        Poll::Ready(match ready!(this.timer.bound(context, frame)) {
            Some(frame) => frame.map(|frame| frame.map_err(Into::into)),
            None => Some(Err(format!("the next part did not come within {:?}", this.pause).into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
