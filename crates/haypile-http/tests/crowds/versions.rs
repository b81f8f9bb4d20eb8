//! Stress with all features on: pages that change, are purged and posted to while many clients ask for them in many
//! ways. Each body says of which page, version, language, coding and user it is, in every sixteen bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use haypile_http::semantics::{IgnoredCookies, Rules};
use haypile_http::{Body, ClientNoCache, Collapse, Purge};
use http::{Method, Request};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use super::bench::{Bench, Say};

const PAGES: usize = 24;
const CLIENTS: u64 = 60;
const STEPS: usize = 120;
const TOKEN_BYTES: usize = 16;

/// The kinds of pages, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Languages,
    Codings,
    Private,
    /// An application that says nothing about caching, with a page of its own for each user.
    Old,
    Cookies,
}

fn kind(page: usize) -> Kind {
    use Kind::{Codings, Cookies, Languages, Old, Private, Public};
    [Public, Languages, Codings, Private, Old, Cookies][page % 6]
}

/// The versions of a page: of the origin, and the oldest that a request may get which is sent now.
#[derive(Default)]
struct Version {
    now: AtomicU64,
    oldest: AtomicU64,
}

fn field<'a>(request: &'a Request<Body>, name: &str) -> &'a str {
    request.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

/// Returns the user that a `Cookie` names; 0 if it names none.
fn user_of(cookie: &str) -> u64 {
    let user = cookie.split("; ").find_map(|pair| pair.strip_prefix("user="));
    user.map_or(0, |user| user.parse().expect("a number"))
}

fn coding_of(accepted: &str) -> &'static str {
    ["br", "gzip"].into_iter().find(|coding| accepted.contains(coding)).unwrap_or_default()
}

/// Returns the bytes that a body of this page consists of.
fn token(page: usize, version: u64, request: &Request<Body>) -> String {
    let (mut language, mut coding, mut user) = ("-", "-", 0);
    match kind(page) {
        Kind::Public => {}
        Kind::Languages => language = field(request, "accept-language"),
        Kind::Codings => coding = coding_of(field(request, "accept-encoding")),
        Kind::Private | Kind::Old | Kind::Cookies => user = user_of(field(request, "cookie")),
    }
    let letter = |text: &str| text.chars().next().unwrap_or('-');
    let (language, coding) = (letter(language), letter(coding));
    let text = format!("p{page:02}v{version:05}{language}{coding}u{user:03};");
    assert_eq!(text.len(), TOKEN_BYTES);
    text
}

fn answer(versions: &[Version], number: usize, request: &Request<Body>) -> Say {
    let chance = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let takes = Duration::from_millis(20 + chance % 380);
    let page: usize = request.uri().path()[1..].parse().expect("a number");
    if request.method() == Method::POST {
        versions[page].now.fetch_add(1, Ordering::SeqCst);
        return Say::after(takes, 200, &[("cache-group-invalidation", "\"none\"")]);
    }
    match chance % 50 {
        0 => return Say::after(takes, 503, &[]),
        1 => return Say::Fail(takes),
        _ => {}
    }
    let token = token(page, versions[page].now.load(Ordering::SeqCst), request);
    let tag = format!("\"{token}\"");
    let mut fields = vec![("etag", tag.as_str()), ("cache-groups", "\"g\"")];
    match kind(page) {
        Kind::Public => fields.push(("cache-control", "max-age=2, stale-while-revalidate=2")),
        Kind::Languages => {
            fields.extend([("cache-control", "max-age=2"), ("vary", "accept-language")]);
        }
        Kind::Codings => {
            fields.extend([("cache-control", "max-age=2"), ("vary", "accept-encoding")]);
            let coding = coding_of(field(request, "accept-encoding"));
            fields.extend((!coding.is_empty()).then_some(("content-encoding", coding)));
        }
        Kind::Private => fields.push(("cache-control", "private")),
        Kind::Old => fields.push(("x-old", "1")),
        Kind::Cookies => fields.extend([("cache-control", "max-age=2"), ("vary", "cookie")]),
    }
    if field(request, "if-none-match") == tag {
        return Say::after(takes, 304, &fields).body("");
    }
    // Some are in one entry, some in chunks.
    let tokens = if page < PAGES / 2 { 8 } else { 9_000 };
    Say::after(takes, 200, &fields).body(token.repeat(tokens))
}

/// Returns the fields of a random request.
fn random_fields(random: &mut SmallRng) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    let language = *["de", "en", "fr"].choose(random).expect("some");
    fields.push(("accept-language", language.to_owned()));
    let sets =
        ["gzip", "gzip, deflate", "gzip, deflate, br", "br;q=0.5, gzip", "zstd", "x, gzip", ""];
    let codings = *sets.choose(random).expect("some");
    fields.push(("accept-encoding", codings.to_owned()));
    let cookies = [
        None,
        Some(format!("_ga={}", random.random_range(0..1_000))),
        Some(format!("user={}", random.random_range(1..6))),
        Some(format!("_ga=1; user={}", random.random_range(1..6))),
    ];
    let cookie = cookies.choose(random).expect("some").clone();
    fields.extend(cookie.map(|cookie| ("cookie", cookie)));
    match random.random_range(0..20) {
        0..2 => fields.push(("cache-control", "no-cache".into())),
        2 => fields.push(("cache-control", "max-stale=5".into())),
        3..5 => fields.push(("range", "bytes=0-".into())),
        5..7 => fields.push(("range", "bytes=16-63".into())),
        7 => fields.push(("if-none-match", "\"other\"".into())),
        _ => {}
    }
    fields
}

