//! Metrics, purges and the access log.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haypile_http::proxy::{AccessLog, Admin, AdminAddress, Limits};
use haypile_origin::server::Ending;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::net::{
    LONG, Running, body, fields, fresh, fresh_origin, logging_proxy, origin, proxy, status,
};

/// A proxy's operators, at a socket.
struct Operators {
    socket: PathBuf,
    _serving: JoinSet<()>,
}

impl Operators {
    fn of(proxy: &Running, folder: &Path) -> Self {
        let socket = folder.join("admin");
        let address = AdminAddress::Unix(socket.clone());
        let admin = Admin::bind(&proxy.proxy, &address, None).expect("it listens");
        let mut serving = JoinSet::new();
        serving.spawn(admin.serve());
        Self { socket, _serving: serving }
    }

    async fn talk(&self, request: &str) -> String {
        let stream = UnixStream::connect(&self.socket).await.expect("it listens");
        talk(stream, request).await
    }

    async fn purge(&self, form: &str) -> String {
        self.talk(&purge(form, "")).await
    }
}

async fn talk(mut stream: impl AsyncReadExt + AsyncWriteExt + Unpin, request: &str) -> String {
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer)).await.expect("it ends").expect("text");
    answer
}

fn purge(form: &str, fields: &str) -> String {
    let length = form.len();
    format!("POST /purge HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{form}")
}

#[tokio::test]
async fn purges_are_of_targets_as_people_type_them() {
    let origin = fresh_origin("x");
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    for path in ["/{a}<b>", "/{a}<c>"] {
        proxy.get(path).await;
    }
    for (form, requests) in [
        ("url=http://example.org/{a}<b>", 3),
        ("url=http://example.org/%257Ba%257D%253Cb%253E", 4),
        ("prefix=http://example.org/{a}<", 6),
        ("prefix=http://example.org/%257Ba", 8),
        ("url=http://example.org/{A}", 8),
    ] {
        let answer = operators.purge(form).await;
        assert_eq!(status(&answer), 200, "{form}: {answer}");
        for path in ["/{a}<b>", "/{a}<c>", "/%7Ba%7D%3Cb%3E"] {
            proxy.get(path).await;
        }
        assert_eq!(origin.requests(), requests, "{form}");
    }
    let answer = operators.purge("url=http://{a}/").await;
    assert_eq!(status(&answer), 400, "{answer}");
}

const METRICS: &str = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test]
async fn purges_are_of_a_target_or_of_all_that_begin_alike() {
    let origin = fresh_origin("x");
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    for path in ["/a/1", "/a/2", "/b/1", "/b/1"] {
        proxy.get(path).await;
    }
    assert_eq!(origin.requests(), 3);
    let answer = operators.purge("url=http%3A%2F%2FExample.org%3A80%2Fa%2F1").await;
    assert_eq!((status(&answer), body(&answer)), (200, "http://Example.org:80/a/1: purged\n"));
    for (path, expected) in [("/a/1", 4), ("/a/1", 4), ("/a/2", 4), ("/b/1", 4)] {
        proxy.get(path).await;
        assert_eq!(origin.requests(), expected, "{path}");
    }
    let answer = operators.purge("prefix=http://example.org/a/&url=http://example.org/c").await;
    let expected = "http://example.org/a/: purged\nhttp://example.org/c: nothing was stored\n";
    assert_eq!((status(&answer), body(&answer)), (200, expected));
    for (path, expected) in [("/b/1", 4), ("/a/1", 5), ("/a/2", 6), ("/a/1", 6)] {
        proxy.get(path).await;
        assert_eq!(origin.requests(), expected, "{path}");
    }
}

