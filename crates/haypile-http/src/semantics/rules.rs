//! The rules of a cache: who uses it, and which freedoms it takes.

use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::directives::ResponseDirectives;
use super::freshness::Lifetime;
use super::targeted;
use super::time::seconds;
use super::vary::Selection;

/// The users of a cache: one, or several that share its responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Several users: no response is stored that may be meant for one of them.
    Shared,
    /// A single user.
    Private,
}

/// The rules that an HTTP cache follows (RFC 9111). [`shared`](Self::shared) and [`private`](Self::private) return
/// those of the standards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The users of the cache: one (private), or several (shared).
    pub sharing: Sharing,
    /// The targeted header fields that this cache follows (RFC 9213), such as `CDN-Cache-Control`, the most specific
    /// first. If one is valid, `Cache-Control` and `Expires` are ignored.
    pub targeted: Vec<HeaderName>,
    /// Whether a shared cache stores responses with `Set-Cookie`, and so gives the cookies of one
    /// user to others; for origins whose cookies identify nobody.
    pub stores_set_cookie: bool,
    /// The heuristic lifetime of a response that states none, in per cent of the time from its `Last-Modified` until it
    /// was sent: 10 (RFC 9111, section 4.2.2).
    pub heuristic_percent: u32,
    /// The longest heuristic lifetime of a response that states none: a day.
    pub heuristic_limit: Duration,
    /// The longest time for which a response may have been stale when it is served because the
    /// origin fails, if neither side states a time: a day.
    pub stale_limit: Duration,
    /// The time after its lifetime for which a response may be served while it is revalidated, unless the response
    /// forbids that; `None` for no such time. A longer `stale-while-revalidate` of the response has precedence.
    pub serve_stale: Option<Duration>,
    /// The lifetime of responses that state none; `None` to estimate it heuristically.
    pub default_lifetime: Option<Duration>,
    /// The cookies on which responses do not depend: the cache ignores them in `Vary: Cookie`, and may guess a lifetime
    /// though a request has them.
    pub ignored_cookies: IgnoredCookies,
    /// Whether content codings that are not registered (IANA) make a difference in
    /// `Vary: Accept-Encoding`. Off unless the origin sends one: clients could make variants by
    /// inventing names.
    pub keeps_unknown_codings: bool,
    /// Whether the cache stores bodies whose end only the end of the connection marks. A body that breaks off with an
    /// error is never stored.
    pub stores_close_delimited: bool,
}

/// The cookies of requests that the cache ignores, because responses do not depend on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredCookies {
    /// The cookies with these names.
    Named(Vec<String>),
    /// All cookies.
    All,
}

impl Default for IgnoredCookies {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl IgnoredCookies {
    /// Whether the cache ignores no cookies of requests.
    pub(super) fn is_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    /// Returns the cookies of a request that the cache does not ignore, in their order; `None` if there are none.
    pub(super) fn left_of(&self, request: &HeaderMap) -> Option<Vec<u8>> {
        let Self::Named(names) = self else { return None };
        let pairs = pairs(request).filter(|pair| !is_named(names, pair));
        let pairs: Vec<&[u8]> = pairs.collect();
        (!pairs.is_empty()).then(|| pairs.join(&b"; "[..]))
    }

    /// Whether all cookies of a request are ignored.
    fn include_all_of(&self, request: &HeaderMap) -> bool {
        let Self::Named(names) = self else { return true };
        pairs(request).all(|pair| is_named(names, pair))
    }
}

/// Returns the cookies of a request, name and value.
fn pairs(request: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = request.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    pairs.map(<[u8]>::trim_ascii).filter(|pair| !pair.is_empty())
}

/// Whether a cookie has one of these names.
fn is_named(names: &[String], pair: &[u8]) -> bool {
    let name = pair.split(|byte| *byte == b'=').next().unwrap_or_default().trim_ascii();
    names.iter().any(|known| known.as_bytes() == name)
}

impl Rules {
    /// Returns the rules for a shared cache (of several users), which follows `CDN-Cache-Control` as well.
    pub fn shared() -> Self {
        const DAY: Duration = Duration::from_hours(24);
        Self {
            sharing: Sharing::Shared,
            targeted: vec![HeaderName::from_static("cdn-cache-control")],
            stores_set_cookie: false,
            heuristic_percent: 10,
            heuristic_limit: DAY,
            stale_limit: DAY,
            serve_stale: None,
            default_lifetime: None,
            ignored_cookies: IgnoredCookies::default(),
            keeps_unknown_codings: false,
            stores_close_delimited: false,
        }
    }

    /// Returns the rules for a private cache (of one user).
    pub fn private() -> Self {
        Self { sharing: Sharing::Private, targeted: Vec::new(), ..Self::shared() }
    }

