//! One connection of a client to the server.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

use super::body::BodySource;
use super::records::{Carrier, Noted, Records};
use super::reply::{Ending, Reply, Transmission};
use super::request::{BodyPart, BodyReader, RequestHead, Unreadable};
use super::script::{ListId, Scheme, Script};

const READ_BYTES: usize = 16 << 10;
/// The longest wait for a client to close a connection that the server has ended. Ending it at once
/// would destroy what the client has not read yet, if there are bytes that the server has not read.
const LINGER: Duration = Duration::from_secs(1);
const ENDLESS: &[u8] = &[b'x'; 16 << 10];

/// A stream to a client, with TLS or without.
pub(super) trait ClientStream: AsyncRead + AsyncWrite + Unpin {
    /// The scheme of URLs whose requests come this way.
    const SCHEME: Scheme;

    /// Returns the socket below.
    fn socket(&self) -> &TcpStream;
}

impl ClientStream for TcpStream {
    const SCHEME: Scheme = Scheme::Http;

    fn socket(&self) -> &TcpStream {
        self
    }
}

impl ClientStream for TlsStream<TcpStream> {
    const SCHEME: Scheme = Scheme::Https;

    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

pub(super) struct Connection<S> {
    stream: S,
    /// The bytes that have come and are not read.
    buffer: BytesMut,
    script: Arc<Script>,
    records: Arc<Records>,
}

impl<S> Connection<S> {
    pub(super) fn new(stream: S, script: Arc<Script>, records: Arc<Records>) -> Self
    where
        S: ClientStream,
    {
        records.note_connection();
        // Without it, the second write of a reply may wait for the client's acknowledgement.
        let _ = stream.socket().set_nodelay(true);
        Self { stream, buffer: BytesMut::new(), script, records }
    }
}

impl<S: ClientStream> Connection<S> {
    /// Answers the requests of a connection until one side ends it.
    pub(super) async fn run(mut self) {
        // A connection that fails is one that the client has ended.
        let _ = self.answer_all().await;
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        while let Some(request) = self.head().await? {
            let list = self.script.find(S::SCHEME, request.host.as_deref(), &request.path);
            let carrier = Carrier { scheme: S::SCHEME, is_http2: false };
            let noted = self.records.note(carrier, list, &request.path, &request.bytes);
            if !self.body(&request, noted).await? {
                return Ok(());
            }
            self.records.note_whole(noted);
            let script = Arc::clone(&self.script);
            let reply = script.reply(noted.list, noted.before);
            if !reply.delay.is_zero() {
                sleep(reply.delay).await;
            }
            let ending = self.send(reply, reply.to(&request), noted.list).await?;
            match ending {
                Ending::KeepAlive if request.is_kept_alive => {}
                Ending::KeepAlive | Ending::Close => {
                    self.stream.shutdown().await?;
                    return timeout(LINGER, self.discard()).await.unwrap_or(Ok(()));
                }
                Ending::Reset => return self.stream.socket().set_zero_linger(),
                Ending::Hang => return self.discard().await,
            }
        }
        Ok(())
    }

    /// Reads a head; `None` if the connection ends before, or what comes is not one.
    async fn head(&mut self) -> io::Result<Option<RequestHead>> {
        loop {
            match RequestHead::take(&mut self.buffer) {
                Ok(Some(head)) => return Ok(Some(head)),
                Err(Unreadable) => {
                    self.records.note_unreadable();
                    return Ok(None);
                }
                Ok(None) => {}
            }
            if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the body of a request. Returns whether all of it came.
    async fn body(&mut self, request: &RequestHead, noted: Noted) -> io::Result<bool> {
        let mut body = BodyReader::new(request.body);
        loop {
            match body.take(&mut self.buffer) {
                Ok(BodyPart::Content(part)) => self.records.note_body(noted, &part),
                Ok(BodyPart::End) => return Ok(true),
                Ok(BodyPart::Missing) => {
                    if !self.read().await? {
                        return Ok(false);
                    }
                }
                Err(Unreadable) => {
                    self.records.note_unreadable();
                    return Ok(false);
                }
            }
        }
    }

    /// Reads more bytes; returns whether some came.
    async fn read(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }

    /// Reads until the client ends the connection.
    async fn discard(&mut self) -> io::Result<()> {
        loop {
            self.buffer.clear();
            if !self.read().await? {
                return Ok(());
            }
        }
    }

    async fn send(
        &mut self,
        reply: &Reply,
        sent: Transmission,
        list: Option<ListId>,
    ) -> io::Result<Ending> {
        self.records.note_reply(sent.status);
        let (head, part) = (sent.head, sent.body);
        if sent.is_endless {
            self.write(list, head, Bytes::new()).await?;
            loop {
                self.write(list, Bytes::from_static(ENDLESS), Bytes::new()).await?;
            }
        }
        let body = if part.is_empty() { BodySource::from("") } else { reply.body().made() };
        if sent.is_chunked {
            self.send_chunks(list, head, &body, part, sent.is_cut).await?;
        } else {
            self.send_body(list, head, &body, part).await?;
        }
        Ok(sent.ending)
    }

    async fn send_body(
        &mut self,
        list: Option<ListId>,
        mut head: Bytes,
        body: &BodySource,
        mut left: Range<u64>,
    ) -> io::Result<()> {
        loop {
            let part = next_part(body, &mut left)?;
            self.write(list, std::mem::take(&mut head), part).await?;
            if left.is_empty() {
                return Ok(());
            }
        }
    }

    async fn send_chunks(
        &mut self,
        list: Option<ListId>,
        head: Bytes,
        body: &BodySource,
        mut left: Range<u64>,
        is_cut: bool,
    ) -> io::Result<()> {
        // What goes out before the next part of the body.
        let mut marks = head.to_vec();
        while !left.is_empty() {
            let part = next_part(body, &mut left)?;
            marks.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            self.write(list, marks.into(), part).await?;
            marks = b"\r\n".to_vec();
        }
        if !is_cut {
            marks.extend_from_slice(b"0\r\n\r\n");
        }
        self.write(list, marks.into(), Bytes::new()).await
    }

    /// Writes both, with one call of the system if it takes all. The second counts as a part of a
    /// body.
    async fn write(&mut self, list: Option<ListId>, head: Bytes, body: Bytes) -> io::Result<()> {
        let mut sending = self.records.sending(list, body.len());
        let mut both = head.chain(body);
        while both.has_remaining() {
            let before = both.last_ref().remaining();
            if self.stream.write_buf(&mut both).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            sending.sent(before - both.last_ref().remaining());
        }
        // TLS may hold back bytes that it has taken.
        self.stream.flush().await
    }
}

/// Takes the next part of a body. It fails where a function made a body that is too short.
fn next_part(body: &BodySource, left: &mut Range<u64>) -> io::Result<Bytes> {
    let part = body.part(left.clone());
    if part.is_empty() && !left.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    left.start += part.len() as u64;
    Ok(part)
}

impl<S> Drop for Connection<S> {
    fn drop(&mut self) {
        self.records.note_end_of_connection();
    }
}
