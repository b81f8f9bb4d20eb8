//! The directives of `Cache-Control`: RFC 9111, section 5.2.

use std::time::Duration;

use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderMap, HeaderName};

use super::list::{is_token, members, unquoted};
use super::time::{LONGEST, seconds};

/// The part of a response that a `Cache-Control` directive applies to: nothing, some header fields,
/// or everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is not there.
    #[default]
    Nothing,
    /// The directive is about these fields.
    Fields(Vec<HeaderName>),
    /// The directive is about the whole response.
    Everything,
}

impl Scope {
    /// Whether the `Cache-Control` directive applies to the whole response.
    pub fn is_everything(&self) -> bool {
        *self == Self::Everything
    }

    /// Returns the header fields that the `Cache-Control` directive names; none if it applies to
    /// the whole response.
    pub fn fields(&self) -> &[HeaderName] {
        if let Self::Fields(fields) = self { fields } else { &[] }
    }

    /// Widens the scope (the header fields or everything) of a `Cache-Control` directive by that of
    /// another directive of the same name.
    pub(super) fn widen(&mut self, other: Self) {
        *self = match (std::mem::take(self), other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::Nothing, other) => other,
            (own, Self::Nothing) => own,
            (Self::Fields(mut own), Self::Fields(more)) => {
                own.extend(more);
                Self::Fields(own)
            }
        };
    }

    /// Parses the names of header fields in the value of a `Cache-Control` directive. An empty or
    /// invalid list means the whole response.
    pub(super) fn named(list: &[u8]) -> Self {
        let names = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let names: Result<Vec<_>, _> =
            names.filter(|name| !name.is_empty()).map(HeaderName::from_bytes).collect();
        match names {
            Ok(names) if !names.is_empty() => Self::Fields(names),
            _ => Self::Everything,
        }
    }
}

/// The `Cache-Control` directives of a response. Of contradictory or repeated ones, the stricter
/// applies; a duration that cannot be parsed is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a directive")]
pub struct ResponseDirectives {
    /// `no-store`: the response may not be stored.
    pub no_store: bool,
    /// `no-cache`: the response, or the named header fields of it, may not be reused without
    /// validation.
    pub no_cache: Scope,
    /// `private`: the response, or the named header fields of it, are for one user.
    pub private: Scope,
    /// `public`: the response may be stored even if that needs a permission, such as after
    /// `Authorization`.
    pub public: bool,
    /// `must-revalidate`: once the response is stale, it may not be reused without validation.
    pub must_revalidate: bool,
    /// `proxy-revalidate`: as [`must_revalidate`](Self::must_revalidate), in shared caches.
    pub proxy_revalidate: bool,
    /// `must-understand`: the response may be stored only by caches that understand its status;
    /// they ignore [`no_store`](Self::no_store).
    pub must_understand: bool,
    /// `no-transform`: the content of the response may not be transformed.
    pub no_transform: bool,
    /// `immutable`: the response does not change while it is fresh (RFC 8246).
    pub immutable: bool,
    /// `max-age`: the time for which the response is fresh.
    pub max_age: Option<Duration>,
    /// `s-maxage`: the time for which the response is fresh in shared caches.
    pub s_maxage: Option<Duration>,
    /// `stale-while-revalidate`: the time after its lifetime for which the response may be reused
    /// while it is revalidated (RFC 5861).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error`: the time after its lifetime for which the response may be reused if
    /// revalidation fails (RFC 5861).
    pub stale_if_error: Option<Duration>,
}

impl ResponseDirectives {
    /// Parses the `Cache-Control` directives of a response from all lines of that field.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut directives = Self::default();
        for member in members(headers, &CACHE_CONTROL) {
            let (name, argument) = directive(member);
            match name.as_ref() {
                b"no-store" => directives.no_store = true,
                b"no-cache" => directives.no_cache.widen(argument.scope()),
                b"private" => directives.private.widen(argument.scope()),
                b"public" => directives.public = true,
                b"must-revalidate" => directives.must_revalidate = true,
                b"proxy-revalidate" => directives.proxy_revalidate = true,
                b"must-understand" => directives.must_understand = true,
                b"no-transform" => directives.no_transform = true,
                b"immutable" => directives.immutable = true,
                b"max-age" => least(&mut directives.max_age, argument.seconds()),
                b"s-maxage" => least(&mut directives.s_maxage, argument.seconds()),
                b"stale-while-revalidate" => {
                    least(&mut directives.stale_while_revalidate, argument.seconds());
                }
                b"stale-if-error" => least(&mut directives.stale_if_error, argument.seconds()),
                _ => {}
            }
        }
        directives
    }
}

