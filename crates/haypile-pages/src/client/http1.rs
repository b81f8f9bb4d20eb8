//! Requests to one address, over connections that are kept.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use haypile_http::{Body, BoxError, Origin};
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// An HTTP/1.1 client of one host that sends all requests to one address, over a limited number of
/// connections. It follows no redirects, and needs a runtime.
#[derive(Clone, Debug)]
pub struct Http1Client {
    shared: Arc<ClientState>,
}

#[derive(Debug)]
struct ClientState {
    address: SocketAddr,
    free: Arc<Semaphore>,
    idle: Mutex<Vec<SendRequest<Body>>>,
}

impl Http1Client {
    /// Returns an HTTP/1.1 client with at most this number of connections.
    pub fn new(address: SocketAddr, connections: usize) -> Self {
        let free = Arc::new(Semaphore::new(connections));
        Self { shared: Arc::new(ClientState { address, free, idle: Mutex::default() }) }
    }

    /// Returns a connection that is ready for a request.
    async fn connection(&self) -> Result<SendRequest<Body>, BoxError> {
        loop {
            let idle = self.shared.idle.lock().pop();
            let Some(mut idle) = idle else { break };
            // One that the server has closed in the meantime is not used again.
            if idle.ready().await.is_ok() {
                return Ok(idle);
            }
        }
        let stream = TcpStream::connect(self.shared.address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Its failure is the request's as well.
        tokio::spawn(async { drop(connection.await) });
        sender.ready().await?;
        Ok(sender)
    }
}

impl Origin for Http1Client {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        to_origin_form(&mut request)?;
        let permit = Arc::clone(&self.shared.free).acquire_owned().await?;
        let mut sender = self.connection().await?;
        let response = sender.send_request(request).await?;
        let returned = Returned { shared: self.shared, sender: Some(sender), _permit: permit };
        Ok(response.map(|body| Body::wrap(ClientBody { body, returned })))
    }
}

/// Names the host in a field, as servers expect it.
fn to_origin_form(request: &mut Request<Body>) -> Result<(), BoxError> {
    let authority = request.uri().authority().ok_or("a URL without a host")?;
    let host = HeaderValue::try_from(authority.as_str())?;
    let path = request.uri().path_and_query().cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    request.headers_mut().insert(HOST, host);
    *request.uri_mut() = Uri::from(path);
    Ok(())
}

/// The body of a response, whose connection is free when it has ended.
struct ClientBody {
    body: Incoming,
    returned: Returned,
}

/// Gives a connection back when its response has been read, and another request its turn.
struct Returned {
    shared: Arc<ClientState>,
    sender: Option<SendRequest<Body>>,
    _permit: OwnedSemaphorePermit,
}

impl HttpBody for ClientBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ClientBody {
    fn drop(&mut self) {
        // A body that was not read to its end would be taken for the next response.
        if self.body.is_end_stream()
            && let Some(sender) = self.returned.sender.take()
        {
            self.returned.shared.idle.lock().push(sender);
        }
    }
}
