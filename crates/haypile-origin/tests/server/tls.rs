//! The server over TLS, as clients see it that trust its authority, or another one, or that shake no hands.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haypile_origin::server::{
    Alpn, BodySource, Ending, HANDSHAKE_LIMIT, Reply, Script, ScriptedOrigin, TlsAuthority,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::handshake;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::{LONG, until, whole};

const CLOSE: &str = "connection: close\r\n\r\n";

fn authority() -> Arc<TlsAuthority> {
    Arc::new(TlsAuthority::new().expect("random numbers"))
}

/// Returns the settings of a client that trusts an authority and offers these versions of HTTP.
fn client(trusted: &TlsAuthority, alpn: &[&str]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from(trusted.certificate_der().to_vec());
    roots.add(certificate).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|version| version.as_bytes().to_vec()).collect();
    config
}

async fn tcp(origin: &ScriptedOrigin) -> TcpStream {
    TcpStream::connect(origin.tls_address().expect("TLS")).await.expect("it listens")
}

async fn connect(
    origin: &ScriptedOrigin,
    config: ClientConfig,
    host: &str,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).expect("a host name");
    let shaken = TlsConnector::from(Arc::new(config)).connect(name, tcp(origin).await);
    timeout(LONG, shaken).await.expect("an end")
}

/// Returns the version of HTTP on which both sides have agreed.
fn agreed(stream: &TlsStream<TcpStream>) -> Option<&str> {
    stream.get_ref().1.alpn_protocol().map(|version| str::from_utf8(version).expect("ASCII"))
}

/// Returns all that comes to a request over HTTP/1.1, and whether it ends in order.
async fn talk(stream: &mut TlsStream<TcpStream>, request: &str) -> (Vec<u8>, bool) {
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("an end");
    (answer, read.is_ok())
}

fn two_schemes() -> Script {
    Script::new([Reply::empty(StatusCode::NOT_FOUND)])
        .on_host("a.test", "/", [Response::new("plain")])
        .on_https_host("a.test", "/", [Response::new("secure")])
        .on_https_host("b.test", "/", [Response::new("second")])
}

#[tokio::test]
async fn a_host_answers_differently_over_tls_and_requests_are_counted_by_it() {
    let authority = authority();
    let script = two_schemes().with_tls(Arc::clone(&authority), Alpn::Http1);
    let origin = ScriptedOrigin::start(script).expect("ports");
    for (host, body) in [("a.test", "secure"), ("b.test", "second"), ("B.test", "second")] {
        let config = client(&authority, &["h2", "http/1.1"]);
        let mut stream = connect(&origin, config, host).await.expect("a handshake");
        assert_eq!(agreed(&stream), Some("http/1.1"));
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\n{CLOSE}");
        assert_eq!(talk(&mut stream, &request).await, (whole(body).into_bytes(), true));
    }
    // What only http has.
    let mut stream =
        connect(&origin, client(&authority, &[]), "a.test").await.expect("a handshake");
    let (answer, _) =
        talk(&mut stream, &format!("GET /x HTTP/1.1\r\nhost: a.test\r\n{CLOSE}")).await;
    assert!(answer.starts_with(b"HTTP/1.1 404"));
    assert_eq!(agreed(&stream), None);
    let (answer, _) =
        crate::talk(&origin, format!("GET / HTTP/1.1\r\nhost: a.test\r\n{CLOSE}")).await;
    assert_eq!(answer, whole("plain"));
    let counts = origin.counts();
    assert_eq!((counts.requests, counts.tls_requests, counts.http2_requests), (5, 4, 0));
    assert_eq!((counts.connections, counts.failed_handshakes), (5, 0));
    assert_eq!(origin.counts_for_https_host("a.test", "/").requests, 1);
    assert_eq!(origin.counts_for_https_host("b.test:443", "/").requests, 2);
    assert_eq!(origin.requests_for_host("a.test", "/"), 1);
    assert_eq!((origin.requests_for("/"), origin.requests_for("/x")), (4, 1));
    until(|| origin.open_connections() == 0).await;
}

#[tokio::test]
async fn http2_is_spoken_with_clients_that_offer_it_and_http1_with_others() {
    let authority = authority();
    let script = two_schemes().with_tls(Arc::clone(&authority), Alpn::Http2);
    let origin = ScriptedOrigin::start(script).expect("ports");
    for alpn in [&["http/1.1"][..], &[]] {
        let mut stream =
            connect(&origin, client(&authority, alpn), "a.test").await.expect("a handshake");
        assert_eq!(agreed(&stream), alpn.first().copied());
        let request = format!("GET / HTTP/1.1\r\nhost: a.test\r\n{CLOSE}");
        assert_eq!(talk(&mut stream, &request).await, (whole("secure").into_bytes(), true));
    }
    let config = client(&authority, &["h2", "http/1.1"]);
    let stream = connect(&origin, config, "a.test").await.expect("a handshake");
    assert_eq!(agreed(&stream), Some("h2"));
    let (mut sender, connection) =
        handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(async { drop(connection.await) });
    for _ in 0..3 {
        let request = Request::get("https://a.test/").body(Empty::<Bytes>::new()).expect("valid");
        let reply = timeout(LONG, sender.send_request(request)).await.expect("in time");
        let body = reply.expect("a reply").into_body().collect().await.expect("a body");
        assert_eq!(body.to_bytes(), "secure");
    }
    let counts = origin.counts();
    assert_eq!((counts.requests, counts.tls_requests, counts.http2_requests), (5, 5, 3));
    assert_eq!(counts.connections, 3);
    assert_eq!(origin.counts_for_https_host("a.test", "/").requests, 5);
    // An end that does not wait for its clients.
    origin.stop().await;
}