/// The `Cache-Control` directives of a request. Of repeated ones, the stricter applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a directive")]
pub struct RequestDirectives {
    /// `no-cache`: a stored response needs validation. `Pragma: no-cache` means the same without
    /// `Cache-Control`.
    pub no_cache: bool,
    /// `no-store`: the response to the request may not be stored.
    pub no_store: bool,
    /// `only-if-cached`: the client wants only a stored response.
    pub only_if_cached: bool,
    /// `no-transform`: the content of the response may not be transformed.
    pub no_transform: bool,
    /// `max-age`: the highest age of a stored response that the client accepts.
    pub max_age: Option<Duration>,
    /// `min-fresh`: the time for which a stored response has to stay fresh from now on.
    pub min_fresh: Option<Duration>,
    /// `max-stale`: the longest time for which a stored response may have been stale when it is
    /// served.
    pub max_stale: Option<Duration>,
    /// `stale-if-error`: the longest time for which a response may have been stale when it is
    /// served because revalidation fails (RFC 5861).
    pub stale_if_error: Option<Duration>,
}

impl RequestDirectives {
    /// Parses the `Cache-Control` directives of a request from all lines of that field.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut directives = Self::default();
        for member in members(headers, &CACHE_CONTROL) {
            let (name, argument) = directive(member);
            match name.as_ref() {
                b"no-cache" => directives.no_cache = true,
                b"no-store" => directives.no_store = true,
                b"only-if-cached" => directives.only_if_cached = true,
                b"no-transform" => directives.no_transform = true,
                b"max-age" => least(&mut directives.max_age, argument.seconds()),
                b"min-fresh" => {
                    let wanted = argument.seconds().unwrap_or(LONGEST);
                    directives.min_fresh = directives.min_fresh.max(Some(wanted));
                }
                b"max-stale" if argument == Argument::None => {
                    directives.max_stale.get_or_insert(LONGEST);
                }
                b"max-stale" => least(&mut directives.max_stale, argument.seconds()),
                b"stale-if-error" => least(&mut directives.stale_if_error, argument.seconds()),
                _ => {}
            }
        }
        if !headers.contains_key(CACHE_CONTROL) {
            let is_no_cache = |member: &[u8]| member.eq_ignore_ascii_case(b"no-cache");
            directives.no_cache = members(headers, &PRAGMA).any(is_no_cache);
        }
        directives
    }
}

/// Lowers a duration; one that cannot be read is zero.
fn least(own: &mut Option<Duration>, other: Option<Duration>) {
    let other = other.unwrap_or_default();
    *own = Some(own.map_or(other, |own| own.min(other)));
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument<'a> {
    None,
    Token(&'a [u8]),
    Quoted(Vec<u8>),
    Invalid,
}

impl Argument<'_> {
    fn seconds(&self) -> Option<Duration> {
        match self {
            Self::Token(text) => seconds(text),
            Self::Quoted(text) => seconds(text),
            Self::None | Self::Invalid => None,
        }
    }

    /// Returns the fields of a quoted list; whatever else there is means everything.
    fn scope(&self) -> Scope {
        if let Self::Quoted(list) = self { Scope::named(list) } else { Scope::Everything }
    }
}

/// Splits a directive into its name, in lower case, and its argument. Whitespace where none belongs
/// makes the argument invalid, and does not hide the name.
fn directive(member: &[u8]) -> (Name, Argument<'_>) {
    let ends_name = |byte: &u8| *byte == b'=' || byte.is_ascii_whitespace();
    let end = member.iter().position(ends_name).unwrap_or(member.len());
    let (name, rest) = member.split_at(end);
    let argument = match rest.split_first() {
        None => Argument::None,
        Some((b'=', text)) => match unquoted(text) {
            Some(text) => Argument::Quoted(text),
            None if is_token(text) => Argument::Token(text),
            None => Argument::Invalid,
        },
        Some(_) => Argument::Invalid,
    };
    (Name::of(name), argument)
}

/// The name of a directive in lower case. None that means anything is longer.
struct Name {
    bytes: [u8; 24],
    length: usize,
}

