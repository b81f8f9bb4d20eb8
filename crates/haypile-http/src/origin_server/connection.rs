//! One connection of a client.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::records::{Noted, Records};
use super::reply::{BodySource, Ending, Reply, Transmission};
use super::request::{BodyPart, BodyReader, RequestHead, Unreadable};
use super::script::Script;

const READ_BYTES: usize = 16 << 10;
/// The longest wait for a client to close a connection that the server has ended. Ending it at once
/// would destroy what the client has not read yet, if there are bytes that the server has not read.
const LINGER: Duration = Duration::from_secs(1);
const ENDLESS: &[u8] = &[b'x'; 16 << 10];

pub(super) struct Connection {
    stream: TcpStream,
    /// The bytes that have come and are not read.
    buffer: BytesMut,
    script: Arc<Script>,
    records: Arc<Records>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, script: Arc<Script>, records: Arc<Records>) -> Self {
        records.note_connection();
        // Without it, the second write of a reply may wait for the client's acknowledgement.
        let _ = stream.set_nodelay(true);
        Self { stream, buffer: BytesMut::new(), script, records }
    }

    /// Answers requests until one side ends the connection.
    pub(super) async fn run(mut self) {
        // A connection that fails is one that the client has ended.
        let _ = self.answer_all().await;
    }

    async fn answer_all(&mut self) -> io::Result<()> {
        while let Some(request) = self.head().await? {
            let noted = self.records.note(&request.path, &request.bytes);
            if !self.body(&request, noted).await? {
                return Ok(());
            }
            self.records.note_whole(noted);
            let script = Arc::clone(&self.script);
            let reply = script.reply(&request.path, noted.before);
            if !reply.delay.is_zero() {
                sleep(reply.delay).await;
            }
            let ending = self.send(reply, reply.to(&request)).await?;
            match ending {
                Ending::KeepAlive if request.is_kept_alive => {}
                Ending::KeepAlive | Ending::Close => {
                    self.stream.shutdown().await?;
                    return timeout(LINGER, self.discard()).await.unwrap_or(Ok(()));
                }
                Ending::Reset => return self.stream.set_zero_linger(),
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

    async fn send(&mut self, reply: &Reply, sent: Transmission) -> io::Result<Ending> {
        let (head, body) = (sent.head, sent.body);
        if sent.is_endless {
            self.write(head, Bytes::new()).await?;
            loop {
                self.write(Bytes::from_static(ENDLESS), Bytes::new()).await?;
            }
        }
        if sent.is_chunked {
            self.send_chunks(head, reply.body(), body, sent.is_cut).await?;
        } else {
            self.send_body(head, reply.body(), body).await?;
        }
        Ok(sent.ending)
    }

    async fn send_body(
        &mut self,
        mut head: Bytes,
        body: &BodySource,
        mut left: Range<u64>,
    ) -> io::Result<()> {
        loop {
            let part = body.part(left.clone());
            left.start += part.len() as u64;
            self.write(std::mem::take(&mut head), part).await?;
            if left.is_empty() {
                return Ok(());
            }
        }
    }

    async fn send_chunks(
        &mut self,
        head: Bytes,
        body: &BodySource,
        mut left: Range<u64>,
        is_cut: bool,
    ) -> io::Result<()> {
        // What goes out before the next part of the body.
        let mut marks = head.to_vec();
        while !left.is_empty() {
            let part = body.part(left.clone());
            left.start += part.len() as u64;
            marks.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
            self.write(marks.into(), part).await?;
            marks = b"\r\n".to_vec();
        }
        if !is_cut {
            marks.extend_from_slice(b"0\r\n\r\n");
        }
        self.write(marks.into(), Bytes::new()).await
    }

    /// Writes both, with one call of the system if it takes all.
    async fn write(&mut self, head: Bytes, body: Bytes) -> io::Result<()> {
        let mut both = head.chain(body);
        while both.has_remaining() {
            let before = both.last_ref().remaining();
            if self.stream.write_buf(&mut both).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.records.note_sent(before - both.last_ref().remaining());
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.records.note_end_of_connection();
    }
}
