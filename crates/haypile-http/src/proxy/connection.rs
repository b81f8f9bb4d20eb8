//! Connections to origins that know whether a response has come over them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Extensions, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use super::patience::Patient;
use crate::cache::BoxError;

/// A flag of a connection to an origin: whether a response has already come over it. An origin may
/// close such a connection at any time, even just as the next request is sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Used(Arc<AtomicBool>);

impl Used {
    /// Records that a response has come over this connection to the origin, which the origin may
    /// from now on close at any time.
    pub(super) fn note(extensions: &Extensions) {
        if let Some(Self(used)) = extensions.get() {
            used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a response had already come over the origin's connection on which a request met this
    /// error.
    pub(super) fn of(error: &hyper_util::client::legacy::Error) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connection) = error.connect_info() {
            connection.get_extras(&mut extensions);
        }
        extensions.get::<Self>().is_some_and(|Self(used)| used.load(Ordering::Relaxed))
    }
}

/// A connector that opens the proxy's connections to origins.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    pub(super) http: HttpConnector,
    /// The longest time for an origin to take the next byte of a request. Without a limit, an
    /// abandoned connection would wait for it, and with it the client whose body it is sending.
    pub(super) patience: Duration,
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.http.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, patience) = (self.http.call(uri), self.patience);
        Box::pin(async move {
            let stream = Patient::new(connecting.await?, patience);
            Ok(Stream { stream, used: Used::default() })
        })
    }
}

/// A TCP connection of the proxy to an origin.
#[derive(Debug)]
pub(super) struct Stream {
    stream: Patient<TokioIo<TcpStream>>,
    used: Used,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.stream.get_ref().connected().extra(self.used.clone())
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
