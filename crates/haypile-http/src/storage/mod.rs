//! Storage: responses of an HTTP cache in a store.
//!
//! The entry of a target has its response, or knows which fields of a request decide among several, each
//! of which is then an entry of its own: a variant. One write of the target's entry invalidates them all,
//! and each write is under the condition that nobody else has written since it was read. A body
//! that is short is in the entry; a longer one lies in chunks, which are written before the entry
//! that names them.

mod bare;
mod entry;
pub(crate) mod format;
mod groups;
mod ledger;
mod loan;
mod outcome;
mod parts;
mod purges;
mod reader;
mod recent;
mod refresh;
mod register;
mod troubles;
mod variants;
mod write;

use std::cmp::Reverse;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haypile::url::Level;
use haypile::{Cache, Hit, SetOptions, Store, TriedClaim, Ttl, Version};
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use xxhash_rust::xxh3::xxh3_128;

use bare::Bare;
pub(crate) use entry::{Chunks, Entry, StoredBody, StoredResponse};
pub(crate) use groups::{Group, MOST_GROUPS, origin_of};
use ledger::{PURGE_ATTEMPTS, add_purge, begin_purges, read_purges, refresh_purges};
pub(crate) use outcome::{Outcome, OutcomeKind};
pub(crate) use parts::Part;
use purges::Purges;
pub(crate) use purges::{LONGEST_PREFIX, Stamp};
use reader::Reader;
use refresh::Refresh;
pub use troubles::StoreTroubles;
use troubles::Troubles;
pub(crate) use variants::variant_name;
use write::Writes;
pub(crate) use write::room_for_body;

use crate::semantics::{Rules, Stored, Variant};

/// The length in bytes of a chunk of a response body, and of the longest entry. With its key and its record's header it
/// fills 64 KiB, a segment of a small `file:` store and a fraction of a larger one.
pub(crate) const CHUNK_BYTES: usize = 65_536 - 256;

/// The begin of the keys of names.
const KEY_BEGIN: &[u8] = b"http/";
/// The length of the key of a name, in bytes.
const KEY_BYTES: usize = KEY_BEGIN.len() + 32;

/// The key of a name. It is not on the heap: each request makes one.
type Key = [u8; KEY_BYTES];

/// An entry that only says of which generation the next response has to be is not kept for longer.
const LIFE_OF_EMPTY: Duration = Duration::from_hours(1);
/// The calls of a store that may wait at the same time, each in a thread.
const MOST_CALLS: usize = 64;

/// The responses that one HTTP cache keeps in a store, and the access to them.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    cache: Cache,
    reader: Reader,
    /// The rules by which requests ask for variants.
    rules: Arc<Rules>,
    /// Whether the store is in this process, so that its calls are made without another thread:
    /// they take microseconds, or wait for a page of a file.
    is_local: bool,
    /// Whether the store keeps nothing, and has nothing to forget.
    is_none: bool,
    calls: Arc<Semaphore>,
    limit: Duration,
    troubles: Arc<Troubles>,
    refresh: Arc<Refresh>,
    bare: Arc<Bare>,
}

/// The entry (stored responses) of a URL as it was read from the store, with the conditions under which it may be
/// replaced.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// The entry of the URL; `None` if there is no usable one. It is boxed because it is passed on several times for
    /// each request.
    pub(crate) entry: Option<Box<Entry>>,
    /// The number of the store's level that had the entry, 0 for the fastest.
    pub(crate) level: u8,
    /// The condition under which it may be replaced.
    condition: SetOptions,
    /// The stamp for entries that are created now; `None` if the store has no record of purges.
    stamp: Option<Stamp>,
    /// The entries of variants that were looked for.
    found: Vec<FoundVariant>,
}

/// The entry under the name of a variant, whether it counts or not.
#[derive(Clone, Debug)]
struct FoundVariant {
    name: Bytes,
    /// The condition under which it may be replaced.
    condition: SetOptions,
}

