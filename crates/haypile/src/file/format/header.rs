//! The header: the first page of the file, which identifies it, and the words that everything
//! depends on.

use xxhash_rust::xxh3::xxh3_64;

use crate::compress::Method;
use crate::file::format::layout::{Geometry, Numbers};

/// The length of the cache file's header in bytes.
pub(in crate::file) const BYTES: u64 = 4096;
const MAGIC: [u8; 8] = *b"HAYPILE\0";
const VERSION: u32 = 6;
const ENDIAN_MARK: u32 = 0x0A0B_0C0D;
const LANES_AT: usize = 88;
const REMOVALS_AT: usize = 92;
const GROUPS_AT: usize = 96;
const CHECKSUM_AT: usize = 120;

/// The offset in the cache file's header of the word that says whether the file is in use or
/// replaced.
pub(in crate::file) const STATE: u64 = 256;
pub(in crate::file) const EPOCH: u64 = 264;
/// The offset in the header of the cache file of the boot stamp: the number for the boot in which
/// the file was last used.
pub(in crate::file) const STAMP: u64 = 272;
/// The offset in the header of the cache file of the boot stamp (the number for a boot) under which
/// the whole index was last verified.
pub(in crate::file) const SWEPT: u64 = 280;
/// The offset in the header of the cache file of the id of the process that is opening the file;
/// for people only, since a lock of the kernel decides.
pub(in crate::file) const ATTACHER: u64 = 288;
pub(in crate::file) const ATTACHER_NAMESPACE: u64 = 296;
/// The offset in the header of the cache file of the number of owner slots that processes have ever
/// taken; these are the first ones of the table.
pub(in crate::file) const OWNER_SLOTS_USED: u64 = 304;
pub(in crate::file) const RECYCLER: u64 = 320;
pub(in crate::file) const SEQUENCE: u64 = 328;
/// The offset in the header of the cache file of the word that names the process verifying the
/// index, and its progress.
pub(in crate::file) const SWEEPER: u64 = 336;
pub(in crate::file) const NEXT_VERSION: u64 = 384;
/// The offset in the header of the cache file of a version number above which all new versions of
/// entries are. Its cache line is written rarely.
pub(in crate::file) const SKIPPED_VERSIONS: u64 = 312;
/// The offset in the header of the cache file of the count of invalidations of groups and clearings
/// of namespaces.
pub(in crate::file) const GROUP_CLOCK: u64 = 1024;
/// The offset in the header of the cache file of the number of the last invalidation of a group
/// that was known at the file's first use after a reboot.
pub(in crate::file) const GROUP_BASE: u64 = 1032;
pub(in crate::file) const GHOST_CLOCK: u64 = 448;
/// The offset in the header of the cache file of the list of free segments that are prepared for
/// writers, each stored as its number plus 1.
pub(in crate::file) const READY_AT: u64 = 512;
pub(in crate::file) const READY_WORDS: u64 = 8;
pub(in crate::file) const DEATHS: u64 = 960;
pub(in crate::file) const RECOUNTED: u64 = 968;

/// The state, in its header, of a cache file that is in use.
pub(in crate::file) const READY: u64 = 1;
/// The state, in its header, of a cache file that another file has replaced at its path.
pub(in crate::file) const RETIRED: u64 = 2;

/// The properties of a cache file that never change, such as its layout, its time of creation and
/// the seed of its hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Header {
    pub(in crate::file) geometry: Geometry,
    pub(in crate::file) identity: u128,
    pub(in crate::file) hash_seed: u64,
    pub(in crate::file) created_ms: u64,
    /// The method that compresses the values of the cache file; `None` for no compression.
    pub(in crate::file) compression: Option<Method>,
}

/// The reason why the header of a cache file cannot be used. Its text continues "… cannot be used:
/// ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::file) enum HeaderError {
    #[error("the file is not a cache of Haypile; name another path, or remove the file")]
    Foreign,
    #[error(
        "the file was created on a machine of another byte order; name another path, or replace it with recreate=yes, which empties it"
    )]
    Endian,
    #[error(
        "the file's format is version {0}, which is older than this program's, {VERSION}; replace \
         it with recreate=yes, which empties it"
    )]
    Older(u32),
    #[error(
        "the file's format is version {0}, and this program reads version {VERSION}; update the \
         program, or replace the file with recreate=yes, which empties it"
    )]
    Newer(u32),
    #[error("the file's header is damaged; replace it with recreate=yes, which empties it")]
    Damaged,
    #[error(
        "the file should have {expected} bytes and has {found}; replace it with recreate=yes, \
         which empties it"
    )]
    Size { expected: u64, found: u64 },
}

