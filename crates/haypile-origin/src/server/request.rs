//! Heads of requests, and the framing of their bodies.

use bytes::{Buf, Bytes, BytesMut};
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use httparse::{Header, ParserConfig, Status};

/// The longest head of a request, line between chunks, or trailer section that the server accepts, in bytes.
pub(crate) const MOST_HEAD_BYTES: usize = 64 << 10;
const MOST_FIELDS: usize = 256;

/// The head of an HTTP request: its method, path, host and fields.
#[derive(Debug)]
pub struct RequestHead {
    /// The bytes of the request's head, including the empty line at its end; of HTTP/2, as they
    /// would be in HTTP/1.1.
    pub bytes: Bytes,
    /// Whether the request's method is HEAD.
    pub is_head: bool,
    /// Whether the request's method is GET.
    pub is_get: bool,
    /// The path and the query of the request.
    pub path: String,
    /// The host of the request, in lower case and without a port.
    pub host: Option<String>,
    /// The way in which the end of the request's body is recognized: by its length, or by chunks.
    pub body: BodyLength,
    /// Whether the client may send another request after this one.
    pub is_kept_alive: bool,
}

/// The way in which the end of a request's body is recognized: by its length, or by chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// The body ends after this number of bytes.
    Bytes(u64),
    /// The body ends after its last chunk.
    Chunked,
}

/// The error of received bytes that are not a request, are too long, or are ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

impl RequestHead {
    /// Removes and returns a request's head from the received bytes; `None` if its end was not
    /// received yet.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Self>, Unreadable> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let parsed = ParserConfig::default().parse_request(&mut request, buffer);
        let Status::Complete(length) = parsed.map_err(|_| Unreadable)? else {
            return if buffer.len() > MOST_HEAD_BYTES { Err(Unreadable) } else { Ok(None) };
        };
        if length > MOST_HEAD_BYTES {
            return Err(Unreadable);
        }
        let method = request.method.unwrap_or_default();
        let (is_head, is_get) = (method == "HEAD", method == "GET");
        let target = request.path.unwrap_or_default();
        let path = path_of(target).to_owned();
        let host = host(target, request.headers);
        let body = body_length(request.headers)?;
        let says = |token: &str| says(request.headers, token);
        let is_kept_alive = !says("close") && (request.version == Some(1) || says("keep-alive"));
        let bytes = buffer.split_to(length).freeze();
        Ok(Some(Self { bytes, is_head, is_get, path, host, body, is_kept_alive }))
    }

    /// Returns the head of an HTTP/2 request, with its bytes as in HTTP/1.1.
    pub(crate) fn of_http2(parts: &Parts) -> Self {
        let path = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str).to_owned();
        let authority = parts.uri.authority().map(Authority::as_str);
        let named = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
        let mut bytes = format!("{} {path} HTTP/1.1\r\n", parts.method).into_bytes();
        let host = authority.map(|host| (&HOST, host.as_bytes()));
        let fields = parts.headers.iter().map(|(name, value)| (name, value.as_bytes()));
        let fields = fields.filter(|(name, _)| authority.is_none() || **name != HOST);
        for (name, value) in host.into_iter().chain(fields) {
            for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        Self {
            bytes: bytes.into(),
            is_head: parts.method == Method::HEAD,
            is_get: parts.method == Method::GET,
            path,
            host: authority.or_else(named).map(host_of),
            body: BodyLength::Bytes(0),
            is_kept_alive: true,
        }
    }

    /// Parses the header fields of the request, for the few replies that depend on them.
    pub fn fields(&self) -> HeaderMap {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let mut map = HeaderMap::new();
        if request.parse(&self.bytes).is_ok() {
            for field in request.headers.iter() {
                if let Ok(name) = HeaderName::from_bytes(field.name.as_bytes())
                    && let Ok(value) = HeaderValue::from_bytes(field.value)
                {
                    map.append(name, value);
                }
            }
        }
        map
    }
}

/// Returns path and query of a target, which may be a whole URL.
fn path_of(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    let Some((_, rest)) = target.split_once("://") else { return target };
    rest.find(['/', '?']).map_or("/", |start| &rest[start..])
}

/// Returns the host of a request: that of a target that is a whole URL, or of the first `Host` field.
fn host(target: &str, fields: &[Header<'_>]) -> Option<String> {
    if !target.starts_with('/')
        && let Some((_, rest)) = target.split_once("://")
    {
        let authority = rest.find(['/', '?']).map_or(rest, |end| &rest[..end]);
        return Some(host_of(authority));
    }
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case("host"))?;
    str::from_utf8(field.value).ok().map(host_of)
}

