//! The origin server, as a client sees it through a raw socket.

mod hosts_and_counts;
mod http2;
mod tls;

use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haypile_origin::server::{BodySource, Ending, Framing, Kept, Reply, Script, ScriptedOrigin};
use http::{Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Longer than any machine needs; what hangs fails after it.
const LONG: Duration = Duration::from_mins(1);
/// A server that hangs is seen to do so for this long.
const SHORT: Duration = Duration::from_millis(100);

const GET: &str = "GET / HTTP/1.1\r\n\r\n";

fn start(replies: impl IntoIterator<Item = Reply>) -> ScriptedOrigin {
    let script = Script::new(replies).keep(Kept::Bodies);
    ScriptedOrigin::start(script).expect("a port")
}

fn ok(body: impl Into<BodySource>) -> Reply {
    Response::new(body.into()).into()
}

fn fields(fields: &[(&str, &str)], body: &'static str) -> Reply {
    let mut response = Response::builder();
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(body).expect("valid fields").into()
}

struct Client(TcpStream);

/// The way in which a server has ended a connection.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
}

impl Client {
    async fn of(origin: &ScriptedOrigin) -> Self {
        Self(TcpStream::connect(origin.address()).await.expect("it listens"))
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("it reads");
    }

    /// Returns exactly these many bytes.
    async fn take(&mut self, bytes: usize) -> String {
        let mut answer = vec![0; bytes];
        let read = timeout(LONG, self.0.read_exact(&mut answer)).await.expect("it answers");
        read.expect("it goes on");
        String::from_utf8(answer).expect("text")
    }

    /// Sends a request, and checks that exactly this comes.
    async fn expect(&mut self, request: impl AsRef<[u8]>, answer: &str) {
        self.send(request).await;
        assert_eq!(self.take(answer.len()).await, answer);
    }

    /// Returns all that comes until the server ends the connection.
    async fn rest(&mut self) -> (Vec<u8>, End) {
        let mut answer = Vec::new();
        let read = timeout(LONG, self.0.read_to_end(&mut answer)).await.expect("it ends");
        (answer, if read.is_ok() { End::Closed } else { End::Reset })
    }

    /// Returns all that comes to one request until the server ends the connection.
    async fn talk(&mut self, request: impl AsRef<[u8]>) -> (String, End) {
        self.send(request).await;
        let (answer, end) = self.rest().await;
        (String::from_utf8(answer).expect("text"), end)
    }

    async fn is_silent(&mut self) -> bool {
        timeout(SHORT, self.0.read_u8()).await.is_err()
    }
}

/// Returns all that a server sends to one request, until it ends the connection.
async fn talk(origin: &ScriptedOrigin, request: impl AsRef<[u8]>) -> (String, End) {
    Client::of(origin).await.talk(request).await
}

