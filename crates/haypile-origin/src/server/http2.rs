//! One connection of a client over HTTP/2.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::body::BodySource;
use super::connection::ClientStream;
use super::records::{Carrier, Records};
use super::reply::{Ending, Transmission};
use super::request::RequestHead;
use super::script::{ListId, Scheme, Script};

/// The largest number of concurrent requests on one HTTP/2 connection; others wait. It is the
/// smallest number that RFC 9113 recommends, and common in servers.
pub const MAX_STREAMS: u32 = 100;

/// The most fields of a reply.
const MOST_FIELDS: usize = 256;

pub(super) struct Http2Connection<S> {
    stream: S,
    open: Open,
}

/// An open connection: it is noted until this is dropped.
struct Open {
    script: Arc<Script>,
    records: Arc<Records>,
}

/// The reply is not one that HTTP/2 can carry to its end: the stream is reset.
#[derive(Debug, thiserror::Error)]
#[error(
    "the origin server resets the HTTP/2 stream, because the client's request broke off or the reply cannot be sent to its end"
)]
struct BreaksOff;

/// The tasks of a connection, which end with it.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock();
        // Those that have ended are forgotten.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

impl<S: ClientStream + Send + 'static> Http2Connection<S> {
    pub(super) fn new(stream: S, script: Arc<Script>, records: Arc<Records>) -> Self {
        records.note_connection();
        let _ = stream.socket().set_nodelay(true);
        Self { stream, open: Open { script, records } }
    }

    /// Answers the requests of an HTTP/2 connection until one side ends it.
    pub(super) async fn run(self) {
        let Self { stream, open } = self;
        let answer = |request| {
            answer(S::SCHEME, request, Arc::clone(&open.script), Arc::clone(&open.records))
        };
        let mut builder = Builder::new(Tasks::default());
        builder.max_concurrent_streams(MAX_STREAMS);
        // A connection that fails is one that the client has ended.
        let _ = builder.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.records.note_end_of_connection();
    }
}

async fn answer(
    scheme: Scheme,
    request: Request<Incoming>,
    script: Arc<Script>,
    records: Arc<Records>,
) -> Result<Response<ReplyBody>, BreaksOff> {
    let (parts, mut body) = request.into_parts();
    let head = RequestHead::of_http2(&parts);
    let list = script.find(scheme, head.host.as_deref(), &head.path);
    let carrier = Carrier { scheme, is_http2: true };
    let noted = records.note(carrier, list, &head.path, &head.bytes);
    while let Some(frame) = body.frame().await {
        if let Ok(part) = frame.map_err(|_| BreaksOff)?.into_data() {
            records.note_body(noted, &part);
        }
    }
    records.note_whole(noted);
    let reply = script.reply(noted.list, noted.before);
    if !reply.delay.is_zero() {
        sleep(reply.delay).await;
    }
    let sent = reply.to(&head);
    records.note_reply(sent.status);
    let mut response = response(&sent).ok_or(BreaksOff)?.map(|()| ReplyBody {
        source: if sent.body.is_empty() { BodySource::from("") } else { reply.body().made() },
        left: sent.body.clone(),
        is_cut: sent.is_cut,
        ending: sent.ending,
        list,
        records,
    });
    response.headers_mut().remove(TRANSFER_ENCODING);
    Ok(response)
}

/// Returns status and fields of a reply; `None` if its bytes are not those of a response.
fn response(sent: &Transmission) -> Option<Response<()>> {
    let mut response = Response::new(());
    let status: StatusCode = sent.status?;
    *response.status_mut() = status;
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    if !head.parse(&sent.head).ok()?.is_complete() {
        return None;
    }
    for field in head.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        response.headers_mut().append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(response)
}

/// The body of a reply, which is counted as it goes out.
struct ReplyBody {
    source: BodySource,
    left: Range<u64>,
    is_cut: bool,
    ending: Ending,
    list: Option<ListId>,
    records: Arc<Records>,
}

impl HttpBody for ReplyBody {
    type Data = Bytes;
    type Error = BreaksOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BreaksOff>>> {
        if self.left.is_empty() {
            return match self.ending {
                // The client resets the stream, or ends the connection.
                Ending::Hang => Poll::Pending,
                Ending::KeepAlive if self.is_cut => Poll::Pending,
                _ if self.is_cut => Poll::Ready(Some(Err(BreaksOff))),
                _ => Poll::Ready(None),
            };
        }
        let part = self.source.part(self.left.clone());
        if part.is_empty() {
            // A function made a body that is too short.
            return Poll::Ready(Some(Err(BreaksOff)));
        }
        self.left.start += part.len() as u64;
        self.records.sending(self.list, part.len()).sent(part.len());
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && !self.is_cut && self.ending != Ending::Hang
    }
}
