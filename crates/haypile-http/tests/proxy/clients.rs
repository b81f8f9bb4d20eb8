//! Requests that are wrong or hostile.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::net::{
    LONG, Logged, body, fresh, fresh_origin, heads, origin, proxy, proxy_on, short_limits, status,
};
use Fate::{Passed, Refused};

/// The fate of a request.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It is answered so, and the origin does not see it.
    Refused(u16),
    /// It gets to the origin, once, as one whole request.
    Passed,
}

/// Sends a request to a proxy that serves only the host `a`.
async fn fate(request: impl AsRef<[u8]>) -> Fate {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[&format!("a={}", origin.url())]).await;
    let answer = proxy.talk(request).await;
    for head in heads(&origin) {
        assert!(!head.replace("\r\n", "").contains(['\r', '\n']), "{head}");
        assert!(!head.contains("upgrade") && !head.contains("http2"), "{head}");
    }
    assert_eq!(origin.unreadable(), 0, "{answer}");
    assert!(origin.received().iter().all(|request| request.is_whole), "{answer}");
    match (status(&answer), origin.requests()) {
        (200, 1) => Passed,
        (status, 0) => Refused(status),
        other => panic!("{other:?}: {answer}"),
    }
}

#[tokio::test]
async fn requests_that_mean_one_thing_here_and_another_there() {
    const GET: &str = "GET / HTTP/1.1";
    const POST: &str = "POST / HTTP/1.1";
    const HOST: &str = "Host: a";
    const CHUNKED: &str = "Transfer-Encoding: chunked";
    const LENGTH: &str = "Content-Length: 5";
    let long = format!("X: {}", "x".repeat(200_000));
    let many = "X: x\r\n".repeat(2_000) + "X: x";
    for (line, fields, expected) in [
        (GET, &[HOST][..], Passed),
        // The chunks count. The origin gets only those, and the connection ends.
        (POST, &[HOST, LENGTH, CHUNKED], Passed),
        (POST, &[HOST, CHUNKED, LENGTH], Passed),
        // RFC 9110, section 8.6: the origin gets one.
        (POST, &[HOST, LENGTH, LENGTH], Passed),
        (POST, &[HOST, LENGTH, "Content-Length: 6"], Refused(400)),
        (POST, &[HOST, "Content-Length: 5, 5"], Refused(400)),
        (POST, &[HOST, "Content-Length: +5"], Refused(400)),
        (POST, &[HOST, "Content-Length: 0x5"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: xchunked"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: chunked, x"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding : chunked"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: gzip, chunked"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: identity, chunked"], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: chunked, chunked"], Refused(400)),
        (POST, &[HOST, CHUNKED, CHUNKED], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: gzip", CHUNKED], Refused(400)),
        (POST, &[HOST, "Transfer-Encoding: Chunked"], Passed),
        ("POST / HTTP/1.0", &[HOST, CHUNKED], Refused(400)),
        (GET, &[HOST, "X: a\r\n b"], Refused(400)),
        (GET, &[HOST, "X: a\rb"], Refused(400)),
        (GET, &[HOST, "X: a\0b"], Refused(400)),
        (GET, &[HOST, "X : a"], Refused(400)),
        (GET, &[HOST, &long], Refused(431)),
        (GET, &[HOST, &long[..66_000]], Refused(431)),
        (GET, &[HOST, &long[..90_000]], Refused(431)),
        (GET, &[HOST, &long[..64_000]], Passed),
        (GET, &[HOST, &many], Refused(431)),
        (GET, &[], Refused(400)),
        (GET, &[HOST, "Host: b"], Refused(400)),
        (GET, &[HOST, HOST], Refused(400)),
        (GET, &["Host: u@a"], Refused(400)),
        (GET, &["Host: a/b"], Refused(400)),
        (GET, &["Host: b"], Refused(421)),
        ("GET http://a/ HTTP/1.1", &[HOST], Passed),
        ("GET http://b/ HTTP/1.1", &[HOST], Refused(400)),
        ("GET https://a/ HTTP/1.1", &[HOST], Refused(421)),
        ("TRACE / HTTP/1.1", &[HOST], Refused(501)),
        ("CONNECT a:80 HTTP/1.1", &["Host: a:80"], Refused(501)),
        (GET, &[HOST, "Upgrade: h2c", "HTTP2-Settings: x", "Connection: HTTP2-Settings"], Passed),
    ] {
        let fields = fields.join("\r\n");
        let between = if fields.is_empty() { "" } else { "\r\n" };
        let body = match line.split(' ').next() {
            Some("POST") if fields.contains("ransfer") => "5\r\nhello\r\n0\r\n\r\n",
            Some("POST") => "hello",
            _ => "",
        };
        let head = format!("{line}\r\n{fields}{between}Connection: close\r\n\r\n");
        assert_eq!(fate(head + body).await, expected, "{line} {fields:.80}");
    }
}

#[tokio::test]
async fn bytes_that_are_no_request() {
    for (bytes, expected) in [
        // A lone LF may end a line (RFC 9112, section 2.2). The origin gets lines with both.
        (&b"GET / HTTP/1.1\nHost: a\nConnection: close\n\n"[..], Passed),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refused(400)),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\r\n\r\n", Refused(400)),
        (b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", Refused(400)),
        (b"GET /\r\n\r\n", Refused(400)),
    ] {
        assert_eq!(fate(bytes).await, expected, "{}", bytes.escape_ascii());
    }
}

#[tokio::test]
async fn bodies_that_are_wrong_never_get_to_the_origin_as_whole_ones() {
    for chunks in [
        format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000)),
        "5\r\nhelloworld\r\n0\r\n\r\n".to_owned(),
        "fffffffffffffffff\r\nhello".to_owned(),
        "-5\r\nhello\r\n0\r\n\r\n".to_owned(),
        "5\r\nhello\r\n0\r\n".to_owned() + &"X: x\r\n".repeat(20_000) + "\r\n",
    ] {
        for method in ["POST", "GET"] {
            let origin = fresh_origin("ok");
            let proxy = proxy(&[origin.url()]).await;
            let head = "/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            let answer = proxy.talk(format!("{method} {head}{chunks}")).await;
            assert_eq!(status(&answer), 400, "{method} {chunks:.20}: {answer}");
            // Then the origin gets no more of the body.
            while origin.open_connections() > 0 {
                tokio::task::yield_now().await;
            }
            let is_whole = origin.received().iter().any(|request| request.is_whole);
            assert!(!is_whole, "{method} {chunks:.20}");
        }
    }
}