fn whole(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn replies_come_in_order_and_the_last_repeats() {
    let script = Script::new([ok("1"), ok("2")]).on("/a?b", [ok("a1"), ok("a2")]);
    let origin = ScriptedOrigin::start(script).expect("a port");
    let mut client = Client::of(&origin).await;
    for (path, body) in [
        ("/x", "1"),
        ("/a?b", "a1"),
        ("/a?c", "2"),
        ("http://a/a?b", "a2"),
        ("/x", "2"),
        ("/a?b", "a2"),
    ] {
        client.expect(format!("GET {path} HTTP/1.1\r\n\r\n"), &whole(body)).await;
    }
    let counts = [("/x", 2), ("/a?b", 3), ("/a?c", 1)];
    let by_path = counts.map(|(path, count)| (path.to_owned(), count)).into();
    assert_eq!(origin.requests_by_path(), by_path);
    for (path, count) in counts {
        assert_eq!(origin.requests_for(path), count, "{path}");
    }
    assert_eq!((origin.requests(), origin.requests_for("/y")), (6, 0));
    assert_eq!((origin.connections(), origin.open_connections()), (1, 1));
    assert_eq!(origin.body_bytes_sent(), 3 + 3 * 2);
    // Requests are not kept unless the script says so.
    assert_eq!(origin.received(), []);
}

#[tokio::test]
async fn without_a_reply_nothing_is_found() {
    let origin = ScriptedOrigin::start(Script::new::<Reply>([])).expect("a port");
    let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    Client::of(&origin).await.expect(GET, missing).await;
}

#[tokio::test]
async fn requests_in_one_packet_are_answered_in_order() {
    let origin = start([ok("1"), ok("2"), ok("3")]);
    let post = "POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi";
    let close = "GET / HTTP/1.1\r\nconnection: x, Close\r\n\r\n";
    let (answer, end) = talk(&origin, [post, GET, close, GET].concat()).await;
    assert_eq!((answer, end), (whole("1") + &whole("2") + &whole("3"), End::Closed));
    let received = origin.received();
    assert_eq!(received.len(), 3);
    assert_eq!((&received[0].body[..], &received[1].body[..]), (&b"hi"[..], &b""[..]));
    assert_eq!((&received[1].head, &received[2].head), (&GET.into(), &close.into()));
}

#[tokio::test]
async fn the_version_of_the_request_decides_whether_the_connection_stays() {
    let origin = start([ok("1")]);
    let mut client = Client::of(&origin).await;
    client.expect("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", &whole("1")).await;
    assert_eq!(client.talk("GET / HTTP/1.0\r\n\r\n").await, (whole("1"), End::Closed));
}

#[tokio::test]
async fn bodies_of_requests_are_read_whole() {
    for (request, body) in [
        ("Content-Length: 5\r\n\r\nhello", "hello"),
        ("Transfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n03\r\nllo\r\n0\r\n\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n", ""),
    ] {
        let origin = start([ok("ok")]);
        let mut client = Client::of(&origin).await;
        let request = format!("POST / HTTP/1.1\r\n{request}");
        let (most, last) = request.split_at(request.len() - 1);
        for byte in most.as_bytes() {
            client.send([*byte]).await;
        }
        assert!(client.is_silent().await, "{request}");
        assert!(!origin.received()[0].is_whole, "{request}");
        client.expect(last, &whole("ok")).await;
        let received = origin.received();
        assert_eq!((received.len(), received[0].is_whole), (1, true), "{request}");
        assert_eq!(received[0].body, body.as_bytes(), "{request}");
    }
}

#[tokio::test]
async fn what_is_not_one_request_ends_the_connection() {
    let post = |rest: &str| format!("POST / HTTP/1.1\r\n{rest}");
    let long = |name: &str| format!("{name}: {}\r\n", "x".repeat(64 << 10));
    for (request, heads) in [
        ("nonsense\r\n\r\n".to_owned(), 0),
        (post(&(long("x") + "\r\n")), 0),
        // Its end is not waited for.
        (post(&"x: y\r\n".repeat(200)) + &long("x"), 0),
        (post(&("x: y\r\n".repeat(300) + "\r\n")), 0),
        (post("content-length: 5\r\ncontent-length: 5\r\n\r\nhello"), 0),
        (post("content-length: +5\r\n\r\nhello"), 0),
        (post("content-length: 18446744073709551616\r\n\r\nhello"), 0),
        (post("content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), 0),
        (post("transfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n"), 0),
        (post("transfer-encoding: x\r\n\r\n"), 0),
        (post("transfer-encoding: chunked\r\n\r\nx\r\n"), 1),
        (post("transfer-encoding: chunked\r\n\r\n1\r\nhello\r\n0\r\n\r\n"), 1),
        (post("transfer-encoding: chunked\r\n\r\n0\r\nx y\r\n\r\n"), 1),
        (post("transfer-encoding: chunked\r\n\r\n0\r\n") + &long("x"), 1),
    ] {
        let origin = start([ok("ok")]);
        let mut client = Client::of(&origin).await;
        // The server may have ended the connection before it has read all.
        let _ = client.0.write_all(request.as_bytes()).await;
        assert_eq!(client.rest().await.0, b"", "{request:.80}");
        assert_eq!((origin.requests(), origin.unreadable()), (heads, 1), "{request:.80}");
        assert!(origin.received().iter().all(|request| !request.is_whole), "{request:.80}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_not_unreadable() {
    let origin = start([ok("ok")]);
    for part in ["", "GET / HT", "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhe"] {
        let mut client = Client::of(&origin).await;
        client.send(part).await;
        client.0.shutdown().await.expect("it is open");
        assert_eq!(client.rest().await, (vec![], End::Closed), "{part}");
    }
    assert_eq!((origin.requests(), origin.unreadable()), (1, 0));
    let received = &origin.received()[0];
    assert_eq!((&received.body[..], received.is_whole), (&b"he"[..], false));
}

#[tokio::test]
async fn marks_of_the_end_of_a_body() {
    let ok_with = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}");
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    let head = "HEAD / HTTP/1.1\r\n\r\n";
    for (framing, request, answer) in [
        (Framing::Length, GET, whole("hello")),
        (Framing::Length, head, ok_with("content-length: 5\r\n\r\n")),
        (Framing::WrongLength(7), GET, ok_with("content-length: 7\r\n\r\nhello")),
        (Framing::WrongLength(2), GET, ok_with("content-length: 2\r\n\r\nhello")),
        (Framing::Chunked, GET, ok_with(chunked) + "5\r\nhello\r\n0\r\n\r\n"),
        (Framing::Chunked, head, ok_with(chunked)),
        (Framing::Close, GET, ok_with("\r\nhello")),
        (Framing::Close, head, ok_with("\r\n")),
    ] {
        let reply = fields(&[("content-length", "9"), ("transfer-encoding", "x")], "hello");
        let origin = start([reply.framing(framing)]);
        let mut client = Client::of(&origin).await;
        client.expect(request, &answer).await;
        if framing == Framing::Close {
            assert_eq!(client.rest().await, (vec![], End::Closed), "{framing:?}");
        } else {
            client.expect(request, &answer).await;
        }
        let sent = if request == GET { origin.requests() * 5 } else { 0 };
        assert_eq!(origin.body_bytes_sent(), sent, "{framing:?} {request}");
    }
    for (status, text) in
        [(StatusCode::NO_CONTENT, "204 No Content"), (StatusCode::NOT_MODIFIED, "304 Not Modified")]
    {
        let mut response = Response::new("hello");
        *response.status_mut() = status;
        let origin = start([response.into()]);
        let answer = format!("HTTP/1.1 {text}\r\n\r\n");
        let mut client = Client::of(&origin).await;
        client.expect(GET, &answer).await;
        client.expect(GET, &answer).await;
    }
}

#[tokio::test]
async fn long_bodies() {
    const LENGTH: u64 = 1_000_003;
    let generated = BodySource::generated(LENGTH, 7);
    let expected: Vec<u8> =
        (0..LENGTH).map(|at| u8::try_from((at + 7) % 251).expect("a byte")).collect();
    let shared = BodySource::from(expected.clone());
    for source in [generated, shared] {
        assert_eq!(source.bytes(), LENGTH);
        for framing in [Framing::Length, Framing::Chunked, Framing::Close] {
            let origin = start([ok(source.clone()).framing(framing)]);
            let mut client = Client::of(&origin).await;
            client.send("GET / HTTP/1.1\r\nconnection: close\r\n\r\n").await;
            let (answer, end) = client.rest().await;
            let split = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a head");
            let body = &answer[split + 4..];
            let body = if framing == Framing::Chunked { unchunked(body) } else { body.to_vec() };
            assert!(body == expected && end == End::Closed, "{framing:?}");
            assert_eq!(origin.body_bytes_sent(), LENGTH, "{framing:?}");
        }
    }
    let other = BodySource::generated(LENGTH, 8).part(0..500);
    assert!(other.iter().zip(&expected).all(|(one, other)| one != other));
    assert_eq!(BodySource::generated(10, 0).part(8..20), Bytes::from_static(&[8, 9]));
    assert_eq!(BodySource::generated(10, 0).part(10..20), Bytes::new());
}

/// Returns the content of chunks.
fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = str::from_utf8(&chunks[..end]).expect("text").trim();
        let length = usize::from_str_radix(line, 16).expect("a length");
        let rest = &chunks[end + 1..];
        body.extend_from_slice(&rest[..length]);
        assert_eq!(&rest[length..length + 2], b"\r\n");
        chunks = &rest[length + 2..];
        if length == 0 {
            assert_eq!(chunks, b"");
            return body;
        }
    }
}

#[tokio::test]
async fn replies_that_break_off() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    for (reply, answer) in [
        (ok("hello").cut_after(0, Ending::Close), head.to_owned()),
        (ok("hello").cut_after(2, Ending::Close), format!("{head}he")),
        (ok("hello").cut_after(9, Ending::Close), format!("{head}hello")),
        (
            ok("hello").framing(Framing::Chunked).cut_after(2, Ending::Close),
            format!("{chunked}2\r\nhe\r\n"),
        ),
        (
            ok("hello").framing(Framing::Chunked).cut_after(9, Ending::Close),
            format!("{chunked}5\r\nhello\r\n"),
        ),
        (ok("hello").ending(Ending::Close), format!("{head}hello")),
        (Reply::raw("").ending(Ending::Close), String::new()),
        (Reply::raw("no sense\n").ending(Ending::Close), "no sense\n".to_owned()),
    ] {
        let closes = start([reply.clone()]);
        assert_eq!(talk(&closes, GET).await, (answer.clone(), End::Closed), "{reply:?}");
        let resets = start([reply.clone().ending(Ending::Reset)]);
        assert_eq!(talk(&resets, GET).await, (answer.clone(), End::Reset), "{reply:?}");
        let hangs = start([reply.clone().ending(Ending::Hang)]);
        let mut client = Client::of(&hangs).await;
        client.expect(GET, &answer).await;
        client.send(GET).await;
        assert!(client.is_silent().await, "{reply:?}");
        assert_eq!(hangs.requests(), 1, "{reply:?}");
        // It notices that the client leaves.
        client.0.shutdown().await.expect("it is open");
        assert_eq!(client.rest().await, (vec![], End::Closed), "{reply:?}");
    }
}

#[tokio::test]
async fn raw_bytes_may_keep_the_connection() {
    let origin = start([Reply::raw("HTTP/1.0 200 fine\n\n"), ok("2")]);
    let mut client = Client::of(&origin).await;
    client.expect(GET, "HTTP/1.0 200 fine\n\n").await;
    client.expect(GET, &whole("2")).await;
}

#[tokio::test]
async fn an_endless_head_ends_with_the_client() {
    let origin = start([Reply::endless_head()]);
    let mut client = Client::of(&origin).await;
    client.send(GET).await;
    let mut head = client.take(1 << 20).await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nendless: xxx"));
    assert!(!head.split_off(20).contains('\n'));
    assert_eq!(origin.open_connections(), 1);
    drop(client);
    until(|| origin.open_connections() == 0).await;
}

async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LONG, wait).await.expect("it becomes so");
}

