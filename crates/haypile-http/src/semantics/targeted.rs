//! Cache control for some caches only: RFC 9213.

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

use super::directives::{ResponseDirectives, Scope};
use super::list::joined;
use super::time::LONGEST;

/// Parses a targeted cache-control field of a response, such as `CDN-Cache-Control`. Returns `None`
/// if it is absent, empty or invalid, so that it is ignored.
pub(super) fn read(headers: &HeaderMap, name: &HeaderName) -> Option<ResponseDirectives> {
    // Most responses have none.
    if !headers.contains_key(name) {
        return None;
    }
    let dictionary: Dictionary = Parser::new(&joined(headers, name)).parse().ok()?;
    let mut directives = ResponseDirectives::default();
    for (key, entry) in &dictionary {
        let ListEntry::Item(item) = entry else { return None };
        let item = &item.bare_item;
        match key.as_str() {
            "no-store" => directives.no_store = item.as_boolean()?,
            "no-cache" => directives.no_cache = scope(item)?,
            "private" => directives.private = scope(item)?,
            "public" => directives.public = item.as_boolean()?,
            "must-revalidate" => directives.must_revalidate = item.as_boolean()?,
            "proxy-revalidate" => directives.proxy_revalidate = item.as_boolean()?,
            "must-understand" => directives.must_understand = item.as_boolean()?,
            "no-transform" => directives.no_transform = item.as_boolean()?,
            "immutable" => directives.immutable = item.as_boolean()?,
            "max-age" => directives.max_age = Some(duration(item)?),
            "s-maxage" => directives.s_maxage = Some(duration(item)?),
            "stale-while-revalidate" => directives.stale_while_revalidate = Some(duration(item)?),
            "stale-if-error" => directives.stale_if_error = Some(duration(item)?),
            _ => {}
        }
    }
    (!dictionary.is_empty()).then_some(directives)
}

fn duration(item: &BareItem) -> Option<Duration> {
    // A negative one is over already.
    let seconds = u64::try_from(i64::from(item.as_integer()?)).unwrap_or(0);
    Some(Duration::from_secs(seconds).min(LONGEST))
}

fn scope(item: &BareItem) -> Option<Scope> {
    if let Some(is_set) = item.as_boolean() {
        return Some(if is_set { Scope::Everything } else { Scope::Nothing });
    }
    Some(Scope::named(item.as_string()?.as_str().as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    const NAME: HeaderName = HeaderName::from_static("cdn-cache-control");

    fn of(lines: &[&str]) -> Option<ResponseDirectives> {
        let value = |line: &&str| HeaderValue::from_str(line).expect("a value");
        let headers: HeaderMap = lines.iter().map(|line| (NAME, value(line))).collect();
        read(&headers, &NAME)
    }

    #[test]
    fn durations() {
        let of = |line: &str| of(&[line]).map(|directives| directives.max_age);
        for (line, expected) in [
            ("max-age=10", Some(Some(10))),
            ("foobar, max-age=10", Some(Some(10))),
            ("max-age=10;x=y", Some(Some(10))),
            ("max-age=99999999999", Some(Some(1 << 31))),
            ("max-age=-5", Some(Some(0))),
            ("max-age=1, max-age=10", Some(Some(10))),
            ("public", Some(None)),
            ("", None),
            ("max-age=10, &&&&&", None),
            ("max-age=\"10\"", None),
            ("max-age=1.5", None),
            ("max-age", None),
            ("max-age =10", None),
            ("max-age= 10", None),
            ("MaX-aGe=10", None),
            ("max-age=(1 2)", None),
            ("no-store=1", None),
        ] {
            let expected = expected.map(|age| age.map(Duration::from_secs));
            assert_eq!(of(line), expected, "{line}");
        }
    }

    #[test]
    fn flags_and_scopes() {
        let all = "no-store, public, must-revalidate, proxy-revalidate, must-understand, \
                   no-transform, immutable, private=?0, no-cache=\"a, b\"";
        let fields = ["a", "b"].map(HeaderName::from_static).to_vec();
        let expected = ResponseDirectives {
            no_store: true,
            public: true,
            must_revalidate: true,
            proxy_revalidate: true,
            must_understand: true,
            no_transform: true,
            immutable: true,
            no_cache: Scope::Fields(fields),
            ..ResponseDirectives::default()
        };
        assert_eq!(of(&[all]), Some(expected));
        assert_eq!(of(&["no-store=?0", "private"]).expect("valid").private, Scope::Everything);
    }

    #[test]
    fn a_field_that_is_not_there() {
        assert_eq!(of(&[]), None);
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let _ = read(&[(NAME, value)].into_iter().collect(), &NAME);
            }
        }
    }
}
