//! Writing of snapshots.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};
use zerocopy::IntoBytes;

use super::format::{
    BLOCK_BYTES, BLOCK_INFO_BYTES, BlockInfo, FOOTER_BYTES, Footer, HEAD_BYTES, HEADER_BYTES, Head,
    MAX_STORE_BYTES, SnapshotHeader, since_epoch_ns,
};
use super::target::SnapshotTarget;
use super::{EntryRef, SnapshotError};
use crate::error::MAX_KEY_BYTES;
use crate::private_file::append;

/// The options of writing a snapshot: which entries to write, and bounds on the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The time of day at which the snapshot is written, which it states. Entries that have expired
    /// by then are left out.
    pub now: SystemTime,
    /// The URL of the store that is saved, for people that read the snapshot. It is cut at 65,535
    /// bytes.
    pub store: String,
    /// The bound on the snapshot file in bytes; `None` means no bound.
    pub max_bytes: Option<u64>,
    /// The age above which entries are left out of the snapshot; `None` means no limit.
    pub max_age: Option<Duration>,
    /// Whether to replace a snapshot whose owner is neither the effective user of this process nor
    /// root, or that users other than its owner can write.
    pub allow_shared: bool,
}

impl WriteOptions {
    /// Returns options that write every unexpired entry to the snapshot.
    pub fn new(now: SystemTime, store: impl Into<String>) -> Self {
        Self { now, store: store.into(), max_bytes: None, max_age: None, allow_shared: false }
    }
}

/// The outcome of adding an entry to a snapshot: written or left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pushed {
    /// The entry is in the snapshot.
    Written,
    /// The entry was left out, because it has expired.
    Expired,
    /// The entry was left out, because it was written too long ago.
    TooOld,
    /// The entry was left out, because even alone it would exceed the bound of the file.
    TooLarge,
    /// The entry was left out, because the file is full; no later entry gets in either.
    Full,
}

/// The summary of a written snapshot: how many entries are in it and were left out, and sizes in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteSummary {
    /// The number of entries in the snapshot.
    pub entries: u64,
    /// The sum of the lengths of the written entries' keys and values, in bytes.
    pub payload_bytes: u64,
    /// The size of the snapshot file in bytes.
    pub file_bytes: u64,
    /// The number of entries that were left out of the snapshot (expired, too old, too large, or
    /// beyond the bound on the file).
    pub left_out: u64,
}

/// A writer of a snapshot, which takes entries from the most used to the least used.
///
/// The file gets its name in [`finish`](Self::finish), atomically and durably. Until then, and if
/// this is dropped or the process dies, any previous file stays as it is.
///
/// It uses a buffer of 1 MiB; a larger value is written directly.
#[derive(Debug)]
pub struct SnapshotWriter {
    path: PathBuf,
    options: WriteOptions,
    now_ns: u64,
    /// The file that is written; `None` after a failure.
    target: Option<SnapshotTarget>,
    /// The heads of the entries in the block that is being filled.
    heads: Vec<Head>,
    payload: Vec<u8>,
    table: Vec<BlockInfo>,
    /// The number of bytes in the file without that block.
    written_bytes: u64,
    empty_bytes: u64,
    left_out: u64,
    is_full: bool,
}

impl SnapshotWriter {
    /// Begins a snapshot in a temporary file next to `path`.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to, `path` is something that is not replaced (not a file, the
    /// file of another program, or one that other users can write), or `max_bytes` is too small for
    /// any snapshot.
    pub fn create(path: &Path, mut options: WriteOptions) -> Result<Self, SnapshotError> {
        options.store.truncate(options.store.floor_char_boundary(MAX_STORE_BYTES));
        let empty_bytes = HEADER_BYTES + options.store.len() as u64 + FOOTER_BYTES;
        if let Some(max_bytes) = options.max_bytes.filter(|max_bytes| *max_bytes < empty_bytes) {
            let (path, least_bytes) = (path.to_owned(), empty_bytes);
            return Err(SnapshotError::MaxTooSmall { path, max_bytes, least_bytes });
        }
        let target = SnapshotTarget::create(path, options.allow_shared)?;
        let now_ns = since_epoch_ns(options.now);
        let header = SnapshotHeader::new(now_ns, options.store.as_bytes());
        let mut writer = Self {
            path: path.to_owned(),
            now_ns,
            target: Some(target),
            heads: Vec::new(),
            payload: Vec::with_capacity(1 << 20),
            table: Vec::new(),
            written_bytes: empty_bytes - FOOTER_BYTES,
            empty_bytes,
            left_out: 0,
            is_full: false,
            options,
        };
        let start = [header.as_bytes(), writer.options.store.as_bytes()].concat();
        writer.write(&[&start])?;
        Ok(writer)
    }

