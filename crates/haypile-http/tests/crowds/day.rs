//! A day of visitors, bursts and reloads, in front of an origin that comes and goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use haypile_http::semantics::Rules;
use tokio::time::{Instant, sleep_until};

use super::bench::{Answer, Bench, Say};

const DAY: Duration = Duration::from_hours(24);
const LIFETIME: u64 = 30;
const SERVE_STALE: u64 = 60;
/// The longest time for which the origin is waited for.
const LIMIT: Duration = Duration::from_secs(10);
const TARGETS: u64 = 8;

/// The state of the origin, which changes every few minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weather {
    Well,
    Slow,
    Fails,
    Hangs,
}

fn weather(second: u64) -> Weather {
    match mix(second / 300) % 8 {
        0 => Weather::Slow,
        1 => Weather::Fails,
        2 => Weather::Hangs,
        _ => Weather::Well,
    }
}

/// Returns a number that looks random, the same for the same one.
fn mix(number: u64) -> u64 {
    let number = (number ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The kinds of targets, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Varied,
    Private,
    Strict,
}

fn kind(target: u64) -> Kind {
    [Kind::Public, Kind::Varied, Kind::Private, Kind::Strict]
        [usize::try_from(target % 4).expect("small")]
}

/// Returns the second at which the origin made a body, and for whom.
fn made(answer: &Answer) -> (u64, String) {
    let text = str::from_utf8(&answer.body).expect("text");
    let (second, who) = text.split_once(' ').expect("both");
    (second.parse().expect("a number"), who.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_day_with_an_origin_that_comes_and_goes() {
    let begun = Instant::now();
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let rules = Rules { serve_stale: Some(Duration::from_secs(SERVE_STALE)), ..Rules::shared() };
    let origin = move |_: usize, request: &http::Request<haypile_http::Body>| {
        counted.fetch_add(1, Ordering::Relaxed);
        let second = begun.elapsed().as_secs();
        let target: u64 = request.uri().path()[1..].parse().expect("a number");
        let header = |name: &str| {
            request.headers().get(name).map_or("", |value| value.to_str().expect("text"))
        };
        let takes = match weather(second) {
            Weather::Well => Duration::from_millis(200),
            Weather::Slow => Duration::from_secs(4),
            Weather::Fails => {
                return Say::after(Duration::from_millis(50), 503, &[]).body("0 error");
            }
            Weather::Hangs => return Say::Fail(LIMIT),
        };
        let fields: &[(&str, &str)] = match kind(target) {
            Kind::Public => &[("cache-control", "max-age=30"), ("etag", "\"a\"")],
            Kind::Varied => &[("cache-control", "max-age=30"), ("vary", "accept-language")],
            Kind::Private => &[("cache-control", "private")],
            Kind::Strict => &[("cache-control", "max-age=30, must-revalidate")],
        };
        let who = match kind(target) {
            Kind::Varied => header("accept-language"),
            Kind::Private => header("cookie"),
            _ => "all",
        };
        Say::after(takes, 200, fields).body(format!("{second} {who}"))
    };
    let bench = Bench::with(origin, |builder| builder.rules(rules));
    let visit = async |number: u64| {
        // Some come in bursts.
        let second = mix(number / 5) % DAY.as_secs();
        sleep_until(begun + Duration::from_secs(second)).await;
        let target = mix(number) % TARGETS;
        let (language, cookie) = (format!("l{}", number % 3), format!("c={number}"));
        let mut fields = vec![("accept-language", language.as_str()), ("cookie", cookie.as_str())];
        let is_reload = number.is_multiple_of(11);
        if is_reload {
            fields.push(("cache-control", "no-cache"));
        }
        let url = format!("http://example.org/{target}");
        let asked = Instant::now();
        let answered = bench.ask(&url, &fields).await;
        let context = format!("{number} {url} at {second} {:?}: {answered:?}", weather(second));
        let waited = asked.elapsed();
        // Own time, two that are stuck before it, and what a queue of a burst adds.
        assert!(waited <= LIMIT * 3 + Duration::from_secs(10), "{waited:?} {context}");
        let Ok(answer) = answered else { return (false, false) };
        if answer.status != 200 {
            assert_eq!(answer.status, 503, "{context}");
            return (false, false);
        }
        let (made, who) = made(&answer);
        let now = begun.elapsed().as_secs();
        match kind(target) {
            Kind::Private => assert!(who == cookie && made >= second, "{context}"),
            Kind::Varied => assert_eq!(who, language, "{context}"),
            _ => assert_eq!(who, "all", "{context}"),
        }
        // Until it comes, and the time that it took, are part of the age.
        let slack = LIMIT.as_secs() + 5;
        let oldest = match kind(target) {
            Kind::Strict => LIFETIME + slack,
            // A day for the origin's failures.
            _ => DAY.as_secs(),
        };
        assert!(now - made <= oldest, "{} s old: {context}", now - made);
        let may_be_stale = [Kind::Public, Kind::Varied].contains(&kind(target)) && !is_reload;
        let is_away = [Weather::Fails, Weather::Hangs].contains(&weather(second));
        (true, may_be_stale && is_away && waited > Duration::from_secs(1))
    };
    let mut visits: FuturesUnordered<_> = (0..30_000).map(visit).collect();
    let (mut served, mut late) = (0, 0);
    while let Some((is_served, is_late)) = visits.next().await {
        served += u32::from(is_served);
        late += u32::from(is_late);
    }
    // Public pages are there though the origin is away for a quarter of the day, and of 15,000 visits to
    // them few wait: the first of an outage.
    assert!(served > 24_000, "{served}");
    assert!(late < 100, "{late}");
    assert!(asked.load(Ordering::Relaxed) < 25_000, "{asked:?}");
}
