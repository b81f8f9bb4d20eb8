//! The answer to one request.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_LOCATION, TRANSFER_ENCODING};
use http::{HeaderMap, Response, StatusCode};

use super::body::BodySource;
use super::conditions::{Part, is_not_modified, part};
use super::request::RequestHead;

/// A scripted reply to a request: a [`Response`] with optional faults, or arbitrary bytes.
#[derive(Clone, Debug)]
pub struct Reply {
    head: ReplyHead,
    status: StatusCode,
    headers: HeaderMap,
    body: BodySource,
    framing: Framing,
    answers_conditions: bool,
    answers_ranges: bool,
    cut_after: Option<u64>,
    pub(super) delay: Duration,
    ending: Ending,
}

#[derive(Clone, Debug)]
enum ReplyHead {
    /// The head of a response; its field has the encoded bytes, once the reply is part of a script.
    Response(Bytes),
    Raw(Bytes),
    Endless,
}

/// The way in which a reply marks the end of its body (length, chunks or the end of the
/// connection).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The `Content-Length` of the body.
    #[default]
    Length,
    /// A `Content-Length` of this value, whatever the body's length is. Unless the connection
    /// [ends](Reply::ending) after it, the client waits for what is missing, or takes the surplus
    /// for a response.
    WrongLength(u64),
    /// Chunks of at most 64 KiB.
    Chunked,
    /// The end of the connection.
    Close,
}

/// The way in which a connection continues or ends after a reply, such as being kept open or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// The connection waits for the next request, unless the client does not want that.
    #[default]
    KeepAlive,
    /// The connection ends, without an announcement in the head.
    Close,
    /// The connection ends with a TCP reset. What went out before still comes as far as the client
    /// had room for it.
    Reset,
    /// The connection stays open, and nothing more goes out, until the client closes it.
    Hang,
}

impl<B: Into<BodySource>> From<Response<B>> for Reply {
    /// Returns a reply with status, fields and body of a response. The fields that mark the end of
    /// the body are the server's own.
    fn from(response: Response<B>) -> Self {
        let (parts, body) = response.into_parts();
        let mut headers = parts.headers;
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        Self {
            head: ReplyHead::Response(Bytes::new()),
            status: parts.status,
            headers,
            body: body.into(),
            framing: Framing::default(),
            answers_conditions: false,
            answers_ranges: false,
            cut_after: None,
            delay: Duration::ZERO,
            ending: Ending::default(),
        }
    }
}

impl Reply {
    /// Returns a reply without header fields and body.
    pub fn empty(status: StatusCode) -> Self {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        response.into()
    }

