//! Validation of stored responses: RFC 9111, section 4.3, and RFC 9110, sections 8.8 and 13.

use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderValue, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, RANGE,
    TRANSFER_ENCODING,
};
use http::{HeaderMap, StatusCode};

use super::fields::storable_fields;
use super::rules::Rules;
use super::stored::Stored;
use super::time::date;

/// The fields that say of which length and coding a body is, and its digest. That of a response
/// without one says nothing of the stored one.
static OF_THE_BODY: [http::HeaderName; 6] = [
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    TRANSFER_ENCODING,
    http::HeaderName::from_static("content-digest"),
    http::HeaderName::from_static("content-md5"),
];

/// The names of the request fields that state conditions, such as `If-None-Match`.
pub(super) static CONDITIONS: [http::HeaderName; 5] =
    [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, IF_RANGE];

/// An entity tag: RFC 9110, section 8.8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag<'a> {
    is_weak: bool,
    opaque: &'a [u8],
}

impl<'a> Tag<'a> {
    /// Reads the first tag of a list; returns it with the rest. What has no quotes is a tag as it
    /// stands, for servers send such.
    fn read(list: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let is_between = |byte: &u8| *byte == b',' || byte.is_ascii_whitespace();
        let list = &list[list.iter().position(|byte| !is_between(byte))?..];
        let (is_weak, quoted) = match list.strip_prefix(b"W/\"") {
            Some(rest) => (true, Some(rest)),
            None => (false, list.strip_prefix(b"\"")),
        };
        if let Some(quoted) = quoted
            && let Some(end) = quoted.iter().position(|byte| *byte == b'"')
        {
            return Some((Self { is_weak, opaque: &quoted[..end] }, &quoted[end + 1..]));
        }
        let end = list.iter().position(is_between).unwrap_or(list.len());
        Some((Self { is_weak: true, opaque: &list[..end] }, &list[end..]))
    }

    fn of(headers: &'a HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(ETAG).iter();
        let line = lines.next().filter(|line| !line.is_empty())?;
        lines.next().is_none().then(|| Self::read(line.as_bytes()))?.map(|(tag, _)| tag)
    }
}

/// Replaces a request's conditions by the validators (`ETag`, `Last-Modified`) of stored responses,
/// and removes its range, so that the origin tells which of them is current. Returns whether there
/// is a validator.
pub fn add_validators(request: &mut HeaderMap, stored: &[&Stored]) -> bool {
    for name in CONDITIONS.iter().chain([&RANGE]) {
        request.remove(name);
    }
    let tags = stored.iter().filter(|stored| Tag::of(&stored.headers).is_some());
    let tags: Vec<&[u8]> = tags.map(|stored| stored.headers[ETAG].as_bytes()).collect();
    if let Ok(tags) = HeaderValue::from_bytes(&tags.join(&b", "[..]))
        && !tags.is_empty()
    {
        request.insert(IF_NONE_MATCH, tags);
    }
    if let [only] = stored
        && let Ok(Some(_)) = date(&only.headers, &LAST_MODIFIED)
    {
        request.insert(IF_MODIFIED_SINCE, only.headers[LAST_MODIFIED].clone());
    }
    request.contains_key(IF_NONE_MATCH) || request.contains_key(IF_MODIFIED_SINCE)
}

/// The answer that a request's conditions demand where a stored response matches: the whole
/// response, a 304, or the origin's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response as it is.
    Full,
    /// A 304 with its fields: the client has it.
    NotModified,
    /// The origin has to decide (`If-Match`, `If-Unmodified-Since`).
    Forward,
}

/// Evaluates the conditions of a request, such as `If-None-Match`, against a stored response (RFC
/// 9111, section 4.3.2).
pub fn answer(request: &HeaderMap, stored: &Stored) -> Answer {
    if request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE) {
        return Answer::Forward;
    }
    if !stored.status.is_success() {
        return Answer::Full;
    }
    let is_current = if request.contains_key(IF_NONE_MATCH) {
        let own = Tag::of(&stored.headers);
        let lines = request.get_all(IF_NONE_MATCH).iter();
        lines
            .map(HeaderValue::as_bytes)
            .any(|line| line.trim_ascii() == b"*" || own.is_some_and(|own| names(line, own)))
    } else {
        let Ok(Some(since)) = date(request, &IF_MODIFIED_SINCE) else { return Answer::Full };
        let changed = match date(&stored.headers, &LAST_MODIFIED) {
            Ok(None) => date(&stored.headers, &DATE).ok().flatten(),
            changed => changed.ok().flatten(),
        };
        changed.is_some_and(|changed| changed <= since)
    };
    if is_current { Answer::NotModified } else { Answer::Full }
}

/// Whether a list names a tag, by the weak comparison.
fn names(mut list: &[u8], own: Tag<'_>) -> bool {
    while let Some((tag, rest)) = Tag::read(list) {
        if tag.opaque == own.opaque {
            return true;
        }
        list = rest;
    }
    false
}

