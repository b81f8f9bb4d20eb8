//! Reuse of stored responses: RFC 9111, section 4.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, request};

use super::directives::RequestDirectives;
use super::rules::{Control, Rules};
use super::stored::Stored;
use super::terms::Terms;

/// The permitted use of a stored response for a request: serve it as it is, revalidate it first, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The cache serves the response.
    Fresh,
    /// The cache serves the response though it is stale: the client permits that.
    Stale,
    /// The cache serves the response though it is stale, and then revalidates it (RFC 5861).
    StaleWhileRevalidate,
    /// The cache revalidates the response first.
    Revalidate {
        /// Whether the cache may serve the response if the origin cannot be reached or answers with
        /// an error of its own (500, 502, 503, 504).
        may_be_served_on_error: bool,
    },
    /// The cache answers 504: the client wants a stored response, and this one cannot be served.
    GatewayTimeout,
    /// The response answers another request.
    Other,
}

impl Reuse {
    /// Whether the stored response is served without asking the origin first.
    pub fn is_served(self) -> bool {
        matches!(self, Self::Fresh | Self::Stale | Self::StaleWhileRevalidate)
    }
}

/// The decision on how a stored response may be used for a request, with its freshness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assessment {
    pub(crate) reuse: Reuse,
    /// The time for which the stored response is fresh, from its creation on.
    pub(crate) lifetime: Duration,
    pub(crate) age: Duration,
    /// Whether the request's directives (such as `no-cache`) refuse the stored response although it is fresh.
    pub(crate) is_refused_by_request: bool,
}

impl Rules {
    /// Decides how a stored response may be used for a request at the time `now`: served, revalidated and so on.
    pub fn reuse(&self, request: &request::Parts, stored: &Stored, now: SystemTime) -> Reuse {
        let asked = RequestDirectives::read(&request.headers);
        let terms = Terms::of(self, stored);
        let assessment = self.assess(&request.headers, &asked, (stored, &terms), now, false);
        assessment.map_or(Reuse::Other, |assessment| assessment.reuse)
    }

    /// Decides how a stored response may be used, like [`reuse`](Self::reuse), with the request's directives given, and
    /// returns the reasons as well; `None` if the response answers another request. A response that a soft purge made
    /// stale is served while it is revalidated, if stale responses may be served, for as long as it would otherwise be
    /// fresh.
    pub(crate) fn assess(
        &self,
        request: &HeaderMap,
        asked: &RequestDirectives,
        (stored, terms): (&Stored, &Terms),
        now: SystemTime,
        has_expired: bool,
    ) -> Option<Assessment> {
        let selection = self.selection();
        stored.variant.as_ref().filter(|variant| variant.matches_under(selection, request))?;
        // Another cache on the same store may store what this one does not.
        if self.is_shared() && !self.stores_set_cookie && terms.sets_cookie {
            return None;
        }
        let Terms { control, lifetime, .. } = terms;
        if self.guesses_about_user(control, *lifetime, request) {
            return None;
        }
        let lifetime = lifetime.duration();
        let age = terms.age(now);
        let is_purged = has_expired && age < lifetime;
        let lifetime = if is_purged { age } else { lifetime };
        let window =
            if is_purged { Some(Duration::MAX) } else { control.directives.stale_while_revalidate };
        let reuse = match self.reuse_selected(asked, control, lifetime, age, window) {
            // Whoever takes it as it is has it revalidated as well.
            Reuse::Stale if is_purged => Reuse::StaleWhileRevalidate,
            Reuse::Revalidate { .. } if asked.only_if_cached => Reuse::GatewayTimeout,
            reuse => reuse,
        };
        let is_refused_by_request = !reuse.is_served()
            && (asked.no_cache
                || asked.no_store
                || (age < lifetime && !control.directives.no_cache.is_everything()));
        Some(Assessment { reuse, lifetime, age, is_refused_by_request })
    }

    /// Whether a response with this head may, as it comes, answer a request for which it was not sent; `None` if it is for
    /// requests with other fields.
    pub(crate) fn serves_others(
        &self,
        request: &HeaderMap,
        asked: &RequestDirectives,
        (stored, terms): (&Stored, &Terms),
    ) -> Option<bool> {
        let selection = self.selection();
        stored.variant.as_ref().filter(|variant| variant.matches_under(selection, request))?;
        let assessment = self.assess(request, asked, (stored, terms), stored.received, false);
        Some(assessment.is_some_and(|assessment| assessment.reuse.is_served()))
    }

