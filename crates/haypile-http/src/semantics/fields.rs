//! Fields that belong to one connection, and fields that are not stored.

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, COOKIE, DATE, ETAG, EXPIRES, HOST,
    LAST_MODIFIED, LOCATION, PRAGMA, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, SET_COOKIE, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, VIA,
};
use http::{HeaderMap, HeaderName};

use super::list::members;
use super::rules::Rules;

/// RFC 9110, section 7.6.1, and what was customary before it.
static HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The fields that are for all recipients, so that `Connection` cannot name them (RFC 9110, section
/// 7.6.1). Without one in a request, a client would make the cache ask for another response than the
/// one that it believes to get; without one in a response, the cache would store what it must not, or
/// for longer.
static END_TO_END: [HeaderName; 23] = [
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    HeaderName::from_static("cache-group-invalidation"),
    HeaderName::from_static("cache-groups"),
    HeaderName::from_static("cdn-cache-control"),
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    ETAG,
    EXPIRES,
    HOST,
    LAST_MODIFIED,
    LOCATION,
    PRAGMA,
    SET_COOKIE,
    HeaderName::from_static("surrogate-key"),
    VARY,
    VIA,
];

/// Removes the header fields that are for one connection only (hop-by-hop): the known ones, and those that `Connection`
/// may and does name.
pub fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let hop_by_hop = HopByHop::of(headers);
    remove_those(headers, |name| hop_by_hop.contains(name));
}

/// The names of a message's header fields that are for one connection only.
pub(crate) struct HopByHop {
    /// The fields that `Connection` names and may name.
    named: Vec<HeaderName>,
}

impl HopByHop {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let named = members(headers, &CONNECTION)
            // Those that are known need no list: most requests name one of them.
            .filter(|name| !is_hop_by_hop(name))
            .filter_map(|name| HeaderName::from_bytes(name).ok())
            .filter(|name| !END_TO_END.contains(name));
        Self { named: named.collect() }
    }

    pub(crate) fn contains(&self, name: &HeaderName) -> bool {
        HOP_BY_HOP.contains(name) || self.named.contains(name)
    }
}

/// Whether a header field is for one connection only, whatever `Connection` names.
fn is_hop_by_hop(name: &[u8]) -> bool {
    HOP_BY_HOP.iter().any(|known| name.eq_ignore_ascii_case(known.as_str().as_bytes()))
}

/// Removes those header fields of a message that `is_meant` selects. Few messages have one, so that a search is faster
/// than removing each possible name.
pub(crate) fn remove_those(headers: &mut HeaderMap, is_meant: impl Fn(&HeaderName) -> bool) {
    while let Some(name) = headers.keys().find(|name| is_meant(name)).cloned() {
        headers.remove(&name);
    }
}

/// Returns the header fields of a response that a cache stores: not those of the connection, nor those that the
/// response lets it reuse only after validation (`no-cache="x"`) or, in a shared cache, only for one user
/// (`private="x"`).
pub fn storable_fields(rules: &Rules, headers: &HeaderMap) -> HeaderMap {
    let directives = rules.control(headers).directives;
    let mut stored = headers.clone();
    remove_hop_by_hop(&mut stored);
    // Trailers are not stored.
    stored.remove(TRAILER);
    let private = directives.private.fields().iter().filter(|_| rules.is_shared());
    for name in directives.no_cache.fields().iter().chain(private) {
        stored.remove(name);
    }
    stored
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    #[test]
    fn fields_of_the_connection_are_removed() {
        let mut found = headers(&[
            ("connection", "a, Keep-Alive"),
            ("connection", "b, host, cookie, authorization, Cache-Control, vary, not a name"),
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("host", "h"),
            ("cookie", "x=y"),
            ("authorization", "z"),
            ("cache-control", "no-store"),
            ("vary", "c"),
            ("keep-alive", "1"),
            ("proxy-authenticate", "1"),
            ("proxy-authentication-info", "1"),
            ("proxy-authorization", "1"),
            ("proxy-connection", "1"),
            ("te", "1"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "1"),
        ]);
        remove_hop_by_hop(&mut found);
        let left = [
            ("c", "3"),
            ("host", "h"),
            ("cookie", "x=y"),
            ("authorization", "z"),
            ("cache-control", "no-store"),
            ("vary", "c"),
        ];
        assert_eq!(found, headers(&left));
    }

    #[test]
    fn fields_of_one_user_are_not_stored() {
        let fields = [
            ("cache-control", "private=\"a\", no-cache=\"b, set-cookie\", max-age=9"),
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("set-cookie", "x=y"),
            ("set-cookie", "z=w"),
        ];
        let shared = storable_fields(&Rules::shared(), &headers(&fields));
        assert_eq!(shared, headers(&[fields[0], fields[3]]));
        let private = storable_fields(&Rules::private(), &headers(&fields));
        assert_eq!(private, headers(&[fields[0], fields[1], fields[3]]));
    }
}