#[tokio::test]
async fn the_body_of_a_get_gets_to_the_origin() {
    for body in [
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "Content-Length: 5\r\n\r\nhello",
    ] {
        let origin = fresh_origin("ok");
        let proxy = proxy(&[origin.url()]).await;
        let answer =
            proxy.talk(format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{body}")).await;
        assert_eq!(status(&answer), 200, "{answer}");
        let received = origin.received();
        assert!(received.len() == 1 && received[0].is_whole, "{received:?}");
        assert_eq!(received[0].body, b"hello", "{received:?}");
    }
}

#[tokio::test]
async fn what_follows_a_doubtful_request_is_not_a_request() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    for doubtful in [
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ] {
        let answer = proxy.talk(format!("{doubtful}{smuggled}")).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
    assert!(heads(&origin).iter().all(|head| !head.contains("smuggled")));
}

#[tokio::test]
async fn a_refusal_says_that_no_cache_was_asked() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[&format!("a={}", origin.url())]).await;
    for (request, code, detail) in [
        ("GET / HTTP/1.1\r\nHost: b", 421, "this host has no origin"),
        ("GET / HTTP/1.1\r\nHost: a b", 400, "Host is not a host"),
        ("TRACE / HTTP/1.1\r\nHost: a", 501, "this method is not passed on"),
    ] {
        let answer = proxy.talk(format!("{request}\r\n\r\n")).await;
        assert_eq!(status(&answer), code, "{answer}");
        let expected = format!("\r\ncache-status: haypile; detail=\"{detail}\"\r\n");
        assert!(answer.contains(&expected), "{answer}");
    }
}

