//! A proxy, a client and an origin that send bytes as a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haypile::Cache;
use haypile_http::HttpCache;
use haypile_http::proxy::{AccessLog, Limits, Proxy};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longer than any machine needs; what hangs fails after it.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// The reaction of an origin to a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Sends these bytes, and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes, and closes the connection.
    SendAndClose(Vec<u8>),
    /// Sends these bytes, and then nothing more.
    SendAndHang(Vec<u8>),
}

/// An origin. It answers the requests of all connections in the order of its script, the last reply
/// again and again.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) url: String,
    requests: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<String>>>,
    /// The bytes after the heads that are not answered, by connection.
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    pub(crate) async fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let origin =
            Self { url, requests: Arc::default(), seen: Arc::default(), bodies: Arc::default() };
        let (script, own) = (Arc::new(script), origin.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().answer(stream, Arc::clone(&script)));
            }
        });
        origin
    }

    /// Returns one that always sends this body, fresh for a minute.
    pub(crate) async fn fresh(body: &str) -> Self {
        Self::start(vec![Reply::Send(fresh(body))]).await
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// The heads of all requests, as they came.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().clone()
    }

    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().clone()
    }

    async fn answer(self, mut stream: TcpStream, script: Arc<Vec<Reply>>) {
        let mut head = Vec::new();
        while let Ok(byte) = stream.read_u8().await {
            head.push(byte);
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let text = String::from_utf8_lossy(&std::mem::take(&mut head)).to_lowercase();
            if !text.contains(" http/1.1\r\n") {
                // The end of a body in chunks.
                continue;
            }
            self.seen.lock().push(text);
            let number = self.requests.fetch_add(1, Ordering::SeqCst);
            let (bytes, then) = match &script[number.min(script.len() - 1)] {
                Reply::Send(bytes) => (bytes, 0),
                Reply::SendAndClose(bytes) => (bytes, 1),
                Reply::SendAndHang(bytes) => (bytes, 2),
            };
            if stream.write_all(bytes).await.is_err() || then == 1 {
                return;
            }
            if then == 2 {
                let mut body = Vec::new();
                let _ = stream.read_to_end(&mut body).await;
                self.bodies.lock().push(String::from_utf8_lossy(&body).into_owned());
            }
        }
    }
}

/// Returns a whole response that is fresh for a minute.
pub(crate) fn fresh(body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A proxy that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) proxy: Proxy,
    pub(crate) address: String,
    pub(crate) end: Option<oneshot::Sender<()>>,
    pub(crate) served: tokio::task::JoinHandle<usize>,
}

pub(crate) fn short_limits() -> Limits {
    let mut limits = Limits::default();
    limits.first_byte = Duration::from_secs(1);
    limits.pause = Duration::from_secs(1);
    limits.client = Duration::from_secs(1);
    limits
}

pub(crate) async fn proxy(origins: &[&str]) -> Running {
    proxy_on("memory:size=16MiB", origins, Limits::default()).await
}

pub(crate) async fn proxy_on(cache: &str, origins: &[&str], limits: Limits) -> Running {
    logging_proxy(cache, origins, limits, None).await
}

pub(crate) async fn logging_proxy(
    cache: &str,
    origins: &[&str],
    limits: Limits,
    log: Option<AccessLog>,
) -> Running {
    let cache = HttpCache::builder(Cache::open(cache).expect("it opens")).build();
    let origins = origins.iter().map(|origin| origin.parse().expect("an origin")).collect();
    let proxy = Proxy::new(cache, origins, limits, log).expect("different hosts");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (end, ended) = oneshot::channel::<()>();
    let serving = proxy.clone();
    let served = tokio::spawn(async move {
        let ended = async { drop(ended.await) };
        serving.serve(listener, ended, LONG).await
    });
    Running { proxy, address, end: Some(end), served }
}

impl Running {
    /// Sends bytes, and returns all that comes until the proxy closes the connection.
    pub(crate) async fn talk(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("it listens");
        stream.write_all(bytes.as_ref()).await.expect("it reads");
        let mut answer = Vec::new();
        // It may reset the connection, where it has not read all.
        let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it ends");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Asks for a path, and returns the whole response.
    pub(crate) async fn get(&self, path: &str) -> String {
        self.talk(format!("GET {path} HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"))
            .await
    }
}

/// Returns the status of a response, 0 if there is none.
pub(crate) fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

pub(crate) fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}
