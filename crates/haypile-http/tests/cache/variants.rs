//! Responses that depend on more of the request than its target.

use std::time::Duration;

use haypile_http::Purge;
use http::Method;

use super::origin::{Script, response};
use super::{Answer, Bench, URL};

const LANGUAGE: &str = "accept-language";

/// Returns an origin that answers in the language that is asked for.
fn polyglot(fields: &'static [(&'static str, &'static str)]) -> Script {
    Script::new(move |number, request| {
        let asked = request.headers().get(LANGUAGE).map_or(&b""[..], |value| value.as_bytes());
        let body = format!("{} {number}", String::from_utf8_lossy(asked));
        let varied: Vec<_> = fields.iter().copied().chain([("vary", LANGUAGE)]).collect();
        Ok(response(200, &varied, body))
    })
}

const FRESH: &[(&str, &str)] =
    &[("cache-control", "max-age=60"), ("surrogate-key", "page"), ("etag", "\"a\"")];

async fn ask(bench: &Bench, language: &str) -> Answer {
    let answer = bench.ask(Method::GET, URL, &[(LANGUAGE, language)]).await;
    assert!(answer.text().starts_with(&format!("{language} ")), "{language}: {answer:?}");
    answer
}

#[tokio::test]
async fn as_many_variants_as_a_site_has_languages_are_kept() {
    let bench = Bench::new(polyglot(FRESH));
    for turn in 0..3 {
        for language in 0..300 {
            assert_eq!(ask(&bench, &format!("l{language}")).await.is_hit(), turn > 0, "{turn}");
        }
    }
    assert_eq!(bench.origin.requests(), 300);
}

#[tokio::test]
async fn variants_that_nobody_asks_for_again_push_none_out_that_are_asked_for() {
    let bench = Bench::new(polyglot(FRESH));
    for language in ["de", "en", "de", "en"] {
        ask(&bench, language).await;
    }
    for number in 0..1_200 {
        ask(&bench, &format!("x{number}")).await;
    }
    assert!(ask(&bench, "de").await.is_hit());
    assert!(ask(&bench, "en").await.is_hit());
    assert!(ask(&bench, "x1199").await.is_hit());
    assert!(!ask(&bench, "x5").await.is_hit());
    // Nor do invented codings, of which no origin sends one.
    let origin = Script::fields(&[&[("cache-control", "max-age=60"), ("vary", "accept-encoding")]]);
    let bench = Bench::new(origin);
    for number in 0..50 {
        let coding = format!("gzip, x{number}");
        bench.ask(Method::GET, URL, &[("accept-encoding", &coding)]).await;
    }
    assert_eq!(bench.origin.requests(), 1);
}

#[tokio::test]
async fn the_variants_of_a_target_have_a_sixteenth_of_the_cache() {
    let body = vec![b'x'; 50_000];
    let origin = Script::new(move |_, request| {
        let fields = [("cache-control", "max-age=60"), ("vary", LANGUAGE)];
        let asked = request.headers()[LANGUAGE].clone();
        Ok(response(200, &fields, [asked.as_bytes(), &body].concat()))
    });
    let bench = Bench::with(origin, "memory:size=16MiB", |builder| builder);
    for number in 0..200 {
        let language = format!("l{number}");
        bench.ask(Method::GET, URL, &[(LANGUAGE, &language)]).await;
    }
    let stored = bench.store.stats().expect("it counts").bytes;
    assert!(stored < (16 << 20) / 10, "{stored}");
    let last = bench.ask(Method::GET, URL, &[(LANGUAGE, "l199")]).await;
    assert!(last.is_hit());
}

#[tokio::test]
async fn every_purge_reaches_every_variant() {
    for (purge, is_soft) in [
        (Purge::url(URL), false),
        (Purge::prefix("http://example.org/"), false),
        (Purge::group("page"), false),
        (Purge::all(), false),
        (Purge::url(URL).soft(), true),
        (Purge::prefix("http://example.org/").soft(), true),
        (Purge::group("page").soft(), true),
        (Purge::all().soft(), true),
    ] {
        let bench = Bench::new(polyglot(FRESH));
        for _ in 0..2 {
            for language in 0..40 {
                ask(&bench, &format!("l{language}")).await;
            }
        }
        bench.cache.purge(purge).await.expect("it takes note");
        for language in 0..40 {
            let answer = ask(&bench, &format!("l{language}")).await;
            assert_eq!(answer.is_hit(), is_soft, "{purge:?} {language}: {answer:?}");
            assert!(!is_soft || answer.cache_status().contains("ttl=-1"), "{answer:?}");
        }
        // What was refreshed is fresh, and stays so.
        let fresh = async {
            while !ask(&bench, "l7").await.cache_status().contains("ttl=60") {
                tokio::task::yield_now().await;
            }
        };
        let fresh = tokio::time::timeout(Duration::from_mins(1), fresh).await;
        assert!(fresh.is_ok(), "{purge:?}: it is refreshed {:?}", ask(&bench, "l7").await);
        assert!(ask(&bench, "l7").await.is_hit());
    }
}

