//! Several caches on one store, and changes while a response is on its way.

use std::time::Duration;

use haypile_http::Purge;
use http::Method;

use super::origin::{Script, pieces, response, streamed};
use super::{Bench, URL, read};

/// Longer than any machine needs.
const LONG: Duration = Duration::from_mins(2);
const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];

/// The key of a target's entry.
fn key(url: &str) -> String {
    format!("http/{:032x}", xxhash_rust::xxh3::xxh3_128(url.as_bytes()))
}

/// Whether a store has these bytes in any of its keys and values.
fn is_anywhere(bench: &Bench, text: &str) -> bool {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    bench.store.keys().map(|key| key.expect("a key")).any(|key| {
        has(&key) || bench.store.get(&key).expect("a read").is_some_and(|value| has(&value))
    })
}

#[tokio::test]
async fn nothing_is_stored_of_a_request_whose_response_is_not() {
    for (asked, answered) in [
        (&[][..], "no-store"),
        (&[], "private, max-age=60"),
        (&[("authorization", "Basic secret")], "max-age=60"),
    ] {
        let origin = Script::new(move |_, _| Ok(response(200, &[("cache-control", answered)], "")));
        let bench = Bench::new(origin);
        for _ in 0..2 {
            bench.ask(Method::GET, URL, asked).await;
            bench.ask(Method::POST, URL, asked).await;
        }
        assert!(!is_anywhere(&bench, URL), "{asked:?} {answered}");
    }
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    assert!(is_anywhere(&bench, URL));
}

#[tokio::test]
async fn what_one_cache_has_stored_the_other_serves() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    for url in ["memory:size=8MiB", &file] {
        let first = Bench::with(Script::fields(&[FRESH]), url, |builder| builder);
        let second = Bench::on(first.store.clone(), Script::fields(&[FRESH]), |builder| builder);
        first.get(URL).await;
        assert!(second.get(URL).await.is_hit());
        second.ask(Method::DELETE, URL, &[]).await;
        assert!(!first.get(URL).await.is_hit());
    }
}

#[tokio::test]
async fn users_of_private_caches_get_their_own_responses_only() {
    let origin = Script::fields(&[&[("cache-control", "private, max-age=60")]]);
    let ann = Bench::with(origin.clone(), "memory:size=8MiB", |builder| builder.private("ann"));
    let bob = Bench::on(ann.store.clone(), origin.clone(), |builder| builder.private("bob"));
    let all = Bench::on(ann.store.clone(), origin, |builder| builder);
    ann.get(URL).await;
    assert!(ann.get(URL).await.is_hit());
    assert!(!bob.get(URL).await.is_hit());
    assert!(!all.get(URL).await.is_hit());
    assert!(!all.get(URL).await.is_hit());
}

#[tokio::test]
async fn a_response_whose_target_was_changed_meanwhile_is_not_stored() {
    // Where something is stored already, and where nothing is.
    for is_there in [true, false] {
        let (sender, body) = pieces();
        let body = std::sync::Mutex::new(Some(body));
        let bench = Bench::new(Script::new(move |number, request| {
            if request.method() == Method::GET
                && (number > 0 || !is_there)
                && let Some(body) = body.lock().expect("no panic").take()
            {
                return Ok(streamed(200, FRESH, body));
            }
            Ok(response(200, FRESH, format!("body {number}")))
        }));
        if is_there {
            bench.get(URL).await;
            bench.wait(60);
        }
        let coming = bench.send(Method::GET, URL, &[]).await.expect("a head");
        bench.ask(Method::PUT, URL, &[]).await;
        sender.send(Ok("too old".into())).expect("it is read");
        drop(sender);
        assert_eq!(read(coming).await.text(), "too old");
        let after = bench.get(URL).await;
        assert!(!after.is_hit() && after.text().starts_with("body"), "{is_there}: {after:?}");
    }
}

#[tokio::test]
async fn what_is_no_entry_is_a_miss_and_written_over() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    for garbage in [&b""[..], b"\x01", b"garbage", &[1; 200]] {
        bench.store.set(key(URL), garbage).expect("it is written");
        assert!(!bench.get(URL).await.is_hit());
        assert!(bench.get(URL).await.is_hit());
    }
}

#[tokio::test]
async fn two_processes_that_want_the_same_cause_one_request() {
    let folder = tempfile::tempdir().expect("a folder");
    // Each opens the file for itself, as two processes do.
    let url = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    for (fields, requests) in [(FRESH, 1), (&[("cache-control", "no-store")][..], 2)] {
        let (origin, gate) = Script::gated(move |_, _| Ok(response(200, fields, "body")), false);
        let first = Bench::with(origin.clone(), &url, |builder| builder);
        let second = Bench::with(origin, &url, |builder| builder);
        let target = format!("{URL}?{requests}");
        let asked = async { tokio::join!(first.get(&target), second.get(&target)) };
        let open = async {
            while first.origin.requests() == 0 {
                tokio::task::yield_now().await;
            }
            gate.open();
        };
        let ((one, other), ()) = tokio::join!(asked, open);
        assert_eq!((one.text(), other.text()), ("body", "body"));
        assert_eq!(first.origin.requests(), requests, "{fields:?}");
    }
}

#[tokio::test]
async fn a_request_that_forbids_storing_leaves_no_trace() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    for method in [Method::GET, Method::HEAD, Method::POST, Method::DELETE] {
        bench.ask(method, URL, &[("cache-control", "no-store")]).await;
    }
    assert_eq!(bench.store.len().expect("a number"), 0);
}

