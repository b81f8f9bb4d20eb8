//! Batches: several pieces of a body that are sent by one system call.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};

/// The bytes of a body that are sent by one call, if they are there. It costs the system less than
/// a call for each small piece; more would keep more memory for each client that reads slowly. Larger
/// batches saved a tenth of the processor time of 512 KiB from memory, and let connections under the
/// congestion control BBR pause for 40 ms now and then (docs/http-speed.md).
const BATCH_BYTES: usize = 64 << 10;
/// The most pieces of a batch.
const BATCH_PIECES: usize = 16;

/// Pieces of a response body in their order, none of them empty, which are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The first piece: most responses have one, for which nothing is allocated.
    first: Bytes,
    others: VecDeque<Bytes>,
    other_bytes: usize,
}

impl Batch {
    /// Adds a piece of the response body to the batch.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.first.is_empty() {
            self.first = piece;
        } else if !piece.is_empty() {
            self.other_bytes += piece.len();
            self.others.push_back(piece);
        }
    }
}

impl From<Bytes> for Batch {
    fn from(first: Bytes) -> Self {
        Self { first, ..Self::default() }
    }
}

impl Buf for Batch {
    fn remaining(&self) -> usize {
        self.first.len() + self.other_bytes
    }

    fn chunk(&self) -> &[u8] {
        &self.first
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining(), "no more than there is");
        while count >= self.first.len() {
            count -= self.first.len();
            let Some(next) = self.others.pop_front() else {
                self.first.clear();
                return;
            };
            self.other_bytes -= next.len();
            self.first = next;
        }
        self.first.advance(count);
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        if self.first.is_empty() {
            return 0;
        }
        let pieces = [&self.first].into_iter().chain(&self.others);
        let filled =
            slices.iter_mut().zip(pieces).map(|(slice, piece)| *slice = IoSlice::new(piece));
        filled.count()
    }
}

/// A response body that is sent in batches of the pieces that are available, without waiting for further pieces.
#[derive(Debug)]
pub(super) struct Batches<B: HttpBody> {
    body: B,
    /// The outcome that ended the last batch, to be returned after it.
    next: Option<Result<Frame<Batch>, B::Error>>,
    is_over: bool,
}

impl<B: HttpBody> Batches<B> {
    pub(super) fn of(body: B) -> Self {
        Self { body, next: None, is_over: false }
    }
}

impl<B> HttpBody for Batches<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Unpin,
{
    type Data = Batch;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Batch>, B::Error>>> {
        let this = &mut *self;
        if let Some(next) = this.next.take() {
            return Poll::Ready(Some(next));
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        let mut batch = Batch::default();
        for _ in 0..BATCH_PIECES {
            match Pin::new(&mut this.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => batch.push(piece),
                    Err(frame) => this.next = Some(Ok(frame.map_data(Batch::from))),
                },
                Poll::Ready(Some(Err(error))) => this.next = Some(Err(error)),
                Poll::Ready(None) => this.is_over = true,
                Poll::Pending if batch.has_remaining() => break,
                Poll::Pending => return Poll::Pending,
            }
            let is_full = batch.remaining() >= BATCH_BYTES;
            if is_full || this.is_over || this.next.is_some() || this.body.is_end_stream() {
                break;
            }
        }
        if !batch.has_remaining() && (this.is_over || this.next.is_some()) {
            return Poll::Ready(this.next.take());
        }
        Poll::Ready(Some(Ok(Frame::data(batch))))
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none() && (self.is_over || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};
    use proptest::prelude::*;

    use super::*;

    type Item = Poll<Result<Frame<Bytes>, &'static str>>;

    /// Returns the batches of a body that is ready, fails or waits in this order, as texts.
    async fn batches(items: Vec<Item>) -> Vec<String> {
        let mut items = items.into_iter();
        let frames = stream::poll_fn(move |context| match items.next() {
            Some(Poll::Ready(item)) => Poll::Ready(Some(item)),
            Some(Poll::Pending) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Ready(None),
        });
        let mut body = Batches::of(StreamBody::new(frames));
        let mut found = Vec::new();
        while let Some(frame) = body.frame().await {
            found.push(match frame.map(Frame::into_data) {
                Ok(Ok(mut batch)) => {
                    let bytes = batch.copy_to_bytes(batch.remaining());
                    String::from_utf8(bytes.to_vec()).expect("text")
                }
                Ok(Err(frame)) => format!("{} trailer", frame.into_trailers().expect("some").len()),
                Err(error) => error.to_owned(),
            });
        }
        assert!(body.frame().await.is_none() && body.is_end_stream());
        found
    }

    fn data(text: &'static str) -> Item {
        Poll::Ready(Ok(Frame::data(text.into())))
    }

    #[tokio::test]
    async fn what_is_there_is_one_batch_and_nothing_is_waited_for() {
        let trailer = || Poll::Ready(Ok(Frame::trailers([].into_iter().collect())));
        for (items, expected) in [
            (vec![], &[][..]),
            (vec![data("a")], &["a"]),
            (vec![data("a"), data("b"), data("c")], &["abc"]),
            (vec![data("a"), Poll::Pending, data("b"), data("c")], &["a", "bc"]),
            (vec![Poll::Pending, data(""), data("a")], &["a"]),
            (vec![data("a"), Poll::Ready(Err("failed"))], &["a", "failed"]),
            (vec![Poll::Ready(Err("failed"))], &["failed"]),
            (vec![data("a"), data("b"), trailer()], &["ab", "0 trailer"]),
            (vec![trailer()], &["0 trailer"]),
        ] {
            assert_eq!(batches(items).await, expected);
        }
    }

    #[tokio::test]
    async fn a_batch_is_bounded() {
        let one: &'static str = "x".repeat(BATCH_BYTES / 4).leak();
        let found = batches((0..10).map(|_| data(one)).collect()).await;
        let lengths: Vec<_> = found.iter().map(|text| text.len() / one.len()).collect();
        assert_eq!(lengths, [4, 4, 2]);
        let found = batches((0..40).map(|_| data("x")).collect()).await;
        assert_eq!(found.iter().map(String::len).collect::<Vec<_>>(), [16, 16, 8]);
    }

    proptest! {
        /// However it is taken, the bytes are those of the pieces, in their order.
        #[test]
        fn bytes_of_all_pieces(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5), 0..6),
            steps in prop::collection::vec(1_usize..8, 40),
        ) {
            let mut batch = Batch::default();
            for piece in &pieces {
                batch.push(Bytes::copy_from_slice(piece));
            }
            let expected = pieces.concat();
            let mut taken = Vec::new();
            for step in steps {
                prop_assert_eq!(batch.remaining(), expected.len() - taken.len());
                prop_assert_eq!(batch.chunk().is_empty(), batch.remaining() == 0);
                let mut slices = [IoSlice::new(&[]); 8];
                let number = batch.chunks_vectored(&mut slices);
                let all = slices[..number].iter().map(|slice| slice.to_vec()).collect::<Vec<_>>();
                let all = all.concat();
                prop_assert_eq!(&all, &expected[taken.len()..]);
                let step = step.min(batch.remaining());
                taken.extend_from_slice(&all[..step]);
                batch.advance(step);
            }
            prop_assert_eq!(taken, expected);
        }
    }
}
