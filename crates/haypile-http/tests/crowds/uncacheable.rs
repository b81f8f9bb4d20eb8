//! Pages of which each client gets its own.

use std::time::Duration;

use futures_util::future::join_all;
use haypile_http::Collapse;
use haypile_http::semantics::Rules;
use tokio::time::sleep;

use super::bench::{Bench, FRESH, PAGE, PRIVATE, Say, slowest};
use super::unstored::{self, DAY, KINDS, lost};

#[tokio::test(start_paused = true)]
async fn a_page_that_is_known_to_be_for_one_client_costs_its_own_time() {
    for fields in [PRIVATE, &[("cache-control", "no-store")], &[("set-cookie", "a=b")]] {
        let bench = Bench::new(move |_, _| Say::page(fields));
        bench.get(&[]).await;
        for _ in 0..20 {
            let answers = bench.stream(10, PAGE / 5, &[]).await;
            let waited = answers.iter().filter(|answer| answer.took > PAGE).count();
            // Once each time that the memory of it is over, one waits for the next.
            assert!(waited <= 4, "{fields:?}: {waited}");
        }
        assert_eq!(bench.requests(), 201);
        let answers = bench.crowd(50, &[]).await;
        assert_eq!(slowest(&answers), PAGE, "{fields:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_each_client_has_validated_costs_its_own_time() {
    for fields in [
        &[("cache-control", "no-cache"), ("etag", "\"a\"")][..],
        &[("cache-control", "public, max-age=0, must-revalidate"), ("etag", "\"a\"")],
        // Another cache has had it for longer.
        &[("cache-control", "max-age=60"), ("age", "100"), ("etag", "\"a\"")],
    ] {
        let bench = Bench::new(move |_, request| {
            let is_same = request.headers().contains_key("if-none-match");
            if is_same { Say::after(PAGE, 304, fields).body("") } else { Say::page(fields) }
        });
        bench.get(&[]).await;
        for asked in [&[][..], &[("cache-control", "no-cache")]] {
            let answers = bench.crowd(20, asked).await;
            assert_eq!(slowest(&answers), PAGE, "{fields:?} {asked:?}");
            assert!(answers.iter().all(|answer| answer.body == "body"));
        }
        let answers = bench.stream(20, PAGE / 5, &[]).await;
        assert_eq!((slowest(&answers), bench.requests()), (PAGE, 61), "{fields:?}");
    }
    // A client that wants more than the page gives gets it from the origin as well.
    let bench = Bench::new(|_, _| Say::page(FRESH));
    bench.get(&[]).await;
    let answers = bench.crowd(20, &[("cache-control", "min-fresh=100")]).await;
    assert_eq!(slowest(&answers), PAGE);
}

#[tokio::test(start_paused = true)]
async fn members_of_an_old_application_wait_for_no_other() {
    let member = &[("cookie", "a=b")][..];
    let bench = Bench::new(|_, _| Say::page(&[]));
    bench.get(member).await;
    for _ in 0..20 {
        let answers = bench.stream(10, PAGE / 5, member).await;
        let waited = answers.iter().filter(|answer| answer.took > PAGE).count();
        assert!(waited <= 4, "{waited}");
    }
    assert_eq!(bench.requests(), 201);
}

#[tokio::test(start_paused = true)]
async fn members_of_an_old_application_hold_no_visitor_up() {
    let member = &[("cookie", "a=b")][..];
    let rules = Rules { default_lifetime: Some(Duration::from_secs(10)), ..Rules::shared() };
    let bench = Bench::with(|_, _| Say::page(&[]), |builder| builder.rules(rules));
    for _ in 0..3 {
        let before = bench.requests();
        // A member comes first, and a crowd of visitors with it: one of them brings the page.
        let (member, visitors) = tokio::join!(bench.get(member), bench.crowd(40, &[]));
        assert_eq!((member.took, bench.requests() - before), (PAGE, 2));
        assert!(slowest(&visitors) <= PAGE * 2);
        sleep(Duration::from_secs(20)).await;
    }
    // The stored page is for visitors alone.
    bench.get(&[]).await;
    let answers = bench.crowd(20, member).await;
    assert_eq!(slowest(&answers), PAGE);
    assert!(bench.get(&[]).await.is_hit());
}

#[tokio::test(start_paused = true)]
async fn a_cold_crowd_waits_once_for_a_page_that_is_for_one_client() {
    let bench = Bench::new(|_, _| Say::page(PRIVATE));
    let answers = bench.crowd(50, &[]).await;
    assert_eq!((slowest(&answers), bench.requests()), (PAGE * 2, 50));
}

#[tokio::test(start_paused = true)]
async fn other_processes_know_it_from_the_store() {
    let bench = Bench::new(|_, _| Say::page(PRIVATE));
    bench.get(&[]).await;
    let answers = bench.another().crowd(20, &[]).await;
    assert_eq!(slowest(&answers), PAGE);
}

/// The time that a long poll takes.
const POLL: Duration = Duration::from_secs(20);

/// Returns a bench whose origin answers each request but the first after [`POLL`], and whose cache knows that.
async fn polled() -> Bench {
    let bench = Bench::new(move |number, _| match number {
        0 => Say::page(&[("cache-control", "no-store")]),
        _ => Say::after(POLL, 200, &[("cache-control", "no-store")]),
    });
    bench.get(&[]).await;
    bench
}

#[tokio::test(start_paused = true)]
async fn each_of_several_long_polls_is_at_the_origin() {
    let bench = polled().await;
    let answers = bench.crowd(3, &[]).await;
    assert_eq!((slowest(&answers), bench.most_at_once()), (POLL, 3));
    // Each poll that ends says again that the next ones do not wait.
    let answers = bench.crowd(3, &[]).await;
    assert_eq!(slowest(&answers), POLL);
}

#[tokio::test(start_paused = true)]
async fn a_poll_ends_at_the_origin_when_its_client_has_left() {
    let bench = polled().await;
    let short = tokio::time::timeout(PAGE / 5, bench.crowd(10, &[]));
    assert!(short.await.is_err());
    sleep(Duration::from_millis(1)).await;
    assert_eq!((bench.most_at_once(), bench.at_the_origin()), (10, 0));
    // What is for all comes, and is stored, although the one who asked has left.
    let bench = Bench::new(|_, _| Say::page(DAY));
    assert!(tokio::time::timeout(PAGE / 5, bench.get(&[])).await.is_err());
    sleep(PAGE).await;
    assert!(bench.get(&[]).await.is_hit());
}

#[tokio::test(start_paused = true)]
async fn long_polls_of_a_new_url_wait_for_seconds_at_most() {
    let poll = Duration::from_mins(1);
    let bench = Bench::new(move |_, _| Say::after(poll, 200, &[("cache-control", "no-store")]));
    let crowd = bench.crowd(3, &[]);
    let all_are_there = async {
        sleep(Duration::from_millis(10_001)).await;
        bench.requests()
    };
    let (answers, requests) = tokio::join!(crowd, all_are_there);
    assert_eq!(requests, 3);
    assert_eq!(slowest(&answers), poll + Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn requests_with_credentials_wait_for_none_unless_their_response_is_for_all() {
    let secret = &[("authorization", "Bearer 1")][..];
    let bench = Bench::new(|_, _| Say::page(FRESH));
    let answers = bench.crowd(20, secret).await;
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 20));
    // Nobody else waits for theirs either.
    let (_, answer) = tokio::join!(bench.get(secret), bench.get(&[]));
    assert_eq!(answer.took, PAGE);

    let shared = &[("cache-control", "public, max-age=1")][..];
    let bench = Bench::new(move |_, _| Say::page(shared));
    bench.get(secret).await;
    sleep(Duration::from_secs(2)).await;
    let answers = bench.crowd(20, secret).await;
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 2));
}