/// Returns a host name in lower case and without a port.
pub(crate) fn host_of(authority: &str) -> String {
    let authority = authority.trim_ascii();
    let host = match authority.rsplit_once(':') {
        // A colon inside of brackets is a part of an address.
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    };
    host.to_ascii_lowercase()
}

/// Two lengths, even the same ones, or a length and chunks: another reader of the same bytes may see
/// another request.
fn body_length(fields: &[Header<'_>]) -> Result<BodyLength, Unreadable> {
    let mut found = None;
    for field in fields {
        let length = if field.name.eq_ignore_ascii_case("content-length") {
            let digits = str::from_utf8(field.value).map_err(|_| Unreadable)?;
            if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                return Err(Unreadable);
            }
            BodyLength::Bytes(digits.parse().map_err(|_| Unreadable)?)
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err(Unreadable);
            }
            BodyLength::Chunked
        } else {
            continue;
        };
        if found.replace(length).is_some() {
            return Err(Unreadable);
        }
    }
    Ok(found.unwrap_or(BodyLength::Bytes(0)))
}

/// Whether a `Connection` field has this member.
fn says(fields: &[Header<'_>], token: &str) -> bool {
    let lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"));
    let mut members = lines.flat_map(|field| field.value.split(|byte| *byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

/// The state of parsing a request's body: the part that was not received yet.
#[derive(Debug)]
pub enum BodyReader {
    /// This number of bytes of the body is missing.
    Bytes(u64),
    /// The line with the length of the next chunk is missing.
    ChunkLine,
    /// This number of bytes of a chunk is missing, and the line end after it.
    Chunk(u64),
    /// The fields after the last chunk are missing.
    Trailers,
    /// The whole body has come.
    End,
}

/// A part of a request's body that was received, or its end.
#[derive(Debug, PartialEq, Eq)]
pub enum BodyPart {
    /// Bytes of the body's content.
    Content(BytesMut),
    /// No part yet: more bytes have to come first.
    Missing,
    /// The end: the body is complete.
    End,
}

impl BodyReader {
    /// Creates the parser of a request's body whose end is recognized in this way.
    pub fn new(length: BodyLength) -> Self {
        match length {
            BodyLength::Bytes(bytes) => Self::Bytes(bytes),
            BodyLength::Chunked => Self::ChunkLine,
        }
    }

    /// Removes and returns the next part of the request's body from the received bytes.
    pub fn take(&mut self, buffer: &mut BytesMut) -> Result<BodyPart, Unreadable> {
        loop {
            match self {
                Self::End | Self::Bytes(0) => return Ok(BodyPart::End),
                Self::ChunkLine => match httparse::parse_chunk_size(buffer) {
                    Ok(Status::Complete((length, bytes))) => {
                        buffer.advance(length);
                        *self = if bytes == 0 { Self::Trailers } else { Self::Chunk(bytes) };
                    }
                    Ok(Status::Partial) => return missing(buffer),
                    Err(_) => return Err(Unreadable),
                },
                Self::Chunk(0) => {
                    if buffer.len() < 2 {
                        return Ok(BodyPart::Missing);
                    }
                    if !buffer.starts_with(b"\r\n") {
                        return Err(Unreadable);
                    }
                    buffer.advance(2);
                    *self = Self::ChunkLine;
                }
                Self::Bytes(missing) | Self::Chunk(missing) => {
                    if buffer.is_empty() {
                        return Ok(BodyPart::Missing);
                    }
                    let part = take_up_to(buffer, missing);
                    return Ok(BodyPart::Content(part));
                }
                Self::Trailers => {
                    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
                    match httparse::parse_headers(buffer, &mut fields) {
                        Ok(Status::Complete((length, _))) => {
                            buffer.advance(length);
                            *self = Self::End;
                        }
                        Ok(Status::Partial) => return missing(buffer),
                        Err(_) => return Err(Unreadable),
                    }
                }
            }
        }
    }
}

fn take_up_to(buffer: &mut BytesMut, missing: &mut u64) -> BytesMut {
    let length = usize::try_from(*missing).unwrap_or(usize::MAX).min(buffer.len());
    *missing -= length as u64;
    buffer.split_to(length)
}

fn missing(buffer: &BytesMut) -> Result<BodyPart, Unreadable> {
    if buffer.len() > MOST_HEAD_BYTES { Err(Unreadable) } else { Ok(BodyPart::Missing) }
}
