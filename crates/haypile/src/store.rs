//! The trait that every cache implements.

use std::fmt;
use std::time::Duration;

use crate::compress::Compression;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::lease::Lease;
use crate::pinned::Pinned;
use crate::stats::{LevelStats, Stats};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, Written};
use crate::writers::Writers;

/// The default of the time that a caller waits for another caller that computes the same value.
pub(crate) const DEFAULT_COMPUTE_WAIT: Duration = Duration::from_secs(30);

/// The number of times that [`Store::compare_and_delete`] compares again after the same value was
/// rewritten between its two steps.
pub(crate) const COMPARE_ATTEMPTS: u32 = 10_000;

/// A store of cache entries: values of bytes under keys of bytes.
///
/// The trait is synchronous and object-safe; programs hold a [`Cache`](crate::Cache) around an
/// `Arc<dyn Store>`. In addition to the errors that a method names, each can return
/// [`Error::KeyTooLong`], [`Error::Closed`] and [`Error::Backend`].
///
/// A cache may forget: a written entry can be evicted at once, or never be retained because the
/// policy prefers others. A cache never returns an expired entry, a part of a value, or a value
/// that was overwritten or deleted before the call. A store that cannot keep the last of these
/// promises, such as a cache of several levels with bounded staleness or with write-back, documents
/// that, and for how long it may be broken.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the canonical URL of this store, with its defaults written out. It is shown in
    /// messages, so it contains no password: see [`Level::redacted`](crate::url::Level::redacted).
    fn url(&self) -> CacheUrl;

    /// Returns [`url`](Self::url) as text, for messages.
    fn describe(&self) -> String {
        self.url().to_string()
    }

    /// Returns the store's limits.
    fn limits(&self) -> Limits;

    /// Returns the compression of this store's values if it was fixed when the store was created:
    /// the [`Registry`](crate::Registry) then applies it for everyone that opens the store. `None`
    /// leaves it to the URL.
    fn compression(&self) -> Option<Compression> {
        None
    }

    /// Replaces the content of `buffer` by the value of `key` and returns the hit, or leaves
    /// `buffer` empty. Its allocation is reused.
    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>>;

    /// Reads a value like [`get_into`](Self::get_into), for callers that need the version: a store
    /// for which the version takes more work, such as one of several levels, does that work only
    /// here.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] even if [`get_into`](Self::get_into) could return the value, when its
    /// version is unavailable.
    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.get_into(key, buffer)
    }

    /// Reads a value like [`get_versioned_into`](Self::get_versioned_into), but copies nothing if the entry still has
    /// this version: the hit has it, and `buffer` is empty. A caller that keeps what it made of a value so learns that
    /// it is still true, at the cost of a lookup, however long the value is. It counts as a hit. A server that restarts
    /// may give a version again: do not keep one of a server for long.
    ///
    /// # Errors
    ///
    /// Those of [`get_versioned_into`](Self::get_versioned_into).
    fn get_if_changed_into(
        &self,
        key: &[u8],
        version: Version,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        let hit = self.get_versioned_into(key, buffer)?;
        if hit.is_some_and(|hit| hit.version == Some(version)) {
            buffer.clear();
        }
        Ok(hit)
    }

    /// Returns the value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut buffer = Vec::new();
        Ok(self.get_into(key, &mut buffer)?.map(|_| buffer))
    }

    /// Returns the value of `key` behind a guard. If the store can, it keeps the value in place,
    /// uncopied, until the guard is dropped, even if the entry is overwritten or deleted in the
    /// meantime; otherwise it copies the value. The guard belongs to the process that read the
    /// value: a forked child copies the value while its parent still has the guard, because the
    /// bytes can change afterwards.
    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        let mut buffer = Vec::new();
        Ok(self.get_into(key, &mut buffer)?.map(|hit| Pinned::copied(buffer, hit)))
    }

    /// Returns the value of `key` behind a guard, for a caller that keeps many values for long, such
    /// as the pictures on a screen: a store that processes share keeps short values in place as well,
    /// where [`get_pinned`](Self::get_pinned) copies them because that is faster. Values of one segment
    /// of a file share one lock; a process locks at most an eighth of the segments, all processes together a
    /// quarter, and one without an owner slot (`mode=ro`) none: values of others are copied. While it keeps
    /// them, the cache cannot use the rest of these segments again.
    fn get_in_place(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.get_pinned(key)
    }

    /// Returns a value like [`get_in_place`](Self::get_in_place), and compares the checksum of a value of a file when
    /// this process first reads it in place; of a copy, each time. A value that is not what was written is a miss. It
    /// costs a pass over the value: some 0.1 ns per byte.
    fn get_in_place_verified(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.get_in_place(key)
    }

    /// Writes a value under the condition in `options`.
    ///
    /// # Errors
    ///
    /// [`Error::ValueTooLarge`], [`Error::OutOfMemory`] and [`Error::ZeroTtl`]: the old entry
    /// stays.
    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written>;

    /// Writes a value as [`set`](Self::set) does, of an entry that belongs to these groups: each of them is a way to
    /// [`invalidate`](Self::invalidate) it. An entry has at most 64 groups, whose names have 1 to 250 bytes; no groups are none,
    /// whatever groups the entry had before.
    ///
    /// Of a value under a [`Lease`], the groups count as they were when the lease was granted: if one of them was
    /// invalidated since, the write is [`Revoked`](Written::Revoked). [`touch`](Self::touch), [`incr`](Self::incr) and
    /// [`decr`](Self::decr) keep the groups of an entry.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set); [`Error::Group`]; [`Error::Unsupported`] if the store has no groups.
    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        if groups.is_empty() {
            return self.set(key, value, options);
        }
        Err(Error::Unsupported { operation: "groups", store: self.describe() })
    }

    /// Invalidates a group: from now on no reader of any process gets an entry that was written into it before, nor one
    /// that was computed from what was read before. It takes the same time for one entry as for a million, and needs no
    /// list of them: they are misses, count as expired, and leave the store when it needs their room; until then
    /// [`len`](Self::len) counts them.
    ///
    /// Groups are told apart by a hash: now and then, an invalidation makes entries of another group a miss as well.
    ///
    /// # Errors
    ///
    /// [`Error::Group`] for a name that no group can have; [`Error::Unsupported`] if the store has no groups.
    fn invalidate(&self, group: &[u8]) -> Result<()> {
        let _ = group;
        Err(Error::Unsupported { operation: "groups", store: self.describe() })
    }

    /// Prepares a write of exactly `value_bytes`. It is invisible until [`Reservation::commit`],
    /// which checks the condition in `options` and starts the TTL; dropping a reservation changes
    /// nothing.
    ///
    /// # Errors
    ///
    /// Those of [`set`](Self::set).
    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>>;

    /// Grants a lease on `key`, which a [`set`](Self::set) under [`WriteMode::Leased`](crate::WriteMode::Leased) needs.
    /// It is neither a use to the policy nor a hit or miss in the statistics, and changes nothing: any number of callers may
    /// have one. Whoever stores first revokes the leases of the others.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store cannot tell whether a key has changed.
    fn lease(&self, key: &[u8]) -> Result<Lease> {
        let _ = key;
        Err(Error::Unsupported { operation: "lease", store: self.describe() })
    }

    /// Returns whether a write under this lease would be accepted now, of an entry in these groups. By default, a store that has
    /// leases does not tell, and the answer is yes.
    ///
    /// # Errors
    ///
    /// Those of [`lease`](Self::lease).
    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        let _ = (lease, groups);
        self.lease(key).map(|_| true)
    }

    /// Deletes an entry; returns whether there was one.
    fn delete(&self, key: &[u8]) -> Result<bool>;

    /// Deletes an entry only if it still has this version, atomically; returns whether it did. A
    /// value that was written after the version was read stays.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store cannot compare and delete atomically. The entry stays.
    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let _ = (key, version);
        Err(Error::Unsupported { operation: "delete_version", store: self.describe() })
    }

    /// Deletes an entry only if its value is `expected`, atomically; returns whether it did. Any other
    /// value stays, even one that is written during the call. Each store compares values as its
    /// readers see them, for example after decompression.
    ///
    /// By default, [`delete_version`](Self::delete_version) deletes the value that was read and found
    /// equal.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has neither versions nor such an operation of its own;
    /// [`Error::Busy`] if others rewrite the same value again and again during the call. The entry
    /// stays.
    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        const OPERATION: &str = "compare_and_delete";
        let mut value = Vec::new();
        for _ in 0..COMPARE_ATTEMPTS {
            let Some(hit) = self.get_versioned_into(key, &mut value)? else { return Ok(false) };
            if value != expected {
                return Ok(false);
            }
            let version = hit.version.ok_or_else(|| Error::Unsupported {
                operation: OPERATION,
                store: self.describe(),
            })?;
            if self.delete_version(key, version)? {
                return Ok(true);
            }
            // It was written since, perhaps with an equal value.
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    /// Sets a new TTL for an entry, counted from now; returns whether there was one. Its value and
    /// version stay. Whether that counts as a use is up to the store.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroTtl`].
    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool>;

    /// Adds to a counter, which is decimal ASCII as in memcached, and wraps around at 2^64. The TTL
    /// stays. Returns `None` if there is no entry, and creates none.
    ///
    /// # Errors
    ///
    /// [`Error::NotACounter`]; [`Error::ValueTooLarge`] if the number with one more digit would be
    /// too large. The old value stays.
    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>>;

    /// Subtracts from a counter and stops at zero; otherwise like [`incr`](Self::incr).
    ///
    /// # Errors
    ///
    /// [`Error::NotACounter`].
    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>>;

    /// Whether there is an entry under `key`. The check is neither a use to the policy nor a hit or
    /// miss in the statistics, if the protocol can tell.
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// Returns the values of `keys` with their properties, in order. The first error ends the call.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let get = |key: &&[u8]| {
            let mut buffer = Vec::new();
            Ok(self.get_into(key, &mut buffer)?.map(|hit| (buffer, hit)))
        };
        keys.iter().map(get).collect()
    }

    /// Writes values, each under its key and its own options, in order. The writes are independent:
    /// if one fails, the others are still done. The results are those of [`set`](Self::set), one
    /// per entry and in the same order.
    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        entries.iter().map(|(key, value, options)| self.set(key, value, options)).collect()
    }

    /// Deletes entries; returns for each key whether there was one. The deletions are independent,
    /// as in [`set_many`](Self::set_many).
    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        keys.iter().map(|key| self.delete(key)).collect()
    }

    /// Deletes every entry.
    fn clear(&self) -> Result<()>;

    /// Returns some keys, and where to go on. No lock is held between two calls.
    ///
    /// A key that is present from the first page to the last occurs at least once; one that is
    /// written or removed in the meantime may occur or not. A page visits about `limit` positions,
    /// at least one, so it may be empty and still not be the last.
    fn keys(&self, from: Cursor, limit: usize) -> Result<Page>;

    /// Returns the number of entries. It may include entries that have expired but are not removed
    /// yet.
    fn len(&self) -> Result<u64>;

    /// Whether [`len`](Self::len) is zero.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns the bytes that the entries occupy: keys, values and metadata.
    fn bytes(&self) -> Result<u64>;

    /// Returns the counts since the store was opened. It still answers after
    /// [`close`](Self::close).
    fn stats(&self) -> Result<Stats>;

    /// Returns the counts of each level of this store, the fastest first. A store of one level
    /// returns its own.
    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        Ok(vec![LevelStats::new(self.url(), self.stats()?)])
    }

    /// Returns problems that failed no operation, one text each, for people: a snapshot that could not
    /// be read, a server that does not answer, a `size=` that an existing file ignores. Those that are
    /// over may stay in it.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns who, other than this process, can have written what the store returns; nobody where it is empty.
    /// By default, anyone.
    fn writers(&self) -> Vec<Writers> {
        vec![Writers::Anyone { store: self.describe() }]
    }

    /// Returns when everything accepted before the call has reached `durability`.
    fn flush(&self, durability: Durability) -> Result<()>;

    /// Claims a key for a computation, so that one of all processes that share the store computes.
    /// It does not wait. If another process has the claim, it is returned; the next call may
    /// `take_over` that claim, if that process has held it for too long. [`Cache`](crate::Cache)
    /// calls this; a store that belongs to one process needs no claims.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`].
    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        let _ = (key, take_over);
        Ok(Claim::Unneeded)
    }

    /// Waits until another process has released the claim on a key, at most for this long. It may
    /// return earlier.
    fn await_claim(&self, key: &[u8], holder: ClaimHolder, at_most: Duration) {
        let _ = (key, holder);
        std::thread::sleep(at_most);
    }

    /// Returns the time that a caller of [`Cache::get_or_compute`](crate::Cache::get_or_compute)
    /// waits for another that computes the same key, before it computes itself.
    fn compute_wait(&self) -> Duration {
        DEFAULT_COMPUTE_WAIT
    }

    /// Changes the size of the store while it is in use. Entries that no longer fit are evicted
    /// before this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no such operation; [`Error::SizeOutOfRange`] for a
    /// size that it cannot have.
    fn resize(&self, size_bytes: u64) -> Result<()> {
        let _ = size_bytes;
        Err(Error::Unsupported { operation: "resize", store: self.describe() })
    }

    /// Closes the store for everybody who holds it: from then on each operation returns
    /// [`Error::Closed`], except for [`stats`](Self::stats), [`describe`](Self::describe) and
    /// [`limits`](Self::limits). Closing twice is not an error.
    fn close(&self) -> Result<()>;
}

