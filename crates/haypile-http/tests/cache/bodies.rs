//! Long bodies, parts of bodies, and bodies that break off.

use bytes::Bytes;
use haypile_http::Purge;
use http::{HeaderValue, Method};
use http_body_util::BodyExt;

use super::origin::{Script, pieces, response, streamed};
use super::{Bench, URL};

pub(crate) const FRESH: &[(&str, &str)] = &[("cache-control", "max-age=60"), ("etag", "\"a\"")];

/// Bytes that are different everywhere.
pub(crate) fn long_body(length: usize) -> Bytes {
    (0_u32..).flat_map(u32::to_le_bytes).take(length).collect()
}

#[tokio::test]
async fn bodies_of_any_length_come_back() {
    for length in [0, 1, 60_000, 65_279, 65_280, 65_281, 130_560, 130_561, 500_001] {
        let bench =
            Bench::new(Script::new(move |_, _| Ok(response(200, FRESH, long_body(length)))));
        for is_hit in [false, true] {
            let answer = bench.get(URL).await;
            assert_eq!(answer.is_hit(), is_hit, "{length} bytes");
            assert!(answer.body == long_body(length), "{length} bytes");
            assert_eq!(
                answer.field("content-length"),
                if is_hit { length.to_string() } else { String::new() }
            );
        }
    }
}

#[tokio::test]
async fn a_hit_says_its_length_once_however_the_origin_said_it() {
    for said in [&[][..], &["4"], &["4", "4"], &["4, 4"], &["04"]] {
        let bench = Bench::new(Script::new(move |_, _| {
            let mut response = response(200, FRESH, "body");
            for length in said {
                response.headers_mut().append("content-length", HeaderValue::from_static(length));
            }
            Ok(response)
        }));
        bench.get(URL).await;
        let hit = bench.get(URL).await;
        assert!(hit.is_hit(), "{said:?}");
        let lengths: Vec<&HeaderValue> = hit.headers.get_all("content-length").iter().collect();
        assert_eq!(lengths, ["4"], "{said:?}");
    }
}

