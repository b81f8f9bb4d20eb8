//! An origin server for tests and experiments: it answers by a script, fails as the script says, and
//! counts.
//!
//! It speaks HTTP/1.1, or HTTP/2 where the script [says so](Script::over_http2), over TCP on a free
//! port of 127.0.0.1, and over [TLS](Script::with_tls) on another one, keeps connections alive, and runs until it is
//! dropped. It is strict about requests: one whose end is open to interpretation ends the
//! connection and is counted as unreadable, so that a test of what stands in front of it sees that.
//!
//! ```
//! use haypile_origin::server::{Kept, Reply, Script, ScriptedOrigin};
//! use http::{Response, StatusCode};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let page = Response::builder().header("cache-control", "max-age=60").body("a page")?;
//! let script = Script::new([Reply::empty(StatusCode::NOT_FOUND)]).on("/page", [page]).keep(Kept::Heads);
//! let origin = ScriptedOrigin::start(script)?;
//! // Clients send requests to origin.url().
//! assert_eq!(origin.requests_for("/page"), 0);
//! origin.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! Several hosts can lead to one server, as the resources of a page do in an experiment:
//!
//! ```
//! use haypile_origin::server::{BodySource, Script};
//! use http::Response;
//!
//! let picture = Response::new(BodySource::generated(48 << 10, 7));
//! let script = Script::new([Response::new("any other")])
//!     .on_host("example.org", "/", [Response::new("a page")])
//!     .on_host("cdn.example.org", "/picture", [picture]);
//! ```

mod body;
mod conditions;
mod connection;
mod counts;
mod http2;
mod records;
mod reply;
pub mod request;
mod script;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use connection::{ClientStream, Connection};
use http2::Http2Connection;
use records::Records;
use script::Scheme;

use crate::running::{Running, listen};

pub use body::BodySource;
pub use counts::{OriginCounts, PathCounts};
pub use http2::MAX_STREAMS;
pub use records::ReceivedRequest;
pub use reply::{Ending, Framing, Reply};
pub use script::{Kept, Script};
pub use tls::{Alpn, HANDSHAKE_LIMIT, TlsAuthority, TlsIdentity};

/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);

/// A running HTTP origin server with scripted replies, for tests and measurements. Dropping it
/// closes its connections.
#[derive(Debug)]
pub struct ScriptedOrigin {
    url: String,
    address: SocketAddr,
    tls_address: Option<SocketAddr>,
    records: Arc<Records>,
    running: Running,
}

impl ScriptedOrigin {
    /// Starts an origin server on the caller's async runtime.
    ///
    /// # Errors
    ///
    /// If the caller has no runtime, or there is no free port.
    pub fn start(script: Script) -> io::Result<Self> {
        let records = Arc::new(Records::new(&script));
        let of_server = Arc::clone(&records);
        let (running, addresses) = Running::on_runtime(|ended| open(script, of_server, ended))?;
        Ok(Self::new(addresses, records, running))
    }

    /// Starts an origin server on a separate thread with its own async runtime, so that it does not
    /// use the threads of the measured program.
    ///
    /// # Errors
    ///
    /// If there is no free port, or the thread cannot be started.
    pub fn start_in_thread(script: Script) -> io::Result<Self> {
        let records = Arc::new(Records::new(&script));
        let of_server = Arc::clone(&records);
        let (running, addresses) =
            Running::in_thread("origin", |ended| open(script, of_server, ended))?;
        Ok(Self::new(addresses, records, running))
    }

    fn new(
        (address, tls_address): (SocketAddr, Option<SocketAddr>),
        records: Arc<Records>,
        running: Running,
    ) -> Self {
        Self { url: format!("http://{address}"), address, tls_address, records, running }
    }

    /// Stops the origin server, and waits until its connections are closed and its tasks have
    /// ended. Dropping it ends the tasks as well, without waiting for them.
    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Returns the server's URL, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address that the server listens on for TLS, if the script has [it](Script::with_tls).
    pub fn tls_address(&self) -> Option<SocketAddr> {
        self.tls_address
    }

    /// Returns the number of all requests whose heads the server has received.
    pub fn requests(&self) -> u64 {
        self.records.requests()
    }

    /// Returns the number of requests that the server has received for a path with its query, exactly as clients sent
    /// it, over all hosts.
    pub fn requests_for(&self, path: &str) -> u64 {
        self.records.requests_for(path)
    }

    /// Returns the number of requests that the server has received, by path with query; only requested paths are
    /// included.
    pub fn requests_by_path(&self) -> BTreeMap<String, u64> {
        self.records.requests_by_path()
    }

    /// Returns the number of requests that the server has received for a host (in any case, with or without a port) and
    /// a path with its query, if [`Script::on_host`] names both together; otherwise 0.
    pub fn requests_for_host(&self, host: &str, path: &str) -> u64 {
        self.counts_for_host(host, path).requests
    }

