//! Responses that one client causes and no other may get.

use std::time::Duration;

use haypile_http::Purge;
use haypile_http::semantics::{IgnoredCookies, Rules};
use http::Method;

use super::origin::{Script, pieces, response, streamed};
use super::{Bench, URL, read};

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60"), ("etag", "\"a\"")];

/// A range, or a condition, makes these answers, and not the target.
#[tokio::test]
async fn answers_to_a_range_or_a_condition_are_for_nobody_else() {
    for (asked, status) in [
        (("range", "bytes=999999-"), 416),
        (("if-none-match", "\"x\""), 412),
        (("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT"), 412),
        (("if-range", "\"x\""), 412),
    ] {
        let bench = Bench::new(Script::new(move |number, _| {
            Ok(response(if number == 0 { status } else { 200 }, FRESH, format!("body {number}")))
        }));
        assert_eq!(bench.ask(Method::GET, URL, &[asked]).await.status, status);
        let other = bench.get(URL).await;
        assert_eq!((other.status, other.text()), (200, "body 1"), "{asked:?}");
    }
}

/// A response to one user's HEAD may say more than the stored response: that is not for the others.
#[tokio::test]
async fn a_head_that_may_not_be_stored_freshens_nothing() {
    const USER: (&str, &str) = ("authorization", "Basic dTpw");
    for (asked, news) in [
        (&[][..], ("set-cookie", "session=secret")),
        (&[], ("cache-control", "private, max-age=60")),
        (&[], ("cache-control", "no-store")),
        (&[], ("vary", "*")),
        (&[USER], ("x-user", "secret")),
        (&[("cache-control", "no-store")], ("x-user", "secret")),
    ] {
        let bench = Bench::new(Script::new(move |_, request| {
            if request.method() != Method::HEAD {
                return Ok(response(200, FRESH, "body"));
            }
            let mut fields = vec![("etag", "\"a\""), news];
            if news.0 != "cache-control" {
                fields.push(("cache-control", "max-age=60"));
            }
            Ok(response(200, &fields, ""))
        }));
        bench.get(URL).await;
        bench.wait(1);
        let asked = [asked, &[("cache-control", "no-cache")]].concat();
        let head = bench.ask(Method::HEAD, URL, &asked).await;
        assert!(head.headers.get_all(news.0).iter().any(|value| value == news.1));
        let other = bench.get(URL).await;
        let is_kept = other.headers.values().any(|value| value == news.1);
        assert!(other.is_hit() && !is_kept, "{asked:?} {news:?}: {other:?}");
    }
}

/// A 304 freshens all responses with its entity tag, but not with one user's fields.
#[tokio::test]
async fn a_304_that_may_not_be_stored_freshens_no_other_variant() {
    let bench = Bench::new(Script::new(|_, request| {
        let fields = [("cache-control", "max-age=60"), ("etag", "\"a\""), ("vary", "x")];
        if !request.headers().contains_key("if-none-match") {
            return Ok(response(200, &fields, "body"));
        }
        Ok(response(304, &[("etag", "\"a\""), ("set-cookie", "session=secret")], ""))
    }));
    for x in ["1", "2"] {
        bench.ask(Method::GET, URL, &[("x", x)]).await;
    }
    bench.wait(60);
    let validated = bench.ask(Method::GET, URL, &[("x", "1")]).await;
    assert_eq!(validated.field("set-cookie"), "session=secret");
    let hit = bench.ask(Method::HEAD, URL, &[("x", "2"), ("cache-control", "max-stale")]).await;
    assert!(hit.is_hit(), "{hit:?}");
    assert_eq!(hit.field("set-cookie"), "");
}

/// The name of a private cache may come from elsewhere, and be empty.
#[tokio::test]
async fn a_private_cache_of_a_user_without_a_name_is_not_the_shared_one() {
    let origin = Script::fields(&[&[("cache-control", "private, max-age=60")]]);
    let nobody = Bench::with(origin.clone(), "memory:size=8MiB", |builder| builder.private(""));
    let all = Bench::on(nobody.store.clone(), origin, |builder| builder);
    nobody.get(URL).await;
    assert!(nobody.get(URL).await.is_hit());
    assert!(!all.get(URL).await.is_hit());
}

