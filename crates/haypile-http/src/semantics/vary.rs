//! Responses that depend on more of the request than its target: RFC 9111, section 4.1.

use std::collections::BTreeSet;

use http::header::{ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, VARY};
use http::{HeaderMap, HeaderName};

use super::list::{is_token, members};

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

/// The values of the request fields in `Vary`, for which a stored response is the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant(Vec<(HeaderName, Option<Vec<u8>>)>);

impl Variant {
    /// Returns the values of a request's fields that the `Vary` of its response names. `None` for a
    /// response that answers only this one request (`*`), or if `Vary` is invalid.
    pub fn of(request: &HeaderMap, response: &HeaderMap) -> Option<Self> {
        let names: Result<BTreeSet<_>, _> = members(response, &VARY)
            .map(|name| HeaderName::from_bytes(name).map(|name| name.as_str().to_owned()))
            .collect();
        let names = names.ok().filter(|names| !names.contains("*"))?;
        let field = |name: &String| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            let value = normalized(request, &name);
            Some((name, value))
        };
        names.iter().map(field).collect::<Option<_>>().map(Self)
    }

    /// Returns the values of a request's fields with these sorted names.
    pub(crate) fn of_fields(request: &HeaderMap, names: &[HeaderName]) -> Self {
        let field = |name: &HeaderName| (name.clone(), normalized(request, name));
        Self(names.iter().map(field).collect())
    }

    /// Whether a request has the same values of the fields in `Vary`.
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| *value == normalized(request, name))
    }

    /// Returns the fields in `Vary` with their normalized values, ordered by name.
    pub(crate) fn fields(&self) -> &[(HeaderName, Option<Vec<u8>>)] {
        &self.0
    }

    /// Returns the variant that has these [`fields`](Self::fields).
    pub(crate) fn from_fields(fields: Vec<(HeaderName, Option<Vec<u8>>)>) -> Self {
        Self(fields)
    }

    /// Returns bytes that are equal exactly for equal variants.
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

/// Returns the value of a field in a form that is the same wherever its meaning is known to be.
/// `None` if it is not there.
///
/// Only a list may be written in several ways. An origin takes a field for whatever it wants, so that
/// `Origin: https://a.example,` may have another answer than the same without the comma.
fn normalized(request: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    if !request.contains_key(name) {
        return None;
    }
    let list = if *name == ACCEPT {
        media_ranges(request)
    } else if *name == ACCEPT_ENCODING {
        codings(request)
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
fn codings(request: &HeaderMap) -> Option<Vec<u8>> {
    let mut accepted = Vec::new();
    let (mut identity, mut others) = (None, None);
    for member in members(request, &ACCEPT_ENCODING) {
        let member = preference(member)?;
        let (name, weight) = match member.iter().position(|byte| *byte == b';') {
            Some(end) => (&member[..end], &member[end + b";q=".len()..]),
            None => (&member[..], &b"1"[..]),
        };
        let is_accepted = weight.iter().any(|digit| (b'1'..=b'9').contains(digit));
        let name = name.strip_prefix(b"x-").unwrap_or(name);
        match name {
            b"identity" => identity = Some(is_accepted),
            b"*" => others = Some(is_accepted),
            _ if is_accepted && CODINGS.contains(&name) => accepted.push(name.to_vec()),
            _ => {}
        }
    }
    if others == Some(true) {
        accepted.push(b"*".to_vec());
    }
    if !identity.or(others).unwrap_or(true) {
        accepted.push(b"identity;q=0".to_vec());
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
