//! The same script over HTTP/2: many requests over one connection, counted as over HTTP/1.1.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use haypile_origin::server::{BodySource, Ending, Kept, Reply, Script, ScriptedOrigin};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A reply that does not come within this time is a failure.
const LIMIT: Duration = Duration::from_secs(30);

async fn connect(origin: &ScriptedOrigin) -> SendRequest<Empty<Bytes>> {
    let stream = TcpStream::connect(origin.address()).await.expect("it listens");
    let (sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(async { drop(connection.await) });
    sender
}

/// Returns status, the field `etag`, and the body; `None` if the reply breaks off.
async fn get(
    sender: &SendRequest<Empty<Bytes>>,
    url: &str,
    condition: Option<&str>,
) -> Option<(StatusCode, String, Bytes)> {
    let mut request = Request::get(url);
    if let Some(tag) = condition {
        request = request.header("if-none-match", tag);
    }
    let request = request.body(Empty::new()).expect("a request");
    let replied = async {
        let response = sender.clone().send_request(request).await.ok()?;
        let etag = response.headers().get("etag").map(|tag| tag.to_str().expect("text").to_owned());
        let (status, etag) = (response.status(), etag.unwrap_or_default());
        Some((status, etag, response.into_body().collect().await.ok()?.to_bytes()))
    };
    timeout(LIMIT, replied).await.expect("a reply in time")
}

#[tokio::test]
async fn requests_of_several_hosts_share_a_connection_and_are_counted() {
    let large = BodySource::generated(300_000, 7);
    let tagged = Response::builder().header("etag", "\"1\"").body(large).expect("a response");
    let script = Script::new([Reply::empty(StatusCode::NOT_FOUND)])
        .on_host("one.test", "/a?b", [Reply::from(tagged).answering_conditions()])
        .on_host("two.test", "/", [Response::new("two")])
        .keep(Kept::Heads)
        .over_http2();
    let origin = ScriptedOrigin::start(script).expect("a port");
    let sender = connect(&origin).await;
    // More than are answered at a time.
    let all = join_all((0..250).map(|_| get(&sender, "http://two.test:80/", None))).await;
    for reply in all {
        let (status, _, body) = reply.expect("a reply");
        assert_eq!((status, &body[..]), (StatusCode::OK, &b"two"[..]));
    }
    let (status, etag, body) = get(&sender, "http://one.test/a?b", None).await.expect("a reply");
    assert_eq!((status, etag.as_str()), (StatusCode::OK, "\"1\""));
    let expected = BodySource::generated(300_000, 7);
    assert!((0..300_000).step_by(50_000).all(|at| {
        let part = expected.part(at..at + 50_000);
        let at = usize::try_from(at).expect("small");
        body[at..at + 50_000] == part
    }));
    let again = get(&sender, "http://one.test/a?b", Some("\"1\"")).await.expect("a reply");
    assert_eq!((again.0, again.2.len()), (StatusCode::NOT_MODIFIED, 0));
    let missing = get(&sender, "http://one.test/", None).await.expect("a reply");
    assert_eq!(missing.0, StatusCode::NOT_FOUND);
    let counts = origin.counts();
    assert_eq!((counts.connections, counts.requests, counts.unreadable), (1, 253, 0));
    assert_eq!((counts.replies_200, counts.replies_304, counts.replies_other), (251, 1, 1));
    assert_eq!(counts.body_bytes, 250 * 3 + 300_000);
    assert_eq!(origin.requests_for_host("one.test", "/a?b"), 2);
    assert_eq!(&origin.received()[250].head[..], b"GET /a?b HTTP/1.1\r\nhost: one.test\r\n\r\n");
    origin.stop().await;
}

#[tokio::test]
async fn a_reply_that_breaks_off_resets_its_stream_alone() {
    let cut = Reply::from(Response::new("a body")).cut_after(2, Ending::Reset);
    let script = Script::new([Reply::from(Response::new("whole"))])
        .on("/cut", [cut])
        .on("/raw", [Reply::raw("HTTP/1.1 200 OK\r\n\r\n")])
        .over_http2();
    let origin = ScriptedOrigin::start(script).expect("a port");
    let sender = connect(&origin).await;
    for broken in ["http://a.test/cut", "http://a.test/raw"] {
        assert_eq!(get(&sender, broken, None).await, None, "{broken}");
    }
    let (_, _, body) = get(&sender, "http://a.test/", None).await.expect("a reply");
    assert_eq!(&body[..], b"whole");
    assert_eq!(origin.connections(), 1);
}
