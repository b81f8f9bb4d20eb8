//! Following of redirects: which ones, and with which requests.

use http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, PROXY_AUTHORIZATION};
use http::{Request, Uri};
use tower_http::follow_redirect::policy::{Action, Attempt, Policy};

use crate::cache::{Body, BoxError};
use crate::semantics::Target;

/// The fields that only the origin that the caller named may see.
const FOR_ONE_ORIGIN: [HeaderName; 5] =
    [AUTHORIZATION, COOKIE, HeaderName::from_static("cookie2"), HOST, PROXY_AUTHORIZATION];

/// The error of a request that was redirected too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the request was redirected more than {0} times, the limit; the redirects may lead in a circle"
)]
pub struct TooManyRedirects(pub usize);

/// The policy of following redirects: the number that a request has followed, and the largest
/// number.
#[derive(Clone, Debug)]
pub(super) struct Redirects {
    most: usize,
    followed: usize,
    /// Whether any redirect led to another origin. Credentials stay removed then: the next redirect
    /// within that origin starts from the caller's fields again.
    has_left: bool,
}

impl Redirects {
    pub(super) fn up_to(most: usize) -> Self {
        Self { most, followed: 0, has_left: false }
    }
}

impl Policy<Body, BoxError> for Redirects {
    fn redirect(&mut self, attempt: &Attempt<'_>) -> Result<Action, BoxError> {
        if self.most == 0 {
            return Ok(Action::Stop);
        }
        if self.followed == self.most {
            return Err(TooManyRedirects(self.most).into());
        }
        self.followed += 1;
        self.has_left |= !is_same_origin(attempt.previous(), attempt.location());
        Ok(Action::Follow)
    }

    fn on_request(&mut self, request: &mut Request<Body>) {
        if self.has_left {
            for name in FOR_ONE_ORIGIN {
                request.headers_mut().remove(name);
            }
        }
    }

    fn clone_body(&self, body: &Body) -> Option<Body> {
        body.in_memory().map(Body::full)
    }
}

fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    match (Target::of(one), Target::of(other)) {
        (Ok(one), Ok(other)) => one.origin() == other.origin(),
        _ => false,
    }
}
