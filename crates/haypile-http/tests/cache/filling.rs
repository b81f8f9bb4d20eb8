//! Several clients read a body while it comes, each at its own pace.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use haypile_http::{Body, BoxError, Builder};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use super::bodies::{FRESH, long_body};
use super::of_length::OfLength;
use super::origin::{Script, pieces, response, streamed};
use super::{Bench, URL};

/// More than a store of 1 MiB holds, and than a fill keeps.
const LENGTH: usize = 5_000_000;
const PIECE: usize = 30_000;

type Sender = UnboundedSender<Result<Bytes, BoxError>>;

fn send_all(sender: &Sender) {
    send(sender, LENGTH);
}

fn send(sender: &Sender, length: usize) {
    let all = long_body(length);
    for begin in (0..length).step_by(PIECE) {
        sender.send(Ok(all.slice(begin..length.min(begin + PIECE)))).expect("it is there");
    }
}

/// An origin whose first body comes when it is sent; the other answers are these.
fn on_demand(
    has_length: bool,
    others: impl Fn(&Request<Body>) -> Response<Body> + Send + Sync + 'static,
) -> (Sender, Script) {
    let (sender, body) = pieces();
    let body = if has_length { Body::wrap(OfLength(body, LENGTH as u64)) } else { body };
    let body = Mutex::new(Some(body));
    let origin = Script::new(move |_, request| {
        let first = body.lock().expect("no panic").take();
        Ok(first.map_or_else(|| others(request), |body| streamed(200, FRESH, body)))
    });
    (sender, origin)
}

fn at_once(has_length: bool) -> Response<Body> {
    let (sender, body) = pieces();
    send_all(&sender);
    streamed(200, FRESH, if has_length { Body::wrap(OfLength(body, LENGTH as u64)) } else { body })
}

/// A store that evicts the first chunks of such a body before the last has come.
fn small_store(origin: Script) -> Bench {
    Bench::with(origin, "memory:size=1MiB", |builder| builder.largest_body(100_000_000))
}

async fn body(bench: &Bench) -> Body {
    bench.send(Method::GET, URL, &[]).await.expect("a head").into_body()
}

/// Reads at least this number of bytes, or all.
async fn read(body: &mut Body, bytes: usize) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    while all.len() < bytes
        && let Some(frame) = body.frame().await
    {
        let frame = frame.map_err(|error| error.to_string())?;
        all.extend_from_slice(&frame.into_data().expect("bytes"));
    }
    Ok(all)
}

async fn let_others_run() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nobody_loses_what_the_store_evicts_while_it_comes() {
    for has_length in [true, false] {
        let bench = small_store(Script::new(move |_, _| Ok(at_once(has_length))));
        let mut slow = body(&bench).await;
        let_others_run().await;
        assert!(read(&mut slow, usize::MAX).await.expect("all of it") == long_body(LENGTH));
        let together = join_all((0..8).map(|_| bench.get(URL))).await;
        assert!(together.iter().all(|answer| answer.body == long_body(LENGTH)));
    }
}

#[tokio::test]
async fn one_who_is_slow_finds_the_body_in_the_store() {
    let (sender, origin) = on_demand(false, |_| unreachable!("nothing is lost"));
    let set_up = |builder: Builder| builder.largest_body(100_000_000);
    let bench = Bench::with(origin, "memory:size=64MiB", set_up);
    let (mut slow, mut fast) = tokio::join!(body(&bench), body(&bench));
    send_all(&sender);
    drop(sender);
    let begin = read(&mut slow, 1).await.expect("a piece");
    assert!(read(&mut fast, usize::MAX).await.expect("all of it") == long_body(LENGTH));
    let rest = read(&mut slow, usize::MAX).await.expect("the rest");
    assert!([begin, rest].concat() == long_body(LENGTH));
}

