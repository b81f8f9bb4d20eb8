//! Pages that are gone, or for one client alone, while a stale response is stored.

use std::time::Duration;

use haypile_http::semantics::Rules;
use tokio::time::sleep;

use super::bench::{Answer, Bench, Fields, PAGE, Say};

const SHORT: Fields<'_> = &[("cache-control", "max-age=1"), ("etag", "\"a\"")];

const MEMBER: Fields<'_> = &[("cookie", "a=b")];

/// Returns a cache with a stale response and a grace of an hour, behind an origin that answers so from then on.
async fn stale(status: u16, fields: Fields<'static>) -> Bench {
    let rules = Rules { serve_stale: Some(Duration::from_hours(1)), ..Rules::shared() };
    let answer = move |number, _: &_| match number {
        0 => Say::page(SHORT).body("old"),
        _ => Say::after(PAGE, status, fields).body("new"),
    };
    let bench = Bench::with(answer, |builder| builder.rules(rules));
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    bench
}

fn old(answers: &[Answer]) -> usize {
    answers.iter().filter(|answer| answer.body == "old").count()
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_gone_is_served_until_the_origin_has_said_so() {
    for (status, fields) in [
        (404, &[][..]),
        (410, &[]),
        (403, &[]),
        (302, &[("location", "/login")]),
        (200, &[("cache-control", "private")]),
        (200, &[("cache-control", "no-store")]),
        (200, &[("cache-control", "max-age=60"), ("set-cookie", "a=b")]),
        (200, &[]),
    ] {
        // What is for one user alone says nothing of others.
        let is_of_user = [("cache-control", "private"), ("set-cookie", "a=b")]
            .iter()
            .any(|field| fields.contains(field));
        for asked in [&[][..], MEMBER].into_iter().take(if is_of_user { 1 } else { 2 }) {
            let bench = stale(status, fields).await;
            let answers = bench.stream(30, PAGE / 5, asked).await;
            // Those who come within the half second that the origin takes.
            assert!(old(&answers) <= 6, "{status} {fields:?}: {}", old(&answers));
            let is_new = |answer: &Answer| answer.body == "new" && answer.status == status;
            assert!(answers[6..].iter().all(is_new));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_come_back_when_the_origin_fails() {
    let bench = Bench::new(|number, _| match number {
        0 => Say::page(SHORT).body("old"),
        1 => Say::after(PAGE, 404, &[]),
        _ => Say::after(PAGE, 503, &[]),
    });
    bench.get(&[]).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.get(&[]).await.status, 404);
    assert_eq!(bench.get(&[]).await.status, 503);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_about_its_request_leaves_the_page() {
    for (status, fields, asked) in [
        // Too many requests, too early, and errors that are not the page's.
        (429, &[][..], &[][..]),
        (425, &[], &[]),
        (400, &[], &[]),
        (501, &[("cache-control", "no-store")], &[]),
        // For one user alone.
        (200, &[("cache-control", "private")], MEMBER),
        (200, &[("cache-control", "max-age=60"), ("set-cookie", "a=b")], MEMBER),
        (200, &[("cache-control", "max-age=60")], &[("authorization", "Bearer 1")]),
    ] {
        let bench = stale(status, fields).await;
        let answers = bench.stream(30, PAGE / 5, asked).await;
        assert_eq!(old(&answers), 30, "{status} {fields:?} {asked:?}");
    }
}
