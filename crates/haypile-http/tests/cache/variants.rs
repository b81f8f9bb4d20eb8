//! Responses that depend on more of the request than its target.

use std::time::Duration;

use haypile_http::Purge;
use haypile_http::semantics::{IgnoredCookies, Rules};
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

/// Returns an origin that encodes as the tests say, and has two languages.
fn encoder() -> Script {
    Script::new(|number, request| {
        let field = |name: &str| {
            let value = request.headers().get(name).map(|value| value.to_str().expect("text"));
            value.unwrap_or_default().to_owned()
        };
        let (accepted, language) = (field("accept-encoding"), field(LANGUAGE));
        let mut fields =
            vec![("cache-control", "max-age=60"), ("vary", "accept-encoding, accept-language")];
        // Its German page is too short to be encoded.
        let coding = ["br", "gzip"].into_iter().find(|coding| accepted.contains(coding));
        let coding = coding.filter(|_| language != "de");
        fields.extend(coding.map(|coding| ("content-encoding", coding)));
        Ok(response(200, &fields, format!("{} {language} {number}", coding.unwrap_or("identity"))))
    })
}

async fn ask_coded(bench: &Bench, accepted: Option<&str>, language: &str) -> Answer {
    let accepted = accepted.map(|accepted| ("accept-encoding", accepted));
    let fields: Vec<_> = accepted.into_iter().chain([(LANGUAGE, language)]).collect();
    bench.ask(Method::GET, URL, &fields).await
}

#[tokio::test]
async fn one_response_serves_all_sets_of_codings_that_its_origin_answers_alike() {
    let bench = Bench::new(encoder());
    for (accepted, expected, is_hit) in [
        (Some("gzip"), "gzip en 0", false),
        // The origin has not been asked yet what these get.
        (Some("gzip, deflate"), "gzip en 1", false),
        (Some("gzip, deflate, br"), "br en 2", false),
        (Some("br"), "br en 3", false),
        (Some("zstd"), "identity en 4", false),
        (Some(""), "identity en 5", false),
        (None, "identity en 6", false),
        // The latest one serves all.
        (Some("gzip"), "gzip en 1", true),
        (Some("deflate, gzip"), "gzip en 1", true),
        (Some("br, gzip, deflate"), "br en 3", true),
        (Some("zstd"), "identity en 6", true),
        (Some(""), "identity en 6", true),
    ] {
        let answer = ask_coded(&bench, accepted, "en").await;
        assert_eq!((answer.text(), answer.is_hit()), (expected, is_hit), "{accepted:?}");
    }
    // What is stale is refreshed for all of them by one request.
    bench.wait(100);
    for (accepted, expected) in [
        (Some("gzip, deflate"), "gzip en 7"),
        (Some("gzip"), "gzip en 7"),
        (None, "identity en 8"),
        (Some(""), "identity en 8"),
    ] {
        assert_eq!(ask_coded(&bench, accepted, "en").await.text(), expected, "{accepted:?}");
    }
    assert_eq!(bench.origin.requests(), 9);
}

#[tokio::test]
async fn a_set_of_codings_that_gets_another_coding_leaves_the_others_theirs() {
    let origin = Script::new(|number, request| {
        let accepted = request.headers()["accept-encoding"].to_str().expect("text");
        let is_encoded = number < 2 || !accepted.contains("deflate");
        let mut fields = vec![("cache-control", "max-age=60"), ("vary", "accept-encoding")];
        fields.extend(is_encoded.then_some(("content-encoding", "gzip")));
        Ok(response(200, &fields, format!("{number}")))
    });
    let bench = Bench::new(origin);
    for (accepted, wait, expected, status) in [
        ("gzip", 0, "0", "fwd=uri-miss"),
        ("gzip, deflate", 0, "1", "fwd=vary-miss"),
        ("gzip, deflate", 100, "2", "fwd=stale"),
        ("gzip", 0, "3", "fwd=stale"),
        ("gzip, deflate", 0, "2", "hit"),
        ("gzip", 0, "3", "hit"),
    ] {
        bench.wait(wait);
        let answer = ask_coded(&bench, Some(accepted), "en").await;
        assert_eq!(answer.text(), expected, "{accepted}");
        assert!(answer.cache_status().starts_with(status), "{accepted}: {answer:?}");
    }
}

