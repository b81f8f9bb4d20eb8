//! Operations of one file, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};

use haypile_policy::recording::{
    BLOCK_HEADER_BYTES, Block, BlockHeader, End, FileHeader, HASH_BYTES, HEADER_BYTES, Record,
    RecordReader,
};

use super::super::super::TraceError;
use super::super::super::input::{self, Input};
use super::requests::Operation;

/// Blocks that are kept to bring operations into their order. A recorder keeps the promise that
/// fewer are enough: at most 64 behind each other, and one of each of its 128 buffers. A file that
/// does not is read without being held in memory, and not quite in the order of time.
const MAX_BLOCKS: usize = 256;

/// A recording file that is being read, one operation after the other.
pub(super) struct Stream<'r> {
    input: Input<'r>,
    header: FileHeader,
    /// Blocks that have operations left; `None` is a free place.
    blocks: Vec<Option<OpenedStream>>,
    /// Time of the next operation of each block, the block's number in the file, and its index.
    next: BinaryHeap<Reverse<(u64, u64, usize)>>,
    /// Number of blocks read so far.
    count: u64,
    /// Time in nanoseconds before which no unread block has an operation.
    floor_ns: u64,
    ended: bool,
    end: Option<End>,
    note: Option<String>,
    key: Vec<u8>,
}

/// A block with operations left.
struct OpenedStream {
    payload: Vec<u8>,
    reader: RecordReader,
    next: Record,
}

impl<'r> Stream<'r> {
    /// Opens a recording file and reads its header; returns a note instead if the file ends within the header.
    pub(super) fn open(mut input: Input<'r>) -> Result<Result<Self, String>, TraceError> {
        let path = input.name().to_path_buf();
        let bytes = match input.next_record(HEADER_BYTES)? {
            Some(input::Record::Whole(bytes)) => {
                bytes.first_chunk().copied().expect("as many as asked for")
            }
            Some(input::Record::Cut(_)) | None => return Ok(Err(cut_header(&path))),
        };
        let header = FileHeader::from_bytes(&bytes)
            .map_err(|error| TraceError::Layout { path, problem: error.to_string() })?;
        Ok(Ok(Self {
            input,
            header,
            blocks: Vec::new(),
            next: BinaryHeap::new(),
            count: 0,
            floor_ns: 0,
            ended: false,
            end: None,
            note: None,
            key: Vec::new(),
        }))
    }

    pub(super) fn has_hashed_keys(&self) -> bool {
        self.header.hashed_keys
    }

    pub(super) fn path(&self) -> &Path {
        self.input.name()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.input.offset()
    }

    /// Returns the reason why the recording ended; `None` if it has no end mark.
    pub(super) fn end(&self) -> Option<End> {
        self.end
    }

    /// Returns a note for users that the recording is cut off or damaged, so that only its beginning is read; `None` if
    /// it is whole.
    pub(super) fn into_note(self) -> Option<String> {
        self.note
    }

    /// Returns the time of the recording's next operation, in nanoseconds since 1970; `None` at the
    /// end.
    pub(super) fn next_time_ns(&mut self) -> Result<Option<u64>, TraceError> {
        loop {
            if let Some(Reverse((time_ns, ..))) = self.next.peek()
                && (*time_ns < self.floor_ns || self.ended || self.next.len() >= MAX_BLOCKS)
            {
                return Ok(Some(self.header.origin_unix_ns.saturating_add(*time_ns)));
            }
            if self.ended {
                return Ok(None);
            }
            if let Err(problem) = self.read_block()? {
                self.stop(problem);
            }
        }
    }

    /// Returns the recording's next operation, whose time was returned last, and its key.
    pub(super) fn take(&mut self) -> (Operation, &[u8]) {
        let Reverse((_, number, place)) = self.next.pop().expect("its time was given");
        let block = self.blocks[place].as_mut().expect("it has an operation");
        let Record { kind, effect, time_ns, size_bytes, key, key_bytes, .. } = block.next.clone();
        self.key.clear();
        self.key.extend_from_slice(&block.payload[key]);
        if self.header.hashed_keys {
            // An entry weighs what its key weighed.
            self.key.resize(key_bytes.max(HASH_BYTES), 0);
        }
        match block.reader.next(&block.payload) {
            Ok(Some(record)) => {
                self.next.push(Reverse((record.time_ns, number, place)));
                block.next = record;
            }
            Ok(None) => self.blocks[place] = None,
            Err(_) => {
                self.blocks[place] = None;
                self.stop("has a block whose operations make no sense");
            }
        }
        let time_us = self.header.origin_unix_ns.saturating_add(time_ns) / 1_000;
        (Operation { kind, effect, time_us, size_bytes }, &self.key)
    }

    /// Reads the next block; or says what is wrong with it.
    fn read_block(&mut self) -> Result<Result<(), &'static str>, TraceError> {
        let head: [u8; BLOCK_HEADER_BYTES] = match self.input.next_record(BLOCK_HEADER_BYTES)? {
            None => {
                self.ended = true;
                return Ok(Ok(()));
            }
            Some(input::Record::Cut(_)) => return Ok(Err("ends inside a block")),
            Some(input::Record::Whole(bytes)) => {
                bytes.first_chunk().copied().expect("as many as asked for")
            }
        };
        let Ok(header) = BlockHeader::from_bytes(&head) else {
            return Ok(Err("has something else where a block should begin"));
        };
        let payload = match header.payload_bytes() {
            0 => Vec::new(),
            bytes => match self.input.next_record(bytes)? {
                Some(input::Record::Whole(bytes)) => bytes.to_vec(),
                Some(input::Record::Cut(_)) | None => return Ok(Err("ends inside a block")),
            },
        };
        if !BlockHeader::is_sound(&head, &payload) {
            return Ok(Err("has a block whose checksum is wrong"));
        }
        self.count += 1;
        self.floor_ns = header.floor_ns;
        match header.block {
            Block::End(end) => {
                self.end = Some(end);
                self.ended = true;
            }
            Block::Records { records, .. } => {
                let reader = RecordReader::new(records, header.first_ns, self.header.hashed_keys);
                self.begin(payload, reader);
            }
        }
        Ok(Ok(()))
    }

    fn begin(&mut self, payload: Vec<u8>, mut reader: RecordReader) {
        match reader.next(&payload) {
            Ok(Some(next)) => {
                let free = self.blocks.iter().position(Option::is_none);
                let place = free.unwrap_or_else(|| {
                    self.blocks.push(None);
                    self.blocks.len() - 1
                });
                self.next.push(Reverse((next.time_ns, self.count, place)));
                self.blocks[place] = Some(OpenedStream { payload, reader, next });
            }
            Ok(None) => {}
            Err(_) => self.stop("has a block whose operations make no sense"),
        }
    }

    /// Reads no further.
    fn stop(&mut self, problem: &str) {
        self.ended = true;
        let path = self.input.name().display();
        self.note = Some(format!(
            "{path}: {problem}, and is read up to there, {} whole blocks: the process was killed, \
             or its disk failed, or it still runs",
            self.count
        ));
    }
}

/// Returns a note for users about a recording file that ends within its header.
pub(super) fn cut_header(path: &Path) -> String {
    let path: PathBuf = path.to_path_buf();
    format!("{}: ends inside its header, and is left out", path.display())
}
