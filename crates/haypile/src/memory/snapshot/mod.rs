//! Snapshots: the entries of a cache in a file, the most used first.
//!
//! `docs/format-snapshot.md` describes every byte of the format. A [`SnapshotWriter`] takes entries
//! from the most used to the least, and makes the file appear completely or not at all. A
//! [`SnapshotReader`] finds how many of them fit, from the most used on, and returns those from the
//! least used to the most: a cache that inserts them in this order keeps the most used longest.
//!
//! Neither depends on a store.
//!
//! ```
//! use std::time::SystemTime;
//! use haypile::memory::snapshot::{EntryRef, ReadOptions, SnapshotReader, SnapshotWriter, WriteOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("cache.snapshot");
//! let now = SystemTime::now();
//! let mut writer = SnapshotWriter::create(&path, WriteOptions::new(now, "memory://"))?;
//! for (key, uses) in [("often", 3), ("once", 1)] {
//!     let entry =
//!         EntryRef { key: key.as_bytes(), value: b"value", marks: &[], expires: None, written: now, uses };
//!     writer.push(entry)?;
//! }
//! writer.finish()?;
//!
//! let charge = |key_bytes, value_bytes| key_bytes + value_bytes;
//! let options = ReadOptions { now, max_bytes: 12, charge, allow_shared: false };
//! let mut reader = SnapshotReader::open(&path, options)?;
//! assert_eq!(reader.next_entry()?.map(|entry| entry.key), Some(b"often".as_slice()));
//! assert_eq!(reader.next_entry()?, None);
//! # Ok(())
//! # }
//! ```

mod error;
mod format;
mod outline;
mod read;
mod target;
mod write;

use std::time::SystemTime;

pub use error::{Damage, SnapshotError};
pub use read::{ReadOptions, SnapshotReader};
pub use write::{Pushed, SnapshotWriter, WriteOptions, WriteSummary};

/// An entry of a snapshot, which borrows its key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The key of the entry: at most 65,535 bytes.
    pub key: &'a [u8],
    /// The value of the entry as the cache stores it, which may be compressed.
    pub value: &'a [u8],
    /// The encoded hashes of the groups that the entry is in (marks), in whole words; empty if it
    /// is in none.
    pub marks: &'a [u8],
    /// The time of day at which the entry expires, to the nanosecond; `None` means never. Times
    /// after the year 2554 are stored as that year.
    pub expires: Option<SystemTime>,
    /// The time at which the entry was written to the cache, to the second. It cannot be later than
    /// the snapshot.
    pub written: SystemTime,
    /// The number of hits that restore the entry's rank in the eviction policy:
    /// [`Ranked::uses`](haypile_policy::Ranked::uses).
    pub uses: u8,
}
