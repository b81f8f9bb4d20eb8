//! Responses that are parts, and bodies that lose a part.

use std::sync::Arc;

use bytes::Bytes;
use haypile_http::Body;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use parking_lot::Mutex;

use super::origin::{Script, response};
use super::{Answer, Bench, URL};

const LENGTH: usize = 400_000;

fn whole() -> Bytes {
    (0_u32..).flat_map(u32::to_le_bytes).take(LENGTH).collect()
}

/// Answers a range of [`whole`] with the part, under this tag; `If-Range` with another gets all.
fn part(request: &Request<Body>, tag: &str) -> Response<Body> {
    let field = |name: &str| request.headers().get(name).map(|value| value.to_str().expect("text"));
    let fresh = [("cache-control", "max-age=60"), ("etag", tag)];
    let range = field("range").filter(|_| field("if-range").is_none_or(|other| other == tag));
    let Some(range) = range else { return response(200, &fresh, whole()) };
    let (first, last) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')).expect("one");
    let (first, last): (usize, usize) =
        (first.parse().expect("a number"), last.parse().expect("a number"));
    let place = format!("bytes {first}-{last}/{LENGTH}");
    let fields = [fresh[0], fresh[1], ("content-range", &place)];
    response(206, &fields, whole().slice(first..=last))
}

/// Returns an origin of parts, and the tag of what it has, which a test may change.
fn origin() -> (Script, Arc<Mutex<&'static str>>) {
    let tag = Arc::new(Mutex::new("\"a\""));
    let own = Arc::clone(&tag);
    (Script::new(move |_, request| Ok(part(request, *own.lock()))), tag)
}

async fn range(bench: &Bench, first: usize, last: usize) -> Answer {
    let range = format!("bytes={first}-{last}");
    let answer = bench.ask(Method::GET, URL, &[("range", &range)]).await;
    assert_eq!(answer.status, 206, "{range}");
    assert!(answer.body == whole()[first..=last], "{range}");
    assert_eq!(answer.field("content-range"), format!("bytes {first}-{last}/{LENGTH}"));
    answer
}

#[tokio::test]
async fn parts_of_one_whole_are_put_together() {
    let bench = Bench::new(origin().0);
    for (first, last, is_hit) in [
        (100, 99_999, false),
        (100, 99_999, true),
        (200, 300, true),
        (99_000, 100_500, false),
        (150, 100_500, true),
        (0, 99, false),
        (0, 100_500, true),
        (0, 100_501, false),
        (399_999, 399_999, false),
        (399_999, 399_999, true),
    ] {
        assert_eq!(range(&bench, first, last).await.is_hit(), is_hit, "{first}-{last}");
    }
    // A whole one needs all of it, and so does a HEAD that tells its length.
    assert!(!bench.ask(Method::HEAD, URL, &[]).await.is_hit());
    range(&bench, 100_000, 399_999).await;
    let all = bench.get(URL).await;
    assert!(all.is_hit() && all.body == whole());
    assert_eq!((all.status, all.field("content-length")), (200, &*LENGTH.to_string()));
    assert_eq!(all.field("content-range"), "");
}

#[tokio::test]
async fn a_request_that_a_stored_part_does_not_answer_is_partial() {
    let bench = Bench::new(origin().0);
    for (first, last, expected) in [
        (0, 99, "fwd=uri-miss; fwd-status=206; stored"),
        (0, 100, "fwd=partial; fwd-status=206; stored"),
    ] {
        assert_eq!(range(&bench, first, last).await.cache_status(), expected);
    }
    let all = bench.get(URL).await;
    assert_eq!(all.cache_status(), "fwd=partial; fwd-status=200; stored");
}

#[tokio::test]
async fn parts_of_another_whole_take_the_place_of_the_first() {
    let (script, tag) = origin();
    let bench = Bench::new(script);
    range(&bench, 0, 99).await;
    *tag.lock() = "\"b\"";
    range(&bench, 100, 199).await;
    assert!(!range(&bench, 0, 99).await.is_hit(), "it was of the other");
    assert!(range(&bench, 0, 199).await.is_hit());
}

#[tokio::test]
async fn parts_that_may_not_be_put_together_are_not_stored() {
    for (fields, body) in [
        (&[("content-range", "bytes 0-4/10")][..], "01234"),
        (&[("content-range", "bytes 0-4/10"), ("etag", "W/\"a\"")], "01234"),
        (&[("content-range", "bytes 0-4/*"), ("etag", "\"a\"")], "01234"),
        (&[("content-range", "bytes 0-5/10"), ("etag", "\"a\"")], "01234"),
        (&[("content-range", "bytes 0-3/10"), ("etag", "\"a\"")], "01234"),
        (&[("etag", "\"a\"")], "01234"),
    ] {
        let bench = Bench::new(Script::new(move |_, _| {
            let fresh = [("cache-control", "max-age=60")];
            Ok(response(206, &[&fresh, fields].concat(), body))
        }));
        for _ in 0..2 {
            let answer = bench.ask(Method::GET, URL, &[("range", "bytes=0-4")]).await;
            assert_eq!((answer.status, answer.is_hit(), answer.text()), (206, false, body));
            assert!(answer.cache_status().contains("detail="), "{fields:?}");
        }
    }
}

