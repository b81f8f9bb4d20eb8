//! The bytes of a recording, which [docs/format-recording.md](https://github.com/haypile/haypile/blob/main/docs/format-recording.md) describes.
//!
//! Both directions are here: `haypile::record::RecordingStore` writes recordings, and the
//! simulator reads them.

mod read;
mod varint;
mod write;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub use read::{Damaged, Record, RecordReader};
pub use write::{Payload, RecordedEntry};

/// The first eight bytes of a recording of cache operations. The high bit, the line ends and the `SUB` reveal a
/// transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89HPR\r\n\x1a\n";
/// The version of the format in which recordings of cache operations are written: major and minor.
pub const VERSION: (u16, u16) = (1, 0);
/// The length of a recording's file header in bytes.
pub const HEADER_BYTES: usize = 64;
/// The length of a recording's block header in bytes.
pub const BLOCK_HEADER_BYTES: usize = 40;
/// The size in bytes at which a block of a recording counts as full, and its records are written to the file.
pub const FULL_PAYLOAD_BYTES: usize = 64 << 10;
/// The largest length of the records in a recording's block, in bytes: `FULL_PAYLOAD_BYTES` followed by the longest
/// record fit.
pub const MAX_PAYLOAD_BYTES: usize = 256 << 10;
/// The length of a hashed key in a recording, in bytes.
pub const HASH_BYTES: usize = 8;

/// Reveals the byte order: 01 02 03 04 in a little-endian file's integer 0x04030201.
const BYTE_ORDER: u32 = 0x0403_0201;
const BLOCK_MARK: [u8; 4] = *b"HPRB";
const END_MARK: [u8; 4] = *b"HPRE";
const HASHED_KEYS: u32 = 1;

/// Hashes a key for a recording, as the option `record_keys=hash` does: XXH3-64 with the seed 0, the same in every
/// process.
pub fn hash_key(key: &[u8]) -> [u8; HASH_BYTES] {
    xxh3_64(key).to_le_bytes()
}

/// The kind of a recorded cache operation, such as hit, miss or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A read that found a value.
    Hit = 1,
    /// A read that found none.
    Miss = 2,
    /// An unconditional write. Without effect: the store refused a value of that size.
    Set = 3,
    /// A write if there is no entry. Without effect: there was one.
    Add = 4,
    /// A write if there is an entry. Without effect: there was none.
    Replace = 5,
    /// A write if the entry has a certain version. Without effect: it had another one.
    Cas = 6,
    /// A deletion. Without effect: there was no entry.
    Delete = 7,
    /// A new TTL. Without effect: there was no entry.
    Touch = 8,
    /// An increment of a counter. Without effect: there was no entry.
    Incr = 9,
    /// A decrement of a counter. Without effect: there was no entry.
    Decr = 10,
    /// A deletion of everything. Its key is empty.
    Clear = 11,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Hit,
        Self::Miss,
        Self::Set,
        Self::Add,
        Self::Replace,
        Self::Cas,
        Self::Delete,
        Self::Touch,
        Self::Incr,
        Self::Decr,
        Self::Clear,
    ];

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The low bits of a record's first byte: its [`Kind`].
const KIND_BITS: u8 = 0x0f;
/// The key is given by its number among the keys of this block.
const KNOWN_KEY: u8 = 1 << 4;
/// A size follows.
const HAS_SIZE: u8 = 1 << 5;
/// A TTL follows.
const HAS_TTL: u8 = 1 << 6;
/// The operation changed nothing.
const NO_EFFECT: u8 = 1 << 7;

/// The header of a file that recorded a cache's operations: the time at which it began, its process, and whether keys
/// are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The time in nanoseconds since 1970 at which the recording began, and from which the times of its operations
    /// count.
    pub origin_unix_ns: u64,
    /// The id of the process that wrote the recording.
    pub process: u32,
    /// Whether the recording contains hashes of the keys instead of the keys themselves.
    pub hashed_keys: bool,
}

/// The error of a recording's file header that cannot be used: not that of a recording, damaged, or of a newer version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is something else.
    #[error(
        "the file is not a recording of cache operations, because it begins with other bytes; name \
         another file"
    )]
    NotARecording,
    /// The file was written by a newer version.
    #[error(
        "the recording has format version {major}.{minor}, and this program reads version {}; read \
         it with the version of haypile that made it, or a later one",
        VERSION.0
    )]
    Version {
        /// The major version found.
        major: u16,
        /// The minor version found.
        minor: u16,
    },
    /// The checksum is wrong.
    #[error(
        "the header of the recording is damaged: its checksum is wrong; copy the file again, or \
         record again"
    )]
    Checksum,
}

