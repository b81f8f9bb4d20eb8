//! Clients that send the bodies of their requests slowly, and origins that do not take them.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::net::{LONG, fresh_origin, proxy_on, short_limits, status};

const HEAD: &str = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ";

async fn connect(address: &str, length: usize) -> TcpStream {
    let mut client = TcpStream::connect(address).await.expect("it listens");
    client.write_all(format!("{HEAD}{length}\r\n\r\n").as_bytes()).await.expect("it reads");
    client
}

async fn answer(mut client: impl AsyncReadExt + Unpin) -> String {
    let mut answer = Vec::new();
    let _ = timeout(LONG, client.read_to_end(&mut answer)).await.expect("a bound");
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn an_upload_may_take_longer_than_the_wait_for_its_response() {
    const PIECES: usize = 12;
    let origin = fresh_origin("ok");
    let proxy = proxy_on("memory:size=1MiB", &[origin.url()], short_limits()).await;
    let mut client = connect(&proxy.address, PIECES).await;
    for _ in 0..PIECES {
        sleep(Duration::from_millis(150)).await;
        client.write_all(b"x").await.expect("it reads");
    }
    let answer = answer(client).await;
    assert_eq!(status(&answer), 200, "{answer}");
    assert_eq!(origin.received()[0].body.len(), PIECES);
}

#[tokio::test]
async fn a_client_that_stops_sending_is_not_the_origins_failure() {
    let origin = fresh_origin("ok");
    let mut limits = short_limits();
    limits.client = Duration::from_secs(2);
    let proxy = proxy_on("memory:size=1MiB", &[origin.url()], limits).await;
    let answer = answer(connect(&proxy.address, 10).await).await;
    assert_eq!(status(&answer), 400, "{answer}");
}

#[tokio::test]
async fn an_origin_that_takes_nothing_is_not_waited_for_without_a_bound() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let proxy = proxy_on("memory:size=1MiB", &[&url], short_limits()).await;
    let (read, mut write) = connect(&proxy.address, 1 << 30).await.into_split();
    let sending =
        tokio::spawn(async move { while write.write_all(&[0; 1 << 16]).await.is_ok() {} });
    let answer = answer(read).await;
    assert_eq!(status(&answer), 504, "{answer}");
    timeout(LONG, sending).await.expect("the connection ends").expect("no panic");
}
