//! Hosts with replies of their own, counts, and bodies that a function makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use haypile_origin::server::{BodySource, Framing, OriginCounts, Reply, Script, ScriptedOrigin};
use http::StatusCode;

use crate::{Client, End, GET, fields, ok, start, talk, until, whole};

#[tokio::test]
async fn hosts_have_replies_of_their_own() {
    let script = Script::new([ok("other")])
        .on("/a", [ok("any 1"), ok("any 2")])
        .on_host("One.Test", "/a", [ok("one 1"), ok("one 2")])
        .on_host("two.test:8080", "/a", [ok("two")])
        .on_host("[::1]", "/", [ok("six")]);
    let origin = ScriptedOrigin::start(script).expect("a port");
    let mut client = Client::of(&origin).await;
    for (target, host, body) in [
        ("/a", "Host: one.test", "one 1"),
        ("/a", "host: ONE.test:80", "one 2"),
        ("/a", "host: two.test", "two"),
        ("/a", "host: three.test", "any 1"),
        ("/a", "x: y", "any 2"),
        ("/", "host: one.test", "other"),
        ("/b", "host: one.test", "other"),
        ("/", "host: [::1]:80", "six"),
        ("/", "host: [::1]", "six"),
        // The target comes before the field.
        ("http://two.test:81/a", "host: one.test", "two"),
        ("http://One.test/a", "host: two.test", "one 2"),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\n{host}\r\n\r\n");
        client.expect(request, &whole(body)).await;
    }
    for (host, path, count) in [
        ("one.test", "/a", 3),
        ("TWO.test:8080", "/a", 2),
        ("[::1]", "/", 2),
        ("three.test", "/a", 0),
        ("one.test", "/", 0),
    ] {
        assert_eq!(origin.requests_for_host(host, path), count, "{host}{path}");
    }
    assert_eq!(
        (origin.requests_for("/a"), origin.requests_for("/"), origin.requests()),
        (7, 3, 11)
    );
    let by_path = [("/a", 7), ("/", 3), ("/b", 1)];
    let by_path = by_path.map(|(path, count)| (path.to_owned(), count)).into();
    assert_eq!(origin.requests_by_path(), by_path);
    let by_host = origin.counts_by_host();
    assert_eq!(by_host.len(), 3);
    let two = by_host[&("two.test".to_owned(), "/a".to_owned())];
    assert_eq!((two.requests, two.body_bytes), (2, 6));
    assert_eq!(two, origin.counts_for_host("two.test", "/a"));
}

#[tokio::test]
async fn counts_have_differences() {
    let reply = || fields(&[("etag", "\"a\"")], "hello").answering_conditions().answering_ranges();
    let script = Script::new([Reply::empty(StatusCode::NOT_FOUND)])
        .on_host("a.test", "/", [reply()])
        .on("/raw", [Reply::raw("raw")]);
    let origin = ScriptedOrigin::start(script).expect("a port");
    let ask = |fields: &str| format!("GET / HTTP/1.1\r\nhost: a.test\r\n{fields}\r\n");
    let mut client = Client::of(&origin).await;
    let full = "HTTP/1.1 200 OK\r\netag: \"a\"\r\ncontent-length: 5\r\n\r\nhello";
    client.expect(ask(""), full).await;
    let (before, before_here) = (origin.counts(), origin.counts_for_host("a.test", "/"));
    assert_eq!((before.connections, before.requests, before.replies_200), (1, 1, 1));
    assert_eq!((before.body_bytes, before_here.body_bytes), (5, 5));
    for _ in 0..2 {
        let not_modified = "HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n";
        client.expect(ask("if-none-match: \"a\"\r\n"), not_modified).await;
    }
    let part = "HTTP/1.1 206 Partial Content\r\netag: \"a\"\r\ncontent-range: bytes 1-2/5\r\n\
                content-length: 2\r\n\r\nel";
    client.expect(ask("range: bytes=1-2\r\n"), part).await;
    client.expect(GET, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
    client.expect("GET /raw HTTP/1.1\r\n\r\n", "raw").await;
    let since = origin.counts() - before;
    assert_eq!((since.connections, since.requests, since.unreadable), (0, 5, 0));
    assert_eq!((since.replies_200, since.replies_206, since.replies_304), (0, 1, 2));
    assert_eq!((since.replies_other, since.body_bytes), (2, 2));
    let here = origin.counts_for_host("a.test", "/") - before_here;
    assert_eq!((here.requests, here.body_bytes), (3, 2));
    assert_eq!(before - origin.counts(), OriginCounts::default());
}

#[tokio::test]
async fn bodies_are_made_when_they_are_sent() {
    const LENGTH: u64 = 200_000;
    let made = Arc::new(AtomicU64::new(0));
    let source = |declared: u64| {
        let made = Arc::clone(&made);
        let function = move || {
            made.fetch_add(1, Ordering::SeqCst);
            Bytes::from(vec![b'm'; 200_000])
        };
        BodySource::from_fn(declared, Arc::new(function))
    };
    let origin = start([ok(source(LENGTH)).answering_ranges()]);
    let mut client = Client::of(&origin).await;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
    client.expect("HEAD / HTTP/1.1\r\n\r\n", &head).await;
    assert_eq!(made.load(Ordering::SeqCst), 0);
    let body = "m".repeat(200_000);
    for times in 1..3 {
        client.expect(GET, &(head.clone() + &body)).await;
        // Once for each reply, however many parts it has.
        assert_eq!(made.load(Ordering::SeqCst), times);
    }
    client.send("GET / HTTP/1.1\r\nrange: bytes=-1\r\nconnection: close\r\n\r\n").await;
    let (part, end) = client.rest().await;
    assert!(part.ends_with(b"content-length: 1\r\n\r\nm") && end == End::Closed);
    assert_eq!(origin.body_bytes_sent(), 2 * LENGTH + 1);

    // A surplus is not sent, and what is missing ends the connection.
    let origin = start([ok(source(5)), ok(source(5)).framing(Framing::Chunked)]);
    let mut client = Client::of(&origin).await;
    client.expect(GET, &whole("mmmmm")).await;
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nmmmmm\r\n0\r\n\r\n";
    client.expect(GET, chunks).await;
    let origin = start([ok(source(LENGTH + 1))]);
    let (answer, _) = talk(&origin, GET).await;
    assert!(answer.ends_with(&body));
    let framing = Framing::Chunked;
    let origin = start([ok(source(LENGTH + 1)).framing(framing)]);
    let (answer, _) = talk(&origin, GET).await;
    assert!(!answer.ends_with("0\r\n\r\n"));

    let source = source(9);
    assert_eq!((source.bytes(), source.part(7..20)), (9, Bytes::from_static(b"mm")));
    assert_eq!(source, source.clone());
    assert_ne!(source, BodySource::from("mmmmmmmmm"));
}

#[tokio::test]
async fn what_a_client_refuses_is_not_counted() {
    const LENGTH: u64 = 1 << 30;
    let origin = start([ok(BodySource::generated(LENGTH, 1))]);
    let mut client = Client::of(&origin).await;
    client.send(GET).await;
    client.take(20).await;
    drop(client);
    until(|| origin.open_connections() == 0).await;
    assert!(origin.body_bytes_sent() < LENGTH);
}
