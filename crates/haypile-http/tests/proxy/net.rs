//! A proxy, a client that sends bytes as a test says, and origins.

use std::path::PathBuf;
use std::time::Duration;

use haypile::Cache;
use haypile_http::proxy::{AccessLog, ErrorLog, Limits, Proxy, Settings};
use haypile_http::{Builder, HttpCache};
use haypile_origin::server::{Kept, Reply, Script, ScriptedOrigin};
use http::Response;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Longer than any machine needs; what hangs fails after it.
pub(crate) const LONG: Duration = Duration::from_mins(1);

/// Returns an origin that answers all requests by one list of replies.
pub(crate) fn origin(replies: impl IntoIterator<Item = Reply>) -> ScriptedOrigin {
    ScriptedOrigin::start(Script::new(replies).keep(Kept::Bodies)).expect("a port")
}

/// Returns one that always sends this body, fresh for a minute.
pub(crate) fn fresh_origin(body: &str) -> ScriptedOrigin {
    origin([fresh(body)])
}

/// Returns a response that is fresh for a minute.
pub(crate) fn fresh(body: &str) -> Reply {
    fields(&[("cache-control", "max-age=60")], body)
}

/// Returns a response with these fields.
pub(crate) fn fields(fields: &[(&str, &str)], body: &str) -> Reply {
    let mut response = Response::builder();
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(body.to_owned()).expect("valid fields").into()
}

/// Returns the heads of all requests that an origin has received, in lower case.
pub(crate) fn heads(origin: &ScriptedOrigin) -> Vec<String> {
    let lower = |head: &[u8]| String::from_utf8_lossy(head).to_lowercase();
    origin.received().iter().map(|request| lower(&request.head)).collect()
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
    let mut settings = Settings::default();
    (settings.limits, settings.access_log) = (limits, log);
    set_up(cache, origins, settings, |builder| builder).await
}

/// Returns a proxy whose cache and settings are as a test wants them.
pub(crate) async fn set_up(
    cache: &str,
    origins: &[&str],
    settings: Settings,
    cached: impl FnOnce(Builder) -> Builder,
) -> Running {
    let cache = cached(HttpCache::builder(Cache::open(cache).expect("it opens"))).build();
    let origins = origins.iter().map(|origin| origin.parse().expect("an origin")).collect();
    let proxy = Proxy::new(cache, origins, settings).expect("different hosts");
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

/// A proxy with an error log.
pub(crate) struct Logged {
    pub(crate) proxy: Running,
    path: PathBuf,
    _folder: TempDir,
}

impl Logged {
    pub(crate) async fn new(origins: &[&str], limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("errors");
        let mut settings = Settings::default();
        settings.limits = limits;
        settings.error_log = Some(ErrorLog::open(&path).expect("it opens"));
        let proxy = set_up("memory:size=16MiB", origins, settings, |builder| builder).await;
        Self { proxy, path, _folder: folder }
    }

    /// Waits until the log has as many lines, and returns the last.
    pub(crate) async fn line(&self, number: usize) -> String {
        let line = async {
            loop {
                let text = std::fs::read_to_string(&self.path).expect("it is there");
                if let Some(line) = text.split_inclusive('\n').nth(number - 1)
                    && line.ends_with('\n')
                {
                    return line.to_owned();
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(LONG, line).await.expect("the line comes")
    }
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
