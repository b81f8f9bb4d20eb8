//! Purges by group and of everything, soft ones, and purges in the middle of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::join_all;
use haypile::{Cache, TriedClaim};
use haypile_http::{FollowedRedirect, HttpCache, Purge, PurgeError};
use http::Method;

use super::origin::{Script, pieces, response, streamed};
use super::{Bench, URL, read, request};

const OTHER: &str = "http://example.org/b";
const ELSEWHERE: &str = "http://example.com/a";
const EVERYWHERE: [&str; 3] = [URL, OTHER, ELSEWHERE];

/// Returns an origin whose responses are in the group of their path's last letter, and all in `all`.
fn grouped() -> Script {
    Script::new(|number, request| {
        let group = request.uri().path().rsplit('/').next().expect("a path").to_owned();
        let groups = format!("\"all\", \"{group}\"");
        let fields = [("cache-control", "max-age=60"), ("cache-groups", &*groups)];
        Ok(response(200, &fields, format!("body {number}")))
    })
}

async fn hits(bench: &Bench) -> [bool; 3] {
    let mut hits = [false; 3];
    for (hit, url) in hits.iter_mut().zip(EVERYWHERE) {
        *hit = bench.get(url).await.is_hit();
    }
    hits
}

#[tokio::test]
async fn a_group_is_purged_at_once_for_all_who_share_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    let both = format!("memory:size=1MiB -> file:{}/b.haypile,size=8MiB", folder.path().display());
    for url in ["memory:size=8MiB", &file, &both] {
        let first = Bench::with(grouped(), url, |builder| builder);
        let second = Bench::on(first.store.clone(), grouped(), |builder| builder);
        assert_eq!(hits(&first).await, [false; 3], "{url}");
        assert_eq!(hits(&second).await, [true; 3], "{url}");
        // The groups of that name at all origins.
        assert_eq!(first.cache.purge(Purge::group("a")).await, Ok(true));
        assert_eq!(hits(&second).await, [false, true, false], "{url}");
        assert_eq!(hits(&first).await, [true; 3], "{url}");
        assert_eq!(second.cache.purge(Purge::group("all")).await, Ok(true));
        assert_eq!(hits(&first).await, [false; 3], "{url}");
        assert_eq!(first.cache.purge(Purge::group("nobody's")).await, Ok(true));
        assert_eq!(hits(&first).await, [true; 3], "{url}");
        assert_eq!(first.cache.purge(Purge::all()).await, Ok(true));
        assert_eq!(hits(&second).await, [false; 3], "{url}");
        assert_eq!(hits(&second).await, [true; 3], "{url}");
    }
}

#[tokio::test]
async fn the_words_of_surrogate_key_are_groups_of_shared_caches() {
    let fields: &[_] = &[("cache-control", "max-age=60"), ("surrogate-key", "user:7 page")];
    let bench = Bench::new(Script::new(move |_, _| Ok(response(200, fields, ""))));
    for (group, is_purged) in [("user:7", true), ("page", true), ("user", false), ("", false)] {
        bench.get(URL).await;
        let purged = bench.cache.purge(Purge::group(group)).await;
        assert_eq!(purged, if group.is_empty() { Err(PurgeError::NoGroup) } else { Ok(true) });
        assert_eq!(bench.get(URL).await.is_hit(), !is_purged, "{group}");
    }
    let users = ["alice", "bob"].map(|user| {
        let origin = Script::new(|_, _| {
            let fields = [("cache-control", "max-age=60"), ("cache-groups", "\"g\"")];
            Ok(response(200, &fields, ""))
        });
        Bench::on(bench.store.clone(), origin, |builder| builder.private(user))
    });
    for user in &users {
        user.get(URL).await;
    }
    for purge in [Purge::group("g"), Purge::all()] {
        users[0].cache.purge(purge).await.expect("it takes note");
        assert!(!users[0].get(URL).await.is_hit());
        assert!(users[1].get(URL).await.is_hit());
    }
}

