//! The requests of operators: for metrics, and to forget responses.
//!
//! | request | response |
//! |---|---|
//! | `GET /metrics` | the counts of the proxy and of its cache, in Prometheus' text format |
//! | `POST /purge` with `url=U`, `prefix=P`, `group=G`, `all` as a form, each as often as wanted, and `soft` to make stale | what was purged, a line each |

use std::convert::Infallible;
use std::fmt::{self, Write as _};
use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{sleep, timeout};

use super::{Proxy, REST, text};
use crate::cache::{Body, Purge, PurgeError};

/// The longest list of what to purge.
const MOST_BODY_BYTES: usize = 1 << 20;
/// The scheme of a token, before it: RFC 6750, section 2.1.
const BEARER: &[u8] = b"Bearer ";
/// For the whole of a request, and of its response.
const LIMIT: Duration = Duration::from_secs(30);

/// The address of a proxy's server for operators (metrics, purges): `unix:/run/haypile.sock`, or `127.0.0.1:9090`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// A socket in the file system, for its owner alone.
    Unix(PathBuf),
    /// An address, for all who know the token.
    Tcp(SocketAddr),
}

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("unix:") {
            Some("") => Err("unix: needs a path, for example unix:/run/haypile.sock".into()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                "neither unix:PATH nor ADDRESS:PORT, for example unix:/run/haypile.sock".into()
            }),
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
            Self::Tcp(address) => write!(formatter, "http://{address}"),
        }
    }
}

/// A server for the operators of a proxy (metrics, purges).
#[derive(Debug)]
pub struct Admin {
    proxy: Proxy,
    listener: Listener,
    /// The token that a request has to bring; `None` where the listener keeps others away.
    token: Option<String>,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener, Socketed),
    Tcp(TcpListener),
}

/// The name of a socket, which is removed with it.
#[derive(Debug)]
struct Socketed(PathBuf);

