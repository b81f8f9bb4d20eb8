//! A bound on the time between two parts of a body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::limits::Timer;
use crate::cache::BoxError;

/// Returns the body, which fails if its next part does not come within this time.
pub(super) fn limit<B>(body: B, pause: Duration) -> Limited<B> {
    Limited { body, pause, timer: Timer::new(pause) }
}

pub(super) struct Limited<B> {
    body: B,
    pause: Duration,
    timer: Timer,
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