/// The state of invalidations (the entry's generation and the last purge) when a request to the origin began, which
/// must not change before its response is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The generation of the URL's entry when the request began, which changes with each invalidation. If the entry has
    /// another one when the response comes, the response is not stored.
    pub(crate) generation: u64,
    /// The number of the last purge of the store when the request began.
    pub(crate) number: u64,
}

impl Storage {
    /// Creates the storage of an HTTP cache in a store, whose calls delay a response for at most `limit`.
    pub(crate) fn new(cache: &Cache, limit: Duration, rules: Rules) -> Self {
        let url = cache.store().url();
        let is_local = |scheme: &str| ["memory", "file", "none"].contains(&scheme);
        let is_local = url.levels().iter().all(|level| is_local(level.scheme()));
        let is_none = url.levels().iter().all(|level| level.scheme() == "none");
        let calls = Arc::new(Semaphore::new(MOST_CALLS));
        let capacity_bytes = cache.store().limits().capacity_bytes;
        let refresh = Arc::new(Refresh::new(capacity_bytes));
        let is_shared = url.levels().iter().any(|level| level.scheme() == "file");
        let bare = Arc::new(Bare::new(capacity_bytes, is_shared));
        let (rules, troubles) = (Arc::new(rules), Arc::default());
        let (cache, reader) = (cache.clone(), Reader::new(cache, &rules));
        Self { cache, reader, rules, is_local, is_none, calls, limit, troubles, refresh, bare }
    }

    /// Returns the size of the largest response body that may be stored, in bytes: a sixteenth of the store.
    pub(crate) fn largest_body(&self) -> u64 {
        self.cache.store().limits().capacity_bytes.map_or(u64::MAX, |capacity| capacity / 16)
    }

    /// Returns the counts of the store in Prometheus' text format; `None` if it does not answer.
    pub(crate) async fn prometheus(&self) -> Option<String> {
        let cache = self.cache.clone();
        self.call(move |_store| cache.prometheus().ok()).await?
    }

    /// Returns the counts of store calls that failed, were too slow, or were skipped.
    pub(crate) fn troubles(&self) -> StoreTroubles {
        self.troubles.read()
    }

    /// Returns the names of the store's levels for users, the fastest first: URL schemes, with a
    /// number if several levels have the same. A store of one level has no names.
    pub(crate) fn level_names(&self) -> Vec<Arc<str>> {
        let url = self.cache.store().url();
        let schemes: Vec<&str> = url.levels().iter().map(Level::scheme).collect();
        let name = |(number, scheme): (usize, &&str)| {
            let is_only = schemes.iter().filter(|other| *other == scheme).count() == 1;
            let name = if is_only { (*scheme).into() } else { format!("{scheme}-{}", number + 1) };
            name.into()
        };
        if schemes.len() > 1 { schemes.iter().enumerate().map(name).collect() } else { Vec::new() }
    }

