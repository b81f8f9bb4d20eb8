//! Responses that are wrong, late or broken off.

use std::sync::Arc;

use futures_util::future::join_all;
use haypile_http::proxy::{Limits, Settings};
use haypile_http::semantics::Rules;
use haypile_origin::server::{Ending, Framing, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

use super::net::{
    LONG, Logged, body, fields, fresh, fresh_origin, origin, proxy, proxy_on, set_up, short_limits,
    status,
};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\n";

/// Returns a reply of these bytes, after which the connection ends.
fn bytes_and_close(bytes: impl Into<String>) -> Reply {
    Reply::raw(bytes.into()).ending(Ending::Close)
}

#[tokio::test]
async fn bodies_that_break_off_are_in_the_error_log() {
    for (name, rest) in [
        ("a length", "content-length: 10\r\n\r\nab"),
        ("a chunk", "transfer-encoding: chunked\r\n\r\n2\r\nab\r\n5\r\nc"),
        ("nonsense", "transfer-encoding: chunked\r\n\r\n2\r\nab\r\nnonsense"),
    ] {
        let origin = origin([bytes_and_close(format!("{HEAD}{rest}"))]);
        let logged = Logged::new(&[origin.url()], short_limits()).await;
        logged.proxy.get("/a").await;
        let line = logged.line(1).await;
        let expected = " - 127.0.0.1 200 GET http://example.org/a: the response breaks off after ";
        assert!(line.contains(expected), "{name}: {line}");
    }
}

#[tokio::test]
async fn failures_of_the_origin_are_named() {
    for (name, reply, expected, text) in [
        ("nothing", bytes_and_close(""), 502, "broke off its response"),
        ("a reset", Reply::raw("").ending(Ending::Reset), 502, "broke off its response"),
        ("nonsense", bytes_and_close("nonsense\r\n\r\n"), 502, "broke off its response"),
        ("half a head", bytes_and_close(HEAD), 502, "broke off its response"),
        (
            "silence",
            Reply::raw("").ending(Ending::Hang),
            504,
            "did not begin its response within 1s",
        ),
        ("an endless head", Reply::endless_head(), 502, "broke off its response"),
        (
            "two lengths",
            bytes_and_close(format!("{HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab")),
            502,
            "broke off its response",
        ),
        (
            "an unknown coding",
            bytes_and_close(format!("{HEAD}transfer-encoding: x\r\n\r\nab")),
            502,
            "broke off its response",
        ),
    ] {
        let origin = origin([reply]);
        let logged = Logged::new(&[origin.url()], short_limits()).await;
        let answer = logged.proxy.get("/").await;
        assert_eq!(status(&answer), expected, "{name}: {answer}");
        // Clients get an id; operators find the cause by it.
        let line = logged.line(1).await;
        let id = line.split(' ').nth(1).expect("it has one");
        assert!(id.len() == 16 && body(&answer).contains(&format!("(id {id})")), "{line}{answer}");
        assert!(line.contains(text) && line.contains(origin.url()), "{name}: {line}");
        let request = format!(" 127.0.0.1 {expected} GET http://example.org/: the origin ");
        assert!(line.contains(&request), "{name}: {line}");
        assert!(!answer.contains(origin.url()) && !answer.contains("127.0.0.1"), "{answer}");
        let cache_status = "cache-status: haypile; fwd=uri-miss; detail=\"the origin ";
        assert!(answer.contains(cache_status), "{name}: {answer}");
        assert_eq!(origin.requests(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_length_next_to_chunks_does_not_count() {
    let chunked = |length: &str, control: &str| {
        let fields = format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n");
        format!(
            "HTTP/1.1 200 OK\r\ncache-control: {control}\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n"
        )
    };
    for control in ["max-age=60", "no-store"] {
        for length in ["3", "30", "3, 4"] {
            let origin = origin([Reply::raw(chunked(length, control)), fresh("next")]);
            let proxy = proxy(&[origin.url()]).await;
            let first = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
            let last = "GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            let answers = proxy.talk([first, last].concat()).await;
            assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{control} {length}: {answers}");
            assert!(answers.contains("hello"), "{control} {length}: {answers}");
            assert!(answers.ends_with("\r\n\r\nnext"), "{control} {length}: {answers}");
            let wrong = format!("content-length: {length}\r\n");
            assert!(!answers.contains(&wrong), "{control} {length}: {answers}");
        }
    }
}

/// Returns the URL of an origin that is not there.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_named_and_then_down() {
    let url = nobody();
    let logged = Logged::new(&[&url], Limits::default()).await;
    for number in 1..=3 {
        let answer = logged.proxy.get(&format!("/{number}")).await;
        assert_eq!(status(&answer), 502);
        assert!(
            body(&answer).starts_with("haypile: the origin cannot be reached (id "),
            "{answer}"
        );
        let line = logged.line(number).await;
        assert!(line.contains(&format!("the origin {url} cannot be reached: ")), "{line}");
    }
    let answer = logged.proxy.get("/4").await;
    assert_eq!(status(&answer), 503);
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    assert!(answer.contains("fwd=uri-miss; detail=\"the origin is down\""), "{answer}");
    let line = logged.line(4).await;
    assert!(
        line.contains(" 503 GET ")
            && line.contains("counts as down after failures; it is tried again in "),
        "{line}"
    );
}

#[tokio::test]
async fn of_a_down_origin_stale_responses_are_served() {
    let (asked, answers) = (nobody(), fresh_origin("x"));
    // The store outlives the origin.
    let folder = tempfile::tempdir().expect("a folder");
    let cache = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    {
        let stale = fields(&[("cache-control", "max-age=0"), ("etag", "\"a\"")], "stale");
        let origin = origin([stale]);
        let proxy = proxy_on(&cache, &[origin.url()], Limits::default()).await;
        proxy.get("/").await;
    }
    let origins = [format!("example.org={asked}"), answers.url().to_owned()];
    let origins = origins.each_ref().map(String::as_str);
    let proxy = proxy_on(&cache, &origins, Limits::default()).await;
    for number in 0..4 {
        proxy.get(&format!("/{number}")).await;
    }
    let answer = proxy.get("/").await;
    assert_eq!((status(&answer), body(&answer)), (200, "stale"), "{answer}");
    // Another origin is none of its business.
    let other = "GET / HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&proxy.talk(other).await), 200);
}

#[tokio::test]
async fn a_length_that_is_repeated_is_passed_on_once() {
    for lengths in ["content-length: 5, 5", "content-length: 5\r\ncontent-length: 5"] {
        for (control, method) in [("max-age=60", "GET"), ("no-store", "GET"), ("no-store", "HEAD")]
        {
            let body = if method == "GET" { "hello" } else { "" };
            let head = format!("HTTP/1.1 200 OK\r\ncache-control: {control}\r\n{lengths}\r\n\r\n");
            let origin = origin([bytes_and_close(head + body)]);
            let proxy = proxy(&[origin.url()]).await;
            let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let answer = proxy.talk(request).await;
            let lines: Vec<_> =
                answer.lines().filter(|line| line.starts_with("content-length")).collect();
            assert_eq!(lines, ["content-length: 5"], "{method} {control} {lengths}: {answer}");
        }
    }
}

#[tokio::test]
async fn lengths_that_differ_are_a_failure_also_where_there_is_no_body() {
    for lengths in ["5, 6", "5\r\ncontent-length: 6", "5,", "+5", "x"] {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {lengths}\r\n\r\n");
        let origin = origin([bytes_and_close(head)]);
        let proxy = proxy(&[origin.url()]).await;
        let answer = proxy.talk("HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
        assert_eq!(status(&answer), 502, "{lengths}: {answer}");
    }
}

#[tokio::test]
async fn half_a_body_is_neither_stored_nor_passed_on_as_a_whole_one() {
    let wrong_chunk =
        format!("{HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhellohello\r\n0\r\n\r\n");
    for ending in [Ending::Close, Ending::Reset, Ending::Hang] {
        for (name, half) in [
            ("length", fresh("hellohello").cut_after(5, ending)),
            ("chunks", fresh("hellohello").framing(Framing::Chunked).cut_after(5, ending)),
            ("a wrong chunk", Reply::raw(wrong_chunk.clone()).ending(ending)),
        ] {
            let origin = origin([half, fresh("whole")]);
            let proxy = proxy_on("memory:size=1MiB", &[origin.url()], short_limits()).await;
            let answer = proxy.get("/").await;
            let is_marked = answer.ends_with("0\r\n\r\n") && !answer.contains("content-length");
            assert!(!is_marked, "{name}, {ending:?}: {answer}");
            assert!(!answer.contains("content-length: 5"), "{name}, {ending:?}: {answer}");
            assert_eq!(body(&proxy.get("/").await), "whole", "{name}, {ending:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_only_the_connection_ends_is_passed_on_and_not_stored() {
    let reply = |text: &str| fresh(text).framing(Framing::Close);
    let origin = origin([reply("one"), reply("two")]);
    let proxy = proxy(&[origin.url()]).await;
    for expected in ["one", "two"] {
        let answer = proxy.get("/").await;
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.contains("not stored: the end of the response is not marked"), "{answer}");
    }
}

#[tokio::test]
async fn such_a_body_is_stored_where_that_is_wanted_unless_it_breaks_off() {
    for (ending, is_stored) in [(None, true), (Some(Ending::Reset), false)] {
        let reply = |text: &str| fresh(text).framing(Framing::Close);
        let first = match ending {
            Some(ending) => reply("one").cut_after(2, ending),
            None => reply("one"),
        };
        let origin = origin([first, reply("two")]);
        let mut rules = Rules::shared();
        rules.stores_close_delimited = true;
        let cached = |builder: haypile_http::Builder| builder.rules(rules);
        let origins = [origin.url()];
        let proxy = set_up("memory:size=1MiB", &origins, Settings::default(), cached).await;
        proxy.get("/").await;
        let expected = if is_stored { "one" } else { "two" };
        assert!(proxy.get("/").await.contains(expected), "{ending:?}");
    }
}

#[tokio::test]
async fn trailers_that_do_not_come_are_not_announced() {
    let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ntrailer: x-sum\r\n";
    let chunks = "transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n";
    let origin = origin([Reply::raw(format!("{head}{chunks}"))]);
    let proxy = proxy(&[origin.url()]).await;
    for _ in 0..2 {
        let answer = proxy.get("/").await;
        assert!(status(&answer) == 200 && !answer.contains("x-sum"), "{answer}");
    }
    assert_eq!(origin.requests(), 1);
}

#[tokio::test]
async fn surplus_bytes_of_an_origin_answer_nobody() {
    let surplus = format!("first{HEAD}content-length: 7\r\n\r\nsurplus");
    let origin = origin([fresh(&surplus).framing(Framing::WrongLength(5)), fresh("second")]);
    let proxy = proxy(&[origin.url()]).await;
    assert_eq!(body(&proxy.get("/a").await), "first");
    assert_eq!(body(&proxy.get("/b").await), "second");
}

#[tokio::test]
async fn stale_responses_cover_for_an_origin_that_closes_the_connection() {
    let stale = [("cache-control", "max-age=1"), ("age", "5"), ("etag", "\"a\"")];
    let origin = origin([fields(&stale, "stale"), bytes_and_close("")]);
    let proxy = proxy(&[origin.url()]).await;
    proxy.get("/").await;
    let answer = proxy.get("/").await;
    assert_eq!((status(&answer), body(&answer)), (200, "stale"));
    assert!(answer.contains("detail=\"the origin does not answer\""), "{answer}");
}

#[tokio::test]
async fn requests_that_have_come_are_answered_before_the_end() {
    let origin = origin([fresh("hellohello").cut_after(5, Ending::Hang)]);
    let mut proxy = proxy_on("memory:size=1MiB", &[origin.url()], short_limits()).await;
    let end = proxy.end.take().expect("it runs");
    let (answer, ()) = tokio::join!(proxy.get("/"), async {
        while origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        end.send(()).expect("it listens");
    });
    assert_eq!(status(&answer), 200);
    let cut_off = tokio::time::timeout(LONG, proxy.served).await.expect("it ends");
    assert_eq!(cut_off.expect("no panic"), 0);
}

#[tokio::test]
async fn an_origin_may_send_many_fields() {
    for (count, expected) in [(150, 200), (990, 200), (1100, 502)] {
        let fields: Vec<_> = (0..count).map(|at| format!("x-{at}: y\r\n")).collect();
        let fields = fields.concat();
        let head = format!("{HEAD}content-length: 2\r\n{fields}\r\nok");
        let origin = origin([bytes_and_close(head)]);
        let proxy = proxy(&[origin.url()]).await;
        let answer = proxy.get("/").await;
        assert_eq!(status(&answer), expected, "{count}");
        let passed = answer.matches("\r\nx-").count();
        assert_eq!(passed, if expected == 200 { count } else { 0 });
    }
}

#[tokio::test]
async fn a_request_is_sent_again_only_where_the_origin_may_not_have_seen_it() {
    for (method, expected) in [("GET", 200), ("DELETE", 200), ("POST", 502)] {
        // The origin closes the connection over which it has answered, as a second request comes.
        let origin = origin([fresh("one"), bytes_and_close(""), fresh("two")]);
        let proxy = proxy(&[origin.url()]).await;
        proxy.get("/one").await;
        let request = format!("{method} /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&proxy.talk(request).await), expected, "{method}");
        assert_eq!(origin.requests(), if expected == 200 { 3 } else { 2 }, "{method}");
    }
}

/// Answers one request on each connection, the first ones once as many have come, and closes it at the next request.
async fn answer_once_each(listener: TcpListener, at_once: usize) {
    let all_are_there = Arc::new(Barrier::new(at_once));
    for number in 0.. {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let all_are_there = Arc::clone(&all_are_there);
        tokio::spawn(async move {
            let mut bytes = [0; 4096];
            if stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                if number < at_once {
                    all_are_there.wait().await;
                }
                let answer =
                    b"HTTP/1.1 200 OK\r\ncache-control: no-store\r\ncontent-length: 1\r\n\r\na";
                let _ = stream.write_all(answer).await;
                let _ = stream.read(&mut bytes).await;
            }
        });
    }
}

#[tokio::test]
async fn a_request_is_answered_though_all_kept_connections_end_as_it_comes() {
    const KEPT: usize = 8;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    let answering = tokio::spawn(answer_once_each(listener, KEPT));
    let proxy = proxy(&[&origin]).await;
    let paths: Vec<String> = (0..KEPT).map(|path| format!("/{path}")).collect();
    join_all(paths.iter().map(|path| proxy.get(path))).await;
    for path in &paths {
        let answer = proxy.get(path).await;
        assert_eq!(status(&answer), 200, "{path}: {answer}");
    }
    answering.abort();
}

#[tokio::test]
async fn a_connection_does_not_hide_what_forbids_storing() {
    let modified = ("last-modified", "Mon, 02 Jan 2006 15:04:05 GMT");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("cache-control", "private"),
        ("vary", "*"),
        ("expires", "0"),
        ("set-cookie", "a=b"),
        ("age", "100000000"),
    ] {
        let all = [("connection", name), (name, value), modified];
        let origin = origin([fields(&all, "one"), fields(&all, "two")]);
        let proxy = proxy(&[origin.url()]).await;
        for expected in ["one", "two"] {
            let answer = proxy.get("/").await;
            assert_eq!(body(&answer), expected, "{name}: {value}: {answer}");
        }
    }
}

#[tokio::test]
async fn an_origin_of_http_1_0_ends_no_connection_of_a_client() {
    let old = "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold";
    let origin = origin([bytes_and_close(old)]);
    let proxy = proxy(&[origin.url()]).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = proxy.talk([request, request, last].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
}

#[tokio::test]
async fn fields_of_an_origins_connection_stay_there() {
    let of_connection = [("connection", "x-named"), ("x-named", "1"), ("keep-alive", "timeout=5")];
    for (method, control) in
        [("GET", "max-age=60"), ("GET", "no-store"), ("HEAD", "no-store"), ("POST", "no-store")]
    {
        let all = [&of_connection[..], &[("cache-control", control), ("x-other", "2")]].concat();
        let origin = origin([fields(&all, "x")]);
        let proxy = proxy(&[origin.url()]).await;
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        for _ in 0..2 {
            let answer = proxy.talk(&request).await;
            assert!(answer.contains("x-other: 2"), "{method} {control}: {answer}");
            for name in ["x-named", "keep-alive"] {
                assert!(!answer.contains(name), "{method} {control}: {answer}");
            }
        }
    }
}

/// Returns what an origin gets first from the proxy, which does not get an answer.
async fn client_hello(origin: impl Fn(u16) -> String) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let proxy = proxy(&[&origin(port)]).await;
    let request = "GET / HTTP/1.1\r\nHost: img.example.org\r\nConnection: close\r\n\r\n";
    let hello = async {
        let (mut stream, _) = listener.accept().await.expect("it connects");
        let mut hello = vec![0; 16 << 10];
        let length = stream.read(&mut hello).await.expect("it speaks first");
        hello.truncate(length);
        hello
    };
    let (answer, hello) = tokio::join!(proxy.talk(request), hello);
    assert_eq!(status(&answer), 502, "{answer}");
    hello
}

#[tokio::test]
async fn an_origin_at_an_address_is_asked_for_the_certificate_of_its_host() {
    let has = |hello: &[u8], name: &str| {
        hello.windows(name.len()).any(|window| window == name.as_bytes())
    };
    let hello = client_hello(|port| format!("img.example.org=https://127.0.0.1:{port}")).await;
    assert!(has(&hello, "img.example.org"), "{}", hello.escape_ascii());
    let hello = client_hello(|port| format!("img.example.org=https://localhost:{port}")).await;
    assert!(has(&hello, "localhost"), "{}", hello.escape_ascii());
    assert!(!has(&hello, "img.example.org"), "{}", hello.escape_ascii());
    // Without a host of its own, it shows a certificate for its address.
    let hello = client_hello(|port| format!("https://127.0.0.1:{port}")).await;
    assert!(!has(&hello, "img.example.org"), "{}", hello.escape_ascii());
}