#[tokio::test]
async fn a_request_that_has_been_here_is_a_loop() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    proxy.get("/").await;
    let seen = heads(&origin);
    let via = seen[0].lines().find_map(|line| line.strip_prefix("via: ")).expect("it says so");
    let again = format!("GET /b HTTP/1.1\r\nHost: a\r\nVia: {via}\r\n\r\n");
    assert_eq!(status(&proxy.talk(again).await), 508);
    assert_eq!(origin.requests(), 1);
}

#[tokio::test]
async fn what_clients_say_of_themselves_is_not_believed() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    proxy
        .talk(
            "GET / HTTP/1.1\r\nHost: Example.org\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=x\r\n\
             X-Original-URL: /admin\r\nX-HTTP-Method-Override: DELETE\r\nCookie: a=b\r\n\
             Authorization: x\r\nConnection: close, cookie, authorization, x-gone\r\nX-Gone: 1\r\n\r\n",
        )
        .await;
    let head = &heads(&origin)[0];
    for there in [
        "host: example.org\r\n",
        "x-forwarded-for: 127.0.0.1\r\n",
        "cookie: a=b\r\n",
        "authorization: x\r\n",
    ] {
        assert!(head.contains(there), "{there}: {head}");
    }
    for gone in ["6.6.6.6", "\nforwarded", "x-original-url", "override", "x-gone"] {
        assert!(!head.contains(gone), "{gone}: {head}");
    }
}

#[tokio::test]
async fn a_request_goes_only_as_far_as_its_client_permits() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    let request = |method: &str, value: &str| {
        format!(
            "{method} / HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\nConnection: close\r\n\r\n"
        )
    };
    let answer = proxy.talk(request("OPTIONS", "0")).await;
    assert_eq!((status(&answer), origin.requests()), (200, 0), "{answer}");
    assert_eq!(status(&proxy.talk(request("TRACE", "0")).await), 501);
    for (value, expected) in [("1", Some("0")), ("10", Some("9")), ("x", None), ("-1", None)] {
        let answer = proxy.talk(request("OPTIONS", value)).await;
        assert_eq!(status(&answer), 200, "{value}: {answer}");
        let head = heads(&origin).pop().expect("it came");
        let sent = head.lines().find_map(|line| line.strip_prefix("max-forwards: "));
        assert_eq!(sent, expected, "{value}: {head}");
    }
}

#[tokio::test]
async fn several_requests_on_one_connection() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    let one = "GET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = proxy.talk([one, one, last].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
    assert_eq!(answers.matches("haypile; hit").count(), 2, "{answers}");
    assert_eq!((origin.requests(), body(&answers).starts_with("ok")), (1, true));
}

