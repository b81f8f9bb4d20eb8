//! Clients that ask for a page and read nothing of it.

use std::time::Duration;

use futures_util::future::join_all;
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