    /// Calls the store; `None` if it takes too long, or too many calls of it do so already.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> T + Send + 'static,
    ) -> Option<T> {
        let permit = async { Arc::clone(&self.calls).try_acquire_owned().ok() };
        self.call_with(permit, call).await
    }

    /// Does the same for what must not be left out because many read, such as an invalidation: it waits
    /// for its turn as long as a call may take.
    async fn call_in_turn<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Store) -> T + Send + 'static,
    ) -> Option<T> {
        let turn = async {
            let turn = Arc::clone(&self.calls).acquire_owned();
            tokio::time::timeout(self.limit, turn).await.ok()?.ok()
        };
        self.call_with(turn, call).await
    }

    /// Calls a store of this process at once, and any other once there is a permit; `None` if there is
    /// none, or the call takes too long.
    async fn call_with<T: Send + 'static>(
        &self,
        permit: impl Future<Output = Option<OwnedSemaphorePermit>>,
        call: impl FnOnce(&dyn Store) -> T + Send + 'static,
    ) -> Option<T> {
        if self.is_local {
            return Some(call(&**self.cache.store()));
        }
        let Some(permit) = permit.await else {
            self.troubles.busy();
            return None;
        };
        let store = Arc::clone(self.cache.store());
        let called = tokio::task::spawn_blocking(move || {
            let result = call(&*store);
            drop(permit);
            result
        });
        let Ok(called) = tokio::time::timeout(self.limit, called).await else {
            self.troubles.slow();
            return None;
        };
        called.ok()
    }

    /// Reads the entry of a URL, with the variants that may answer a request; `None` if the store does not answer.
    pub(crate) async fn read(&self, name: &Bytes, request: &HeaderMap) -> Option<Read> {
        let read = self.read_own(name).await?;
        match &read.entry {
            Some(entry) if !entry.variants.is_empty() => {
                let names = entry.variants.names(self.rules.selection(), name, request);
                Box::pin(self.with_variants(read, names)).await
            }
            _ => Some(read),
        }
    }

    /// Adds the variants of these names to what was read of their target.
    async fn with_variants(&self, read: Read, names: Vec<(Bytes, Variant)>) -> Option<Read> {
        let reader = self.reader.clone();
        let variants = self.call(move |store| {
            let purges = read_purges(store)?;
            read_variants(store, &reader, read, names, purges.as_ref())
        });
        variants.await?
    }

    /// Reads a URL's own entry, without its variants; `None` if the store does not answer.
    pub(crate) async fn read_own(&self, name: &Bytes) -> Option<Read> {
        let (reader, name) = (self.reader.clone(), name.clone());
        let read = self.call(move |store| {
            // First: what is stored later is not older than these purges.
            let purges = read_purges(store)?;
            read_entry(store, &reader, &name, purges.as_ref())
        });
        let read = read.await?;
        if read.is_none() {
            self.troubles.failed();
        }
        read
    }

    /// Returns the state of invalidations (generation and last purge) for a request to the origin that is sent after
    /// the entry was read; creates the entry if there is none. Returns `None` if that fails.
    pub(crate) async fn begin(&self, read: &Read, name: &Bytes) -> Option<Begun> {
        if let Some(begun) = read.begun() {
            return Some(begun);
        }
        let stamp = match read.stamp {
            Some(stamp) => stamp,
            None => self.call(begin_purges).await??,
        };
        let empty = Entry::empty(name.clone(), stamp);
        if self.write(read, &empty).await {
            return Some(Begun { generation: empty.generation, number: stamp.number });
        }
        // Another request, or process, was first.
        self.read_own(name).await?.begun()
    }

    /// Invalidates the responses of an entry on behalf of a request to the origin that has begun, and returns the new
    /// generation; `None` if something else has invalidated the entry in the meantime.
    pub(crate) async fn renew(&self, name: &Bytes, begun: Begun) -> Option<Begun> {
        let read = self.read_own(name).await?;
        let entry = read.entry.as_ref().filter(|entry| entry.generation == begun.generation)?;
        // Of the same place among the purges, for the response is.
        let empty = Entry::empty(name.clone(), entry.stamp);
        let renewed = Begun { generation: empty.generation, ..begun };
        self.write(&read, &empty).await.then_some(renewed)
    }

    /// Whether a response in transit may answer requests that come now: neither its entry nor its purge groups were
    /// invalidated since it was requested.
    pub(crate) async fn is_current(&self, name: &Bytes, begun: Begun, groups: &[Group]) -> bool {
        let (reader, name, groups) = (self.reader.clone(), name.clone(), groups.to_vec());
        let is_current = self.call(move |store| {
            let purges = read_purges(store)?;
            let entry = read_entry(store, &reader, &name, purges.as_ref())?.entry;
            let is_same = entry.is_some_and(|entry| entry.generation == begun.generation);
            let (true, Some(purges)) = (is_same, purges) else { return Some(false) };
            let has_expired = purges.has_expired(&name, begun.number);
            Some(!has_expired && groups::permit(store, purges.stamp(), begun.number, &groups)?)
        });
        is_current.await.flatten().unwrap_or(false)
    }

    /// Ensures that the store has a record of each of a response's purge groups before the response is stored. Returns
    /// whether none of them was purged since its request was sent.
    pub(crate) async fn join_groups(&self, response: &StoredResponse) -> bool {
        if response.groups.is_empty() {
            return true;
        }
        let response = response.clone();
        let joined = self.call(move |store| groups::join(store, &response));
        joined.await.flatten().unwrap_or(false)
    }

    /// Purges all responses whose names (URLs) begin with a prefix, or makes them stale; returns whether the store
    /// recorded that.
    pub(crate) async fn purge(&self, prefix: Bytes, is_soft: bool) -> bool {
        debug_assert!(prefix.len() <= LONGEST_PREFIX, "the record has no room for it");
        if self.is_none {
            return true;
        }
        let purged = self.call_in_turn(move |store| {
            (0..PURGE_ATTEMPTS).any(|_| add_purge(store, &prefix, is_soft).unwrap_or(false))
        });
        purged.await.unwrap_or(false)
    }

    /// Purges all responses in the given groups, or makes them stale; returns whether the store recorded that.
    pub(crate) async fn purge_groups(&self, groups: Vec<Group>, is_soft: bool) -> bool {
        if self.is_none {
            return true;
        }
        let purged = self.call_in_turn(move |store| groups::purge(store, &groups, is_soft));
        purged.await.flatten().unwrap_or(false)
    }

    /// Makes all stored responses of a URL stale, except those in transit, which are not stored. Returns whether there
    /// was an entry; `None` if the store fails.
    pub(crate) async fn expire(&self, name: &Bytes) -> Option<bool> {
        let (reader, name, bare) = (self.reader.clone(), name.clone(), Arc::clone(&self.bare));
        let expired = self.call_in_turn(move |store| {
            (0..PURGE_ATTEMPTS).find_map(|_| expire_entry(store, &reader, &bare, &name))
        });
        expired.await?
    }

    /// Writes the entry of a URL if no other process has written it since it was read; returns whether it was written.
    pub(crate) async fn write(&self, read: &Read, entry: &Entry) -> bool {
        let Some(writes) = Writes::of(read, entry, self.largest_body()) else { return false };
        let is_due = self.refresh.is_due_after(writes.bytes());
        let (bare, hash) = (Arc::clone(&self.bare), xxh3_128(&entry.name));
        let (is_bare, is_known) = (entry.is_empty(), entry.outcome.is_some());
        let written = self.call(move |store| {
            refresh_purges(store, is_due);
            let is_written = writes.write(store);
            match writes.into_own() {
                Some(value) if is_written && is_bare => bare.keep(store, hash, value, is_known),
                Some(_) if is_written => bare.forget(hash),
                _ => {}
            }
            is_written
        });
        written.await.unwrap_or(false)
    }

    /// Takes note that a request to the origin is over, after which the URL's entry may have no response, and nobody
    /// waits for one.
    pub(crate) async fn settle(&self, name: &Bytes) {
        let (bare, hash) = (Arc::clone(&self.bare), xxh3_128(name));
        if bare.is_on_its_way(hash) {
            self.call(move |store| bare.settle(store, hash)).await;
        }
    }

    /// Claims the right to request a response from the origin, among the processes that share the store. The outcome
    /// does not matter if no other process could have it.
    pub(crate) async fn try_claim(&self, name: &Bytes) -> TriedClaim {
        let (cache, key) = (self.cache.clone(), key(name));
        let tried = self.call(move |_store| cache.try_claim(key, None)).await;
        tried.and_then(Result::ok).unwrap_or(TriedClaim::Unneeded)
    }

    /// Invalidates all stored responses of a URL, including those in transit. Returns whether there was an entry;
    /// `None` if the store fails.
    pub(crate) async fn invalidate(&self, name: &Bytes) -> Option<bool> {
        let (name, hash, bare) = (name.clone(), xxh3_128(name), Arc::clone(&self.bare));
        let written = self.call_in_turn(move |store| {
            let key = hash_key(hash);
            if matches!(store.contains(&key), Ok(false)) {
                return Some(false);
            }
            let stamp = read_purges(store).flatten().map(|purges| purges.stamp());
            let empty = format::encode(&Entry::empty(name, stamp.unwrap_or_default()));
            let options = SetOptions::set().with_ttl(LIFE_OF_EMPTY);
            let write = |value: Vec<u8>| {
                let is_written = store.set(&key, &value, &options).is_ok();
                if is_written {
                    bare.keep(store, hash, value, true);
                }
                is_written
            };
            // A store that is full still deletes.
            let is_done = empty.is_some_and(write) || store.delete(&key).is_ok();
            is_done.then_some(true)
        });
        written.await?
    }

    /// Whether the store's server really has what was written to it, such as a purge. An unreachable server seems
    /// empty, and seems to accept every write. Therefore the record of purges, with its version, is read from the
    /// server itself, after what it missed was deleted.
    pub(crate) async fn has_taken_note(&self) -> bool {
        self.is_none || self.call(begin_purges).await.flatten().is_some()
    }

    /// Reads the `No-Vary-Search` rule (which query parameters matter) of a URL's path from the store, as text; `None`
    /// if none is known.
    pub(crate) async fn search_rule(&self, path: &Bytes) -> Option<Vec<u8>> {
        let key = search_key(path);
        let read = self.call(move |store| {
            let mut value = Vec::new();
            store.get_into(key.as_bytes(), &mut value).ok()?.map(|_| value)
        });
        read.await?
    }

    /// Stores the `No-Vary-Search` rule (which query parameters matter) of a URL's path for all processes; an empty
    /// rule means none.
    pub(crate) async fn set_search_rule(&self, path: &Bytes, text: String) {
        let key = search_key(path);
        let options = SetOptions::set().with_ttl(Ttl::Never);
        let written =
            self.call(move |store| store.set(key.as_bytes(), text.as_bytes(), &options).is_ok());
        written.await;
    }

    /// Reads a chunk of a stored response body by its index; `None` if it is not stored.
    pub(crate) async fn chunk(&self, chunks: Chunks, index: u64) -> Option<Bytes> {
        let expected = chunks.length_of(index)?;
        let (lender, key) = (self.reader.lender.clone(), chunk_key(chunks.id, index));
        let value = self.call(move |_store| lender.get(key.as_bytes())).await?.ok()??;
        (value.len() == expected).then_some(value)
    }

    /// Writes a chunk of a response body to the store; returns whether it was written.
    pub(crate) async fn write_chunk(&self, id: u128, index: u64, chunk: Bytes) -> bool {
        let key = chunk_key(id, index);
        let is_due = self.refresh.is_due_after(chunk.len());
        let written = self.call(move |store| {
            refresh_purges(store, is_due);
            store.set(key.as_bytes(), &chunk, &SetOptions::set())
        });
        matches!(written.await, Some(Ok(written)) if written.is_stored())
    }

    /// Reads the bytes of a stored response body from a position to the end of that chunk; `None` if they are not
    /// stored.
    pub(crate) async fn piece(&self, body: &StoredBody, at: u64) -> Option<Bytes> {
        let place = body.chunk_of(at)?;
        let chunk = self.chunk(place.chunks, place.index).await?;
        Some(chunk.slice(place.skipped..))
    }

    /// Whether all chunks with a range of a response body's bytes are stored.
    pub(crate) async fn has_all(&self, body: &StoredBody, range: Range<u64>) -> bool {
        let body = body.clone();
        let all = self.call(move |store| {
            let mut at = range.start;
            while at < range.end {
                let place = body.chunk_of(at)?;
                let key = chunk_key(place.chunks.id, place.index);
                store.contains(key.as_bytes()).ok()?.then_some(())?;
                at += place.left;
            }
            Some(())
        });
        all.await.flatten().is_some()
    }

    /// Removes the first `number` chunks of a response body, to which no entry refers any more.
    pub(crate) async fn remove_chunks(&self, id: u128, number: u64) {
        let removed = self.call(move |store| {
            for index in 0..number {
                let _ = store.delete(chunk_key(id, index).as_bytes());
            }
        });
        removed.await;
    }
}

