//! Responses that depend on more of the request than its target: RFC 9111, section 4.1.

use std::collections::BTreeSet;

use http::header::{ACCEPT_ENCODING, ACCEPT_LANGUAGE, VARY};
use http::{HeaderMap, HeaderName};

use super::list::members;

/// The request that a stored response answers, as far as `Vary` selects it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant(Vec<(HeaderName, Option<Vec<u8>>)>);

impl Variant {
    /// Returns the selecting fields of a request, in the order of their names, as far as the `Vary`
    /// of its response names them. `None` for a response that answers only this one request (`*`),
    /// or names something that is not a field.
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

    /// Whether a request has the same selecting fields.
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.0.iter().all(|(name, value)| *value == normalized(request, name))
    }

    /// Returns the selecting fields and their normalised values, in the order of their names.
    pub(crate) fn fields(&self) -> &[(HeaderName, Option<Vec<u8>>)] {
        &self.0
    }

    /// Returns the variant that [`fields`](Self::fields) are of.
    pub(crate) fn from_fields(fields: Vec<(HeaderName, Option<Vec<u8>>)>) -> Self {
        Self(fields)
    }

    /// Returns bytes that are the same for the same variant, and only then.
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
fn normalized(request: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    if !request.contains_key(name) {
        return None;
    }
    let mut all: Vec<Vec<u8>> = if *name == ACCEPT_ENCODING || *name == ACCEPT_LANGUAGE {
        members(request, name).map(preference).collect()
    } else {
        members(request, name).map(<[u8]>::to_vec).collect()
    };
    if *name == ACCEPT_ENCODING || *name == ACCEPT_LANGUAGE {
        // Weights order them, not places.
        all.sort_unstable();
        all.dedup();
    }
    Some(all.join(&b","[..]))
}

/// Returns a member of a list of preferences in lower case and without whitespace.
fn preference(member: &[u8]) -> Vec<u8> {
    let text = member.iter().filter(|byte| !byte.is_ascii_whitespace());
    let text: Vec<u8> = text.map(u8::to_ascii_lowercase).collect();
    // As good as none: RFC 9110, section 12.4.2.
    for one in [&b";q=1"[..], b";q=1.", b";q=1.0", b";q=1.00", b";q=1.000"] {
        if let Some(rest) = text.strip_suffix(one) {
            return rest.to_vec();
        }
    }
    text
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
            ("foo", &[("foo", "1,2")], &[("foo", " 1, 2 ")], true),
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
            ("accept-encoding", "gzip, br", "br,gzip", true),
            ("accept-encoding", "gzip", "gzip;q=0", false),
            ("accept-encoding", "gzip", "br", false),
        ] {
            let is_found = are_same(name, &[(name, stored)], &[(name, request)]);
            assert_eq!(is_found, is_same, "{name}: {stored} {request}");
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
