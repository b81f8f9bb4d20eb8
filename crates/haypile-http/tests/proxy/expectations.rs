//! Clients that send their bodies only once they are permitted: `Expect: 100-continue`.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::net::fresh;
use super::net::{LONG, Running, heads, origin, proxy, status};

const EXPECT: &str = "Expect: 100-Continue\r\n";

fn head(fields: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

async fn listen() -> (TcpListener, Running) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let proxy = proxy(&[&url]).await;
    (listener, proxy)
}

async fn accept(listener: &TcpListener) -> TcpStream {
    timeout(LONG, listener.accept()).await.expect("the proxy connects").expect("a connection").0
}

/// Reads until the text ends so.
async fn read_to(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let byte = timeout(LONG, stream.read_u8()).await;
        let byte = byte.unwrap_or_else(|_| panic!("{}", text.escape_ascii()));
        text.push(byte.unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii())));
    }
    String::from_utf8(text).expect("text")
}

async fn read_all(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut text)).await.expect("it ends");
    String::from_utf8(text).expect("text")
}

async fn send(proxy: &Running, text: &str) -> TcpStream {
    let mut client = TcpStream::connect(&proxy.address).await.expect("it listens");
    client.write_all(text.as_bytes()).await.expect("it reads");
    client
}

/// Whether nothing has come, as far as can be known: all tasks have had many turns.
async fn is_silent(stream: &TcpStream) -> bool {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    stream.try_read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn the_body_is_sent_once_the_origin_permits_it() {
    for (fields, sent, received) in [
        ("Content-Length: 5\r\n", "hello", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    ] {
        let (listener, proxy) = listen().await;
        let mut client = send(&proxy, &head(&format!("{EXPECT}{fields}"))).await;
        let mut origin = accept(&listener).await;
        let asked = read_to(&mut origin, "\r\n\r\n").await.to_lowercase();
        assert!(asked.contains("\r\nexpect: 100-continue\r\n"), "{asked}");
        assert!(is_silent(&client).await && is_silent(&origin).await, "the origin has not said so");
        // Another interim response is not a permission.
        let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        origin.write_all(interim).await.expect("it reads");
        assert!(is_silent(&client).await, "103 permits nothing");
        origin.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.expect("it reads");
        let permitted = read_to(&mut client, "\r\n\r\n").await;
        assert_eq!(permitted, "HTTP/1.1 100 Continue\r\n\r\n");
        client.write_all(sent.as_bytes()).await.expect("it reads");
        assert_eq!(read_to(&mut origin, received).await, received);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        origin.write_all(answer).await.expect("it reads");
        assert!(read_to(&mut client, "\r\n\r\nok").await.starts_with("HTTP/1.1 200 OK\r\n"));
        // Both connections go on.
        client.write_all(b"GET /b HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("it reads");
        assert!(read_to(&mut origin, "\r\n\r\n").await.starts_with("GET /b "));
    }
}

#[tokio::test]
async fn a_body_that_the_origin_does_not_want_is_never_sent() {
    for length in [0, 5, 3_000_000] {
        let (listener, proxy) = listen().await;
        let asked = format!("{EXPECT}Content-Length: 30\r\n");
        let client = send(&proxy, &head(&asked)).await;
        let mut origin = accept(&listener).await;
        read_to(&mut origin, "\r\n\r\n").await;
        let page = "x".repeat(length);
        let answer = format!("HTTP/1.1 413 Too Large\r\nContent-Length: {length}\r\n\r\n{page}");
        let sending = tokio::spawn(async move {
            origin.write_all(answer.as_bytes()).await.expect("it reads");
            origin
        });
        let answer = read_all(client).await;
        assert_eq!(
            (status(&answer), answer.matches("HTTP/1.1").count()),
            (413, 1),
            "{answer:.300}"
        );
        assert!(answer.ends_with(&format!("\r\n\r\n{page}")), "{answer:.300}");
        // It is the last of its connection: what comes next there would be the body.
        let origin = sending.await.expect("no panic");
        assert_eq!(read_all(origin).await, "");
    }
}

#[tokio::test]
async fn an_origin_that_does_not_know_it_gets_the_body_after_a_second_and_then_at_once() {
    let (listener, proxy) = listen().await;
    let fields = format!("{EXPECT}Content-Length: 5\r\nConnection: close\r\n");
    let (mut origin, begun) = (None, Instant::now());
    for turn in 0..3 {
        let mut client = send(&proxy, &head(&fields)).await;
        if origin.is_none() {
            origin = Some(accept(&listener).await);
        }
        let origin = origin.as_mut().expect("it is connected");
        let asked = read_to(origin, "\r\n\r\n").await.to_lowercase();
        assert_eq!(asked.contains("expect"), turn == 0, "{asked}");
        assert_eq!(read_to(&mut client, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
        assert!(begun.elapsed() >= Duration::from_secs(1));
        client.write_all(b"hello").await.expect("it reads");
        assert_eq!(read_to(origin, "hello").await, "hello");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        origin.write_all(answer).await.expect("it reads");
        assert_eq!(status(&read_all(client).await), 200);
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_it_waits_ends_its_request() {
    let (listener, proxy) = listen().await;
    let client = send(&proxy, &head(&format!("{EXPECT}Content-Length: 5\r\n"))).await;
    let mut origin = accept(&listener).await;
    read_to(&mut origin, "\r\n\r\n").await;
    drop(client);
    assert_eq!(read_all(origin).await, "");
}

#[tokio::test]
async fn other_expectations_are_not_passed_on() {
    for (fields, is_answered) in [
        ("Expect: 100-continue\r\nContent-Length: 0\r\n", false),
        ("Expect: 200-ok\r\nContent-Length: 2\r\n", true),
        ("Expect: 100-continue\r\nExpect: x\r\nContent-Length: 2\r\n", true),
    ] {
        let origin = origin([fresh("ok")]);
        let proxy = proxy(&[origin.url()]).await;
        let body = if is_answered { "{}" } else { "" };
        let request = head(&format!("{fields}Connection: close\r\n")) + body;
        let answer = proxy.talk(request).await;
        assert!(answer.contains("HTTP/1.1 200 OK\r\n"), "{fields}: {answer}");
        assert!(heads(&origin).iter().all(|head| !head.contains("expect")), "{fields}");
    }
}