#[tokio::test]
async fn a_response_to_an_unsafe_request_invalidates_groups_of_its_origin() {
    let many: Vec<String> = (0..300).map(|number| format!("\"{number}\"")).collect();
    let many = many.join(", ");
    for (method, status, groups, expected) in [
        (Method::PUT, 204, "\"all\"", [false, false, true]),
        (Method::POST, 201, "\"x\", \"b\"", [true, false, true]),
        (Method::DELETE, 404, "\"all\"", [true; 3]),
        (Method::OPTIONS, 200, "\"all\"", [true; 3]),
        (Method::PUT, 204, "all", [true; 3]),
        // More than are told apart: all of the origin.
        (Method::PUT, 204, &many, [false, false, true]),
    ] {
        let groups = groups.to_owned();
        let answering = grouped();
        let asked = method.clone();
        let origin = Script::new(move |number, request| {
            if *request.method() == Method::GET {
                return answering.call(number, request);
            }
            Ok(response(status, &[("cache-group-invalidation", &groups)], ""))
        });
        let bench = Bench::new(origin);
        hits(&bench).await;
        bench.ask(asked, "http://example.org/form", &[]).await;
        assert_eq!(hits(&bench).await, expected, "{method} {status}");
    }
}

/// The groups of a response are known when it comes: the purge of one in the meantime is about it. What a
/// store evicts since then makes it no other.
#[tokio::test]
async fn a_response_whose_group_is_purged_on_its_way_is_neither_stored_nor_shared() {
    for purge in [
        Purge::group("g"),
        Purge::group("g").soft(),
        Purge::all(),
        Purge::all().soft(),
        Purge::prefix(URL).soft(),
        Purge::url(URL).soft(),
    ] {
        for evicted in ["", "http-purges", "http-group/"] {
            let fields = &[("cache-control", "max-age=60"), ("cache-groups", "\"g\"")];
            let (sender, origin) = Script::first_in_pieces(fields);
            let bench = Bench::new(origin);
            let coming = bench.send(Method::GET, URL, &[]).await.expect("a head");
            bench.cache.purge(purge).await.expect("it takes note");
            evict(&bench.store, evicted);
            sender.send(Ok("old".into())).expect("somebody reads");
            let after = bench.send(Method::GET, URL, &[]).await.expect("a head");
            drop(sender);
            assert_eq!(read(coming).await.text(), "old", "{purge:?} {evicted}");
            assert_eq!(read(after).await.text(), "body 1", "{purge:?} {evicted}");
            assert_eq!(bench.get(URL).await.text(), "body 1", "{purge:?} {evicted}");
        }
    }
}

/// Removes the entries of a store whose keys begin so.
fn evict(store: &Cache, begin: &str) {
    for key in store.keys().map(|key| key.expect("a key")) {
        if !begin.is_empty() && key.starts_with(begin.as_bytes()) {
            store.delete(&key).expect("it is there");
        }
    }
}

#[tokio::test]
async fn a_change_during_a_post_is_about_its_response() {
    for purge in [
        None,
        Some(Purge::url(URL)),
        Some(Purge::prefix(URL)),
        Some(Purge::group("g")),
        Some(Purge::all()),
        Some(Purge::group("g").soft()),
    ] {
        for is_warm in [false, true] {
            let store = Cache::open("memory:size=16MiB").expect("it opens");
            let others = HttpCache::builder(store.clone()).build();
            let fields: &[_] = &[
                ("cache-control", "max-age=60"),
                ("cache-groups", "\"g\""),
                ("content-location", URL),
            ];
            let origin = Script::new(move |_, asked| {
                if *asked.method() == Method::POST {
                    // A store in memory lets nobody wait.
                    let is_done = if let Some(purge) = purge {
                        others.purge(purge).map(|purged| purged.is_ok()).now_or_never()
                    } else {
                        let origin = Script::new(|_, _| Ok(response(204, &[], "")));
                        let put = others.answer(origin, request(Method::PUT, URL, &[]));
                        put.map(|answer| answer.is_ok()).now_or_never()
                    };
                    assert_eq!(is_done, Some(true));
                }
                Ok(response(200, fields, asked.method().to_string()))
            });
            let bench = Bench::on(store, origin, |builder| builder);
            if is_warm {
                bench.get(URL).await;
            }
            bench.ask(Method::POST, URL, &[]).await;
            let after = bench.get(URL).await;
            let is_soft = purge.is_some_and(|purge| purge == purge.soft());
            let is_stale = is_soft && after.cache_status() == "hit; ttl=-1";
            assert!(after.text() == "GET" || is_stale, "{purge:?} {is_warm}: {after:?}");
        }
    }
    // Without one, it is what a GET gets.
    let fields: &[_] = &[("cache-control", "max-age=60"), ("content-location", URL)];
    let bench = Bench::new(Script::new(move |_, asked| {
        Ok(response(200, fields, asked.method().to_string()))
    }));
    bench.get(URL).await;
    bench.ask(Method::POST, URL, &[]).await;
    assert_eq!(bench.get(URL).await.text(), "POST");
}

