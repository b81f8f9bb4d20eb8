//! Requests that are counted and logged when their responses end, or their clients leave.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use bytes::Buf;
use http::header::{REFERER, USER_AGENT};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::access_log::LogLine;
use super::batch::{Batch, Batches};
use super::error_log::ErrorLine;
use super::socket::Socket;
use super::{Inner, NO_ID, causes};
use crate::cache::{Body, BodyError, Status};

/// The status code in the access log of requests whose client disconnected before there was a
/// response, as in nginx. Requests that the proxy leaves when it ends have 503.
pub(super) const ABANDONED: u16 = 499;

/// The observer of a client's request and its response, which counts and logs both when it is
/// dropped.
pub(super) struct Watch {
    proxy: Arc<Inner>,
    begun: Instant,
    asked: Option<Asked>,
    logged: Option<Logged>,
    /// The status for the log; [`ABANDONED`] as long as there is no response.
    code: u16,
    status: Option<Status>,
    sent_bytes: u64,
}

/// The parts of a request that both logs have.
struct Asked {
    client: IpAddr,
    method: Method,
    uri: Uri,
}

/// The parts of a request that the access log alone has.
struct Logged {
    time: SystemTime,
    version: Version,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
}

/// The body of a response to a client, which is observed until it has been sent or abandoned.
pub(super) struct Watched {
    body: Batches<Body>,
    watch: Watch,
    socket: Option<Socket>,
    /// The wait for the client's disconnection, which nobody else notices while nothing is sent.
    left: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Watched {
    /// Returns the response body changed so that it ends when its client disconnects.
    pub(super) fn for_client(mut self, socket: Socket) -> Self {
        self.socket = Some(socket);
        self
    }
}

impl Watch {
    /// Starts to observe a request of a client, as it was received.
    pub(super) fn new<B>(proxy: &Arc<Inner>, request: &Request<B>, client: IpAddr) -> Self {
        proxy.metrics.request_begins();
        let has_log = proxy.access_log.is_some() || proxy.error_log.is_some();
        let asked = has_log.then(|| Asked {
            client,
            method: request.method().clone(),
            uri: request.uri().clone(),
        });
        let header = |name| request.headers().get(name).cloned();
        let logged = proxy.access_log.is_some().then(|| Logged {
            time: SystemTime::now(),
            version: request.version(),
            referer: header(REFERER),
            agent: header(USER_AGENT),
        });
        let (proxy, begun) = (Arc::clone(proxy), Instant::now());
        Self { proxy, begun, asked, logged, code: ABANDONED, status: None, sent_bytes: 0 }
    }

    /// Records the absolute URI of the request for the logs.
    pub(super) fn has_target(&mut self, uri: &Uri) {
        if let Some(asked) = &mut self.asked {
            asked.uri = uri.clone();
        }
    }

    /// Writes into the error log that the body of the response ends too early: nothing else tells of it, for the client
    /// has the status of a success by then.
    fn breaks_off(&self, error: &BodyError) {
        let Some(Asked { client, method, uri }) = &self.asked else { return };
        let cause =
            format!("the response breaks off after {} bytes: {}", self.sent_bytes, causes(error));
        self.proxy.log_error(|| ErrorLine {
            id: NO_ID,
            client: *client,
            status: self.code,
            request: Some((method, uri)),
            cause: &cause,
        });
    }

    /// Attaches the observer to the response, until its body has been sent.
    pub(super) fn follow(mut self, response: Response<Body>) -> Response<Watched> {
        let (mut parts, body) = response.into_parts();
        self.code = parts.status.as_u16();
        self.status = parts.extensions.remove::<Status>();
        let body = Batches::of(body);
        Response::from_parts(parts, Watched { body, watch: self, socket: None, left: None })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.code == ABANDONED && self.proxy.is_over.load(Ordering::Relaxed) {
            self.code = StatusCode::SERVICE_UNAVAILABLE.as_u16();
            self.status = Some(Status::refused("the proxy has ended"));
        }
        let Self { proxy, begun, asked, logged, .. } = self;
        let took = begun.elapsed();
        proxy.metrics.request_ends();
        proxy.metrics.responded(self.status.as_ref(), self.code, self.sent_bytes, took);
        let (Some(log), Some(asked), Some(logged)) = (&proxy.access_log, asked, logged) else {
            return;
        };
        let status = self.status.as_ref().map(Status::to_string).unwrap_or_default();
        let bytes = |value: &Option<HeaderValue>| -> Vec<u8> {
            value.as_ref().map(|value| value.as_bytes().to_vec()).unwrap_or_default()
        };
        let line = LogLine {
            client: &asked.client.to_string(),
            time: logged.time,
            method: asked.method.as_str(),
            target: &asked.uri.to_string(),
            version: if logged.version == Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" },
            status: self.code,
            sent_bytes: self.sent_bytes,
            referer: &bytes(&logged.referer),
            agent: &bytes(&logged.agent),
            cache: status.strip_prefix("haypile; ").unwrap_or(&status),
            seconds: took.as_secs_f64(),
        };
        log.log(&line);
    }
}

impl HttpBody for Watched {
    type Data = Batch;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Batch>, BodyError>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
            let patience = self.watch.proxy.limits.client;
            if let Some(socket) = self.socket.clone() {
                let left = self.left.get_or_insert_with(|| Box::pin(socket.left(patience)));
                ready!(left.as_mut().poll(context));
                return Poll::Ready(Some(Err("the client has left".into())));
            }
            return Poll::Pending;
        };
        self.left = None;
        match &frame {
            Some(Ok(frame)) => {
                self.watch.sent_bytes += frame.data_ref().map_or(0, Batch::remaining) as u64;
            }
            Some(Err(error)) => self.watch.breaks_off(error),
            None => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
