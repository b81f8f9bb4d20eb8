//! Clients that ask for a page and read nothing of it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::join_all;
use haypile_http::{Body, BodyError};
use http::Response;
use http_body_util::BodyExt;
use tokio::time::sleep;

use super::bench::{Bench, FRESH, PAGE, Say, URL, slowest};

const STALLED: usize = 200;
/// Longer than all that a fill keeps ahead of its readers, and than it keeps behind the first.
const BODY_BYTES: usize = 3 << 20;
/// The longest time for which a fill waits for readers, as docs/http.md has it.
const WAIT: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn stalled_readers_of_a_page_on_its_way_delay_nobody() {
    let bench = Bench::new(|_, _| Say::page(FRESH).body(vec![7; BODY_BYTES]));
    // They come first, so that the first of them leads.
    let stalled = join_all((0..STALLED).map(|_| bench.open(URL, &[])));
    let others = async {
        sleep(PAGE / 2).await;
        bench.crowd(20, &[]).await
    };
    let (stalled, answers) = tokio::join!(stalled, others);
    for answer in &answers {
        assert_eq!((answer.status, answer.body.len()), (200, BODY_BYTES));
    }
    assert!(slowest(&answers) <= PAGE + WAIT, "{:?}", slowest(&answers));
    // It is stored, and other pages are not concerned.
    let later = bench.get(&[]).await;
    assert_eq!((later.is_hit(), later.body.len(), later.took), (true, BODY_BYTES, Duration::ZERO));
    let other = bench.ask("http://example.org/other", &[]).await.expect("a response");
    assert_eq!((other.body.len(), other.took), (BODY_BYTES, PAGE));
    assert_eq!(bench.requests(), 2);
    assert_eq!(stalled.iter().filter(|response| response.is_ok()).count(), STALLED);
}

#[tokio::test(start_paused = true)]
async fn stalled_readers_of_a_stored_page_and_of_many_pages_delay_nobody() {
    let bench = Bench::new(|_, _| Say::page(FRESH).body(vec![7; BODY_BYTES]));
    bench.get(&[]).await;
    let urls: Vec<String> = (0..20).map(|page| format!("http://example.org/{page}")).collect();
    let hits = join_all((0..STALLED).map(|_| bench.open(URL, &[]))).await;
    let misses = join_all((0..STALLED).map(|reader| bench.open(&urls[reader % 20], &[]))).await;
    for url in [URL, "http://example.org/new", "http://example.org/7"] {
        let answer = bench.ask(url, &[]).await.expect("a response");
        assert_eq!(answer.body.len(), BODY_BYTES, "{url}");
        assert!(answer.took <= PAGE + WAIT, "{url}: {:?}", answer.took);
    }
    drop((hits, misses));
}

/// Reads a body, one piece each second.
async fn read_slowly(response: Response<Body>) -> Result<Bytes, BodyError> {
    let (mut body, mut all) = (response.into_body(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        all.extend_from_slice(&frame?.into_data().unwrap_or_default());
        sleep(Duration::from_secs(1)).await;
    }
    Ok(all.freeze())
}

/// Has a page of unknown length, too long to be stored, read by one client at once and by ten slowly. Returns what
/// the slow ones get, and the requests. The page is the `number`th that the origin sends.
async fn read_too_long(
    page: impl Fn(usize) -> (&'static str, Bytes) + Send + Sync + 'static,
) -> (Vec<Result<Bytes, BodyError>>, usize) {
    let answer = move |number, _: &_| {
        let (tag, body) = page(number);
        Say::unmarked(&[FRESH, &[("etag", tag)]].concat(), body)
    };
    let bench = Bench::with(answer, |builder| builder.largest_body(1 << 20));
    let slow = join_all(
        (0..10).map(async |_| read_slowly(bench.open(URL, &[]).await.expect("a response")).await),
    );
    let (slow, fast) = tokio::join!(slow, bench.get(&[]));
    assert_eq!(fast.body.len(), BODY_BYTES);
    (slow, bench.requests())
}

/// Returns a body no part of which is as another.
fn counting(offset: usize) -> Bytes {
    let byte = |at: usize| u8::try_from((at + offset) / 251 % 256).expect("a byte");
    (0..BODY_BYTES).map(byte).collect()
}

#[tokio::test(start_paused = true)]
async fn readers_too_slow_for_a_page_that_is_too_long_get_all_of_it() {
    let page = counting(0);
    let sent = page.clone();
    let (slow, requests) = read_too_long(move |_| ("\"a\"", sent.clone())).await;
    for body in slow {
        assert!(body.expect("it does not break off") == page);
    }
    // Each that has lost a part asks as it would have without the others.
    assert!((2..=11).contains(&requests), "{requests}");
}

#[tokio::test(start_paused = true)]
async fn no_reader_gets_a_part_of_another_version() {
    for next in [("\"b\"", counting(0)), ("\"a\"", counting(251)), ("\"a\"", Bytes::new())] {
        let tag = next.0;
        let (slow, requests) = read_too_long(move |number| match number {
            0 => ("\"a\"", counting(0)),
            _ => next.clone(),
        })
        .await;
        let whole = slow.iter().filter_map(|body| body.as_ref().ok().map(Bytes::len));
        let whole: Vec<usize> = whole.collect();
        assert!(requests > 1 && whole.is_empty(), "{tag} {requests}: {whole:?}");
    }
}