/// The outcome of asking for the exclusive right, among processes that share a store, to compute a
/// key's value: the right, the process that has it, or that it is not needed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Claim<'a> {
    /// No claim is needed: no other process could compute for this store.
    Unneeded,
    /// The caller has the claim: no other process computes the key until the guard is dropped.
    Held {
        /// The guard that releases the claim when it is dropped. The end of the process does so,
        /// too.
        guard: Box<dyn fmt::Debug + Send + 'a>,
    },
    /// Another process has the claim, and computes the value.
    Taken(ClaimHolder),
}

/// The process that holds the right to compute a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimHolder {
    /// The number that identifies the process that holds the right to compute; only its store knows
    /// the meaning.
    pub id: u64,
    /// Whether the process that holds the right to compute was seen to be stopped or frozen from
    /// outside.
    pub is_halted: bool,
    /// The number of claims (rights to compute) on this key, or on this and other keys, that had
    /// been released before. If another process has the claim later, and this number is the same,
    /// that process has taken the claim over.
    pub released: u64,
}

impl ClaimHolder {
    /// Returns the process that holds the right to compute a key's value, by its id and whether it
    /// is stopped; no such right was released before.
    pub fn new(id: u64, is_halted: bool) -> Self {
        Self { id, is_halted, released: 0 }
    }

