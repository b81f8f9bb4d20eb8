//! Bodies: coded, broken off, sent.

use bytes::Bytes;
use http_body::Frame;
use http_body_util::StreamBody;

use super::net::{Reply, Seen, Server, response};
use super::{FRESH, around, cache, client, get, is_hit, read, status};

/// The text "hello" in each coding.
const GZIP: &[u8] =
    b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
const CODED: [(&str, &[u8]); 4] = [
    ("gzip", GZIP),
    ("deflate", b"\x78\x01\x01\x05\0\xfa\xffhello\x06\x2c\x02\x15"),
    ("br", b"\x0b\x02\x80hello\x03"),
    ("zstd", b"\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello"),
];
const BY_CODING: (&str, &str) = ("vary", "accept-encoding");

/// Answers with gzip, if the request accepts it.
fn negotiated(seen: &Seen) -> Reply {
    if seen.field("accept-encoding").contains("gzip") {
        response(200, &[FRESH, BY_CODING, ("content-encoding", "gzip")], GZIP)
    } else {
        response(200, &[FRESH, BY_CODING], "hello")
    }
}

#[tokio::test]
async fn a_coded_body_is_stored_as_it_came_and_decoded_for_each_reader() {
    let server = Server::start(|_, seen| negotiated(seen)).await;
    let cache = cache();
    for expected in [false, true] {
        let response = get(&client(&cache), server.url("/")).await;
        assert!(!response.headers().contains_key("content-encoding"));
        assert_eq!(is_hit(&response), expected);
        assert_eq!(response.text().await.expect("a body"), "hello");
    }
    let asked = server.seen()[0].field("accept-encoding").to_owned();
    // The origin's own bytes, to a client that wants them so.
    let plain = around(&cache, reqwest::Client::builder().no_gzip());
    let raw = plain.get(server.url("/")).header("accept-encoding", asked).send().await;
    let raw = raw.expect("a response");
    assert_eq!(
        (is_hit(&raw), &raw.headers()["content-encoding"]),
        (true, &"gzip".parse().unwrap())
    );
    assert_eq!(raw.bytes().await.expect("a body"), GZIP);
    // One that accepts no coding has its own, and each keeps its own.
    assert_eq!(read(&plain, server.url("/")).await, ("hello".to_owned(), false));
    assert_eq!(read(&plain, server.url("/")).await, ("hello".to_owned(), true));
    assert_eq!(read(&client(&cache), server.url("/")).await, ("hello".to_owned(), true));
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn all_codings_are_decoded() {
    for (coding, bytes) in CODED {
        let fields = [FRESH, ("content-encoding", coding)];
        let server = Server::start(move |_, _| response(200, &fields, bytes)).await;
        let client = client(&cache());
        for is_hit in [false, true] {
            assert_eq!(read(&client, server.url("/")).await, ("hello".to_owned(), is_hit));
        }
        assert!(server.seen()[0].field("accept-encoding").contains(coding));
        let head = client.head(server.url("/")).send().await.expect("a response");
        assert_eq!(head.bytes().await.expect("no body"), "");
    }
}

#[tokio::test]
async fn a_range_is_of_the_body_without_coding() {
    let server = Server::start(|_, seen| negotiated(seen)).await;
    let client = client(&cache());
    assert_eq!(read(&client, server.url("/")).await.0, "hello");
    let plain = client.get(server.url("/")).header("accept-encoding", "identity").send().await;
    assert_eq!(plain.expect("a response").text().await.expect("a body"), "hello");
    let part = client.get(server.url("/")).header("range", "bytes=1-2").send().await;
    let part = part.expect("a response");
    assert_eq!((part.status().as_u16(), is_hit(&part)), (206, true));
    assert_eq!(part.text().await.expect("a body"), "el");
}

#[tokio::test]
async fn a_client_that_decodes_asks_for_no_coding() {
    let server = Server::start(|_, seen| negotiated(seen)).await;
    let decoding = around(&cache(), reqwest::Client::builder());
    for is_hit in [false, true] {
        assert_eq!(read(&decoding, server.url("/")).await, ("hello".to_owned(), is_hit));
    }
    assert_eq!(server.seen()[0].field("accept-encoding"), "identity");
}

#[tokio::test]
async fn a_body_that_the_client_has_decoded_is_not_stored() {
    let fields = [FRESH, ("content-encoding", "gzip")];
    let server = Server::start(move |_, _| response(200, &fields, GZIP)).await;
    let decoding = around(&cache(), reqwest::Client::builder());
    for _ in 0..2 {
        let response = get(&decoding, server.url("/")).await;
        assert!(!is_hit(&response) && !status(&response).is_stored);
        assert_eq!(response.text().await.expect("a body"), "hello");
    }
}

#[tokio::test]
async fn half_a_body_is_an_error_and_not_stored() {
    let half = |coding: &str, length: usize, bytes: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: {length}\r\n\
             content-encoding: {coding}\r\n\r\n"
        );
        Reply::SendAndClose([head.as_bytes(), bytes].concat())
    };
    let server = Server::start(move |_, seen| match seen.path() {
        "/plain" => half("identity", 9, b"abc"),
        "/coded" => half("gzip", GZIP.len(), &GZIP[..18]),
        "/none" => half("gzip", GZIP.len(), b""),
        // It has the announced length, but the coding does not end.
        _ => half("gzip", 18, &GZIP[..18]),
    })
    .await;
    let client = client(&cache());
    for path in ["/plain", "/coded", "/none"] {
        for _ in 0..2 {
            let response = get(&client, server.url(path)).await;
            assert!(!is_hit(&response), "{path}");
            response.bytes().await.expect_err(path);
        }
    }
    get(&client, server.url("/short")).await.bytes().await.expect_err("the coding does not end");
    assert_eq!(server.requests(), 7);
}

