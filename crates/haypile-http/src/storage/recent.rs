//! Entries that were read a moment ago: one that is read again is not decoded again.
//!
//! What an entry's bytes mean follows from them alone. So nothing here can be stale: the store is asked each time, and
//! what is kept counts only if the bytes that the store has now are the same, but for the body.

use std::sync::Arc;
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

/// A memory of decoded entries that were read lately, so that hits need not decode them again.
#[derive(Debug)]
pub(super) struct Recent {
    rules: Arc<Rules>,
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
    /// Creates an empty memory of recently read entries, for a cache with these rules.
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        Self { rules, shards: Default::default() }
    }

    /// Decodes an entry from its bytes as [`format::decode`] does, or returns the one that was decoded before from the
    /// same bytes.
    pub(super) fn decode(&self, key: u128, bytes: &Bytes) -> Option<Entry> {
        let mut shard = self.shards[shard_of_thread()].lock();
        if shard.is_empty() {
            shard.resize_with(SLOTS, Slot::default);
        }
        let place = usize::try_from(key % SLOTS as u128).expect("less than SLOTS");
        let slot = &mut shard[place];
        if let Some(entry) = slot.kept.as_ref().and_then(|kept| kept.entry_of(bytes)) {
            return Some(entry);
        }
        // To keep an entry takes as long as to decode it, and pays if it is read once more.
        let is_read_again = std::mem::replace(&mut slot.last, key) == key;
        let entry = format::decode(bytes.clone())?;
        if is_read_again && let Some(kept) = Kept::of(&self.rules, bytes, &entry) {
            slot.kept = Some(Box::new(kept));
        }
        Some(entry)
    }
}

impl Kept {
    /// Returns a copy of an entry and its bytes, to be kept without the body; `None` if it is too long.
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

/// Returns the number of the shard of this thread. The first threads have one each.
fn shard_of_thread() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    SHARD.with(|shard| *shard)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::{HeaderMap, HeaderValue, StatusCode};
    use proptest::prelude::*;

    use super::super::entry::{Chunks, StoredResponse};
    use super::super::purges::Stamp;
    use super::*;
    use crate::semantics::{Stored, Variant};

    /// Returns the bytes of an entry whose fields and bodies are these.
    fn bytes(name: &'static str, fields: &str, bodies: &[StoredBody]) -> Bytes {
        let mut headers = HeaderMap::new();
        headers.insert("cache-control", HeaderValue::from_static("max-age=60"));
        headers.insert("x", HeaderValue::from_str(fields).expect("a value"));
        let (variant, received) = (Some(Variant::default()), UNIX_EPOCH + Duration::from_secs(9));
        let head =
            Stored { status: StatusCode::OK, headers, variant, requested: received, received };
        let response = |body: &StoredBody| StoredResponse {
            head: head.clone(),
            body: body.clone(),
            number: 0,
            groups: Vec::new(),
            has_expired: false,
            terms: KnownTerms::default(),
        };
        let mut entry = Entry::empty(Bytes::from_static(name.as_bytes()), Stamp::default());
        entry.generation = 7;
        entry.responses = bodies.iter().map(response).collect();
        format::encode(&entry).expect("short fields").into()
    }

    fn inline(body: &'static str) -> StoredBody {
        StoredBody::Inline(Bytes::from_static(body.as_bytes()))
    }

    fn chunks(id: u128) -> StoredBody {
        StoredBody::Chunks(Chunks { id, bytes: 1 << 30 })
    }

    fn recent() -> Recent {
        Recent::new(Rules::shared().into())
    }

    /// Whether an entry was kept, and came from there.
    fn is_kept(entry: Option<&Entry>) -> bool {
        let response = entry.and_then(|entry| entry.responses.first()).expect("a response");
        format!("{:?}", response.terms) != format!("{:?}", KnownTerms::default())
    }

    #[test]
    fn an_entry_is_kept_from_its_second_reading_on() {
        for bodies in [&[inline("body")][..], &[chunks(1)], &[inline("one"), chunks(2)]] {
            let (recent, bytes) = (recent(), bytes("a", "", bodies));
            let found: Vec<_> = (0..4).map(|_| recent.decode(5, &bytes)).collect();
            let expected = format::decode(bytes.clone());
            assert!(expected.is_some() && found.iter().all(|entry| *entry == expected));
            let kept: Vec<_> = found.iter().map(|entry| is_kept(entry.as_ref())).collect();
            assert_eq!(kept, [false, false, true, true], "{bodies:?}");
        }
    }

    #[test]
    fn a_long_head_is_not_kept_and_the_length_of_the_body_does_not_matter() {
        let long: &'static str = "x".repeat(60_000).leak();
        for (fields, body, expected) in
            [("", long, true), (&*"y".repeat(MOST_BYTES), "", false), ("y", "", true)]
        {
            let (recent, bytes) = (recent(), bytes("a", fields, &[inline(body)]));
            let last = (0..3).map(|_| recent.decode(5, &bytes)).last().flatten();
            assert_eq!(is_kept(last.as_ref()), expected, "{} {}", fields.len(), body.len());
        }
    }

    #[test]
    fn what_is_kept_of_one_key_does_not_stay_while_others_are_read() {
        let (recent, one, other) =
            (recent(), bytes("a", "", &[inline("1")]), bytes("b", "", &[inline("2")]));
        let keys = [(5, &one), (5 + SLOTS as u128, &other)];
        for (key, bytes) in keys.into_iter().cycle().take(8) {
            let entry = recent.decode(key, bytes);
            assert_eq!(entry, format::decode(bytes.clone()));
            assert!(!is_kept(entry.as_ref()), "in turns, neither is worth it");
        }
    }

    #[test]
    fn a_body_of_another_length_than_its_entry_says_is_none() {
        let (recent, bytes) = (recent(), bytes("a", "", &[inline("body")]));
        let read = |bytes: Bytes| recent.decode(5, &bytes);
        assert!((0..3).all(|_| read(bytes.clone()).is_some()));
        for strange in [
            bytes.slice(..bytes.len() - 1),
            [&bytes[..], b"x"].concat().into(),
            bytes.slice(..bytes.len() - 6),
            Bytes::new(),
        ] {
            assert_eq!(read(strange), None);
        }
        assert!(is_kept(read(bytes.clone()).as_ref()));
    }

    proptest! {
        /// Whatever is read in whatever order, changed, damaged or cut short: the entry is the one that the bytes are.
        #[test]
        fn an_entry_is_that_of_its_bytes(
            reads in prop::collection::vec((0_usize..6, 0_u128..3, any::<(bool, u16, u8)>()), 1..60),
        ) {
            let entries = [
                bytes("a", "", &[inline("body")]),
                bytes("a", "", &[inline("body2")]),
                bytes("a", "z", &[inline("body")]),
                bytes("a", "", &[chunks(1)]),
                bytes("a", "", &[chunks(1 << 100)]),
                bytes("a", "", &[]),
            ];
            let recent = recent();
            for (which, key, (is_damaged, place, byte)) in reads {
                let mut bytes = entries[which].to_vec();
                if is_damaged {
                    let place = usize::from(place) % bytes.len();
                    bytes[place] ^= byte;
                }
                let bytes = Bytes::from(bytes);
                prop_assert_eq!(recent.decode(key, &bytes), format::decode(bytes));
            }
        }
    }
}
