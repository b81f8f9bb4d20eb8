//! WebSockets.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::net::{LONG, Origin, Reply, proxy, proxy_on, short_limits, status};

const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                      upgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nfrom the origin";

fn request(upgrade: &str) -> String {
    format!(
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: {upgrade}\r\nSec-WebSocket-Key: k\r\n\r\n"
    )
}

/// Reads until this text has come.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut all = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&all).contains(text) {
            let byte = stream.read_u8().await;
            all.push(byte.unwrap_or_else(|error| {
                panic!("{error}: {}", String::from_utf8_lossy(&all));
            }));
        }
    };
    timeout(LONG, read).await.expect("it comes");
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn a_websocket_is_tunnelled_in_both_directions() {
    let origin = Origin::start(vec![Reply::SendAndHang(AGREED.into())]).await;
    let proxy = proxy(&[&origin.url]).await;
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    stream.write_all(request("WebSocket").as_bytes()).await.expect("it reads");
    let head = read_until(&mut stream, "from the origin").await.to_lowercase();
    for line in
        ["http/1.1 101", "connection: upgrade", "upgrade: websocket", "sec-websocket-accept: x"]
    {
        assert!(head.contains(line), "{head}");
    }
    let asked = &origin.seen()[0];
    for line in ["connection: upgrade", "upgrade: websocket", "sec-websocket-key: k", "via: 1.1 "] {
        assert!(asked.contains(line), "{asked}");
    }
    // What looks like a request is not one any more.
    stream.write_all(request("websocket").as_bytes()).await.expect("it reads");
    stream.shutdown().await.expect("it is open");
    let mut rest = Vec::new();
    timeout(LONG, stream.read_to_end(&mut rest)).await.expect("it ends").expect("it is well");
    assert_eq!(rest, b"");
    timeout(LONG, async {
        while origin.bodies() != [request("websocket").to_string()] {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the origin gets it");
    assert_eq!(origin.requests(), 1);
}

#[tokio::test]
async fn an_origin_may_decline() {
    let no = "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno";
    let origin = Origin::start(vec![Reply::Send(no.into())]).await;
    let proxy = proxy(&[&origin.url]).await;
    let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = proxy.talk([&request("websocket"), close].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 403").count(), 2, "{answers}");
}

#[tokio::test]
async fn other_protocols_are_not_tunnelled() {
    for upgrade in ["h2c", "websocket, h2c", "TLS/1.0"] {
        let origin = Origin::fresh("x").await;
        let proxy = proxy(&[&origin.url]).await;
        let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answers = proxy.talk([&request(upgrade), close].concat()).await;
        assert_eq!(status(&answers), 200, "{upgrade}: {answers}");
        assert!(!origin.seen()[0].contains("upgrade"), "{upgrade}");
    }
}

#[tokio::test]
async fn a_silent_tunnel_ends() {
    let origin = Origin::start(vec![Reply::SendAndHang(AGREED.into())]).await;
    let mut limits = short_limits();
    limits.tunnel = Duration::from_millis(50);
    let proxy = proxy_on("memory:size=1MiB", &[&origin.url], limits).await;
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    stream.write_all(request("websocket").as_bytes()).await.expect("it reads");
    let mut all = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut all)).await.expect("it ends");
    assert!(String::from_utf8_lossy(&all).contains("101"));
}