impl Read {
    /// Returns the outcome of the last request for the URL, if no other request can use its response.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.entry.as_deref()?.outcome
    }

    /// Returns the entry with the fact recorded that a variant has answered a request other than its own; `None` if the
    /// entry states that already.
    pub(crate) fn with_use(&self, response: &StoredResponse) -> Option<Entry> {
        let entry = self.entry.as_deref().filter(|entry| !entry.variants.is_empty())?;
        let name = entry.variants.stored_name(&entry.name, response.head.variant.as_ref()?);
        entry.variants.is_unused(&name).then(|| {
            let mut noted: Entry = entry.clone();
            noted.variants.note_use(&name);
            noted
        })
    }

    /// Returns the place of a request that is sent now; `None` if there is no entry.
    fn begun(&self) -> Option<Begun> {
        let generation = self.entry.as_ref()?.generation;
        Some(Begun { generation, number: self.stamp?.number })
    }
}

impl Chunks {
    fn length_of(self, index: u64) -> Option<usize> {
        let left = self.bytes.checked_sub(index.checked_mul(CHUNK_BYTES as u64)?)?;
        usize::try_from(left.min(CHUNK_BYTES as u64)).ok()
    }
}

/// Returns the index of the chunk that has a byte of a response body, and the byte's position in the chunk.
pub(crate) fn chunk_of(at: u64) -> (u64, usize) {
    let place = usize::try_from(at % CHUNK_BYTES as u64).expect("less than a chunk");
    (at / CHUNK_BYTES as u64, place)
}