#[tokio::test]
async fn what_one_who_is_slow_has_lost_comes_from_the_origin_if_it_is_still_the_same() {
    for tag in ["\"a\"", "\"b\""] {
        let (sender, origin) = on_demand(true, move |request| {
            let range = request.headers()["range"].to_str().expect("text");
            assert_eq!(request.headers()["if-range"], "\"a\"");
            let begin = range.strip_prefix("bytes=").and_then(|range| range.split('-').next());
            let begin: usize = begin.expect("a range").parse().expect("digits");
            let place = format!("bytes {begin}-{}/{LENGTH}", LENGTH - 1);
            let fields = [("etag", tag), ("content-range", &place)];
            response(206, &fields, long_body(LENGTH).slice(begin..))
        });
        let bench = small_store(origin);
        let (mut slow, mut fast) = tokio::join!(body(&bench), body(&bench));
        send_all(&sender);
        drop(sender);
        let begin = read(&mut slow, 1).await.expect("a piece");
        assert!(read(&mut fast, usize::MAX).await.expect("all of it") == long_body(LENGTH));
        let rest = read(&mut slow, usize::MAX).await;
        assert_eq!(bench.origin.requests(), 2);
        if tag == "\"a\"" {
            assert!([begin, rest.expect("the rest")].concat() == long_body(LENGTH));
        } else {
            assert!(rest.expect_err("it is another").contains("evicted"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_long_for_one_who_is_slow() {
    let (sender, origin) = on_demand(false, |_| at_once(false));
    let set_up = |builder: Builder| builder.largest_body(500_000);
    let bench = Bench::with(origin, "memory:size=64MiB", set_up);
    let (mut stopped, mut fast) = tokio::join!(body(&bench), body(&bench));
    assert_eq!(bench.origin.requests(), 1);
    send_all(&sender);
    drop(sender);
    let begin = Instant::now();
    let first = read(&mut fast, 1_000_000).await.expect("a part");
    assert_eq!(begin.elapsed().as_secs(), 0);
    // It is known to be too long now: who comes gets one of its own.
    let mut late = body(&bench).await;
    assert_eq!(bench.origin.requests(), 2);
    assert!(read(&mut late, usize::MAX).await.expect("all of it") == long_body(LENGTH));
    let rest = read(&mut fast, usize::MAX).await.expect("the rest");
    assert!([first, rest].concat() == long_body(LENGTH));
    assert_eq!(begin.elapsed().as_secs(), 5);
    // It is not kept any more: who has not got it asks for it once more.
    assert!(read(&mut stopped, usize::MAX).await.expect("all of it") == long_body(LENGTH));
    assert_eq!(bench.origin.requests(), 3);
}

/// More than a fill may be ahead of its readers.
const LONGER: usize = 20_000_000;

fn large_store(origin: Script) -> Bench {
    Bench::with(origin, "memory:size=512MiB", |builder| builder)
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_one_who_reads_from_the_store() {
    let (sender, origin) = on_demand(false, |_| unreachable!("it is stored"));
    let bench = large_store(origin);
    let (mut slow, mut fast) = tokio::join!(body(&bench), body(&bench));
    send(&sender, LONGER);
    drop(sender);
    let begin = Instant::now();
    let first = read(&mut slow, 1).await.expect("a piece");
    read(&mut fast, 15_000_000).await.expect("a part");
    drop(fast);
    assert!(bench.get(URL).await.body == long_body(LONGER));
    assert!(bench.get(URL).await.is_hit());
    assert_eq!(begin.elapsed().as_secs(), 0);
    let rest = read(&mut slow, usize::MAX).await.expect("the rest");
    assert!([first, rest].concat() == long_body(LONGER));
}

#[tokio::test(start_paused = true)]
async fn a_body_is_stored_though_its_only_reader_has_stopped() {
    let (sender, origin) = on_demand(false, |_| unreachable!("it is stored"));
    let bench = large_store(origin);
    let mut stopped = body(&bench).await;
    send(&sender, LONGER);
    drop(sender);
    let begin = Instant::now();
    let stored_only = [("cache-control", "only-if-cached")];
    while !bench.ask(Method::HEAD, URL, &stored_only).await.is_hit() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!((4..7).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    assert!(read(&mut stopped, usize::MAX).await.expect("all of it") == long_body(LONGER));
}

#[tokio::test]
async fn a_part_that_was_not_asked_for_is_nobody_else_s() {
    let (origin, gate) = Script::gated(
        |number, _| match number {
            0 => {
                let fields = [FRESH, &[("content-range", "bytes 0-4/10")]].concat();
                Ok(response(206, &fields, "01234"))
            }
            _ => Ok(response(200, FRESH, "0123456789")),
        },
        false,
    );
    let bench = Bench::new(origin);
    let open = async {
        while bench.origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    let (first, second, ()) = tokio::join!(bench.get(URL), bench.get(URL), open);
    assert_eq!((first.status, first.text()), (206, "01234"));
    assert_eq!((second.status, second.text()), (200, "0123456789"));
}