    /// Sets the number of claims (rights to compute a key's value) that were released before.
    #[must_use]
    pub fn with_released(self, released: u64) -> Self {
        Self { released, ..self }
    }
}

/// The limits of a store on keys, values and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The length of the longest key that the store accepts, in bytes, at most
    /// [`MAX_KEY_BYTES`](Self::MAX_KEY_BYTES).
    pub max_key_bytes: usize,
    /// The length of the longest value that the store accepts under an empty key, in bytes. A
    /// longer key may leave less room.
    pub max_value_bytes: u64,
    /// The bound on the size of the whole store, in the unit of [`Store::bytes`]; `None` if there
    /// is none or it is unknown.
    pub capacity_bytes: Option<u64>,
}

impl Limits {
    /// The length of the longest key of any store, in bytes.
    pub const MAX_KEY_BYTES: usize = MAX_KEY_BYTES;

    /// Returns the limits of a store on the lengths of keys and values, and the bound on its size,
    /// all in bytes.
    pub fn new(max_key_bytes: usize, max_value_bytes: u64, capacity_bytes: Option<u64>) -> Self {
        Self { max_key_bytes, max_value_bytes, capacity_bytes }
    }
}

/// The properties of an entry that a read has found: version, remaining life, level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The version of the entry, for [`WriteMode::Cas`](crate::WriteMode::Cas). `None` if the
    /// protocol has no versions, or the caller did not [ask](Store::get_versioned_into) for it;
    /// `memory://` always returns one.
    pub version: Option<Version>,
    /// The remaining time to live of the entry that was found. `None` if it never expires, or if
    /// the protocol does not report it.
    pub expires_in: Option<Duration>,
    /// The level of the cache that had the entry, counted from zero at the fastest: of `A -> B`, 0
    /// is A. A store of one level always returns zero.
    pub level: u8,
    /// Whether the found entry is in groups, whose [invalidation](Store::invalidate) makes the
    /// entry a miss.
    pub has_groups: bool,
}

