//! Heads of requests and responses: the rules of the cache hold, however strange the fields are.
//!
//! `cargo +nightly fuzz run http_heads`

#![no_main]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haypile_http::semantics::validation::{
    Answer, add_validators, answer, freshen, freshened, head_freshens,
};
use haypile_http::semantics::{
    Reuse, Rules, Stored, Target, Variant, invalidated_by, storable_fields,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, request,
    response,
};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 36] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "age",
    "authorization",
    "cache-control",
    "cache-control",
    "cdn-cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "cookie",
    "date",
    "etag",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "last-modified",
    "location",
    "pragma",
    "range",
    "set-cookie",
    "te",
    "transfer-encoding",
    "upgrade",
    "vary",
    "vary",
    "x",
    "y",
];
const METHODS: [Method; 5] = [Method::GET, Method::GET, Method::HEAD, Method::POST, Method::DELETE];
const STATUSES: [u16; 8] = [200, 200, 206, 301, 304, 404, 500, 504];
/// Fields of one connection, which are never stored.
const OF_CONNECTION: [&str; 5] = ["connection", "keep-alive", "te", "transfer-encoding", "upgrade"];
/// Ages are not longer: RFC 9111, section 1.2.2.
const LONGEST: Duration = Duration::from_secs(1 << 31);

type Fields<'a> = Vec<(u8, &'a [u8])>;

fuzz_target!(|input: (u8, &str, u8, u32, u32, u32, Fields, Fields, Fields, Fields)| {
    let (method, path, status, requested, received, later, first, second, of_response, fresh) =
        input;
    let method = METHODS[usize::from(method) % METHODS.len()].clone();
    let status = STATUSES[usize::from(status) % STATUSES.len()];
    let Some(first) = request(&method, path, &first) else { return };
    let Some(second) = request(&method, path, &second) else { return };
    let response = response(StatusCode::from_u16(status).expect("a status"), &of_response);
    let fresh = headers(&fresh);
    let at = |seconds: u32| UNIX_EPOCH + Duration::from_secs(seconds.into());
    let (requested, received, now) = (at(requested), at(received), at(later));
    for rules in [Rules::shared(), Rules::private()] {
        check_storing(&rules, &first, &response);
        let stored = Stored::new(&first, response.clone(), requested, received);
        check_reuse(&rules, &second, &stored, now);
        check_freshening(&rules, &stored, &fresh);
    }
    let stored = Stored::new(&first, response.clone(), requested, received);
    check_age(&stored, now);
    check_validation(&second.headers, &stored, &fresh);
    check_variants(&first.headers, &second.headers, &response.headers);
    check_targets(&first, &response);
});

