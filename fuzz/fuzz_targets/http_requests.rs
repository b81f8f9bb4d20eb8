//! Any bytes as the requests of a client of the proxy: the origin gets only requests that a strict
//! reader finds in them too, in their order, with their bodies. Targets may have bytes that no URI may have.
//!
//! `cargo +nightly fuzz run http_requests`

#![no_main]

use haypile_http::fuzzing::converse;
use haypile_origin::server::ReceivedRequest;
use libfuzzer_sys::fuzz_target;

const MOST_BYTES: usize = 16 << 10;

fuzz_target!(
    init: requests_get_through(),
    |input: (bool, &[u8])| {
        let (is_plain, bytes) = input;
        let bytes = &bytes[..bytes.len().min(MOST_BYTES)];
        check(bytes);
        // Most heads have no host and no end.
        let line = if is_plain { "GET /a HTTP/1.1" } else { "POST /b HTTP/1.1" };
        let last = "GET /last HTTP/1.1\r\nHost: a\r\n\r\n";
        let head = [format!("{line}\r\nHost: a\r\n").as_bytes(), bytes].concat();
        check(&head);
        check(&[&head, last.as_bytes()].concat());
        check(&[&head, &b"\r\n\r\n"[..], last.as_bytes()].concat());
    }
);

/// Two good requests reach the origin whole: the target would check nothing otherwise.
fn requests_get_through() {
    let post = "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let get = "5\r\nhello\r\n0\r\n\r\nGET /c?{d} HTTP/1.1\r\nHost: a\r\n\r\n";
    let conversation = converse([post, get].concat().as_bytes());
    let received: Vec<_> = conversation
        .received
        .iter()
        .map(|request| {
            assert!(request.is_whole, "{conversation:?}");
            (line(request).1, &request.body[..])
        })
        .collect();
    assert_eq!(received, [("/b".to_owned(), &b"hello"[..]), ("/c?%7Bd%7D".to_owned(), &b""[..])]);
    let answers = String::from_utf8_lossy(&conversation.answers);
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
}

fn check(bytes: &[u8]) {
    let conversation = converse(bytes);
    assert!(!conversation.is_garbled, "{conversation:?}");
    let mut sent = conversation.sent.iter();
    for (number, received) in conversation.received.iter().enumerate() {
        let is_last = number + 1 == conversation.received.len();
        // The proxy may have answered some without the origin.
        let is_found = sent.any(|sent| is_same(sent, received));
        // Of what is doubtful to the strict reader, the proxy may pass on one request, in a form that
        // is not; then it ends the connection.
        assert!(is_found || (is_last && conversation.is_doubtful), "{conversation:?}");
    }
}

fn is_same(sent: &ReceivedRequest, received: &ReceivedRequest) -> bool {
    line(sent) == line(received)
        && sent.is_whole == received.is_whole
        && (!sent.is_whole || sent.body == received.body)
}

/// Returns method, path and query.
fn line(request: &ReceivedRequest) -> (String, String) {
    let text = String::from_utf8_lossy(&request.head);
    let mut words = text.trim_start().split(' ');
    let mut next = || words.next().unwrap_or_default().to_owned();
    let (method, target) = (next(), next());
    let target = target.split('#').next().unwrap_or_default();
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find(['/', '?']).map_or("/", |start| &rest[start..]),
        None => target,
    };
    let slash = if path.starts_with('?') { "/" } else { "" };
    (method, format!("{slash}{path}"))
}
