//! One direction of one connection over a link.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use super::bucket::Bucket;
use super::chance::Chance;
use super::profile::ENTRY_BYTES;

/// The time of the link that is made up for after the machine was busy with something else.
const MOST_CATCH_UP: Duration = Duration::from_millis(100);

/// One direction of a connection over an emulated link, from its sender to its receiver.
pub(super) struct Direction<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) chance: Chance,
    /// The number of bytes of all connections that have passed the link in this direction.
    pub(super) passed: &'a AtomicU64,
    /// The largest number of bytes that pass the emulated link at once, as one unit of its rate.
    pub(super) quantum: usize,
    /// The memory for the connection's bytes in transit in this direction, in bytes.
    pub(super) queue_bytes: usize,
    /// The time from which the connection transmits bytes over the link, after the emulated
    /// handshake.
    pub(super) opens: Instant,
}

/// The way in which one direction of a connection over a link ended: by its sender's end, or by an
/// error of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectionEnd {
    /// The sender has ended its stream, and the receiver has been told.
    Closed,
    /// The sender's stream has failed, and the receiver is to be told.
    Reset,
    /// The receiver takes no more bytes.
    Refused,
}

#[derive(Debug)]
struct Queued {
    due: Instant,
    item: Item,
}

#[derive(Debug)]
enum Item {
    Bytes(Bytes),
    End,
    Reset,
}

impl Direction<'_> {
    /// Relays the bytes of a connection in one direction over the link, until this direction ends.
    pub(super) async fn run<R, W>(self, source: R, target: W) -> DirectionEnd
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let room = Semaphore::new(self.queue_bytes);
        let passed = self.passed;
        let (queue, queued) = unbounded_channel();
        let take = async {
            self.take(source, &room, queue).await;
            pending::<Infallible>().await
        };
        tokio::select! {
            end = deliver(queued, target, &room, passed) => end,
            never = take => match never {},
        }
    }

    /// Takes bytes from the sender as the link has room for them, and queues them with the time of
    /// their arrival.
    async fn take<R>(mut self, mut source: R, room: &Semaphore, queue: UnboundedSender<Queued>)
    where
        R: AsyncRead + Unpin,
    {
        let mut buffer = vec![0; self.quantum];
        let most = u32::try_from(self.quantum + ENTRY_BYTES).expect("a quantum is below 64 KiB");
        // When the connection had its last turn, unless it has waited for something else since.
        let mut last_turn = None;
        let mut last_due = self.opens;
        loop {
            if let Ok(taken) = room.try_acquire_many(most) {
                taken.forget();
            } else {
                last_turn = None;
                room.acquire_many(most).await.expect("it is never closed").forget();
            }
            let (read, was_ready) = read(&mut source, &mut buffer).await;
            let mut now = Instant::now();
            if now < self.opens {
                sleep_until(self.opens).await;
                now = self.opens;
            }
            let arrival = match last_turn {
                // The bytes were there at the last turn: that this task runs late does not cost them
                // their place.
                Some(turn) if was_ready => now.checked_sub(MOST_CATCH_UP).unwrap_or(turn).max(turn),
                _ => now,
            };
            let (item, leaves, bytes) = match read {
                Ok(0) => (Item::End, arrival, 0),
                Ok(bytes) => {
                    room.add_permits(self.quantum - bytes);
                    let turn = self.bucket.turn(bytes, arrival).await;
                    last_turn = Some(turn.at);
                    (Item::Bytes(Bytes::copy_from_slice(&buffer[..bytes])), turn.end, bytes)
                }
                Err(_) => (Item::Reset, arrival, 0),
            };
            let due = last_due.max(leaves + self.chance.next(bytes));
            last_due = due;
            let is_last = !matches!(item, Item::Bytes(_));
            if queue.send(Queued { due, item }).is_err() || is_last {
                return;
            }
        }
    }
}

/// Reads bytes. Returns also whether some were there at once.
async fn read<R>(source: &mut R, buffer: &mut [u8]) -> (io::Result<usize>, bool)
where
    R: AsyncRead + Unpin,
{
    let mut was_ready = true;
    let read = poll_fn(|context| {
        let mut buffer = ReadBuf::new(buffer);
        match Pin::new(&mut *source).poll_read(context, &mut buffer) {
            Poll::Pending => {
                was_ready = false;
                Poll::Pending
            }
            Poll::Ready(read) => Poll::Ready(read.map(|()| buffer.filled().len())),
        }
    });
    (read.await, was_ready)
}

/// Hands what is queued to the receiver, at its time.
async fn deliver<W>(
    mut queued: UnboundedReceiver<Queued>,
    mut target: W,
    room: &Semaphore,
    passed: &AtomicU64,
) -> DirectionEnd
where
    W: AsyncWrite + Unpin,
{
    while let Some(next) = queued.recv().await {
        if next.due > Instant::now() {
            sleep_until(next.due).await;
        }
        match next.item {
            Item::Bytes(bytes) => {
                // Before: a receiver that has the bytes sees them counted.
                passed.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                if target.write_all(&bytes).await.is_err() || target.flush().await.is_err() {
                    return DirectionEnd::Refused;
                }
                room.add_permits(bytes.len() + ENTRY_BYTES);
            }
            Item::End => {
                // A failure: the receiver has ended the connection as well.
                let _ = target.shutdown().await;
                return DirectionEnd::Closed;
            }
            Item::Reset => return DirectionEnd::Reset,
        }
    }
    unreachable!("the last item of a queue is an end")
}