/// Returns the indices of those stored responses that a 304 of the origin makes fresh again (RFC
/// 9111, section 4.3.4). They are given from the latest to the oldest.
pub fn freshened(not_modified: &HeaderMap, stored: &[&Stored]) -> Vec<usize> {
    let numbers = 0..stored.len();
    if let Some(tag) = Tag::of(not_modified) {
        let has_tag = |number: &usize| {
            let own = Tag::of(&stored[*number].headers);
            own.is_some_and(|own| own.opaque == tag.opaque && own.is_weak == tag.is_weak)
        };
        let same = numbers.filter(has_tag);
        // A strong validator names one representation, a weak one the latest of several.
        return if tag.is_weak { same.take(1).collect() } else { same.collect() };
    }
    if not_modified.contains_key(LAST_MODIFIED) {
        let changed = date(not_modified, &LAST_MODIFIED).ok().flatten();
        let is_same = |number: &usize| {
            let own = date(&stored[*number].headers, &LAST_MODIFIED).ok().flatten();
            own.is_some() && own == changed
        };
        return numbers.filter(is_same).take(1).collect();
    }
    // Without a validator it is about the one that was asked about.
    if stored.len() == 1 { vec![0] } else { Vec::new() }
}

/// Whether the response to a HEAD matches a stored response to a GET, and so makes it fresh again
/// (RFC 9111, section 4.3.5). Otherwise it makes the stored one stale.
pub fn head_freshens(head: &HeaderMap, stored: &Stored) -> bool {
    [ETAG, LAST_MODIFIED, CONTENT_LENGTH].iter().all(|name| {
        let mut lines = head.get_all(name).iter().peekable();
        lines.peek().is_none() || lines.eq(stored.headers.get_all(name))
    })
}

/// Replaces the header fields of a stored response by those of a 304 or of a response to a HEAD,
/// except those about the body (RFC 9111, section 3.2). Its age counts from the validation on.
pub fn freshen(rules: &Rules, stored: &mut HeaderMap, fresh: &HeaderMap) {
    let fresh = storable_fields(rules, fresh);
    stored.remove(AGE);
    for name in fresh.keys().filter(|name| !OF_THE_BODY.contains(name)) {
        stored.remove(name);
        for value in fresh.get_all(name) {
            stored.append(name.clone(), value.clone());
        }
    }
}

