//! Bodies as they come out of the store.

use std::ops::Range;

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;

use super::body::{Body, BodyError};
use super::rescue::{Rescue, Rest};
use crate::storage::{Storage, StoredBody};

/// The bytes of a stored body, from the first that is left on.
struct Pieces {
    storage: Storage,
    body: StoredBody,
    left: Range<u64>,
    rest: Rest,
}

/// Returns a body that reads a part of a stored response body. Bytes that have vanished from the
/// store when they are sent come from the origin, if possible; otherwise the body breaks off.
pub(super) fn stored_body(
    storage: Storage,
    body: StoredBody,
    range: Range<u64>,
    rescue: Option<Rescue>,
) -> Body {
    let length = range.end - range.start;
    let pieces = Pieces { storage, body, left: range, rest: Rest::new(rescue) };
    let frames = stream::unfold(pieces, async |mut pieces| {
        let piece = pieces.next().await?;
        if piece.is_err() {
            pieces.left.start = pieces.left.end;
        }
        Some((piece.map(Frame::data), pieces))
    });
    Body::frames(frames, Some(length))
}

impl Pieces {
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if self.left.is_empty() {
            return None;
        }
        let mut piece = match self.stored().await {
            Some(piece) => piece,
            None => match self.rest.next(self.left.clone()).await {
                Ok(piece) => piece,
                Err(error) => return Some(Err(error)),
            },
        };
        // A range may end within a chunk.
        piece.truncate(usize::try_from(self.left.end - self.left.start).unwrap_or(usize::MAX));
        self.left.start += piece.len() as u64;
        Some(Ok(piece))
    }

    async fn stored(&mut self) -> Option<Bytes> {
        if self.rest.is_needed() {
            return None;
        }
        self.storage.piece(&self.body, self.left.start).await
    }
}