async fn visit(bench: &Bench, versions: &[Version], random: &mut SmallRng) -> bool {
    let page = random.random_range(0..PAGES);
    let url = format!("http://example.org/{page}");
    let fields = random_fields(random);
    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let oldest = versions[page].oldest.load(Ordering::SeqCst);
    let Ok(answer) = bench.ask(&url, &fields).await else { return false };
    if answer.status == 503 {
        return false;
    }
    let newest = versions[page].now.load(Ordering::SeqCst);
    let mut request = Request::get(&url);
    for (name, value) in &fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    let text = str::from_utf8(&answer.body).expect("text");
    let context = || format!("{url} {fields:?} {} {:?}: {text:.48}", answer.status, answer.headers);
    assert!([200, 206].contains(&answer.status) && !text.is_empty(), "{}", context());
    assert_eq!(text.len() % TOKEN_BYTES, 0, "{}", context());
    let version: u64 = text[4..9].parse().unwrap_or_else(|_| panic!("{}", context()));
    let expected = token(page, version, &request);
    assert!(
        text.as_bytes().chunks(TOKEN_BYTES).all(|part| part == expected.as_bytes()),
        "{}",
        context()
    );
    let coding = answer.field("content-encoding");
    assert_eq!(
        coding,
        if kind(page) == Kind::Codings {
            coding_of(field(&request, "accept-encoding"))
        } else {
            ""
        }
    );
    assert!((oldest..=newest).contains(&version), "{oldest}..={newest}: {}", context());
    true
}

/// Changes a page, and has the cache know of it in one of several ways.
async fn change(bench: &Bench, versions: &[Version], random: &mut SmallRng) {
    let page = random.random_range(0..PAGES);
    let url = format!("http://example.org/{page}");
    let versions_of = |pages: std::ops::Range<usize>| {
        pages.map(|page| (page, versions[page].now.load(Ordering::SeqCst))).collect::<Vec<_>>()
    };
    let learn = |known: Vec<(usize, u64)>| {
        for (page, version) in known {
            versions[page].oldest.fetch_max(version, Ordering::SeqCst);
        }
    };
    match random.random_range(0..7) {
        // Nobody is told: what is stored serves until it is over.
        0 => drop(versions[page].now.fetch_add(1, Ordering::SeqCst)),
        1 => {
            let before = versions[page].now.load(Ordering::SeqCst);
            if bench.post(&url).await.is_ok() {
                learn(vec![(page, before + 1)]);
            }
        }
        2 => {
            bench.cache.purge(Purge::url(&url).soft()).await.expect("it takes note");
        }
        how => {
            versions[page].now.fetch_add(1, Ordering::SeqCst);
            let prefix = "http://example.org/";
            let (purge, known) = match how {
                3 | 4 => (Purge::url(&url), versions_of(page..page + 1)),
                5 => (Purge::prefix(prefix), versions_of(0..PAGES)),
                _ => (Purge::group("g"), versions_of(0..PAGES)),
            };
            bench.cache.purge(purge).await.expect("it takes note");
            learn(known);
        }
    }
}

async fn run(seed: u64, collapse: Collapse, reloads: ClientNoCache) -> u64 {
    let versions: Arc<Vec<Version>> = Arc::new((0..PAGES).map(|_| Version::default()).collect());
    let shared = Arc::clone(&versions);
    let rules = Rules {
        serve_stale: Some(Duration::from_secs(3)),
        default_lifetime: Some(Duration::from_secs(2)),
        ignored_cookies: IgnoredCookies::Named(vec!["_ga".into()]),
        keeps_unknown_codings: seed.is_multiple_of(2),
        ..Rules::shared()
    };
    let first = Bench::with(
        move |number, request| answer(&shared, number, request),
        |builder| builder.rules(rules).collapse(collapse).client_no_cache(reloads),
    );
    // Another process, with other rules.
    let second = first.another();
    let client = async |number: u64| {
        let mut random = SmallRng::seed_from_u64(seed * 1_000 + number);
        let bench = if number.is_multiple_of(3) { &second } else { &first };
        let mut served = 0;
        for _ in 0..STEPS {
            sleep(Duration::from_millis(random.random_range(0..300))).await;
            if random.random_bool(0.05) {
                change(bench, &versions, &mut random).await;
            } else {
                served += u64::from(visit(bench, &versions, &mut random).await);
            }
        }
        served
    };
    join_all((0..CLIENTS).map(client)).await.iter().sum()
}

#[tokio::test(start_paused = true)]
async fn no_answer_is_wrong_whatever_happens_at_the_same_time() {
    let mut seed = 0;
    for collapse in [Collapse::All, Collapse::WithoutCookie, Collapse::Off] {
        for reloads in [ClientNoCache::Collapse, ClientNoCache::Obey] {
            seed += 1;
            let served = run(seed, collapse, reloads).await;
            let all = CLIENTS * STEPS as u64;
            assert!(served > all * 8 / 10, "{served} of {all}: {collapse:?} {reloads:?}");
        }
    }
}
