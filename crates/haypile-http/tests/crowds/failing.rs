//! Origins that fail.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::bench::{Bench, FRESH, PAGE, Say, URL, slowest};

const SHORT: &[(&str, &str)] =
    &[("cache-control", "max-age=1, stale-if-error=600"), ("etag", "\"a\"")];
/// The longest time that the origin is waited for.
const LIMIT: Duration = Duration::from_secs(3);

/// Returns a cache with a response that is stale, behind an origin that fails from then on.
async fn stale(fail: fn() -> Say) -> Bench {
    let bench = Bench::new(move |number, _| match number {
        0 => Say::page(SHORT),
        _ => fail(),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    bench
}

#[tokio::test(start_paused = true)]
async fn a_stale_response_and_a_503_are_one_request() {
    let bench = stale(|| Say::after(PAGE, 503, &[])).await;
    let answers = bench.crowd(50, &[]).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!((slowest(&answers), bench.requests() - 1), (PAGE, 1));
    let answers = bench.crowd(50, &[]).await;
    assert_eq!((slowest(&answers), bench.requests() - 1), (Duration::ZERO, 1));
}

#[tokio::test(start_paused = true)]
async fn a_stale_response_is_served_at_once_while_the_origin_is_tried() {
    let bench = stale(|| Say::Fail(LIMIT)).await;
    bench.get(&[]).await;
    // A minute of visits, of which none waits.
    let answers = bench.stream(600, Duration::from_millis(100), &[]).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(slowest(&answers), Duration::ZERO);
    // It is tried after 1, 2, 4 and then each 8 seconds, and takes 3 to fail.
    assert!((6..=10).contains(&bench.requests()), "{}", bench.requests());
    assert!(answers[599].cache_status().contains("the origin fails"), "{:?}", answers[599]);
}

#[tokio::test(start_paused = true)]
async fn at_most_one_client_waits_for_an_origin_that_hangs() {
    let bench = stale(|| Say::Fail(LIMIT)).await;
    let answers = bench.crowd(20, &[]).await;
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    times.sort_unstable();
    // The page had taken half a second: the others wait for twice that.
    assert_eq!(times[18], Duration::from_secs(1));
    assert_eq!((times[19], bench.requests() - 1), (LIMIT, 1));
    let answers = bench.crowd(20, &[]).await;
    assert_eq!(slowest(&answers), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_origin_that_is_well_again_is_found_within_seconds() {
    let bench = Bench::new(|number, _| match number {
        1..5 => Say::after(PAGE, 503, &[]),
        _ => Say::page(SHORT).body(number.to_string()),
    });
    bench.get(&[]).await;
    let answers = bench.stream(400, Duration::from_millis(100), &[]).await;
    let last = &answers[399];
    assert!(last.body != "0" && bench.requests() > 5, "{last:?}");
    assert!(last.cache_status().contains("hit") || last.cache_status().contains("fwd-status=200"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_ends_is_not_repeated_by_a_crowd_at_once() {
    let bench = Bench::new(|number, _| if number < 2 { Say::Hang } else { Say::page(FRESH) });
    let (hung, crowd) = (bench.crowd(1, &[]), bench.crowd(40, &[]));
    let crowd = async { tokio::time::timeout(Duration::from_secs(20), crowd).await };
    // The first one hangs, then the second, and the third brings it.
    tokio::select! {
        biased;
        _ = hung => unreachable!("it hangs"),
        _ = crowd => {}
    }
    assert!(bench.get(&[]).await.is_hit());
}

#[tokio::test(start_paused = true)]
async fn a_cold_crowd_asks_an_origin_that_fails_two_at_a_time() {
    for fail in [|| Say::after(PAGE, 503, &[]), || Say::Fail(PAGE)] {
        let bench = Bench::new(move |_, _| fail());
        let asked = join_all((0..50).map(|_| bench.ask(URL, &[]))).await;
        let is_failure = |answer: &Result<super::bench::Answer, _>| {
            answer.as_ref().map_or(true, |answer| answer.status == 503)
        };
        assert!(asked.iter().all(is_failure));
        assert!(bench.most_at_once() <= 2, "{}", bench.most_at_once());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cold_crowd_finds_out_once_that_nobody_answers() {
    let bench = Bench::new(|_, _| Say::Fail(LIMIT));
    let crowd = join_all((0..50).map(async |_| {
        let begun = Instant::now();
        let error = bench.ask(URL, &[]).await.expect_err("nobody answers");
        (error.to_string(), begun.elapsed())
    }));
    // Who comes when that is known asks too: two are asked for at a time.
    let late = async {
        sleep(LIMIT + LIMIT / 2).await;
        let begun = Instant::now();
        assert!(bench.ask(URL, &[]).await.is_err());
        begun.elapsed()
    };
    let (crowd, late) = tokio::join!(crowd, late);
    assert_eq!((crowd[0].0.as_str(), crowd[0].1), ("no connection", LIMIT));
    assert!(crowd[1..].iter().all(|(_, took)| *took == LIMIT * 2), "{crowd:?}");
    let told = crowd.iter().filter(|(error, _)| error.contains("to the last: no connection"));
    assert_eq!((told.count(), late), (48, LIMIT));
    assert_eq!(bench.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_gets_the_page_from_an_origin_that_answers_after_a_silence() {
    let bench = Bench::new(|number, _| match number {
        0 => Say::Fail(LIMIT),
        _ => Say::page(FRESH),
    });
    let asked = join_all((0..50).map(|_| bench.ask(URL, &[]))).await;
    assert_eq!(asked.iter().filter(|answer| answer.is_ok()).count(), 49);
    assert_eq!(bench.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_gets_the_page_as_soon_as_the_origin_is_well() {
    let bench = Bench::new(|number, _| match number {
        0..3 => Say::after(PAGE, 503, &[]),
        _ => Say::page(FRESH),
    });
    let answers = bench.crowd(50, &[]).await;
    let well = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((well, slowest(&answers)), (47, PAGE * 3));
    assert!(bench.requests() <= 5, "{}", bench.requests());
}

#[tokio::test(start_paused = true)]
async fn reloads_ask_an_origin_that_failed() {
    let bench = stale(|| Say::after(PAGE, 503, &[])).await;
    bench.get(&[]).await;
    let answer = bench.get(&[("cache-control", "no-cache")]).await;
    // It tries, and gets the stale one then.
    assert_eq!((answer.status, answer.took), (200, PAGE));
}

#[tokio::test(start_paused = true)]
async fn a_response_that_must_not_be_stale_is_not_served_so() {
    let strict = &[("cache-control", "max-age=1, must-revalidate"), ("etag", "\"a\"")][..];
    let bench = Bench::new(move |number, _| match number {
        0 => Say::page(strict),
        _ => Say::after(PAGE, 503, &[]),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    for _ in 0..3 {
        assert_eq!(bench.get(&[]).await.status, 503);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_s_stale_time_hides_a_slow_origin() {
    let rules = haypile_http::semantics::Rules {
        serve_stale: Some(Duration::from_mins(1)),
        ..haypile_http::semantics::Rules::shared()
    };
    let bench = Bench::with(
        |number, _| {
            let takes = if number == 0 { PAGE } else { Duration::from_secs(4) };
            Say::after(takes, 200, &[("cache-control", "max-age=10")]).body(number.to_string())
        },
        |builder| builder.rules(rules),
    );
    bench.get(&[]).await;
    let answers = bench.stream(180, Duration::from_millis(100), &[]).await;
    assert_eq!(slowest(&answers), Duration::ZERO);
    // One refreshes it, for all.
    assert_eq!((bench.requests(), &answers[179].body[..]), (2, &b"1"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_long_ago_hides_no_origin_that_is_well() {
    let bench = Bench::new(move |number, _| match number {
        0 => Say::page(SHORT),
        1 => Say::after(PAGE, 503, &[]),
        _ => Say::page(SHORT).body("well"),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.get(&[]).await.body, "body");
    sleep(Duration::from_mins(4)).await;
    assert_eq!(bench.get(&[]).await.body, "well");
}
