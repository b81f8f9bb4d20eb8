//! Bodies that come slowly, and origins that do not take them.

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
        tokio::spawn(async move { while write.write_all(&[0; 1 << 12]).await.is_ok() {} });
    let answer = answer(read).await;
    assert_eq!(status(&answer), 504, "{answer}");
    timeout(LONG, sending).await.expect("the connection ends").expect("no panic");
}

const PART: &[u8] = b"1\r\nx\r\n";
const PAUSE: Duration = Duration::from_millis(100);

async fn trickle(mut write: impl AsyncWriteExt + Unpin) {
    while write.write_all(PART).await.is_ok() {
        sleep(PAUSE).await;
    }
}

#[tokio::test]
async fn a_body_that_never_ends_is_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let mut limits = short_limits();
    limits.body = Duration::from_secs(2);
    let proxy = proxy_on("memory:size=1MiB", &[&url], limits).await;
    let upload = async {
        let client = TcpStream::connect(&proxy.address).await.expect("it listens");
        let (read, mut write) = client.into_split();
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        write.write_all(head).await.expect("it reads");
        let sending = tokio::spawn(trickle(write));
        let answer = answer(read).await;
        assert_eq!(status(&answer), 400, "{answer}");
        assert!(answer.contains("takes longer than 2s"), "{answer}");
        timeout(LONG, sending).await.expect("the connection ends").expect("no panic");
    };
    let (_taken, ()) = tokio::join!(listener.accept(), upload);
    let origin = async {
        let (mut origin, _) = listener.accept().await.expect("the proxy connects");
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        origin.write_all(head).await.expect("it reads");
        timeout(LONG, trickle(origin)).await.expect("the connection ends");
    };
    let (answer, ()) = tokio::join!(proxy.get("/"), origin);
    assert!(answer.ends_with("x\r\n") && !answer.contains("\r\n0\r\n"), "{answer}");
}
