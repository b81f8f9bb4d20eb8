//! Targets of requests with bytes that no URI may have, such as JSON or UTF-8 as it is typed.
//!
//! hyper refuses most of them. They are percent-encoded on their way in, so that the cache and the origin both know a
//! target in one form only (RFC 3986, section 2.1). Only bytes between the first and the second space of the first line
//! of a head are replaced, by three visible ones: lines, fields and lengths stay as they are, and the bytes of bodies are
//! never touched. Where a head begins, hyper itself decides: it gets no byte behind the end of a head before it has read
//! that, and said how long the body is. Where that is not certain, bytes pass as they are, and hyper refuses what it
//! refuses.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use http::header::UPGRADE;
use http::uri::PathAndQuery;
use http::{Method, Request};
use http_body::Body as HttpBody;
use tokio::io::{AsyncRead, ReadBuf};

use crate::semantics::{self, is_raw, push_encoded};

/// The slashes of an absolute URL up to its path.
const SLASHES_BEFORE_PATH: u8 = 3;
/// The most digits of a chunk's length that are read here.
const MOST_DIGITS: u8 = 15;

/// The framing (body length) of the last request that hyper has read on a client's connection, by which the begin of
/// the next request is found.
#[derive(Clone, Debug)]
pub(super) struct Framing(Arc<AtomicU64>);

impl Framing {
    /// The values that are not the length of a body.
    const UNTOLD: u64 = u64::MAX;
    const CHUNKED: u64 = u64::MAX - 1;
    const OTHER: u64 = u64::MAX - 2;

    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(Self::UNTOLD)))
    }

    /// Records the body length of a request as hyper has read it. It has to be called before more of the connection is
    /// read.
    pub(super) fn note<B: HttpBody>(&self, request: &Request<B>) {
        let may_become_other =
            request.method() == Method::CONNECT || request.headers().contains_key(UPGRADE);
        let body = request.body();
        let exact = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        let noted = match exact {
            _ if may_become_other => Self::OTHER,
            Some(length) => length.min(Self::OTHER),
            None => Self::CHUNKED,
        };
        self.0.store(noted, Ordering::Release);
    }

    /// Returns what was noted since the last call, if anything was.
    fn take(&self) -> Option<u64> {
        // Most calls find nothing.
        let is_told = self.0.load(Ordering::Acquire) != Self::UNTOLD;
        is_told.then(|| self.0.swap(Self::UNTOLD, Ordering::AcqRel))
    }
}

/// The part of a conversation to which the next byte of a client belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The begin of a head, or an empty line before it.
    Begin,
    Method,
    /// The target, behind as many of its slashes; `None` at its begin.
    Target(Option<u8>),
    /// A line of a head, behind what may be encoded.
    Line,
    /// The begin of a line of a head.
    LineBegin,
    /// Behind the CR that begins a line.
    EmptyLine,
    /// Behind the end of a head.
    HeadEnd,
    /// A body, of which as many bytes are left.
    Body(u64),
    Chunk(Chunk),
    /// Not known, from here on.
    Lost,
}

/// A place in a body in chunks without extensions and trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    Size { bytes: u64, digits: u8 },
    SizeEnd(u64),
    Data(u64),
    DataCr,
    DataLf,
    LastCr,
    LastLf,
}

impl Place {
    /// Returns the place behind the head that hyper has just read.
    fn behind_head(noted: u64) -> Self {
        match noted {
            Framing::OTHER => Self::Lost,
            Framing::CHUNKED => Self::Chunk(Chunk::Size { bytes: 0, digits: 0 }),
            0 => Self::Begin,
            length => Self::Body(length),
        }
    }