#[tokio::test]
async fn handshakes_of_unknown_hosts_and_of_clients_without_trust_are_refused_and_counted() {
    let authority = authority();
    let script = two_schemes().with_tls(Arc::clone(&authority), Alpn::Http2);
    let origin = ScriptedOrigin::start(script).expect("ports");
    let other = TlsAuthority::new().expect("random numbers");
    for (trusted, host) in [
        (&*authority, "c.test"),
        // An address is not sent as a name.
        (&authority, "127.0.0.1"),
        (&other, "a.test"),
    ] {
        let refused = connect(&origin, client(trusted, &[]), host).await;
        assert!(refused.is_err(), "{host}");
    }
    until(|| origin.counts().failed_handshakes == 3).await;
    assert_eq!((origin.connections(), origin.requests()), (0, 0));
    assert!(connect(&origin, client(&authority, &[]), "a.test").await.is_ok());
}

#[tokio::test]
async fn clients_that_send_garbage_or_nothing_hold_up_no_other() {
    let authority = authority();
    let script = two_schemes().with_tls(Arc::clone(&authority), Alpn::Http1);
    let origin = ScriptedOrigin::start(script).expect("ports");
    let mut silent = tcp(&origin).await;
    let mut half = tcp(&origin).await;
    half.write_all(&[22, 3, 1, 2, 0, 1]).await.expect("it reads");
    let mut garbage = tcp(&origin).await;
    garbage.write_all(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n").await.expect("it reads");
    let mut answer = Vec::new();
    // An alert, or a reset because of what was not read.
    let _ = timeout(LONG, garbage.read_to_end(&mut answer)).await.expect("an end");
    assert!(!answer.starts_with(b"HTTP"));
    let mut stream =
        connect(&origin, client(&authority, &[]), "a.test").await.expect("a handshake");
    let request = format!("GET / HTTP/1.1\r\nhost: a.test\r\n{CLOSE}");
    assert_eq!(talk(&mut stream, &request).await, (whole("secure").into_bytes(), true));
    until(|| origin.counts().failed_handshakes == 1).await;
    assert_eq!((origin.connections(), origin.requests()), (1, 1));
    drop(origin);
    for open in [&mut silent, &mut half] {
        let _ = timeout(LONG, open.read_to_end(&mut answer)).await.expect("an end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stalls_in_its_handshake_is_disconnected_after_the_limit() {
    let script = two_schemes().with_tls(authority(), Alpn::Http1);
    let origin = ScriptedOrigin::start(script).expect("ports");
    let start = Instant::now();
    let mut half = tcp(&origin).await;
    half.write_all(&[22, 3, 1, 2, 0, 1]).await.expect("it reads");
    let mut answer = Vec::new();
    // The clock of the runtime goes on while nothing else happens.
    let _ = timeout(HANDSHAKE_LIMIT * 2, half.read_to_end(&mut answer)).await.expect("an end");
    assert!(start.elapsed() >= HANDSHAKE_LIMIT, "{:?}", start.elapsed());
    assert!(start.elapsed() < HANDSHAKE_LIMIT + Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!((answer.len(), origin.counts().failed_handshakes), (0, 1));
}

#[tokio::test]
async fn large_bodies_and_broken_ones_pass_as_without_tls() {
    let authority = authority();
    let body = || BodySource::generated(3_000_000, 9);
    let cut = Reply::from(Response::new("a body")).cut_after(2, Ending::Reset);
    let script = Script::new([Reply::empty(StatusCode::NOT_FOUND)])
        .on_https_host("a.test", "/large", [Response::new(body())])
        .on_https_host("a.test", "/cut", [cut])
        .with_tls(Arc::clone(&authority), Alpn::Http1);
    let origin = ScriptedOrigin::start(script).expect("ports");
    let mut stream =
        connect(&origin, client(&authority, &[]), "a.test").await.expect("a handshake");
    let (answer, is_whole) =
        talk(&mut stream, &format!("GET /large HTTP/1.1\r\nhost: a.test\r\n{CLOSE}")).await;
    assert!(is_whole);
    let start = answer.len() - 3_000_000;
    for at in (0..3_000_000).step_by(60_000) {
        let part = body().part(at..at + 60_000);
        let at = start + usize::try_from(at).expect("small");
        assert!(answer[at..at + 60_000] == part, "{at}");
    }
    assert_eq!(origin.counts_for_https_host("a.test", "/large").body_bytes, 3_000_000);
    let mut stream =
        connect(&origin, client(&authority, &[]), "a.test").await.expect("a handshake");
    let (_, is_whole) = talk(&mut stream, "GET /cut HTTP/1.1\r\nhost: a.test\r\n\r\n").await;
    assert!(!is_whole);
    assert_eq!(origin.body_bytes_sent(), 3_000_002);
}