    /// Adds an entry to the snapshot, and returns whether it was written or why it was left out; it
    /// must be used at most as much as those before it.
    ///
    /// # Errors
    ///
    /// The file cannot be written to, which abandons the snapshot, or the key is longer than 65,535
    /// bytes, which does not.
    pub fn push(&mut self, entry: EntryRef<'_>) -> Result<Pushed, SnapshotError> {
        if entry.key.len() > MAX_KEY_BYTES {
            return Err(SnapshotError::KeyTooLong { key_bytes: entry.key.len() });
        }
        let head = Head::new(&entry, self.options.now);
        let pushed = self.judge(&entry, &head);
        if pushed != Pushed::Written {
            self.left_out += 1;
            return Ok(pushed);
        }
        let bytes = HEAD_BYTES + head.payload_bytes();
        if self.block_bytes() + bytes > BLOCK_BYTES {
            self.end_block()?;
        }
        if bytes > BLOCK_BYTES {
            self.write_alone(head, &entry)?;
        } else {
            self.heads.push(head);
            self.payload.extend_from_slice(entry.key);
            self.payload.extend_from_slice(entry.value);
            self.payload.extend_from_slice(entry.marks);
        }
        Ok(Pushed::Written)
    }

    /// Syncs the snapshot file to disk, gives it its name in place of any previous file, and
    /// returns a summary of its contents.
    ///
    /// # Errors
    ///
    /// The file cannot be written or renamed; or this writer has failed before.
    pub fn finish(mut self) -> Result<WriteSummary, SnapshotError> {
        self.end_block()?;
        let footer = Footer::new(self.written_bytes, &self.table);
        let table = std::mem::take(&mut self.table);
        self.write(&[table.as_bytes(), footer.as_bytes()])?;
        let table_bytes = table.len() as u64 * BLOCK_INFO_BYTES;
        let summary = WriteSummary {
            entries: footer.entries.get(),
            payload_bytes: footer.payload_bytes.get(),
            file_bytes: self.written_bytes + table_bytes + FOOTER_BYTES,
            left_out: self.left_out,
        };
        let target = self.target.take().ok_or_else(|| self.given_up())?;
        target.publish().map_err(SnapshotError::io("bring to disk", &self.path))?;
        Ok(summary)
    }

    fn judge(&mut self, entry: &EntryRef<'_>, head: &Head) -> Pushed {
        if head.is_expired(self.now_ns) {
            return Pushed::Expired;
        }
        if let Some(max_age) = self.options.max_age {
            // Entries from the future, written before the clock was set back, are young.
            let age = self.options.now.duration_since(entry.written).unwrap_or_default();
            if age > max_age {
                return Pushed::TooOld;
            }
        }
        if let Some(max_bytes) = self.options.max_bytes {
            let bytes = HEAD_BYTES + head.payload_bytes();
            if self.empty_bytes + BLOCK_INFO_BYTES + bytes > max_bytes {
                return Pushed::TooLarge;
            }
            let begins_block = self.heads.is_empty() || self.block_bytes() + bytes > BLOCK_BYTES;
            let blocks = self.table.len() as u64
                + u64::from(!self.heads.is_empty())
                + u64::from(begins_block);
            let with_table = blocks * BLOCK_INFO_BYTES + FOOTER_BYTES;
            self.is_full |=
                self.written_bytes + self.block_bytes() + bytes + with_table > max_bytes;
            if self.is_full {
                return Pushed::Full;
            }
        }
        Pushed::Written
    }

    /// Returns the bytes of the block that is being filled.
    fn block_bytes(&self) -> u64 {
        self.heads.len() as u64 * HEAD_BYTES + self.payload.len() as u64
    }

    fn end_block(&mut self) -> Result<(), SnapshotError> {
        if self.heads.is_empty() {
            return Ok(());
        }
        let (heads, payload) = (std::mem::take(&mut self.heads), std::mem::take(&mut self.payload));
        let info = BlockInfo::new(&heads, payload.len() as u64, xxh3_64(&payload));
        self.write(&[heads.as_bytes(), &payload])?;
        self.count(info);
        (self.heads, self.payload) = (heads, payload);
        self.heads.clear();
        self.payload.clear();
        Ok(())
    }

    /// Writes a block of one entry that is larger than a usual block, without a copy.
    fn write_alone(&mut self, head: Head, entry: &EntryRef<'_>) -> Result<(), SnapshotError> {
        let mut hash = Xxh3Default::new();
        hash.update(entry.key);
        hash.update(entry.value);
        hash.update(entry.marks);
        let info = BlockInfo::new(&[head], head.payload_bytes(), hash.digest());
        self.write(&[head.as_bytes(), entry.key, entry.value, entry.marks])?;
        self.count(info);
        Ok(())
    }

    fn count(&mut self, info: BlockInfo) {
        self.written_bytes += info.bytes();
        self.table.push(info);
    }

    /// Writes parts of the file. A failure abandons the file, because the number of written bytes
    /// is unknown.
    fn write(&mut self, parts: &[&[u8]]) -> Result<(), SnapshotError> {
        let Some(target) = &mut self.target else { return Err(self.given_up()) };
        let result = parts.iter().try_for_each(|part| append(target.file(), part));
        result.map_err(|source: io::Error| {
            self.target = None;
            SnapshotError::io("write", &self.path)(source)
        })
    }

    fn given_up(&self) -> SnapshotError {
        SnapshotError::GivenUp { path: self.path.clone() }
    }
}
