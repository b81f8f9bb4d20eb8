//! Crowds whose page changes, and is purged, while they ask for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use haypile_http::Purge;
use haypile_http::semantics::Rules;
use tokio::time::sleep;

use super::bench::{Answer, Bench, PAGE, Say, URL, slowest};

/// The states of the page in which a crowd comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Cold,
    Stale,
    Fresh,
}

/// The answers to those who came before the purge, and to those who came after it.
struct Halves {
    before: Vec<Answer>,
    after: Vec<Answer>,
    requests: usize,
}

/// Has half of a crowd ask, changes and purges the page half a fetch later, and has the other half ask.
async fn purge_in_the_middle(
    page: Page,
    clients: usize,
    [is_soft, serve_stale, has_validator]: [bool; 3],
) -> Halves {
    let version = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&version);
    let answer = move |_: usize, request: &http::Request<haypile_http::Body>| {
        let version = sent.load(Ordering::SeqCst).to_string();
        let tag = format!("\"{version}\"");
        let fields = [("cache-control", "max-age=10"), ("etag", &tag)];
        let is_known = request.headers().get("if-none-match").is_some_and(|known| *known == tag);
        if !has_validator {
            return Say::page(&fields[..1]).body(version);
        }
        if is_known {
            Say::after(PAGE, 304, &fields).body("")
        } else {
            Say::page(&fields).body(version)
        }
    };
    let serve_stale = serve_stale.then_some(Duration::from_hours(1));
    let bench =
        Bench::with(answer, |builder| builder.rules(Rules { serve_stale, ..Rules::shared() }));
    if page != Page::Cold {
        bench.get(&[]).await;
    }
    if page == Page::Stale {
        sleep(Duration::from_secs(20)).await;
    }
    let begun = bench.requests();
    let crowd = bench.crowd(clients / 2, &[]);
    let others = async {
        sleep(PAGE / 2).await;
        version.fetch_add(1, Ordering::SeqCst);
        let purge = Purge::url(URL);
        let purge = if is_soft { purge.soft() } else { purge };
        bench.cache.purge(purge).await.expect("it takes note");
        join_all((0..clients - clients / 2).map(|_| bench.get(&[]))).await
    };
    let (before, after) = tokio::join!(crowd, others);
    // What goes on in the background counts.
    sleep(PAGE * 4).await;
    let requests = bench.requests() - begun;
    // Whatever is stored now is what the origin has now.
    assert_eq!(bench.get(&[]).await.body, "1", "{page:?} {clients}");
    Halves { before, after, requests }
}

#[tokio::test(start_paused = true)]
async fn who_comes_after_a_purge_gets_what_was_fetched_after_it() {
    for (clients, has_validator) in [(2, false), (50, false), (2, true), (50, true)] {
        for (page, serve_stale, requests, waits) in [
            // They learn that the fetch on its way began before the purge once its response comes.
            (Page::Cold, false, 2, [PAGE * 2, PAGE * 3 / 2]),
            (Page::Stale, false, 2, [PAGE * 2, PAGE * 3 / 2]),
            (Page::Stale, true, 2, [Duration::ZERO, PAGE * 3 / 2]),
            (Page::Fresh, false, 1, [Duration::ZERO, PAGE]),
        ] {
            let halves =
                purge_in_the_middle(page, clients, [false, serve_stale, has_validator]).await;
            let case = format!("{page:?}, {clients} clients, {serve_stale}, {has_validator}");
            for answer in &halves.after {
                assert_eq!((&answer.body[..], answer.is_hit()), (&b"1"[..], false), "{case}");
            }
            assert_eq!(halves.requests, requests, "{case}");
            let slowest = [&halves.before, &halves.after].map(|half| slowest(half));
            // The first one waits for nobody.
            let first = if waits[0].is_zero() { waits[0] } else { PAGE };
            assert_eq!(halves.before[0].took, first, "{case}");
            assert!(slowest[0] <= waits[0] && slowest[1] == waits[1], "{case}: {slowest:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_soft_purge_the_old_page_serves_until_the_new_one_is_there() {
    for clients in [2, 50] {
        let halves = purge_in_the_middle(Page::Fresh, clients, [true, false, false]).await;
        assert_eq!(halves.requests, 1, "one in the background");
        for answer in halves.before.iter().chain(&halves.after) {
            assert_eq!((&answer.body[..], answer.took), (&b"0"[..], Duration::ZERO));
        }
    }
}