#[tokio::test]
async fn purges_are_of_groups_or_of_everything_and_soft_ones_leave_what_is_stale() {
    let answered = [("Cache-Control", "max-age=60"), ("Surrogate-Key", "user:7 page")];
    let origin = origin([fields(&answered, "x")]);
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    for (form, expected) in [
        ("group=user%3A7", "user:7: purged\n"),
        ("group=other&group=page", "other: purged\npage: purged\n"),
        ("all", "all: purged\n"),
        ("all=yes", "all: purged\n"),
    ] {
        proxy.get("/").await;
        let before = origin.requests();
        let answer = operators.purge(form).await;
        assert_eq!((status(&answer), body(&answer)), (200, expected));
        proxy.get("/").await;
        assert_eq!(origin.requests(), before + 1, "{form}");
    }
    for (form, expected) in [
        ("url=http://example.org/&soft", "http://example.org/: stale from now on\n"),
        ("soft=yes&group=page", "page: stale from now on\n"),
    ] {
        let before = origin.requests();
        let answer = operators.purge(form).await;
        assert_eq!((status(&answer), body(&answer)), (200, expected));
        let stale = proxy.get("/").await;
        assert!(stale.contains("cache-status: haypile; hit; ttl=-1\r\n"), "{stale}");
        while !proxy.get("/").await.contains("cache-status: haypile; hit; ttl=60\r\n") {
            tokio::task::yield_now().await;
        }
        assert_eq!(origin.requests(), before + 1, "{form}");
    }
}

