//! Errors of a cache in use.

use std::error::Error as StdError;

/// The length of the longest key that any store accepts, 65,535 bytes.
pub(crate) const MAX_KEY_BYTES: usize = 65_535;

/// The result of an operation on a cache: a value or an error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of an operation on a cache. A miss is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key is longer than the store accepts. Nothing has changed.
    #[error(
        "a key of {key_bytes} bytes is too long: {store} takes at most {limit_bytes}; use a \
         shorter key, for example a hash of this one"
    )]
    KeyTooLong {
        /// The length of the key in bytes.
        key_bytes: usize,
        /// The length of the longest key that the store accepts, in bytes.
        limit_bytes: usize,
        /// The canonical URL of the store.
        store: String,
    },
    /// The value is larger than the store accepts. The old value, if there is one, stays.
    #[error(
        "a value of {value_bytes} bytes is too large: under this key {store} takes at most \
         {limit_bytes}; the old value stays; make the cache larger or split the value"
    )]
    ValueTooLarge {
        /// The length of the value in bytes.
        value_bytes: u64,
        /// The length of the longest value that the store accepts under this key, in bytes.
        limit_bytes: u64,
        /// The canonical URL of the store.
        store: String,
    },
    /// The value is compressed by a method that this build is without. It stays.
    #[error(
        "a value in {store} is compressed with {feature}, and this program was built without \
         haypile's feature '{feature}'; build it with this feature"
    )]
    MissingFeature {
        /// The feature that supports the method.
        feature: &'static str,
        /// The canonical URL of the store.
        store: String,
    },
    /// An allocation failed for a value that the store would accept. The old value, if there is
    /// one, stays.
    #[error(
        "there is no memory for {bytes} bytes that {store} would take; the old value stays; make \
         the cache smaller or split the value"
    )]
    OutOfMemory {
        /// The size of the allocation in bytes: the value, and the key if the store keeps them
        /// together.
        bytes: usize,
        /// The canonical URL of the store.
        store: String,
    },
    /// The store, or its protocol, does not have this operation.
    #[error("{store} cannot do this: {operation}; use another kind of cache for it")]
    Unsupported {
        /// The operation, as the trait [`Store`](crate::Store) names it.
        operation: &'static str,
        /// The canonical URL of the store.
        store: String,
    },
    /// The operation `incr` or `decr` found a value that is not a counter. The value stays.
    #[error(
        "{operation} needs a value of 1 to 20 decimal digits up to 18446744073709551615, and the \
         value under this key in {store} is something else; set it to a number first"
    )]
    NotACounter {
        /// The operation: `incr` or `decr`.
        operation: &'static str,
        /// The canonical URL of the store.
        store: String,
    },
    /// The TTL is zero. Nothing has changed.
    #[error(
        "a TTL of zero is refused, because caches disagree on what it means: give no TTL for an \
         entry that never expires, or delete the entry"
    )]
    ZeroTtl,
    /// The store cannot have the requested size. The current size stays.
    #[error(
        "{store} cannot be made {size_bytes} bytes large; it has to be from {min_bytes} to \
         {max_bytes}"
    )]
    SizeOutOfRange {
        /// The requested size, in bytes.
        size_bytes: u64,
        /// The smallest allowed size, in bytes.
        min_bytes: u64,
        /// The largest allowed size, in bytes.
        max_bytes: u64,
        /// The canonical URL of the store.
        store: String,
    },
    /// The store is busy: another process, which is alive, holds a part that this operation needs,
    /// and does not continue. Nothing has changed.
    #[error("{}", busy(store, *process))]
    Busy {
        /// The canonical URL of the store.
        store: String,
        /// The process id of the holder, if it was seen to be stopped or frozen.
        process: Option<u64>,
    },
    /// The store is full: there is no room, because everything that could be evicted is in use. The
    /// old value stays.
    #[error(
        "{store} cannot make room: every entry that it could evict is being read or written; the \
         old value stays; try again, or make the cache larger"
    )]
    Full {
        /// The canonical URL of the store.
        store: String,
    },
    /// The store was closed.
    #[error("{store} was closed; open it again")]
    Closed {
        /// The canonical URL of the store.
        store: String,
    },
    /// A computation asked the cache for the key that it computes.
    #[error(
        "the computation of a value asked the cache for the same key, and would wait for itself \
         forever; do not call get_or_compute for a key from within its own computation"
    )]
    RecursiveCompute,
    /// The server or file under the store failed.
    #[error("{store} failed to {operation}: {source}")]
    Backend {
        /// The operation, as the trait [`Store`](crate::Store) names it.
        operation: &'static str,
        /// The canonical URL of the store.
        store: String,
        /// The error of the server, the file or the client library.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The groups are too many, or one has a name that is too long or empty. Nothing has changed.
    #[error(
        "an entry in {store} cannot have {groups} groups, one of them with a name of \
         {group_bytes} bytes; name at most 64, each with a name of 1 to 250 bytes"
    )]
    Group {
        /// The number of groups.
        groups: usize,
        /// The length in bytes of a group's name that is too long or empty, or else of the longest
        /// name.
        group_bytes: usize,
        /// The canonical URL of the store.
        store: String,
    },
}

fn busy(store: &str, process: Option<u64>) -> String {
    match process {
        Some(process) => format!(
            "process {process}, which uses {store}, was stopped and holds a part of it; nothing \
             has changed; continue or end that process, and try again"
        ),
        None => format!(
            "{store} is busy: another process makes room in it, or lacks a processor; nothing has \
             changed; try again"
        ),
    }
}
