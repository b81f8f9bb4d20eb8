//! The bytes of a snapshot. `docs/format-snapshot.md` describes them for people.

use std::time::{Duration, SystemTime};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::EntryRef;
use crate::clock::nanos;

pub(super) const MAGIC: [u8; 8] = *b"\x89HPS\r\n\x1a\n";
pub(super) const END_MAGIC: [u8; 8] = *b"HPS-END\n";
pub(super) const MAJOR: u16 = 2;
/// The oldest major version of the snapshot format that can be read; it does not store groups of
/// entries.
pub(super) const OLDEST_MAJOR: u16 = 1;
pub(super) const MINOR: u16 = 0;

const MARK_WORD_BYTES: usize = 8;

/// The largest size of a block of several entries in a snapshot, in bytes (headers, keys and
/// values).
pub(super) const BLOCK_BYTES: u64 = 1 << 20;

/// The longest URL of a store that a snapshot can contain, in bytes.
pub(super) const MAX_STORE_BYTES: usize = 65_535;

pub(super) const HEADER_BYTES: u64 = size_of::<SnapshotHeader>() as u64;
pub(super) const HEAD_BYTES: u64 = size_of::<Head>() as u64;
pub(super) const BLOCK_INFO_BYTES: u64 = size_of::<BlockInfo>() as u64;
pub(super) const FOOTER_BYTES: u64 = size_of::<Footer>() as u64;

/// The header of a snapshot file (format version, time of creation and checksum), before the URL of
/// the store.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct SnapshotHeader {
    pub(super) magic: [u8; 8],
    pub(super) major: U16,
    pub(super) minor: U16,
    pub(super) store_bytes: U32,
    pub(super) created_ns: U64,
    reserved: [u8; 32],
    checksum: U64,
}

impl SnapshotHeader {
    pub(super) fn new(created_ns: u64, store: &[u8]) -> Self {
        let store_bytes = u32::try_from(store.len()).expect("the name is cut above");
        let mut header = Self {
            magic: MAGIC,
            major: MAJOR.into(),
            minor: MINOR.into(),
            store_bytes: store_bytes.into(),
            created_ns: created_ns.into(),
            reserved: [0; 32],
            checksum: U64::ZERO,
        };
        header.checksum = header.sum(store).into();
        header
    }

    pub(super) fn is_sound(&self, store: &[u8]) -> bool {
        self.checksum.get() == self.sum(store)
    }

    fn sum(&self, store: &[u8]) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(&self.as_bytes()[..size_of::<Self>() - size_of::<U64>()]);
        hash.update(store);
        hash.digest()
    }
}

/// The header of an entry in a snapshot: its lengths, expiry, age and uses.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Head {
    key_bytes: U16,
    uses: u8,
    /// The length of the marks of groups, in words.
    mark_words: u8,
    age_s: U32,
    /// The expiry in nanoseconds; 0 means never.
    expires_ns: U64,
    value_bytes: U64,
}

impl Head {
    /// Returns the snapshot's header of an entry whose key has at most 65,535 bytes.
    pub(super) fn new(entry: &EntryRef<'_>, created: SystemTime) -> Self {
        let key_bytes = u16::try_from(entry.key.len()).expect("push checks the key's length");
        let age = created.duration_since(entry.written).unwrap_or_default();
        Self {
            key_bytes: key_bytes.into(),
            uses: entry.uses,
            mark_words: u8::try_from(entry.marks.len() / MARK_WORD_BYTES)
                .expect("an entry has few groups"),
            age_s: u32::try_from(age.as_secs()).unwrap_or(u32::MAX).into(),
            expires_ns: entry.expires.map_or(0, |expires| since_epoch_ns(expires).max(1)).into(),
            value_bytes: (entry.value.len() as u64).into(),
        }
    }

    pub(super) fn key_bytes(&self) -> u64 {
        u64::from(self.key_bytes.get())
    }

    pub(super) fn value_bytes(&self) -> u64 {
        self.value_bytes.get()
    }