/// A request that has waited for another process revalidates no response that was purged while it waited.
#[tokio::test]
async fn what_is_purged_while_a_request_waits_for_another_process_is_not_revalidated() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    let fields: &[_] = &[("cache-control", "max-age=60"), ("etag", "\"a\"")];
    let origin = Script::new(move |number, request| {
        let is_conditional = request.headers().contains_key("if-none-match");
        let status = if is_conditional { 304 } else { 200 };
        Ok(response(
            status,
            fields,
            if is_conditional { String::new() } else { format!("{number}") },
        ))
    });
    let bench = Bench::with(origin, &file, |builder| builder);
    bench.get(URL).await;
    bench.wait(60);
    let key = format!("http/{:032x}", xxhash_rust::xxh3::xxh3_128(URL.as_bytes()));
    // As another process has it.
    let other = Cache::open(&file).expect("it opens");
    let TriedClaim::Held(claim) = other.try_claim(&key, None).expect("a file") else {
        panic!("nobody has it")
    };
    let purge = async {
        // The request has been polled by then, and waits.
        tokio::task::yield_now().await;
        bench.cache.purge(Purge::prefix(URL)).await.expect("it takes note");
        drop(claim);
    };
    let (waiting, ()) = tokio::join!(bench.get(URL), purge);
    assert_eq!(
        (waiting.text(), waiting.cache_status()),
        ("1", "fwd=stale; fwd-status=200; stored")
    );
    assert_eq!(bench.get(URL).await.text(), "1");
}

/// Only the last of several levels knows how many purges there were.
#[tokio::test]
async fn a_purge_that_an_upper_level_has_not_seen_is_about_what_is_on_its_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    let both = format!("memory:size=1MiB,stale=10m -> {file}");
    let (sender, body) = pieces();
    let body = std::sync::Mutex::new(Some(body));
    let fields: &[_] = &[("cache-control", "max-age=60"), ("cache-groups", "\"g\"")];
    let origin = Script::new(move |_, request| {
        if request.uri() == OTHER {
            return Ok(response(200, &[("cache-control", "max-age=60")], ""));
        }
        let body = body.lock().expect("no panic").take();
        Ok(body.map_or_else(|| response(200, fields, "new"), |body| streamed(200, fields, body)))
    });
    let upper = Bench::with(origin, &both, |builder| builder);
    let lower = Bench::with(Script::fields(&[&[]]), &file, |builder| builder);
    lower.get(OTHER).await;
    // Its level in memory has the record of purges from here on.
    upper.get(OTHER).await;
    let coming = upper.send(Method::GET, URL, &[]).await.expect("a head");
    lower.cache.purge(Purge::group("g")).await.expect("it takes note");
    evict(&lower.store, "http-group/");
    sender.send(Ok("old".into())).expect("somebody reads");
    drop(sender);
    assert_eq!(read(coming).await.text(), "old");
    assert!(!lower.get(URL).await.is_hit());
}

#[tokio::test]
async fn no_origin_purges_the_responses_of_another() {
    let many: Vec<String> = (0..300).map(|number| format!("\"{number}\"")).collect();
    let many = many.join(", ");
    let answering = grouped();
    let bench = Bench::new(Script::new(move |number, request| {
        if *request.method() == Method::GET {
            return answering.call(number, request);
        }
        let groups = if number % 2 == 0 { "\"all\", \"a\", \"b\"" } else { &*many };
        Ok(response(204, &[("cache-group-invalidation", groups)], ""))
    }));
    hits(&bench).await;
    for host in 0..100 {
        let url = format!("http://{host}.example/a");
        bench.ask(Method::PUT, &url, &[]).await;
        bench.ask(Method::PUT, &url, &[]).await;
    }
    assert_eq!(hits(&bench).await, [true; 3]);
}

#[tokio::test]
async fn users_purge_nothing_of_each_other() {
    let store = Cache::open("memory:size=16MiB").expect("it opens");
    let long = "x".repeat(1_100);
    let of = |user: &str| Bench::on(store.clone(), grouped(), |builder| builder.private(user));
    let [one, other, long] = ["a", "a b", &long].map(of);
    for bench in [&one, &other, &long] {
        hits(bench).await;
    }
    for purge in [Purge::all(), Purge::group("all"), Purge::group("b all")] {
        one.cache.purge(purge).await.expect("it takes note");
        assert_eq!(hits(&other).await, [true; 3], "{purge:?}");
    }
    assert!(matches!(long.cache.purge(Purge::all()).await, Err(PurgeError::TooLong(_))));
    for bench in [&other, &long] {
        assert_eq!(hits(bench).await, [true; 3]);
    }
}

