//! Which requests the cache answers, and how.

use haypile_http::{Body, Status};
use http::{Method, Request};

use super::origin::{Script, response};
use super::{Bench, URL};

const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60")];

#[tokio::test]
async fn a_fresh_response_is_served_from_the_cache_with_its_age() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    let first = bench.get(URL).await;
    assert_eq!(first.cache_status(), "fwd=uri-miss; fwd-status=200; stored");
    bench.wait(20);
    let second = bench.get(URL).await;
    assert_eq!((second.status, second.text()), (200, "body 0"));
    assert_eq!((second.cache_status(), second.field("age")), ("hit; ttl=40", "20"));
    assert_eq!(second.field("content-length"), "6");
    bench.wait(40);
    let third = bench.get(URL).await;
    assert_eq!(
        (third.cache_status(), third.text()),
        ("fwd=stale; fwd-status=200; stored", "body 1")
    );
    assert_eq!(bench.origin.requests(), 2);
}

#[tokio::test]
async fn what_may_not_be_stored_is_not_and_the_response_says_why() {
    let bench = Bench::new(Script::fields(&[&[("cache-control", "no-store")]]));
    for number in 0..2 {
        let answer = bench.get(URL).await;
        let expected =
            "fwd=uri-miss; fwd-status=200; detail=\"not stored: the response says no-store\""
                .to_owned();
        assert_eq!(
            (answer.cache_status(), answer.text()),
            (&*expected, &*format!("body {number}"))
        );
    }
}

#[tokio::test]
async fn the_status_is_also_among_the_extensions() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    let response = bench.send(Method::GET, URL, &[]).await.expect("a response");
    assert!(response.extensions().get::<Status>().expect("it is there").is_stored);
}

#[tokio::test]
async fn a_head_is_answered_from_a_get_and_not_the_other_way_round() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    assert!(!bench.ask(Method::HEAD, URL, &[]).await.is_hit());
    assert!(!bench.get(URL).await.is_hit());
    let head = bench.ask(Method::HEAD, URL, &[]).await;
    assert!(head.is_hit() && head.body.is_empty());
    assert_eq!(head.field("content-length"), "6");
}

#[tokio::test]
async fn conditions_of_clients_are_evaluated() {
    let fields: &[_] = &[("cache-control", "max-age=60"), ("etag", "\"a\"")];
    let bench = Bench::new(Script::new(move |_, _| Ok(response(200, fields, "body"))));
    bench.get(URL).await;
    let same = bench.ask(Method::GET, URL, &[("if-none-match", "\"a\"")]).await;
    assert_eq!((same.status, same.body.len(), same.is_hit()), (304, 0, true));
    assert_eq!((same.field("etag"), same.field("content-length")), ("\"a\"", ""));
    let other = bench.ask(Method::GET, URL, &[("if-none-match", "\"b\"")]).await;
    assert_eq!((other.status, other.text()), (200, "body"));
}

#[tokio::test]
async fn the_reason_for_asking_the_origin_is_exact() {
    for (control, asked, wait, expected) in [
        ("max-age=60", "max-age=5", 10, "fwd=request"),
        ("max-age=60", "min-fresh=55", 10, "fwd=request"),
        ("max-age=60", "no-cache", 10, "fwd=request"),
        ("max-age=60", "max-age=5", 60, "fwd=stale"),
        ("max-age=60", "", 60, "fwd=stale"),
        ("max-age=60, no-cache", "max-age=5", 10, "fwd=stale"),
    ] {
        let bench = Bench::new(Script::new(move |_, _| {
            Ok(response(200, &[("cache-control", control), ("etag", "\"a\"")], "body"))
        }));
        bench.get(URL).await;
        bench.wait(wait);
        let answer = bench.ask(Method::GET, URL, &[("cache-control", asked)]).await;
        let reason = answer.cache_status().split(';').next();
        assert_eq!(reason, Some(expected), "{control}; {asked}; {wait}");
    }
}

#[tokio::test]
async fn a_response_with_a_head_that_has_no_room_in_an_entry_is_not_said_to_be_stored() {
    let long = "x".repeat(65_300);
    let bench = Bench::new(Script::new(move |_, _| {
        Ok(response(200, &[("cache-control", "max-age=60"), ("x", &long)], "body"))
    }));
    for _ in 0..2 {
        let answer = bench.get(URL).await;
        let expected =
            "fwd=uri-miss; fwd-status=200; detail=\"not stored: the response's head is too long\"";
        assert_eq!((answer.cache_status(), answer.text()), (expected, "body"));
    }
}

#[tokio::test]
async fn only_if_cached_never_gets_to_the_origin() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    let asked = [("cache-control", "only-if-cached")];
    assert_eq!(bench.ask(Method::GET, URL, &asked).await.status, 504);
    assert_eq!(bench.origin.requests(), 0);
    bench.get(URL).await;
    assert_eq!(bench.ask(Method::GET, URL, &asked).await.status, 200);
    bench.wait(60);
    assert_eq!(bench.ask(Method::GET, URL, &asked).await.status, 504);
    assert_eq!(bench.origin.requests(), 1);
}