/// Returns the condition under which what was read of this version may be replaced. Without versions,
/// the last of two writers at the same time wins.
fn replacing(version: Option<Version>) -> SetOptions {
    version.map_or(SetOptions::set(), SetOptions::cas)
}

/// Returns the condition under which nobody has changed what was read so.
fn unchanged(hit: Option<Hit>) -> SetOptions {
    hit.map_or(SetOptions::add(), |hit| replacing(hit.version))
}

/// Reads an entry, as far as these purges leave it; `None` if the store fails.
fn read_entry(
    store: &dyn Store,
    reader: &Reader,
    name: &Bytes,
    purges: Option<&Purges>,
) -> Option<Read> {
    let stamp = purges.map(Purges::stamp);
    let Some((entry, hit)) = reader.entry(name).ok()? else {
        return Some(Read {
            entry: None,
            level: 0,
            condition: SetOptions::add(),
            stamp,
            found: Vec::new(),
        });
    };
    let (level, condition) = (hit.level, replacing(hit.version));
    let none = Read { entry: None, level, condition, stamp, found: Vec::new() };
    let Some(purges) = purges else { return Some(none) };
    let Some(mut entry) = entry.map(Box::new).filter(|entry| purges.permit(name, entry.stamp))
    else {
        return Some(none);
    };
    groups::heed(store, purges, &mut entry)?;
    for response in &mut entry.responses {
        response.has_expired |= purges.has_expired(name, response.number);
    }
    Some(Read { entry: Some(entry), ..none })
}

