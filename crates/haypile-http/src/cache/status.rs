//! The `Cache-Status` field of responses: RFC 9211.

use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The field that says it.
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
/// Room for most of them.
const USUAL_BYTES: usize = 64;

/// A report on how a cache handled a request, for the response's `Cache-Status` field (RFC 9211). Each response has it
/// as an extension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The reason why the request went to the origin; `None` if it was answered from the cache.
    pub forwarded: Option<Forwarded>,
    /// The status code of the origin's response, if it differs from that of the response to the client.
    pub origin_status: Option<u16>,
    /// Whether the cache began to store the origin's response.
    pub is_stored: bool,
    /// Whether the request waited for the response to another request, instead of going to the origin.
    pub is_collapsed: bool,
    /// The time for which the stored response is still fresh, in seconds; negative if it is stale. `None` for any other
    /// response.
    pub ttl: Option<i64>,
    /// The URL scheme of the store's level that had the response, such as `memory`; `None` if the store has only one
    /// level.
    pub level: Option<Arc<str>>,
    /// Further information on the handling of the request, such as the reason why the response was not stored.
    pub detail: Option<String>,
}

/// The reason why a request went to the origin instead of being answered from the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Forwarded {
    /// Requests of this kind are not answered from the cache.
    Bypass,
    /// Requests of this method are not answered from the cache.
    Method,
    /// The cache has no response to this target.
    UriMiss,
    /// The cache has responses to this target, but none to a request with these fields.
    VaryMiss,
    /// The request forbids the use of a stored response.
    Request,
    /// The stored response is stale.
    Stale,
    /// The request asks for a part of the response only.
    Partial,
}

impl Status {
    /// Returns the `Cache-Status` of a request that was forwarded to the origin.
    pub(crate) fn forwarded(why: Forwarded) -> Self {
        Self { forwarded: Some(why), ..Self::default() }
    }

    /// Returns the `Cache-Status` of a response that comes neither from the cache nor from an
    /// origin. RFC 9211 has none for it, but users ask which of several servers refused them.
    pub(crate) fn refused(detail: &str) -> Self {
        Self { detail: Some(detail.to_owned()), ..Self::default() }
    }

    /// Returns the `Cache-Status` of a request that was forwarded to an origin and got no response.
    #[cfg(feature = "proxy")]
    pub(crate) fn failed(why: Forwarded, detail: &str) -> Self {
        Self { forwarded: Some(why), ..Self::refused(detail) }
    }

    /// Whether the response is the cache's own: neither a stored one nor an origin's.
    #[cfg(feature = "proxy")]
    pub(crate) fn is_own(&self) -> bool {
        self.ttl.is_none() && self.origin_status.is_none()
    }

    /// Returns the `Cache-Status` of a stored response that the cache serves, given the response's freshness lifetime
    /// and age.
    pub(super) fn hit(lifetime: Duration, age: Duration) -> Self {
        let stale_for = age.saturating_sub(lifetime);
        // Begun seconds count whole, so that the sign says whether it is fresh.
        let seconds = |duration: Duration| {
            let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
            i64::try_from(seconds.max(1)).unwrap_or(i64::MAX)
        };
        let ttl = match lifetime.checked_sub(age) {
            Some(left) if !left.is_zero() => seconds(left),
            _ => -seconds(stale_for),
        };
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// Appends the `Cache-Status` to the header fields of a response, after those of earlier caches.
    pub(super) fn append_to(&self, headers: &mut HeaderMap) {
        let mut text = String::with_capacity(USUAL_BYTES);
        let _ = self.write_to(&mut text);
        if let Ok(value) = HeaderValue::try_from(text) {
            headers.append(CACHE_STATUS, value);
        }
    }

    /// Writes the text of the field. Not by a formatter: each hit has one.
    fn write_to(&self, out: &mut impl Write) -> fmt::Result {
        out.write_str("haypile")?;
        match self.forwarded {
            None if self.ttl.is_some() => out.write_str("; hit")?,
            None => {}
            Some(why) => {
                out.write_str("; fwd=")?;
                out.write_str(why.token())?;
            }
        }
        if let Some(status) = self.origin_status {
            out.write_str("; fwd-status=")?;
            out.write_str(itoa::Buffer::new().format(status))?;
        }
        if let Some(ttl) = self.ttl {
            out.write_str("; ttl=")?;
            out.write_str(itoa::Buffer::new().format(ttl))?;
        }
        for (is_so, token) in [(self.is_stored, "; stored"), (self.is_collapsed, "; collapsed")] {
            if is_so {
                out.write_str(token)?;
            }
        }
        match (&self.level, &self.detail) {
            // A token, as the standard's own example has it.
            (Some(level), None) => {
                out.write_str("; detail=")?;
                out.write_str(level)?;
            }
            (_, Some(detail)) => {
                // Of a string's letters these two stand for something else: RFC 9651, section 3.3.3.
                let detail = detail.replace(['"', '\\'], "'");
                write!(out, "; detail=\"{detail}\"")?;
            }
            (None, None) => {}
        }
        Ok(())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(formatter)
    }
}

impl Forwarded {
    /// Returns the reason's name in the `Cache-Status` field, such as `uri-miss`.
    pub fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_as_text() {
        let hit = Status::hit(Duration::from_mins(1), Duration::from_secs(75));
        assert_eq!(hit.to_string(), "haypile; hit; ttl=-15");
        let from_file = Status { level: Some("file".into()), ..hit };
        assert_eq!(from_file.to_string(), "haypile; hit; ttl=-15; detail=file");
        let refused = Status::refused("only-if-cached");
        assert_eq!(refused.to_string(), "haypile; detail=\"only-if-cached\"");
        let mut miss = Status::forwarded(Forwarded::UriMiss);
        assert_eq!(miss.to_string(), "haypile; fwd=uri-miss");
        miss.origin_status = Some(200);
        (miss.is_stored, miss.is_collapsed) = (true, true);
        miss.detail = Some("a \"b\\".into());
        let expected = "haypile; fwd=uri-miss; fwd-status=200; stored; collapsed; detail=\"a 'b'\"";
        assert_eq!(miss.to_string(), expected);
    }

    #[test]
    fn the_sign_says_whether_a_response_is_fresh() {
        let minute = Duration::from_mins(1);
        for (age_ms, expected) in [
            (0, 60),
            (500, 60),
            (20_000, 40),
            (59_999, 1),
            (60_000, -1),
            (60_001, -1),
            (61_500, -2),
        ] {
            let found = Status::hit(minute, Duration::from_millis(age_ms)).ttl;
            assert_eq!(found, Some(expected), "{age_ms}");
        }
    }

    #[test]
    fn a_status_stands_behind_those_of_other_caches() {
        let mut headers = HeaderMap::new();
        headers.insert(CACHE_STATUS, HeaderValue::from_static("other; hit"));
        Status::forwarded(Forwarded::Method).append_to(&mut headers);
        let lines: Vec<_> = headers.get_all(CACHE_STATUS).iter().collect();
        assert_eq!(lines, ["other; hit", "haypile; fwd=method"]);
    }
}