    /// Whether a request may identify its user, so that its response may be served to others only
    /// if it states a lifetime. RFC 9111 permits more; operators do not want it.
    pub(crate) fn may_be_personal(&self, request: &HeaderMap) -> bool {
        self.is_shared()
            && (request.contains_key(AUTHORIZATION)
                || !self.ignored_cookies.include_all_of(request))
    }

    /// Whether a response that may be personal to this request's user would be served to others by a guessed lifetime.
    /// One without a lifetime is among them: another cache on the same store could guess one later, or serve it while
    /// the origin fails. What is validated each time is not.
    pub(super) fn guesses_about_user(
        &self,
        control: &Control,
        lifetime: Lifetime,
        request: &HeaderMap,
    ) -> bool {
        !matches!(lifetime, Lifetime::Explicit(_))
            && !control.directives.no_cache.is_everything()
            && self.may_be_personal(request)
    }

    /// Returns the parts of request fields (such as ignored cookies) that these rules ignore when a response's `Vary`
    /// names the fields.
    pub(crate) fn selection(&self) -> Selection<'_> {
        let keeps_unknown_codings = self.keeps_unknown_codings;
        Selection { ignored_cookies: Some(&self.ignored_cookies), keeps_unknown_codings }
    }

    pub(super) fn is_shared(&self) -> bool {
        self.sharing == Sharing::Shared
    }

    /// Parses the cache directives of a response that apply to this cache, from targeted fields or `Cache-Control`.
    pub(super) fn control(&self, headers: &HeaderMap) -> Control {
        let targeted = self.targeted.iter().find_map(|name| targeted::read(headers, name));
        let is_targeted = targeted.is_some();
        let mut directives = targeted.unwrap_or_else(|| ResponseDirectives::read(headers));
        if let Some(lifetime) = headers.get(OWN_LIFETIME).map(HeaderValue::as_bytes) {
            (directives.max_age, directives.s_maxage) = (seconds(lifetime), None);
        }
        Control { directives, is_targeted }
    }
}

/// The name of a header field of stored responses, never sent to clients: the lifetime that a program has set, in
/// seconds.
pub(crate) const OWN_LIFETIME: HeaderName = HeaderName::from_static("haypile-lifetime");

/// Sets the freshness lifetime of a response, in place of the one that it states.
pub(crate) fn set_lifetime(response: &mut HeaderMap, lifetime: Duration) {
    response.insert(OWN_LIFETIME, lifetime.as_secs().into());
}

/// The cache directives of a response that apply to one cache, from `Cache-Control` or a targeted field.
#[derive(Debug)]
pub(super) struct Control {
    pub(super) directives: ResponseDirectives,
    /// Whether the directives are from a targeted field such as `CDN-Cache-Control`, so that `Expires` is ignored.
    pub(super) is_targeted: bool,
}

impl Control {
    /// Whether the directives permit a shared cache to store the response to a request with `Authorization`.
    pub(super) fn permits_sharing(&self) -> bool {
        let directives = &self.directives;
        directives.public || directives.must_revalidate || directives.s_maxage.is_some()
    }

    /// Whether a response may never be reused without validation once it is stale, by its directives and the cache's
    /// rules.
    pub(super) fn forbids_stale(&self, rules: &Rules) -> bool {
        let directives = &self.directives;
        let of_shared = directives.proxy_revalidate || directives.s_maxage.is_some();
        directives.must_revalidate
            || directives.no_cache.is_everything()
            || (rules.is_shared() && of_shared)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn cookies_that_decide_nothing() {
        let named = |names: &[&str]| {
            IgnoredCookies::Named(names.iter().map(|name| (*name).to_owned()).collect())
        };
        let all = IgnoredCookies::All;
        let [none, one, two] = [named(&[]), named(&["_ga"]), named(&["_ga", "lang"])];
        for (lines, expected) in [
            (&[][..], [true, true, true, true]),
            (&[""], [true, true, true, true]),
            (&["_ga=1"], [false, true, true, true]),
            (&[" _ga = 1; lang=en;"], [false, false, true, true]),
            (&["_ga=1", "lang=en"], [false, false, true, true]),
            (&["_ga=1; session=2"], [false, false, false, true]),
            (&["session_ga=1"], [false, false, false, true]),
            (&["_GA=1"], [false, false, false, true]),
            (&["a"], [false, false, false, true]),
        ] {
            let value = |line: &&'static str| (COOKIE, HeaderValue::from_static(line));
            let request: HeaderMap = lines.iter().map(value).collect();
            let found = [&none, &one, &two, &all].map(|ignored| ignored.include_all_of(&request));
            assert_eq!(found, expected, "{lines:?}");
        }
    }
}