#[tokio::test]
async fn conditions_are_answered_where_the_reply_does_so() {
    const DATE: &str = "Mon, 01 Jan 2024 00:00:00 GMT";
    const EARLIER: &str = "Sun, 31 Dec 2023 23:59:59 GMT";
    let reply = || {
        let of_reply = [
            ("etag", "\"a\""),
            ("last-modified", DATE),
            ("cache-control", "max-age=9"),
            ("content-type", "text/plain"),
        ];
        fields(&of_reply, "hello")
    };
    let full = format!(
        "HTTP/1.1 200 OK\r\netag: \"a\"\r\nlast-modified: {DATE}\r\ncache-control: max-age=9\r\n\
         content-type: text/plain\r\ncontent-length: 5\r\n\r\n"
    );
    let not_modified = format!(
        "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\nlast-modified: {DATE}\r\n\
         cache-control: max-age=9\r\n\r\n"
    );
    let answers = start([reply().answering_conditions()]);
    let does_not = start([reply()]);
    for (condition, is_current) in [
        ("x: y".to_owned(), false),
        ("If-None-Match: \"a\"".to_owned(), true),
        ("If-None-Match: \"b\", W/\"a\"".to_owned(), true),
        ("If-None-Match: *".to_owned(), true),
        ("If-None-Match: \"b\"".to_owned(), false),
        (format!("If-Modified-Since: {DATE}"), true),
        (format!("If-Modified-Since: {EARLIER}"), false),
        (format!("If-None-Match: \"b\"\r\nIf-Modified-Since: {DATE}"), false),
    ] {
        for method in ["GET", "HEAD", "POST"] {
            let request = format!("{method} / HTTP/1.1\r\n{condition}\r\n\r\n");
            let body = if method == "HEAD" { "" } else { "hello" };
            let full = format!("{full}{body}");
            let expected = if is_current && method != "POST" { &not_modified } else { &full };
            Client::of(&answers).await.expect(&request, expected).await;
            Client::of(&does_not).await.expect(&request, &full).await;
        }
    }
}

