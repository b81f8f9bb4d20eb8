//! Responses that depend on more of the request than its target: RFC 9111, section 4.1.

use std::collections::BTreeSet;

use http::header::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, COOKIE, VARY,
};
use http::{HeaderMap, HeaderName};

use super::list::{is_token, members};
use super::rules::IgnoredCookies;

/// The fields whose values are lists of tokens with weights: RFC 9110, section 12.5.
static WEIGHTED: [HeaderName; 2] = [ACCEPT_CHARSET, ACCEPT_LANGUAGE];
/// The content codings that are registered (IANA), but for `identity`; `x-gzip` and `x-compress` are the
/// same as those without `x-`. No origin sends another.
const CODINGS: [&[u8]; 10] = [
    b"aes128gcm",
    b"br",
    b"compress",
    b"dcb",
    b"dcz",
    b"deflate",
    b"exi",
    b"gzip",
    b"pack200-gzip",
    b"zstd",
];

/// The parts of request fields (such as some cookies) that a cache ignores when a response's `Vary` names the fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Selection<'a> {
    /// The cookies of requests that the cache ignores in `Vary: Cookie`, because no response depends on them.
    pub(crate) ignored_cookies: Option<&'a IgnoredCookies>,
    /// Whether the cache distinguishes content codings that are not registered (IANA).
    pub(crate) keeps_unknown_codings: bool,
}

/// The refusal of `identity` in a set of codings.
const REFUSED_IDENTITY: &[u8] = b"identity;q=0";

/// A variant of a URL: the request fields that `Vary` names, with the values to which a stored response is the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant(Vec<(HeaderName, Option<Vec<u8>>)>);

impl Variant {
    /// Returns the variant of a URL that a response belongs to: the values of the request's fields that its `Vary`
    /// names. `None` for a response that answers only this one request (`*`), or if `Vary` is invalid.
    pub fn of(request: &HeaderMap, response: &HeaderMap) -> Option<Self> {
        Self::selected(Selection::default(), request, response)
    }

    /// Returns the variant that a response belongs to as [`of`](Self::of) does, without the parts of fields that the
    /// cache ignores.
    pub(crate) fn selected(
        selection: Selection<'_>,
        request: &HeaderMap,
        response: &HeaderMap,
    ) -> Option<Self> {
        let names: Result<BTreeSet<_>, _> = members(response, &VARY)
            .map(|name| HeaderName::from_bytes(name).map(|name| name.as_str().to_owned()))
            .collect();
        let names = names.ok().filter(|names| !names.contains("*"))?;
        let field = |name: &String| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = normalized(selection, request, &name);
            Some((name, value))
        };
        names.iter().map(field).collect::<Option<_>>().map(Self)
    }

    /// Returns the variant of a URL that a request asks for, by the names of the request fields that decide it, which
    /// are in order.
    pub(crate) fn of_fields(
        selection: Selection<'_>,
        request: &HeaderMap,
        names: &[HeaderName],
    ) -> Self {
        let field = |name: &HeaderName| (name.clone(), normalized(selection, request, name));
        Self(names.iter().map(field).collect())
    }

    /// Whether a request asks for this variant: it has the same values of the fields in `Vary`.
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.matches_under(Selection::default(), request)
    }

    /// Whether a request asks for this variant of a URL, under the rules of a cache that ignores some parts of request
    /// fields.
    pub(crate) fn matches_under(&self, selection: Selection<'_>, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| *value == normalized(selection, request, name))
    }

    /// Returns the set of content codings that the variant's request accepts; `None` if the response does not vary by
    /// it.
    pub(crate) fn codings(&self) -> Option<&CodingSet> {
        self.0.iter().find(|(name, _)| *name == ACCEPT_ENCODING).map(|(_, set)| set)
    }

    /// Returns the variant with another value in place of its set of accepted content codings.
    pub(crate) fn with_codings(&self, value: &[u8]) -> Self {
        let mut other = self.clone();
        for (name, set) in &mut other.0 {
            if *name == ACCEPT_ENCODING {
                *set = Some(value.to_vec());
            }
        }
        other
    }

    /// Returns the request fields that decide the variant, with their normalized values, ordered by name.
    pub(crate) fn fields(&self) -> &[(HeaderName, Option<Vec<u8>>)] {
        &self.0
    }

    /// Returns the variant that has these [`fields`](Self::fields) of requests with their values.
    pub(crate) fn from_fields(fields: Vec<(HeaderName, Option<Vec<u8>>)>) -> Self {
        Self(fields)
    }

    /// Returns the variant of a URL encoded as bytes, which are equal exactly for equal variants.
    pub fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        for (name, value) in &self.0 {
            for part in [Some(name.as_str().as_bytes()), value.as_deref()] {
                // One more than the length, so that an empty field differs from none.
                let length = part.map_or(0, |part| part.len() as u64 + 1);
                key.extend_from_slice(&length.to_le_bytes());
                key.extend_from_slice(part.unwrap_or_default());
            }
        }
        key
    }
}

