//! An origin on a socket that sends bytes as a test says.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came, the head in lower case.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// Returns a field; empty if it is not there.
    pub(crate) fn field(&self, name: &str) -> &str {
        let fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.into_iter().find(|(other, _)| *other == name).map_or("", |(_, value)| value)
    }
}

/// The reaction of an origin to a request.
pub(crate) enum Reply {
    Send(Vec<u8>),
    SendAndClose(Vec<u8>),
    SendAndHang(Vec<u8>),
}

type Answering = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

#[derive(Clone)]
pub(crate) struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Returns an origin that answers request number 0, 1, ... so.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Self { url, seen: Arc::default() };
        let (own, answer) = (server.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(own.clone().talk(stream, answer.clone()));
            }
        });
        server
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().len()
    }

    async fn talk(self, mut stream: TcpStream, answer: Arc<Answering>) {
        while let Some(seen) = read(&mut stream).await {
            let number = {
                let mut all = self.seen.lock();
                all.push(seen.clone());
                all.len() - 1
            };
            let (bytes, goes_on) = match answer(number, &seen) {
                Reply::Send(bytes) => (bytes, true),
                Reply::SendAndClose(bytes) => (bytes, false),
                Reply::SendAndHang(bytes) => {
                    let _ = stream.write_all(&bytes).await;
                    let _ = stream.read_to_end(&mut Vec::new()).await;
                    return;
                }
            };
            if stream.write_all(&bytes).await.is_err() || !goes_on {
                return;
            }
        }
    }
}

/// Reads a request; `None` at the end of the connection.
async fn read(stream: &mut TcpStream) -> Option<Seen> {
    let head = read_until(stream, "\r\n\r\n").await?.to_lowercase();
    let mut seen = Seen { head, body: String::new() };
    if seen.field("transfer-encoding") == "chunked" {
        loop {
            let size = read_until(stream, "\r\n").await?;
            let size = usize::from_str_radix(size.trim(), 16).expect("the size of a chunk");
            let chunk = read_bytes(stream, size + 2).await?;
            seen.body.push_str(&chunk[..size]);
            if size == 0 {
                return Some(seen);
            }
        }
    }
    let length = seen.field("content-length").parse().unwrap_or(0);
    seen.body = read_bytes(stream, length).await?;
    Some(seen)
}

async fn read_until(stream: &mut TcpStream, end: &str) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        text.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(text).ok()
}

async fn read_bytes(stream: &mut TcpStream, length: usize) -> Option<String> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await.ok()?;
    String::from_utf8(bytes).ok()
}

/// Returns a response of known length.
pub(crate) fn response(status: u16, fields: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
    let body = body.as_ref();
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let (length, fields) = (body.len(), fields.concat());
    let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{fields}\r\n");
    Reply::Send([head.as_bytes(), body].concat())
}