#[tokio::test]
async fn the_origin_is_told_the_version_of_the_client() {
    let origin = fresh_origin("ok");
    let proxy = proxy(&[origin.url()]).await;
    for version in ["1.0", "1.1"] {
        let request =
            format!("GET /{version} HTTP/{version}\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&proxy.talk(request).await), 200);
        let head = heads(&origin).pop().expect("it came");
        assert!(head.contains(&format!("\r\nvia: {version} haypile-")), "{version}: {head}");
    }
}

#[tokio::test]
async fn hosts_have_their_own_origins_and_responses() {
    let (one, other) = (fresh_origin("one"), fresh_origin("other"));
    let proxy = proxy(&[&format!("a.example={}", one.url()), other.url()]).await;
    for (host, expected) in [("a.example", "one"), ("A.example:80", "one"), ("b", "other")] {
        for _ in 0..2 {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            assert_eq!(body(&proxy.talk(request).await), expected, "{host}");
        }
    }
    assert_eq!((one.requests(), other.requests()), (1, 1));
}

#[tokio::test]
async fn slow_clients_are_not_waited_for_without_a_bound() {
    let long = "x".repeat(50_000_000);
    for (name, request) in [
        ("half a head", "GET / HTTP/1.1\r\nHost: a\r\n"),
        ("half a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"),
        ("nothing is read", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("nothing more is asked", "GET /short HTTP/1.1\r\nHost: a\r\n\r\n"),
    ] {
        let is_long = name == "nothing is read";
        let origin = fresh_origin(if is_long { &long } else { "ok" });
        let mut proxy = proxy_on("memory:size=1MiB", &[origin.url()], short_limits()).await;
        let mut client = TcpStream::connect(&proxy.address).await.expect("it listens");
        client.write_all(request.as_bytes()).await.expect("it reads");
        if is_long {
            // The response is on its way.
            client.readable().await.expect("it answers");
        } else {
            // Until it is closed, or the response is there.
            let _ = tokio::time::timeout(LONG, client.readable()).await.expect("a bound");
        }
        proxy.end.take().expect("it runs").send(()).expect("it listens");
        let cut_off = tokio::time::timeout(LONG * 2, proxy.served).await.expect("it ends");
        assert_eq!(cut_off.expect("no panic"), 0, "{name}");
    }
}

/// Some clients end their side of the connection when they have asked.
#[tokio::test]
async fn a_client_that_has_said_its_last_gets_its_answer() {
    const DELAY: Duration = Duration::from_millis(300);
    for request in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let origin = origin([fresh("ok").delay(DELAY)]);
        let proxy = proxy(&[origin.url()]).await;
        let mut client = TcpStream::connect(&proxy.address).await.expect("it listens");
        client.write_all(request.as_bytes()).await.expect("it reads");
        client.shutdown().await.expect("it is open");
        let mut answer = String::new();
        let read = client.read_to_string(&mut answer);
        tokio::time::timeout(LONG, read).await.expect("it ends").expect("text");
        let expected = request.matches("HTTP/1.1").count();
        assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), expected, "{request}: {answer}");
    }
}

#[tokio::test]
async fn http_1_0_needs_no_host_where_there_is_one_origin() {
    let origin = fresh_origin("x");
    let named = format!("example.org={}", origin.url());
    for (origins, host) in [(vec![&named[..]], "example.org"), (vec![origin.url()], "127.0.0.1:")] {
        let proxy = proxy(&origins).await;
        let answer = proxy.talk("GET / HTTP/1.0\r\n\r\n").await;
        assert_eq!((status(&answer), body(&answer)), (200, "x"), "{answer}");
        let asked = heads(&origin).pop().expect("it was asked");
        assert!(asked.contains(&format!("\r\nhost: {host}")), "{asked}");
        let newer = proxy.talk("GET / HTTP/1.1\r\n\r\n").await;
        assert_eq!(status(&newer), 400, "{newer}");
    }
    let proxy = proxy(&[origin.url(), &named]).await;
    assert_eq!(status(&proxy.talk("GET / HTTP/1.0\r\n\r\n").await), 400);
}

#[tokio::test]
async fn requests_that_are_refused_are_in_the_error_log() {
    let origin = fresh_origin("x");
    let logged = Logged::new(&[&format!("a={}", origin.url())], short_limits()).await;
    for (number, (request, expected)) in [
        (
            "GET / HTTP/1.1\r\nHost: b\r\n\r\n",
            " - 127.0.0.1 421 GET http://b/: this host has no origin\n",
        ),
        ("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", " 501 TRACE /: this method is not passed on\n"),
        ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", " - 127.0.0.1 400 -: invalid HTTP header parsed\n"),
        ("nonsense\r\n\r\n", " 400 -: "),
    ]
    .into_iter()
    .enumerate()
    {
        logged.proxy.talk(request).await;
        let line = logged.line(number + 1).await;
        assert!(line.contains(expected), "{request}: {line}");
    }
    assert_eq!(origin.requests(), 0);
}
