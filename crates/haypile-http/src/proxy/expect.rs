//! Clients that send their bodies only once the origin permits it: `Expect: 100-continue`, RFC 9110, section 10.1.1.
//!
//! The origin is asked, and the client's body is not touched before it permits that: hyper sends the client's own
//! `100 Continue` as soon as somebody reads the body. An origin that answers at once, with a 401 or a 413, has spared the
//! upload. One that does neither in time gets the body all the same, and is not asked for a while.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderValue, Request, Response, StatusCode, Version, request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::cache::Body;

/// The longest wait for an origin's permission. Clients wait about as long for the proxy's.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time for which an origin is not asked that did not answer in time.
const PAUSE: Duration = Duration::from_mins(1);
/// The value of the field.
const CONTINUE: &str = "100-continue";

/// An extension that marks a request whose client waits for `100 Continue` before it sends the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectsContinue;

/// Whether a request's client waits for `100 Continue` before it sends the body.
pub(super) fn is_expected(parts: &request::Parts) -> bool {
    let mut lines = parts.headers.get_all(EXPECT).iter();
    let is_it = |line: &HeaderValue| line.as_bytes().eq_ignore_ascii_case(CONTINUE.as_bytes());
    parts.version == Version::HTTP_11 && lines.next().is_some_and(is_it) && lines.next().is_none()
}

/// The time until which requests do not ask an origin for `100 Continue`, because it did not answer such a request
/// before.
#[derive(Clone, Debug, Default)]
pub(super) struct Silence(Arc<Mutex<Option<Instant>>>);

impl Silence {
    fn is_over(&self) -> bool {
        self.0.lock().is_none_or(|end| end <= Instant::now())
    }

    fn begin(&self) {
        *self.0.lock() = Some(Instant::now() + PAUSE);
    }
}

/// The progress of a request that waits for its origin's permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permission {
    Awaited,
    Granted,
    /// The origin has answered without the body, and its answer is being read.
    Unneeded,
    /// The answer has been read.
    Over,
}

/// The origin's permission (`100 Continue`) that a request waits for before it sends its body.
#[derive(Debug)]
pub(super) struct Awaited(watch::Sender<Permission>);

impl Awaited {
    /// Makes a request that is marked as waiting for `100 Continue` wait for its origin's, before the body is sent,
    /// unless the origin has recently failed to answer.
    pub(super) fn begin(
        request: Request<Body>,
        silence: &Silence,
        limit: Duration,
    ) -> (Option<Self>, Request<Body>) {
        let (mut parts, body) = request.into_parts();
        let is_marked = parts.extensions.remove::<ExpectsContinue>().is_some();
        if !is_marked || !silence.is_over() {
            return (None, Request::from_parts(parts, body));
        }
        parts.headers.insert(EXPECT, HeaderValue::from_static(CONTINUE));
        let (sender, permission) = watch::channel(Permission::Awaited);
        let (silence, limit) = (silence.clone(), limit.min(PATIENCE));
        let wait = Box::pin(may_send(permission, limit, silence));
        let body = Body::wrap(Waiting { body, wait: Some(wait) });
        let mut request = Request::from_parts(parts, body);
        let granting = sender.clone();
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                step(&granting, Permission::Awaited, Permission::Granted);
            }
        });
        (Some(Self(sender)), request)
    }

    /// Records the origin's response to a request: if the origin has not permitted the request's body before, it does
    /// not get it, nor another request on this connection.
    pub(super) fn answered(self, response: Response<Body>) -> Response<Body> {
        step(&self.0, Permission::Awaited, Permission::Unneeded);
        response.map(|body| Body::wrap(Answer { body, awaited: self }))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        for from in [Permission::Awaited, Permission::Unneeded] {
            step(&self.0, from, Permission::Over);
        }
    }
}

fn step(permission: &watch::Sender<Permission>, from: Permission, to: Permission) {
    permission.send_if_modified(|now| {
        let is_next = *now == from;
        if is_next {
            *now = to;
        }
        is_next
    });
}

/// Waits until the body may be sent, and returns true, or the origin's answer has been read without it.
async fn may_send(
    mut permission: watch::Receiver<Permission>,
    limit: Duration,
    silence: Silence,
) -> bool {
    let news = permission.wait_for(|now| *now != Permission::Awaited);
    let Ok(news) = timeout(limit, news).await.map(|news| news.is_ok()) else {
        silence.begin();
        return true;
    };
    let end = |now: &Permission| [Permission::Granted, Permission::Over].contains(now);
    // hyper may be reading the answer: an error here would end that.
    news && permission.wait_for(end).await.is_ok_and(|now| *now == Permission::Granted)
}

/// A body that is not touched before it may be sent.
struct Waiting {
    body: Body,
    wait: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
}

impl HttpBody for Waiting {
    type Data = Bytes;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(wait) = &mut self.wait {
            if !ready!(wait.as_mut().poll(context)) {
                return Poll::Ready(Some(Err("the origin has answered without the body".into())));
            }
            self.wait = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, at whose end the wait for a permission is over.
struct Answer {
    body: Body,
    #[expect(dead_code, reason = "it is dropped at the end")]
    awaited: Awaited,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
