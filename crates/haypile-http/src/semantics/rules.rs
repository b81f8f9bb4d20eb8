//! Whose cache it is, and what it may do on its own.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::directives::ResponseDirectives;
use super::targeted;

/// Whether one user or several get what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Several users: nothing is stored that may be meant for one.
    Shared,
    /// One user.
    Private,
}

/// The rules that a cache follows. [`shared`](Self::shared) and [`private`](Self::private) are those
/// of the standards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whose cache it is.
    pub sharing: Sharing,
    /// The targeted fields that this cache follows, the most specific first (RFC 9213). Where one is
    /// valid, `Cache-Control` and `Expires` are ignored.
    pub targeted: Vec<HeaderName>,
    /// Whether a shared cache stores responses with `Set-Cookie`, and so gives the cookies of one
    /// user to others. Off unless the origin is known to set none that identify a user.
    pub stores_set_cookie: bool,
    /// The part of a response's age at the time of its sending for which it is fresh where it does
    /// not say so itself, in per cent: 10 (RFC 9111, section 4.2.2).
    pub heuristic_percent: u32,
    /// The longest time that this makes: a day.
    pub heuristic_limit: Duration,
    /// The longest time for which a response may have been stale that is served because the origin
    /// fails, where neither side says how long: a day.
    pub stale_limit: Duration,
}

impl Rules {
    /// Returns the rules of a cache of several users. It follows `CDN-Cache-Control`.
    pub fn shared() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            sharing: Sharing::Shared,
            targeted: vec![HeaderName::from_static("cdn-cache-control")],
            stores_set_cookie: false,
            heuristic_percent: 10,
            heuristic_limit: DAY,
            stale_limit: DAY,
        }
    }

    /// Returns the rules of a cache of one user.
    pub fn private() -> Self {
        Self { sharing: Sharing::Private, targeted: Vec::new(), ..Self::shared() }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.sharing == Sharing::Shared
    }

    /// Reads what a response says to this cache.
    pub(super) fn control(&self, headers: &HeaderMap) -> Control {
        let targeted = self.targeted.iter().find_map(|name| targeted::read(headers, name));
        let is_targeted = targeted.is_some();
        let directives = targeted.unwrap_or_else(|| ResponseDirectives::read(headers));
        Control { directives, is_targeted }
    }
}

/// The directives of a response that count for one cache.
#[derive(Clone, Debug)]
pub(super) struct Control {
    pub(super) directives: ResponseDirectives,
    /// Whether a targeted field says it: then `Expires` does not count.
    pub(super) is_targeted: bool,
}

impl Control {
    /// Whether a shared cache may store the response to a request with `Authorization`.
    pub(super) fn permits_sharing(&self) -> bool {
        let directives = &self.directives;
        directives.public || directives.must_revalidate || directives.s_maxage.is_some()
    }

    /// Whether a stale response may not be reused without validation, whoever wants to.
    pub(super) fn forbids_stale(&self, rules: &Rules) -> bool {
        let directives = &self.directives;
        let of_shared = directives.proxy_revalidate || directives.s_maxage.is_some();
        directives.must_revalidate
            || directives.no_cache.is_everything()
            || (rules.is_shared() && of_shared)
    }
}
