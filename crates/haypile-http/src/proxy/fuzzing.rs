//! The proxy between a client and an origin that are both in memory, under a clock that jumps to the
//! end of each wait.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, LazyLock};

use bytes::{Bytes, BytesMut};
use haypile::Cache;
use haypile_origin::server::ReceivedRequest;
use haypile_origin::server::request::{BodyPart, BodyReader, RequestHead};
use http::header::{HOST, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response, Uri};
use http_body::Body as _;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, join, split};
use tokio::runtime::Builder;

use super::raw_targets::{EncodedTargets, Framing};
use super::request::Client;
use super::{Proxy, Settings};
use crate::cache::{Body, BoxError, HttpCache, Origin};

/// A conversation of a client with an origin through the proxy, as a strict parser of HTTP reads it, for fuzzing.
#[derive(Debug)]
pub struct Conversation {
    /// The requests that the client sends, as the strict parser reads them.
    pub sent: Vec<ReceivedRequest>,
    /// Whether the client sends further bytes, after these requests, that may not be one request.
    pub is_doubtful: bool,
    /// The requests that the origin receives from the proxy.
    pub received: Vec<ReceivedRequest>,
    /// Whether the origin receives bytes from the proxy that are not requests.
    pub is_garbled: bool,
    /// All bytes that the client receives from the proxy.
    pub answers: Vec<u8>,
}

/// It stores nothing, so that all requests get to the origin.
static PROXY: LazyLock<Proxy> = LazyLock::new(|| {
    let cache = HttpCache::builder(Cache::open("none:").expect("it stores nothing")).build();
    Proxy::new(cache, Vec::new(), Settings::default()).expect("no two origins of one host")
});

/// Sends bytes to the proxy, which has one origin for all hosts, and waits until it has ended the
/// connection, for fuzzing.
///
/// # Panics
///
/// If it panics, or does not end.
pub fn converse(bytes: &[u8]) -> Conversation {
    let mut client = StrictReader { is_client: true, ..StrictReader::default() };
    client.read(bytes);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without threads");
    let origin = MemoryOrigin::default();
    let answers = runtime.block_on(talk(bytes, origin.clone()));
    // Connections to the origin end with it.
    drop(runtime);
    let connections = std::mem::take(&mut *origin.0.lock());
    Conversation {
        is_garbled: connections.iter().any(|connection| connection.is_doubtful),
        received: connections.into_iter().flat_map(|connection| connection.requests).collect(),
        sent: client.requests,
        is_doubtful: client.is_doubtful,
        answers,
    }
}

