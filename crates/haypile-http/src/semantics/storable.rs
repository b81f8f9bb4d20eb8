//! Storing of responses: RFC 9111, section 3.

use std::time::SystemTime;

use http::header::{
    AUTHORIZATION, CONTENT_LOCATION, ETAG, EXPIRES, LAST_MODIFIED, RANGE, SET_COOKIE,
};
use http::{HeaderMap, Method, StatusCode, request, response};

use super::directives::RequestDirectives;
use super::fields::storable_fields;
use super::freshness::is_heuristically_cacheable;
use super::rules::Rules;
use super::target::Target;
use super::validation::CONDITIONS;
use super::vary::Variant;

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotStored {
    /// Responses to this method are not stored.
    #[error("not stored: only responses to GET are stored, and some to POST")]
    Method,
    /// The status is not final, or is about a stored response or a part of one.
    #[error(
        "not stored: by its status, the response is not a whole, final one (such as 206 or 304)"
    )]
    Status,
    /// The request's own range or condition makes the answer: it is none to others.
    #[error("not stored: the response answers a range or a condition that only its request has")]
    Conditional,
    /// The status is not understood, and the response demands that it is.
    #[error(
        "not stored: the response has must-understand, and a status that the cache does not understand"
    )]
    NotUnderstood,
    /// The request forbids it.
    #[error("not stored: the request says no-store")]
    RequestNoStore,
    /// The response forbids it.
    #[error("not stored: the response says no-store")]
    NoStore,
    /// The response is for one user.
    #[error("not stored: the response is private, and the cache is shared by several users")]
    PrivateResponse,
    /// The request had credentials, and the response does not permit to share it.
    #[error(
        "not stored: the request had Authorization, and the response does not allow sharing, such as by public"
    )]
    Authorization,
    /// The response sets a cookie for one user.
    #[error(
        "not stored: the response sets a cookie for one user, and the cache is shared by several"
    )]
    SetCookie,
    /// The response answers no other request.
    #[error(
        "not stored: the Vary of the response is * or invalid, so that it answers no other request"
    )]
    Vary,
    /// The request had a cookie or credentials, and the response does not say for how long it is fresh.
    #[error(
        "not stored: the request had a cookie or Authorization, and the response states no lifetime, such as max-age"
    )]
    Personal,
    /// Neither the response nor its status permits its reuse.
    #[error(
        "not stored: the response states no lifetime, such as max-age, and its status does not permit to guess one"
    )]
    NoFreshness,
}

impl NotStored {
    /// Whether the response is not stored because of its request, so that a response to another request for the same
    /// URL may be stored.
    pub(crate) fn is_of_request(self) -> bool {
        use NotStored::{Authorization, Conditional, Method, Personal, RequestNoStore};
        matches!(self, Method | Conditional | RequestNoStore | Authorization | Personal)
    }

    /// Whether the response takes the place of a stored one to the same request all the same, which is over
    /// then. One for a user alone says nothing of what others get.
    pub(crate) fn ends_stored(self, may_be_personal: bool) -> bool {
        match self {
            Self::PrivateResponse | Self::SetCookie => !may_be_personal,
            Self::Personal => true,
            other => !other.is_of_request(),
        }
    }
}

impl Rules {
    /// Checks whether a complete response to a request may be stored; if not, returns why. Only the fields that
    /// [`storable_fields`] returns are stored.
    pub fn may_store(
        &self,
        request: &request::Parts,
        response: &response::Parts,
    ) -> Result<(), NotStored> {
        let (status, headers) = (response.status, &response.headers);
        let control = self.control(headers);
        let directives = &control.directives;
        let is_final = !status.is_informational();
        if !is_final || [StatusCode::PARTIAL_CONTENT, StatusCode::NOT_MODIFIED].contains(&status) {
            return Err(NotStored::Status);
        }
        if is_of_the_request(status, &request.headers) {
            return Err(NotStored::Conditional);
        }
        if RequestDirectives::read(&request.headers).no_store {
            return Err(NotStored::RequestNoStore);
        }
        if directives.must_understand {
            if !is_understood(status) {
                return Err(NotStored::NotUnderstood);
            }
        } else if directives.no_store {
            return Err(NotStored::NoStore);
        }
        if self.is_shared() {
            if directives.private.is_everything() {
                return Err(NotStored::PrivateResponse);
            }
            if request.headers.contains_key(AUTHORIZATION) && !control.permits_sharing() {
                return Err(NotStored::Authorization);
            }
            if !self.stores_set_cookie && storable_fields(self, headers).contains_key(SET_COOKIE) {
                return Err(NotStored::SetCookie);
            }
        }
        if Variant::of(&request.headers, headers).is_none() {
            return Err(NotStored::Vary);
        }
        let is_explicit = directives.max_age.is_some()
            || (self.is_shared() && directives.s_maxage.is_some())
            || (!control.is_targeted && headers.contains_key(EXPIRES));
        if !is_explicit && !directives.public && !is_heuristically_cacheable(status) {
            return Err(NotStored::NoFreshness);
        }
        let lifetime = self.lifetime_under(&control, status, headers, SystemTime::UNIX_EPOCH);
        if self.guesses_about_user(&control, lifetime, &request.headers) {
            return Err(NotStored::Personal);
        }
        match request.method {
            Method::GET => Ok(()),
            Method::POST if is_explicit && answers_its_target(request, response) => Ok(()),
            _ => Err(NotStored::Method),
        }
    }