    /// Decides it by the time for which the response is fresh, and by the window after that in which it may
    /// be served while it is revalidated, which the operator may have made longer.
    fn reuse_selected(
        &self,
        asked: &RequestDirectives,
        control: &Control,
        lifetime: Duration,
        age: Duration,
        window: Option<Duration>,
    ) -> Reuse {
        let directives = &control.directives;
        let stale_for = age.saturating_sub(lifetime);
        let is_fresh = age < lifetime;
        let may_be_stale = !control.forbids_stale(self);
        // What was never fresh is not served stale unless its origin wants that.
        let of_operator = self.serve_stale.filter(|_| !lifetime.is_zero());
        let (window, served) = (window.max(of_operator), of_operator.unwrap_or_default());
        let stale_limits = [asked.stale_if_error, directives.stale_if_error];
        let stale_limit = stale_limits.into_iter().flatten().min();
        let on_error = if is_fresh {
            !directives.no_cache.is_everything()
        } else {
            may_be_stale && stale_for <= stale_limit.unwrap_or(self.stale_limit).max(served)
        };
        let revalidate = Reuse::Revalidate { may_be_served_on_error: on_error };
        if asked.no_cache || asked.no_store || directives.no_cache.is_everything() {
            return revalidate;
        }
        if asked.max_age.is_some_and(|longest| age > longest) {
            return revalidate;
        }
        let left = lifetime.saturating_sub(age);
        if is_fresh {
            let is_enough = asked.min_fresh.is_none_or(|wanted| left >= wanted);
            return if is_enough { Reuse::Fresh } else { revalidate };
        }
        if !may_be_stale || asked.min_fresh.is_some_and(|wanted| wanted > Duration::ZERO) {
            return revalidate;
        }
        if asked.max_stale.is_some_and(|longest| stale_for <= longest) {
            return Reuse::Stale;
        }
        let window = window.filter(|_| asked.max_age.is_none());
        if window.is_some_and(|window| stale_for <= window) {
            return Reuse::StaleWhileRevalidate;
        }
        revalidate
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use http::{Request, Response};

    use super::*;

    const REVALIDATE: Reuse = Reuse::Revalidate { may_be_served_on_error: true };
    const STRICT: Reuse = Reuse::Revalidate { may_be_served_on_error: false };

    fn reuse(rules: &Rules, control: &str, asked: &str, age: u64) -> Reuse {
        let fields = [("cache-control", control)];
        reuse_of(rules, &fields, &[("cache-control", asked)], age)
    }

    fn reuse_of(rules: &Rules, fields: &[(&str, &str)], asked: &[(&str, &str)], age: u64) -> Reuse {
        let mut response = Response::builder();
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let mut request = Request::get("/");
        for (name, value) in asked {
            request = request.header(*name, *value);
        }
        let (response, ()) = response.body(()).expect("a response").into_parts();
        let (request, ()) = request.body(()).expect("a request").into_parts();
        let stored = Stored::new(&request, response, UNIX_EPOCH, UNIX_EPOCH);
        rules.reuse(&request, &stored, UNIX_EPOCH + Duration::from_secs(age))
    }

    #[test]
    fn what_requests_ask_for() {
        use Reuse::{Fresh, GatewayTimeout, Stale};
        let rules = Rules::shared();
        for (control, asked, age, expected) in [
            ("max-age=10", "", 0, Fresh),
            ("max-age=10", "", 9, Fresh),
            ("max-age=10", "", 10, REVALIDATE),
            ("max-age=10", "no-cache", 0, REVALIDATE),
            ("max-age=10", "no-store", 0, REVALIDATE),
            ("max-age=10", "max-age=0", 0, Fresh),
            ("max-age=10", "max-age=0", 1, REVALIDATE),
            ("max-age=10", "max-age=5", 5, Fresh),
            ("max-age=10", "max-age=5", 6, REVALIDATE),
            ("max-age=10", "min-fresh=5", 5, Fresh),
            ("max-age=10", "min-fresh=5", 6, REVALIDATE),
            ("max-age=10", "min-fresh=5, max-stale=20", 12, REVALIDATE),
            ("max-age=10", "min-fresh=0, max-stale=20", 12, Stale),
            ("max-age=10", "max-stale", 5_000, Stale),
            ("max-age=10", "max-stale=5", 15, Stale),
            ("max-age=10", "max-stale=5", 16, REVALIDATE),
            ("max-age=10", "max-stale=x", 16, REVALIDATE),
            ("max-age=10", "max-stale=5, max-age=12", 12, Stale),
            ("max-age=10", "max-stale=5, max-age=12", 13, REVALIDATE),
            ("max-age=10", "only-if-cached", 5, Fresh),
            ("max-age=10", "only-if-cached", 15, GatewayTimeout),
            ("max-age=10", "only-if-cached, max-stale=5", 15, Stale),
            ("max-age=10", "only-if-cached, no-cache", 5, GatewayTimeout),
        ] {
            assert_eq!(reuse(&rules, control, asked, age), expected, "{control}; {asked}; {age}");
        }
    }

    /// A client that takes stale responses gets none that its origin wants validated: the crate
    /// http-cache-semantics 3.0.0 serves them, other users' cookies included.
    #[test]
    fn what_responses_forbid_no_request_permits() {
        let (shared, private) = (Rules::shared(), Rules::private());
        for (control, in_private) in [
            ("max-age=10, must-revalidate", STRICT),
            ("max-age=10, no-cache", STRICT),
            ("max-age=10, proxy-revalidate", Reuse::Stale),
            ("max-age=10, s-maxage=10", Reuse::Stale),
        ] {
            for asked in ["max-stale", "max-stale=5000", "max-stale, stale-if-error=5000"] {
                assert_eq!(reuse(&shared, control, asked, 15), STRICT, "{control}; {asked}");
                assert_eq!(reuse(&private, control, asked, 15), in_private, "{control}; {asked}");
            }
        }
        assert_eq!(reuse(&shared, "no-cache=\"a\", max-age=10", "max-stale", 15), Reuse::Stale);
    }

    #[test]
    fn stale_while_it_is_revalidated_or_the_origin_fails() {
        use Reuse::StaleWhileRevalidate;
        let rules = Rules { stale_limit: Duration::from_secs(100), ..Rules::shared() };
        for (control, asked, age, expected) in [
            ("max-age=10, stale-while-revalidate=5", "", 15, StaleWhileRevalidate),
            ("max-age=10, stale-while-revalidate=5", "", 16, REVALIDATE),
            ("max-age=10, stale-while-revalidate=5", "max-age=20", 15, REVALIDATE),
            ("max-age=10, stale-while-revalidate=5", "no-cache", 15, REVALIDATE),
            ("max-age=10, stale-while-revalidate=5, must-revalidate", "", 15, STRICT),
            ("max-age=10", "", 110, REVALIDATE),
            ("max-age=10", "", 111, STRICT),
            ("max-age=10, stale-if-error=5", "", 15, REVALIDATE),
            ("max-age=10, stale-if-error=5", "", 16, STRICT),
            ("max-age=10, stale-if-error=5", "stale-if-error=9", 16, STRICT),
            ("max-age=10, stale-if-error=9", "stale-if-error=5", 16, STRICT),
            ("max-age=10", "stale-if-error=5", 16, STRICT),
            ("max-age=10, stale-if-error=x", "", 11, STRICT),
            ("max-age=10, s-maxage=10, stale-if-error=5", "", 11, STRICT),
        ] {
            assert_eq!(reuse(&rules, control, asked, age), expected, "{control}; {asked}; {age}");
        }
    }

    #[test]
    fn a_targeted_field_decides_alone() {
        let fields = [("cdn-cache-control", "max-age=10"), ("cache-control", "no-cache")];
        assert_eq!(reuse_of(&Rules::shared(), &fields, &[], 5), Reuse::Fresh);
        assert_eq!(reuse_of(&Rules::private(), &fields, &[], 5), STRICT);
    }

    #[test]
    fn another_variant_is_another_response() {
        let fields = [("cache-control", "max-age=10"), ("vary", "a")];
        let response = fields
            .iter()
            .fold(Response::builder(), |response, (name, value)| response.header(*name, *value));
        let (response, ()) = response.body(()).expect("a response").into_parts();
        let request = |value: &str| {
            let request = Request::get("/").header("a", value);
            request.body(()).expect("a request").into_parts().0
        };
        let stored = Stored::new(&request("1"), response, UNIX_EPOCH, UNIX_EPOCH);
        let rules = Rules::shared();
        assert_eq!(rules.reuse(&request("1"), &stored, UNIX_EPOCH), Reuse::Fresh);
        assert_eq!(rules.reuse(&request("2"), &stored, UNIX_EPOCH), Reuse::Other);
        let never = Stored { variant: None, ..stored };
        assert_eq!(rules.reuse(&request("1"), &never, UNIX_EPOCH), Reuse::Other);
    }
}
