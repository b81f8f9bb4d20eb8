//! Reading of snapshots.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::FromBytes;

use crate::writers::Writers;

use super::error::Damage;
use super::format::{BlockInfo, Head, from_epoch_ns, heads_fill, since_epoch_ns};
use super::outline::Outline;
use super::target::open_file;
use super::{EntryRef, SnapshotError};

/// The options of reading a snapshot: which of its entries to read.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions<C> {
    /// The time of day at which the snapshot is read. Entries that have expired by then are
    /// skipped.
    pub now: SystemTime,
    /// The bound on the sum of the charges of the entries to read, in bytes: the most used entries
    /// that fit are read, up to the first that does not. An entry that would not fit alone is
    /// skipped.
    pub max_bytes: u64,
    /// A function that returns the charge of an entry (the bytes that it takes in the store), from
    /// the lengths of its key and its value.
    pub charge: C,
    /// Whether [`SnapshotReader::open`] reads a snapshot whose owner is neither the effective user
    /// of this process nor root, or that users other than its owner can write.
    pub allow_shared: bool,
}

/// A reader of a snapshot, which returns its entries from the least used that fits to the most
/// used.
///
/// Each block is checked as a whole before any of its entries is returned.
#[derive(Debug)]
pub struct SnapshotReader<R, C> {
    source: TimedSource<R>,
    /// The time in this reader's own calls, that of its reads included.
    busy: Duration,
    path: PathBuf,
    options: ReadOptions<C>,
    now_ns: u64,
    created: SystemTime,
    store: String,
    /// The blocks that are still to be read, the next one last, each with its offset.
    blocks: Vec<(u64, BlockInfo)>,
    /// The number of entries to read of the last of `blocks`.
    take: usize,
    /// The number of entries still to be returned, if no block is damaged.
    remaining: u64,
    block: Vec<u8>,
    heads: Vec<Head>,
    /// The end of the next entry's payload in the block.
    end: usize,
}

impl<C: Fn(u64, u64) -> u64> SnapshotReader<File, C> {
    /// Opens a snapshot and determines which of its entries to read.
    ///
    /// # Errors
    ///
    /// The file does not exist ([`SnapshotError::is_not_found`]), is not a snapshot, can be written
    /// by other users, cannot be read, has an unknown version, or is damaged so that none of it can
    /// be used.
    pub fn open(path: &Path, options: ReadOptions<C>) -> Result<Self, SnapshotError> {
        Self::from_source(open_file(path, options.allow_shared)?, path, options)
    }

    /// Returns the users that can have written the snapshot file.
    pub fn writers(&self) -> Writers {
        self.source.source.metadata().map_or_else(
            |_| Writers::Anyone { store: self.path.display().to_string() },
            |metadata| Writers::of_file(&self.path, &metadata),
        )
    }
}

impl<R: Read + Seek, C: Fn(u64, u64) -> u64> SnapshotReader<R, C> {
    /// Opens a snapshot in any seekable source, and determines which entries to read. `path` is its
    /// name in errors.
    ///
    /// # Errors
    ///
    /// Those of [`open`](SnapshotReader::open).
    pub fn from_source(
        source: R,
        path: &Path,
        options: ReadOptions<C>,
    ) -> Result<Self, SnapshotError> {
        let begin = Instant::now();
        let mut source = TimedSource { source, spent: Duration::ZERO };
        let outline = Outline::read(&mut source, path)?;
        let mut reader = Self {
            source,
            busy: Duration::ZERO,
            path: path.to_owned(),
            now_ns: since_epoch_ns(options.now),
            options,
            created: from_epoch_ns(outline.created_ns),
            store: outline.store,
            blocks: outline.blocks,
            take: 0,
            remaining: 0,
            block: Vec::new(),
            heads: Vec::new(),
            end: 0,
        };
        reader.select();
        reader.busy = begin.elapsed();
        Ok(reader)
    }

    /// Returns the time spent so far on reading the snapshot from its source, and on checking the
    /// data.
    pub fn spent(&self) -> (Duration, Duration) {
        let read = self.source.spent;
        (read, self.busy.saturating_sub(read))
    }

    /// Returns the URL of the store that was saved to the snapshot, for people.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Returns the time of day at which the snapshot was created.
    pub fn created(&self) -> SystemTime {
        self.created
    }