impl Name {
    fn of(name: &[u8]) -> Self {
        let mut bytes = [0; 24];
        // An empty name means nothing either.
        let length = if name.len() <= bytes.len() { name.len() } else { 0 };
        bytes[..length].copy_from_slice(&name[..length]);
        bytes.make_ascii_lowercase();
        Self { bytes, length }
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(lines: &[&str]) -> HeaderMap {
        let value = |line: &&str| HeaderValue::from_str(line).expect("a value");
        lines.iter().map(|line| (CACHE_CONTROL, value(line))).collect()
    }

    fn response(line: &str) -> ResponseDirectives {
        ResponseDirectives::read(&headers(&[line]))
    }

    fn request(line: &str) -> RequestDirectives {
        RequestDirectives::read(&headers(&[line]))
    }

    fn named(names: &[&'static str]) -> Scope {
        Scope::Fields(names.iter().map(|name| HeaderName::from_static(name)).collect())
    }

    #[test]
    fn durations_of_responses() {
        for (line, expected) in [
            ("max-age=3600", Some(3600)),
            ("MaX-aGe=3600", Some(3600)),
            ("foobar, max-age=3600", Some(3600)),
            ("max-age=\"3600\"", Some(3600)),
            ("max-age=003600", Some(3600)),
            ("max-age=99999999999", Some(1 << 31)),
            ("max-age=1800, max-age=1", Some(1)),
            ("max-age=1, max-age=1800", Some(1)),
            ("max-age=1, max-age=x", Some(0)),
            ("extension=\"max-age=3600\", max-age=1", Some(1)),
            ("max-age=1, extension=\"max-age=3600\"", Some(1)),
            ("extension=\"max-age=3600\"", None),
            ("", None),
            ("max-age", Some(0)),
            ("max-age=", Some(0)),
            ("max-age =3600", Some(0)),
            ("max-age= 3600", Some(0)),
            ("max-age='3600'", Some(0)),
            ("max-age=-3600", Some(0)),
            ("max-age=3600.0", Some(0)),
            ("max-age=a3600", Some(0)),
            ("max-age=3600a", Some(0)),
            ("max-age=3600 s", Some(0)),
            ("max-age 3600", Some(0)),
        ] {
            assert_eq!(response(line).max_age, expected.map(Duration::from_secs), "{line}");
        }
        let two = ResponseDirectives::read(&headers(&["s-maxage=9", "max-age=4, s-maxage=7"]));
        let durations = (two.max_age, two.s_maxage);
        assert_eq!(durations, (Some(Duration::from_secs(4)), Some(Duration::from_secs(7))));
    }

    #[test]
    fn scopes() {
        for (line, expected) in [
            ("no-cache", Scope::Everything),
            ("No-CaChE", Scope::Everything),
            ("no-cache=\"a\"", named(&["a"])),
            ("no-cache=\"a, B,\"", named(&["a", "b"])),
            ("no-cache=\"a\", no-cache=\"b\"", named(&["a", "b"])),
            ("no-cache=\"a\", no-cache", Scope::Everything),
            ("no-cache, no-cache=\"a\"", Scope::Everything),
            ("no-cache=\"\"", Scope::Everything),
            ("no-cache=\"a b\"", Scope::Everything),
            ("no-cache=a", Scope::Everything),
            ("no-cache=\"a", Scope::Everything),
            ("no-cache;x", Scope::Nothing),
            ("no-cache x", Scope::Everything),
            ("no-cache = x", Scope::Everything),
            ("max-age=1", Scope::Nothing),
        ] {
            assert_eq!(response(line).no_cache, expected, "{line}");
        }
        assert_eq!(response("private=\"set-cookie\"").private, named(&["set-cookie"]));
    }

    #[test]
    fn flags_of_responses() {
        let all = "no-store, public, must-revalidate, proxy-revalidate, must-understand, \
                   no-transform, immutable";
        let read = response(all);
        let expected = ResponseDirectives {
            no_store: true,
            public: true,
            must_revalidate: true,
            proxy_revalidate: true,
            must_understand: true,
            no_transform: true,
            immutable: true,
            ..ResponseDirectives::default()
        };
        assert_eq!(read, expected);
        assert!(response("No-StOrE=\"x\"").no_store);
        assert!(!response("x=\"no-store\"").no_store);
        assert!(response("x=\"no-store, no-store").no_store, "the quote is never closed");
    }

    #[test]
    fn directives_of_requests() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(request("max-age=5, max-age=3").max_age, seconds(3));
        assert_eq!(request("max-age=x").max_age, seconds(0));
        assert_eq!(request("min-fresh=5, min-fresh=3").min_fresh, seconds(5));
        assert_eq!(request("min-fresh=x").min_fresh, Some(LONGEST));
        assert_eq!(request("max-stale").max_stale, Some(LONGEST));
        assert_eq!(request("max-stale, max-stale=3").max_stale, seconds(3));
        assert_eq!(request("max-stale=3, max-stale").max_stale, seconds(3));
        assert_eq!(request("max-stale=x").max_stale, seconds(0));
        assert_eq!(request("stale-if-error=4").stale_if_error, seconds(4));
        assert!(request("NO-cache").no_cache && request("no-store").no_store);
        assert!(request("only-if-cached").only_if_cached && request("no-transform").no_transform);
    }

    #[test]
    fn pragma_counts_where_there_is_no_cache_control() {
        let mut headers = HeaderMap::new();
        headers.insert(PRAGMA, HeaderValue::from_static("x, No-Cache"));
        assert!(RequestDirectives::read(&headers).no_cache);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=1"));
        assert!(!RequestDirectives::read(&headers).no_cache);
    }

    proptest! {
        #[test]
        fn whatever_stands_around_it_no_store_holds(
            before in "[ -~]{0,20}",
            after in "[ -~]{0,20}",
        ) {
            prop_assume!(!before.contains('"'));
            let directives = response(&format!("{before}, no-store, {after}"));
            prop_assert!(directives.no_store);
        }

        #[test]
        fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(value) = HeaderValue::from_bytes(&line) {
                let headers: HeaderMap = [(CACHE_CONTROL, value)].into_iter().collect();
                let _ = (ResponseDirectives::read(&headers), RequestDirectives::read(&headers));
            }
        }
    }
}