impl FileHeader {
    /// Encodes the file header of a recording as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.0.to_le_bytes());
        bytes[10..12].copy_from_slice(&VERSION.1.to_le_bytes());
        bytes[12..16].copy_from_slice(&BYTE_ORDER.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.origin_unix_ns.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.process.to_le_bytes());
        bytes[28..32].copy_from_slice(&(u32::from(self.hashed_keys) * HASHED_KEYS).to_le_bytes());
        let checksum = xxh3_64(&bytes[..HEADER_BYTES - 8]);
        bytes[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses and checks the file header of a recording.
    ///
    /// # Errors
    ///
    /// [`HeaderError`], in the order of its variants.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderError> {
        let [major, minor] = [8, 10].map(|at| u16::from_le_bytes(array(bytes, at)));
        let order = u32::from_le_bytes(array(bytes, 12));
        if !bytes.starts_with(&MAGIC) || order != BYTE_ORDER {
            return Err(HeaderError::NotARecording);
        }
        if major != VERSION.0 {
            return Err(HeaderError::Version { major, minor });
        }
        let checksum = u64::from_le_bytes(array(bytes, HEADER_BYTES - 8));
        if checksum != xxh3_64(&bytes[..HEADER_BYTES - 8]) {
            return Err(HeaderError::Checksum);
        }
        Ok(Self {
            origin_unix_ns: u64::from_le_bytes(array(bytes, 16)),
            process: u32::from_le_bytes(array(bytes, 24)),
            hashed_keys: u32::from_le_bytes(array(bytes, 28)) & HASHED_KEYS != 0,
        })
    }
}

/// The reason why a recording of cache operations ended: the cache was closed, or the file reached its largest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum End {
    /// The cache was closed.
    Closed = 1,
    /// The file reached its `record_max`.
    Full = 2,
}

/// The content of a recording's block: records of operations, or the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Records of operations.
    Records {
        /// Bytes of the payload.
        payload_bytes: u32,
        /// The number of records in the block.
        records: u32,
        /// The buffer that the records come from.
        stripe: u32,
    },
    /// The last block, with the reason why the recording ended.
    End(End),
}

/// The header of one block of a recording, which states the number of its records of operations, and the times that
/// they count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The content of the recording's block: records of operations, or the end of the recording.
    pub block: Block,
    /// The time from which the block's first record counts, in nanoseconds since the recording's origin.
    pub first_ns: u64,
    /// A lower bound on the times of operations in later blocks, in nanoseconds since the recording's origin.
    pub floor_ns: u64,
}

impl BlockHeader {
    /// Encodes the header of a recording's block as bytes, with the checksum of the header and the records (`payload`).
    pub fn to_bytes(self, payload: &[u8]) -> [u8; BLOCK_HEADER_BYTES] {
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let (mark, numbers) = match self.block {
            Block::Records { payload_bytes, records, stripe } => {
                (BLOCK_MARK, [payload_bytes, records, stripe])
            }
            Block::End(end) => (END_MARK, [0, 0, end as u32]),
        };
        bytes[..4].copy_from_slice(&mark);
        for (number, at) in numbers.into_iter().zip([4, 8, 12]) {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..24].copy_from_slice(&self.first_ns.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.floor_ns.to_le_bytes());
        let checksum = checksum(&bytes, payload);
        bytes[32..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses the header of a recording's block. Only the length is checked here, so that the records can be read;
    /// [`is_sound`](Self::is_sound) then checks the whole block.
    ///
    /// # Errors
    ///
    /// [`Damaged`] if the bytes are not a header.
    pub fn from_bytes(bytes: &[u8; BLOCK_HEADER_BYTES]) -> Result<Self, Damaged> {
        let [payload_bytes, records, stripe] =
            [4, 8, 12].map(|at| u32::from_le_bytes(array(bytes, at)));
        let block = match array(bytes, 0) {
            BLOCK_MARK if payload_bytes as usize <= MAX_PAYLOAD_BYTES => {
                Block::Records { payload_bytes, records, stripe }
            }
            END_MARK if payload_bytes == 0 && stripe == End::Closed as u32 => {
                Block::End(End::Closed)
            }
            END_MARK if payload_bytes == 0 && stripe == End::Full as u32 => Block::End(End::Full),
            _ => return Err(Damaged),
        };
        Ok(Self {
            block,
            first_ns: u64::from_le_bytes(array(bytes, 16)),
            floor_ns: u64::from_le_bytes(array(bytes, 24)),
        })
    }

    /// Whether the checksum in the header of a recording's block matches the header and the records (`payload`).
    pub fn is_sound(bytes: &[u8; BLOCK_HEADER_BYTES], payload: &[u8]) -> bool {
        checksum(bytes, payload) == u64::from_le_bytes(array(bytes, 32))
    }

    /// Returns the length of the records in the recording's block, in bytes.
    pub fn payload_bytes(&self) -> usize {
        match self.block {
            Block::Records { payload_bytes, .. } => payload_bytes as usize,
            Block::End(_) => 0,
        }
    }
}

fn checksum(header: &[u8; BLOCK_HEADER_BYTES], payload: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&header[..BLOCK_HEADER_BYTES - 8]);
    hasher.update(payload);
    hasher.digest()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..].first_chunk().expect("headers are long enough")
}

#[cfg(test)]
mod tests;
