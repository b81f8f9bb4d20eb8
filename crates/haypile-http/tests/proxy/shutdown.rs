//! Requests that come just before the proxy ends.

use std::io::Write;
use std::net::TcpStream as StdTcpStream;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::net::{LONG, fresh_origin, proxy, status};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends a request before any other task of this thread runs.
fn send(client: &mut StdTcpStream) {
    client.write_all(REQUEST).expect("the kernel has room");
}

async fn read_some(client: &mut TcpStream) -> String {
    let mut bytes = [0; 4 << 10];
    let length = timeout(LONG, client.read(&mut bytes)).await.expect("it answers").unwrap_or(0);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn asynchronous(client: StdTcpStream) -> TcpStream {
    client.set_nonblocking(true).expect("a socket");
    TcpStream::from_std(client).expect("a runtime")
}

#[tokio::test]
async fn requests_that_were_sent_before_the_end_are_answered() {
    let origin = fresh_origin("ok");
    let mut proxy = proxy(&[origin.url()]).await;
    let connect = || StdTcpStream::connect(&proxy.address).expect("it listens");
    let mut kept = Vec::new();
    for _ in 0..5 {
        let mut client = connect();
        send(&mut client);
        let mut client = asynchronous(client);
        assert_eq!(status(&read_some(&mut client).await), 200);
        kept.push(client);
    }
    // From here on this thread does not yield: the proxy neither accepts nor reads.
    let mut clients: Vec<_> = kept
        .into_iter()
        .inspect(|client| {
            let sent = client.try_write(REQUEST).expect("the kernel has room");
            assert_eq!(sent, REQUEST.len());
        })
        .collect();
    for _ in 0..5 {
        let mut client = connect();
        send(&mut client);
        clients.push(asynchronous(client));
    }
    proxy.end.take().expect("it runs").send(()).expect("it listens");
    for (number, mut client) in clients.into_iter().enumerate() {
        let answer = read_some(&mut client).await;
        assert_eq!(status(&answer), 200, "client {number}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "client {number}: {answer}");
        assert_eq!(read_some(&mut client).await, "", "client {number}");
    }
    let cut_off = timeout(LONG, proxy.served).await.expect("it ends");
    assert_eq!(cut_off.expect("no panic"), 0);
}

#[tokio::test]
async fn clients_that_ask_for_nothing_do_not_delay_the_end() {
    let origin = fresh_origin("ok");
    let mut proxy = proxy(&[origin.url()]).await;
    let mut idle = StdTcpStream::connect(&proxy.address).expect("it listens");
    send(&mut idle);
    let mut idle = asynchronous(idle);
    assert_eq!(status(&read_some(&mut idle).await), 200);
    let _silent = StdTcpStream::connect(&proxy.address).expect("it listens");
    proxy.end.take().expect("it runs").send(()).expect("it listens");
    // Much less than the limits for clients and for the end.
    let ended = timeout(LONG / 6, proxy.served).await.expect("it ends");
    assert_eq!(ended.expect("no panic"), 0);
}
