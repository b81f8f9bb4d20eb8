//! Bodies that a client reads while they come from the origin.

use bytes::Bytes;
use futures_util::stream;
use http_body::Frame;

use super::again::{Again, Repeated};
use super::body::{Body, BodyError};
use super::fill::{Lost, Reader};
use super::rescue::{Rescue, Rest};

/// A body that is read while it comes.
struct Followed {
    /// The reader of the fill; `None` once the part that it should read next is lost.
    reader: Option<Reader>,
    /// The place in the body from then on.
    at: u64,
    length: Option<u64>,
    rest: Rest,
    again: Option<Again>,
    repeated: Option<Repeated>,
}

/// Returns the bytes of a body in transit ([`Fill`](super::fill::Fill)), of `length` bytes if that
/// is known. Bytes that a slow reader has missed are fetched from the origin: by `rescue` those alone, or by `again` the
/// body from its begin. Without either, the body breaks off.
pub(super) fn followed_body(
    reader: Reader,
    length: Option<u64>,
    (rescue, again): (Option<Rescue>, Option<Again>),
) -> Body {
    let (reader, rest) = (Some(reader), Rest::new(rescue));
    let followed = Followed { reader, at: 0, length, rest, again, repeated: None };
    let frames = stream::unfold(Some(followed), async |followed| {
        let mut followed = followed?;
        let piece = followed.next().await?;
        let followed = piece.is_ok().then_some(followed);
        Some((piece.map(Frame::data), followed))
    });
    Body::frames(frames, length)
}

impl Followed {
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        if let Some(reader) = &mut self.reader {
            match reader.next().await? {
                Ok(piece) => {
                    if let Some(again) = &mut self.again {
                        again.note(&piece);
                    }
                    return Some(Ok(piece));
                }
                Err(Lost::Broken(error)) => return Some(Err(error)),
                Err(Lost::Evicted(at)) => (self.reader, self.at) = (None, at),
            }
            if let Some(again) = self.again.take() {
                match again.rest(self.at).await {
                    Ok(rest) => self.repeated = Some(rest),
                    Err(error) => return Some(Err(error)),
                }
            }
        }
        if let Some(repeated) = &mut self.repeated {
            return repeated.next().await;
        }
        let end = self.length.unwrap_or(u64::MAX);
        if self.at >= end {
            return None;
        }
        let mut piece = match self.rest.next(self.at..end).await {
            Ok(piece) => piece,
            Err(error) => return Some(Err(error)),
        };
        piece.truncate(usize::try_from(end - self.at).unwrap_or(usize::MAX));
        self.at += piece.len() as u64;
        Some(Ok(piece))
    }
}