    /// Goes on by one byte, and returns whether that has to be encoded.
    fn step(&mut self, byte: u8) -> bool {
        let mut is_encoded = false;
        *self = match (*self, byte) {
            (Self::Begin, b'\r' | b'\n') | (Self::Body(1), _) => Self::Begin,
            (Self::Method, b' ') => Self::Target(None),
            // hyper reads no further.
            (Self::Method | Self::Target(_), b'\n') => Self::Lost,
            (Self::Begin | Self::Method, _) => Self::Method,
            (Self::Target(_), b' ') => Self::Line,
            (Self::Target(None), b'/') => Self::Target(Some(SLASHES_BEFORE_PATH)),
            (Self::Target(slashes), _) => {
                let slashes = slashes.unwrap_or_default();
                is_encoded = slashes == SLASHES_BEFORE_PATH && is_raw(byte);
                // A query may stand in the place of the path.
                let is_next = byte == b'/' || (byte == b'?' && slashes + 1 == SLASHES_BEFORE_PATH);
                let is_next = is_next && slashes < SLASHES_BEFORE_PATH;
                Self::Target(Some(slashes + u8::from(is_next)))
            }
            (Self::Line | Self::LineBegin, b'\n') => match *self {
                Self::LineBegin => Self::HeadEnd,
                _ => Self::LineBegin,
            },
            (Self::LineBegin, b'\r') => Self::EmptyLine,
            (Self::Line | Self::LineBegin, _) => Self::Line,
            (Self::EmptyLine, b'\n') => Self::HeadEnd,
            (Self::Body(left), _) => Self::Body(left - 1),
            (Self::Chunk(chunk), byte) => chunk.step(byte),
            (Self::EmptyLine | Self::HeadEnd | Self::Lost, _) => Self::Lost,
        };
        is_encoded
    }

    /// Goes on to the end of these bytes, of the head, or of the body, whichever comes first. Returns the number of bytes,
    /// and whether one of them has to be encoded.
    fn walk(&mut self, bytes: &[u8]) -> (usize, bool) {
        let (mut at, mut has_raw) = (0, false);
        while at < bytes.len() {
            let left = &bytes[at..];
            match *self {
                Self::Lost => return (bytes.len(), has_raw),
                Self::HeadEnd => return (at, has_raw),
                // Most bytes are in these two.
                Self::Line => match line_end(left) {
                    None => return (bytes.len(), has_raw),
                    Some(end) => {
                        at += end;
                        self.step(b'\n');
                        at += 1;
                        continue;
                    }
                },
                Self::Body(length) => {
                    let taken = usize::try_from(length).unwrap_or(usize::MAX).min(left.len());
                    let rest = length - taken as u64;
                    *self = if rest == 0 { Self::Begin } else { Self::Body(rest) };
                    return (at + taken, has_raw);
                }
                Self::Chunk(Chunk::Data(length)) => {
                    let taken = usize::try_from(length).unwrap_or(usize::MAX).min(left.len());
                    let rest = length - taken as u64;
                    *self = Self::Chunk(if rest == 0 { Chunk::DataCr } else { Chunk::Data(rest) });
                    at += taken;
                    continue;
                }
                _ => {}
            }
            has_raw |= self.step(left[0]);
            at += 1;
        }
        (at, has_raw)
    }

    /// Returns bytes that begin at this place as hyper gets them.
    fn encoded(mut self, bytes: &[u8]) -> Vec<u8> {
        let mut encoded = Vec::with_capacity(bytes.len() + bytes.len() / 2);
        for byte in bytes {
            if self.step(*byte) {
                push_encoded(&mut encoded, *byte);
            } else {
                encoded.push(*byte);
            }
        }
        encoded
    }
}