/// A HEAD brings no body, and may have nothing by which the stored one is known to be the same.
#[tokio::test]
async fn a_head_takes_no_soft_purge_back() {
    let fields: &[_] = &[("cache-control", "max-age=60")];
    let bench =
        Bench::new(Script::new(move |number, _| Ok(response(200, fields, format!("{number}")))));
    bench.get(URL).await;
    bench.cache.purge(Purge::all().soft()).await.expect("it takes note");
    bench.ask(Method::HEAD, URL, &[("cache-control", "no-cache")]).await;
    assert_eq!(bench.get(URL).await.cache_status(), "hit; ttl=-1");
}

#[tokio::test]
async fn the_groups_of_each_part_are_those_of_the_whole() {
    let bench = Bench::new(Script::new(|number, _| {
        let range = ["bytes 0-4/10", "bytes 5-9/10", "bytes 0-4/10"][number];
        let groups = if number == 0 { "\"a\"" } else { "\"b\"" };
        let fields = [
            ("cache-control", "max-age=60"),
            ("etag", "\"e\""),
            ("content-range", range),
            ("cache-groups", groups),
        ];
        Ok(response(206, &fields, "01234"))
    }));
    for range in ["bytes=0-4", "bytes=5-9"] {
        bench.ask(Method::GET, URL, &[("range", range)]).await;
    }
    assert!(bench.get(URL).await.is_hit());
    bench.cache.purge(Purge::group("a")).await.expect("it takes note");
    assert!(!bench.ask(Method::GET, URL, &[("range", "bytes=0-4")]).await.is_hit());
}

/// Publishing is just that: a purge while readers come for something new.
#[tokio::test]
async fn a_crowd_whose_response_may_be_purged_sends_one_more_request() {
    let fields: &[_] = &[("cache-control", "max-age=60"), ("cache-groups", "\"g\"")];
    let (origin, gate) =
        Script::gated(move |number, _| Ok(response(200, fields, number.to_string())), false);
    let bench = Bench::new(origin);
    let crowd = join_all((0..50).map(|_| bench.get(URL)));
    let publish = async {
        // All others have been polled by then, and wait.
        while bench.origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        bench.cache.purge(Purge::group("other")).await.expect("it takes note");
        gate.open();
    };
    let (crowd, ()) = tokio::join!(crowd, publish);
    let number_of = |text: &str| crowd.iter().filter(|answer| answer.text() == text).count();
    assert_eq!((number_of("0"), number_of("1")), (1, 49));
}

/// Where the client below the cache follows redirects, another origin may have answered.
#[tokio::test]
async fn what_a_redirect_leads_to_invalidates_no_groups() {
    let answering = grouped();
    let bench = Bench::new(Script::new(move |number, request| {
        if *request.method() == Method::GET {
            return answering.call(number, request);
        }
        let fields = [("cache-group-invalidation", "\"all\""), ("location", OTHER)];
        let mut answer = response(200, &fields, "");
        answer.extensions_mut().insert(FollowedRedirect);
        Ok(answer)
    }));
    hits(&bench).await;
    bench.ask(Method::POST, URL, &[]).await;
    assert_eq!(hits(&bench).await, [false, true, true]);
}

