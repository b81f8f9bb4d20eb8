//! lz4 frames, one after the other.

use std::io::{self, ErrorKind, Read};
use std::mem;

use lz4_flex::frame::FrameDecoder;

/// Bytes that tell the kind of a frame.
const HEAD_BYTES: usize = 4;

/// First bytes of an lz4 frame that contains data.
pub(super) const MAGIC: [u8; HEAD_BYTES] = [0x04, 0x22, 0x4d, 0x18];

/// Returns whether bytes are the first of a frame without data, which is passed over.
fn is_skippable(head: [u8; HEAD_BYTES]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18])
}

/// A reader of the decompressed data in lz4 frames, one after the other.
///
/// It notices an end between two blocks of a frame, where [`FrameDecoder`] ends without an error.
pub(super) struct Lz4Reader<'r> {
    /// The decoder of the current frame. Each frame has its own, because a decoder keeps the buffers of its first.
    decoder: FrameDecoder<Frames<'r>>,
    is_in_frame: bool,
}

impl<'r> Lz4Reader<'r> {
    /// Creates a reader of lz4 frames from compressed bytes, which should be buffered.
    pub(super) fn new(frames: impl Read + 'r) -> Self {
        Self { decoder: FrameDecoder::new(Frames::new(frames)), is_in_frame: false }
    }

    /// Goes to the next frame with data; false at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        let ended = mem::replace(&mut self.decoder, FrameDecoder::new(Frames::new(io::empty())));
        self.decoder = FrameDecoder::new(ended.into_inner());
        let frames = self.decoder.get_mut();
        while let Some(head) = frames.peek()? {
            if !is_skippable(head) {
                self.is_in_frame = true;
                return Ok(true);
            }
            let mut header = [0; 8];
            frames.read_exact(&mut header)?;
            let [_, _, _, _, length @ ..] = header;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut frames.take(length), &mut io::sink())? < length {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(false)
    }
}

impl Read for Lz4Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame && !self.next_frame()? {
                return Ok(0);
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let frames = self.decoder.get_mut();
            if frames.has_failed_to_read {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            // Nothing is the end of the frame, or an empty block of it, which another block follows.
            self.is_in_frame = match frames.peek()? {
                Some(head) => head != MAGIC && !is_skippable(head),
                None => false,
            };
        }
    }
}

/// Compressed bytes of which the next four can be seen.
struct Frames<'r> {
    rest: Box<dyn Read + 'r>,
    /// The bytes seen and not yet read, which are `ahead[start..]`.
    ahead: [u8; HEAD_BYTES],
    start: usize,
    /// Whether a byte was asked for at the end.
    has_failed_to_read: bool,
}

impl<'r> Frames<'r> {
    fn new(rest: impl Read + 'r) -> Self {
        Self {
            rest: Box::new(rest),
            ahead: [0; HEAD_BYTES],
            start: HEAD_BYTES,
            has_failed_to_read: false,
        }
    }

    /// Returns the next four bytes without reading them; `None` at the end. Fewer are an error.
    fn peek(&mut self) -> io::Result<Option<[u8; HEAD_BYTES]>> {
        if self.start == 0 {
            return Ok(Some(self.ahead));
        }
        let mut head = Vec::with_capacity(HEAD_BYTES);
        self.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        if head.is_empty() {
            return Ok(None);
        }
        self.ahead = head.try_into().map_err(|_| io::Error::from(ErrorKind::UnexpectedEof))?;
        self.start = 0;
        Ok(Some(self.ahead))
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.start < HEAD_BYTES {
            let read = (&self.ahead[self.start..]).read(buffer)?;
            self.start += read;
            return Ok(read);
        }
        loop {
            match self.rest.read(buffer) {
                // The decoder would lose what it has read of a header.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) if !buffer.is_empty() => {
                    self.has_failed_to_read = true;
                    return Ok(0);
                }
                result => return result,
            }
        }
    }
}
