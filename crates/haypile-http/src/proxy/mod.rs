//! A caching reverse proxy: HTTP/1.1 in front, HTTP/1.1 with or without TLS to its origins.

mod connection;
mod limits;
mod origins;
mod patience;
mod pause;
mod request;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

pub use limits::Limits;
pub use origins::OriginServer;

use crate::cache::{Body, BoxError, HttpCache};
use origins::{OriginError, Origins};
use patience::Patient;

/// The longest head of a request.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);

/// A caching reverse proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cache: HttpCache,
    origins: Origins,
    limits: Limits,
    /// By which it knows requests that come back.
    name: String,
}

impl Proxy {
    /// Returns a proxy in front of these origins.
    ///
    /// # Errors
    ///
    /// If two of them are for the same host.
    pub fn new(
        cache: HttpCache,
        origins: Vec<OriginServer>,
        limits: Limits,
    ) -> Result<Self, BoxError> {
        let origins = Origins::new(origins, limits)?;
        let name = format!("haypile-{:08x}", rand::random::<u32>());
        Ok(Self { inner: Arc::new(Inner { cache, origins, limits, name }) })
    }

    /// Answers the requests of all connections until `end`; then those that have come, for at most
    /// `grace`. Returns how many connections it had to cut off.
    pub async fn serve(
        &self,
        listener: TcpListener,
        end: impl Future<Output = ()>,
        grace: Duration,
    ) -> usize {
        let connections = GracefulShutdown::new();
        tokio::pin!(end);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut end => break,
            };
            match accepted {
                Ok((stream, client)) => self.connect(stream, client, &connections),
                Err(_) => sleep(REST).await,
            }
        }
        drop(listener);
        let left = connections.count();
        match timeout(grace, connections.shutdown()).await {
            Ok(()) => 0,
            Err(_) => left,
        }
    }

    fn connect(&self, stream: TcpStream, client: SocketAddr, connections: &GracefulShutdown) {
        // Without it, the second write of a response may wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        let limit = self.inner.limits.client;
        let proxy = self.clone();
        let service = service_fn(move |request| {
            let proxy = proxy.clone();
            async move { Ok::<_, Infallible>(proxy.answer(request, client).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limit)
            .max_buf_size(MOST_HEAD_BYTES)
            .serve_connection(Patient::new(TokioIo::new(stream), limit), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            // It ends with the client's, or because the client does not keep to the protocol.
            let _ = connection.await;
        });
    }

    async fn answer(&self, request: Request<Incoming>, client: SocketAddr) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let inner = &*self.inner;
        let host = match request::prepare(&mut parts, client.ip(), &inner.name) {
            Ok(host) => host,
            Err(request::Refused(status, reason)) => return refusal(status, reason),
        };
        let Some(origin) = inner.origins.of(&host) else {
            return refusal(StatusCode::MISDIRECTED_REQUEST, "this host has no origin");
        };
        let body = Body::wrap(pause::limit(body, inner.limits.client));
        let request = Request::from_parts(parts, body);
        let mut response = match inner.cache.answer(origin, request).await {
            Ok(response) => response,
            Err(error) => failure(&error),
        };
        request::append_via(response.headers_mut(), &inner.name);
        // The version is that of this connection, whatever the origin speaks.
        *response.version_mut() = Version::HTTP_11;
        response
    }
}

/// Returns the response to a request that is not passed on. It ends the connection: what follows may
/// not be a request.
fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = text(status, reason);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn failure(error: &BoxError) -> Response<Body> {
    let status = match error.downcast_ref() {
        Some(OriginError::TooSlow(..)) => StatusCode::GATEWAY_TIMEOUT,
        Some(OriginError::Request(..)) => StatusCode::BAD_REQUEST,
        _ => StatusCode::BAD_GATEWAY,
    };
    text(status, &format!("the origin {error}"))
}

fn text(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("haypile: {reason}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
