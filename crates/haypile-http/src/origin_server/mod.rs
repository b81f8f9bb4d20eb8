//! An origin server for tests and experiments: it answers by a script, fails as the script says, and
//! counts.
//!
//! It speaks HTTP/1.1 over TCP on a free port of 127.0.0.1, keeps connections alive, and runs until
//! it is dropped. It is strict about requests: one whose end is open to interpretation ends the
//! connection and is counted as unreadable, so that a test of what stands in front of it sees that.
//!
//! ```
//! use haypile_http::origin_server::{Kept, Reply, Script, ScriptedOrigin};
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

mod connection;
mod records;
mod reply;
pub(crate) mod request;
mod script;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use connection::Connection;
use records::Records;

pub use records::ReceivedRequest;
pub use reply::{BodySource, Ending, Framing, Reply};
pub use script::{Kept, Script};

/// After a failure to accept a connection, such as too many open files.
const REST: Duration = Duration::from_millis(50);

/// A running origin server. Dropping it closes its connections.
#[derive(Debug)]
pub struct ScriptedOrigin {
    url: String,
    address: SocketAddr,
    records: Arc<Records>,
    running: Option<Running>,
}

/// Where the server runs, and how it is ended.
#[derive(Debug)]
enum Running {
    Task { end: oneshot::Sender<()>, task: JoinHandle<()> },
    Thread { end: oneshot::Sender<()>, thread: thread::JoinHandle<()> },
}

impl ScriptedOrigin {
    /// Starts a server on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// If the caller has no runtime, or there is no free port.
    pub fn start(script: Script) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let (listener, address) = listen()?;
        let listener = TcpListener::from_std(listener)?;
        let (records, script) = (Arc::new(Records::new(&script)), Arc::new(script));
        let (end, ended) = oneshot::channel();
        let task = runtime.spawn(serve(listener, script, Arc::clone(&records), ended));
        Ok(Self::new(address, records, Running::Task { end, task }))
    }

    /// Starts a server on a thread with a runtime of its own, so that its work is not done by the
    /// threads of what is measured.
    ///
    /// # Errors
    ///
    /// If there is no free port, or the thread cannot be started.
    pub fn start_in_thread(script: Script) -> io::Result<Self> {
        let (listener, address) = listen()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener)?
        };
        let (records, script) = (Arc::new(Records::new(&script)), Arc::new(script));
        let (end, ended) = oneshot::channel();
        let of_server = Arc::clone(&records);
        let run = move || runtime.block_on(serve(listener, script, of_server, ended));
        let thread = thread::Builder::new().name("origin".into()).spawn(run)?;
        Ok(Self::new(address, records, Running::Thread { end, thread }))
    }

    fn new(address: SocketAddr, records: Arc<Records>, running: Running) -> Self {
        Self { url: format!("http://{address}"), address, records, running: Some(running) }
    }

    /// Ends the server, and waits until its connections are closed and its tasks are gone. Dropping
    /// it ends the tasks as well, without waiting for them.
    pub async fn stop(mut self) {
        if let Some(Running::Task { end, task }) = self.running.take() {
            // A failure to send or to join: it has ended already.
            let _ = end.send(());
            let _ = task.await;
        }
        // Dropping it waits for a thread.
    }

    /// Returns `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of all requests whose heads have come.
    pub fn requests(&self) -> u64 {
        self.records.requests()
    }

    /// Returns the number of requests for a path with its query, exactly as clients sent it.
    pub fn requests_for(&self, path: &str) -> u64 {
        self.records.requests_for(path)
    }

    /// Returns the number of requests by path with query; paths that nobody asked for are not in it.
    pub fn requests_by_path(&self) -> BTreeMap<String, u64> {
        self.records.requests_by_path()
    }

    /// Returns the requests that the server has kept, in the order in which their heads came: all
    /// since the start, if [`Kept`] says so.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.records.received()
    }

    /// Returns the number of connections that ended because what came over them was not a request
    /// or was too long, or because the end of its body was open to interpretation.
    pub fn unreadable(&self) -> u64 {
        self.records.unreadable()
    }

    /// Returns the number of bytes of bodies that went out; heads, the marks between chunks and
    /// [raw bytes](Reply::raw) do not count.
    pub fn body_bytes_sent(&self) -> u64 {
        self.records.body_bytes_sent()
    }

    /// Returns the number of connections that the server has accepted.
    pub fn connections(&self) -> u64 {
        self.records.connections()
    }

    /// Returns the number of accepted connections that have not ended yet.
    pub fn open_connections(&self) -> u64 {
        self.records.open_connections()
    }
}

impl Drop for ScriptedOrigin {
    fn drop(&mut self) {
        match self.running.take() {
            Some(Running::Task { task, .. }) => task.abort(),
            Some(Running::Thread { end, thread }) => {
                let _ = end.send(());
                // It fails if the thread has panicked, which has been reported then.
                let _ = thread.join();
            }
            None => {}
        }
    }
}

fn listen() -> io::Result<(StdListener, SocketAddr)> {
    let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Answers the requests of all connections. Where this future is dropped, its connections end too.
async fn serve(
    listener: TcpListener,
    script: Arc<Script>,
    records: Arc<Records>,
    mut ended: oneshot::Receiver<()>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let connection =
                        Connection::new(stream, Arc::clone(&script), Arc::clone(&records));
                    connections.spawn(connection.run());
                }
                Err(_) => tokio::time::sleep(REST).await,
            },
            // Those that have ended are forgotten.
            Some(_) = connections.join_next() => {}
            _ = &mut ended => break,
        }
    }
    drop(listener);
    connections.shutdown().await;
}