impl Hit {
    /// Returns the properties of an entry that was found in the first level of a cache.
    pub fn new(version: Option<Version>, expires_in: Option<Duration>) -> Self {
        Self { version, expires_in, level: 0, has_groups: false }
    }

    /// Returns this hit (the properties of an entry), marked as that of an entry that is in groups
    /// or not.
    #[must_use]
    pub fn with_groups(self, has_groups: bool) -> Self {
        Self { has_groups, ..self }
    }

    /// Returns this hit as seen from one level of the cache above: with a level number higher by
    /// one.
    pub(crate) fn below(self) -> Self {
        Self { level: self.level.saturating_add(1), ..self }
    }
}

/// The result of a read: a copy of the value and the properties of its entry (version, time to
/// live, level); `None` for a miss.
pub type Found = Option<(Vec<u8>, Hit)>;

/// The guarantee of a flush: that all processes see the writes before it, or that these also
/// survive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Every process that uses the cache sees the writes.
    Visible,
    /// The writes survive a loss of power.
    Disk,
}

/// A position in an iteration over keys; the default is the start. Only the store that returned it
/// understands it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(u128);

impl Cursor {
    /// Returns a cursor of an iteration over keys: a position in one of the store's servers or
    /// parts, which are numbered from zero.
    pub fn new(server: u64, position: u64) -> Self {
        Self(u128::from(server) << 64 | u128::from(position))
    }

