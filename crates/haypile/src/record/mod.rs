//! `record=PATH`: a cache's own operations as a trace, which `haypile simulate` and `haypile
//! advise` read.
//!
//! A [`RecordingStore`] stands around a store, does what it does, and writes down each read, write,
//! deletion and touch, with its key, the size of its value, its TTL and its time. Never a value.
//! `contains`, iteration and the statistics are no use of an entry and are not recorded, nor is an
//! operation that failed, but for a write that is too large for the store: a larger one would take
//! it.
//!
//! # Files
//!
//! Each process writes a file of its own, `PATH.PID`. If there is one of that name already, from an
//! earlier process of the same number or another cache in this one, it stays as it is, and the
//! file is `PATH.PID.2`, or the next number that is free. Readers merge the files by time. The
//! bytes are described in `docs/format-recording.md`; [`format`](mod@format) writes and reads them.
//! A file is created with mode 0600, whatever the umask allows.
//!
//! Operations are collected in buffers, one per thread or a few, and written in checksummed blocks
//! of some 64 KiB. A buffer is written when it is full, with [`flush`](crate::Store::flush) and
//! [`close`](crate::Store::close), when the store is dropped, and some two seconds after its first
//! operation by whoever records next: there is no thread that would do it. So a process that is
//! killed loses what it did in the last seconds before, and what an idle one did last is in its
//! file only when it goes on or ends. The files are not synced.
//!
//! A process that was **forked** begins a file of its own, and does not write what its parent did.
//! It finds out that it is another process at latest after 64 operations of a thread, and those
//! before are lost. As for any lock, it must not be forked while another thread is in the cache.
//!
//! Recording an operation took some 110 ns of processor time in a first measurement, 40 of them for
//! reading the clock, with keys of 36 bytes of which most were new to their block
//! (`examples/record_cost.rs`).
//!
//! # When the disk fails
//!
//! Recording never fails an operation. It ends when the file has reached
//! [`max_bytes`](RecordOptions::max_bytes), when it cannot be written, or when it was removed;
//! [`RecordingStore::state`] says so, and what is in the file stays readable. A thread waits for
//! the system to take a block of 64 KiB, as for any write to a file; only what shares its buffer, or
//! has a full one itself, waits with it. A limit of the process on the size of files
//! (`RLIMIT_FSIZE`) ends a process that does not ignore `SIGXFSZ`.
//!
//! # Hashed keys
//!
//! With `record_keys=hash` the file has XXH3-64 of each key, without a secret, and the key's
//! length. The same key has the same hash in all processes and at all times, so that files can be
//! merged and compared. That hides keys from a glance, and not from an attack: whoever can guess a
//! key can test whether it is there, and how often each key is used stays visible.

mod file;
pub mod format;
mod open;
mod recorder;
mod store;

use std::path::PathBuf;

pub use store::RecordingStore;

pub(crate) use open::wrap;

/// What a process records at most by default: 1 GiB.
pub const DEFAULT_MAX_BYTES: u64 = 1 << 30;

/// The least that `record_max=` can be: 1 MiB.
pub const MIN_MAX_BYTES: u64 = 1 << 20;

/// The most that `record_max=` can be: 1 PiB.
pub const MAX_MAX_BYTES: u64 = 1 << 50;

/// What is recorded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordOptions {
    /// The beginning of the names of the files. A relative path counts from the current directory
    /// at the time of opening.
    pub path: PathBuf,
    /// The bound on a file; [`DEFAULT_MAX_BYTES`] by default. A file never grows beyond it.
    pub max_bytes: u64,
    /// Whether keys are hashed; false by default.
    pub hash_keys: bool,
}

impl RecordOptions {
    /// Records to `path` with the defaults.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), max_bytes: DEFAULT_MAX_BYTES, hash_keys: false }
    }

    /// Another bound on a file.
    #[must_use]
    pub fn max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
    }

    /// Hashes keys, or does not.
    #[must_use]
    pub fn hash_keys(self, hash_keys: bool) -> Self {
        Self { hash_keys, ..self }
    }
}

/// How a recording stands.
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
        /// What the system said.
        error: String,
    },
}
