//! Clients that read slowly while the cache replaces what they read.

use std::fmt::Write;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::net::{LONG, Running, body, fresh, origin, proxy_on};
use haypile_http::proxy::Limits;

const CLIENTS: usize = 20;
const PAGES: u64 = 40;

/// Returns a body whose bytes are different everywhere, and from those of another mark.
fn text(mark: char) -> String {
    let mut text = String::new();
    for number in 0..100_000 {
        let _ = write!(text, "{number:07}{mark}");
    }
    text
}

/// Sends a request over a connection that takes little before the client reads.
async fn slow_client(proxy: &Running, request: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let address = proxy.address.parse().expect("an address");
    let mut client = socket.connect(address).await.expect("it listens");
    client.write_all(request.as_bytes()).await.expect("it reads");
    client
}

#[tokio::test]
async fn slow_clients_get_right_bytes_and_do_not_keep_others_from_the_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{},size=16MiB", folder.path().join("f").display());
    let (old, new) = (text('a'), text('b'));
    for cache in ["memory:size=16MiB", &file] {
        let origin = origin([fresh(&old), fresh(&new)]);
        let proxy = proxy_on(cache, &[origin.url()], Limits::default()).await;
        assert!(body(&proxy.get("/old").await) == old, "{cache}");
        let mut slow = Vec::new();
        for _ in 0..CLIENTS {
            let request = "GET /old HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n";
            let client = slow_client(&proxy, request).await;
            client.readable().await.expect("it answers");
            slow.push(client);
        }
        assert_eq!(origin.requests(), 1, "they are hits: {cache}");
        for number in 0..PAGES {
            let path = format!("/{number}");
            for asked in ["the first time", "as a hit"] {
                assert!(body(&proxy.get(&path).await) == new, "{path} {asked}, {cache}");
            }
        }
        // Without slow clients the policy evicts up to a half of them before they are asked for again.
        let hits = 2 * PAGES + 1 - origin.requests();
        assert!(hits >= PAGES / 4, "{hits} hits, {cache}");
        for mut client in slow {
            let mut answer = Vec::new();
            // It breaks off where the rest was evicted: the origin has another.
            let _ = timeout(LONG, client.read_to_end(&mut answer)).await.expect("it ends");
            let answer = String::from_utf8(answer).expect("text");
            let got = body(&answer);
            assert!(!got.is_empty() && old.starts_with(got), "{} bytes, {cache}", got.len());
        }
    }
}

#[tokio::test]
async fn clients_that_read_nothing_block_nobody() {
    const STALLED: usize = 200;
    let long = "x".repeat(8 << 20);
    let origin = origin([fresh(&long), fresh("short")]);
    let mut limits = Limits::default();
    // None of them is sent away.
    limits.client = LONG * 10;
    let proxy = proxy_on("memory:size=256MiB", &[origin.url()], limits).await;
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let request = "GET /long HTTP/1.1\r\nHost: example.org\r\n\r\n";
        stalled.push(slow_client(&proxy, request).await);
    }
    // The first of them has begun the response that all others get.
    timeout(LONG, stalled[0].readable()).await.expect("it answers").expect("it is open");
    for number in 0..20 {
        assert_eq!(body(&proxy.get(&format!("/{number}")).await), "short");
        assert!(body(&proxy.get("/long").await) == long, "{number}");
    }
    for client in &stalled {
        timeout(LONG, client.readable()).await.expect("it answers").expect("it is open");
    }
    assert_eq!(origin.requests(), 21);
}
