//! Bodies that a client reads while they come from the origin.

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, StatusCode, request};
use http_body::Frame;

use super::Origin;
use super::again::{Again, Repeated};
use super::body::{Body, BodyError};
use super::fill::{KEPT_BYTES, Lost, Reader};
use super::rescue::{Rescue, Rest};

/// The way in which a reader of a body in transit gets bytes from the origin that it has missed.
#[derive(Default)]
pub(super) enum Refetch {
    /// None: the body breaks off.
    #[default]
    Never,
    /// By a request for these bytes alone.
    Rest(Rescue),
    /// By the client's request once more, for the body from its begin.
    All(Again),
}

impl Refetch {
    /// Returns the way in which a reader gets missed bytes of the response to a request, by its head and its length.
    pub(super) fn of(
        origin: impl Origin,
        request: &request::Parts,
        (status, head): (StatusCode, &HeaderMap),
        length: Option<u64>,
    ) -> Self {
        // Memory keeps all of a short body until it has come.
        if length.is_some_and(|bytes| bytes <= KEPT_BYTES) {
            return Self::Never;
        }
        let rescue = length.and_then(|bytes| Rescue::of(origin.clone(), request, head, bytes));
        if let Some(rescue) = rescue {
            return Self::Rest(rescue);
        }
        Again::of(origin, request, (status, head)).map_or(Self::Never, Self::All)
    }
}

/// The source of a body that is read while it comes.
enum Source {
    Transit(Reader, Refetch),
    /// The origin, for the bytes from this place on.
    Rest(Rest, u64),
    /// The origin, for a body of which the client has the beginning.
    Repeated(Repeated),
}

/// Returns the bytes of a body in transit ([`Fill`](super::fill::Fill)), of `length` bytes if that is known. Bytes that a
/// slow reader has missed are fetched from the origin by `refetch`.
pub(super) fn followed_body(reader: Reader, length: Option<u64>, refetch: Refetch) -> Body {
    let source = Source::Transit(reader, refetch);
    let frames = stream::unfold(Some(source), move |source: Option<Source>| async move {
        let mut source = source?;
        let piece = source.next(length).await?;
        let source = piece.is_ok().then_some(source);
        Some((piece.map(Frame::data), source))
    });
    Body::frames(frames, length)
}

impl Source {
    async fn next(&mut self, length: Option<u64>) -> Option<Result<Bytes, BodyError>> {
        loop {
            match self {
                Self::Transit(reader, refetch) => match reader.next().await? {
                    Ok(piece) => {
                        if let Refetch::All(again) = refetch {
                            again.note(&piece);
                        }
                        return Some(Ok(piece));
                    }
                    Err(Lost::Broken(error)) => return Some(Err(error)),
                    Err(Lost::Evicted(at)) => match Self::of(std::mem::take(refetch), at).await {
                        Ok(source) => *self = source,
                        Err(error) => return Some(Err(error)),
                    },
                },
                Self::Repeated(repeated) => return repeated.next().await,
                Self::Rest(rest, at) => return next_of_rest(rest, at, length).await,
            }
        }
    }

    /// Returns the source of a body from this place on.
    async fn of(refetch: Refetch, at: u64) -> Result<Self, BodyError> {
        Ok(match refetch {
            Refetch::Never => Self::Rest(Rest::new(None), at),
            Refetch::Rest(rescue) => Self::Rest(Rest::new(Some(rescue)), at),
            Refetch::All(again) => Self::Repeated(again.rest(at).await?),
        })
    }
}

async fn next_of_rest(
    rest: &mut Rest,
    at: &mut u64,
    length: Option<u64>,
) -> Option<Result<Bytes, BodyError>> {
    let end = length.unwrap_or(u64::MAX);
    if *at >= end {
        return None;
    }
    let mut piece = match rest.next(*at..end).await {
        Ok(piece) => piece,
        Err(error) => return Some(Err(error)),
    };
    piece.truncate(usize::try_from(end - *at).unwrap_or(usize::MAX));
    *at += piece.len() as u64;
    Some(Ok(piece))
}