/// The set of content codings that a request accepts, in a normal form; `None` if the request does not state one, and
/// accepts all.
pub(crate) type CodingSet = Option<Vec<u8>>;

/// Returns the content coding of a response (`identity` for none), if a set of accepted codings has it, so that
/// requests with other sets that have it could get the same response.
pub(crate) fn accepted_coding(set: &CodingSet, response: &HeaderMap) -> Option<Vec<u8>> {
    let mut codings = members(response, &CONTENT_ENCODING);
    let coding = codings.next().map_or(b"identity".to_vec(), <[u8]>::to_ascii_lowercase);
    let coding =
        coding.strip_prefix(b"x-").filter(|name| CODINGS.contains(name)).unwrap_or(&coding);
    if codings.next().is_some() || !is_token(coding) {
        return None;
    }
    let Some(set) = set else { return Some(coding.to_vec()) };
    let names: Vec<&[u8]> = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
    let names: Vec<&[u8]> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let refuses_identity = names.contains(&REFUSED_IDENTITY);
    // One that is not a list is as it was sent.
    let is_set = names.iter().all(|name| is_token(name) || *name == REFUSED_IDENTITY);
    let is_accepted = match coding {
        b"identity" => !refuses_identity,
        _ => names.contains(&coding) || names.contains(&&b"*"[..]),
    };
    (is_set && is_accepted).then(|| coding.to_vec())
}

/// Returns the value of a field in a form that is the same wherever its meaning is known to be.
/// `None` if it is not there.
///
/// Only a list may be written in several ways. An origin takes a field for whatever it wants, so that
/// `Origin: https://a.example,` may have another answer than the same without the comma.
fn normalized(selection: Selection<'_>, request: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    if !request.contains_key(name) {
        return None;
    }
    if *name == COOKIE
        && let Some(ignored) = selection.ignored_cookies.filter(|ignored| !ignored.is_none())
    {
        return ignored.left_of(request);
    }
    let list = if *name == ACCEPT {
        media_ranges(request)
    } else if *name == ACCEPT_ENCODING {
        codings(selection, request)
    } else if WEIGHTED.contains(name) {
        preferences(request, name)
    } else {
        None
    };
    Some(list.unwrap_or_else(|| combined(request, name)))
}

/// Returns the value of all lines of a field, as RFC 9110, section 5.3, combines them.
fn combined(request: &HeaderMap, name: &HeaderName) -> Vec<u8> {
    let lines = request.get_all(name).iter().map(|line| line.as_bytes().trim_ascii());
    lines.collect::<Vec<_>>().join(&b", "[..])
}

/// Returns the members of `Accept` as they stand; `None` if one may have a comma in it.
fn media_ranges(request: &HeaderMap) -> Option<Vec<u8>> {
    let has_quotes = request.get_all(ACCEPT).iter().any(|line| line.as_bytes().contains(&b'"'));
    (!has_quotes).then(|| members(request, &ACCEPT).collect::<Vec<_>>().join(&b", "[..]))
}