#[tokio::test]
async fn ranges_are_answered_where_the_reply_does_so() {
    let reply = || fields(&[("etag", "\"a\"")], "hello");
    let head = |status: &str, range: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\netag: \"a\"\r\n{range}content-length: {length}\r\n\r\n")
    };
    let full = head("200 OK", "", 5) + "hello";
    let part = |range: &str, body: &str| {
        let line = format!("content-range: bytes {range}/5\r\n");
        head("206 Partial Content", &line, body.len()) + body
    };
    let answers = start([reply().answering_ranges()]);
    let does_not = start([reply()]);
    for (range, expected) in [
        ("bytes=1-2", part("1-2", "el")),
        ("bytes=3-", part("3-4", "lo")),
        ("bytes=-1", part("4-4", "o")),
        ("bytes=0-9", part("0-4", "hello")),
        ("bytes=1-2\r\nIf-Range: \"a\"", part("1-2", "el")),
        ("bytes=1-2\r\nIf-Range: \"b\"", full.clone()),
        ("bytes=0-0,2-2", full.clone()),
        ("bytes=5-", head("416 Range Not Satisfiable", "content-range: bytes */5\r\n", 0)),
    ] {
        let request = format!("GET / HTTP/1.1\r\nRange: {range}\r\n\r\n");
        Client::of(&answers).await.expect(&request, &expected).await;
        Client::of(&does_not).await.expect(&request, &full).await;
        let request = request.replace("GET", "POST");
        Client::of(&answers).await.expect(&request, &full).await;
    }
}

