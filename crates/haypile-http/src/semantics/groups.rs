//! Groups of responses, by which they are invalidated together: `Cache-Groups` and
//! `Cache-Group-Invalidation` (RFC 9875), and `Surrogate-Key`, the older field of content delivery
//! networks.

use http::{HeaderMap, HeaderName, HeaderValue, Method, response};
use sfv::{List, ListEntry, Parser};

use super::invalidation::may_have_changed;
use super::list::joined;
use super::rules::Rules;

const CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
const CACHE_GROUP_INVALIDATION: HeaderName = HeaderName::from_static("cache-group-invalidation");
const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");

impl Rules {
    /// Returns the distinct groups that a response belongs to: the strings of `Cache-Groups`, and in a shared cache the
    /// words of `Surrogate-Key`. A `Cache-Groups` that is not a list of strings is ignored.
    pub fn groups(&self, headers: &HeaderMap) -> Vec<String> {
        let mut groups = strings(headers, &CACHE_GROUPS);
        if self.is_shared() {
            let lines = headers.get_all(SURROGATE_KEY).iter().map(HeaderValue::as_bytes);
            let words = lines.flat_map(|line| line.split(|byte| matches!(byte, b' ' | b'\t')));
            let words = words.filter(|word| !word.is_empty());
            groups.extend(words.map(|word| String::from_utf8_lossy(word).into_owned()));
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Returns the distinct groups of responses that a response invalidates at its origin (`Cache-Group-Invalidation`). A
/// response to a safe method invalidates none, for whatever reason it says so, and neither does an error, after which
/// nothing has changed.
pub fn invalidated_groups(method: &Method, response: &response::Parts) -> Vec<String> {
    if !may_have_changed(method, response) {
        return Vec::new();
    }
    let mut groups = strings(&response.headers, &CACHE_GROUP_INVALIDATION);
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Returns the members of a structured field that is a list of strings; none if it is another. Their
/// parameters mean nothing.
fn strings(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    if !headers.contains_key(name) {
        return Vec::new();
    }
    let list: Option<List> = Parser::new(&joined(headers, name)).parse().ok();
    let string = |entry: &ListEntry| match entry {
        ListEntry::Item(item) => Some(item.bare_item.as_string()?.as_str().to_owned()),
        ListEntry::InnerList(_) => None,
    };
    let strings = list.unwrap_or_default().iter().map(string).collect::<Option<_>>();
    strings.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::Response;
    use proptest::prelude::*;

    use super::*;

    fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn fields_that_name_groups() {
        let many = (0..32).map(|number| format!("\"{number:032}\"")).collect::<Vec<_>>().join(", ");
        let thirty_two: Vec<String> = (0..32).map(|number| format!("{number:032}")).collect();
        let of = |fields: &[(&'static str, &str)]| Rules::shared().groups(&headers(fields));
        for (fields, expected) in [
            (&[][..], &[][..]),
            (&[("cache-groups", "\"b\", \"a\"")], &["a", "b"]),
            (&[("cache-groups", "\"a\""), ("cache-groups", "\"b\", \"a\"")], &["a", "b"]),
            (&[("cache-groups", "\"a\";x=1, \"A b\"")], &["A b", "a"]),
            // Another type of member makes the whole field another.
            (&[("cache-groups", "\"a\", b")], &[]),
            (&[("cache-groups", "\"a\", (\"b\" \"c\")")], &[]),
            (&[("cache-groups", "\"a\", ")], &[]),
            (&[("cache-groups", "")], &[]),
            (&[("surrogate-key", " b  a\tb ")], &["a", "b"]),
            (
                &[("surrogate-key", "a"), ("surrogate-key", "b"), ("cache-groups", "\"b\"")],
                &["a", "b"],
            ),
        ] {
            assert_eq!(of(fields), expected, "{fields:?}");
        }
        // What every cache has to read: RFC 9875, section 2.
        assert_eq!(of(&[("cache-groups", &many)]), thirty_two);
    }

    #[test]
    fn a_private_cache_follows_no_field_of_shared_ones() {
        let fields = headers(&[("surrogate-key", "a"), ("cache-groups", "\"b\"")]);
        assert_eq!(Rules::private().groups(&fields), ["b"]);
    }

    #[test]
    fn only_what_may_have_changed_something_invalidates() {
        let invalidated = |method: &str, status: u16| {
            let field = ("cache-group-invalidation", "\"b\", \"a\";x, \"b\"");
            let response = Response::builder().status(status).header(field.0, field.1);
            let (response, ()) = response.body(()).expect("a response").into_parts();
            invalidated_groups(&method.parse().expect("a method"), &response)
        };
        for method in ["POST", "PUT", "DELETE", "UNKNOWN"] {
            for status in [200, 204, 303] {
                assert_eq!(invalidated(method, status), ["a", "b"], "{method} {status}");
            }
            for status in [400, 500] {
                assert!(invalidated(method, status).is_empty(), "{method} {status}");
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE"] {
            assert!(invalidated(method, 200).is_empty(), "{method}");
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let names = [CACHE_GROUPS, SURROGATE_KEY];
                let fields = names.map(|name| (name, value.clone())).into_iter().collect();
                let _ = Rules::shared().groups(&fields);
            }
        }
    }
}