#[tokio::test]
async fn where_the_coding_depends_on_more_each_set_has_a_response_of_its_own() {
    let bench = Bench::new(encoder());
    for turn in 0..3 {
        for language in ["en", "de", "fr"] {
            for accepted in ["gzip", "gzip, deflate", "br", "br, gzip"] {
                let answer = ask_coded(&bench, Some(accepted), language).await;
                assert!(answer.text().contains(&format!(" {language} ")), "{answer:?}");
                assert!(turn < 2 || answer.is_hit(), "{accepted} {language}: {answer:?}");
                let has = answer.field("content-encoding");
                assert!(has.is_empty() || accepted.contains(has), "{accepted}: {answer:?}");
                assert_eq!(has.is_empty(), language == "de", "{accepted}: {answer:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_coding_that_a_client_does_not_take_is_for_nobody_else() {
    // It encodes whatever the client says.
    let origin = Script::new(|number, _| {
        let fields = [
            ("cache-control", "max-age=60"),
            ("vary", "accept-encoding"),
            ("content-encoding", "gzip"),
        ];
        Ok(response(200, &fields, format!("{number}")))
    });
    let bench = Bench::new(origin);
    for (accepted, expected) in
        [("br", "0"), ("zstd", "1"), ("gzip", "2"), ("br", "0"), ("zstd", "1"), ("gzip", "2")]
    {
        assert_eq!(ask_coded(&bench, Some(accepted), "en").await.text(), expected, "{accepted}");
    }
}

#[tokio::test]
async fn purges_and_changes_reach_what_several_sets_of_codings_get() {
    for purge in [Purge::url(URL), Purge::prefix(URL), Purge::all()] {
        let bench = Bench::new(encoder());
        for accepted in ["gzip", "gzip, deflate", "gzip"] {
            ask_coded(&bench, Some(accepted), "en").await;
        }
        bench.cache.purge(purge).await.expect("it takes note");
        for (accepted, expected) in [("gzip, deflate", "gzip en 2"), ("gzip", "gzip en 3")] {
            let answer = ask_coded(&bench, Some(accepted), "en").await;
            assert_eq!(answer.text(), expected, "{purge:?}");
        }
    }
}

#[tokio::test]
async fn cookies_that_are_ignored_make_no_variants() {
    let origin = || {
        Script::new(|number, request| {
            let cookie =
                request.headers().get("cookie").map_or("", |value| value.to_str().expect("text"));
            let fields = [("cache-control", "max-age=60"), ("vary", "cookie")];
            Ok(response(200, &fields, format!("{cookie} {number}")))
        })
    };
    let named = IgnoredCookies::Named(vec!["_ga".into()]);
    for (ignored, requests) in
        [(IgnoredCookies::default(), 5), (named, 3), (IgnoredCookies::All, 1)]
    {
        let rules = Rules { ignored_cookies: ignored.clone(), ..Rules::shared() };
        let bench = Bench::with(origin(), "memory:size=16MiB", |builder| builder.rules(rules));
        for cookie in ["_ga=1", "_ga=2", "_ga=3; user=alice", "user=alice; _ga=4", "user=bob"] {
            let answer = bench.ask(Method::GET, URL, &[("cookie", cookie)]).await;
            if ignored != IgnoredCookies::All {
                let user = cookie.contains("alice");
                assert_eq!(
                    answer.text().contains("alice"),
                    user,
                    "{ignored:?} {cookie}: {answer:?}"
                );
            }
            // The origin gets all of them.
            assert!(answer.is_hit() || answer.text().starts_with(cookie), "{cookie}: {answer:?}");
        }
        assert_eq!(bench.origin.requests(), requests, "{ignored:?}");
    }
}

#[tokio::test]
async fn codings_that_are_not_registered_are_kept_apart_if_an_operator_wants_that() {
    for (keeps_unknown_codings, requests) in [(false, 1), (true, 2)] {
        let rules = Rules { keeps_unknown_codings, ..Rules::shared() };
        let origin = Script::new(|number, request| {
            let has = request.headers()["accept-encoding"].to_str().expect("text").contains("lzma");
            let mut fields = vec![("cache-control", "max-age=60"), ("vary", "accept-encoding")];
            fields.extend(has.then_some(("content-encoding", "lzma")));
            Ok(response(200, &fields, format!("{number}")))
        });
        let bench = Bench::with(origin, "memory:size=16MiB", |builder| builder.rules(rules));
        for accepted in ["gzip", "gzip, lzma", "lzma, gzip"] {
            ask_coded(&bench, Some(accepted), "en").await;
        }
        assert_eq!(bench.origin.requests(), requests);
    }
}
