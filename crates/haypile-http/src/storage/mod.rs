//! Stored responses in a store.
//!
//! One entry holds the heads of all responses to a target, so that one write replaces, freshens or
//! invalidates them, under the condition that nobody else has written since they were read. A body
//! that is short is in the entry; a longer one lies in chunks, which are written before the entry
//! that names them.

mod entry;
mod format;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haypile::{Cache, SetOptions, Store, TriedClaim};
use tokio::sync::Semaphore;
use xxhash_rust::xxh3::xxh3_128;

pub(crate) use entry::{Chunks, Entry, StoredBody, StoredResponse};

/// The length of a chunk, and of the longest entry. With its key and the head of its record it fills
/// 64 KiB, a segment of a small `file:` store and a fraction of a larger one.
pub(crate) const CHUNK_BYTES: usize = 65_536 - 256;

/// Longer names are hashed: memcached has keys of 250 bytes.
const LONGEST_NAME_IN_KEY: usize = 200;
/// An entry that only says of which generation the next response has to be is not kept for longer.
const LIFE_OF_EMPTY: Duration = Duration::from_hours(1);
/// The calls of a store that may wait at the same time, each in a thread.
const MOST_CALLS: usize = 64;

/// The responses of one cache.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    cache: Cache,
    /// Calls of a store in this process take microseconds, or wait for a page of a file: less than
    /// handing them to another thread takes.
    is_local: bool,
    calls: Arc<Semaphore>,
    limit: Duration,
}

/// An entry as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The entry, if there is one of use.
    pub(crate) entry: Option<Entry>,
    /// The condition under which it may be replaced.
    condition: SetOptions,
}

impl Storage {
    /// Returns the storage in a cache, whose calls delay a response for at most this long.
    pub(crate) fn new(cache: &Cache, limit: Duration) -> Self {
        let url = cache.store().url();
        let is_local = |scheme: &str| ["memory", "file", "none"].contains(&scheme);
        let is_local = url.levels().iter().all(|level| is_local(level.scheme()));
        let calls = Arc::new(Semaphore::new(MOST_CALLS));
        Self { cache: cache.clone(), is_local, calls, limit }
    }

    /// Returns the largest body that may be stored: a sixteenth of the store.
    pub(crate) fn largest_body(&self) -> u64 {
        self.cache.store().limits().capacity_bytes.map_or(u64::MAX, |capacity| capacity / 16)
    }