#[tokio::test]
async fn a_client_that_takes_stale_responses_has_them_refreshed_after_a_soft_purge() {
    let bench = Bench::new(grouped());
    bench.get(URL).await;
    bench.cache.purge(Purge::all().soft()).await.expect("it takes note");
    let asked = [("cache-control", "max-stale")];
    assert_eq!(bench.ask(Method::GET, URL, &asked).await.text(), "body 0");
    while bench.ask(Method::GET, URL, &asked).await.text() == "body 0" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_soft_purge_makes_stale_and_the_next_request_refreshes() {
    for purge in [Purge::url(URL), Purge::prefix(URL), Purge::group("g"), Purge::all()] {
        for (control, is_confirmed) in [("max-age=60", true), ("max-age=60", false)] {
            let fields = [("cache-control", control), ("cache-groups", "\"g\""), ("etag", "\"a\"")];
            let bench = Bench::new(Script::new(move |number, request| {
                let is_conditional = request.headers().contains_key("if-none-match");
                assert_eq!(is_conditional, number > 0);
                let is_same = number > 0 && is_confirmed;
                let status = if is_same { 304 } else { 200 };
                Ok(response(
                    status,
                    &fields,
                    if is_same { String::new() } else { format!("{number}") },
                ))
            }));
            bench.get(URL).await;
            assert_eq!(bench.cache.purge(purge.soft()).await, Ok(true), "{purge:?}");
            let stale = bench.get(URL).await;
            assert_eq!((stale.text(), stale.cache_status()), ("0", "hit; ttl=-1"), "{purge:?}");
            // The refreshing ends with the entry.
            while bench.get(URL).await.cache_status() == "hit; ttl=-1" {
                tokio::task::yield_now().await;
            }
            let fresh = bench.get(URL).await;
            assert_eq!(fresh.text(), if is_confirmed { "0" } else { "1" }, "{purge:?}");
            assert_eq!(fresh.cache_status(), "hit; ttl=60", "{purge:?}");
            assert_eq!(bench.origin.requests(), 2, "{purge:?}");
        }
    }
    let bench = Bench::new(grouped());
    assert_eq!(bench.cache.purge(Purge::url(URL).soft()).await, Ok(false));
}

#[tokio::test]
async fn a_soft_purge_serves_nothing_that_must_not_be_stale() {
    for (control, asked, wait, is_served) in [
        ("max-age=60", "", 0, true),
        ("max-age=60, must-revalidate", "", 0, false),
        ("s-maxage=60", "", 0, false),
        ("max-age=60", "max-age=30", 0, false),
        ("max-age=60", "no-cache", 0, false),
        ("max-age=60", "min-fresh=1", 0, false),
        // It would be stale without the purge.
        ("max-age=60", "", 60, false),
        ("max-age=60, stale-while-revalidate=10", "", 65, true),
    ] {
        let fields: [(&str, &str); 1] = [("cache-control", control)];
        let bench = Bench::new(Script::new(move |number, _| {
            Ok(response(200, &fields, format!("{number}")))
        }));
        bench.get(URL).await;
        bench.cache.purge(Purge::all().soft()).await.expect("it takes note");
        bench.wait(wait);
        let answer = bench.ask(Method::GET, URL, &[("cache-control", asked)]).await;
        assert_eq!(answer.text() == "0", is_served, "{control}; {asked}; {wait}");
        assert_eq!(answer.is_hit(), is_served, "{control}; {asked}; {wait}");
    }
}

#[tokio::test]
async fn a_soft_purge_is_served_if_the_origin_fails() {
    let bench = Bench::new(Script::new(|number, _| match number {
        0 => Ok(response(200, &[("cache-control", "max-age=60")], "body")),
        _ => Err("no connection".into()),
    }));
    bench.get(URL).await;
    bench.cache.purge(Purge::all().soft()).await.expect("it takes note");
    for _ in 0..3 {
        assert_eq!(bench.get(URL).await.text(), "body");
    }
    let answer = bench.ask(Method::GET, URL, &[("cache-control", "no-cache")]).await;
    assert_eq!(answer.text(), "body");
    assert!(answer.cache_status().starts_with("fwd=request; ttl=-1"), "{answer:?}");
}

#[tokio::test]
async fn a_response_in_too_many_groups_is_not_stored() {
    for (number, is_stored) in [(256, true), (257, false)] {
        let groups: Vec<String> = (0..number).map(|group| format!("g{group}")).collect();
        let groups = groups.join(" ");
        let bench = Bench::new(Script::new(move |_, _| {
            let fields = [("cache-control", "max-age=60"), ("surrogate-key", &*groups)];
            Ok(response(200, &fields, ""))
        }));
        let first = bench.get(URL).await;
        let says_why =
            first.cache_status().contains("not stored: the response is in more than 256 groups");
        assert_eq!(says_why, !is_stored, "{first:?}");
        assert_eq!(bench.get(URL).await.is_hit(), is_stored, "{number}");
        bench.cache.purge(Purge::group("g255")).await.expect("it takes note");
        assert!(!bench.get(URL).await.is_hit(), "{number}");
    }
}

#[tokio::test]
async fn a_store_that_has_forgotten_a_group_serves_none_of_it() {
    let bench = Bench::new(grouped());
    hits(&bench).await;
    let is_group = |key: &Vec<u8>| key.starts_with(b"http-group/");
    let keys: Vec<Vec<u8>> = bench.store.keys().map(|key| key.expect("a key")).collect();
    let keys: Vec<_> = keys.into_iter().filter(is_group).collect();
    // Two for each of a group and an origin, and one for each origin.
    assert_eq!(keys.len(), 10);
    for key in keys {
        assert!(bench.store.delete(&key).expect("it is there"));
        assert!(hits(&bench).await.contains(&false));
        assert_eq!(hits(&bench).await, [true; 3]);
    }
}

/// Whoever comes after a purge has returned gets nothing of before the change that it is about.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nobody_gets_what_was_before_a_purge_that_is_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    for url in ["memory:size=8MiB", &file] {
        let now = Arc::new(AtomicUsize::new(0));
        let current = Arc::clone(&now);
        let origin = Script::new(move |_, _| {
            let fields = [("cache-control", "max-age=600"), ("cache-groups", "\"g\", \"h\"")];
            let value = current.load(Ordering::SeqCst).to_string();
            // Others may change and purge before it is stored.
            std::thread::yield_now();
            Ok(response(200, &fields, value))
        });
        let bench = Arc::new(Bench::with(origin, url, |builder| builder));
        let purged = Arc::new(AtomicUsize::new(0));
        let hits = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (bench, purged) = (Arc::clone(&bench), Arc::clone(&purged));
                let (hits, is_over) = (Arc::clone(&hits), Arc::clone(&is_over));
                tokio::spawn(async move {
                    while !is_over.load(Ordering::SeqCst) {
                        let least = purged.load(Ordering::SeqCst);
                        let answer = bench.get(URL).await;
                        let got: usize = answer.text().parse().expect("a number");
                        assert!(got >= least, "{got} after {least}: {answer:?}");
                        if answer.is_hit() {
                            hits.fetch_max(got, Ordering::SeqCst);
                        }
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        let kinds = [Purge::group("g"), Purge::url(URL), Purge::prefix(URL), Purge::group("h")];
        for number in 1..=600 {
            now.store(number, Ordering::SeqCst);
            bench.cache.purge(kinds[number % 4]).await.expect("it takes note");
            purged.store(number, Ordering::SeqCst);
            // Now and then one is stored and read in between.
            let has_readers = || readers.iter().all(|reader| !reader.is_finished());
            while number % 5 == 0 && hits.load(Ordering::SeqCst) < number && has_readers() {
                tokio::task::yield_now().await;
            }
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            reader.await.expect("no stale response");
        }
    }
}

#[tokio::test]
async fn a_store_that_keeps_nothing_has_nothing_to_purge() {
    let bench = Bench::on(Cache::open("none:").expect("it opens"), grouped(), |builder| builder);
    for purge in [Purge::group("a"), Purge::all().soft(), Purge::prefix(URL)] {
        assert_eq!(bench.cache.purge(purge).await, Ok(true));
    }
    assert_eq!(bench.cache.purge(Purge::url(URL).soft()).await, Ok(false));
}

#[tokio::test]
async fn an_origin_clears_what_its_user_s_cache_has_of_it() {
    let origin = || {
        Script::new(|_, request| {
            let is_logout = request.uri().path() == "/logout";
            let clears: &[(&str, &str)] = &[("clear-site-data", "\"cache\", \"cookies\"")];
            let fields = [("cache-control", "max-age=60")];
            Ok(response(200, if is_logout { clears } else { &fields }, ""))
        })
    };
    for method in [Method::GET, Method::POST] {
        let user = Bench::with(origin(), "memory:size=8MiB", |builder| builder.private("alice"));
        let other = Bench::on(user.store.clone(), origin(), |builder| builder.private("bob"));
        for url in ["https://a.example/1", "https://b.example/1"] {
            user.get(url).await;
            other.get(url).await;
        }
        user.ask(method, "https://a.example/logout", &[]).await;
        assert!(!user.get("https://a.example/1").await.is_hit());
        assert!(user.get("https://b.example/1").await.is_hit());
        assert!(other.get("https://a.example/1").await.is_hit());
    }
    // Nobody clears what others share.
    let shared = Bench::new(origin());
    shared.get("https://a.example/1").await;
    shared.get("https://a.example/logout").await;
    assert!(shared.get("https://a.example/1").await.is_hit());
}