/// A request that no stored response may answer is not sent to the origin either, unless it would change something
/// there.
#[tokio::test]
async fn only_if_cached_holds_for_all_safe_requests() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    let asked = ("cache-control", "only-if-cached");
    for (method, url, field, body) in [
        (Method::GET, URL, Some(("if-match", "\"x\"")), ""),
        (Method::GET, URL, Some(("if-unmodified-since", "Thu, 01 Jan 2026 00:00:00 GMT")), ""),
        (Method::GET, URL, None, "body"),
        (Method::HEAD, URL, Some(("if-match", "\"x\"")), ""),
        (Method::OPTIONS, URL, None, ""),
        (Method::GET, "/no-target", None, ""),
        (Method::POST, URL, None, "body"),
        (Method::PUT, URL, None, "body"),
    ] {
        let fields: Vec<_> = field.into_iter().chain([asked]).collect();
        let request = super::request(method.clone(), url, &fields).map(|_| Body::full(body));
        let before = bench.origin.requests();
        let response = bench.cache.answer(bench.origin.clone(), request).await;
        let status = response.expect("a response").status();
        let (expected, requests) = if method.is_safe() { (504, 0) } else { (200, 1) };
        assert_eq!(status, expected, "{method} {field:?} {body}");
        assert_eq!(bench.origin.requests() - before, requests, "{method} {field:?} {body}");
    }
}

#[tokio::test]
async fn a_stale_response_is_validated_and_freshened() {
    let bench = Bench::new(Script::new(|number, request| {
        let fields = [("cache-control", "max-age=60"), ("etag", "\"a\""), ("x", "old")];
        if number == 0 {
            return Ok(response(200, &fields, "body"));
        }
        assert_eq!(request.headers()["if-none-match"], "\"a\"");
        Ok(response(304, &[("etag", "\"a\""), ("x", "new"), ("content-length", "0")], ""))
    }));
    bench.get(URL).await;
    bench.wait(60);
    let validated = bench.get(URL).await;
    assert_eq!((validated.status, validated.text(), validated.field("x")), (200, "body", "new"));
    assert_eq!(validated.cache_status(), "fwd=stale; fwd-status=304");
    bench.wait(59);
    let hit = bench.get(URL).await;
    assert_eq!((hit.cache_status(), hit.text(), hit.field("x")), ("hit; ttl=1", "body", "new"));
    assert_eq!(hit.field("content-length"), "4");
}

/// A 304, or the response to a HEAD, without an `Age` comes from the origin itself.
#[tokio::test]
async fn the_age_counts_from_the_validation() {
    for (method, age, expected) in [
        (Method::GET, None, "hit; ttl=60"),
        (Method::GET, Some("20"), "hit; ttl=40"),
        (Method::HEAD, None, "hit; ttl=60"),
    ] {
        let bench = Bench::new(Script::new(move |number, request| {
            let mut fields = vec![("cache-control", "max-age=60"), ("etag", "\"a\"")];
            let age = if number == 0 { Some("100") } else { age };
            fields.extend(age.map(|age| ("age", age)));
            let is_head = request.method() == Method::HEAD;
            Ok(response(if number == 0 || is_head { 200 } else { 304 }, &fields, ""))
        }));
        bench.get(URL).await;
        bench.wait(10);
        assert!(!bench.ask(method.clone(), URL, &[]).await.is_hit());
        assert_eq!(bench.get(URL).await.cache_status(), expected, "{method} {age:?}");
    }
}

#[tokio::test]
async fn a_304_that_is_about_another_response_is_not_believed() {
    let bench = Bench::new(Script::new(|number, request| {
        let is_conditional = request.headers().contains_key("if-none-match");
        match number {
            0 => Ok(response(200, &[("cache-control", "max-age=60"), ("etag", "\"a\"")], "old")),
            _ if is_conditional => Ok(response(304, &[("etag", "\"b\"")], "")),
            _ => Ok(response(200, &[("etag", "\"b\"")], "new")),
        }
    }));
    bench.get(URL).await;
    bench.wait(60);
    assert_eq!(bench.get(URL).await.text(), "new");
    assert_eq!(bench.origin.requests(), 3);
}

#[tokio::test]
async fn a_failing_origin_is_covered_by_a_stale_response_unless_that_is_forbidden() {
    for (control, is_served) in [
        ("max-age=60", true),
        ("max-age=60, must-revalidate", false),
        ("max-age=60, proxy-revalidate", false),
        ("s-maxage=60", false),
        ("max-age=60, stale-if-error=5", false),
    ] {
        for (fails_by_status, method) in
            [(true, Method::GET), (false, Method::GET), (true, Method::HEAD), (false, Method::HEAD)]
        {
            let bench = Bench::new(Script::new(move |number, _| match number {
                0 => Ok(response(200, &[("cache-control", control)], "body")),
                _ if fails_by_status => Ok(response(503, &[], "down")),
                _ => Err("no connection".into()),
            }));
            bench.get(URL).await;
            bench.wait(70);
            let answered = bench.send(method.clone(), URL, &[]).await;
            let status = answered.map_or(0, |response| response.status().as_u16());
            let expected = match (is_served, fails_by_status) {
                (true, _) => 200,
                (false, true) => 503,
                (false, false) => 0,
            };
            assert_eq!(status, expected, "{control}, {fails_by_status}, {method}");
        }
    }
}