    /// Calls the store; `None` if it takes too long, or too many calls of it do so already.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> T + Send + 'static,
    ) -> Option<T> {
        if self.is_local {
            return Some(call(&**self.cache.store()));
        }
        let permit = Arc::clone(&self.calls).try_acquire_owned().ok()?;
        let store = Arc::clone(self.cache.store());
        let called = tokio::task::spawn_blocking(move || {
            let result = call(&*store);
            drop(permit);
            result
        });
        tokio::time::timeout(self.limit, called).await.ok()?.ok()
    }

    /// Reads an entry; `None` if the store does not answer.
    pub(crate) async fn read(&self, name: &Bytes) -> Option<Read> {
        let key = key(name);
        let read = self.call(move |store| {
            let mut value = Vec::new();
            let hit = store.get_versioned_into(key.as_bytes(), &mut value).ok()?;
            Some((hit, value))
        });
        let (hit, value) = read.await??;
        let Some(hit) = hit else {
            return Some(Read { entry: None, condition: SetOptions::add() });
        };
        let entry = format::decode(value.into()).filter(|entry| entry.name == *name);
        // Without versions, the last of two writers at the same time wins.
        let condition = hit.version.map_or(SetOptions::set(), SetOptions::cas);
        Some(Read { entry, condition })
    }

    /// Writes an entry if nobody has since another was read; returns whether it did.
    pub(crate) async fn write(&self, read: &Read, entry: &Entry) -> bool {
        let Some(value) = format::encode(entry).filter(|value| value.len() <= CHUNK_BYTES) else {
            return false;
        };
        let is_empty = entry.responses.is_empty();
        let options =
            if is_empty { read.condition.with_ttl(LIFE_OF_EMPTY) } else { read.condition };
        let key = key(&entry.name);
        let written = self.call(move |store| store.set(key.as_bytes(), &value, &options));
        matches!(written.await, Some(Ok(written)) if written.is_stored())
    }

    /// Claims a name among the processes that share the store; the outcome does not matter where no
    /// other could have claimed it.
    pub(crate) async fn try_claim(&self, name: &Bytes) -> TriedClaim {
        let (cache, key) = (self.cache.clone(), key(name));
        let tried = self.call(move |_store| cache.try_claim(key, None)).await;
        tried.and_then(Result::ok).unwrap_or(TriedClaim::Unneeded)
    }

    /// Whether an entry with one more response of this length in it is short enough.
    pub(crate) fn has_room_for(entry: &Entry, body_bytes: usize) -> bool {
        let length = format::encode(entry).map(|bytes| bytes.len());
        length.is_some_and(|length| length + body_bytes <= CHUNK_BYTES)
    }

    /// Forgets all responses under a name, also those that are on their way: each has created the
    /// entry before it was asked for.
    pub(crate) async fn invalidate(&self, name: &Bytes) {
        let empty = format::encode(&Entry::empty(name.clone()));
        let key = key(name);
        let written = self.call(move |store| {
            if matches!(store.contains(key.as_bytes()), Ok(false)) {
                return true;
            }
            let options = SetOptions::set().with_ttl(LIFE_OF_EMPTY);
            let write = |value: Vec<u8>| store.set(key.as_bytes(), &value, &options).is_ok();
            // A store that is full still deletes.
            empty.is_some_and(write) || store.delete(key.as_bytes()).is_ok()
        });
        written.await;
    }

    /// Reads a chunk; `None` if it is not there.
    pub(crate) async fn chunk(&self, chunks: Chunks, index: u64) -> Option<Bytes> {
        let expected = chunks.length_of(index)?;
        let key = chunk_key(chunks.id, index);
        let value = self.call(move |store| store.get(key.as_bytes())).await?.ok()??;
        (value.len() == expected).then(|| value.into())
    }

    /// Writes a chunk; returns whether it did.
    pub(crate) async fn write_chunk(&self, id: u128, index: u64, chunk: Bytes) -> bool {
        let key = chunk_key(id, index);
        let written = self.call(move |store| store.set(key.as_bytes(), &chunk, &SetOptions::set()));
        matches!(written.await, Some(Ok(written)) if written.is_stored())
    }

    /// Whether all chunks are there.
    pub(crate) async fn has_all(&self, chunks: Chunks) -> bool {
        let all = self.call(move |store| {
            let is_there = |index| store.contains(chunk_key(chunks.id, index).as_bytes());
            (0..chunks.number()).all(|index| is_there(index).unwrap_or(false))
        });
        all.await.unwrap_or(false)
    }

    /// Removes chunks that no entry names any more.
    pub(crate) async fn remove_chunks(&self, id: u128, number: u64) {
        let removed = self.call(move |store| {
            for index in 0..number {
                let _ = store.delete(chunk_key(id, index).as_bytes());
            }
        });
        removed.await;
    }
}

impl Chunks {
    /// Returns how many there are.
    pub(crate) fn number(self) -> u64 {
        self.bytes.div_ceil(CHUNK_BYTES as u64)
    }

    fn length_of(self, index: u64) -> Option<usize> {
        let left = self.bytes.checked_sub(index.checked_mul(CHUNK_BYTES as u64)?)?;
        usize::try_from(left.min(CHUNK_BYTES as u64)).ok()
    }
}

/// Returns the index of the chunk that has this byte of a body, and the byte's place in it.
pub(crate) fn chunk_of(at: u64) -> (u64, usize) {
    let place = usize::try_from(at % CHUNK_BYTES as u64).expect("less than a chunk");
    (at / CHUNK_BYTES as u64, place)
}

fn key(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(text) if text.len() <= LONGEST_NAME_IN_KEY => format!("http/{text}"),
        // The entry has the name: of two with the same hash, each replaces the other.
        _ => format!("http#{:032x}", xxh3_128(name)),
    }
}

fn chunk_key(id: u128, index: u64) -> String {
    format!("http-body/{id:032x}/{index}")
}
