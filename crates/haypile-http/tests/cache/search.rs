//! Queries that make no difference (`No-Vary-Search`).

use haypile_http::Purge;
use http::Method;

use super::origin::{Script, response};
use super::{Bench, URL};

const UTM: (&str, &str) = ("no-vary-search", "params=(\"utm_source\")");
const FRESH: (&str, &str) = ("cache-control", "max-age=60");

fn numbered(fields: &'static [(&'static str, &'static str)]) -> Script {
    Script::new(move |number, request| {
        let query = request.uri().query().unwrap_or_default();
        Ok(response(200, fields, format!("{number} {query}")))
    })
}

#[tokio::test]
async fn requests_that_differ_in_what_makes_no_difference_share_a_response() {
    let bench = Bench::new(numbered(&[FRESH, UTM]));
    // The first one teaches the rule, and the second is stored under it.
    assert_eq!(
        bench.get("http://example.org/a?id=1&utm_source=x").await.text(),
        "0 id=1&utm_source=x"
    );
    assert_eq!(
        bench.get("http://example.org/a?id=1&utm_source=y").await.text(),
        "1 id=1&utm_source=y"
    );
    for query in ["?id=1", "?utm_source=z&id=1", "?id=%31"] {
        let answer = bench.get(&format!("http://example.org/a{query}")).await;
        assert_eq!((answer.text(), answer.is_hit()), ("1 id=1&utm_source=y", true), "{query}");
    }
    for other in ["/a?id=2", "/a?id=1&x=1", "/a", "/b?id=1"] {
        assert!(!bench.get(&format!("http://example.org{other}")).await.is_hit(), "{other}");
    }
    assert!(bench.get("http://example.org/a?utm_source=new").await.is_hit());
}

#[tokio::test]
async fn other_processes_learn_the_rule_from_what_they_serve() {
    let first = Bench::new(numbered(&[FRESH, UTM]));
    for source in ["x", "y"] {
        first.get(&format!("{URL}?utm_source={source}")).await;
    }
    let second = Bench::on(first.store.clone(), numbered(&[FRESH, UTM]), |builder| builder);
    assert!(second.get(&format!("{URL}?utm_source=x")).await.is_hit());
    assert!(second.get(&format!("{URL}?utm_source=z")).await.is_hit());
    assert_eq!(second.origin.requests(), 0);
}

#[tokio::test]
async fn a_purge_or_a_change_of_one_query_is_one_of_all_that_share_its_response() {
    for change in ["purge", "soft", "prefix", "delete"] {
        let first = Bench::new(numbered(&[FRESH, UTM]));
        for source in ["x", "y", "z"] {
            first.get(&format!("{URL}?utm_source={source}")).await;
        }
        // Another process, which has not learned the rule.
        let second = Bench::on(first.store.clone(), numbered(&[FRESH, UTM]), |builder| builder);
        let url = format!("{URL}?utm_source=w");
        let purge = match change {
            "purge" => Some(Purge::url(&url)),
            "soft" => Some(Purge::url(&url).soft()),
            "prefix" => Some(Purge::prefix("http://example.org/")),
            _ => None,
        };
        match purge {
            Some(purge) => assert!(second.cache.purge(purge).await.expect("it takes note")),
            None => drop(second.ask(Method::DELETE, &url, &[]).await),
        }
        let answer = first.get(&format!("{URL}?utm_source=y")).await;
        if change == "soft" {
            assert!(answer.cache_status().contains("ttl=-1"), "{answer:?}");
        } else {
            assert!(!answer.is_hit(), "{change}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_response_of_another_rule_answers_nobody_else() {
    let bench = Bench::new(Script::new(|number, request| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        // The origin thinks better of it.
        let fields: &[(&str, &str)] = if number < 2 { &[FRESH, UTM] } else { &[FRESH] };
        Ok(response(if number == 2 { 404 } else { 200 }, fields, query))
    }));
    for source in ["x", "y"] {
        bench.get(&format!("{URL}?utm_source={source}")).await;
    }
    // An error page has no rule, and is not stored for all.
    bench.wait(61);
    let missing = bench.get(&format!("{URL}?utm_source=a")).await;
    assert!(missing.cache_status().contains("No-Vary-Search"), "{missing:?}");
    for source in ["b", "c", "d"] {
        let answer = bench.get(&format!("{URL}?utm_source={source}")).await;
        assert_eq!(answer.text(), format!("utm_source={source}"));
    }
    // Without a rule, each query has its own.
    assert!(bench.get(&format!("{URL}?utm_source=d")).await.is_hit());
    assert!(!bench.get(&format!("{URL}?utm_source=e")).await.is_hit());
}

#[tokio::test]
async fn a_crowd_that_differs_in_what_makes_no_difference_is_one_request() {
    let bench = Bench::new(numbered(&[FRESH, UTM]));
    bench.get(URL).await;
    bench.wait(61);
    let asked = (0..50).map(|source| {
        let url = format!("{URL}?utm_source={source}");
        let bench = &bench;
        async move { bench.get(&url).await }
    });
    let answers = futures_util::future::join_all(asked).await;
    assert!(answers.iter().all(|answer| answer.text() == answers[0].text()));
    assert_eq!(bench.origin.requests(), 2);
}
