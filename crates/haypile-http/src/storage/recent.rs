//! The entries that were read a moment ago, so that an entry that is read again need not be decoded again.
//!
//! What an entry's bytes mean follows from them alone. So nothing here can be stale: the store is asked each time, and
//! what is kept counts only if the bytes that the store has now are the same, but for the body.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::entry::{Entry, StoredBody};
use super::format;
use crate::semantics::{KnownTerms, Rules};

/// The most threads that keep entries apart from each other's. An entry that several share makes their processors wait
/// for each other, for each of its fields.
const SHARDS: usize = 8;
/// The most entries that one thread keeps. At 1 KiB to 3 KiB each, they take up to 1.5 MiB.
const SLOTS: usize = 512;
/// The longest entry that is kept, without its body.
const MOST_BYTES: usize = 1024;
/// The length of the number before a body that says how long it is.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Entries that were read lately.
#[derive(Debug)]
pub(super) struct Recent {
    rules: Rules,
    shards: [Mutex<Vec<Slot>>; SHARDS],
}

/// The place of all entries whose keys have the same last bits.
#[derive(Debug, Default)]
struct Slot {
    /// The last key that was looked for.
    last: u128,
    kept: Option<Box<Kept>>,
}

/// An entry, and the bytes that it was decoded from.
#[derive(Debug)]
struct Kept {
    /// The bytes; of a body in the entry, only its length, as zero.
    bytes: Bytes,
    /// The entry; of a body in it, nothing.
    entry: Entry,
    has_body: bool,
}

impl Recent {
    /// Returns none yet, for a cache of these rules.
    pub(super) fn new(rules: Rules) -> Self {
        Self { rules, shards: Default::default() }
    }

    /// Returns the entry that these bytes of a key are, as [`format::decode`] does.
    pub(super) fn decode(&self, key: u128, bytes: Bytes) -> Option<Entry> {
        let mut shard = self.shards[shard_of_thread()].lock();
        if shard.is_empty() {
            shard.resize_with(SLOTS, Slot::default);
        }
        let place = usize::try_from(key % SLOTS as u128).expect("less than SLOTS");
        let slot = &mut shard[place];
        if let Some(entry) = slot.kept.as_ref().and_then(|kept| kept.entry_of(&bytes)) {
            return Some(entry);
        }
        // To keep an entry takes as long as to decode it, and pays if it is read once more.
        let is_read_again = std::mem::replace(&mut slot.last, key) == key;
        let entry = format::decode(bytes.clone())?;
        if is_read_again && let Some(kept) = Kept::of(&self.rules, &bytes, &entry) {
            slot.kept = Some(Box::new(kept));
        }
        Some(entry)
    }
}

impl Kept {
    /// Returns an entry to be kept; `None` if it is too long.
    fn of(rules: &Rules, bytes: &Bytes, entry: &Entry) -> Option<Self> {
        let body = entry.responses.last().map(|response| &response.body);
        let body = if let Some(StoredBody::Inline(body)) = body { Some(body) } else { None };
        let length = bytes.len() - body.map_or(0, Bytes::len);
        if length > MOST_BYTES {
            return None;
        }
        // A copy: a part of the bytes would keep all of them, with the body.
        let mut copy = bytes[..length].to_vec();
        if body.is_some() {
            copy[length - LENGTH_BYTES..].fill(0);
        }
        let copy = Bytes::from(copy);
        let mut entry = format::decode(copy.clone())?;
        for response in &mut entry.responses {
            response.terms = KnownTerms::of(rules, &response.head);
        }
        Some(Self { bytes: copy, entry, has_body: body.is_some() })
    }

    /// Returns the entry that these bytes are, if they are those of this one.
    fn entry_of(&self, bytes: &Bytes) -> Option<Entry> {
        if !self.has_body {
            return (self.bytes == bytes).then(|| self.entry.clone());
        }
        let (head, body) = bytes.split_at_checked(self.bytes.len())?;
        let (head, length) = head.split_last_chunk::<LENGTH_BYTES>()?;
        let is_same = self.bytes.starts_with(head)
            && usize::try_from(u32::from_le_bytes(*length)) == Ok(body.len());
        is_same.then(|| {
            let mut entry = self.entry.clone();
            if let Some(response) = entry.responses.last_mut() {
                response.body = StoredBody::Inline(bytes.slice(self.bytes.len()..));
            }
            entry
        })
    }
}

/// Returns the number of the shard of this thread.
fn shard_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: Cell<Option<usize>> = const { Cell::new(None) };
    }
    let first = || THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
    SHARD.get().unwrap_or_else(|| {
        let shard = first();
        SHARD.set(Some(shard));
        shard
    })
}