#[tokio::test]
async fn processes_whose_wait_was_in_vain_ask_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    let no_store = [("cache-control", "no-store")];
    let (origin, gate) = Script::gated(move |_, _| Ok(response(200, &no_store, "body")), false);
    let origin = origin.together(3);
    let set_up = |builder: haypile_http::Builder| builder.collapse_wait(LONG);
    let bench = || Bench::with(origin.clone(), &url, set_up);
    let (one, two, three) = (bench(), bench(), bench());
    let asked = async { tokio::join!(one.get(URL), two.get(URL), three.get(URL)) };
    let open = async {
        while origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    let all = async { tokio::join!(asked, open) };
    tokio::time::timeout(LONG / 2, Box::pin(all)).await.expect("neither waits for the other");
    assert_eq!(origin.requests(), 3);
}

#[tokio::test]
async fn an_entry_of_another_target_is_a_miss() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    let entry = bench.store.get(key(URL)).expect("a read").expect("it is stored");
    // As a name with the same hash would leave it.
    bench.store.set(key(&format!("{URL}b")), entry).expect("it is written");
    let other = bench.get(&format!("{URL}b")).await;
    assert_eq!((other.is_hit(), other.text()), (false, "body 1"));
}

#[tokio::test]
async fn what_one_cache_purges_the_others_have_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    for url in ["memory:size=8MiB", &file] {
        let first = Bench::with(Script::fields(&[FRESH]), url, |builder| builder);
        let second = Bench::on(first.store.clone(), Script::fields(&[FRESH]), |builder| builder);
        for path in ["http://example.org/x/1", "http://example.org/y"] {
            first.get(path).await;
            assert!(second.get(path).await.is_hit());
        }
        first.cache.purge(Purge::prefix("http://example.org/x/")).await.expect("it is one");
        assert!(!second.get("http://example.org/x/1").await.is_hit());
        assert!(second.get("http://example.org/y").await.is_hit());
        assert!(first.get("http://example.org/x/1").await.is_hit());
        assert_eq!(first.cache.purge(Purge::url("http://example.org/y")).await, Ok(true));
        assert_eq!(first.cache.purge(Purge::url("http://example.org/z")).await, Ok(false));
        assert!(!second.get("http://example.org/y").await.is_hit());
    }
}

#[tokio::test]
async fn a_store_that_has_forgotten_the_purges_serves_nothing_of_before() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    bench.cache.purge(Purge::prefix("http://example.org/")).await.expect("it is one");
    assert!(bench.store.delete("http-purges").expect("it is there"));
    assert!(!bench.get(URL).await.is_hit());
    assert!(bench.get(URL).await.is_hit());
}

#[tokio::test]
async fn a_response_that_was_purged_on_its_way_is_not_stored() {
    for whole in [true, false] {
        let (sender, origin) = Script::first_in_pieces(FRESH);
        let bench = Bench::new(origin);
        let coming = bench.send(Method::GET, URL, &[]).await.expect("a head");
        if whole {
            bench.cache.purge(Purge::url(URL)).await.expect("it is one");
        } else {
            bench.cache.purge(Purge::prefix("http://example.org/")).await.expect("it is one");
        }
        sender.send(Ok("old".into())).expect("somebody reads");
        drop(sender);
        assert_eq!(read(coming).await.text(), "old");
        assert!(!bench.get(URL).await.is_hit());
        assert_eq!(bench.get(URL).await.text(), "body 1");
    }
}

#[tokio::test]
async fn the_level_that_answers_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=8MiB", folder.path().display());
    let url = format!("memory:size=1MiB -> {file}");
    let bench = Bench::with(Script::fields(&[FRESH]), &url, |builder| builder);
    bench.get(URL).await;
    let again = Bench::with(Script::fields(&[FRESH]), &url, |builder| builder);
    for level in ["file", "memory"] {
        let answer = again.get(URL).await;
        let status = answer.headers["cache-status"].to_str().expect("text").to_owned();
        assert_eq!(status, format!("haypile; hit; ttl=60; detail={level}"));
    }
}

#[tokio::test]
async fn what_was_purged_is_remembered_longer_than_entries_live() {
    let url = "memory:size=8MiB,ttl=60s";
    let bench = Bench::with(Script::fields(&[FRESH]), url, |builder| builder);
    for purges in [false, true] {
        if purges {
            bench.cache.purge(Purge::prefix(URL)).await.expect("it is one");
        }
        bench.get(URL).await;
        let left = |key: &[u8]| {
            let hit = bench.store.store().get_into(key, &mut Vec::new()).expect("a read");
            hit.expect("it is there").expires_in
        };
        assert!(left(key(URL).as_bytes()).is_some());
        assert_eq!(left(b"http-purges"), None);
    }
}

/// The upper level answers the reads of the record of purges, so that the lower one would evict it.
#[tokio::test]
async fn a_lower_level_that_was_filled_several_times_still_serves_the_last_responses() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=2MiB", folder.path().display());
    let both = format!("memory:size=16MiB+{file}");
    let fields = [("cache-control", "max-age=600")];
    let origin = Script::new(move |number, _| {
        Ok(response(200, &fields, format!("{number} {}", "x".repeat(20_000))))
    });
    let url = |number: u32| format!("http://example.org/{number}");
    let bench = Bench::with(origin.clone(), &both, |builder| builder);
    for number in 0..600 {
        bench.get(&url(number)).await;
    }
    drop(bench);
    // As another process finds it.
    let other = Bench::with(origin, &file, |builder| builder);
    let mut hits = 0;
    for number in 580..600 {
        hits += u32::from(other.get(&url(number)).await.is_hit());
    }
    assert!(hits >= 15, "{hits} of the last 20");
}
