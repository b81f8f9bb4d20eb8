//! A caching reverse proxy: HTTP/1.1 in front, HTTP/1.1 with or without TLS to its origins.

mod access_log;
mod admin;
mod batch;
mod connection;
mod error_log;
mod expect;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod health;
mod limits;
mod listen;
mod log_file;
mod metrics;
mod origins;
mod patience;
mod pause;
mod raw_targets;
mod request;
mod socket;
mod tunnel;
mod upload;
mod watched;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::join;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use access_log::AccessLog;
pub use admin::{Admin, AdminAddress};
pub use error_log::ErrorLog;
pub use health::DownAfter;
pub use limits::Limits;
pub use listen::ListenAddress;
pub use origins::OriginServer;
pub use request::TrustedField;

use crate::cache::{
    Body, BoxError, Failed, Forwarded, HttpCache, NotAnswered, Origin, Status, attach, causes,
    on_heap, tell,
};
use error_log::ErrorLine;
use expect::ExpectsContinue;
use metrics::Metrics;
use origins::{OriginError, Origins};
use patience::Patient;
use raw_targets::{EncodedTargets, Framing};
use request::{Client, OwnName};
use socket::Socket;
use watched::{Watch, Watched};

/// The longest head of a request.
const MOST_HEAD_BYTES: usize = 64 << 10;
/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);
/// At the end: for requests that were sent before the client could know of it.
const LAST_REQUESTS: Duration = Duration::from_millis(100);
/// The id of a line of the error log whose page has none.
const NO_ID: &str = "-";
/// The most connections that are accepted at the end: those that the kernel keeps by default. Clients
/// that connect all the time must not delay it.
const MOST_WAITING_CONNECTIONS: usize = 4096;

/// A caching HTTP reverse proxy.
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
    error_log: Option<ErrorLog>,
    trusted_fields: Vec<TrustedField>,
    /// The name by which the proxy recognizes requests that come back.
    name: OwnName,
    /// Whether the proxy has ended while requests were still without a response.
    is_over: AtomicBool,
}

/// The settings of a [`Proxy`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The time limits of the proxy's waits, for origins and for clients.
    pub limits: Limits,
    /// The access log, which has a line for each request; `None` for no log.
    pub access_log: Option<AccessLog>,
    /// The error log of failures and refused requests; `None` for no log.
    pub error_log: Option<ErrorLog>,
    /// The conditions under which an origin counts as down, so that most requests are not sent to
    /// it.
    pub down_after: DownAfter,
    /// The header fields of clients that are forwarded to origins although they could change which response an origin
    /// returns. An origin whose responses depend on one has to say so in `Vary`.
    pub trusted_fields: Vec<TrustedField>,
}

impl Proxy {
    /// Creates a caching reverse proxy in front of the given origin servers.
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
        let Settings { limits, access_log, error_log, down_after, trusted_fields } = settings;
        let metrics = Arc::new(Metrics::with_log(access_log.as_ref()));
        let origins = Origins::new(origins, limits, down_after, &metrics)?;
        let name = OwnName::new(format!("haypile-{:08x}", rand::random::<u32>()));
        let is_over = AtomicBool::new(false);
        let inner = Inner {
            cache,
            origins,
            limits,
            metrics,
            access_log,
            error_log,
            trusted_fields,
            name,
            is_over,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens the proxy's log files again, after log rotation has renamed them.
    pub fn reopen_logs(&self) {
        if let Some(log) = &self.inner.access_log {
            log.reopen();
        }
        if let Some(log) = &self.inner.error_log {
            log.reopen();
        }
    }

    /// Answers the requests of all clients until `end`, then those that have already come, for at most `grace`. Returns
    /// the number of connections that it had to cut off.
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
        if timeout(grace, ending.closed()).await.is_ok() {
            return 0;
        }
        self.inner.is_over.store(true, Ordering::Relaxed);
        ending.receiver_count()
    }