    /// Returns a reply of arbitrary bytes, sent as they are. Only [`delay`](Self::delay) and
    /// [`ending`](Self::ending) affect it. Without bytes it is silence, or an end of the connection
    /// before the head.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self { head: ReplyHead::Raw(bytes.into()), ..Self::empty(StatusCode::OK) }
    }

    /// Returns a reply with an endless head, which is sent until the client closes the connection.
    pub fn endless_head() -> Self {
        Self { head: ReplyHead::Endless, ..Self::empty(StatusCode::OK) }
    }

    /// Sets the delay between the end of the request and the head of the reply. The timer has a
    /// resolution of a millisecond: the head is sent up to 1 ms later, never earlier.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// Sets how the end of the reply's body is marked.
    #[must_use]
    pub fn framing(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    /// Sets what happens to the connection after the reply.
    #[must_use]
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Makes the reply send only the first `body_bytes` of its body without marking the end, and
    /// then end the connection as `ending` says.
    #[must_use]
    pub fn cut_after(self, body_bytes: u64, ending: Ending) -> Self {
        Self { cut_after: Some(body_bytes), ending, ..self }
    }

    /// Makes the reply a 304 if `If-None-Match` or `If-Modified-Since` of the request permits that.
    #[must_use]
    pub fn answering_conditions(self) -> Self {
        Self { answers_conditions: true, ..self }
    }

    /// Makes the reply a 206 or 416 if the request asks for one range; the body needs a length.
    #[must_use]
    pub fn answering_ranges(self) -> Self {
        Self { answers_ranges: true, ..self }
    }

    /// Returns the reply with the bytes of its head prepared, so that they are not generated for
    /// each request.
    pub(super) fn prepared(mut self) -> Self {
        if let ReplyHead::Response(head) = &mut self.head {
            let mark = match self.framing {
                Framing::Close => String::new(),
                _ if !may_have_body(self.status) => String::new(),
                Framing::Length => length_line(self.body.bytes()),
                Framing::WrongLength(bytes) => length_line(bytes),
                Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            };
            *head = head_bytes(self.status, &self.headers, &mark);
        }
        self
    }

    /// Returns what the reply sends for this request: the head and the range of the body.
    pub(super) fn to(&self, request: &RequestHead) -> Transmission {
        let sent = |status, head, body| Transmission {
            status,
            head,
            body,
            is_chunked: false,
            is_cut: self.cut_after.is_some(),
            is_endless: false,
            ending: self.ending,
        };
        let whole = match &self.head {
            ReplyHead::Raw(bytes) => return sent(None, bytes.clone(), 0..0),
            ReplyHead::Endless => {
                let head = Bytes::from_static(b"HTTP/1.1 200 OK\r\nendless: ");
                return Transmission { is_endless: true, ..sent(None, head, 0..0) };
            }
            ReplyHead::Response(head) => head,
        };
        let is_read = request.is_get || request.is_head;
        if is_read && self.answers_conditions {
            let fields = request.fields();
            if is_not_modified(&fields, self.status, &self.headers) {
                return sent(Some(StatusCode::NOT_MODIFIED), self.not_modified(), 0..0);
            }
        }
        let bytes = self.body.bytes();
        let cut = |range: Range<u64>| {
            let most = self.cut_after.unwrap_or(u64::MAX);
            range.start..range.end.min(range.start.saturating_add(most))
        };
        if request.is_get && self.answers_ranges {
            match part(&request.fields(), self.status, &self.headers, bytes) {
                Part::Whole => {}
                Part::Bytes(range) => {
                    let (first, last) = (range.start, range.end - 1);
                    let line = format!("content-range: bytes {first}-{last}/{bytes}\r\n");
                    let line = line + &length_line(range.end - range.start);
                    let status = StatusCode::PARTIAL_CONTENT;
                    return sent(Some(status), self.head_with(status, &line), cut(range));
                }
                Part::NotSatisfiable => {
                    let line = format!("content-range: bytes */{bytes}\r\n{}", length_line(0));
                    let status = StatusCode::RANGE_NOT_SATISFIABLE;
                    return sent(Some(status), self.head_with(status, &line), 0..0);
                }
            }
        }
        let ends_with_connection = self.framing == Framing::Close;
        let ending = match self.ending {
            Ending::KeepAlive if ends_with_connection => Ending::Close,
            ending => ending,
        };
        let has_body = may_have_body(self.status) && !request.is_head;
        let is_chunked = has_body && self.framing == Framing::Chunked;
        let body = if has_body { cut(0..bytes) } else { 0..0 };
        Transmission { is_chunked, ending, ..sent(Some(self.status), whole.clone(), body) }
    }

    pub(super) fn body(&self) -> &BodySource {
        &self.body
    }

    fn head_with(&self, status: StatusCode, lines: &str) -> Bytes {
        head_bytes(status, &self.headers, lines)
    }

    /// Returns a 304 with the fields of the response, but for those that are about a body.
    fn not_modified(&self) -> Bytes {
        let fields = self.headers.iter();
        let fields = fields.filter(|(name, _)| {
            !name.as_str().starts_with("content-") || **name == CONTENT_LOCATION
        });
        let fields = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
        head_bytes(StatusCode::NOT_MODIFIED, &fields, "")
    }
}

/// The head and body that the server sends in reply to one request.
#[derive(Debug)]
pub(super) struct Transmission {
    /// The status of the reply; `None` if it is arbitrary bytes.
    pub(super) status: Option<StatusCode>,
    pub(super) head: Bytes,
    /// The range of bytes of the reply's body that is sent.
    pub(super) body: Range<u64>,
    pub(super) is_chunked: bool,
    /// Whether the reply's body is cut off without its end being marked.
    pub(super) is_cut: bool,
    /// Whether the reply's head never ends.
    pub(super) is_endless: bool,
    pub(super) ending: Ending,
}

fn may_have_body(status: StatusCode) -> bool {
    let without = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
    !status.is_informational() && !without.contains(&status)
}

fn length_line(bytes: u64) -> String {
    format!("content-length: {bytes}\r\n")
}

fn head_bytes(status: StatusCode, fields: &HeaderMap, lines: &str) -> Bytes {
    let mut first = String::new();
    let reason = status.canonical_reason().unwrap_or("");
    write!(first, "HTTP/1.1 {} {reason}\r\n", status.as_u16()).expect("a string takes all");
    let mut head = first.into_bytes();
    for (name, value) in fields {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    head.extend_from_slice(lines.as_bytes());
    head.extend_from_slice(b"\r\n");
    head.into()
}
