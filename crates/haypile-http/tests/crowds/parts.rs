//! Crowds that ask for the head, or for the middle, of a page that is stored and stale.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::bench::{Answer, Bench, Fields, PAGE, Say, slowest};

const FILM: Fields<'_> = &[("cache-control", "max-age=1, stale-if-error=600"), ("etag", "\"a\"")];
const MIDDLE: Fields<'_> = &[("range", "bytes=1-2")];
/// The longest time that the origin is waited for.
const LIMIT: Duration = Duration::from_secs(3);

/// Returns a cache with a stale response, behind an origin that answers so from then on.
async fn stale(
    say: impl Fn(&http::Request<haypile_http::Body>) -> Say + Send + Sync + 'static,
) -> Bench {
    let bench = Bench::new(move |number, request| match number {
        0 => Say::page(FILM),
        _ => say(request),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    bench
}

/// Says that the page is the same still, as an origin does that has validators and ranges.
fn same(request: &http::Request<haypile_http::Body>) -> Say {
    let headers = request.headers();
    if request.method() == http::Method::HEAD {
        return Say::page(FILM).body("");
    }
    if headers.contains_key("if-none-match") {
        return Say::after(PAGE, 304, FILM).body("");
    }
    if headers.contains_key("range") {
        let fields = [FILM, &[("content-range", "bytes 1-2/4")]].concat();
        return Say::after(PAGE, 206, &fields).body("od");
    }
    Say::page(FILM)
}

async fn heads(bench: &Bench, number: usize) -> Vec<Answer> {
    let heads = join_all((0..number).map(|_| bench.head(&[]))).await;
    heads.into_iter().map(|answer| answer.expect("a response")).collect()
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_for_the_middle_are_one_request_once_it_is_stale() {
    let bench = stale(same).await;
    let answers = bench.crowd(50, MIDDLE).await;
    assert!(answers.iter().all(|answer| (answer.status, &answer.body[..]) == (206, b"od")));
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 2));
    // Also next to those who ask for all of it, whoever comes first.
    for is_part_first in [true, false] {
        sleep(Duration::from_secs(2)).await;
        let before = bench.requests();
        let (first, second) = if is_part_first { (MIDDLE, &[][..]) } else { (&[][..], MIDDLE) };
        let (first, second) = tokio::join!(bench.crowd(20, first), bench.crowd(20, second));
        assert!(first.iter().chain(&second).all(|answer| answer.took == PAGE));
        assert_eq!(bench.requests() - before, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_version_is_one_request_for_all() {
    let new: Fields<'_> = &[("cache-control", "max-age=60"), ("etag", "\"b\"")];
    for is_part_first in [true, false] {
        let bench = stale(move |request| {
            // A stale page is validated as a whole.
            assert!(!request.headers().contains_key("range"));
            Say::page(new).body("new!")
        })
        .await;
        let part = async {
            sleep(Duration::from_millis(u64::from(!is_part_first))).await;
            bench.crowd(20, MIDDLE).await
        };
        let whole = async {
            sleep(Duration::from_millis(u64::from(is_part_first))).await;
            bench.crowd(20, &[]).await
        };
        let (parts, pages) = tokio::join!(part, whole);
        for (answers, expected) in [(parts, (206, &b"ew"[..])), (pages, (200, &b"new!"[..]))] {
            for answer in answers {
                assert_eq!((answer.status, &answer.body[..]), expected);
                assert!(answer.took <= PAGE);
            }
        }
        assert_eq!(bench.requests(), 2);
        assert_eq!(bench.get(MIDDLE).await.body, "ew");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_new_version_gets_what_it_asked_for() {
    let new: Vec<u8> = (0_u32..700_000).flat_map(u32::to_be_bytes).collect();
    for control in ["max-age=60", "no-store"] {
        let (body, fields) = (new.clone(), [("cache-control", control), ("etag", "\"b\"")]);
        for (asked, status, range) in [
            (("range", "bytes=70000-2000000"), 206, 70_000..2_000_001),
            (("range", "bytes=1048576-1048577"), 206, 1 << 20..(1 << 20) + 2),
            (("range", "bytes=0-"), 206, 0..new.len()),
            (("range", "bytes=2800000-"), 416, 0..0),
            (("range", "bytes=0-1,5-6"), 200, 0..new.len()),
            (("if-none-match", "\"b\""), 304, 0..0),
            (("if-none-match", "\"a\""), 200, 0..new.len()),
        ] {
            let body = body.clone();
            let bench = stale(move |_| Say::slowly(200, &fields, body.clone())).await;
            let answer = bench.get(&[asked]).await;
            assert_eq!(answer.status, status, "{asked:?} {control}");
            assert!(answer.body == new[range.clone()], "{asked:?} {control}");
            if [206, 416].contains(&status) {
                assert_eq!(answer.field("content-length"), range.len().to_string(), "{asked:?}");
            }
            if status == 206 {
                let all = new.len();
                let text = format!("bytes {}-{}/{all}", range.start, range.end - 1);
                assert_eq!(answer.field("content-range"), text);
            }
            // Whoever has a part of the old version gets all of the new one.
            if asked.0 == "range" {
                sleep(Duration::from_secs(100)).await;
                assert_eq!(bench.get(&[asked, ("if-range", "\"a\"")]).await.status, 200);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_who_asks_for_all_waits_for_a_part_that_comes_unasked() {
    let part = vec![7; 60 << 16];
    let length = part.len();
    let bench = Bench::new(move |number, _| match number {
        1 => {
            let range = format!("bytes 1-{length}/{}", length + 2);
            let fields =
                [("cache-control", "max-age=60"), ("etag", "\"b\""), ("content-range", &range)];
            Say::slowly(206, &fields, part.clone())
        }
        _ => Say::page(FILM),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    let pages = async {
        sleep(Duration::from_millis(1)).await;
        bench.crowd(20, &[]).await
    };
    let (part, pages) = tokio::join!(bench.get(MIDDLE), pages);
    assert_eq!((part.status, part.body.len()), (206, length));
    assert!(part.took > PAGE * 2, "{:?}", part.took);
    assert!(pages.iter().all(|answer| answer.body == "body" && answer.took <= PAGE * 2));
    assert_eq!(bench.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn those_who_ask_for_the_head_are_one_request_once_it_is_stale() {
    let bench = stale(same).await;
    let answers = heads(&bench, 50).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body.is_empty()));
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 2));
    // They keep nobody from the page, whoever comes first.
    for is_head_first in [true, false] {
        sleep(Duration::from_secs(2)).await;
        let before = bench.requests();
        let pages = async {
            let delay = if is_head_first { Duration::from_millis(1) } else { Duration::ZERO };
            sleep(delay).await;
            bench.crowd(20, &[]).await
        };
        let (pages, heads) = tokio::join!(pages, heads(&bench, 20));
        assert!(pages.iter().all(|answer| answer.body == "body" && answer.took <= PAGE));
        assert!(heads.iter().all(|answer| answer.status == 200));
        assert_eq!(bench.requests() - before, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_of_a_new_version_is_no_page() {
    let new: Fields<'_> = &[("cache-control", "max-age=60"), ("etag", "\"b\"")];
    let bench = stale(move |_| Say::page(new).body("new!")).await;
    let pages = async {
        sleep(Duration::from_millis(1)).await;
        bench.crowd(20, &[]).await
    };
    let (heads, pages) = tokio::join!(heads(&bench, 1), pages);
    assert_eq!(heads[0].field("etag"), "\"b\"");
    assert!(pages.iter().all(|answer| answer.body == "new!" && answer.took <= PAGE * 2));
    assert_eq!(bench.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn at_most_one_of_them_waits_for_an_origin_that_hangs() {
    for is_head in [true, false] {
        let bench = stale(|_| Say::Fail(LIMIT)).await;
        let crowd = async || {
            if is_head { heads(&bench, 20).await } else { bench.crowd(20, MIDDLE).await }
        };
        let mut times: Vec<Duration> = crowd().await.iter().map(|answer| answer.took).collect();
        times.sort_unstable();
        assert_eq!(times[18..], [Duration::from_secs(1), LIMIT], "{is_head}");
        assert_eq!(bench.requests(), 2);
        // The failure is known, and the origin is tried in the background.
        let answers = crowd().await;
        assert_eq!(slowest(&answers), Duration::ZERO, "{is_head}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_far_from_the_begin_of_a_new_version_is_not_waited_for() {
    const FAR: Fields<'_> = &[("range", "bytes=-5")];
    let new: Vec<u8> = (0_u32..700_000).flat_map(u32::to_be_bytes).collect();
    let end = new[new.len() - 5..].to_vec();
    for (control, units, requests) in [
        // One asks for the page, and each for its part.
        ("max-age=60", "bytes", 1 + 3),
        // A page for nobody else is asked for by each.
        ("no-store", "bytes", 3 + 3),
        // An origin that has no parts is asked for none.
        ("max-age=60", "none", 1),
    ] {
        let (body, last) = (new.clone(), end.clone());
        let fields = [("cache-control", control), ("etag", "\"b\""), ("accept-ranges", units)];
        let length = body.len();
        let bench = stale(move |request| {
            if !request.headers().contains_key("range") {
                return Say::slowly(200, &fields, body.clone());
            }
            let range = format!("bytes {}-{}/{length}", length - 5, length - 1);
            let fields = [&fields[..], &[("content-range", &range)]].concat();
            Say::after(PAGE, 206, &fields).body(last.clone())
        })
        .await;
        for answer in bench.crowd(3, FAR).await {
            assert_eq!((answer.status, &answer.body[..]), (206, &end[..]), "{control} {units}");
            assert!(answer.took <= PAGE * 3, "{control} {units}: {:?}", answer.took);
        }
        sleep(Duration::from_secs(10)).await;
        assert_eq!(bench.requests() - 1, requests, "{control} {units}");
        assert_eq!(bench.get(FAR).await.is_hit(), control != "no-store");
    }
}