    /// Returns the number of the store's server or part that the cursor of an iteration over keys
    /// is in.
    pub fn server(self) -> u64 {
        u64::try_from(self.0 >> 64).expect("the shift leaves 64 bits")
    }

    /// Returns the position of the cursor of an iteration over keys within its server or part of
    /// the store.
    pub fn position(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX)).expect("the mask leaves 64 bits")
    }

    /// Restores a cursor of an iteration over keys from the number that [`raw`](Self::raw)
    /// returned.
    pub fn from_raw(raw: u128) -> Self {
        Self(raw)
    }

    /// Returns the cursor of an iteration over keys as a number, for bindings that cannot hold a
    /// cursor.
    pub fn raw(self) -> u128 {
        self.0
    }
}

/// One page of keys, in an iteration over all keys of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The keys of this page of a store's keys, in no particular order.
    pub keys: Vec<Vec<u8>>,
    /// The cursor of the next page of keys; `None` at the end.
    pub next: Option<Cursor>,
}

impl Page {
    /// Returns one page of an iteration over a store's keys: these keys, and the cursor of the next
    /// page.
    pub fn new(keys: Vec<Vec<u8>>, next: Option<Cursor>) -> Self {
        Self { keys, next }
    }
}

/// Allocates an empty vector with a capacity of exactly `bytes` bytes, or returns an out-of-memory
/// error of the store. A vector that grows by itself would abort the process when memory is
/// exhausted.
pub(crate) fn allocate(store: &dyn Store, bytes: usize) -> Result<Vec<u8>> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(bytes) {
        Ok(()) => Ok(vector),
        Err(_) => Err(Error::OutOfMemory { bytes, store: store.describe() }),
    }
}

/// Returns an error if a key is longer than a store's limit, in bytes.
pub(crate) fn check_key(store: &dyn Store, key: &[u8], limit_bytes: usize) -> Result<()> {
    if key.len() <= limit_bytes {
        return Ok(());
    }
    Err(Error::KeyTooLong { key_bytes: key.len(), limit_bytes, store: store.describe() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoneStore;

    #[test]
    fn a_cursor_has_room_for_a_server_and_64_bits() {
        let cursor = Cursor::new(7, u64::MAX);
        assert_eq!((cursor.server(), cursor.position()), (7, u64::MAX));
        assert_eq!(Cursor::from_raw(cursor.raw()), cursor);
        assert_eq!(Cursor::new(0, 0), Cursor::default());
    }

    #[test]
    fn memory_that_is_not_there_is_an_error_that_names_the_size() {
        // The first exceeds the address space, the second the maximum of a vector.
        for bytes in [isize::MAX.unsigned_abs(), usize::MAX] {
            let error = allocate(&NoneStore::new(), bytes).unwrap_err().to_string();
            assert!(error.contains(&format!("{bytes} bytes that none:// would take")), "{error}");
        }
        let vector = allocate(&NoneStore::new(), 1_000).unwrap();
        assert_eq!((vector.len(), vector.capacity()), (0, 1_000));
    }
}
