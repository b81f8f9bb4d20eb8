//! What every cache can do.

use std::fmt;
use std::time::Duration;

use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::pinned::Pinned;
use crate::stats::{LevelStats, Stats};
use crate::ttl::Ttl;
use crate::write::{Reservation, SetOptions, Version, Written};

/// How long a caller waits for another that computes, where the store says nothing.
pub const DEFAULT_COMPUTE_WAIT: Duration = Duration::from_secs(30);

/// A cache of bytes under keys of bytes.
///
/// The trait is synchronous and object-safe; programs hold a [`Cache`](crate::Cache) around an
/// `Arc<dyn Store>`. Beside the errors that a method names, each can give
/// [`Error::KeyTooLong`], [`Error::Closed`] and [`Error::Backend`].
///
/// A cache may forget: an entry that was written can be evicted at once, or never be retained at
/// all because the policy prefers what it has. It never returns an expired entry, a part of a
/// value, or a value that was overwritten or deleted before the call. A store that cannot keep the
/// last of these promises, a cache of several levels with bounded staleness or one that writes
/// back later, says so in its own documentation, and for how long it may be broken.
pub trait Store: fmt::Debug + Send + Sync {
    /// The canonical URL of this store, with its defaults written out. It is shown in messages, so
    /// that it has no password: see [`Level::redacted`](crate::url::Level::redacted).
    fn describe(&self) -> String;

    /// What the store takes.
    fn limits(&self) -> Limits;

    /// How the values of this store are compressed, where that was decided when it was made: the
    /// [`Registry`](crate::Registry) does it for everyone who opens the store. `None`: it is up to
    /// the URL.
    fn compression(&self) -> Option<Compression> {
        None
    }

    /// Replaces what is in `buffer` by the value of `key`, and says that it hit; or leaves `buffer`
    /// empty. Its allocation is reused.
    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>>;