#[tokio::test]
async fn what_operators_may_not_ask() {
    let origin = fresh_origin("x");
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    let long = format!("prefix=http://example.org/{}", "x".repeat(2000));
    for (form, expected, text) in [
        ("", 400, "says what to purge"),
        ("url=", 400, "is not a URL of responses to purge"),
        ("url=/a", 400, "is not a URL of responses to purge"),
        ("prefix=ftp://example.org/", 400, "other than http and https"),
        ("prefix=http://example.o", 400, "ends within the host"),
        ("prefix=http://example.org", 400, "ends within the host"),
        ("prefix=http://example.org?a/b", 400, "ends within the host"),
        ("other=http://example.org/", 400, "the fields are url, prefix, group, all and soft"),
        ("group=", 400, "the name of the group to purge is empty"),
        ("all=no", 400, "the fields are url, prefix, group, all and soft"),
        ("soft", 400, "says what to purge"),
        ("all&soft=no", 400, "soft is for all of the form"),
        (&long, 400, "the limit is 1024"),
    ] {
        let answer = operators.purge(form).await;
        assert_eq!(status(&answer), expected, "{form}: {answer}");
        assert!(answer.contains(text), "{form}: {answer}");
    }
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        ("GET /purge HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405),
        ("nonsense\r\n\r\n", 400),
    ] {
        assert_eq!(status(&operators.talk(request).await), expected, "{request}");
    }
    let too_long = format!("url={}", "x".repeat(2 << 20));
    let mut stream = UnixStream::connect(&operators.socket).await.expect("it listens");
    // It need not read all of it.
    let _ = stream.write_all(purge(&too_long, "").as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(LONG, stream.read_to_end(&mut answer)).await.expect("it ends");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 413"));
}

#[tokio::test]
async fn an_address_needs_a_token() {
    let origin = fresh_origin("x");
    let proxy = proxy(&[origin.url()]).await;
    let address: AdminAddress = "127.0.0.1:0".parse().expect("an address");
    assert!(Admin::bind(&proxy.proxy, &address, None).is_err());
    assert!(Admin::bind(&proxy.proxy, &address, Some(String::new())).is_err());
    let admin = Admin::bind(&proxy.proxy, &address, Some("right".into())).expect("it listens");
    let AdminAddress::Tcp(address) = admin.address().expect("it has one") else { panic!("TCP") };
    let mut serving = JoinSet::new();
    serving.spawn(admin.serve());
    for (token, expected) in [
        ("Authorization: Bearer right\r\n", 200),
        ("Authorization: bearer right\r\n", 200),
        ("Authorization: BEARER  right\r\n", 200),
        ("Authorization: Basic right\r\n", 401),
        ("Authorization: Bearerright\r\n", 401),
        ("Authorization: Bearer wrong\r\n", 401),
        ("Authorization: Bearer righ\r\n", 401),
        ("Authorization: Bearer \r\n", 401),
        ("Authorization: right\r\n", 401),
        ("", 401),
    ] {
        for request in [
            purge("prefix=http://example.org/", token),
            METRICS.replace("\r\n\r\n", &format!("\r\n{token}\r\n")),
        ] {
            let stream = TcpStream::connect(address).await.expect("it listens");
            let answer = talk(stream, &request).await;
            assert_eq!(status(&answer), expected, "{request}");
            let says_how = answer.contains("\r\nwww-authenticate: Bearer\r\n");
            assert_eq!(says_how, expected == 401, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_socket_is_for_its_owner_and_goes_with_its_proxy() {
    let origin = fresh_origin("x");
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    let mode = std::fs::metadata(&operators.socket).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Another process's socket is not taken from it.
    let address = AdminAddress::Unix(operators.socket.clone());
    assert!(Admin::bind(&proxy.proxy, &address, None).is_err());
    let Operators { socket, _serving: mut serving } = operators;
    serving.shutdown().await;
    assert!(!socket.exists());
    // One that nobody listens on is left of a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("there is room"));
    assert!(socket.exists());
    assert_eq!(status(&Operators::of(&proxy, folder.path()).talk(METRICS).await), 200);
    // What is not a socket stays as it is.
    let file = folder.path().join("file");
    std::fs::write(&file, "text").expect("there is room");
    assert!(Admin::bind(&proxy.proxy, &AdminAddress::Unix(file.clone()), None).is_err());
    assert_eq!(std::fs::read_to_string(file).expect("it is there"), "text");
}

#[tokio::test]
async fn metrics_count_what_was_done() {
    let origin = fresh_origin("hello");
    let proxy = proxy(&[origin.url()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let operators = Operators::of(&proxy, folder.path());
    for _ in 0..3 {
        proxy.get("/").await;
    }
    proxy.talk("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    operators.purge("url=http://example.org/").await;
    let answer = operators.talk(METRICS).await;
    for line in [
        "haypile_http_responses_total{result=\"uri-miss\",code=\"2xx\"} 1",
        "haypile_http_responses_total{result=\"hit\",code=\"2xx\"} 2",
        "haypile_http_responses_total{result=\"refused\",code=\"4xx\"} 1",
        "haypile_http_sent_bytes_total{result=\"hit\"} 10",
        "haypile_http_stored_total 1",
        "haypile_http_origin_requests_total{result=\"answered\"} 1",
        "haypile_http_purges_total 1",
        "haypile_http_requests 0",
    ] {
        assert!(body(&answer).lines().any(|other| other == line), "{line}:\n{answer}");
    }
    assert!(body(&answer).contains("haypile_operations_total{"), "{answer}");
}

#[tokio::test]
async fn a_client_that_leaves_is_counted_and_logged() {
    for is_reset in [true, false] {
        let took = client_that_leaves(is_reset).await;
        // One that ends its side may still wait for its response.
        assert!(is_reset || took >= Duration::from_secs(1), "{took:?}");
    }
}

/// Returns how long it takes until it is noticed.
async fn client_that_leaves(is_reset: bool) -> Duration {
    let origin = origin([fresh("late").delay(LONG)]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = AccessLog::open(&path).expect("it opens");
    let mut limits = Limits::default();
    limits.client = Duration::from_secs(1);
    let proxy = logging_proxy("memory:size=1MiB", &[origin.url()], limits, Some(log)).await;
    let operators = Operators::of(&proxy, folder.path());
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    let request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(request).await.expect("it reads");
    while origin.requests() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(operators.talk(METRICS).await.contains("haypile_http_requests 1\n"));
    let left = Instant::now();
    if is_reset {
        stream.set_zero_linger().expect("a socket");
    }
    drop(stream);
    let counted = async {
        while !operators.talk(METRICS).await.contains("haypile_http_requests 0\n") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, counted).await.expect("it is noticed");
    let took = left.elapsed();
    let metrics = operators.talk(METRICS).await;
    let expected = "haypile_http_responses_total{result=\"abandoned\",code=\"4xx\"} 1\n";
    assert!(metrics.contains(expected), "{metrics}");
    let logged = async {
        while !std::fs::read_to_string(&path).expect("it is there").contains("HTTP/1.1\" 499 0 ") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, logged).await.expect("it is written");
    took
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_response_is_noticed_though_nothing_is_sent() {
    let origin = origin([fresh("late").cut_after(2, Ending::Hang)]);
    let folder = tempfile::tempdir().expect("a folder");
    let mut limits = Limits::default();
    (limits.client, limits.pause) = (Duration::from_secs(1), 2 * LONG);
    let proxy = logging_proxy("memory:size=1MiB", &[origin.url()], limits, None).await;
    let operators = Operators::of(&proxy, folder.path());
    let mut stream = TcpStream::connect(&proxy.address).await.expect("it listens");
    let request = b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    stream.write_all(request).await.expect("it reads");
    let mut answer = Vec::new();
    while !answer.ends_with(b"la") {
        assert!(stream.read_buf(&mut answer).await.expect("it sends") > 0);
    }
    drop(stream);
    let counted = async {
        while !operators.talk(METRICS).await.contains("haypile_http_requests 0\n") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, counted).await.expect("it is noticed");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn lines_that_a_full_disk_loses_are_counted() {
    let origin = fresh_origin("x");
    let folder = tempfile::tempdir().expect("a folder");
    let log = AccessLog::open("/dev/full").expect("it opens");
    let limits = Limits::default();
    let proxy = logging_proxy("memory:size=1MiB", &[origin.url()], limits, Some(log)).await;
    let operators = Operators::of(&proxy, folder.path());
    // Some wait for room.
    let path = format!("/{}", "x".repeat(30_000));
    let counted = async {
        while !operators.talk(METRICS).await.contains("haypile_http_access_log_lost_total 3\n") {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..5 {
        proxy.get(&path).await;
    }
    timeout(LONG, counted).await.expect("they are counted");
}

#[tokio::test]
async fn every_request_is_in_the_access_log() {
    let origin = fresh_origin("hello");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let log = AccessLog::open(&path).expect("it opens");
    let proxy =
        logging_proxy("memory:size=1MiB", &[origin.url()], Limits::default(), Some(log)).await;
    proxy.get("/a?b").await;
    proxy.get("/a?b").await;
    proxy.talk("GET /c HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n").await;
    let Running { proxy, end, served, .. } = proxy;
    drop(end);
    served.await.expect("no panic");
    // The log ends with the last that knows it: connections may take a moment.
    drop(proxy);
    let lines = timeout(LONG, async {
        loop {
            let text = std::fs::read_to_string(&path).expect("it is there");
            if text.lines().count() == 3 {
                return text;
            }
            tokio::task::yield_now().await;
        }
    });
    let lines = lines.await.expect("all lines come");
    for (line, expected) in lines.lines().zip([
        (
            "\"GET http://example.org/a?b HTTP/1.1\" 200 5 ",
            "\"fwd=uri-miss; fwd-status=200; stored\"",
        ),
        ("\"GET http://example.org/a?b HTTP/1.1\" 200 5 ", "\"hit; ttl="),
        // Neither hit nor fwd: no cache has been asked.
        ("\"GET /c HTTP/1.1\" 400 ", "\"-\" \"-\" \"detail=\\x22Host is not a host\\x22\""),
    ]) {
        assert!(line.starts_with("127.0.0.1 - - ["), "{line}");
        assert!(line.contains(expected.0) && line.contains(expected.1), "{line}");
    }
}