/// Returns the codings that a client accepts, in the order of their letters, without their weights: an
/// origin that heeds weights sends one of the same codings to others. What no origin sends makes no
/// difference, so that nobody makes variants by inventing names; the refusal of `identity` does. `None` if
/// a member is not a coding.
fn codings(selection: Selection<'_>, request: &HeaderMap) -> Option<Vec<u8>> {
    let mut accepted = Vec::new();
    let (mut identity, mut others) = (None, None);
    for member in members(request, &ACCEPT_ENCODING) {
        let member = preference(member)?;
        let (name, weight) = match member.iter().position(|byte| *byte == b';') {
            Some(end) => (&member[..end], &member[end + b";q=".len()..]),
            None => (&member[..], &b"1"[..]),
        };
        let is_accepted = weight.iter().any(|digit| (b'1'..=b'9').contains(digit));
        let known = name.strip_prefix(b"x-").unwrap_or(name);
        let is_known = CODINGS.contains(&known);
        let name = if is_known { known } else { name };
        match name {
            b"identity" => identity = Some(is_accepted),
            b"*" => others = Some(is_accepted),
            _ if is_accepted && (is_known || selection.keeps_unknown_codings) => {
                accepted.push(name.to_vec());
            }
            _ => {}
        }
    }
    if others == Some(true) {
        accepted.push(b"*".to_vec());
    }
    if !identity.or(others).unwrap_or(true) {
        accepted.push(REFUSED_IDENTITY.to_vec());
    }
    accepted.sort_unstable();
    accepted.dedup();
    Some(accepted.join(&b", "[..]))
}

/// Returns a list of preferences in the order of their letters: weights order them, not places.
/// `None` if a member is not one.
fn preferences(request: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let mut all = members(request, name).map(preference).collect::<Option<Vec<_>>>()?;
    all.sort_unstable();
    all.dedup();
    Some(all.join(&b", "[..]))
}

/// Returns a member of a list of preferences in lower case and without whitespace; `None` if it is not
/// a token with a weight or without.
fn preference(member: &[u8]) -> Option<Vec<u8>> {
    let mut parts = member.splitn(2, |byte| *byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| is_token(name))?;
    let weight = parts.next();
    let mut text = name.to_ascii_lowercase();
    let Some(weight) = weight.map(<[u8]>::to_ascii_lowercase) else { return Some(text) };
    let value = weight.strip_prefix(b"q=").filter(|value| is_weight(value))?;
    // As good as none: RFC 9110, section 12.4.2.
    if !value.starts_with(b"1") {
        text.extend_from_slice(b";");
        text.extend_from_slice(&weight);
    }
    Some(text)
}