#[tokio::test]
async fn parts_of_stored_bodies() {
    for length in [1_000_usize, 200_000] {
        let bench =
            Bench::new(Script::new(move |_, _| Ok(response(200, FRESH, long_body(length)))));
        bench.get(URL).await;
        for (range, begin, end) in [
            ("bytes=0-0".to_owned(), 0, 1),
            ("bytes=10-99".to_owned(), 10, 100),
            (format!("bytes={}-", length - 7), length - 7, length),
            ("bytes=-300".to_owned(), length - 300, length),
            (format!("bytes=1-{}", length * 2), 1, length),
        ] {
            let part = bench.ask(Method::GET, URL, &[("range", &range)]).await;
            assert_eq!((part.status, part.is_hit()), (206, true), "{range}");
            assert!(part.body == long_body(length)[begin..end], "{range}");
            let expected = format!("bytes {begin}-{}/{length}", end - 1);
            assert_eq!(part.field("content-range"), expected);
            assert_eq!(part.field("content-length"), (end - begin).to_string());
        }
        let none = bench.ask(Method::GET, URL, &[("range", &format!("bytes={length}-"))]).await;
        assert_eq!((none.status, none.body.len()), (416, 0));
        assert_eq!(none.field("content-range"), format!("bytes */{length}"));
        let changed = [("range", "bytes=0-0"), ("if-range", "\"b\"")];
        assert_eq!(bench.ask(Method::GET, URL, &changed).await.body.len(), length);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_stored_and_does_not_look_whole() {
    for length in [5, 200_000] {
        let bench = Bench::new(Script::new(move |_, _| {
            let (sender, body) = pieces();
            let _ = sender.send(Ok(long_body(length)));
            let _ = sender.send(Err("the connection was reset".into()));
            Ok(streamed(200, FRESH, body))
        }));
        for _ in 0..2 {
            let response = bench.send(Method::GET, URL, &[]).await.expect("a head");
            let error = response.into_body().collect().await.expect_err("it breaks off");
            assert!(error.to_string().contains("the connection was reset"), "{error}");
        }
        assert_eq!(bench.origin.requests(), 2);
    }
}

#[tokio::test]
async fn a_body_comes_as_it_is_sent() {
    let (sender, body) = pieces();
    let body = std::sync::Mutex::new(Some(body));
    let bench = Bench::new(Script::new(move |_, _| {
        Ok(streamed(200, FRESH, body.lock().expect("no panic").take().expect("asked once")))
    }));
    let mut body = bench.send(Method::GET, URL, &[]).await.expect("a head").into_body();
    for text in ["one", "two"] {
        sender.send(Ok(text.into())).expect("it is read");
        let frame = body.frame().await.expect("there is more").expect("it is well");
        assert_eq!(frame.into_data().expect("data"), text);
    }
    drop(sender);
    assert!(body.frame().await.is_none());
    assert_eq!(bench.get(URL).await.text(), "onetwo");
}

#[tokio::test]
async fn a_body_whose_client_has_gone_is_still_stored() {
    let (sender, body) = pieces();
    let body = std::sync::Mutex::new(Some(body));
    let bench = Bench::new(Script::new(move |_, _| {
        Ok(streamed(200, FRESH, body.lock().expect("no panic").take().expect("asked once")))
    }));
    let response = bench.send(Method::GET, URL, &[]).await.expect("a head");
    drop(response);
    for piece in long_body(300_000).chunks(10_000) {
        sender.send(Ok(Bytes::copy_from_slice(piece))).expect("it is read");
    }
    drop(sender);
    // A request that comes in the meantime gets it as well.
    let answer = bench.get(URL).await;
    assert!(answer.body == long_body(300_000));
    assert!(bench.get(URL).await.is_hit());
}

#[tokio::test]
async fn larger_bodies_pass_unstored() {
    let set_up = |builder: haypile_http::Builder| builder.largest_body(100_000);
    let is_long = |number| number < 2;
    for has_length in [true, false] {
        let origin = Script::new(move |number, _| {
            let body = long_body(if is_long(number) { 3_000_000 } else { 100_000 });
            if has_length {
                return Ok(response(200, FRESH, body));
            }
            let (sender, streaming) = pieces();
            for piece in body.chunks(7_000) {
                let _ = sender.send(Ok(Bytes::copy_from_slice(piece)));
            }
            Ok(streamed(200, FRESH, streaming))
        });
        let bench = Bench::with(origin, "memory:size=16MiB", set_up);
        for is_hit in [false, false, false, true] {
            let answer = bench.get(URL).await;
            assert_eq!(answer.is_hit(), is_hit);
            assert!(answer.body == long_body(answer.body.len()));
        }
        let detail = "not stored: the response is larger than 100000 bytes";
        assert!(!has_length || !bench.get(URL).await.cache_status().contains(detail));
    }
}

#[tokio::test]
async fn a_body_of_which_a_part_was_evicted_is_fetched_again() {
    let bench = Bench::new(Script::new(|_, _| Ok(response(200, FRESH, long_body(300_000)))));
    bench.get(URL).await;
    let keys: Vec<_> = bench.store.keys().map(|key| key.expect("a key")).collect();
    let chunk = keys.iter().find(|key| key.ends_with(b"/3")).expect("there are four and more");
    assert!(bench.store.delete(chunk).expect("it is deleted"));
    let answer = bench.get(URL).await;
    assert!(!answer.is_hit() && answer.body == long_body(300_000));
    assert!(bench.get(URL).await.is_hit());
}

#[tokio::test]
async fn a_store_that_keeps_nothing_changes_nothing() {
    let origin = Script::new(|_, _| Ok(response(200, FRESH, long_body(3_000_000))));
    let bench = Bench::with(origin, "none:", |builder| builder);
    for _ in 0..2 {
        let answer = bench.get(URL).await;
        assert!(!answer.is_hit() && answer.body == long_body(3_000_000));
    }
    assert_eq!(bench.cache.purge(Purge::url(URL)).await, Ok(false));
    assert_eq!(bench.cache.purge(Purge::prefix(URL)).await, Ok(true));
}

#[tokio::test]
async fn a_body_that_has_ended_stays_so() {
    for length in [6, 200_000] {
        let bench =
            Bench::new(Script::new(move |_, _| Ok(response(200, FRESH, long_body(length)))));
        for _ in 0..2 {
            let mut body = bench.send(Method::GET, URL, &[]).await.expect("a response").into_body();
            while let Some(frame) = body.frame().await {
                frame.expect("a frame");
            }
            assert!(body.frame().await.is_none());
        }
        assert_eq!(bench.origin.requests(), 1);
    }
}

/// A client reads slowly, while the entry is replaced and evicted.
#[tokio::test]
async fn bytes_that_a_client_has_not_read_yet_stay_right() {
    for length in [50_000, 200_000] {
        let origin = Script::new(move |number, _| {
            let mut body = long_body(length).to_vec();
            // Those after the first are of other bytes.
            for byte in &mut body {
                *byte ^= u8::from(number > 0);
            }
            Ok(response(200, FRESH, Bytes::from(body)))
        });
        let bench = Bench::with(origin, "memory:size=4MiB,policy=lru", |builder| builder);
        bench.get(URL).await;
        let response = bench.send(Method::GET, URL, &[]).await.expect("a hit");
        let mut body = response.into_body();
        let first = body.frame().await.expect("a part").expect("no error");
        let first = first.into_data().expect("bytes");
        bench.ask(Method::GET, URL, &[("cache-control", "no-cache")]).await;
        // Three times what there is room for: parts of the store fill unevenly.
        for number in 0..300 {
            bench.get(&format!("{URL}{number}")).await;
        }
        assert!(!bench.get(URL).await.is_hit(), "it was evicted");
        assert!(first == long_body(length)[..first.len()]);
        // What was evicted before it was read is not replaced by other bytes: the origin has others.
        if first.len() < length {
            let error = body.frame().await.expect("no end").expect_err("it breaks off");
            assert!(error.to_string().contains("evicted"), "{error}");
        }
    }
}
