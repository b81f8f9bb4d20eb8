//! Targets of which no response is stored, in a store that pages fill.

use futures_util::future::join_all;
use haypile_http::{Body, Purge};
use http::Request;

use super::bench::{Bench, PAGE, Say};

/// The fields of a page that stays fresh as long as a test takes.
pub(crate) const DAY: &[(&str, &str)] = &[("cache-control", "max-age=86400")];
/// The pages that a test stores. They take most of a store of 2 MiB.
pub(crate) const PAGES: usize = 200;
/// The kinds of targets of which no response is stored. The paths of a kind begin with its name.
pub(crate) const KINDS: [&str; 4] = ["no-store", "private", "failing", "gone"];

/// Returns a bench on a store, with pages under `/hot`, and without a usable response under the paths of [`KINDS`].
pub(crate) fn bench(store: &str) -> Bench {
    let page = vec![b'a'; 7 << 10];
    let answer = move |_, request: &Request<Body>| match request.uri().path() {
        path if path.starts_with("/hot") => Say::page(DAY).body(page.clone()),
        path if path.starts_with("/private") => Say::page(&[("set-cookie", "a=b")]),
        path if path.starts_with("/failing") => Say::after(PAGE, 503, &[]),
        path if path.starts_with("/gone") => Say::Fail(PAGE),
        _ => Say::page(&[("cache-control", "no-store")]),
    };
    Bench::on(store, answer, |builder| builder)
}

/// Asks for all pages, and returns the number of those that came from the origin.
pub(crate) async fn lost(bench: &Bench) -> usize {
    let before = bench.requests();
    for number in 0..PAGES {
        bench.ask(&format!("http://example.org/hot/{number}"), &[]).await.expect("a page");
    }
    bench.requests() - before
}

/// Asks for a number of targets of a kind at once, changes each, and purges it softly. `name` tells them from those of
/// other calls.
pub(crate) async fn ask(bench: &Bench, kind: &str, name: &str, targets: usize) {
    let ask = async |number: usize| {
        let url = format!("http://example.org/{kind}/{name}/{number}");
        let _ = bench.ask(&url, &[]).await;
        let _ = bench.post(&url).await;
        let _ = bench.cache.purge(Purge::url(&url).soft()).await;
    };
    join_all((0..targets).map(ask)).await;
}
