//! The response that a request's conditions and its range make of one: RFC 9110, sections 13 and 14.

use std::ops::Range;

use http::header::{
    DATE, ETAG, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
};
use http::{HeaderMap, StatusCode};

/// The part of a reply's body that a request asks for by its `Range` field: all, a range, or none that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The whole body: the request asks for no part, or for one that need not be heeded.
    Whole,
    /// The bytes in this range.
    Bytes(Range<u64>),
    /// A range of bytes that the body does not have.
    NotSatisfiable,
}

/// Whether the client already has the response, according to the conditions in its request (such as `If-None-Match`),
/// so that the reply is a 304. Preconditions of changes are ignored: the server has no state.
pub(super) fn is_not_modified(
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
) -> bool {
    let is_change = request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE);
    if is_change || !status.is_success() {
        return false;
    }
    if request.contains_key(IF_NONE_MATCH) {
        let own = only(response, &ETAG).map(opaque);
        let mut lists = request.get_all(IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
        return lists.any(|list| list.trim() == "*" || tags(list).any(|tag| Some(tag) == own));
    }
    let changed = date(response, &LAST_MODIFIED).or_else(|| date(response, &DATE));
    match (date(request, &IF_MODIFIED_SINCE), changed) {
        (Some(since), Some(changed)) => changed <= since,
        _ => false,
    }
}

/// Determines which part of a body of `length` bytes a request asks for; a request for several parts gets the whole
/// body.
pub(super) fn part(
    request: &HeaderMap,
    status: StatusCode,
    response: &HeaderMap,
    length: u64,
) -> Part {
    let is_the_one = match only(request, &IF_RANGE) {
        Some(tag) if tag.starts_with('"') => only(response, &ETAG) == Some(tag),
        Some(date) => only(response, &LAST_MODIFIED) == Some(date),
        None => !request.contains_key(IF_RANGE),
    };
    match only(request, &RANGE) {
        Some(range) if is_the_one && status == StatusCode::OK => {
            read(range, length).unwrap_or(Part::Whole)
        }
        _ => Part::Whole,
    }
}

fn read(range: &str, length: u64) -> Option<Part> {
    let (unit, range) = range.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let part = match (number(first), number(last)) {
        (Some(first), None) if last.is_empty() => first..length,
        (Some(first), Some(last)) if first <= last => first..length.min(last.saturating_add(1)),
        (None, Some(count)) if first.is_empty() => length.saturating_sub(count)..length,
        _ => return None,
    };
    Some(if part.is_empty() { Part::NotSatisfiable } else { Part::Bytes(part) })
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Returns the value of a field that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut lines = headers.get_all(name).iter();
    let line = lines.next()?.to_str().ok()?;
    lines.next().is_none().then(|| line.trim())
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<std::time::SystemTime> {
    httpdate::parse_http_date(only(headers, name)?).ok()
}

/// Returns the tags of a list, for the weak comparison.
fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let quote = rest.find('"');
        let end = match quote.filter(|quote| ["", "W/"].contains(&&rest[..*quote])) {
            Some(quote) => quote + 1 + rest[quote + 1..].find('"')? + 1,
            None => rest.find([',', ' ', '\t']).unwrap_or(rest.len()),
        };
        let (tag, left) = rest.split_at(end);
        rest = left;
        (!tag.is_empty()).then(|| opaque(tag))
    })
}

/// Returns a tag without the mark of a weak one.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const CHANGED: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let value = |value: &str| HeaderValue::from_str(value).unwrap();
        fields.iter().map(|(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    #[test]
    fn a_client_that_has_the_response_is_told_so() {
        let response = headers(&[("etag", "W/\"a,b\""), ("last-modified", CHANGED)]);
        let is = |fields: &[(&'static str, &str)], status| {
            is_not_modified(&headers(fields), status, &response)
        };
        let ok = StatusCode::OK;
        for list in ["\"a,b\"", "W/\"a,b\"", "\"c\", W/\"a,b\"", "*", "a, \"a,b\""] {
            assert!(is(&[("if-none-match", list)], ok), "{list}");
            assert!(!is(&[("if-none-match", list)], StatusCode::NOT_FOUND), "{list}");
        }
        for list in ["\"a\"", "\"b\"", "", "W/", "\"a,b", "a,b"] {
            assert!(!is(&[("if-none-match", list)], ok), "{list}");
        }
        assert!(is(&[("if-modified-since", CHANGED)], ok));
        assert!(!is(&[("if-modified-since", "Wed, 31 Dec 2025 23:59:59 GMT")], ok));
        assert!(!is(&[("if-modified-since", "yesterday")], ok));
        // The tag decides where there is one.
        assert!(!is(&[("if-none-match", "\"x\""), ("if-modified-since", CHANGED)], ok));
        assert!(!is(&[("if-none-match", "*"), ("if-match", "*")], ok));
        assert!(!is(&[], ok));
    }

    #[test]
    fn ranges() {
        use Part::{Bytes, NotSatisfiable, Whole};
        let response = headers(&[("etag", "\"a\""), ("last-modified", CHANGED)]);
        let of =
            |fields: &[(&'static str, &str)]| part(&headers(fields), StatusCode::OK, &response, 10);
        for (range, expected) in [
            ("bytes=0-0", Bytes(0..1)),
            ("Bytes=2-", Bytes(2..10)),
            ("bytes=-30", Bytes(0..10)),
            ("bytes=8-99999999999999999999999", Bytes(8..10)),
            ("bytes=10-", NotSatisfiable),
            ("bytes=-0", NotSatisfiable),
            ("bytes=5-2", Whole),
            ("bytes=1-2,4-5", Whole),
            ("bytes=+1-2", Whole),
            ("chars=1-2", Whole),
            ("", Whole),
        ] {
            assert_eq!(of(&[("range", range)]), expected, "{range}");
        }
        for (condition, expected) in [
            ("\"a\"", Bytes(1..3)),
            ("\"b\"", Whole),
            ("W/\"a\"", Whole),
            (CHANGED, Bytes(1..3)),
            ("", Whole),
        ] {
            assert_eq!(
                of(&[("range", "bytes=1-2"), ("if-range", condition)]),
                expected,
                "{condition}"
            );
        }
        assert_eq!(of(&[("range", "bytes=1-2"), ("range", "bytes=1-2")]), Whole);
        let missing =
            part(&headers(&[("range", "bytes=1-2")]), StatusCode::NOT_FOUND, &response, 10);
        assert_eq!(missing, Whole);
    }
}