    /// Whether a response to a request with `Authorization` may answer other requests (RFC 9111,
    /// section 3.5).
    pub(crate) fn permits_sharing(&self, response: &HeaderMap) -> bool {
        !self.is_shared() || self.control(response).permits_sharing()
    }

    /// Whether it is of use to store a response: it is fresh for a while, can be validated, or may be served if the
    /// origin fails.
    pub fn is_useful(&self, response: &response::Parts, received: SystemTime) -> bool {
        let headers = &response.headers;
        let control = self.control(headers);
        let lifetime = self.lifetime_under(&control, response.status, headers, received);
        !lifetime.duration().is_zero()
            || headers.contains_key(ETAG)
            || headers.contains_key(LAST_MODIFIED)
            || control.directives.stale_if_error.is_some()
            || control.directives.stale_while_revalidate.is_some()
    }
}

/// Whether a request has this status because of its range or its conditions.
fn is_of_the_request(status: StatusCode, request: &HeaderMap) -> bool {
    match status {
        StatusCode::RANGE_NOT_SATISFIABLE => request.contains_key(RANGE),
        StatusCode::PRECONDITION_FAILED => {
            CONDITIONS.iter().any(|condition| request.contains_key(condition))
        }
        _ => false,
    }
}

/// Whether the caching of a status is understood: those of RFC 9110 that mean nothing special to
/// caches.
fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=205 | 300..=303 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505
    )
}