    /// As [`get_into`](Self::get_into), for who needs the version: a store that would have to look
    /// further for it, as one of several levels, does so only here.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`] also where the value can be had, by [`get_into`](Self::get_into), and its
    /// version cannot.
    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.get_into(key, buffer)
    }

    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut buffer = Vec::new();
        Ok(self.get_into(key, &mut buffer)?.map(|_| buffer))
    }

    /// The value of `key` behind a guard. A store that can keeps it in place, uncopied, until the
    /// guard is dropped, even where the entry is overwritten or deleted meanwhile; any other
    /// copies it. The guard belongs to the process that read the value: a forked child copies the
    /// value while its parent still has the guard, because the bytes can change afterwards.
    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        let mut buffer = Vec::new();
        Ok(self.get_into(key, &mut buffer)?.map(|hit| Pinned::copied(buffer, hit)))
    }

    /// Writes a value under the condition that `options` state.
    ///
    /// # Errors
    ///
    /// [`Error::ValueTooLarge`], [`Error::OutOfMemory`] and [`Error::ZeroTtl`]: the old entry
    /// stays.
    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written>;

    /// Prepares a write of exactly `value_bytes`. Nobody sees anything of it until
    /// [`Reservation::commit`], which judges the condition of `options` and counts the TTL; a
    /// reservation that is dropped changes nothing.
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

    /// Deletes an entry; says whether there was one.
    fn delete(&self, key: &[u8]) -> Result<bool>;

    /// Deletes an entry only if it still has this version, in one step; returns whether it did. A
    /// value that was written since the version was read stays.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the store cannot compare and delete in one step. The entry
    /// stays.
    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let _ = (key, version);
        Err(Error::Unsupported { operation: "delete_version", store: self.describe() })
    }

    /// Gives an entry a new TTL, counted from now; says whether there was one. Its value and its
    /// version stay. Whether it counts as a use is up to the store.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroTtl`].
    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool>;

    /// Adds to a counter, which is decimal ASCII as in memcached, and wraps around at 2^64. The
    /// TTL stays. `None` where there is no entry: none is made.
    ///
    /// # Errors
    ///
    /// [`Error::NotACounter`]; [`Error::ValueTooLarge`] where the number with one digit more would
    /// be too large. The old value stays.
    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>>;

    /// Subtracts from a counter and stops at zero; else as [`incr`](Self::incr).
    ///
    /// # Errors
    ///
    /// [`Error::NotACounter`].
    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>>;

    /// Whether there is an entry. It is neither a use to the policy nor a hit or miss in the
    /// statistics, where the protocol can tell.
    fn contains(&self, key: &[u8]) -> Result<bool>;

    /// The values of `keys` and what the store says of them, in their order. The first error ends
    /// it.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let get = |key: &&[u8]| {
            let mut buffer = Vec::new();
            Ok(self.get_into(key, &mut buffer)?.map(|hit| (buffer, hit)))
        };
        keys.iter().map(get).collect()
    }

    /// Writes values, each under its key and its own options, in their order. Each stands for
    /// itself: where one fails, the others are written all the same. The results are those of
    /// [`set`](Self::set), one per entry and in their order.
    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        entries.iter().map(|(key, value, options)| self.set(key, value, options)).collect()
    }

    /// Deletes entries; says for each key whether there was one. Each stands for itself, as in
    /// [`set_many`](Self::set_many).
    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        keys.iter().map(|key| self.delete(key)).collect()
    }

    /// Deletes every entry.
    fn clear(&self) -> Result<()>;

    /// Some keys, and where to go on. No lock is held between two calls.
    ///
    /// A key that is there from the first page to the last comes at least once; one that is
    /// written or leaves meanwhile may come or not. About `limit` places are looked at, at least
    /// one, so that a page may have no keys and still not be the last.
    fn keys(&self, from: Cursor, limit: usize) -> Result<Page>;

    /// The number of entries. It may include some that have expired and have not been met since.
    fn len(&self) -> Result<u64>;

    /// Whether [`len`](Self::len) is zero.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// What the entries occupy: bytes of keys, values and metadata.
    fn bytes(&self) -> Result<u64>;

    /// Counts since the store was opened. It still answers after [`close`](Self::close).
    fn stats(&self) -> Result<Stats>;

    /// The counts of each level that this store is made of, the fastest first. A store of one
    /// level gives its own.
    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        Ok(vec![LevelStats::new(self.describe(), self.stats()?)])
    }

    /// What went wrong without failing an operation, such as a snapshot that could not be read; one
    /// text each, for people.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns when everything accepted before the call has reached `durability`.
    fn flush(&self, durability: Durability) -> Result<()>;

    /// Claims a key for a computation, so that of all processes that share the store one computes.
    /// It does not wait. Where another process has the claim it says so; the next call may
    /// `take_over` that claim, if that process has had it for too long.
    /// [`Cache`](crate::Cache) calls this; a store that belongs to one process has nothing to do.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`].
    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        let _ = (key, take_over);
        Ok(Claim::Unneeded)
    }

    /// Waits until another process has given back the claim on a key, at most for this long. It may
    /// return earlier.
    fn await_claim(&self, key: &[u8], holder: ClaimHolder, at_most: Duration) {
        let _ = (key, holder);
        std::thread::sleep(at_most);
    }

    /// How long a caller of [`Cache::get_or_compute`](crate::Cache::get_or_compute) waits for
    /// another that computes the same key, before it computes itself.
    fn compute_wait(&self) -> Duration {
        DEFAULT_COMPUTE_WAIT
    }

    /// Makes the store larger or smaller while it is in use. What does not fit any more is evicted
    /// before this returns.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where the store cannot; [`Error::SizeOutOfRange`] for a size that it
    /// cannot have.
    fn resize(&self, size_bytes: u64) -> Result<()> {
        let _ = size_bytes;
        Err(Error::Unsupported { operation: "resize", store: self.describe() })
    }

    /// Ends the use of the store for everybody who holds it: from then on each operation is
    /// [`Error::Closed`], but for [`stats`](Self::stats), [`describe`](Self::describe) and
    /// [`limits`](Self::limits). Closing twice is no error.
    fn close(&self) -> Result<()>;
}

/// The right to compute the value of a key, where processes share a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Claim<'a> {
    /// Nobody else could compute for this store.
    Unneeded,
    /// No other process computes the key until the guard is dropped.
    Held {
        /// Gives the claim back when it is dropped. The end of the process does as well.
        guard: Box<dyn ClaimGuard + 'a>,
    },
    /// Another process computes it.
    Taken(ClaimHolder),
}