impl Drop for Socketed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Admin {
    /// Listens for requests of a proxy's operators. An address other than a socket of the file system needs a token,
    /// which requests bring as `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    ///
    /// If it cannot listen there, or a token is needed and there is none.
    pub fn bind(proxy: &Proxy, address: &AdminAddress, token: Option<String>) -> io::Result<Self> {
        let listener = match address {
            AdminAddress::Unix(path) => {
                let listener = listen_at(path)?;
                Listener::Unix(UnixListener::from_std(listener)?, Socketed(path.clone()))
            }
            // Who brings none would have an empty one.
            AdminAddress::Tcp(_) if token.as_ref().is_none_or(String::is_empty) => {
                let needed = "an address needs a token; unix:PATH needs none";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, needed));
            }
            AdminAddress::Tcp(address) => {
                let listener = StdTcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                Listener::Tcp(TcpListener::from_std(listener)?)
            }
        };
        Ok(Self { proxy: proxy.clone(), listener, token })
    }

    /// Returns the address on which the operators' server listens, with the actual port if port 0
    /// was asked for.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn address(&self) -> io::Result<AdminAddress> {
        Ok(match &self.listener {
            Listener::Unix(_, Socketed(path)) => AdminAddress::Unix(path.clone()),
            Listener::Tcp(listener) => AdminAddress::Tcp(listener.local_addr()?),
        })
    }

    /// Answers the requests of a proxy's operators until the returned future is dropped.
    pub async fn serve(self) {
        loop {
            let accepted = match &self.listener {
                Listener::Unix(listener, _) => {
                    listener.accept().await.map(|(stream, _)| self.spawn(TokioIo::new(stream)))
                }
                Listener::Tcp(listener) => {
                    listener.accept().await.map(|(stream, _)| self.spawn(TokioIo::new(stream)))
                }
            };
            if accepted.is_err() {
                sleep(REST).await;
            }
        }
    }

    fn spawn(&self, stream: impl Read + Write + Unpin + Send + 'static) {
        let (proxy, token) = (self.proxy.clone(), self.token.clone());
        tokio::spawn(async move {
            let service = service_fn(|request| async {
                Ok::<_, Infallible>(answer(&proxy, token.as_deref(), request).await)
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(LIMIT)
                .keep_alive(false)
                .serve_connection(stream, service);
            let _ = timeout(2 * LIMIT, connection).await;
        });
    }
}

/// Listens on a socket of the file system that only its owner may use, from its first moment on. One
/// that nobody listens on any more makes room.
fn listen_at(path: &PathBuf) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    let address = SockAddr::unix(path)?;
    if let Err(error) = socket.bind(&address) {
        // A connection to what is not a socket is refused as well.
        let is_left_behind = error.kind() == io::ErrorKind::AddrInUse
            && std::fs::symlink_metadata(path)?.file_type().is_socket()
            && StdUnixStream::connect(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if !is_left_behind {
            return Err(error);
        }
        std::fs::remove_file(path)?;
        socket.bind(&address)?;
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(128)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

async fn answer(proxy: &Proxy, token: Option<&str>, request: Request<Incoming>) -> Response<Body> {
    if token.is_some_and(|token| !has_token(request.headers(), token)) {
        let reason = "the token is missing or wrong: Authorization: Bearer TOKEN";
        let mut response = text(StatusCode::UNAUTHORIZED, reason);
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => metrics(proxy).await,
        (&Method::POST, "/purge") => match timeout(LIMIT, purge(proxy, request)).await {
            Ok(response) => response,
            Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the request did not come in time"),
        },
        (_, "/metrics" | "/purge") => {
            text(StatusCode::METHOD_NOT_ALLOWED, "GET /metrics, or POST /purge")
        }
        _ => text(StatusCode::NOT_FOUND, "there is GET /metrics, and POST /purge"),
    }
}

/// Whether a request brings the token. How long it takes does not tell how much of it is right.
fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let brought = headers.get(AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
    let brought = match brought.split_at_checked(BEARER.len()) {
        Some((scheme, brought)) if scheme.eq_ignore_ascii_case(BEARER) => {
            brought.trim_ascii_start()
        }
        _ => b"",
    };
    let differences =
        brought.iter().zip(token.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
    brought.len() == token.len() && differences == 0
}

/// Whether a field without a value of its own is set.
fn is_yes(value: &str) -> bool {
    matches!(value, "" | "yes")
}

async fn metrics(proxy: &Proxy) -> Response<Body> {
    let inner = &proxy.inner;
    let mut all = inner.metrics.prometheus(inner.cache.store_troubles(), inner.origins.down());
    match inner.cache.prometheus().await {
        Some(of_cache) => all.push_str(&of_cache),
        None => all.push_str("# The cache does not say its own counts.\n"),
    }
    let mut response = Response::new(Body::full(all));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn purge(proxy: &Proxy, request: Request<Incoming>) -> Response<Body> {
    let Ok(form) = Limited::new(request.into_body(), MOST_BODY_BYTES).collect().await else {
        return text(StatusCode::PAYLOAD_TOO_LARGE, "the form is too long, or broke off");
    };
    let form = form.to_bytes();
    let fields: Vec<_> = url::form_urlencoded::parse(&form).collect();
    let (soft, asked): (Vec<_>, Vec<_>) = fields.iter().partition(|(field, _)| field == "soft");
    let is_soft = !soft.is_empty();
    if soft.iter().any(|(_, value)| !is_yes(value)) {
        return text(StatusCode::BAD_REQUEST, "soft is for all of the form: soft, or soft=yes");
    }
    if asked.is_empty() {
        let reason = "a form with url=URL, prefix=URL, group=NAME or all says what to purge";
        return text(StatusCode::BAD_REQUEST, reason);
    }
    let mut lines = String::new();
    let mut status = StatusCode::OK;
    for (field, value) in asked {
        let wanted = match &**field {
            "url" => Purge::url(value),
            "prefix" => Purge::prefix(value),
            "group" => Purge::group(value),
            "all" if is_yes(value) => Purge::all(),
            _ => {
                status = StatusCode::BAD_REQUEST;
                lines.push_str(
                    "the fields are url, prefix, group, all and soft; all and soft have no value\n",
                );
                continue;
            }
        };
        let wanted = if is_soft { wanted.soft() } else { wanted };
        let outcome = match proxy.inner.cache.purge(wanted).await {
            Ok(was_there) => {
                proxy.inner.metrics.purged();
                let purged = if is_soft { "stale from now on" } else { "purged" };
                if was_there { purged.to_owned() } else { "nothing was stored".to_owned() }
            }
            Err(error) => {
                let is_store = error == PurgeError::Store;
                let code = if is_store { 503 } else { 400 };
                status = StatusCode::from_u16(code).expect("it is one");
                error.to_string()
            }
        };
        let what = if field == "all" { "all" } else { value };
        let _ = writeln!(lines, "{what}: {outcome}");
    }
    let mut response = Response::new(Body::full(lines));
    *response.status_mut() = status;
    response
}