    /// Returns the number of entries of the snapshot that are still to be read, without those of
    /// blocks known to be damaged.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns the next entry of the snapshot, which is used at least as much as those before it;
    /// `None` after the last.
    ///
    /// # Errors
    ///
    /// A block is damaged or cannot be read. It is skipped, and the next call goes on with the
    /// block after it: entries returned so far are valid, and later ones are used more.
    pub fn next_entry(&mut self) -> Result<Option<EntryRef<'_>>, SnapshotError> {
        let (head, end) = loop {
            let Some(head) = self.heads.pop() else {
                let begin = Instant::now();
                let loaded = self.load_block();
                self.busy += begin.elapsed();
                if !loaded? {
                    return Ok(None);
                }
                continue;
            };
            let end = self.end;
            self.end -= size(head.payload_bytes());
            if self.is_wanted(&head) {
                break (head, end);
            }
        };
        self.remaining = self.remaining.saturating_sub(1);
        Ok(Some(head.entry(&self.block[self.end..end], self.created)))
    }

    fn is_wanted(&self, head: &Head) -> bool {
        !head.is_expired(self.now_ns) && self.charge(head) <= self.options.max_bytes
    }

    fn charge(&self, head: &Head) -> u64 {
        (self.options.charge)(head.key_bytes(), head.value_bytes() + head.mark_bytes())
    }

    /// Finds the first entry that does not fit, and drops everything after it.
    fn select(&mut self) {
        let mut charged: u64 = 0;
        self.take = self.blocks.last().map_or(0, |(_, info)| size(info.entries()));
        for at in 0..self.blocks.len() {
            let (offset, info) = self.blocks[at];
            // A damaged block becomes an error when it is its turn.
            let Ok(heads) = self.read_heads(offset, &info) else { continue };
            for (take, head) in heads.iter().enumerate() {
                if self.is_wanted(head) {
                    charged = charged.saturating_add(self.charge(head));
                    if charged > self.options.max_bytes {
                        self.blocks.truncate(at + 1);
                        self.take = take;
                        return;
                    }
                    self.remaining += 1;
                }
            }
        }
    }

    fn read_heads(&mut self, offset: u64, info: &BlockInfo) -> Result<Vec<Head>, SnapshotError> {
        let damaged = Damage::Block { offset };
        self.source.seek(SeekFrom::Start(offset)).map_err(self.failed())?;
        self.fill_block(info.heads_bytes())?;
        check_heads(&self.block, info).ok_or_else(|| self.damaged(damaged))
    }

    /// Reads and checks the next block; `false` if there is none.
    fn load_block(&mut self) -> Result<bool, SnapshotError> {
        let Some((offset, info)) = self.blocks.pop() else { return Ok(false) };
        let take = self.take;
        self.take = self.blocks.last().map_or(0, |(_, info)| size(info.entries()));
        if take == 0 {
            return Ok(true);
        }
        let damaged = Damage::Block { offset };
        if info.entries() == 1 {
            // It can have any size. Its head decides whether it is wanted at all.
            let heads = self.read_heads(offset, &info)?;
            if !self.is_wanted(&heads[0]) {
                return Ok(true);
            }
        }
        self.source.seek(SeekFrom::Start(offset)).map_err(self.failed())?;
        self.fill_block(info.bytes())?;
        let (heads, payload) = self.block.split_at(size(info.heads_bytes()));
        if xxh3_64(payload) != info.payload_checksum.get() {
            return Err(self.damaged(damaged));
        }
        let heads_bytes = heads.len();
        self.heads = check_heads(heads, &info).ok_or_else(|| self.damaged(damaged))?;
        self.heads.truncate(take);
        let taken: u64 = self.heads.iter().map(Head::payload_bytes).sum();
        self.end = heads_bytes + size(taken);
        Ok(true)
    }

    fn fill_block(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        let more = size(bytes).saturating_sub(self.block.len());
        if self.block.try_reserve_exact(more).is_err() {
            return Err(SnapshotError::OutOfMemory { path: self.path.clone(), bytes });
        }
        self.block.resize(size(bytes), 0);
        self.source.read_exact(&mut self.block).map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> SnapshotError + use<R, C> {
        let path = self.path.clone();
        move |source| SnapshotError::io("read", &path)(source)
    }

    fn damaged(&self, what: Damage) -> SnapshotError {
        SnapshotError::Damaged { path: self.path.clone(), what }
    }
}

/// A source whose reads are timed.
#[derive(Debug)]
struct TimedSource<R> {
    source: R,
    spent: Duration,
}

impl<R: Read> Read for TimedSource<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let begin = Instant::now();
        let read = self.source.read(buffer);
        self.spent += begin.elapsed();
        read
    }
}

impl<R: Seek> Seek for TimedSource<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

/// Converts a length that does not exceed that of something in memory, or that cannot be allocated.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the heads of a block, if their checksum matches.
fn check_heads(bytes: &[u8], info: &BlockInfo) -> Option<Vec<Head>> {
    let heads = <[Head]>::ref_from_bytes(bytes).ok()?;
    let is_sound = xxh3_64(bytes) == info.heads_checksum.get();
    (is_sound && heads_fill(heads, info.payload_bytes())).then(|| heads.to_vec())
}