#[tokio::test]
async fn stale_while_revalidate_serves_at_once_and_asks_once() {
    let bench = Bench::new(Script::fields(&[&[(
        "cache-control",
        "max-age=60, stale-while-revalidate=60",
    )]]));
    bench.get(URL).await;
    bench.wait(70);
    let stale = bench.get(URL).await;
    assert_eq!((stale.text(), stale.cache_status()), ("body 0", "hit; ttl=-10"));
    // The response that it causes comes by itself.
    while bench.get(URL).await.text() == "body 0" {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.origin.requests(), 2);
}

#[tokio::test]
async fn unsafe_requests_invalidate_what_they_change() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    let other = "http://example.org/b";
    bench.get(URL).await;
    bench.get(other).await;
    bench.ask(Method::POST, URL, &[]).await;
    assert!(!bench.get(URL).await.is_hit());
    assert!(bench.get(other).await.is_hit());
}

#[tokio::test]
async fn a_get_with_a_body_passes() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    bench.get(URL).await;
    let request = Request::get(URL).body(Body::full("x")).expect("a request");
    let response = bench.cache.answer(bench.origin.clone(), request).await.expect("a response");
    let answer = super::read(response).await;
    let status = "fwd=bypass; fwd-status=200; detail=\"the request has If-Match, If-Unmodified-Since or a \
                  body\"";
    assert_eq!((answer.text(), answer.cache_status()), ("body 1", status));
}

#[tokio::test]
async fn requests_that_differ_where_vary_says_so_have_their_own_responses() {
    let bench = Bench::new(Script::new(|number, _| {
        let fields = [("cache-control", "max-age=60"), ("vary", "accept-language")];
        Ok(response(200, &fields, format!("body {number}")))
    }));
    let ask =
        async |language: &str| bench.ask(Method::GET, URL, &[("accept-language", language)]).await;
    assert_eq!(ask("en").await.text(), "body 0");
    let german = ask("de").await;
    assert_eq!(
        (german.text(), german.cache_status()),
        ("body 1", "fwd=vary-miss; fwd-status=200; stored")
    );
    assert_eq!(ask("en").await.text(), "body 0");
    assert_eq!(ask("de").await.text(), "body 1");
}

#[tokio::test]
async fn requests_without_a_target_pass() {
    let bench = Bench::new(Script::fields(&[FRESH]));
    for (uri, reason) in [
        ("/a", "the URL has a scheme other than http and https"),
        ("ftp://example.org/", "the URL has a scheme other than http and https"),
        ("http://user@example.org/", "the URL has a user or a password before the host"),
    ] {
        let expected = format!("fwd=bypass; fwd-status=200; detail=\"{reason}\"");
        for _ in 0..2 {
            assert_eq!(bench.get(uri).await.cache_status(), expected, "{uri}");
        }
    }
}

#[tokio::test]
async fn a_response_to_a_post_that_is_also_one_to_a_get_is_stored() {
    for (location, is_stored) in [("/a", true), ("/b", false)] {
        let fields = [("cache-control", "max-age=60"), ("content-location", location)];
        let bench = Bench::new(Script::new(move |number, _| {
            Ok(response(200, &fields, format!("body {number}")))
        }));
        bench.get(URL).await;
        let posted = bench.ask(Method::POST, URL, &[]).await;
        assert_eq!(posted.text(), "body 1");
        let after = bench.get(URL).await;
        assert_eq!(after.is_hit(), is_stored, "{location}");
        assert_eq!(after.text(), if is_stored { "body 1" } else { "body 2" });
    }
}

#[tokio::test]
async fn a_304_may_change_what_a_response_varies_with() {
    let bench = Bench::new(Script::new(|number, _| match number {
        0 => Ok(response(200, &[("cache-control", "max-age=60"), ("etag", "\"a\"")], "body 0")),
        1 => Ok(response(304, &[("etag", "\"a\""), ("vary", "x")], "")),
        _ => Ok(response(200, &[("cache-control", "max-age=60"), ("vary", "x")], "body 2")),
    }));
    bench.get(URL).await;
    bench.wait(60);
    let ask = async |value| bench.ask(Method::GET, URL, &[("x", value)]).await;
    assert_eq!(ask("1").await.text(), "body 0");
    assert!(ask("1").await.is_hit());
    let other = ask("2").await;
    assert_eq!((other.is_hit(), other.text()), (false, "body 2"));
    assert_eq!(ask("1").await.text(), "body 0");
    assert_eq!(bench.origin.requests(), 3);
}