/// Whether the status code of a response to a validation means a failure of the origin, so that the
/// stored response may be served instead (RFC 5861, section 4).
pub fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// Whether a status tells what a target is now. Others are about the request, about the client's number of
/// requests, or about the server.
pub(crate) fn is_about_target(status: StatusCode) -> bool {
    // Not those about a part, or about what the client has.
    matches!(status.as_u16(), 200..=205 | 207..=303 | 305..=399 | 401..=406 | 410 | 451)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::HeaderName;
    use proptest::prelude::*;

    use super::*;
    use crate::semantics::vary::Variant;

    const EARLY: &str = "Thu, 01 Jan 2026 00:00:00 GMT";
    const LATE: &str = "Fri, 02 Jan 2026 00:00:00 GMT";

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    fn stored(fields: &[(&str, &str)]) -> Stored {
        Stored {
            status: StatusCode::OK,
            headers: headers(fields),
            variant: Some(Variant::default()),
            requested: UNIX_EPOCH,
            received: UNIX_EPOCH,
        }
    }

    #[test]
    fn requests_that_validate() {
        let (tagged, weak) = (stored(&[("etag", "\"a\"")]), stored(&[("etag", "W/\"b\"")]));
        let both = stored(&[("etag", "\"a\""), ("last-modified", EARLY)]);
        let dated = stored(&[("last-modified", EARLY)]);
        let twice = stored(&[("etag", "\"a\""), ("etag", "\"b\"")]);
        for (stored, expected) in [
            (&[&tagged][..], &[("if-none-match", "\"a\"")][..]),
            (&[&tagged, &weak], &[("if-none-match", "\"a\", W/\"b\"")]),
            (&[&both], &[("if-none-match", "\"a\""), ("if-modified-since", EARLY)]),
            (&[&both, &dated], &[("if-none-match", "\"a\"")]),
            (&[&dated], &[("if-modified-since", EARLY)]),
            (&[&twice], &[]),
            (&[&stored(&[("last-modified", "x")])], &[]),
            (&[], &[]),
        ] {
            let mut request = headers(&[
                ("if-none-match", "\"own\""),
                ("if-modified-since", LATE),
                ("if-range", "\"own\""),
                ("range", "bytes=0-1"),
            ]);
            assert_eq!(add_validators(&mut request, stored), !expected.is_empty());
            assert_eq!(request, headers(expected));
        }
    }

    #[test]
    fn conditions_of_requests() {
        use Answer::{Forward, Full, NotModified};
        let tagged = [("etag", "\"a\""), ("last-modified", EARLY)];
        for (fields, asked, expected) in [
            (&tagged[..], &[][..], Full),
            (&tagged, &[("if-none-match", "\"a\"")], NotModified),
            (&tagged, &[("if-none-match", "W/\"a\"")], NotModified),
            (&tagged, &[("if-none-match", "\"b\"")], Full),
            (&tagged, &[("if-none-match", "\"b\", \"a\" ,\"c\"")], NotModified),
            (&tagged, &[("if-none-match", "\"b\""), ("if-none-match", "\"a\"")], NotModified),
            (&tagged, &[("if-none-match", "*")], NotModified),
            (&tagged, &[("if-none-match", "\"x, a\"")], Full),
            (&tagged, &[("if-none-match", "\"b\""), ("if-modified-since", LATE)], Full),
            (&tagged, &[("if-none-match", "\"a\""), ("if-modified-since", "x")], NotModified),
            (&[("etag", "W/\"a\"")], &[("if-none-match", "\"a\"")], NotModified),
            (&[("etag", "\"a\\\"")], &[("if-none-match", "\"a\\\", \"b\"")], NotModified),
            (&[("etag", "a")], &[("if-none-match", "a")], NotModified),
            (&[("etag", "\"a\""), ("etag", "\"b\"")], &[("if-none-match", "\"a\"")], Full),
            (&[], &[("if-none-match", "\"a\"")], Full),
            (&tagged, &[("if-modified-since", EARLY)], NotModified),
            (&tagged, &[("if-modified-since", LATE)], NotModified),
            (&[("last-modified", LATE)], &[("if-modified-since", EARLY)], Full),
            (&[("date", EARLY)], &[("if-modified-since", EARLY)], NotModified),
            (&[("date", LATE)], &[("if-modified-since", EARLY)], Full),
            (&[("last-modified", "x"), ("date", EARLY)], &[("if-modified-since", EARLY)], Full),
            (&tagged, &[("if-modified-since", "x")], Full),
            (&tagged, &[("if-match", "\"a\"")], Forward),
            (&tagged, &[("if-unmodified-since", LATE)], Forward),
        ] {
            let found = answer(&headers(asked), &stored(fields));
            assert_eq!(found, expected, "{fields:?} {asked:?}");
        }
        let gone = Stored { status: StatusCode::GONE, ..stored(&tagged) };
        assert_eq!(answer(&headers(&[("if-none-match", "\"a\"")]), &gone), Full);
    }

    #[test]
    fn responses_that_are_freshened() {
        let strong = stored(&[("etag", "\"a\""), ("last-modified", EARLY)]);
        let weak = stored(&[("etag", "W/\"a\"")]);
        let dated = stored(&[("last-modified", EARLY)]);
        let plain = stored(&[]);
        for (fresh, stored, expected) in [
            (&[("etag", "\"a\"")][..], &[&weak, &strong, &dated, &strong][..], &[1, 3][..]),
            (&[("etag", "W/\"a\"")], &[&strong, &weak, &weak], &[1]),
            (&[("etag", "\"b\"")], &[&strong], &[]),
            (&[("last-modified", EARLY)], &[&plain, &strong, &dated], &[1]),
            (&[("last-modified", LATE)], &[&dated], &[]),
            (&[("last-modified", "x")], &[&plain], &[]),
            (&[], &[&strong], &[0]),
            (&[], &[&strong, &dated], &[]),
        ] {
            assert_eq!(freshened(&headers(fresh), stored), expected, "{fresh:?}");
        }
    }

    #[test]
    fn answers_to_head_are_about_the_same_or_another() {
        let stored = stored(&[("etag", "\"a\""), ("content-length", "5")]);
        for (head, expected) in [
            (&[][..], true),
            (&[("etag", "\"a\""), ("content-length", "5"), ("x", "y")], true),
            (&[("etag", "\"b\"")], false),
            (&[("content-length", "6")], false),
            (&[("last-modified", EARLY)], false),
        ] {
            assert_eq!(head_freshens(&headers(head), &stored), expected, "{head:?}");
        }
    }

    #[test]
    fn fields_that_are_replaced() {
        let mut stored = headers(&[
            ("a", "1"),
            ("age", "100"),
            ("b", "1"),
            ("b", "2"),
            ("content-length", "5"),
            ("content-encoding", "gzip"),
        ]);
        let fresh = headers(&[
            ("b", "3"),
            ("c", "4"),
            ("c", "5"),
            ("content-length", "0"),
            ("content-encoding", "br"),
            ("content-range", "x"),
            ("content-md5", "x"),
            ("content-digest", "x"),
            ("transfer-encoding", "chunked"),
            ("connection", "d"),
            ("d", "6"),
        ]);
        freshen(&Rules::shared(), &mut stored, &fresh);
        let expected = [
            ("a", "1"),
            ("b", "3"),
            ("c", "4"),
            ("c", "5"),
            ("content-length", "5"),
            ("content-encoding", "gzip"),
        ];
        assert_eq!(stored, headers(&expected));
    }

    proptest! {
        #[test]
        fn no_list_of_tags_is_too_strange(list in prop::collection::vec(any::<u8>(), 0..60)) {
            let own = Tag { is_weak: false, opaque: b"never in it, for it has a \"" };
            prop_assert!(!names(&list, own));
        }
    }
}
