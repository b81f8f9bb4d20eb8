//! Connections that stop being HTTP.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::net::{
    LONG, fields, fresh_origin, heads, origin, proxy, proxy_on, short_limits, status,
};

const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\n\
                      upgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nfrom the origin";

fn request(upgrade: &str) -> String {
    format!(
        "GET /socket HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: {upgrade}\r\nSec-WebSocket-Key: k\r\n\r\n"
    )
}

/// Agrees to one WebSocket; returns its URL, and all that comes over it.
async fn agreeing_origin() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let all = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut all = read_until(&mut stream, "\r\n\r\n").await;
        stream.write_all(AGREED.as_bytes()).await.expect("it reads");
        let mut rest = String::new();
        let _ = stream.read_to_string(&mut rest).await;
        all.push_str(&rest);
        all
    });
    (url, all)
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
    let (url, origin) = agreeing_origin().await;
    let proxy = proxy(&[&url]).await;
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    stream.write_all(request("WebSocket").as_bytes()).await.expect("it reads");
    let head = read_until(&mut stream, "from the origin").await.to_lowercase();
    for line in
        ["http/1.1 101", "connection: upgrade", "upgrade: websocket", "sec-websocket-accept: x"]
    {
        assert!(head.contains(line), "{head}");
    }
    // What looks like a request is not one any more.
    stream.write_all(request("websocket").as_bytes()).await.expect("it reads");
    stream.shutdown().await.expect("it is open");
    let mut rest = Vec::new();
    timeout(LONG, stream.read_to_end(&mut rest)).await.expect("it ends").expect("it is well");
    assert_eq!(rest, b"");
    let all = timeout(LONG, origin).await.expect("it ends").expect("no panic");
    let (asked, sent) = all.split_once("\r\n\r\n").expect("a head");
    let asked = asked.to_lowercase();
    for line in ["connection: upgrade", "upgrade: websocket", "sec-websocket-key: k", "via: 1.1 "] {
        assert!(asked.contains(line), "{asked}");
    }
    assert_eq!(sent, request("websocket"));
}

#[tokio::test]
async fn an_origin_may_decline() {
    let origin = origin([fields(&[("cache-control", "no-store")], "no")]);
    let proxy = proxy(&[origin.url()]).await;
    let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = proxy.talk([&request("websocket"), close].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
}

#[tokio::test]
async fn other_protocols_are_not_tunnelled() {
    for upgrade in ["h2c", "websocket, h2c", "TLS/1.0"] {
        let origin = fresh_origin("x");
        let proxy = proxy(&[origin.url()]).await;
        let close = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answers = proxy.talk([&request(upgrade), close].concat()).await;
        assert_eq!(status(&answers), 200, "{upgrade}: {answers}");
        assert!(!heads(&origin)[0].contains("upgrade"), "{upgrade}");
    }
}

#[tokio::test]
async fn a_silent_tunnel_ends() {
    let (url, _origin) = agreeing_origin().await;
    let mut limits = short_limits();
    limits.tunnel = Duration::from_millis(50);
    let proxy = proxy_on("memory:size=1MiB", &[&url], limits).await;
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    stream.write_all(request("websocket").as_bytes()).await.expect("it reads");
    let mut all = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut all)).await.expect("it ends");
    assert!(String::from_utf8_lossy(&all).contains("101"));
}
