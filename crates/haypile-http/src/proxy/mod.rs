//! A caching reverse proxy: HTTP/1.1 in front, HTTP/1.1 with or without TLS to its origins.

mod access_log;
mod admin;
mod batch;
mod connection;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod limits;
mod listen;
mod metrics;
mod origins;
mod patience;
mod pause;
mod request;
mod socket;
mod tunnel;
mod upload;
mod watched;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use access_log::AccessLog;
pub use admin::{Admin, AdminAddress};
pub use limits::Limits;
pub use listen::ListenAddress;
pub use origins::OriginServer;
pub use request::TrustedField;

use crate::cache::{Body, BoxError, Failed, Forwarded, HttpCache, Origin, Status, attach, tell};
use metrics::Metrics;
use origins::{OriginError, Origins};
use patience::Patient;
use request::{Client, OwnName};
use socket::Socket;
use watched::{Watch, Watched};

/// The longest head of a request.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);
/// At the end: for requests that were sent before the client could know of it.
const LAST_REQUESTS: Duration = Duration::from_millis(100);
/// The most connections that are accepted at the end: those that the kernel keeps by default. Clients
/// that connect all the time must not delay it.
const MOST_WAITING_CONNECTIONS: usize = 4096;

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
    metrics: Arc<Metrics>,
    access_log: Option<AccessLog>,
    trusted_fields: Vec<TrustedField>,
    /// By which it knows requests that come back.
    name: OwnName,
}

/// The settings of a [`Proxy`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The bounds on its waits.
    pub limits: Limits,
    /// The log of its requests, if there is one.
    pub access_log: Option<AccessLog>,
    /// The fields of clients that are passed on. An origin whose responses depend on one has to say
    /// so in `Vary`.
    pub trusted_fields: Vec<TrustedField>,
}

