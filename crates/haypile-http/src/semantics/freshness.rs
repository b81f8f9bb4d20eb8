//! The time for which a response is fresh: RFC 9111, section 4.2.

use std::time::{Duration, SystemTime};

use http::header::{DATE, EXPIRES, LAST_MODIFIED};
use http::{HeaderMap, StatusCode};

use super::rules::{Control, Rules};
use super::time::{LONGEST, date, since};

/// The time for which a response is fresh, counted from its creation at the origin, and whether the
/// response states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The response states its lifetime.
    Explicit(Duration),
    /// The response does not say so; it has not changed for long, or the cache was told how long.
    Heuristic(Duration),
    /// The lifetime is unknown, and the response is stale.
    Unknown,
}

impl Lifetime {
    /// Returns the lifetime of the response as a duration; zero if it is unknown.
    pub fn duration(self) -> Duration {
        match self {
            Self::Explicit(duration) | Self::Heuristic(duration) => duration,
            Self::Unknown => Duration::ZERO,
        }
    }
}

/// Whether a response with this status code may be reused without a stated lifetime (RFC 9110,
/// section 15.1).
pub(super) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

impl Rules {
    /// Returns the lifetime of a response: the time for which it is fresh.
    pub fn lifetime(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        received: SystemTime,
    ) -> Lifetime {
        self.lifetime_under(&self.control(headers), status, headers, received)
    }