/// Several programs with other rules may share a store.
#[tokio::test]
async fn a_cookie_that_another_cache_stored_is_not_served_without_that_option() {
    let origin = Script::fields(&[&[("cache-control", "max-age=60"), ("set-cookie", "a=b")]]);
    let mut rules = haypile_http::semantics::Rules::shared();
    rules.stores_set_cookie = true;
    let storing = Bench::with(origin.clone(), "memory:size=8MiB", |builder| builder.rules(rules));
    let strict = Bench::on(storing.store.clone(), origin, |builder| builder);
    storing.get(URL).await;
    assert!(storing.get(URL).await.is_hit());
    let answer = strict.get(URL).await;
    assert_eq!((answer.is_hit(), answer.text()), (false, "body 1"));
}

/// Whoever has changed a resource gets it as it is now, also while others still get the old response.
#[tokio::test]
async fn a_response_asked_for_before_a_change_answers_nobody_who_came_after_it() {
    for change in ["put", "purge", "prefix"] {
        let (sender, body) = pieces();
        let body = std::sync::Mutex::new(Some(body));
        let bench = Bench::new(Script::new(move |_, request| {
            let first = body.lock().expect("no panic").take();
            match first {
                Some(body) if request.method() == Method::GET => Ok(streamed(200, FRESH, body)),
                _ => Ok(response(200, FRESH, "new")),
            }
        }));
        let old = bench.send(Method::GET, URL, &[]).await.expect("a head");
        match change {
            "put" => drop(bench.ask(Method::PUT, URL, &[]).await),
            "purge" => assert_eq!(bench.cache.purge(Purge::url(URL)).await, Ok(true)),
            _ => {
                let purged = bench.cache.purge(Purge::prefix("http://example.org/")).await;
                assert_eq!(purged, Ok(true));
            }
        }
        sender.send(Ok("old".into())).expect("it is read");
        let after = bench.send(Method::GET, URL, &[]).await.expect("a head");
        drop(sender);
        assert_eq!(read(after).await.text(), "new", "{change}");
        assert_eq!(read(old).await.text(), "old", "{change}");
    }
}

/// An origin that takes a field for one value answers `https://a.example,` otherwise than the same
/// without the comma.
#[tokio::test]
async fn a_field_that_is_written_like_another_does_not_get_its_response() {
    for (name, own, other) in [
        ("origin", "https://shop.example,", "https://shop.example"),
        ("x-user", "alice, bob", "alice,bob"),
        ("cookie", "a=1,,2", "a=1,2"),
        ("user-agent", "x (a,b)", "x (a, b)"),
        ("accept-encoding", "g zip", "gzip"),
    ] {
        let bench = Bench::new(Script::new(move |_, request| {
            let asked = request.headers()[name].to_str().expect("text").to_owned();
            Ok(response(200, &[("cache-control", "max-age=60"), ("vary", name)], asked))
        }));
        for value in [own, other, own, other] {
            assert_eq!(bench.ask(Method::GET, URL, &[(name, value)]).await.text(), value);
        }
        assert_eq!(bench.origin.requests(), 2, "{name}");
    }
}

/// A page of an old application, which says nothing of caches.
const OLD: &[(&str, &str)] = &[("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT")];