    /// Returns the counts of requests and bytes for a host and path that [`Script::on_host`] names; zeros for any
    /// other.
    pub fn counts_for_host(&self, host: &str, path: &str) -> PathCounts {
        self.records.counts_for_host(Scheme::Http, host, path)
    }

    /// Returns the counts of a host and path that [`Script::on_https_host`] names, of requests over TLS; zeros for any
    /// other.
    pub fn counts_for_https_host(&self, host: &str, path: &str) -> PathCounts {
        self.records.counts_for_host(Scheme::Https, host, path)
    }

    /// Returns the counts of requests and bytes for every host and path that [`Script::on_host`] names, including
    /// zeros.
    pub fn counts_by_host(&self) -> BTreeMap<(String, String), PathCounts> {
        self.records.counts_by_host()
    }

    /// Returns the current counts of the server. The difference of two shows what happened in
    /// between. Each is exact, but they are read one after the other: they fit each other once no
    /// reply is under way. A reply that a client has read to its end has been counted.
    pub fn counts(&self) -> OriginCounts {
        self.records.counts()
    }

    /// Returns the requests that the server has recorded, in the order in which their heads were
    /// received: all since the start, if [`Kept`] says so.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.records.received()
    }

    /// Returns the number of connections that the server ended because their bytes were not a request, were too long,
    /// or were ambiguous. It stays 0 with HTTP/2, which has its own errors for that.
    pub fn unreadable(&self) -> u64 {
        self.records.unreadable()
    }

    /// Returns the number of bytes of bodies that the server has sent; heads, the framing of chunks and [raw
    /// bytes](Reply::raw) do not count. A part of at most 64 KiB that is being sent counts as a whole until its client
    /// refuses it.
    pub fn body_bytes_sent(&self) -> u64 {
        self.records.body_bytes_sent()
    }

    /// Returns the number of connections that the server has accepted; of those with TLS, the ones whose handshake
    /// succeeded.
    pub fn connections(&self) -> u64 {
        self.records.connections()
    }

    /// Returns the number of open connections to the server.
    pub fn open_connections(&self) -> u64 {
        self.records.open_connections()
    }
}

/// The sockets of a server.
struct Listeners {
    plain: TcpListener,
    tls: Option<(TcpListener, TlsAcceptor)>,
}

impl Listeners {
    /// Waits for the next connection; with what shakes hands, if it is one with TLS.
    async fn accept(&self) -> io::Result<(TcpStream, Option<TlsAcceptor>)> {
        let Some((tls, acceptor)) = &self.tls else {
            return Ok((self.plain.accept().await?.0, None));
        };
        tokio::select! {
            accepted = self.plain.accept() => Ok((accepted?.0, None)),
            accepted = tls.accept() => Ok((accepted?.0, Some(acceptor.clone()))),
        }
    }
}

/// Listens on a free port, and on another one for TLS. Returns what answers there, and the addresses.
fn open(
    script: Script,
    records: Arc<Records>,
    ended: oneshot::Receiver<()>,
) -> io::Result<(impl Future<Output = ()> + Send + 'static, (SocketAddr, Option<SocketAddr>))> {
    let (plain, address) = listen()?;
    let tls = script.tls.as_ref().map(|tls| {
        let acceptor = tls.acceptor(script.hosts.hosts(Scheme::Https))?;
        let (listener, address) = listen()?;
        Ok::<_, io::Error>(((listener, acceptor), address))
    });
    let (tls, tls_address) = tls.transpose()?.unzip();
    let listeners = Listeners { plain, tls };
    Ok((serve(listeners, Arc::new(script), records, ended), (address, tls_address)))
}

/// Answers the requests of all connections. Where this future is dropped, its connections end too.
async fn serve(
    listeners: Listeners,
    script: Arc<Script>,
    records: Arc<Records>,
    mut ended: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listeners.accept() => match accepted {
                Ok((stream, tls)) => {
                    let (script, records) = (Arc::clone(&script), Arc::clone(&records));
                    if let Some(acceptor) = tls {
                        connections.spawn(run_over_tls(stream, acceptor, script, records));
                    } else {
                        let is_http2 = script.is_http2;
                        connections.spawn(run(stream, is_http2, script, records));
                    }
                }
                Err(_) => tokio::time::sleep(REST).await,
            },
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => {}
            _ = &mut ended => break,
        }
    }
    drop(listeners);
    connections.shutdown().await;
}

/// Shakes hands with a client, and answers its requests.
async fn run_over_tls(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    script: Arc<Script>,
    records: Arc<Records>,
) {
    match tls::shake_hands(acceptor, stream).await {
        Some((stream, is_http2)) => run(stream, is_http2, script, records).await,
        None => records.note_failed_handshake(),
    }
}

/// Answers the requests of a connection until one side ends it.
async fn run<S: ClientStream + Send + 'static>(
    stream: S,
    is_http2: bool,
    script: Arc<Script>,
    records: Arc<Records>,
) {
    if is_http2 {
        Http2Connection::new(stream, script, records).run().await;
    } else {
        Connection::new(stream, script, records).run().await;
    }
}