#[tokio::test]
async fn soft_purges_one_after_the_other_leave_all_variants_stale() {
    let bench = Bench::new(Script::new(|number, request| {
        let asked = request.headers()[LANGUAGE].to_str().expect("text").to_owned();
        if number >= 5 {
            return Err("no connection".into());
        }
        let fields = [("cache-control", "max-age=60"), ("vary", LANGUAGE)];
        Ok(response(200, &fields, format!("{asked} {number}")))
    }));
    for language in 0..5 {
        ask(&bench, &format!("l{language}")).await;
    }
    for turn in 0..9 {
        bench.cache.purge(Purge::url(URL).soft()).await.expect("it takes note");
        if turn < 8 {
            assert!(ask(&bench, "l3").await.cache_status().contains("ttl=-1"), "{turn}");
        }
    }
}

#[tokio::test]
async fn a_change_reaches_every_variant() {
    let bench = Bench::new(polyglot(FRESH));
    for language in ["de", "en", "de", "en"] {
        ask(&bench, language).await;
    }
    bench.ask(Method::DELETE, URL, &[(LANGUAGE, "de")]).await;
    assert!(!ask(&bench, "de").await.is_hit());
    assert!(!ask(&bench, "en").await.is_hit());
}

#[tokio::test]
async fn other_processes_find_them_and_purge_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("file:{}/a.haypile,size=64MiB", folder.path().display());
    for url in ["memory:size=64MiB", &file] {
        let first = Bench::with(polyglot(FRESH), url, |builder| builder);
        let second = Bench::on(first.store.clone(), polyglot(FRESH), |builder| builder);
        for language in 0..40 {
            let language = format!("l{language}");
            ask(&first, &language).await;
            assert!(ask(&second, &language).await.is_hit());
        }
        second.cache.purge(Purge::url(URL)).await.expect("it takes note");
        assert!(!ask(&first, "l3").await.is_hit());
    }
}

#[tokio::test]
async fn the_fields_that_decide_may_change() {
    let origin = Script::new(|number, _| {
        let vary = ["a", "b", "a, b", "", "c", "d", "e"][number % 7];
        let fields = [("cache-control", "max-age=60"), ("vary", vary)];
        Ok(response(200, &fields, format!("{number}")))
    });
    let bench = Bench::new(origin);
    let mut asked = Vec::new();
    for number in 0..7_usize {
        let value = number.to_string();
        let fields = ["a", "b", "c", "d", "e"].map(|name| (name, value.as_str()));
        let answer = bench.ask(Method::GET, URL, &fields).await;
        asked.push((value.clone(), answer.text().to_owned()));
    }
    // The fourth depends on nothing, and answers all who come later but for those of later variants.
    let texts: Vec<&str> = asked.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["0", "1", "2", "3", "3", "3", "3"]);
}

#[tokio::test]
async fn a_variant_that_is_evicted_is_fetched_again() {
    let bench = Bench::new(polyglot(FRESH));
    for language in ["de", "en"] {
        ask(&bench, language).await;
    }
    // Whatever lies under it.
    let keys: Vec<Vec<u8>> = bench.store.keys().map(|key| key.expect("a key")).collect();
    let target = format!("http/{:032x}", xxhash_rust::xxh3::xxh3_128(URL.as_bytes()));
    for key in keys.iter().filter(|key| key.starts_with(b"http/") && **key != target.as_bytes()) {
        bench.store.set(key, b"nonsense").expect("it is stored");
    }
    for language in ["de", "en"] {
        assert!(!ask(&bench, language).await.is_hit());
        assert!(ask(&bench, language).await.is_hit());
    }
}

#[tokio::test]
async fn a_304_freshens_its_variant_alone_or_those_with_its_tag() {
    let origin = Script::new(|number, request| {
        let is_conditional = request.headers().contains_key("if-none-match");
        let fields = [("cache-control", "max-age=60"), ("etag", "\"a\""), ("vary", LANGUAGE)];
        let status = if is_conditional { 304 } else { 200 };
        let asked = request.headers()[LANGUAGE].to_str().expect("text").to_owned();
        Ok(response(
            status,
            &fields,
            if is_conditional { String::new() } else { format!("{asked} {number}") },
        ))
    });
    let bench = Bench::new(origin);
    ask(&bench, "de").await;
    ask(&bench, "en").await;
    bench.wait(61);
    let answer = ask(&bench, "de").await;
    assert!(answer.cache_status().contains("fwd=stale; fwd-status=304"), "{answer:?}");
    assert!(ask(&bench, "de").await.is_hit());
    assert_eq!(bench.origin.requests(), 3);
    assert!(ask(&bench, "en").await.cache_status().contains("fwd-status=304"));
}
