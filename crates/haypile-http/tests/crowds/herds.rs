//! Crowds that ask for the same in several ways.

use std::time::Duration;

use futures_util::future::join_all;
use haypile_http::ClientNoCache;
use tokio::time::sleep;

use super::bench::{Bench, FRESH, PAGE, PRIVATE, Say, slowest};

const VARIED: &[(&str, &str)] = &[("cache-control", "max-age=60"), ("vary", "accept-language")];
const TAGGED: &[(&str, &str)] = &[("cache-control", "max-age=60"), ("etag", "\"a\"")];
const RELOAD: &[(&str, &str)] = &[("cache-control", "no-cache")];

fn language(request: &http::Request<haypile_http::Body>) -> String {
    request.headers()["accept-language"].to_str().expect("text").to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_crowd_for_a_second_variant_is_one_request() {
    for is_first_stored in [true, false] {
        let bench = Bench::new(|_, request| Say::page(VARIED).body(language(request)));
        let german = async { bench.get(&[("accept-language", "de")]).await };
        if is_first_stored {
            german.await;
            let answers = bench.crowd(40, &[("accept-language", "en")]).await;
            assert_eq!(slowest(&answers), PAGE);
            assert!(answers.iter().all(|answer| answer.body == "en"));
        } else {
            let english = bench.crowd(40, &[("accept-language", "en")]);
            let (german, answers) = tokio::join!(german, english);
            assert_eq!(german.body, "de");
            assert_eq!(slowest(&answers), PAGE * 2);
            assert!(answers.iter().all(|answer| answer.body == "en"));
        }
        assert_eq!(bench.requests(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn crowds_for_several_variants_do_not_wait_for_each_other() {
    let bench = Bench::new(|_, request| Say::page(VARIED).body(language(request)));
    bench.get(&[("accept-language", "x")]).await;
    let ask = async |number: usize| {
        let language = format!("l{}", number % 7);
        let answer = bench.get(&[("accept-language", &language)]).await;
        assert_eq!(answer.body, language);
        answer
    };
    let answers = join_all((0..70).map(ask)).await;
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 8));
}

#[tokio::test(start_paused = true)]
async fn players_from_the_first_byte_are_one_fetch() {
    let film = vec![7_u8; 3 << 20];
    let sent = film.clone();
    let bench = Bench::new(move |_, request| {
        assert!(!request.headers().contains_key("range"));
        Say::page(TAGGED).body(sent.clone())
    });
    for _ in 0..2 {
        let answers = bench.crowd(30, &[("range", "bytes=0-")]).await;
        for answer in answers {
            assert_eq!(
                (answer.status, answer.body.len()),
                (206, film.len()),
                "{:?}",
                answer.headers
            );
            assert_eq!(answer.field("content-range"), "bytes 0-3145727/3145728");
        }
    }
    assert_eq!(bench.requests(), 1);
    // Whoever asks for all of it, or for another part, gets that.
    assert_eq!(bench.get(&[]).await.status, 200);
    let part = bench.get(&[("range", "bytes=5-9")]).await;
    assert_eq!((part.status, part.body.len(), bench.requests()), (206, 5, 1));
}

#[tokio::test(start_paused = true)]
async fn a_player_gets_an_error_and_an_empty_file_as_they_are() {
    for (sent, body, statuses) in [(404, "none", [404, 404]), (200, "", [200, 416])] {
        let bench = Bench::new(move |_, _| Say::after(PAGE, sent, FRESH).body(body));
        for status in statuses {
            let answer = bench.get(&[("range", "bytes=0-")]).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        assert_eq!(bench.requests(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_is_asked_for_as_the_client_did() {
    let bench = Bench::with(
        |_, request| {
            let headers = request.headers();
            if headers.contains_key("range") {
                return Say::after(PAGE, 206, &[("content-range", "bytes 0-3/4")]);
            }
            if headers.contains_key("if-none-match") {
                return Say::after(PAGE, 304, &[("etag", "\"a\"")]).body("");
            }
            Say::page(&[("cache-control", "max-age=60"), ("etag", "\"a\"")])
        },
        |builder| builder.largest_body(3),
    );
    // The first finds out, and gets what it asked for all the same.
    let first = bench.get(&[("if-none-match", "\"a\"")]).await;
    assert_eq!((first.status, first.body.len()), (304, 0));
    assert!(first.cache_status().contains("fwd-status=200"), "{first:?}");
    let second = bench.get(&[("if-none-match", "\"a\"")]).await;
    assert!(second.cache_status().contains("fwd-status=304"), "{second:?}");
    let player = bench.get(&[("range", "bytes=0-")]).await;
    assert!(player.cache_status().contains("fwd-status=206"), "{player:?}");
}

#[tokio::test(start_paused = true)]
async fn visitors_who_have_a_page_already_fill_the_cache() {
    for asked in
        [("if-none-match", "\"a\""), ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT")]
    {
        let bench = Bench::new(|_, request| {
            assert!(!request.headers().contains_key("if-none-match"));
            Say::page(&[
                ("cache-control", "max-age=60"),
                ("etag", "\"a\""),
                ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ])
        });
        for turn in 0..20 {
            let answer = bench.get(&[asked]).await;
            assert_eq!((answer.status, answer.is_hit()), (304, turn > 0), "{asked:?}");
            assert!(answer.body.is_empty());
        }
        assert_eq!(bench.get(&[]).await.body, "body");
        assert_eq!(bench.requests(), 1);
        // One who has an older one gets the new one.
        let other = bench.get(&[("if-none-match", "\"b\"")]).await;
        assert_eq!((other.status, &other.body[..]), (200, &b"body"[..]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_visitors_who_have_a_page_already_is_one_request() {
    let bench = Bench::new(|_, _| Say::page(TAGGED));
    let visitors = bench.crowd(20, &[("if-none-match", "\"a\"")]);
    let (returning, new) = tokio::join!(visitors, bench.crowd(20, &[]));
    assert!(returning.iter().all(|answer| answer.status == 304));
    assert!(new.iter().all(|answer| answer.status == 200 && answer.body == "body"));
    assert_eq!(bench.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn reloads_at_the_same_time_are_two_requests() {
    for is_stored in [true, false] {
        let bench = Bench::new(|_, _| Say::page(TAGGED));
        if is_stored {
            bench.get(&[]).await;
        }
        let before = bench.requests();
        for reload in [RELOAD, &[("cache-control", "max-age=0")], &[("pragma", "no-cache")]] {
            let now = bench.requests();
            let answers = bench.crowd(50, reload).await;
            assert!(answers.iter().all(|answer| answer.body == "body"));
            assert_eq!(bench.requests() - now, 2, "{reload:?}");
            assert_eq!(slowest(&answers), PAGE * 2);
        }
        assert_eq!(bench.requests() - before, 6);
    }
}

#[tokio::test(start_paused = true)]
async fn reloads_whose_response_is_validated_are_two_requests_as_well() {
    let bench = Bench::new(|_, request| {
        if request.headers().contains_key("if-none-match") {
            Say::after(PAGE, 304, TAGGED).body("")
        } else {
            Say::page(TAGGED)
        }
    });
    bench.get(&[]).await;
    let answers = bench.crowd(50, RELOAD).await;
    assert!(answers.iter().all(|answer| answer.body == "body"));
    assert_eq!(bench.requests(), 3);
}

#[tokio::test(start_paused = true)]
async fn nobody_who_reloads_gets_what_is_older_than_the_reload() {
    // The origin has a new version each 100 ms, and takes half a second to send the one that it had.
    let begun = tokio::time::Instant::now();
    let version = move || begun.elapsed().as_millis() / 100;
    let bench = Bench::new(move |_, _| Say::page(TAGGED).body(version().to_string()));
    let reload = async |number: u32| {
        sleep(Duration::from_millis(37) * number).await;
        let asked = version();
        let answer = bench.get(RELOAD).await;
        let got: u128 = str::from_utf8(&answer.body).expect("text").parse().expect("a number");
        assert!(got >= asked, "{got} is older than {asked}");
        answer
    };
    let answers = join_all((0..100).map(reload)).await;
    assert!(slowest(&answers) <= PAGE * 2);
    assert!(bench.requests() <= 12, "{}", bench.requests());
}

#[tokio::test(start_paused = true)]
async fn reloads_as_an_operator_wants_them() {
    for (effect, requests, is_hit) in
        [(ClientNoCache::Obey, 50, false), (ClientNoCache::Ignore, 0, true)]
    {
        let bench = Bench::with(|_, _| Say::page(FRESH), |builder| builder.client_no_cache(effect));
        bench.get(&[]).await;
        let answers = bench.crowd(50, RELOAD).await;
        assert_eq!(bench.requests() - 1, requests, "{effect:?}");
        assert!(answers.iter().all(|answer| answer.is_hit() == is_hit));
    }
}

#[tokio::test(start_paused = true)]
async fn reloads_of_a_private_page_get_their_own() {
    let bench = Bench::new(|_, _| Say::page(PRIVATE));
    bench.get(&[]).await;
    let answers = bench.crowd(20, RELOAD).await;
    assert_eq!((slowest(&answers), bench.requests()), (PAGE, 21));
}
