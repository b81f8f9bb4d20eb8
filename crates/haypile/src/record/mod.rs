//! The option `record=PATH`: a cache's own operations as a trace, which `haypile simulate` and
//! `haypile advise` read.
//!
//! A [`RecordingStore`] wraps a store, forwards each operation, and records reads, writes,
//! deletions and touches with key, value size, TTL and time, but never the value. `contains`,
//! iteration and the statistics do not use an entry and are not recorded, nor are failed
//! operations, except for a write that is too large for the store, because a larger store would
//! accept it. A deletion under a condition (`delete_version`, `compare_and_delete`) is recorded if the
//! condition held.
//!
//! # Files
//!
//! Each process writes a file of its own, `PATH.PID`. If that name is taken, by an earlier process
//! with the same id or another cache in this one, the existing file stays, and the new one is
//! `PATH.PID.2`, or the next free number. Readers merge the files by time.
//! [docs/format-recording.md](https://github.com/haypile/haypile/blob/main/docs/format-recording.md)
//! describes the bytes; `haypile_policy::recording` writes and reads them. A file is created with mode 0600, whatever the umask allows.
//!
//! Operations are collected in buffers, one per thread or a few, and written in checksummed blocks
//! of some 64 KiB. A buffer is written when it is full, with [`flush`](crate::Store::flush) and
//! [`close`](crate::Store::close), when the store is dropped, and some two seconds after its first
//! operation by the next thread that records: there is no background thread. So a process that is
//! killed loses its last seconds, and the last operations of an idle process reach its file only
//! when it continues or ends. The files are not synced.
//!
//! A **forked** process begins a file of its own, and does not write its parent's operations. It
//! detects the fork after at most 64 operations of a thread; those before are lost. As with any
//! lock, a process must not fork while another thread is in the cache: see [`ForkGate`](crate::ForkGate).
//!
//! A first measurement found 110 ns of processor time per recorded operation, 40 of them for
//! reading the clock, with keys of 36 bytes of which most were new to their block
//! (`examples/record_cost.rs`).
//!
//! # When the disk fails
//!
//! Recording never fails an operation. It ends when the file has reached
//! [`max_bytes`](RecordOptions::max_bytes), cannot be written, or was removed;
//! [`RecordingStore::state`] then returns the reason, and the file stays readable up to there. A
//! thread waits while the system accepts a block of 64 KiB, as for any write to a file; only
//! threads that share its buffer, or have a full one themselves, wait with it. A process with a
//! limit on file sizes (`RLIMIT_FSIZE`) is killed at the limit unless it ignores `SIGXFSZ`.
//!
//! # Hashed keys
//!
//! With `record_keys=hash` the file contains the XXH3-64 of each key, without a secret, and the
//! key's length. The same key has the same hash in all processes and at all times, so that files
//! can be merged and compared. That hides keys from a glance, but not from an attack: anyone that
//! can guess a key can test whether it occurs, and the frequency of each key stays visible.

mod file;
mod open;
mod recorder;
mod store;

use std::path::PathBuf;

pub use store::RecordingStore;

pub(crate) use open::wrap;

/// The options of a recording of a store's operations: the file to record to, its size, and what it
/// contains.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordOptions {
    /// The prefix of the names of the files to which operations are recorded. A relative path is
    /// resolved against the current directory when the store is opened.
    pub path: PathBuf,
    /// The size in bytes that a file of recorded operations never exceeds;
    /// [`DEFAULT_MAX_BYTES`](RecordOptions::DEFAULT_MAX_BYTES) by default.
    pub max_bytes: u64,
    /// Whether the recording of operations contains hashes of keys instead of keys; false by
    /// default.
    pub hash_keys: bool,
}

impl RecordOptions {
    /// The default of the option `record_max=`, the bound on a file of recorded operations: 1 GiB.
    pub const DEFAULT_MAX_BYTES: u64 = 1 << 30;

    /// The smallest value of the option `record_max=`, the bound on a file of recorded operations:
    /// 1 MiB.
    pub const MIN_MAX_BYTES: u64 = 1 << 20;

    /// The largest value of the option `record_max=`, the bound on a file of recorded operations: 1
    /// PiB.
    pub const MAX_MAX_BYTES: u64 = 1 << 50;

    /// Returns options that record operations to files whose names begin with `path`, with the
    /// defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), max_bytes: Self::DEFAULT_MAX_BYTES, hash_keys: false }
    }

    /// Sets the bound on the size of a file of recorded operations, in bytes.
    #[must_use]
    pub fn max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// Sets whether the recording of operations contains hashes of keys instead of keys.
    #[must_use]
    pub fn hash_keys(self, hash_keys: bool) -> Self {
        Self { hash_keys, ..self }
    }
}

/// The state of a recording of a store's operations: in progress, ended, or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingState {
    /// Operations are recorded.
    Active,
    /// The cache was closed.
    Closed,
    /// The file has reached its bound.
    Full,
    /// The file could not be written.
    Failed {
        /// The error of the operating system.
        error: String,
    },
}