    /// Returns the number of bytes of an entry's key, value and groups in a snapshot, which may be
    /// impossibly large if the header is damaged.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.key_bytes().saturating_add(self.value_bytes()).saturating_add(self.mark_bytes())
    }

    pub(super) fn mark_bytes(&self) -> u64 {
        u64::from(self.mark_words) * MARK_WORD_BYTES as u64
    }

    pub(super) fn is_expired(&self, now_ns: u64) -> bool {
        let expires_ns = self.expires_ns.get();
        expires_ns != 0 && expires_ns <= now_ns
    }

    /// Returns the entry of a snapshot that consists of this header and the bytes of its key and
    /// value.
    pub(super) fn entry<'a>(&self, payload: &'a [u8], created: SystemTime) -> EntryRef<'a> {
        let (key, marked) = payload.split_at(usize::from(self.key_bytes.get()));
        let marks = usize::try_from(self.mark_bytes()).expect("255 words at most");
        let (value, marks) = marked.split_at(marked.len() - marks);
        let expires = match self.expires_ns.get() {
            0 => None,
            ns => Some(from_epoch_ns(ns)),
        };
        let age = Duration::from_secs(u64::from(self.age_s.get()));
        let written = created.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        EntryRef { key, value, marks, expires, written, uses: self.uses }
    }
}

/// Whether the lengths in these headers of entries add up to the payload (keys and values) of their
/// block in a snapshot.
pub(super) fn heads_fill(heads: &[Head], payload_bytes: u64) -> bool {
    let add = |sum: u64, head: &Head| sum.checked_add(head.payload_bytes());
    heads.iter().try_fold(0, add) == Some(payload_bytes)
}

/// The description of one block in a snapshot's table of blocks: its number of entries, its length
/// and its checksums.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct BlockInfo {
    entries: U32,
    reserved: U32,
    payload_bytes: U64,
    pub(super) heads_checksum: U64,
    pub(super) payload_checksum: U64,
}

impl BlockInfo {
    pub(super) fn new(heads: &[Head], payload_bytes: u64, payload_checksum: u64) -> Self {
        let entries = u32::try_from(heads.len()).expect("a block of 1 MiB has few heads");
        Self {
            entries: entries.into(),
            reserved: U32::ZERO,
            payload_bytes: payload_bytes.into(),
            heads_checksum: xxh3_64(heads.as_bytes()).into(),
            payload_checksum: payload_checksum.into(),
        }
    }

    pub(super) fn entries(&self) -> u64 {
        u64::from(self.entries.get())
    }

    pub(super) fn heads_bytes(&self) -> u64 {
        self.entries() * HEAD_BYTES
    }

    pub(super) fn payload_bytes(&self) -> u64 {
        self.payload_bytes.get()
    }

    /// Returns the size of the block in the snapshot file in bytes, which may be impossibly large
    /// if the table is damaged.
    pub(super) fn bytes(&self) -> u64 {
        self.heads_bytes().saturating_add(self.payload_bytes())
    }

    /// Whether a block of a snapshot can have this description: at least one entry, and, with
    /// several, at most the usual size.
    pub(super) fn is_possible(&self) -> bool {
        match self.entries() {
            0 => false,
            1 => true,
            _ => self.bytes() <= BLOCK_BYTES,
        }
    }
}

/// Returns the largest number of blocks that a snapshot of this number of bytes can have: any two
/// neighbours together exceed the usual size of a block.
pub(super) fn max_blocks(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES * 2 + 1
}

/// The footer at the end of a snapshot file: the position of its table of blocks, the numbers of
/// blocks and entries, and checksums.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Footer {
    pub(super) table_offset: U64,
    pub(super) blocks: U64,
    pub(super) entries: U64,
    pub(super) payload_bytes: U64,
    pub(super) table_checksum: U64,
    checksum: U64,
    pub(super) magic: [u8; 8],
}

impl Footer {
    pub(super) fn new(table_offset: u64, table: &[BlockInfo]) -> Self {
        let mut footer = Self {
            table_offset: table_offset.into(),
            blocks: (table.len() as u64).into(),
            entries: table.iter().map(BlockInfo::entries).sum::<u64>().into(),
            payload_bytes: table.iter().map(BlockInfo::payload_bytes).sum::<u64>().into(),
            table_checksum: xxh3_64(table.as_bytes()).into(),
            checksum: U64::ZERO,
            magic: END_MAGIC,
        };
        footer.checksum = footer.sum().into();
        footer
    }

    pub(super) fn is_sound(&self) -> bool {
        self.checksum.get() == self.sum()
    }

    fn sum(&self) -> u64 {
        let covered = size_of::<Self>() - size_of::<U64>() - self.magic.len();
        xxh3_64(&self.as_bytes()[..covered])
    }
}

/// Converts a time to nanoseconds since the Unix epoch: 0 before it, at most `u64::MAX`.
pub(super) fn since_epoch_ns(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos)
}

pub(super) fn from_epoch_ns(ns: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes that the document states.
    #[test]
    fn the_layout_is_the_documented_one() {
        assert_eq!((HEADER_BYTES, HEAD_BYTES, BLOCK_INFO_BYTES, FOOTER_BYTES), (64, 24, 32, 56));
    }
}