    pub(super) fn lifetime_under(
        &self,
        control: &Control,
        status: StatusCode,
        headers: &HeaderMap,
        received: SystemTime,
    ) -> Lifetime {
        let directives = &control.directives;
        let s_maxage = directives.s_maxage.filter(|_| self.is_shared());
        if let Some(duration) = s_maxage.or(directives.max_age) {
            return Lifetime::Explicit(duration);
        }
        let sent = date(headers, &DATE).ok().flatten().unwrap_or(received);
        if !control.is_targeted {
            match date(headers, &EXPIRES) {
                Ok(None) => {}
                Ok(Some(expires)) => {
                    return Lifetime::Explicit(since(expires, sent).min(LONGEST));
                }
                // RFC 9111, section 5.3: in particular "0" has passed.
                Err(_) => return Lifetime::Explicit(Duration::ZERO),
            }
        }
        let may_guess = directives.public || is_heuristically_cacheable(status);
        if let Some(duration) = self.default_lifetime.filter(|_| may_guess) {
            return Lifetime::Heuristic(duration);
        }
        match date(headers, &LAST_MODIFIED) {
            Ok(Some(changed)) if may_guess => {
                let unchanged = since(sent, changed);
                let part = unchanged.saturating_mul(self.heuristic_percent) / 100;
                Lifetime::Heuristic(part.min(self.heuristic_limit))
            }
            _ => Lifetime::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{HeaderName, HeaderValue};

    use super::*;

    const DAY: u64 = 86_400;
    /// 2026-11-22 00:00:00.
    const RECEIVED: u64 = 1_795_305_600;

    fn lifetime(rules: &Rules, status: u16, fields: &[(&str, &str)]) -> Lifetime {
        let field = |(name, value): &(&str, &str)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        let status = StatusCode::from_u16(status).expect("a status");
        let received = UNIX_EPOCH + Duration::from_secs(RECEIVED);
        rules.lifetime(status, &fields.iter().map(field).collect(), received)
    }

    fn ago(seconds: u64) -> String {
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(RECEIVED - seconds))
    }

    #[test]
    fn lifetimes_in_shared_caches() {
        use Lifetime::{Explicit, Heuristic, Unknown};
        let secs = Duration::from_secs;
        let (now, hour, day) = (ago(0), ago(3_600), ago(DAY));
        let long = ago(1_000 * DAY);
        for (fields, expected) in [
            (&[][..], Unknown),
            (&[("cache-control", "max-age=5")], Explicit(secs(5))),
            (&[("cache-control", "max-age=5, s-maxage=3")], Explicit(secs(3))),
            (&[("cache-control", "max-age=3, s-maxage=5")], Explicit(secs(5))),
            (&[("cache-control", "max-age=5"), ("expires", &hour)], Explicit(secs(5))),
            (&[("cache-control", "max-age=5"), ("expires", "0")], Explicit(secs(5))),
            (&[("cache-control", "max-age=0"), ("expires", &now)], Explicit(secs(0))),
            (&[("expires", &now), ("date", &hour)], Explicit(secs(3_600))),
            (&[("expires", &hour), ("date", &now)], Explicit(secs(0))),
            (&[("expires", &now)], Explicit(secs(0))),
            (&[("expires", "0"), ("last-modified", &day)], Explicit(secs(0))),
            (&[("expires", "x"), ("expires", "y")], Explicit(secs(0))),
            (&[("last-modified", &day)], Heuristic(secs(DAY / 10))),
            (&[("last-modified", &day), ("date", &hour)], Heuristic(secs(8_280))),
            (&[("last-modified", &now), ("date", &hour)], Heuristic(secs(0))),
            (&[("last-modified", &long)], Heuristic(secs(DAY))),
            (&[("last-modified", "yesterday")], Unknown),
            (
                &[("cdn-cache-control", "max-age=9"), ("cache-control", "max-age=5")],
                Explicit(secs(9)),
            ),
            (&[("cdn-cache-control", "public"), ("expires", &now), ("date", &hour)], Unknown),
            (
                &[("cdn-cache-control", "max-age=x"), ("cache-control", "max-age=5")],
                Explicit(secs(5)),
            ),
        ] {
            assert_eq!(lifetime(&Rules::shared(), 200, fields), expected, "{fields:?}");
        }
        let far = [("expires", "Sun, 21 Nov 2286 04:46:39 GMT"), ("date", &now)];
        assert_eq!(lifetime(&Rules::shared(), 200, &far), Explicit(LONGEST));
    }

    #[test]
    fn private_caches_follow_neither_s_maxage_nor_cdn_cache_control() {
        let fields =
            [("cache-control", "max-age=5, s-maxage=3"), ("cdn-cache-control", "no-store")];
        let expected = Lifetime::Explicit(Duration::from_secs(5));
        assert_eq!(lifetime(&Rules::private(), 200, &fields), expected);
        let fields = [("cache-control", "s-maxage=3")];
        assert_eq!(lifetime(&Rules::private(), 200, &fields), Lifetime::Unknown);
    }

    #[test]
    fn lifetimes_that_the_cache_was_told() {
        let minute = Duration::from_mins(1);
        let rules = Rules { default_lifetime: Some(minute), ..Rules::shared() };
        let (day, now) = (ago(DAY), ago(0));
        for (status, fields, expected) in [
            (200, &[][..], Lifetime::Heuristic(minute)),
            (404, &[], Lifetime::Heuristic(minute)),
            (200, &[("last-modified", day.as_str())], Lifetime::Heuristic(minute)),
            (200, &[("cache-control", "max-age=5")], Lifetime::Explicit(Duration::from_secs(5))),
            (200, &[("expires", &now)], Lifetime::Explicit(Duration::ZERO)),
            (200, &[("expires", "0")], Lifetime::Explicit(Duration::ZERO)),
            (500, &[], Lifetime::Unknown),
            (302, &[], Lifetime::Unknown),
        ] {
            assert_eq!(lifetime(&rules, status, fields), expected, "{status} {fields:?}");
        }
    }

    #[test]
    fn statuses_whose_lifetime_may_be_guessed() {
        let day = ago(DAY);
        let is_guessed = |status, control: &str| {
            let fields = [("last-modified", day.as_str()), ("cache-control", control)];
            lifetime(&Rules::shared(), status, &fields) != Lifetime::Unknown
        };
        for status in [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501] {
            assert!(is_guessed(status, ""), "{status}");
        }
        for status in [201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599] {
            assert!(!is_guessed(status, ""), "{status}");
            assert!(is_guessed(status, "public"), "{status}");
        }
    }
}
