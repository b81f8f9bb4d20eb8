//! Streams in memory around a link.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use haypile_origin::link::{Link, RelayEnd};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex,
};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Little, so that what is under way is in the link.
pub(crate) const STREAM_BYTES: usize = 1 << 10;

pub(crate) fn link(profile: &str, seed: u64) -> Arc<Link> {
    Arc::new(Link::new(profile.parse().expect("a link"), seed).expect("in range"))
}

/// A connection over a link.
pub(crate) struct Connection {
    pub(crate) client: DuplexStream,
    pub(crate) origin: DuplexStream,
    pub(crate) relay: JoinHandle<RelayEnd>,
}

pub(crate) fn connect(link: &Arc<Link>, round_trips: u32) -> Connection {
    let (client, mut client_side) = duplex(STREAM_BYTES);
    let (origin, mut origin_side) = duplex(STREAM_BYTES);
    let link = Arc::clone(link);
    let relay = async move { link.relay(&mut client_side, &mut origin_side, round_trips).await };
    Connection { client, origin, relay: tokio::spawn(relay) }
}

/// Sends this many bytes, and returns when the last one came.
pub(crate) async fn transfer(
    from: &mut (impl AsyncWrite + Unpin),
    to: &mut (impl AsyncRead + Unpin),
    bytes: usize,
) -> Instant {
    let all = vec![b'x'; bytes];
    let send = async { from.write_all(&all).await.expect("it takes them") };
    let receive = async {
        let mut received = vec![0; bytes];
        to.read_exact(&mut received).await.expect("they come");
        Instant::now()
    };
    tokio::join!(send, receive).1
}

/// Checks that a time is this, or up to as much later as timers and one turn of the link make it.
#[track_caller]
pub(crate) fn assert_takes(elapsed: Duration, expected: Duration, turn: Duration) {
    let latest = expected + turn + Duration::from_millis(2);
    assert!(elapsed >= expected && elapsed <= latest, "{elapsed:?}, expected {expected:?}");
}

/// A stream that sends some bytes and then fails, and takes all that comes.
pub(crate) struct Failing(pub(crate) &'static [u8]);

impl AsyncRead for Failing {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let (part, rest) = self.0.split_at(self.0.len().min(buffer.remaining()));
        buffer.put_slice(part);
        self.0 = rest;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Failing {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, b: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(b.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