/// Reads variants, as far as the target's own entry and these purges leave them; `None` if the store fails.
fn read_variants(
    store: &dyn Store,
    reader: &Reader,
    mut read: Read,
    names: Vec<(Bytes, Variant)>,
    purges: Option<&Purges>,
) -> Option<Read> {
    let Some(entry) = &mut read.entry else { return Some(read) };
    for (name, asked) in names {
        let Some((variant, hit)) = reader.entry(&name).ok()? else { continue };
        let condition = replacing(hit.version);
        read.found.push(FoundVariant { name, condition });
        let Some(variant) = variant else { continue };
        let has_expired = entry.variants.expired.contains(&variant.generation);
        if variant.generation != entry.generation && !has_expired {
            continue;
        }
        read.level = read.level.max(hit.level);
        entry.responses.extend(variant.responses.into_iter().map(|response| {
            let has_expired = response.has_expired || has_expired;
            // It may have been stored for another set of codings.
            let head = Stored { variant: Some(asked.clone()), ..response.head };
            StoredResponse { head, has_expired, ..response }
        }));
    }
    entry.responses.sort_by_key(|response| Reverse(response.head.received));
    entry.responses.truncate(entry::MOST_RESPONSES);
    if let Some(purges) = purges {
        groups::heed(store, purges, entry)?;
        for response in &mut entry.responses {
            response.has_expired |= purges.has_expired(&entry.name, response.number);
        }
    } else {
        entry.responses.clear();
    }
    Some(read)
}

