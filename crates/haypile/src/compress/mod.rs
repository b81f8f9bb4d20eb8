//! The option `compress=`: values that are kept compressed where that helps.
//!
//! A [`CompressedStore`] wraps any store. It compresses a value before it calls that store and
//! decompresses it afterwards, so that no lock of the store is held in the meantime. A value stays
//! as it is if it is shorter than a threshold, or if compressing it would save less than an eighth,
//! because each read would then pay for it. Therefore counters, which are short, work as they do
//! without compression.
//!
//! # Stored form
//!
//! A value that is not compressed is stored unchanged. A compressed one starts with a marker of
//! four bytes, `F9 68 70 F9`, which is neither UTF-8 nor the start of a well-known format, and
//! continues with:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the method: 1 LZ4 (block format), 2 Zstandard (one frame) |
//! | 1 to 10 | the length of the value, LEB128 |
//! | 4 | the low half of the value's XXH3 of 64 bits, little endian |
//! | the rest | the compressed data |
//!
//! A value that itself starts with the marker is stored behind the marker and method 0.
//!
//! Reads decode every method, whatever the value of `compress=`, and values that were written
//! without it. So the option can be changed, or added to a shared cache that has entries. If it is
//! removed again, readers see compressed bytes; clear the cache then.
//!
//! # Damaged values
//!
//! A compressed value is a miss if it cannot be decompressed, or if its length or checksum does not
//! match the stored one; [`Stats::corrupt`](crate::Stats::corrupt) counts it, and its entry is
//! deleted. If the store has versions, only this version is deleted
//! ([`delete_version`](Store::delete_version)), so that a newer value of another writer stays; a
//! store that has versions but not this operation keeps the damaged entry.
//!
//! A value that is stored unchanged has no checksum, as without compression. Before memory is
//! allocated for a stated length, it is checked against the store's limit on values and the best
//! ratio of the method.

mod codec;
mod format;
mod spec;
mod store;

use std::sync::Arc;

use crate::store::Store;
use crate::url::ResolvedLevel;

pub(crate) use codec::Method;
pub use spec::{Compression, CompressionError};
pub use store::CompressedStore;

/// Wraps a store so that it compresses values, if the URL's options or the store itself ask for it.
pub(crate) fn wrap(
    level: &ResolvedLevel,
    made_with: Option<Compression>,
    store: Arc<dyn Store>,
) -> Arc<dyn Store> {
    let compression = level.compression("compress").or(made_with);
    let Some(compression) = compression else { return store };
    let min_bytes = level.size("compress_min").unwrap_or(CompressedStore::DEFAULT_MIN_BYTES);
    Arc::new(CompressedStore::new(store, compression, min_bytes))
}