#[tokio::test]
async fn a_body_that_only_the_connection_ends_is_not_stored() {
    let bytes = b"HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\n\r\nabc";
    let server = Server::start(|_, _| Reply::SendAndClose(bytes.to_vec())).await;
    let client = client(&cache());
    for _ in 0..2 {
        let response = get(&client, server.url("/")).await;
        assert_eq!(
            status(&response).detail.as_deref(),
            Some("not stored: the end of the response is not marked")
        );
        assert_eq!(response.text().await.expect("a body"), "abc");
    }
}

/// Returns a body in pieces, whose length nobody knows.
fn streamed(pieces: &'static [&'static str]) -> reqwest::Body {
    let frame = |piece: &&'static str| Ok::<_, std::io::Error>(Frame::data(Bytes::from(*piece)));
    let frames = futures_util::stream::iter(pieces.iter().map(frame));
    reqwest::Body::wrap(StreamBody::new(frames))
}

#[tokio::test]
async fn bodies_of_requests_pass() {
    let server = Server::start(|_, seen| match seen.path() {
        "/303" => response(303, &[("location", "/end")], ""),
        "/307" => response(307, &[("location", "/end")], ""),
        _ => response(200, &[], "done"),
    })
    .await;
    let client = client(&cache());
    for (path, body, expected) in [
        ("/200", "text".into(), vec![("post", "/200", "text")]),
        ("/200", streamed(&["te", "xt"]), vec![("post", "/200", "text")]),
        ("/303", "text".into(), vec![("post", "/303", "text"), ("get", "/end", "")]),
        ("/303", streamed(&["text"]), vec![("post", "/303", "text"), ("get", "/end", "")]),
        ("/307", "text".into(), vec![("post", "/307", "text"), ("post", "/end", "text")]),
        // It cannot be sent again.
        ("/307", streamed(&["text"]), vec![("post", "/307", "text")]),
    ] {
        let before = server.requests();
        let sent = client.post(server.url(path)).body(body).send().await.expect("a response");
        let all = server.seen();
        let seen: Vec<_> =
            all[before..].iter().map(|seen| (seen.method(), seen.path(), &*seen.body)).collect();
        assert_eq!(seen, expected);
        assert_eq!(sent.url().path(), expected.last().expect("one").1);
        let is_redirect = path == "/307" && expected.len() == 1;
        assert_eq!(sent.status().as_u16(), if is_redirect { 307 } else { 200 });
    }
}