/// Marks the responses of an entry as stale; returns whether there is one. `None` if the store fails, or
/// somebody else changes it at the same time.
fn expire_entry(store: &dyn Store, reader: &Reader, bare: &Bare, name: &Bytes) -> Option<bool> {
    let read = read_entry(store, reader, name, read_purges(store)?.as_ref())?;
    let Some(mut entry) = read.entry else { return Some(false) };
    // What is on its way may be what it was before.
    entry.variants.expire(entry.generation);
    entry.generation = rand::random();
    for response in &mut entry.responses {
        response.has_expired = true;
    }
    let (value, options) = encoded(&entry, read.condition)?;
    let hash = xxh3_128(name);
    let written = store.set(&hash_key(hash), &value, &options).ok()?;
    if !written.is_stored() {
        return None;
    }
    if entry.is_empty() {
        bare.keep(store, hash, value, true);
    }
    Some(true)
}

/// Returns the bytes of an entry, and how they are written; `None` if they are too long.
fn encoded(entry: &Entry, condition: SetOptions) -> Option<(Vec<u8>, SetOptions)> {
    let value = format::encode(entry).filter(|value| value.len() <= CHUNK_BYTES)?;
    let is_empty = entry.is_empty();
    Some((value, if is_empty { condition.with_ttl(LIFE_OF_EMPTY) } else { condition }))
}

/// Returns the key of a name: its hash, for nothing may be stored of a request before its response has come.
fn key(name: &[u8]) -> Key {
    hash_key(xxh3_128(name))
}

/// Returns the key of a name that has this hash.
fn hash_key(hash: u128) -> Key {
    let mut key = [0; KEY_BYTES];
    let (begin, digits) = key.split_at_mut(KEY_BEGIN.len());
    begin.copy_from_slice(KEY_BEGIN);
    digits.copy_from_slice(&hex(hash));
    key
}

fn search_key(path: &[u8]) -> String {
    let mut key = String::with_capacity(48);
    key.push_str("http-search/");
    push_hex(&mut key, xxh3_128(path));
    key
}

fn chunk_key(id: u128, index: u64) -> String {
    let mut key = String::with_capacity(64);
    key.push_str("http-body/");
    push_hex(&mut key, id);
    let _ = write!(key, "/{index}");
    key
}

fn push_hex(text: &mut String, number: u128) {
    text.extend(hex(number).map(char::from));
}

/// Returns 32 digits, without a formatter: each request makes a key.
fn hex(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(number.to_be_bytes()) {
        // Without a table, so that the compiler makes all digits at once.
        let digit = |half: u8| half + if half < 10 { b'0' } else { b'a' - 10 };
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    digits
}

#[cfg(test)]
mod tests {
    use haypile::Written;

    use super::*;

    pub(super) fn cache() -> Cache {
        Cache::open("memory:size=1MiB").expect("it has room")
    }

    /// Writes an entry, by the hash of its name.
    pub(super) fn write(cache: &Cache, hash: u128, value: &[u8]) {
        let written = cache.store().set(&hash_key(hash), value, &SetOptions::set());
        assert!(written.is_ok_and(Written::is_stored));
    }

    /// Whether the cache has an entry, by the hash of its name.
    pub(super) fn has(cache: &Cache, hash: u128) -> bool {
        cache.store().contains(&hash_key(hash)).expect("memory does not fail")
    }

    #[test]
    fn keys_have_all_digits() {
        for number in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
            let mut text = String::new();
            push_hex(&mut text, number);
            assert_eq!(text, format!("{number:032x}"));
            assert_eq!(hash_key(number), format!("http/{number:032x}").as_bytes());
        }
        assert_eq!(chunk_key(10, 7), format!("http-body/{:032x}/7", 10));
    }
}