impl Proxy {
    /// Returns a proxy in front of these origins.
    ///
    /// # Errors
    ///
    /// If two of them are for the same host, or one speaks TLS and the system has no certificates to
    /// know it by.
    pub fn new(
        cache: HttpCache,
        origins: Vec<OriginServer>,
        settings: Settings,
    ) -> Result<Self, BoxError> {
        let Settings { limits, access_log, trusted_fields } = settings;
        let metrics = Arc::new(Metrics::with_log(access_log.as_ref()));
        let origins = Origins::new(origins, limits, &metrics)?;
        let name = OwnName::new(format!("haypile-{:08x}", rand::random::<u32>()));
        let inner = Inner { cache, origins, limits, metrics, access_log, trusted_fields, name };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the access log again, after somebody has renamed it.
    pub fn reopen_access_log(&self) {
        if let Some(log) = &self.inner.access_log {
            log.reopen();
        }
    }

    /// Answers the requests of all connections until `end`; then those that have come, for at most
    /// `grace`. Returns how many connections it had to cut off.
    pub async fn serve(
        &self,
        listener: TcpListener,
        end: impl Future<Output = ()>,
        grace: Duration,
    ) -> usize {
        let (ending, ends) = watch::channel(());
        tokio::pin!(end);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut end => break,
            };
            match accepted {
                Ok((stream, client)) => self.connect(stream, client, ends.clone()),
                Err(_) => sleep(REST).await,
            }
        }
        for (stream, client) in waiting_connections(listener) {
            self.connect(stream, client, ends.clone());
        }
        drop(ends);
        ending.send_replace(());
        // Each connection that is open holds a receiver.
        match timeout(grace, ending.closed()).await {
            Ok(()) => 0,
            Err(_) => ending.receiver_count(),
        }
    }

    fn connect(&self, stream: TcpStream, client: SocketAddr, mut ends: watch::Receiver<()>) {
        // Without it, the second write of a response may wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        let limit = self.inner.limits.client;
        let client = Arc::new(Client::new(client.ip()));
        let (proxy, served) = (self.clone(), Arc::clone(&client));
        let stream = Socket::new(stream);
        let socket = stream.clone();
        let service = service_fn(move |request| {
            let (proxy, client) = (proxy.clone(), Arc::clone(&served));
            let socket = socket.clone();
            async move {
                let origin_of = |host: &str| proxy.inner.origins.of(host);
                let mut response = tokio::select! {
                    biased;
                    response = proxy.answer(request, &client, origin_of) => response,
                    // Dropping the request logs it as abandoned; the error ends the connection.
                    () = socket.clone().left(limit) => return Err("the client has left"),
                };
                client.announce_end(&mut response);
                Ok(response.map(|body| body.for_client(socket)))
            }
        });
        let stream = Patient::new(TokioIo::new(stream), limit);
        let connection = self.http1().serve_connection(stream, service).with_upgrades();
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            let _open = inner.metrics.connection();
            tokio::pin!(connection);
            let ended = async {
                let _ = ends.changed().await;
                client.end();
                sleep(LAST_REQUESTS).await;
            };
            tokio::select! {
                // It ends with the client's, or because the client does not keep to the protocol.
                _ = connection.as_mut() => return,
                () = ended => connection.as_mut().graceful_shutdown(),
            }
            let _ = connection.await;
            drop(ends);
        });
    }

    /// Returns the settings of clients' connections.
    fn http1(&self) -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .half_close(true)
            .header_read_timeout(self.inner.limits.client)
            .max_header_size(MOST_HEAD_BYTES)
            .max_buf_size(MOST_HEAD_BYTES);
        builder
    }

    async fn answer<O: Origin>(
        &self,
        request: Request<Incoming>,
        client: &Client,
        origin_of: impl FnOnce(&str) -> Option<O>,
    ) -> Response<Watched> {
        let mut watch = Watch::new(&self.inner, &request, client.address);
        let response = self.respond(request, client, origin_of, &mut watch).await;
        watch.follow(response)
    }

    async fn respond<O: Origin>(
        &self,
        mut request: Request<Incoming>,
        client: &Client,
        origin_of: impl FnOnce(&str) -> Option<O>,
        watch: &mut Watch,
    ) -> Response<Body> {
        let upgrade = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        let inner = &*self.inner;
        let upgrade = tunnel::is_asked_for(&parts).then_some(upgrade);
        let host = match request::prepare(&mut parts, client, &inner.name, &inner.trusted_fields) {
            Ok(host) => host,
            Err(request::Refused(status, reason)) => return refusal(status, reason),
        };
        let Some(origin) = origin_of(&host) else {
            return refusal(StatusCode::MISDIRECTED_REQUEST, "this host has no origin");
        };
        watch.has_target(&parts.uri);
        let body = Body::wrap(pause::limit(body, inner.limits.client, inner.limits.body));
        let answered = if let Some(upgrade) = upgrade {
            tunnel::add_fields(&mut parts.headers);
            let why = Forwarded::Bypass;
            let answered = Box::pin(origin.send(Request::from_parts(parts, body))).await;
            answered.map_err(|error| Failed { why, error }).map(|mut response| {
                tunnel::join(&self.inner, upgrade, &mut response);
                tell(&mut response, Status::forwarded(why));
                response
            })
        } else {
            inner.cache.try_answer(origin, Request::from_parts(parts, body)).await
        };
        let mut response = answered.unwrap_or_else(|failed| failure(&failed));
        let version = response.version();
        inner.name.append_to(response.headers_mut(), version);
        // The version is that of this connection, whatever the origin speaks.
        *response.version_mut() = Version::HTTP_11;
        response
    }
}

/// Returns the connections that the kernel has accepted, and then refuses others.
fn waiting_connections(listener: TcpListener) -> Vec<(TcpStream, SocketAddr)> {
    let Ok(listener) = listener.into_std() else { return Vec::new() };
    let accept = || {
        let (stream, client) = listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(stream).ok()?, client))
    };
    std::iter::from_fn(accept).take(MOST_WAITING_CONNECTIONS).collect()
}

/// Returns the response to a request that is not passed on. It ends the connection: what follows may
/// not be a request.
fn refusal(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = text(status, reason);
    attach(&mut response, Status::refused(reason));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Returns the response to a request to which none comes from the origin.
fn failure(Failed { why, error }: &Failed) -> Response<Body> {
    let (status, detail) = match error.downcast_ref() {
        Some(OriginError::TooSlow(..)) => {
            (StatusCode::GATEWAY_TIMEOUT, "the origin does not answer in time")
        }
        Some(OriginError::Request(..)) => (StatusCode::BAD_REQUEST, "the request breaks off"),
        _ => (StatusCode::BAD_GATEWAY, "the origin cannot be reached, or breaks off"),
    };
    let mut response = text(status, &format!("the origin {error}"));
    attach(&mut response, Status::failed(*why, detail));
    response
}

fn text(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("haypile: {reason}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