/// A page that one client got by a cookie is not guessed to be for others.
#[tokio::test]
async fn a_page_without_a_lifetime_is_for_nobody_else_if_its_request_had_a_cookie() {
    let named = |name: &str| IgnoredCookies::Named(vec![name.to_owned()]);
    let minute = Some(Duration::from_mins(1));
    for (ttl, ignored, asked, is_shared) in [
        (minute, named("x"), ("cookie", "session=alice"), false),
        (None, named("x"), ("cookie", "session=alice"), false),
        (minute, named("x"), ("authorization", "Basic alice"), false),
        (minute, named("_ga"), ("cookie", "_ga=1; session=alice"), false),
        (minute, named("_ga"), ("cookie", "_ga=1"), true),
        (minute, IgnoredCookies::All, ("cookie", "session=alice"), true),
        (minute, IgnoredCookies::All, ("authorization", "Basic alice"), false),
        (minute, named("x"), ("x", "y"), true),
    ] {
        let rules = Rules { default_lifetime: ttl, ignored_cookies: ignored, ..Rules::shared() };
        let origin = Script::new(move |number, _| Ok(response(200, OLD, format!("{number}"))));
        let clock = |builder: haypile_http::Builder| builder.rules(rules);
        let bench = Bench::with(origin, "memory:size=8MiB", clock);
        bench.wait(1_000_000);
        // Of Alice's, nothing is for Bob, and of Bob's nothing for Alice.
        let alice = bench.ask(Method::GET, URL, &[asked]).await;
        let bob = bench.get(URL).await;
        assert_eq!(bob.text() == alice.text(), is_shared, "{asked:?}: {bob:?}");
        let again = bench.ask(Method::GET, URL, &[asked]).await;
        assert_eq!(again.text() == bob.text(), is_shared, "{asked:?}: {again:?}");
        // Those who say nothing of themselves share one.
        assert!(bench.get(URL).await.is_hit(), "{asked:?}");
    }
}

/// A page with an entity tag and nothing else is stale at once. Another cache on the same store may be told a lifetime,
/// and where the origin fails, stale pages serve.
#[tokio::test]
async fn a_page_of_one_user_is_not_kept_for_what_may_be_guessed_later() {
    const ALICE: (&str, &str) = ("cookie", "session=alice");
    for (fields, is_stored) in [
        (&[("etag", "\"a\"")][..], false),
        (&[("etag", "\"a\""), ("cache-control", "public")], false),
        (&[("etag", "\"a\""), ("cache-control", "no-cache")], true),
    ] {
        let origin = Script::new(move |number, request| match request.headers().get("cookie") {
            Some(_) => Ok(response(200, fields, "alice")),
            None if number > 1 => Err("no connection".into()),
            None => Ok(response(200, &[], "bob")),
        });
        let store = haypile::Cache::open("memory:size=8MiB").expect("it opens");
        let first = Bench::on(store.clone(), origin.clone(), |builder| builder);
        let answer = first.ask(Method::GET, URL, &[ALICE]).await;
        assert_eq!(answer.cache_status().contains("; stored"), is_stored, "{fields:?}: {answer:?}");
        let default_lifetime = Some(Duration::from_hours(1));
        let rules = Rules { default_lifetime, ..Rules::shared() };
        let second = Bench::on(store, origin, |builder| builder.rules(rules));
        let bob = second.get(URL).await;
        assert_eq!(bob.text(), "bob", "{fields:?}: {bob:?}");
        let failed = first.send(Method::GET, URL, &[("cache-control", "max-stale")]).await;
        let text = match failed {
            Ok(response) => read(response).await.text().to_owned(),
            Err(_) => String::new(),
        };
        assert_ne!(text, "alice", "{fields:?}");
    }
}

#[tokio::test]
async fn a_page_that_says_its_lifetime_itself_is_for_all() {
    let bench = Bench::new(Script::fields(&[&[("cache-control", "max-age=60")]]));
    bench.ask(Method::GET, URL, &[("cookie", "session=alice")]).await;
    assert!(bench.get(URL).await.is_hit());
    assert!(bench.ask(Method::GET, URL, &[("cookie", "session=bob")]).await.is_hit());
}

#[tokio::test]
async fn a_page_that_is_not_stored_says_what_is_missing() {
    for (fields, asked, missing) in [
        (
            &[][..],
            &[][..],
            "not stored: the response has neither a lifetime (max-age, Expires) nor a validator",
        ),
        (
            &[("cache-control", "max-age=0")],
            &[],
            "not stored: the response is stale at once, and has no validator",
        ),
        (OLD, &[("cookie", "a=b")], "not stored: the request had a cookie or Authorization"),
    ] {
        let bench = Bench::new(Script::fields(Box::leak(Box::new([fields]))));
        let answer = bench.ask(Method::GET, URL, asked).await;
        assert!(answer.cache_status().contains(missing), "{answer:?}");
    }
}