/// The process that has a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimHolder {
    /// Tells it from others; what the number is, only its store knows.
    pub id: u64,
    /// Whether it was seen to be stopped or frozen from outside.
    pub is_halted: bool,
    /// Whether the calling thread may wait for it. One that has a claim itself may not: two could
    /// wait for each other.
    pub is_awaitable: bool,
}

impl ClaimHolder {
    /// A holder, as the fields describe it.
    pub fn new(id: u64, is_halted: bool, is_awaitable: bool) -> Self {
        Self { id, is_halted, is_awaitable }
    }
}

/// Holds a [`Claim`] until it is dropped.
pub trait ClaimGuard: fmt::Debug {}

/// What a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest key, at most [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES).
    pub max_key_bytes: usize,
    /// The longest value under an empty key. A longer key can leave less.
    pub max_value_bytes: u64,
    /// The bound on the whole, in the unit of [`Store::bytes`]; `None` where there is none or the
    /// store cannot tell.
    pub capacity_bytes: Option<u64>,
}

impl Limits {
    /// Limits on keys, values and the whole, as the fields describe them.
    pub fn new(max_key_bytes: usize, max_value_bytes: u64, capacity_bytes: Option<u64>) -> Self {
        Self { max_key_bytes, max_value_bytes, capacity_bytes }
    }
}

/// What a store says of an entry that it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// For [`WriteMode::Cas`](crate::WriteMode::Cas). `None` if the protocol has no versions, or
    /// the store was not [asked](Store::get_versioned_into) for it; `memory://` always gives one.
    pub version: Option<Version>,
    /// How long the entry still lives. `None` if it never expires, or if the protocol does not
    /// tell.
    pub expires_in: Option<Duration>,
}

impl Hit {
    /// What is known of an entry, as the fields describe it.
    pub fn new(version: Option<Version>, expires_in: Option<Duration>) -> Self {
        Self { version, expires_in }
    }
}

/// A value and what the store says of it; `None` for a miss.
pub type Found = Option<(Vec<u8>, Hit)>;

/// How far a flush goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Every process that uses the cache sees it.
    Visible,
    /// It survives the loss of power.
    Disk,
}

/// A place in an iteration over keys; the default is the start. Only the store that it comes from
/// can make sense of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor(u128);

impl Cursor {
    /// A place in one of the servers or parts that a store goes through one after the other,
    /// numbered from zero.
    pub fn new(server: u64, position: u64) -> Self {
        Self(u128::from(server) << 64 | u128::from(position))
    }

    /// The number of the server or part.
    pub fn server(self) -> u64 {
        u64::try_from(self.0 >> 64).expect("64 bits are left")
    }

    /// The place in it.
    pub fn position(self) -> u64 {
        u64::try_from(self.0 & u128::from(u64::MAX)).expect("64 bits are left")
    }

    /// The place of a binding that kept [`raw`](Self::raw).
    pub fn from_raw(raw: u128) -> Self {
        Self(raw)
    }

    /// A number to be kept and given back, by bindings that cannot hold a cursor.
    pub fn raw(self) -> u128 {
        self.0
    }
}

/// Some keys of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// Keys, in no particular order.
    pub keys: Vec<Vec<u8>>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

impl Page {
    /// These keys, and where to go on.
    pub fn new(keys: Vec<Vec<u8>>, next: Option<Cursor>) -> Self {
        Self { keys, next }
    }
}

/// An empty vector with room for exactly so many bytes. A vector that grows by itself would end the
/// process where there is no memory.
pub(crate) fn allocate(store: &dyn Store, bytes: usize) -> Result<Vec<u8>> {
    let mut vector = Vec::new();
    match vector.try_reserve_exact(bytes) {
        Ok(()) => Ok(vector),
        Err(_) => Err(Error::OutOfMemory { bytes, store: store.describe() }),
    }
}

/// Refuses a key that is longer than `limits` allow.
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
        // The first is more than an address space has, the second more than a vector may have.
        for bytes in [isize::MAX.unsigned_abs(), usize::MAX] {
            let error = allocate(&NoneStore::new(), bytes).unwrap_err().to_string();
            assert!(error.contains(&format!("{bytes} bytes that none:// would take")), "{error}");
        }
        let vector = allocate(&NoneStore::new(), 1_000).unwrap();
        assert_eq!((vector.len(), vector.capacity()), (0, 1_000));
    }
}
