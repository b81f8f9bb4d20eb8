//! Writing the records of a block.

use xxhash_rust::xxh3::xxh3_64;

use super::{BLOCK_HEADER_BYTES, MAX_PAYLOAD_BYTES};
use super::{
    Block, BlockHeader, FULL_PAYLOAD_BYTES, HAS_SIZE, HAS_TTL, HASH_BYTES, KNOWN_KEY, Kind,
    NO_EFFECT, varint,
};

/// Sets in the table of keys, with two places each: in total more than the new keys of 32 bytes
/// that fit into a block.
const SETS: usize = 1 << 10;

/// Bytes of a record before the key: the first byte, time, size, TTL, and the key's length and
/// hash.
const MAX_HEAD_BYTES: usize = 1 + 4 * varint::MAX_BYTES + HASH_BYTES;

/// A cache operation to be recorded: its kind (such as a hit), its key, and the size and TTL of the value.
#[derive(Clone, Copy, Debug)]
pub struct RecordedEntry<'a> {
    /// The kind of the operation to record, such as a hit, a miss or a set.
    pub kind: Kind,
    /// Whether the operation changed something in the cache (a deletion of a missing key does not); always true for
    /// reads.
    pub effect: bool,
    /// The key of the operation, of at most 65,535 bytes; empty for [`Kind::Clear`].
    pub key: &'a [u8],
    /// The size of the value that was read or written, in bytes; `None` if it is not known.
    pub size_bytes: Option<u64>,
    /// The TTL of the written value, in microseconds; 0 for "never expires", and `None` if it is not known.
    pub ttl_us: Option<u64>,
}

/// A key that is already in the payload.
#[derive(Clone, Copy, Debug, Default)]
struct KnownKeys {
    /// The position of its bytes; 0 if there is no key here.
    at: u32,
    number: u16,
    bytes: u16,
}

/// A block of a recording that is being filled with encoded records, before it is written to the file.
#[derive(Debug)]
pub struct Payload {
    /// Space for the block's header, followed by the payload, so that one write covers both.
    bytes: Vec<u8>,
    known: Box<[[KnownKeys; 2]]>,
    keys: u16,
    records: u32,
    first_ns: u64,
    last_ns: u64,
    hashed_keys: bool,
}

impl Payload {
    /// Creates an empty block of a recording, which allocates memory on first use.
    pub fn new(hashed_keys: bool) -> Self {
        Self {
            bytes: Vec::new(),
            known: Box::default(),
            keys: 0,
            records: 0,
            first_ns: 0,
            last_ns: 0,
            hashed_keys,
        }
    }

    /// Returns the number of records in the recording's block.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Returns the time of the first record in the recording's block, in nanoseconds of the clock that the recorder
    /// uses.
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }

    /// Whether the recording's block is full, and should be written to the file.
    pub fn is_full(&self) -> bool {
        self.records > 0 && self.bytes.len() >= BLOCK_HEADER_BYTES + FULL_PAYLOAD_BYTES
    }

    /// Adds a record of an operation to the recording's block, with a time in nanoseconds from any origin. A time
    /// before that of the previous record is raised to it.
    #[inline]
    pub fn push(&mut self, now_ns: u64, entry: &RecordedEntry<'_>) {
        if self.records == 0 {
            self.begin(now_ns);
        }
        let hash = xxh3_64(entry.key);
        let hash_bytes = hash.to_le_bytes();
        let written = if self.hashed_keys { &hash_bytes[..] } else { entry.key };
        let set = usize::from(u16::from_le_bytes([hash_bytes[0], hash_bytes[1]])) % SETS;
        let key_bytes = u16::try_from(entry.key.len()).expect("the store has checked the length");
        let is_here = |known: &&KnownKeys| {
            known.at != 0
                && known.bytes == key_bytes
                && &self.bytes[known.at as usize..][..written.len()] == written
        };
        let known = self.known[set].iter().find(is_here).copied();

        let mut head = [0; MAX_HEAD_BYTES];
        let flag = |is_set, flag: u8| if is_set { flag } else { 0 };
        head[0] = entry.kind as u8
            | flag(known.is_some(), KNOWN_KEY)
            | flag(entry.size_bytes.is_some(), HAS_SIZE)
            | flag(entry.ttl_us.is_some(), HAS_TTL)
            | flag(!entry.effect, NO_EFFECT);
        let mut at = varint::put(&mut head, 1, now_ns.saturating_sub(self.last_ns));
        if let Some(size_bytes) = entry.size_bytes {
            at = varint::put(&mut head, at, size_bytes);
        }
        if let Some(ttl_us) = entry.ttl_us {
            at = varint::put(&mut head, at, ttl_us);
        }
        if let Some(known) = known {
            at = varint::put(&mut head, at, u64::from(known.number));
            self.bytes.extend_from_slice(&head[..at]);
        } else {
            at = varint::put(&mut head, at, u64::from(key_bytes));
            self.bytes.extend_from_slice(&head[..at]);
            let at = u32::try_from(self.bytes.len()).expect("a payload is small");
            let new = KnownKeys { at, number: self.keys, bytes: key_bytes };
            self.known[set] = [new, self.known[set][0]];
            self.keys += 1;
            self.bytes.extend_from_slice(written);
        }
        self.last_ns = self.last_ns.max(now_ns);
        self.records += 1;
    }

    /// Moves the filled block of the recording into `spare`, with space for its header, and returns the header; the
    /// former buffer of `spare` serves the next block. Times in the file count from `origin_ns`.
    pub fn take(&mut self, spare: &mut Vec<u8>, stripe: u32, origin_ns: u64) -> BlockHeader {
        std::mem::swap(&mut self.bytes, spare);
        let payload_bytes = spare.len() - BLOCK_HEADER_BYTES;
        let block = Block::Records {
            payload_bytes: u32::try_from(payload_bytes).expect("a payload is small"),
            records: std::mem::take(&mut self.records),
            stripe,
        };
        BlockHeader { block, first_ns: self.first_ns.saturating_sub(origin_ns), floor_ns: 0 }
    }

    /// Discards the records in the recording's block.
    pub fn discard(&mut self) {
        self.records = 0;
    }

    #[cold]
    fn begin(&mut self, now_ns: u64) {
        // The longest record may come when the payload is almost full.
        const {
            assert!(
                FULL_PAYLOAD_BYTES + MAX_HEAD_BYTES + u16::MAX as usize <= MAX_PAYLOAD_BYTES,
                "readers accept the largest payload"
            );
        }
        self.bytes.clear();
        self.bytes.reserve(BLOCK_HEADER_BYTES + FULL_PAYLOAD_BYTES + 1024);
        self.bytes.resize(BLOCK_HEADER_BYTES, 0);
        if self.known.is_empty() {
            self.known = vec![<[KnownKeys; 2]>::default(); SETS].into();
        } else {
            self.known.fill(Default::default());
        }
        self.keys = 0;
        self.first_ns = now_ns;
        self.last_ns = now_ns;
    }
}
