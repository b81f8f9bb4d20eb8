//! Connections of clients that end their side before they have their response.

use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// The time between two looks at a client that waits for its response.
const LOOK: Duration = Duration::from_secs(1);

/// A client's connection, which can be watched for its end while another task reads and writes it.
#[derive(Clone, Debug)]
pub(super) struct Socket(Arc<Mutex<TcpStream>>);

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Waits until the client has reset the connection, or has closed its sending side for as long
    /// as `patience`: it may wait for its response, or be gone, which cannot be distinguished until
    /// something is sent.
    pub(super) async fn left(self, patience: Duration) {
        let mut ended = None;
        loop {
            sleep(LOOK).await;
            match self.peek() {
                Ok(0) if ended.get_or_insert_with(Instant::now).elapsed() >= patience => return,
                Ok(_) => {}
                Err(error)
                    if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
                Err(_) => return,
            }
        }
    }

    /// Returns how many bytes can be read, of which it needs one at most; none after the end.
    fn peek(&self) -> io::Result<usize> {
        SockRef::from(&*self.0.lock()).peek(&mut [MaybeUninit::uninit()])
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(context)
    }
}
