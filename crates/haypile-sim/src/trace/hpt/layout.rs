//! The bytes of an `.hpt` file, as `docs/format-hpt.md` describes them.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first eight bytes of an `.hpt` file. The high bit, the line ends and the `SUB` reveal a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89HPT\r\n\x1a\n";
/// The version (major and minor) of the `.hpt` format in which files are written.
pub(super) const VERSION: (u16, u16) = (1, 2);
/// The byte order mark of an `.hpt` file: 01 02 03 04 in a little-endian file is the integer
/// 0x04030201.
pub(super) const BYTE_ORDER: u32 = 0x0403_0201;
/// Alignment of columns in an `.hpt` file, in bytes.
pub(super) const ALIGNMENT: usize = 64;
/// Largest number of columns that a reader of `.hpt` files accepts.
pub(super) const MAX_COLUMNS: usize = 256;

/// The header of an `.hpt` file; the column directory follows it.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: [u8; 8],
    pub(super) major: U16,
    pub(super) minor: U16,
    pub(super) byte_order: U32,
    pub(super) file_bytes: U64,
    pub(super) requests: U64,
    pub(super) keys: U32,
    pub(super) columns: U32,
    pub(super) reserved: [u8; 16],
    /// Checksum (XXH3-64) of the 56 header bytes before this field and of the column directory behind it.
    pub(super) checksum: U64,
}

/// The entry for one column in the directory of an `.hpt` file.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct DirectoryEntry {
    pub(super) kind: U16,
    /// Number of bytes of one entry of the column.
    pub(super) width: U16,
    pub(super) reserved: U32,
    pub(super) offset: U64,
    pub(super) bytes: U64,
    /// Checksum (XXH3-64) of the bytes of the column.
    pub(super) checksum: U64,
}

pub(super) const HEADER_BYTES: usize = size_of::<Header>();
pub(super) const ENTRY_BYTES: usize = size_of::<DirectoryEntry>();
/// The number of bytes in an `.hpt` header before its checksum.
pub(super) const CHECKED_HEADER_BYTES: usize = HEADER_BYTES - 8;

const _: () = assert!(HEADER_BYTES == 64 && ENTRY_BYTES == 32);

/// The kind of content in a column of an `.hpt` file, such as keys or sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u16)]
pub(crate) enum ColumnType {
    /// The key of each request, as its number in order of first appearance.
    Ids = 1,
    /// The size of each request's value, in bytes.
    Sizes = 2,
    /// The operation of each request.
    Ops = 3,
    /// The time of each request.
    Times = 4,
    /// The number of the next request for the same key.
    NextUse = 5,
    /// The TTL of each request's value.
    Ttls = 6,
    /// The cost of a miss of each request.
    Costs = 7,
    /// Each key: a number, or the place where its text begins.
    KeyWords = 16,
    /// Whether each key is a number (0) or a text (1).
    KeyKinds = 17,
    /// The texts of keys, each behind its length.
    KeyText = 18,
    /// Facts about the trace that this one is a sample of.
    Sample = 32,
}

impl ColumnType {
    /// All kinds of columns in this version of the `.hpt` format.
    pub(crate) const ALL: [Self; 11] = [
        Self::Ids,
        Self::Sizes,
        Self::Ops,
        Self::Times,
        Self::NextUse,
        Self::Ttls,
        Self::Costs,
        Self::KeyWords,
        Self::KeyKinds,
        Self::KeyText,
        Self::Sample,
    ];

    /// Returns the number that stands for this kind of column in the directory of an `.hpt` file.
    pub(super) fn number(self) -> u16 {
        self as u16
    }

    /// Returns the number of bytes of one entry in a column of this kind.
    pub(super) fn width(self) -> u16 {
        match self {
            Self::Ids | Self::Sizes | Self::NextUse => 4,
            Self::Times | Self::Ttls | Self::Costs | Self::KeyWords | Self::Sample => 8,
            Self::Ops | Self::KeyKinds | Self::KeyText => 1,
        }
    }

    /// Returns the name of this kind of column, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Sizes => "sizes",
            Self::Ops => "operations",
            Self::Times => "times",
            Self::NextUse => "next use",
            Self::Ttls => "TTLs",
            Self::Costs => "costs",
            Self::KeyWords => "keys",
            Self::KeyKinds => "kinds of keys",
            Self::KeyText => "texts of keys",
            Self::Sample => "the sample",
        }
    }
}