/// Whether this is a number from 0 to 1 with at most three digits behind the point.
fn is_weight(value: &[u8]) -> bool {
    let (whole, rest) = value.split_at(value.len().min(1));
    let digits = match rest.split_first() {
        None => rest,
        Some((b'.', digits)) => digits,
        Some(_) => return false,
    };
    let is_digit = |digit: &u8| if whole == b"1" { *digit == b'0' } else { digit.is_ascii_digit() };
    [&b"0"[..], b"1"].contains(&whole) && digits.len() <= 3 && digits.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    fn are_same(vary: &str, stored: &[(&str, &str)], request: &[(&str, &str)]) -> bool {
        let (stored, request) = (headers(stored), headers(request));
        let vary = headers(&[("vary", vary)]);
        let variant = Variant::of(&stored, &vary).expect("not *");
        let other = Variant::of(&request, &vary).expect("not *");
        assert_eq!(variant.matches(&request), variant == other);
        assert_eq!(variant.key() == other.key(), variant == other);
        variant == other
    }

    #[test]
    fn requests_that_a_variant_answers() {
        let (foo, other) = (&[("foo", "1")][..], &[("foo", "2")][..]);
        let two = &[("foo", "1"), ("bar", "abc")][..];
        for (vary, stored, request, is_same) in [
            ("", foo, other, true),
            ("foo", foo, foo, true),
            ("FOO", foo, two, true),
            ("foo", foo, other, false),
            ("foo", foo, &[], false),
            ("foo", &[], foo, false),
            ("foo", &[], &[("foo", "")], false),
            ("foo, bar", two, two, true),
            ("foo, bar", two, foo, false),
            ("foo, bar", &[("foo", "1,bar")], two, false),
            ("foo", &[("foo", "1, 2")], &[("foo", "1"), ("foo", "2")], true),
            ("foo", &[("foo", "1, 2")], &[("foo", " 1, 2 ")], true),
            ("foo", &[("foo", "1,2")], &[("foo", "1, 2")], false),
            ("foo", &[("foo", "1")], &[("foo", "1,")], false),
            ("foo", &[("foo", "1")], &[("foo", ",1")], false),
            ("foo", &[("foo", "1,")], &[("foo", "1"), ("foo", "")], false),
            ("foo", &[("foo", "1,2")], &[("foo", "1,,2")], false),
            ("origin", &[("origin", "https://a")], &[("origin", "https://a,")], false),
            ("cookie", &[("cookie", "a=1,2")], &[("cookie", "a=1, 2")], false),
            ("user-agent", &[("user-agent", "(a,b)")], &[("user-agent", "(a, b)")], false),
            ("accept", &[("accept", "a/b,c/d")], &[("accept", "a/b , c/d,")], true),
            ("accept", &[("accept", "a/b")], &[("accept", "A/b")], false),
            ("accept", &[("accept", "a/b;c=\"d,e\"")], &[("accept", "a/b;c=\"d, e\"")], false),
            ("foo", &[("foo", "1, 2")], &[("foo", "2, 1")], false),
            ("foo", &[("foo", "a")], &[("foo", "A")], false),
            ("foo", &[("foo", "\"1, 2\"")], &[("foo", "\"1,2\"")], false),
        ] {
            assert_eq!(are_same(vary, stored, request), is_same, "{vary}: {stored:?} {request:?}");
        }
    }

    #[test]
    fn preferences_are_the_same_in_any_order_and_case() {
        for (name, stored, request, is_same) in [
            ("accept-language", "en, de", "de, en", true),
            ("accept-language", "en, de", "eN, De", true),
            ("accept-language", "en, de", " en ,   de", true),
            ("accept-language", "en;q=0.5, de", "de, en ; q=0.5", true),
            ("accept-language", "en;q=1.0, de", "en, de;q=1", true),
            ("accept-language", "en;q=0.5, de", "en, de;q=0.5", false),
            ("accept-language", "en", "en;q=0", false),
            ("accept-language", "en", "e n", false),
            ("accept-language", "en", "en;x=1", false),
            ("accept-language", "en", "en;q=1.0000", false),
            ("accept-language", "en", "en;q=1.001", false),
            ("accept-language", "en;q=0.5", "EN ; Q=0.5", true),
            ("accept-language", "en;q=0.5", "en;q= 0.5", false),
            ("accept-charset", "utf-8, x", "X,UTF-8", true),
        ] {
            let is_found = are_same(name, &[(name, stored)], &[(name, request)]);
            assert_eq!(is_found, is_same, "{name}: {stored} {request}");
        }
    }

    #[test]
    fn codings_are_the_same_if_the_same_ones_are_accepted() {
        for (stored, request, is_same) in [
            ("gzip, br", "br,gzip", true),
            ("gzip, br", "GZIP;q=0.5 , Br;q=1.0", true),
            ("gzip", "gzip;q=0", false),
            ("", "gzip;q=0.000", true),
            ("gzip", "br", false),
            ("gzip", "x-gzip", true),
            ("gzip", "gzip, x1, lzma", true),
            ("", "x1", true),
            ("gzip", "gzip, identity", true),
            ("gzip", "gzip, identity;q=0", false),
            ("gzip, identity;q=0", "gzip, *;q=0", true),
            ("gzip", "gzip, identity, *;q=0", true),
            ("gzip", "gzip, *", false),
            ("*", "*;q=0.1, x", true),
            ("gzip", "g zip", false),
            ("gzip", "gzip;x=1", false),
            ("gzip", "gzip;q=1.001", false),
            ("a b", "a b", true),
        ] {
            let [stored, request] = [stored, request].map(|value| [("accept-encoding", value)]);
            assert_eq!(
                are_same("accept-encoding", &stored, &request),
                is_same,
                "{stored:?} {request:?}"
            );
        }
        // No field at all accepts everything.
        assert!(!are_same("accept-encoding", &[], &[("accept-encoding", "")]));
    }

    #[test]
    fn codings_that_are_not_registered_count_if_they_are_kept() {
        let kept = Selection { keeps_unknown_codings: true, ..Selection::default() };
        for (stored, request, is_same) in [
            ("gzip, lzma", "lzma;q=0.5, GZIP", true),
            ("gzip, lzma", "gzip", false),
            ("gzip, lzma", "gzip, lzma;q=0", false),
            ("x-lzma", "lzma", false),
            ("x-gzip", "gzip", true),
        ] {
            let [stored, request] =
                [stored, request].map(|value| headers(&[("accept-encoding", value)]));
            let vary = headers(&[("vary", "accept-encoding")]);
            let variant = Variant::selected(kept, &stored, &vary).expect("not *");
            assert_eq!(variant.matches_under(kept, &request), is_same, "{stored:?} {request:?}");
        }
    }

    #[test]
    fn cookies_that_are_ignored_select_nothing() {
        let named = IgnoredCookies::Named(vec!["_ga".into(), "b".into()]);
        for (stored, request, [by_none, by_names, by_all]) in [
            (&[][..], &[("cookie", "_ga=1")][..], [false, true, true]),
            (&[("cookie", "_ga=1")], &[("cookie", "_ga=2; b=3")], [false, true, true]),
            (&[("cookie", "a=1; _ga=1")], &[("cookie", "_ga=2;a=1")], [false, true, true]),
            (&[("cookie", "a=1; _ga=1")], &[("cookie", "a=2; _ga=1")], [false, false, true]),
            (&[("cookie", "a=1")], &[("cookie", "_ga=1"), ("cookie", "a=1")], [false, true, true]),
            (&[("cookie", "a=1")], &[], [false, false, true]),
            (&[("cookie", "a=1; c=2")], &[("cookie", "c=2; a=1")], [false, false, true]),
            (&[("cookie", "_gab=1")], &[("cookie", "_gab=2")], [false, false, true]),
            // What is not a pair may be one to the origin.
            (&[("cookie", "a=1;_ga")], &[("cookie", "a=1")], [false, true, true]),
            (&[("cookie", "a=\"x; _ga=1\"")], &[("cookie", "a=\"x")], [false, true, true]),
        ] {
            let (stored, request) = (headers(stored), headers(request));
            let vary = headers(&[("vary", "cookie")]);
            for (ignored, expected) in [
                (IgnoredCookies::default(), by_none),
                (named.clone(), by_names),
                (IgnoredCookies::All, by_all),
            ] {
                let ignored_cookies = Some(&ignored);
                let selection = Selection { ignored_cookies, ..Selection::default() };
                let variant = Variant::selected(selection, &stored, &vary).expect("not *");
                let is_same = variant.matches_under(selection, &request);
                assert_eq!(is_same, expected, "{ignored:?}: {stored:?} {request:?}");
            }
        }
    }

    #[test]
    fn codings_that_sets_accept() {
        for (set, coding, expected) in [
            (None, "br", Some("br")),
            (None, "", Some("identity")),
            (Some(""), "", Some("identity")),
            (Some(""), "gzip", None),
            (Some("br, gzip"), "GZIP", Some("gzip")),
            (Some("br, gzip"), "x-gzip", Some("gzip")),
            (Some("br, gzip"), "zstd", None),
            (Some("*, br"), "zstd", Some("zstd")),
            (Some("gzip, identity;q=0"), "", None),
            (Some("gzip, identity;q=0"), "gzip", Some("gzip")),
            (Some("br, gzip"), "gzip, br", None),
            (Some("g zip, br"), "br", None),
            (Some("br"), "b r", None),
        ] {
            let set = set.map(|set: &str| set.as_bytes().to_vec());
            let fields = [("content-encoding", coding)];
            let response = headers(if coding.is_empty() { &[] } else { &fields });
            let found = accepted_coding(&set, &response);
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{set:?} {coding}");
        }
    }

    #[test]
    fn a_star_answers_nothing_else() {
        for lines in
            [&["*"][..], &["*, *"], &["*", "*"], &[", *"], &["", "*"], &["*, foo"], &["a b"]]
        {
            let fields: Vec<_> = lines.iter().map(|line| ("vary", *line)).collect();
            assert_eq!(Variant::of(&HeaderMap::new(), &headers(&fields)), None, "{lines:?}");
        }
        assert!(Variant::of(&HeaderMap::new(), &headers(&[("vary", "foo, *")])).is_none());
    }

    proptest! {
        #[test]
        fn a_request_is_of_its_own_variant(vary in "[a-c, ]{0,9}", value in "[ -~]{0,20}") {
            let request = headers(&[("a", value.as_str()), ("accept-language", "x")]);
            if let Some(variant) = Variant::of(&request, &headers(&[("vary", vary.as_str())])) {
                prop_assert!(variant.matches(&request));
            }
        }
    }
}