impl Chunk {
    /// Goes on by one byte. What hyper might read in another way is lost.
    fn step(self, byte: u8) -> Place {
        match (self, byte) {
            (Self::Size { bytes, digits }, _)
                if byte.is_ascii_hexdigit() && digits < MOST_DIGITS =>
            {
                let digit = char::from(byte).to_digit(16).expect("it is one");
                let bytes = bytes * 16 + u64::from(digit);
                Place::Chunk(Self::Size { bytes, digits: digits + 1 })
            }
            (Self::Size { bytes, digits: 1.. }, b'\r') => Place::Chunk(Self::SizeEnd(bytes)),
            (Self::SizeEnd(0), b'\n') => Place::Chunk(Self::LastCr),
            (Self::SizeEnd(bytes), b'\n') => Place::Chunk(Self::Data(bytes)),
            (Self::Data(1), _) => Place::Chunk(Self::DataCr),
            (Self::Data(bytes), _) => Place::Chunk(Self::Data(bytes - 1)),
            (Self::DataCr, b'\r') => Place::Chunk(Self::DataLf),
            (Self::DataLf, b'\n') => Place::Chunk(Self::Size { bytes: 0, digits: 0 }),
            (Self::LastCr, b'\r') => Place::Chunk(Self::LastLf),
            (Self::LastLf, b'\n') => Place::Begin,
            _ => Place::Lost,
        }
    }
}

/// Returns the index of the first LF.
fn line_end(bytes: &[u8]) -> Option<usize> {
    // Several bytes at a time: each request has hundreds.
    const STEP: usize = 32;
    let skipped = bytes.chunks(STEP).take_while(|chunk| !has_lf(chunk)).count() * STEP;
    let rest = bytes.get(skipped..)?;
    rest.iter().position(|byte| *byte == b'\n').map(|end| skipped + end)
}

fn has_lf(chunk: &[u8]) -> bool {
    // Without a branch for each byte, the compiler compares many at once.
    chunk.iter().map(|byte| u8::from(*byte == b'\n')).fold(0, |found, is_lf| found | is_lf) != 0
}

/// Returns a request's path and query with those bytes percent-encoded that no URI may have. hyper has read them as
/// they are where it is not certain that a head begins.
pub(super) fn encoded(path: PathAndQuery) -> PathAndQuery {
    if !path.as_str().bytes().any(is_raw) {
        return path;
    }
    // It may be too long.
    semantics::encoded(path.as_str()).try_into().unwrap_or(path)
}

/// A reader of a client's connection that percent-encodes the bytes of request targets which hyper would refuse.
#[derive(Debug)]
pub(super) struct EncodedTargets<T> {
    stream: T,
    framing: Framing,
    place: Place,
    /// Bytes that have come and are behind the place.
    held: Held,
    /// Bytes that are before the place, encoded, and not yet read.
    encoded: Held,
}

/// Bytes, and how many of them have been read.
#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    read: usize,
}

impl Held {
    fn left(&self) -> &[u8] {
        &self.bytes[self.read..]
    }

    /// Forgets the first bytes that are left, and the memory with the last of them: most connections are idle.
    fn advance(&mut self, read: usize) {
        self.read += read;
        if self.read == self.bytes.len() {
            *self = Self::default();
        }
    }

    /// Copies as many bytes as there is room for, and returns how many.
    fn copy_to(&self, buffer: &mut ReadBuf<'_>) -> usize {
        let copied = self.left().len().min(buffer.remaining());
        buffer.put_slice(&self.left()[..copied]);
        copied
    }
}

impl<T> EncodedTargets<T> {
    /// Wraps the reading side of a client's connection at its begin. Each of its requests has to be noted in `framing`
    /// as it comes.
    pub(super) fn new(stream: T, framing: Framing) -> Self {
        let (held, encoded) = (Held::default(), Held::default());
        Self { stream, framing, place: Place::Begin, held, encoded }
    }