#[tokio::test]
async fn a_delay_is_before_the_head() {
    let delay = Duration::from_millis(60);
    let origin = start([ok("1").delay(delay), ok("2")]);
    let mut client = Client::of(&origin).await;
    let start = Instant::now();
    client.expect(GET, &whole("1")).await;
    assert!(start.elapsed() >= delay);
    let start = Instant::now();
    client.expect(GET, &whole("2")).await;
    assert!(start.elapsed() < LONG);
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_as_long_as_timers_permit() {
    for delay in [1, 27, 100].map(Duration::from_millis) {
        let origin = start([ok("1").delay(delay)]);
        let mut client = TcpStream::connect(origin.address()).await.expect("it listens");
        let start = tokio::time::Instant::now();
        client.write_all(GET.as_bytes()).await.expect("it reads");
        // The delay is the only timer: the clock jumps to its end.
        client.read_u8().await.expect("it answers");
        let elapsed = start.elapsed();
        assert!(elapsed >= delay && elapsed <= delay + Duration::from_millis(1), "{elapsed:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_server() {
    for drops in [false, true] {
        let origin = start([ok("1"), Reply::raw("").ending(Ending::Hang)]);
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = Client::of(&origin).await;
            client.send(GET).await;
            clients.push(client);
        }
        until(|| origin.requests() == 3).await;
        let metrics = Handle::current().metrics();
        assert_eq!(metrics.num_alive_tasks(), 4);
        let address = origin.address();
        if drops {
            drop(origin);
            until(|| metrics.num_alive_tasks() == 0).await;
        } else {
            origin.stop().await;
            assert_eq!(metrics.num_alive_tasks(), 0);
        }
        assert!(TcpStream::connect(address).await.is_err());
        for client in &mut clients {
            // It ends.
            client.rest().await;
        }
    }
}

#[test]
fn without_a_runtime_it_has_one_of_its_own() {
    let started = ScriptedOrigin::start(Script::new([ok("1")]));
    assert!(started.is_err());
    let origin = ScriptedOrigin::start_in_thread(Script::new([ok("1"), ok("2")])).expect("a port");
    assert_eq!(origin.url(), format!("http://{}", origin.address()));
    let mut client = StdStream::connect(origin.address()).expect("it listens");
    client.set_read_timeout(Some(LONG)).expect("a socket");
    for body in ["1", "2"] {
        client.write_all(GET.as_bytes()).expect("it reads");
        let expected = whole(body);
        let mut answer = vec![0; expected.len()];
        client.read_exact(&mut answer).expect("it answers");
        assert_eq!(answer, expected.as_bytes());
    }
    let address = origin.address();
    drop(origin);
    assert!(StdStream::connect(address).is_err());
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
}