#[tokio::test]
async fn stale_parts_are_revalidated() {
    let bench = Bench::new(Script::new(|_, request| {
        let fresh = [("cache-control", "max-age=60"), ("etag", "\"a\"")];
        let is_current = request.headers().get("if-none-match").is_some_and(|tag| tag == "\"a\"");
        Ok(if is_current { response(304, &fresh, "") } else { part(request, "\"a\"") })
    }));
    range(&bench, 0, 99).await;
    bench.wait(61);
    let answer = range(&bench, 10, 20).await;
    assert_eq!(answer.cache_status(), "fwd=stale; fwd-status=304");
    assert!(range(&bench, 0, 99).await.is_hit());
    bench.wait(61);
    assert_eq!(range(&bench, 50, 150).await.cache_status(), "fwd=partial; fwd-status=206; stored");
}

/// Reads the first piece of a stored body, deletes the rest of the body from the store, and reads on.
async fn read_while_it_vanishes(bench: &Bench, fields: &[(&str, &str)]) -> Result<Bytes, String> {
    let coming = bench.send(Method::GET, URL, fields).await.expect("a head");
    let mut body = coming.into_body();
    let first = body.frame().await.expect("a piece").expect("it is there");
    let first = first.into_data().expect("data");
    let keys: Vec<_> = bench.store.keys().map(|key| key.expect("a key")).collect();
    for key in keys.iter().filter(|key| key.starts_with(b"http-body/")) {
        assert!(bench.store.delete(key).expect("it is deleted"));
    }
    let mut all = first.to_vec();
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => all.extend_from_slice(&frame.into_data().expect("data")),
            Err(error) => {
                assert!(body.frame().await.is_none(), "nothing follows an error");
                return Err(error.to_string());
            }
        }
    }
    Ok(all.into())
}

#[tokio::test]
async fn what_vanishes_after_the_head_comes_from_the_origin_if_it_is_the_same() {
    let (script, tag) = origin();
    let bench = Bench::new(script);
    bench.get(URL).await;
    let body = read_while_it_vanishes(&bench, &[]).await;
    assert!(body.expect("it is whole") == whole());
    assert_eq!(bench.origin.requests(), 2);
    bench.get(URL).await;
    let body = read_while_it_vanishes(&bench, &[("range", "bytes=60000-300000")]).await;
    assert!(body.expect("it is whole") == whole()[60_000..=300_000]);
    bench.get(URL).await;
    *tag.lock() = "\"b\"";
    let error = read_while_it_vanishes(&bench, &[]).await.expect_err("it is another");
    assert!(error.contains("the origin has another"), "{error}");
}

#[tokio::test]
async fn what_vanishes_without_a_strong_tag_breaks_off() {
    for fields in [
        &[("cache-control", "max-age=60")][..],
        &[("cache-control", "max-age=60"), ("etag", "W/\"a\"")],
    ] {
        let bench = Bench::new(Script::new(move |_, _| Ok(response(200, fields, whole()))));
        bench.get(URL).await;
        let error = read_while_it_vanishes(&bench, &[]).await.expect_err("it breaks off");
        assert!(error.contains("evicted"), "{error}");
        assert_eq!(bench.origin.requests(), 1);
    }
}

#[tokio::test]
async fn a_rest_of_another_whole_breaks_off() {
    let (other_tag, other_place) = (("etag", "\"b\""), ("content-range", "bytes 0-9/400000"));
    for changed in [other_tag, other_place] {
        let bench = Bench::new(Script::new(move |number, request| {
            let mut answer = part(request, "\"a\"");
            if number > 0 {
                // It does not heed If-Range, or the range.
                let name = http::HeaderName::from_static(changed.0);
                answer.headers_mut().insert(name, changed.1.parse().expect("a value"));
            }
            Ok(answer)
        }));
        bench.get(URL).await;
        let error = read_while_it_vanishes(&bench, &[]).await.expect_err("it breaks off");
        assert!(error.contains("the origin has another"), "{changed:?}: {error}");
    }
}

#[tokio::test]
async fn a_rest_that_is_too_short_breaks_off() {
    let bench = Bench::new(Script::new(|number, request| {
        let mut answer = part(request, "\"a\"");
        if number > 0 {
            *answer.body_mut() = Body::full("short");
        }
        Ok(answer)
    }));
    bench.get(URL).await;
    let error = read_while_it_vanishes(&bench, &[]).await.expect_err("it breaks off");
    assert!(error.contains("too short"), "{error}");
}