    /// Learns what follows the last head.
    fn learn(&mut self) {
        self.place = match (self.place, self.framing.take()) {
            (Place::HeadEnd, Some(noted)) => Place::behind_head(noted),
            // hyper has read a head that ends somewhere else, or wants more of one that has ended.
            (_, Some(_)) | (Place::HeadEnd, None) => Place::Lost,
            (place, None) => place,
        };
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for EncodedTargets<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.encoded.left().is_empty() {
            let copied = this.encoded.copy_to(buffer);
            this.encoded.advance(copied);
            return Poll::Ready(Ok(()));
        }
        this.learn();
        let start = buffer.filled().len();
        let is_new = this.held.left().is_empty();
        if is_new {
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        } else {
            this.held.copy_to(buffer);
        }
        let before = this.place;
        let bytes = &buffer.filled()[start..];
        let (length, has_raw) = this.place.walk(bytes);
        debug_assert!(length > 0 || bytes.is_empty(), "nothing would be the end");
        if !is_new {
            this.held.advance(length);
        } else if length < bytes.len() {
            this.held = Held { bytes: bytes[length..].to_vec(), read: 0 };
        }
        if has_raw {
            this.encoded = Held { bytes: before.encoded(&bytes[..length]), read: 0 };
            buffer.set_filled(start);
            let copied = this.encoded.copy_to(buffer);
            this.encoded.advance(copied);
        } else {
            buffer.set_filled(start + length);
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use bytes::Bytes;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::{Empty, Full, StreamBody};
    use tokio::io::AsyncReadExt;

    use super::*;

    /// A client's bytes, which come in these pieces.
    struct Pieces(VecDeque<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let Some(mut piece) = self.0.pop_front() else { return Poll::Ready(Ok(())) };
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
            Poll::Ready(Ok(()))
        }
    }

    /// The body of a request, as hyper finds it in the head.
    #[derive(Clone, Copy)]
    enum Told {
        Length(usize),
        Chunked,
        Upgrade,
    }

    impl Told {
        fn note(self, framing: &Framing) {
            match self {
                Self::Length(0) => framing.note(&Request::new(Empty::<Bytes>::new())),
                Self::Length(length) => {
                    framing.note(&Request::new(Full::new(Bytes::from(vec![0; length]))));
                }
                Self::Chunked => {
                    let frames = stream::pending::<Result<Frame<Bytes>, Infallible>>();
                    framing.note(&Request::new(StreamBody::new(frames)));
                }
                Self::Upgrade => {
                    let request = Request::builder().header(UPGRADE, "websocket");
                    framing.note(&request.body(Empty::<Bytes>::new()).expect("a request"));
                }
            }
        }
    }

    /// Returns the bytes that hyper gets of a client's, where it notes these bodies at the ends of heads.
    async fn read(pieces: impl IntoIterator<Item = Vec<u8>>, room: usize, told: &[Told]) -> String {
        let framing = Framing::new();
        let pieces = Pieces(pieces.into_iter().collect());
        let mut stream = EncodedTargets::new(pieces, framing.clone());
        let (mut all, mut buffer, mut told) = (Vec::new(), vec![0; room], told.iter());
        loop {
            let length = stream.read(&mut buffer).await.expect("memory does not fail");
            if length == 0 {
                return String::from_utf8(all).expect("it is encoded");
            }
            all.extend_from_slice(&buffer[..length]);
            if stream.place == Place::HeadEnd && stream.encoded.left().is_empty() {
                assert!(all.ends_with(b"\n\r\n") || all.ends_with(b"\n\n"));
                if let Some(told) = told.next() {
                    told.note(&framing);
                }
            }
        }
    }

    /// Each request of the client, in which only the target is not as hyper gets it, and its body.
    const REQUESTS: [(&str, &str, Told); 7] = [
        (
            "GET /a?q={\"a\":[1,2]} HTTP/1.1\r\nX: {\"a\"}\r\n\r\n",
            "GET /a?q=%7B%22a%22:[1,2]%7D HTTP/1.1\r\nX: {\"a\"}\r\n\r\n",
            Told::Length(0),
        ),
        (
            "POST /b HTTP/1.1\r\nX: |\r\n\r\n\r\n\r\nGET /{ HTTP/1.1\r\n\r\n",
            "POST /b HTTP/1.1\r\nX: |\r\n\r\n\r\n\r\nGET /{ HTTP/1.1\r\n\r\n",
            Told::Length("\r\n\r\nGET /{ HTTP/1.1\r\n\r\n".len()),
        ),
        (
            "\r\n\nPUT /\u{fc} HTTP/1.1\nX: a\n\n1e\r\nGET /{ HTTP/1.1\r\n\r\n0\r\n\r\nGET /|\r\n00\r\n\r\n",
            "\r\n\nPUT /%C3%BC HTTP/1.1\nX: a\n\n1e\r\nGET /{ HTTP/1.1\r\n\r\n0\r\n\r\nGET /|\r\n00\r\n\r\n",
            Told::Chunked,
        ),
        (
            "GET http://a?{/?} HTTP/1.1\r\n\r\n",
            "GET http://a?%7B/?%7D HTTP/1.1\r\n\r\n",
            Told::Length(0),
        ),
        ("G{T /<a> HTTP/1.1\r\n\r\n", "G{T /%3Ca%3E HTTP/1.1\r\n\r\n", Told::Length(0)),
        (
            "GET http://a|b/c|d?|/e HTTP/1.1|\r\n\r\n",
            "GET http://a|b/c%7Cd?%7C/e HTTP/1.1|\r\n\r\n",
            Told::Length(0),
        ),
        (
            "GET /w| HTTP/1.1\r\n\r\nGET /{ HTTP/1.1\r\n\r\n",
            "GET /w%7C HTTP/1.1\r\n\r\nGET /{ HTTP/1.1\r\n\r\n",
            Told::Upgrade,
        ),
    ];

    #[tokio::test]
    async fn only_targets_are_encoded_however_the_bytes_come() {
        let sent = REQUESTS.map(|(sent, _, _)| sent).concat().into_bytes();
        let expected = REQUESTS.map(|(_, expected, _)| expected).concat();
        let told = REQUESTS.map(|(_, _, told)| told);
        for room in [1, 2, 7, 64, 8192] {
            let single = sent.iter().map(|byte| vec![*byte]);
            assert_eq!(read(single, room, &told).await, expected, "{room}");
            for split in 0..sent.len() {
                let pieces = [&sent[..split], &sent[split..]].map(<[u8]>::to_vec);
                let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
                assert_eq!(read(pieces, room, &told).await, expected, "{room}, {split}");
            }
        }
    }

    #[tokio::test]
    async fn what_hyper_does_not_tell_is_not_guessed() {
        const HEAD: &str = "POST /{ HTTP/1.1\r\n\r\n";
        for (behind, told) in [
            // It wants more of a head that seems to have ended.
            ("GET /{ HTTP/1.1\r\n\r\n", &[][..]),
            // What follows these chunks depends on the reader.
            ("1;x\r\na\r\n0\r\n\r\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
            ("1 \r\na\r\n0\r\n\r\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
            ("1\na\n0\n\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
            ("0\r\nX: a\r\n\r\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
            ("\r\n0\r\n\r\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
            ("0000000000000000\r\n\r\nGET /{ HTTP/1.1\r\n\r\n", &[Told::Chunked]),
        ] {
            let found = read([[HEAD, behind].concat().into_bytes()], 8192, told).await;
            assert_eq!(found, format!("POST /%7B HTTP/1.1\r\n\r\n{behind}"));
        }
        // One that it has read where none has ended here.
        let framing = Framing::new();
        let sent = b"GET /a HTTP/1.1\r\nGET /{ HTTP/1.1\r\n\r\nGET /{ HTTP/1.1\r\n\r\n";
        let pieces = [&sent[..17], &sent[17..]].map(<[u8]>::to_vec);
        let mut stream = EncodedTargets::new(Pieces(pieces.into()), framing.clone());
        let mut all = vec![0; 17];
        stream.read_exact(&mut all).await.expect("it is there");
        Told::Length(0).note(&framing);
        stream.read_to_end(&mut all).await.expect("the rest is there");
        assert_eq!(all, sent);
    }

    #[test]
    fn ends_of_lines() {
        for length in 0..100 {
            let mut bytes = vec![b'x'; 100];
            assert_eq!(line_end(&bytes[..length]), None);
            bytes[length] = b'\n';
            bytes[99] = b'\n';
            assert_eq!(line_end(&bytes), Some(length));
        }
    }
}