#[tokio::test(start_paused = true)]
async fn requests_with_cookies_wait_unless_told_otherwise() {
    let cookie = &[("cookie", "a=b")][..];
    for (collapse, asked, requests) in [
        (Collapse::All, cookie, 1),
        (Collapse::WithoutCookie, cookie, 20),
        (Collapse::WithoutCookie, &[], 1),
        (Collapse::Off, cookie, 20),
        (Collapse::Off, &[], 20),
    ] {
        let bench = Bench::with(|_, _| Say::page(FRESH), |builder| builder.collapse(collapse));
        let answers = bench.crowd(20, asked).await;
        assert_eq!((slowest(&answers), bench.requests()), (PAGE, requests), "{collapse:?}");
        assert!(bench.get(&[]).await.is_hit());
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_becomes_public_is_stored_and_waited_for() {
    let bench = Bench::new(|number, request| match number {
        0..3 => Say::page(PRIVATE),
        _ if request.headers().contains_key("cookie") => Say::page(PRIVATE),
        _ => Say::page(&[("cache-control", "max-age=3"), ("vary", "cookie")]),
    });
    for _ in 0..4 {
        bench.get(&[]).await;
    }
    assert!(bench.get(&[]).await.is_hit());
    sleep(Duration::from_secs(4)).await;
    let before = bench.requests();
    bench.crowd(20, &[]).await;
    assert_eq!(bench.requests(), before + 1);
    // Those for whom it is private go on to get their own, and leave what is public.
    let member = bench.get(&[("cookie", "a=b")]).await;
    assert_eq!((member.took, member.is_hit()), (PAGE, false));
    assert!(bench.get(&[]).await.is_hit());
}

#[tokio::test(start_paused = true)]
async fn what_a_page_came_to_is_written_rarely() {
    let bench = Bench::new(|_, _| Say::after(Duration::from_millis(100), 200, PRIVATE));
    let writes = || bench.store.stats().expect("it counts").sets;
    bench.get(&[]).await;
    let before = writes();
    for _ in 0..6_000 {
        bench.get(&[]).await;
    }
    // Ten minutes: it counts for 1, 2, 4 … 64 seconds, then for 120, and is renewed at half of that.
    assert!(writes() - before < 25, "{}", writes() - before);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_of_many_targets_takes_no_room_from_pages() {
    let bench = unstored::bench("memory:size=2MiB");
    lost(&bench).await;
    // The pages take most of the store.
    let (pages, entries) = (lost(&bench).await, bench.store.stats().expect("it counts").entries);
    assert_eq!(pages, 0);
    for kind in KINDS {
        for crowd in 0..50 {
            unstored::ask(&bench, kind, &crowd.to_string(), 100).await;
        }
    }
    let pages = lost(&bench).await;
    assert!(pages <= 10, "{pages} pages were evicted");
    let known = bench.store.stats().expect("it counts").entries.saturating_sub(entries);
    assert!((1..=150).contains(&known), "{known}");
}

#[tokio::test(start_paused = true)]
async fn many_pages_at_once_are_stored_however_little_a_store_keeps_of_others() {
    let bench = Bench::on("memory:size=2MiB", |_, _| Say::page(DAY), |builder| builder);
    let url = |number: usize| format!("http://example.org/{number}");
    for _ in 0..2 {
        join_all((0..1_000).map(async |number| bench.ask(&url(number), &[]).await)).await;
    }
    assert_eq!(bench.requests(), 1_000);
}