impl Header {
    /// Returns the header page (4096 bytes) of a new cache file, whose empty index counts as
    /// verified.
    pub(in crate::file) fn encode(&self, stamp: u64) -> Vec<u8> {
        let Numbers {
            owner_slots,
            lanes,
            claims,
            removals,
            groups,
            buckets,
            overflows,
            ghosts,
            segments,
            segment_log2,
        } = self.geometry.numbers;
        let mut page = vec![0; usize::try_from(BYTES).expect("a page")];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &ENDIAN_MARK.to_le_bytes());
        put(16, &self.geometry.file_bytes.to_le_bytes());
        put(24, &self.identity.to_le_bytes());
        put(40, &self.hash_seed.to_le_bytes());
        let compression = self.compression.map_or(0, |method| u32::from(method.number()));
        let numbers =
            [owner_slots, claims, buckets, overflows, ghosts, segments, segment_log2, compression];
        for (at, number) in numbers.into_iter().enumerate() {
            put(48 + 4 * at, &number.to_le_bytes());
        }
        put(80, &self.created_ms.to_le_bytes());
        put(LANES_AT, &lanes.to_le_bytes());
        put(REMOVALS_AT, &removals.to_le_bytes());
        put(GROUPS_AT, &groups.to_le_bytes());
        put(word(STATE), &READY.to_le_bytes());
        // An epoch, a sequence number or a version of zero is of what was never written.
        for at in [EPOCH, SEQUENCE] {
            put(word(at), &1_u64.to_le_bytes());
        }
        let first = self.first_version();
        put(word(NEXT_VERSION), &first.to_le_bytes());
        put(word(SKIPPED_VERSIONS), &(first - 1).to_le_bytes());
        for at in [STAMP, SWEPT] {
            put(word(at), &stamp.to_le_bytes());
        }
        let checksum = xxh3_64(&page[..CHECKSUM_AT]);
        page[CHECKSUM_AT..CHECKSUM_AT + 8].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    /// Returns the first version of a new file: another one for each file, because whoever has a version of the file that
    /// was here before must not find it in this one. It is in the first fourth of all, so that there are enough.
    fn first_version(&self) -> u64 {
        u64::try_from(self.identity >> (128 - 45)).expect("45 bits").max(1)
    }

    /// Decodes the header of a cache file of `file_bytes` bytes from its first bytes.
    pub(in crate::file) fn decode(page: &[u8], file_bytes: u64) -> Result<Self, HeaderError> {
        if page.len() < word(BYTES) || page[..8] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        let u32_at = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().expect("4 bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().expect("8 bytes"));
        match u32_at(12) {
            ENDIAN_MARK => {}
            other if other.swap_bytes() == ENDIAN_MARK => return Err(HeaderError::Endian),
            _ => return Err(HeaderError::Damaged),
        }
        match u32_at(8) {
            older @ 0..VERSION => return Err(HeaderError::Older(older)),
            VERSION => {}
            newer => return Err(HeaderError::Newer(newer)),
        }
        if xxh3_64(&page[..CHECKSUM_AT]) != u64_at(CHECKSUM_AT) {
            return Err(HeaderError::Damaged);
        }
        let stated_bytes = u64_at(16);
        if stated_bytes != file_bytes {
            return Err(HeaderError::Size { expected: stated_bytes, found: file_bytes });
        }
        let number = |at: usize| u32_at(48 + 4 * at);
        let numbers = Numbers {
            owner_slots: number(0),
            lanes: u32_at(LANES_AT),
            removals: u32_at(REMOVALS_AT),
            groups: u32_at(GROUPS_AT),
            claims: number(1),
            buckets: number(2),
            overflows: number(3),
            ghosts: number(4),
            segments: number(5),
            segment_log2: number(6),
        };
        let geometry = Geometry::checked(numbers, file_bytes).ok_or(HeaderError::Damaged)?;
        let compression = match number(7) {
            0 => None,
            method => {
                let method = u8::try_from(method).ok().and_then(Method::of_number);
                Some(method.ok_or(HeaderError::Damaged)?)
            }
        };
        let identity = u128::from(u64_at(24)) | u128::from(u64_at(32)) << 64;
        let (hash_seed, created_ms) = (u64_at(40), u64_at(80));
        Ok(Self { geometry, identity, hash_seed, created_ms, compression })
    }
}

fn word(at: u64) -> usize {
    usize::try_from(at).expect("within a page")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::format::layout::DEFAULT_ENTRY_BYTES;

    fn header() -> Header {
        let geometry = Geometry::plan(1 << 20, DEFAULT_ENTRY_BYTES, None);
        let compression = Some(Method::Zstd);
        Header { geometry, identity: 1 << 100, hash_seed: 7, created_ms: 9, compression }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Header::decode(&header().encode(1), 1 << 20), Ok(header()));
    }

    #[test]
    fn every_byte_that_does_not_change_is_checked() {
        let page = header().encode(1);
        for at in 0..CHECKSUM_AT + 8 {
            let mut wrong = page.clone();
            wrong[at] ^= 0x20;
            assert!(Header::decode(&wrong, 1 << 20).is_err(), "byte {at}");
        }
    }

    #[test]
    fn errors_tell_versions_sizes_and_byte_orders_apart() {
        let page = header().encode(1);
        assert_eq!(Header::decode(&page[..100], 100), Err(HeaderError::Foreign));
        let size = HeaderError::Size { expected: 1 << 20, found: 4096 };
        assert_eq!(Header::decode(&page, 4096), Err(size));
        for (version, error) in [(5, HeaderError::Older(5)), (7, HeaderError::Newer(7))] {
            let mut other = page.clone();
            other[8] = version;
            assert!(error.to_string().contains("recreate=yes"), "{error}");
            assert_eq!(Header::decode(&other, 1 << 20), Err(error));
        }
        let mut other = page;
        other[12..16].reverse();
        assert_eq!(Header::decode(&other, 1 << 20), Err(HeaderError::Endian));
    }
}
