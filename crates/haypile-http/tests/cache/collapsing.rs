//! Many requests for one response.

use std::time::Duration;

use futures_util::future::join_all;
use http::Method;

use super::origin::{Script, response};
use super::{Answer, Bench, URL, read};

const CLIENTS: usize = 100;

/// Sends as many requests before the origin answers any.
async fn together(
    bench: &Bench,
    gate: &super::origin::Gate,
    fields: &[(&str, &str)],
) -> Vec<Answer> {
    let ask = async || read(bench.send(Method::GET, URL, fields).await.expect("a response")).await;
    let asked = join_all((0..CLIENTS).map(|_| ask()));
    let open = async {
        // The first of them gets there; all others have been polled by then.
        while bench.origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    tokio::join!(asked, open).0
}

#[tokio::test]
async fn a_hundred_clients_cause_one_request() {
    for length in [10, 200_000] {
        let answer = move |_: usize, _: &_| {
            Ok(response(200, &[("cache-control", "max-age=60")], vec![7; length]))
        };
        let (origin, gate) = Script::gated(answer, false);
        let bench = Bench::new(origin);
        let answers = together(&bench, &gate, &[]).await;
        assert_eq!(bench.origin.requests(), 1);
        assert!(answers.iter().all(|answer| answer.status == 200 && answer.body.len() == length));
        let collapsed = answers.iter().filter(|answer| answer.cache_status().contains("collapsed"));
        assert_eq!(collapsed.count(), CLIENTS - 1);
    }
}

#[tokio::test]
async fn a_hundred_clients_validate_once() {
    let (origin, _) = Script::gated(
        |number, _| match number {
            0 => Ok(response(200, &[("cache-control", "max-age=60"), ("etag", "\"a\"")], "body")),
            _ => Ok(response(304, &[("etag", "\"a\"")], "")),
        },
        true,
    );
    let bench = Bench::new(origin);
    bench.get(URL).await;
    bench.wait(60);
    let asked = join_all((0..CLIENTS).map(|_| bench.get(URL))).await;
    assert!(asked.iter().all(|answer| answer.text() == "body"));
    assert_eq!(bench.origin.requests(), 2);
}

#[tokio::test]
async fn those_for_whom_the_response_is_not_ask_themselves() {
    for (fields, asked) in [
        (&[("cache-control", "no-store")][..], &[][..]),
        (&[("cache-control", "private, max-age=60")], &[]),
        (&[("cache-control", "max-age=60")], &[("authorization", "x")]),
        (&[("cache-control", "max-age=60")], &[("cache-control", "no-store")]),
    ] {
        let (origin, gate) = Script::gated(move |_, _| Ok(response(200, fields, "body")), false);
        let bench = Bench::new(origin);
        let answers = together(&bench, &gate, asked).await;
        assert!(answers.iter().all(|answer| answer.text() == "body"));
        assert_eq!(bench.origin.requests(), CLIENTS, "{fields:?} {asked:?}");
    }
}

#[tokio::test]
async fn those_of_another_variant_get_their_own() {
    let (origin, gate) = Script::gated(
        |_, request| {
            let language = request.headers()["accept-language"].to_str().expect("text").to_owned();
            let fields = [("cache-control", "max-age=60"), ("vary", "accept-language")];
            Ok(response(200, &fields, language))
        },
        false,
    );
    let bench = Bench::new(origin);
    let ask = async |language: &'static str| {
        let answer = bench.ask(Method::GET, URL, &[("accept-language", language)]).await;
        assert_eq!(answer.text(), language);
    };
    let open = async {
        while bench.origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    tokio::join!(ask("en"), ask("de"), ask("en"), open);
    assert_eq!(bench.origin.requests(), 2);
}

#[tokio::test]
async fn nobody_waits_for_ever_for_another_s_response() {
    let (origin, gate) = Script::gated(
        |number, _| Ok(response(200, &[("cache-control", "max-age=60")], format!("body {number}"))),
        false,
    );
    let bench = Bench::with(origin, "memory:size=16MiB", |builder| {
        builder.collapse_wait(Duration::from_millis(1))
    });
    let open = async {
        while bench.origin.requests() < 2 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    tokio::join!(bench.get(URL), bench.get(URL), open);
    assert_eq!(bench.origin.requests(), 2);
}

#[tokio::test]
async fn if_the_first_fails_the_others_ask_themselves() {
    let (origin, gate) = Script::gated(
        |number, _| match number {
            0 => Err("no connection".into()),
            _ => Ok(response(200, &[("cache-control", "max-age=60")], "body")),
        },
        false,
    );
    let bench = Bench::new(origin);
    let ask = async || bench.send(Method::GET, URL, &[]).await.is_ok();
    let open = async {
        while bench.origin.requests() == 0 {
            tokio::task::yield_now().await;
        }
        gate.open();
    };
    let (answered, ()) = tokio::join!(join_all((0..CLIENTS).map(|_| ask())), open);
    assert_eq!(answered.iter().filter(|is_answered| **is_answered).count(), CLIENTS - 1);
}
