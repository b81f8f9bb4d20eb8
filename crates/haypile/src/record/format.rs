//! The bytes of a recording, as `docs/format-recording.md` describes them.
//!
//! Both directions are here: [`RecordingStore`](super::RecordingStore) writes, the simulator reads.

mod read;
mod varint;
mod write;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub use read::{Damaged, Record, RecordReader};
pub use write::{Entry, Payload};

/// The first eight bytes of a file. The high bit, the line ends and the `SUB` expose a transfer as
/// text.
pub const MAGIC: [u8; 8] = *b"\x89HPR\r\n\x1a\n";
/// The version that is written: major and minor.
pub const VERSION: (u16, u16) = (1, 0);
/// Bytes of the header of a file.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the header of a block.
pub const BLOCK_HEADER_BYTES: usize = 40;
/// A payload that has this many bytes is written out.
pub const FULL_PAYLOAD_BYTES: usize = 64 << 10;
/// The most bytes that a payload may have: a full one and then the longest record fit.
pub const MAX_PAYLOAD_BYTES: usize = 256 << 10;
/// Bytes of a hashed key.
pub const HASH_BYTES: usize = 8;

/// Tells the byte order: 01 02 03 04 in a little-endian file's integer 0x04030201.
const BYTE_ORDER: u32 = 0x0403_0201;
const BLOCK_MARK: [u8; 4] = *b"HPRB";
const END_MARK: [u8; 4] = *b"HPRE";
const HASHED_KEYS: u32 = 1;

/// The key as `record_keys=hash` writes it: XXH3-64 with the seed 0, the same in every process.
pub fn hash_key(key: &[u8]) -> [u8; HASH_BYTES] {
    xxh3_64(key).to_le_bytes()
}

/// What an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A read that found a value.
    Hit = 1,
    /// A read that found none.
    Miss = 2,
    /// An unconditional write. Without effect: the store refused a value of that size.
    Set = 3,
    /// A write where there is no entry. Without effect: there was one.
    Add = 4,
    /// A write where there is an entry. Without effect: there was none.
    Replace = 5,
    /// A write where the entry has a certain version. Without effect: it had not.
    Cas = 6,
    /// A deletion. Without effect: there was no entry.
    Delete = 7,
    /// A new TTL. Without effect: there was no entry.
    Touch = 8,
    /// A counter that was raised. Without effect: there was no entry.
    Incr = 9,
    /// A counter that was lowered. Without effect: there was no entry.
    Decr = 10,
    /// Everything was deleted. It has an empty key.
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
/// The key is the number of one that this block has already.
const KNOWN_KEY: u8 = 1 << 4;
/// A size follows.
const HAS_SIZE: u8 = 1 << 5;
/// A TTL follows.
const HAS_TTL: u8 = 1 << 6;
/// The operation changed nothing.
const NO_EFFECT: u8 = 1 << 7;

/// What stands at the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// The time of day from which the file's times count, in nanoseconds since 1970.
    pub origin_unix_ns: u64,
    /// The process that writes.
    pub process: u32,
    /// Whether keys are hashed.
    pub hashed_keys: bool,
}

/// Why a file's header is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is something else.
    #[error("it does not begin as a recording does")]
    NotARecording,
    /// The file is of a newer program.
    #[error(
        "it is a recording of format version {major}.{minor}, and this program reads version {}; \
         read it with the version of haypile that made it, or a later one",
        VERSION.0
    )]
    Version {
        /// The major version found.
        major: u16,
        /// The minor version found.
        minor: u16,
    },
    /// The checksum is wrong.
    #[error("its header is damaged: the checksum is wrong")]
    Checksum,
}

impl FileHeader {
    /// The header as a file has it.
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

    /// Reads and checks a header.
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

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum End {
    /// The cache was closed.
    Closed = 1,
    /// The file reached its `record_max`.
    Full = 2,
}

/// What a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Records.
    Records {
        /// Bytes of the payload.
        payload_bytes: u32,
        /// Records in it.
        records: u32,
        /// The buffer that it comes from.
        stripe: u32,
    },
    /// The last block.
    End(End),
}

/// What stands before the payload of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// What the block is.
    pub block: Block,
    /// The time from which the first record counts, in nanoseconds since the file's origin.
    pub first_ns: u64,
    /// No record of a later block is earlier than this, in nanoseconds since the file's origin.
    pub floor_ns: u64,
}

impl BlockHeader {
    /// The header as a file has it, before this payload.
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

    /// Reads a header. Whether its block is sound is known only with the payload, from
    /// [`is_sound`](Self::is_sound); only the length is tested here, so that the payload can be
    /// read.
    ///
    /// # Errors
    ///
    /// [`Damaged`] if the bytes are no header.
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

    /// Whether the checksum in the header is that of the header and the payload.
    pub fn is_sound(bytes: &[u8; BLOCK_HEADER_BYTES], payload: &[u8]) -> bool {
        checksum(bytes, payload) == u64::from_le_bytes(array(bytes, 32))
    }

    /// Bytes of the payload.
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
    *bytes[at..].first_chunk().expect("headers are longer")
}

#[cfg(test)]
mod tests;
