//! Requests that take too long delay no others.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::bench::{Bench, FRESH, PAGE, Say, slowest};

const SLOW: Duration = Duration::from_mins(1);

/// Returns an answer that takes a minute for requests that say so.
fn slow_for_one(
    request: &http::Request<haypile_http::Body>,
    fields: super::bench::Fields<'_>,
) -> Say {
    let takes = if request.headers().contains_key("x-slow") { SLOW } else { PAGE };
    Say::after(takes, 200, fields)
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stuck_delays_others_by_seconds() {
    let bench = Bench::new(|_, request| slow_for_one(request, FRESH));
    let stuck = bench.get(&[("x-slow", "1")]);
    let others = async {
        sleep(Duration::from_millis(1)).await;
        bench.crowd(20, &[]).await
    };
    let (_, answers) = tokio::join!(stuck, others);
    // Nothing is known of the page: five seconds, and its own time.
    assert_eq!(slowest(&answers), Duration::from_secs(5) + PAGE);
    // The first of them takes the place of the one that is stuck.
    assert_eq!(bench.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn it_delays_them_by_twice_the_usual_time_where_that_is_known() {
    let short = &[("cache-control", "max-age=5, must-revalidate")][..];
    for (takes, delay) in [(100, 1_000), (800, 1_600), (3_000, 5_000)] {
        let takes = Duration::from_millis(takes);
        let bench = Bench::new(move |_, request| {
            if request.headers().contains_key("x-slow") {
                Say::after(SLOW, 200, short)
            } else {
                Say::after(takes, 200, short)
            }
        });
        bench.get(&[]).await;
        sleep(Duration::from_secs(10)).await;
        let stuck = bench.get(&[("x-slow", "1")]);
        let others = async {
            sleep(Duration::from_millis(1)).await;
            bench.crowd(20, &[]).await
        };
        let (_, answers) = tokio::join!(stuck, others);
        assert_eq!(slowest(&answers), Duration::from_millis(delay) + takes);
        assert_eq!(bench.requests(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_always_takes_long_is_asked_for_by_few() {
    let takes = Duration::from_secs(8);
    let bench = Bench::new(move |_, _| Say::after(takes, 200, FRESH));
    let answers = bench.crowd(50, &[]).await;
    let mut times: Vec<Duration> = answers.iter().map(|answer| answer.took).collect();
    times.sort_unstable();
    // One tries whether the first is stuck, and has its own response then.
    assert_eq!(times[48..], [takes, takes + Duration::from_secs(5)]);
    assert_eq!(bench.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_that_are_stuck_delay_others_by_ten_seconds() {
    let bench = Bench::new(|_, request| slow_for_one(request, FRESH));
    let stuck = async |after: u64| {
        sleep(Duration::from_millis(after)).await;
        bench.get(&[("x-slow", "1")]).await
    };
    let other = async {
        sleep(Duration::from_millis(2)).await;
        bench.get(&[]).await
    };
    let (_, answer) = tokio::join!(join_all([0, 1].map(|after| Box::pin(stuck(after)))), other);
    assert!(answer.took <= Duration::from_secs(10) + PAGE, "{answer:?}");
}
