//! Requests to one address over one connection of HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;

use haypile_http::{Body, BoxError, Origin};
use http::header::HOST;
use http::{Request, Response};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// The bytes of one response that may be under way, and of all of a connection: those of Chromium. Both are more than
/// the named links hold.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;

/// An HTTP/2 client of one host that sends all requests to one address, over one connection, without TLS. The server
/// limits the number of concurrent requests; others wait. It follows no redirects, and needs a runtime.
#[derive(Clone, Debug)]
pub(crate) struct Http2Client {
    address: SocketAddr,
    connection: Arc<Mutex<Option<SendRequest<Body>>>>,
}

impl Http2Client {
    /// Returns an HTTP/2 client of one host that connects to the server at its first request.
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, connection: Arc::default() }
    }

    /// Returns the connection; a new one, if the server has closed it.
    async fn connection(&self) -> Result<SendRequest<Body>, BoxError> {
        // Requests that come while it connects wait for the same connection.
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(STREAM_WINDOW_BYTES);
        builder.initial_connection_window_size(CONNECTION_WINDOW_BYTES);
        let (sender, open) = builder.handshake(TokioIo::new(stream)).await?;
        // Its failure is that of the requests as well.
        tokio::spawn(async { drop(open.await) });
        *connection = Some(sender.clone());
        Ok(sender)
    }
}

impl Origin for Http2Client {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        // The URL names the host.
        request.headers_mut().remove(HOST);
        let mut sender = self.connection().await?;
        Ok(sender.send_request(request).await?.map(Body::wrap))
    }
}
