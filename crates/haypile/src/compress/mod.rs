//! `compress=`: values that are kept compressed where that helps.
//!
//! A [`CompressedStore`] stands before any store. It compresses a value before that store sees it
//! and decompresses it after: no lock of the store is held meanwhile. A value stays as it is if it
//! is shorter than a threshold, or if compressing it would save less than an eighth, because then
//! each read would pay for it. So counters, which are short, work as they do without compression.
//!
//! # What is stored
//!
//! A value that is not compressed is stored as it is. One that is starts with a marker of four
//! bytes, `F9 68 70 F9`, which is neither UTF-8 nor the start of a well-known format, and then has:
//!
//! | bytes | what |
//! |---|---|
//! | 1 | the method: 1 LZ4 (block format), 2 Zstandard (one frame) |
//! | 1 to 10 | the length of the value, LEB128 |
//! | 4 | the low half of the value's XXH3 of 64 bits, little endian |
//! | the rest | the compressed data |
//!
//! A value that happens to start with the marker is stored behind the marker and method 0.
//!
//! Any method can be read whatever `compress=` says, and so can what was written without it: it can
//! be changed, or added to a shared cache that has entries. Taking it away again shows compressed
//! bytes to the reader; clear the cache then.
//!
//! # Damaged values
//!
//! A compressed value that cannot be decompressed, or whose length or checksum is not the one
//! stated, is a miss; [`Stats::corrupt`](crate::Stats::corrupt) counts it, and the entry is
//! deleted. If the store gives versions, only this version is deleted
//! ([`delete_version`](Store::delete_version)), so that a value that another writer has set since
//! stays; a store that gives versions and cannot do that keeps the damaged entry.
//!
//! What is stored as it is has no checksum, as without compression. A stated length is believed only
//! so far as the store takes values of that length and the method can compress so well, before
//! memory is allocated for it.

mod codec;
mod format;
mod spec;
mod store;

use std::sync::Arc;

use crate::store::Store;
use crate::url::{Level, UrlError};

pub(crate) use codec::Method;
pub use spec::{Compression, CompressionError, MAX_ZSTD_LEVEL};
pub use store::CompressedStore;

/// The length from which values are compressed where `compress_min=` says nothing, in bytes.
/// Shorter ones have little in them that repeats, and the header takes its share.
pub const DEFAULT_MIN_BYTES: u64 = 256;

/// The smallest threshold, in bytes. It is above the length of a counter, which has to stay as it
/// is.
pub const MIN_MIN_BYTES: u64 = 64;

/// Puts compression before the store of a level whose options ask for it, or that was made with it.
pub(crate) fn wrap(
    level: &Level,
    made_with: Option<Compression>,
    store: Arc<dyn Store>,
) -> Result<Arc<dyn Store>, UrlError> {
    let compression = level.compression_option("compress")?.or(made_with);
    let Some(compression) = compression else { return Ok(store) };
    let min_bytes = level.size_option("compress_min")?.unwrap_or(DEFAULT_MIN_BYTES);
    Ok(Arc::new(CompressedStore::new(store, compression, min_bytes)))
}