fn headers(fields: &[(u8, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    headers
}

fn request(method: &Method, path: &str, fields: &[(u8, &[u8])]) -> Option<request::Parts> {
    let uri: Uri = format!("http://example.org/{path}").parse().ok()?;
    let (mut parts, ()) = Request::new(()).into_parts();
    (parts.method, parts.uri, parts.headers) = (method.clone(), uri, headers(fields));
    Some(parts)
}

fn response(status: StatusCode, fields: &[(u8, &[u8])]) -> response::Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    (parts.status, parts.headers) = (status, headers(fields));
    parts
}

/// Whether one line of a field is exactly this directive: no reader may miss it.
fn says(headers: &HeaderMap, name: &str, directive: &str) -> bool {
    let mut lines = headers.get_all(name).iter();
    lines.any(|line| line.as_bytes().trim_ascii().eq_ignore_ascii_case(directive.as_bytes()))
}

/// Whether the lines of `Cache-Control` have this text anywhere.
fn mentions(headers: &HeaderMap, text: &str) -> bool {
    let mut lines = headers.get_all("cache-control").iter();
    lines.any(|line| {
        let line = line.as_bytes().to_ascii_lowercase();
        line.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

/// Whether `Cache-Control` counts for a cache that follows targeted fields.
fn is_general(headers: &HeaderMap) -> bool {
    !headers.contains_key("cdn-cache-control")
}

fn check_storing(rules: &Rules, request: &request::Parts, response: &response::Parts) {
    let is_shared = *rules == Rules::shared();
    let headers = &response.headers;
    let may_store = rules.may_store(request, response);
    let control = |directive| says(headers, "cache-control", directive);
    if may_store.is_ok() {
        assert!(![206, 304].contains(&response.status.as_u16()));
        assert!([Method::GET, Method::POST].contains(&request.method));
        assert!(!says(&request.headers, "cache-control", "no-store"));
        assert!(!says(headers, "vary", "*"));
        if is_general(headers) {
            assert!(!control("no-store") || mentions(headers, "must-understand"));
            assert!(!is_shared || !control("private"));
            let shares = ["public", "must-revalidate", "s-maxage"];
            assert!(
                !is_shared
                    || !request.headers.contains_key("authorization")
                    || shares.iter().any(|directive| mentions(headers, directive))
            );
        }
    }
    let storable = storable_fields(rules, headers);
    assert!(OF_CONNECTION.iter().all(|name| !storable.contains_key(*name)));
    assert!(storable.keys().all(|name| {
        let (left, all) = (storable.get_all(name).iter(), headers.get_all(name).iter());
        left.eq(all)
    }));
    assert!(!is_shared || may_store.is_err() || !storable.contains_key("set-cookie"));
    let _ = rules.is_useful(response, UNIX_EPOCH);
}

fn check_reuse(rules: &Rules, request: &request::Parts, stored: &Stored, now: SystemTime) {
    let reuse = rules.reuse(request, stored, now);
    let variant = stored.variant.as_ref();
    let is_selected = variant.is_some_and(|variant| variant.matches(&request.headers));
    // Another cache on the same store may have stored it.
    let is_refused = *rules == Rules::shared() && stored.headers.contains_key("set-cookie");
    assert_eq!(is_selected && !is_refused, reuse != Reuse::Other);
    let asks = |directive| says(&request.headers, "cache-control", directive);
    assert!(!reuse.is_served() || !(asks("no-cache") || asks("no-store")));
    if asks("only-if-cached") {
        assert!(!matches!(reuse, Reuse::Revalidate { .. }));
    } else {
        assert!(reuse != Reuse::GatewayTimeout || mentions(&request.headers, "only-if-cached"));
    }
    let control = |directive| says(&stored.headers, "cache-control", directive);
    if is_general(&stored.headers) {
        assert!(!reuse.is_served() || !control("no-cache"));
        let is_stale = matches!(reuse, Reuse::Stale | Reuse::StaleWhileRevalidate);
        assert!(!is_stale || !control("must-revalidate"));
    }
    let lifetime = rules.lifetime(stored.status, &stored.headers, stored.received).duration();
    assert!(reuse != Reuse::Fresh || stored.age(now) < lifetime);
}

fn check_freshening(rules: &Rules, stored: &Stored, fresh: &HeaderMap) {
    let mut once = stored.headers.clone();
    freshen(rules, &mut once, fresh);
    let mut twice = once.clone();
    freshen(rules, &mut twice, fresh);
    assert_eq!(once, twice);
    for name in ["content-length", "content-encoding", "content-range"] {
        assert!(once.get_all(name).iter().eq(stored.headers.get_all(name)));
    }
    let _ = head_freshens(fresh, stored);
}

fn check_age(stored: &Stored, now: SystemTime) {
    let age = stored.age(now);
    let resident = now.duration_since(stored.received).unwrap_or_default();
    assert!(age >= resident.min(LONGEST) && age <= LONGEST);
    assert!(stored.age(now + Duration::from_secs(1)) >= age);
}

fn check_validation(request: &HeaderMap, stored: &Stored, not_modified: &HeaderMap) {
    let found = answer(request, stored);
    let has = |names: [&str; 2]| names.iter().any(|name| request.contains_key(*name));
    match found {
        Answer::NotModified => assert!(has(["if-none-match", "if-modified-since"])),
        Answer::Forward => assert!(has(["if-match", "if-unmodified-since"])),
        Answer::Full => assert!(!has(["if-match", "if-unmodified-since"])),
    }
    let both = [stored, stored];
    for stored in [&both[..0], &both[..1], &both] {
        let mut request = request.clone();
        let adds = add_validators(&mut request, stored);
        let has = |name| request.contains_key(name);
        assert_eq!(adds, has("if-none-match") || has("if-modified-since"));
        assert!(!["if-match", "if-range", "if-unmodified-since", "range"].into_iter().any(has));
        assert!(!adds || !stored.is_empty());
        let numbers = freshened(not_modified, stored);
        assert!(numbers.is_sorted_by(|one, other| one < other));
        assert!(numbers.last().is_none_or(|last| *last < stored.len()));
    }
    // The response that the validators are of is the one that they find.
    let mut asks = HeaderMap::new();
    if add_validators(&mut asks, &[stored]) && stored.status.is_success() {
        assert_eq!(answer(&asks, stored), Answer::NotModified);
    }
}

fn check_variants(first: &HeaderMap, second: &HeaderMap, response: &HeaderMap) {
    let (Some(one), Some(other)) = (Variant::of(first, response), Variant::of(second, response))
    else {
        return;
    };
    assert!(one.matches(first));
    assert_eq!(one == other, one.matches(second));
    assert_eq!(one == other, one.key() == other.key());
}

fn check_targets(request: &request::Parts, response: &response::Parts) {
    let target = Target::of(&request.uri).expect("it has a scheme and a host");
    let again: Uri = target.as_str().parse().expect("a target is a URI");
    assert_eq!(Target::of(&again).as_ref(), Ok(&target));
    let invalidated = invalidated_by(&request.method, &target, response);
    assert!(invalidated.iter().all(|other| other.origin() == target.origin()));
    let is_done = response.status.is_success() || response.status.is_redirection();
    assert_eq!(invalidated.contains(&target), is_done && !request.method.is_safe());
    assert!(!invalidated.is_empty() == invalidated.contains(&target));
}