    fn connect(&self, stream: TcpStream, client: SocketAddr, mut ends: watch::Receiver<()>) {
        // Without it, the second write of a response may wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        let limit = self.inner.limits.client;
        let client = Arc::new(Client::new(client.ip()));
        let (proxy, served) = (self.clone(), Arc::clone(&client));
        let stream = Socket::new(stream);
        let socket = stream.clone();
        let framing = Framing::new();
        let stream = join(EncodedTargets::new(stream.clone(), framing.clone()), stream);
        let service = service_fn(move |request| {
            framing.note(&request);
            let (proxy, client) = (proxy.clone(), Arc::clone(&served));
            let socket = socket.clone();
            // On the heap: each idle connection would have room for it.
            on_heap(|| async move {
                let origin_of = |host: &str| proxy.inner.origins.of(host);
                let mut response = tokio::select! {
                    biased;
                    response = proxy.answer(request, &client, origin_of) => response,
                    // Dropping the request logs it as abandoned; the error ends the connection.
                    () = socket.clone().left(limit) => return Err("the client has left"),
                };
                client.announce_end(&mut response);
                Ok(response.map(|body| body.for_client(socket)))
            })
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
                ended = connection.as_mut() => {
                    if let Some(error) = ended.err().filter(hyper::Error::is_parse) {
                        inner.refuse_bytes(client.address, &error);
                    }
                    return;
                }
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
        let response = match self.respond(request, client, origin_of, &mut watch).await {
            Ok(response) => response,
            Err(Unanswered { response, request: (method, uri), id, cause }) => {
                self.inner.log_error(|| ErrorLine {
                    id: &id,
                    client: client.address,
                    status: response.status().as_u16(),
                    request: Some((&method, &uri)),
                    cause: &cause,
                });
                response
            }
        };
        watch.follow(response)
    }

    async fn respond<O: Origin>(
        &self,
        mut request: Request<Incoming>,
        client: &Client,
        origin_of: impl FnOnce(&str) -> Option<O>,
        watch: &mut Watch,
    ) -> Result<Response<Body>, Unanswered> {
        let upgrade = hyper::upgrade::on(&mut request);
        let (mut parts, body) = request.into_parts();
        let inner = &*self.inner;
        let upgrade = tunnel::is_asked_for(&parts).then_some(upgrade);
        let only_host = || inner.origins.only_host();
        let fields = &inner.trusted_fields;
        let is_expected = !body.is_end_stream() && expect::is_expected(&parts);
        let prepared = request::prepare(&mut parts, client, &inner.name, fields, only_host);
        let host = match prepared {
            Ok(host) => host,
            Err(request::Refused(status, reason)) => return Err(refusal(&parts, status, reason)),
        };
        let Some(origin) = origin_of(&host) else {
            let reason = "this host has no origin";
            return Err(refusal(&parts, StatusCode::MISDIRECTED_REQUEST, reason));
        };
        watch.has_target(&parts.uri);
        if is_expected {
            parts.extensions.insert(ExpectsContinue);
        }
        let request = (parts.method.clone(), parts.uri.clone());
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
        let finish = |response: &mut Response<Body>| {
            let version = response.version();
            inner.name.append_to(response.headers_mut(), version);
            // The version is that of this connection, whatever the origin speaks.
            *response.version_mut() = Version::HTTP_11;
        };
        match answered {
            Ok(mut response) => {
                finish(&mut response);
                Ok(response)
            }
            Err(failed) => {
                let mut unanswered = failure(request, &failed);
                finish(&mut unanswered.response);
                Err(unanswered)
            }
        }
    }
}

impl Inner {
    /// Takes note of bytes that are not a request, to which the connection answers itself.
    fn refuse_bytes(&self, client: IpAddr, error: &hyper::Error) {
        let status = if error.is_parse_too_large() { 431 } else { 400 };
        self.metrics.responded(None, status, 0, Duration::ZERO);
        let cause = causes(error);
        self.log_error(|| ErrorLine { id: NO_ID, client, status, request: None, cause: &cause });
    }

    /// Writes a line into the error log, if there is one.
    fn log_error<'a>(&self, line: impl FnOnce() -> ErrorLine<'a>) {
        if let Some(log) = &self.error_log {
            log.log(&line());
        }
    }
}

/// The proxy's own response to a request that has no other, and what only operators learn.
struct Unanswered {
    response: Response<Body>,
    /// The method and the target of the request.
    request: (Method, Uri),
    /// The identifier of the failure, which is shown in the page and in the log.
    id: String,
    cause: String,
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
fn refusal(parts: &http::request::Parts, status: StatusCode, reason: &str) -> Unanswered {
    let mut response = text(status, reason);
    attach(&mut response, Status::refused(reason));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let request = (parts.method.clone(), parts.uri.clone());
    Unanswered { response, request, id: NO_ID.into(), cause: reason.into() }
}

/// Returns the response to a request to which none comes from the origin. Where that is, and how it
/// fails, is for operators.
fn failure(request: (Method, Uri), Failed { why, error }: &Failed) -> Unanswered {
    let kind = error.downcast_ref::<OriginError>();
    let cause = kind.map_or_else(|| format!("the origin {error}"), ToString::to_string);
    let (status, detail) = match kind {
        Some(OriginError::TooSlow(..)) => {
            (StatusCode::GATEWAY_TIMEOUT, "the origin does not answer in time")
        }
        Some(OriginError::Request(..)) => (StatusCode::BAD_REQUEST, "the request breaks off"),
        Some(OriginError::NotConnected(..)) => {
            (StatusCode::BAD_GATEWAY, "the origin cannot be reached")
        }
        Some(OriginError::Down(..)) => (StatusCode::SERVICE_UNAVAILABLE, "the origin is down"),
        None if error.is::<NotAnswered>() => {
            (StatusCode::GATEWAY_TIMEOUT, "the origin does not answer")
        }
        _ => (StatusCode::BAD_GATEWAY, "the origin breaks off"),
    };
    let id = format!("{:016x}", rand::random::<u64>());
    let mut reason = detail.to_owned();
    if let Some(OriginError::Request(_, cause)) = kind {
        // That is about the client's own side.
        reason = format!("{reason}: {cause}");
    }
    let mut response = text(status, &format!("{reason} (id {id})"));
    if let Some(OriginError::Down(_, pause)) = kind {
        let seconds = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    attach(&mut response, Status::failed(*why, detail));
    Unanswered { response, request, id, cause }
}

fn text(status: StatusCode, reason: &str) -> Response<Body> {
    let mut response = Response::new(Body::full(format!("haypile: {reason}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
