//! A body that comes in frames and says how long it is, as one with `Content-Length` does.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use haypile_http::{Body, BodyError};
use http_body::{Frame, SizeHint};

/// A body of which this many bytes are left.
pub(crate) struct OfLength(pub(crate) Body, pub(crate) u64);

impl http_body::Body for OfLength {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let frame = ready!(Pin::new(&mut self.0).poll_frame(context));
        if let Some(Ok(piece)) = &frame {
            self.1 -= piece.data_ref().map_or(0, Bytes::len) as u64;
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.1)
    }
}
