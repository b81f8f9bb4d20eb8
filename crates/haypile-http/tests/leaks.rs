//! Responses that a shared cache must not serve to another request. Ours serves none; the crate
//! `http-cache-semantics`, which other caches in Rust rely on, serves those that are marked.

use std::panic;
use std::time::{Duration, SystemTime};

use haypile_http::semantics::{Reuse, Rules, Stored};
use http::{Request, Response, request, response};
use http_cache_semantics::{CacheOptions, CachePolicy};

type Fields = &'static [(&'static str, &'static str)];

/// A response that was received for a request, and a later request.
struct Case {
    name: &'static str,
    first: Fields,
    response: Fields,
    second: Fields,
    after_s: u64,
    rival: Rival,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rival {
    Asks,
    Serves,
    Panics,
}

const CASES: &[Case] = &[
    Case {
        name: "a cookie, to a client that takes stale responses",
        first: &[],
        response: &[("cache-control", "max-age=60"), ("set-cookie", "session=1")],
        second: &[("cache-control", "max-stale")],
        after_s: 5,
        rival: Rival::Serves,
    },
    Case {
        name: "no-cache, to a client that takes stale responses",
        first: &[],
        response: &[("cache-control", "no-cache, max-age=60")],
        second: &[("cache-control", "max-stale")],
        after_s: 5,
        rival: Rival::Serves,
    },
    Case {
        name: "after s-maxage, to a client that takes stale responses",
        first: &[],
        response: &[("cache-control", "s-maxage=10")],
        second: &[("cache-control", "max-stale=1000")],
        after_s: 50,
        rival: Rival::Serves,
    },
    Case {
        name: "must-revalidate, to a client that takes stale responses",
        first: &[],
        response: &[("cache-control", "max-age=10, must-revalidate")],
        second: &[("cache-control", "max-stale=1000")],
        after_s: 50,
        rival: Rival::Asks,
    },
    Case {
        name: "Private with a capital letter",
        first: &[],
        response: &[("cache-control", "Private, max-age=60")],
        second: &[],
        after_s: 5,
        rival: Rival::Serves,
    },
    Case {
        name: "No-Store with capital letters",
        first: &[],
        response: &[("cache-control", "max-age=60, No-Store")],
        second: &[],
        after_s: 5,
        rival: Rival::Serves,
    },
    Case {
        name: "private on a line of its own",
        first: &[],
        response: &[("cache-control", "max-age=60"), ("cache-control", "private")],
        second: &[],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "the first of two lines of Vary",
        first: &[("x-user", "1"), ("y", "1")],
        response: &[("cache-control", "max-age=60"), ("vary", "x-user"), ("vary", "y")],
        second: &[("x-user", "2"), ("y", "1")],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "another value on the first of two lines of a selecting field",
        first: &[("x-user", "1"), ("x-user", "3")],
        response: &[("cache-control", "max-age=60"), ("vary", "x-user")],
        second: &[("x-user", "2"), ("x-user", "3")],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "an Age of 2^64 - 1",
        first: &[],
        response: &[("cache-control", "max-age=60"), ("age", "18446744073709551615")],
        second: &[],
        after_s: 5,
        rival: Rival::Panics,
    },
    Case {
        name: "what credentials were needed for",
        first: &[("authorization", "Basic YTpi")],
        response: &[("cache-control", "max-age=60")],
        second: &[],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "Vary: *",
        first: &[],
        response: &[("cache-control", "max-age=60"), ("vary", "*")],
        second: &[],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "no-store for caches like this one",
        first: &[],
        response: &[("cdn-cache-control", "no-store"), ("cache-control", "max-age=60")],
        second: &[],
        after_s: 5,
        rival: Rival::Serves,
    },
    Case {
        name: "no-store after a quote that is never closed",
        first: &[],
        response: &[("cache-control", "max-age=60, x=\"a, no-store")],
        second: &[],
        after_s: 5,
        rival: Rival::Asks,
    },
    Case {
        name: "no-store in the request that it answered",
        first: &[("cache-control", "no-store")],
        response: &[("cache-control", "max-age=60")],
        second: &[],
        after_s: 5,
        rival: Rival::Asks,
    },
];

fn request(fields: Fields) -> request::Parts {
    let add =
        |request: request::Builder, (name, value): &(&str, &str)| request.header(*name, *value);
    let request = fields.iter().fold(Request::get("http://example.org/"), add);
    request.body(()).expect("a request").into_parts().0
}

fn response(fields: Fields) -> response::Parts {
    let add =
        |response: response::Builder, (name, value): &(&str, &str)| response.header(*name, *value);
    let response = fields.iter().fold(Response::builder(), add);
    response.body(()).expect("a response").into_parts().0
}

fn ours(case: &Case, received: SystemTime) -> bool {
    let (rules, first) = (Rules::shared(), request(case.first));
    let response = response(case.response);
    if rules.may_store(&first, &response).is_err() {
        return false;
    }
    let stored = Stored::new(&first, response, received, received);
    let now = received + Duration::from_secs(case.after_s);
    let reuse = rules.reuse(&request(case.second), &stored, now);
    matches!(reuse, Reuse::Fresh | Reuse::Stale | Reuse::StaleWhileRevalidate)
}

fn rival(case: &Case, received: SystemTime) -> Rival {
    let serves = panic::catch_unwind(|| {
        let (first, response) = (request(case.first), response(case.response));
        let policy = CachePolicy::new_options(&first, &response, received, CacheOptions::default());
        let now = received + Duration::from_secs(case.after_s);
        policy.is_storable()
            && policy.before_request(&request(case.second), now).satisfies_without_revalidation()
    });
    match serves {
        Ok(true) => Rival::Serves,
        Ok(false) => Rival::Asks,
        Err(_) => Rival::Panics,
    }
}

#[test]
fn nothing_that_was_planted_is_served() {
    let received = SystemTime::now();
    let served = CASES.iter().filter(|case| ours(case, received)).map(|case| case.name);
    assert_eq!(served.collect::<Vec<_>>(), Vec::<&str>::new());
    let other: Vec<_> = CASES
        .iter()
        .map(|case| (case.name, case.rival, rival(case, received)))
        .filter(|(_, expected, found)| expected != found)
        .collect();
    assert_eq!(other, [], "the rival has changed");
}

/// Without what forbids it, each response is served: the cases test nothing else.
#[test]
fn what_is_not_forbidden_is_served() {
    let received = SystemTime::now();
    let case = Case {
        name: "plain",
        first: &[("x-user", "1")],
        response: &[("cache-control", "max-age=60"), ("vary", "x-user")],
        second: &[("x-user", "1"), ("cache-control", "max-stale")],
        after_s: 500,
        rival: Rival::Serves,
    };
    assert!(ours(&case, received));
    assert_eq!(rival(&case, received), Rival::Serves);
}