/// Whether a response to a POST is also what a later GET of the same target would get: RFC 9110,
/// section 9.3.3.
fn answers_its_target(request: &request::Parts, response: &response::Parts) -> bool {
    let Ok(target) = Target::of(&request.uri) else { return false };
    let mut locations = response.headers.get_all(CONTENT_LOCATION).iter();
    let location = locations.next().and_then(|location| target.resolve(location.as_bytes()));
    location.is_some_and(|location| location == target) && locations.next().is_none()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::{Request, Response};

    use super::*;

    type Fields<'a> = &'a [(&'a str, &'a str)];

    fn decide(
        rules: &Rules,
        (method, asked): (&str, Fields<'_>),
        (status, fields): (u16, Fields<'_>),
    ) -> Result<(), NotStored> {
        let mut request = Request::builder().method(method).uri("http://example.org/a?b");
        for (name, value) in asked {
            request = request.header(*name, *value);
        }
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let (request, ()) = request.body(()).expect("a request").into_parts();
        let (response, ()) = response.body(()).expect("a response").into_parts();
        rules.may_store(&request, &response)
    }

    const FRESH: (&str, &str) = ("cache-control", "max-age=60");

    #[test]
    fn responses_in_shared_caches() {
        use NotStored::{NoStore, PrivateResponse, SetCookie, Vary};
        for (fields, expected) in [
            (&[FRESH][..], Ok(())),
            (&[], Ok(())),
            (&[("cache-control", "no-store, max-age=60")], Err(NoStore)),
            (&[FRESH, ("cache-control", "No-Store")], Err(NoStore)),
            (&[("cache-control", "private, max-age=60")], Err(PrivateResponse)),
            (&[("cache-control", "Private, max-age=60")], Err(PrivateResponse)),
            (&[("cache-control", "public, private=x")], Err(PrivateResponse)),
            (&[("cache-control", "private=\"a\", max-age=60")], Ok(())),
            (&[FRESH, ("set-cookie", "a=b")], Err(SetCookie)),
            (&[("cache-control", "public, max-age=60"), ("set-cookie", "a=b")], Err(SetCookie)),
            (&[("cache-control", "private=\"Set-Cookie\""), ("set-cookie", "a=b")], Ok(())),
            (&[("cache-control", "no-cache=\"set-cookie\""), ("set-cookie", "a=b")], Ok(())),
            (&[FRESH, ("vary", "*")], Err(Vary)),
            (&[FRESH, ("vary", "cookie")], Ok(())),
            (&[("cdn-cache-control", "no-store"), FRESH], Err(NoStore)),
            (&[("cdn-cache-control", "private"), FRESH], Err(PrivateResponse)),
            (&[("cdn-cache-control", "max-age=9"), ("cache-control", "no-store")], Ok(())),
            (&[("cdn-cache-control", "&"), ("cache-control", "no-store")], Err(NoStore)),
            (&[("cache-control", "no-store, must-understand, max-age=9")], Ok(())),
        ] {
            let found = decide(&Rules::shared(), ("GET", &[]), (200, fields));
            assert_eq!(found, expected, "{fields:?}");
        }
    }

    #[test]
    fn one_user_s_responses_in_private_caches() {
        for fields in [
            &[("cache-control", "private, max-age=60")][..],
            &[FRESH, ("set-cookie", "a=b")],
            &[("cdn-cache-control", "no-store"), FRESH],
        ] {
            let asked = ("GET", &[("authorization", "x")][..]);
            assert_eq!(decide(&Rules::private(), asked, (200, fields)), Ok(()), "{fields:?}");
        }
        let no_store = (200, &[("cache-control", "no-store")][..]);
        assert_eq!(decide(&Rules::private(), ("GET", &[]), no_store), Err(NotStored::NoStore));
    }

    #[test]
    fn responses_to_requests_with_credentials() {
        let asked = ("GET", &[("authorization", "x")][..]);
        for (control, expected) in [
            ("max-age=60", Err(NotStored::Authorization)),
            ("max-age=60, proxy-revalidate", Err(NotStored::Authorization)),
            ("max-age=60, public", Ok(())),
            ("max-age=60, must-revalidate", Ok(())),
            ("s-maxage=60", Ok(())),
        ] {
            let fields = (200, &[("cache-control", control)][..]);
            assert_eq!(decide(&Rules::shared(), asked, fields), expected, "{control}");
        }
    }

    #[test]
    fn methods_and_requests() {
        let target = [FRESH, ("content-location", "/a?b")];
        let here = [FRESH, ("content-location", "")];
        let elsewhere = [FRESH, ("content-location", "/c")];
        let not_fresh = [("content-location", "/a?b")];
        for (asked, fields, expected) in [
            (("GET", &[][..]), &target[..], Ok(())),
            (("GET", &[("cache-control", "no-store")]), &target, Err(NotStored::RequestNoStore)),
            (("HEAD", &[]), &target, Err(NotStored::Method)),
            (("PUT", &[]), &target, Err(NotStored::Method)),
            (("POST", &[]), &target, Ok(())),
            (("POST", &[]), &here, Ok(())),
            (("POST", &[]), &elsewhere, Err(NotStored::Method)),
            (("POST", &[]), &not_fresh, Err(NotStored::Method)),
            (("POST", &[]), &target[..1], Err(NotStored::Method)),
        ] {
            let found = decide(&Rules::shared(), asked, (200, fields));
            assert_eq!(found, expected, "{asked:?} {fields:?}");
        }
    }

    #[test]
    fn statuses() {
        let heuristic = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501];
        for status in 200..600 {
            let of = |fields: Fields<'_>| decide(&Rules::shared(), ("GET", &[]), (status, fields));
            if [206, 304].contains(&status) {
                assert_eq!(of(&[FRESH]), Err(NotStored::Status), "{status}");
                continue;
            }
            assert_eq!(of(&[FRESH]), Ok(()), "{status}");
            assert_eq!(of(&[("expires", "0")]), Ok(()), "{status}");
            assert_eq!(of(&[("cache-control", "public")]), Ok(()), "{status}");
            let is_guessed = heuristic.contains(&status);
            let expected = if is_guessed { Ok(()) } else { Err(NotStored::NoFreshness) };
            assert_eq!(of(&[]), expected, "{status}");
            assert_eq!(of(&[("cache-control", "s-maxage")]), Ok(()), "{status}");
        }
        for (asked, status) in [("range", 416), ("if-range", 412), ("if-none-match", 412)] {
            let found = decide(&Rules::shared(), ("GET", &[(asked, "x")]), (status, &[FRESH]));
            assert_eq!(found, Err(NotStored::Conditional), "{asked}");
        }
        let unknown = (599, &[("cache-control", "max-age=9, no-store, must-understand")][..]);
        let found = decide(&Rules::shared(), ("GET", &[]), unknown);
        assert_eq!(found, Err(NotStored::NotUnderstood));
        let informational = decide(&Rules::shared(), ("GET", &[]), (103, &[FRESH]));
        assert_eq!(informational, Err(NotStored::Status));
    }

    #[test]
    fn responses_that_are_of_use() {
        for (fields, expected) in [
            (&[FRESH][..], true),
            (&[("cache-control", "max-age=0")], false),
            (&[("cache-control", "max-age=0"), ("etag", "\"x\"")], true),
            (&[("cache-control", "no-cache"), ("etag", "\"x\"")], true),
            (&[("cache-control", "max-age=0, stale-if-error=5")], true),
            (&[("cache-control", "max-age=0, stale-while-revalidate=5")], true),
            (&[("expires", "Thu, 01 Jan 1970 00:00:09 GMT")], false),
            (&[("expires", "Thu, 01 Jan 1970 00:00:11 GMT")], true),
            (&[], false),
        ] {
            let mut response = Response::builder();
            for (name, value) in fields {
                response = response.header(*name, *value);
            }
            let (response, ()) = response.body(()).expect("a response").into_parts();
            let received = UNIX_EPOCH + Duration::from_secs(10);
            assert_eq!(Rules::shared().is_useful(&response, received), expected, "{fields:?}");
        }
    }
}