async fn talk(bytes: &[u8], origin: MemoryOrigin) -> Vec<u8> {
    let client = Arc::new(Client::new(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let (near, far) = duplex(4 << 10);
    let framing = Framing::new();
    let (read, write) = split(far);
    let far = join(EncodedTargets::new(read, framing.clone()), write);
    let service = service_fn(move |request| {
        framing.note(&request);
        let (origin, client) = (origin.clone(), Arc::clone(&client));
        async move { Ok::<_, Infallible>(PROXY.answer(request, &client, |_| Some(origin)).await) }
    });
    let connection = PROXY.http1().serve_connection(TokioIo::new(far), service);
    let (mut read, mut write) = tokio::io::split(near);
    let mut answers = Vec::new();
    let (served, _, read) = tokio::join!(
        connection,
        // It fails where the proxy has ended the connection.
        write.write_all(bytes),
        read.read_to_end(&mut answers),
    );
    // It fails where the client does not keep to the protocol.
    drop(served);
    read.expect("memory does not fail");
    answers
}

/// An origin that answers each request with the same response, over a connection of its own, and
/// keeps what comes.
#[derive(Clone, Debug, Default)]
struct MemoryOrigin(Arc<Mutex<Vec<StrictReader>>>);

impl Origin for MemoryOrigin {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (near, far) = duplex(4 << 10);
        tokio::spawn(self.answer(far));
        let (mut sender, connection) = http1::handshake(TokioIo::new(near)).await?;
        tokio::spawn(connection);
        let uri = request.uri().clone();
        let host = uri.authority().ok_or("there is no host")?.as_str().parse()?;
        request.headers_mut().insert(HOST, host);
        let body = request.body();
        if !body.is_end_stream() && body.size_hint().exact().is_none() {
            // As real origins get it: hyper sends no body of a GET without it.
            let chunked = HeaderValue::from_static("chunked");
            request.headers_mut().insert(TRANSFER_ENCODING, chunked);
        }
        let path = uri.into_parts().path_and_query.ok_or("there is no path")?;
        *request.uri_mut() = Uri::from(path);
        let response = sender.send_request(request).await?;
        Ok(response.map(Body::wrap))
    }
}

impl MemoryOrigin {
    async fn answer(self, mut stream: DuplexStream) {
        const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        let number = {
            let mut connections = self.0.lock();
            connections.push(StrictReader::default());
            connections.len() - 1
        };
        let mut answered = 0;
        let mut bytes = [0; 1 << 10];
        while let Ok(length @ 1..) = stream.read(&mut bytes).await {
            let whole = {
                let reader = &mut self.0.lock()[number];
                reader.read(&bytes[..length]);
                reader.requests.iter().filter(|request| request.is_whole).count()
            };
            while answered < whole {
                if stream.write_all(ANSWER).await.is_err() {
                    return;
                }
                answered += 1;
            }
        }
    }
}

/// A reader of requests that stops where one is open to interpretation.
#[derive(Debug, Default)]
struct StrictReader {
    requests: Vec<ReceivedRequest>,
    is_doubtful: bool,
    buffer: BytesMut,
    /// Whether targets may have bytes that no URI may have, which the origin gets percent-encoded.
    is_client: bool,
    /// The reader of the last request's body, until the body is complete.
    body: Option<BodyReader>,
}

impl StrictReader {
    fn read(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        while !self.is_doubtful && self.step() {}
    }

    /// Takes the next part from the buffer; returns whether there was one.
    fn step(&mut self) -> bool {
        if let Some(body) = &mut self.body {
            let request = self.requests.last_mut().expect("the body is its");
            match body.take(&mut self.buffer) {
                Ok(BodyPart::Content(part)) => request.body.extend_from_slice(&part),
                Ok(BodyPart::End) => {
                    request.is_whole = true;
                    self.body = None;
                }
                Ok(BodyPart::Missing) => return false,
                Err(_) => self.is_doubtful = true,
            }
            return true;
        }
        if self.is_client {
            encode_target(&mut self.buffer);
        }
        match RequestHead::take(&mut self.buffer) {
            Ok(Some(head)) => {
                self.body = Some(BodyReader::new(head.body));
                let head = Bytes::copy_from_slice(&head.bytes);
                self.requests.push(ReceivedRequest { head, body: Vec::new(), is_whole: false });
            }
            Ok(None) => return false,
            Err(_) => self.is_doubtful = true,
        }
        true
    }
}

/// Percent-encodes the path and query of the first line, if that is there.
fn encode_target(buffer: &mut BytesMut) {
    let begin = buffer.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(buffer.len());
    let Some(length) = buffer[begin..].iter().position(|byte| *byte == b'\n') else { return };
    let (line, rest) = buffer[begin..].split_at(length);
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next())
    else {
        return;
    };
    let slash = |from: usize| target[from..].iter().position(|byte| *byte == b'/');
    let path = if target.starts_with(b"/") {
        0
    } else {
        let second = slash(0).and_then(|first| Some(first + 1 + slash(first + 1)?));
        let Some(second) = second else { return };
        let host = target[second + 1..].iter();
        second + 1 + host.take_while(|byte| !b"/?".contains(byte)).count()
    };
    let mut encoded = [&buffer[..begin], method, b" ", &target[..path]].concat();
    for byte in &target[path..] {
        if b"\"<>\\^`{|}".contains(byte) || !byte.is_ascii() {
            encoded.extend_from_slice(format!("%{byte:02X}").as_bytes());
        } else {
            encoded.push(*byte);
        }
    }
    let encoded = [&encoded[..], b" ", version, rest].concat();
    *buffer = BytesMut::from(&encoded[..]);
}
