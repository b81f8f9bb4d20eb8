//! Responses that are wrong, late or broken off.

use super::net::{LONG, Origin, Reply, body, fresh, proxy, proxy_on, short_limits, status};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\n";

#[tokio::test]
async fn failures_of_the_origin_are_named() {
    for (name, reply, expected, text) in [
        ("nothing", Reply::SendAndClose(vec![]), 502, "cannot be reached, or breaks off"),
        ("nonsense", Reply::SendAndClose(b"nonsense\r\n\r\n".to_vec()), 502, "breaks off"),
        ("half a head", Reply::SendAndClose(HEAD.into()), 502, "breaks off"),
        ("silence", Reply::SendAndHang(vec![]), 504, "does not answer within 1s"),
        (
            "an endless head",
            Reply::SendAndHang(format!("{HEAD}x: {}", "x".repeat(1 << 20)).into()),
            502,
            "breaks off",
        ),
        (
            "two lengths",
            Reply::SendAndClose(
                format!("{HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab").into(),
            ),
            502,
            "breaks off",
        ),
        (
            "an unknown coding",
            Reply::SendAndClose(format!("{HEAD}transfer-encoding: x\r\n\r\nab").into()),
            502,
            "breaks off",
        ),
    ] {
        let origin = Origin::start(vec![reply]).await;
        let proxy = proxy_on("memory:size=1MiB", &[&origin.url], short_limits()).await;
        let answer = proxy.get("/").await;
        assert_eq!(status(&answer), expected, "{name}: {answer}");
        assert!(answer.contains(text) && answer.contains(&origin.url), "{name}: {answer}");
        assert_eq!(origin.requests(), 1, "{name}");
    }
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_named() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address")
    };
    let url = format!("http://{address}");
    let proxy = proxy(&[&url]).await;
    let answer = proxy.get("/").await;
    assert_eq!(status(&answer), 502);
    assert!(body(&answer).contains(&format!("the origin {url} cannot be reached")), "{answer}");
}

#[tokio::test]
async fn half_a_body_is_neither_stored_nor_passed_on_as_a_whole_one() {
    for (name, half) in [
        ("length", format!("{HEAD}content-length: 10\r\n\r\nhello")),
        ("chunks", format!("{HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")),
        (
            "a wrong chunk",
            format!("{HEAD}transfer-encoding: chunked\r\n\r\n5\r\nhellohello\r\n0\r\n\r\n"),
        ),
    ] {
        for hangs in [false, true] {
            let half = half.clone().into_bytes();
            let reply = if hangs { Reply::SendAndHang(half) } else { Reply::SendAndClose(half) };
            let origin = Origin::start(vec![reply, Reply::Send(fresh("whole"))]).await;
            let proxy = proxy_on("memory:size=1MiB", &[&origin.url], short_limits()).await;
            let answer = proxy.get("/").await;
            let is_marked = answer.ends_with("0\r\n\r\n") && !answer.contains("content-length");
            assert!(!is_marked, "{name}, {hangs}: {answer}");
            assert!(!answer.contains("content-length: 5"), "{name}, {hangs}: {answer}");
            assert_eq!(body(&proxy.get("/").await), "whole", "{name}, {hangs}");
        }
    }
}

#[tokio::test]
async fn a_body_that_only_the_connection_ends_is_passed_on_and_not_stored() {
    let reply = |text: &str| Reply::SendAndClose(format!("{HEAD}\r\n{text}").into());
    let origin = Origin::start(vec![reply("one"), reply("two")]).await;
    let proxy = proxy(&[&origin.url]).await;
    for expected in ["one", "two"] {
        let answer = proxy.get("/").await;
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.contains("its end is not marked"), "{answer}");
    }
}

#[tokio::test]
async fn surplus_bytes_of_an_origin_answer_nobody() {
    let surplus = [fresh("first"), fresh("surplus")].concat();
    let origin = Origin::start(vec![Reply::Send(surplus), Reply::Send(fresh("second"))]).await;
    let proxy = proxy(&[&origin.url]).await;
    assert_eq!(body(&proxy.get("/a").await), "first");
    assert_eq!(body(&proxy.get("/b").await), "second");
}

#[tokio::test]
async fn stale_responses_cover_for_an_origin_that_closes_the_connection() {
    let stale = "HTTP/1.1 200 OK\r\ncache-control: max-age=1\r\nage: 5\r\netag: \"a\"\r\ncontent-length: 5\r\n\r\nstale";
    let origin = Origin::start(vec![Reply::Send(stale.into()), Reply::SendAndClose(vec![])]).await;
    let proxy = proxy(&[&origin.url]).await;
    proxy.get("/").await;
    let answer = proxy.get("/").await;
    assert_eq!((status(&answer), body(&answer)), (200, "stale"));
    assert!(answer.contains("detail=\"the origin does not answer\""), "{answer}");
}

#[tokio::test]
async fn requests_that_have_come_are_answered_before_the_end() {
    let origin = Origin::start(vec![Reply::SendAndHang(
        format!("{HEAD}content-length: 10\r\n\r\nhello").into(),
    )])
    .await;
    let mut proxy = proxy_on("memory:size=1MiB", &[&origin.url], short_limits()).await;
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
async fn a_request_is_sent_again_only_where_the_origin_may_not_have_seen_it() {
    for (method, expected) in [("GET", 200), ("DELETE", 200), ("POST", 502)] {
        // The origin closes the connection over which it has answered, as a second request comes.
        let closes = Reply::SendAndClose(vec![]);
        let script = vec![Reply::Send(fresh("one")), closes, Reply::Send(fresh("two"))];
        let origin = Origin::start(script).await;
        let proxy = proxy(&[&origin.url]).await;
        proxy.get("/one").await;
        let request = format!("{method} /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        assert_eq!(status(&proxy.talk(request).await), expected, "{method}");
        assert_eq!(origin.requests(), if expected == 200 { 3 } else { 2 }, "{method}");
    }
}

#[tokio::test]
async fn an_origin_of_http_1_0_ends_no_connection_of_a_client() {
    let old = "HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nold";
    let origin = Origin::start(vec![Reply::SendAndClose(old.into())]).await;
    let proxy = proxy(&[&origin.url]).await;
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let answers = proxy.talk([request, request, last].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 3, "{answers}");
}
