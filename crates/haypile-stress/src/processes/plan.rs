//! The settings of a test, which the driver hands to each process.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The number of counters that all writers increment, and of keys that all change by
/// compare-and-swap.
pub(super) const SHARED_KEYS: u64 = 4;
/// The number of keys that all writers try to add (one succeeds), and of keys whose value all
/// compute.
pub(super) const ELECTIONS: u64 = 16;

/// The environment variable with which a process gets the test's settings, as JSON.
pub(super) const PLAN_VARIABLE: &str = "HAYPILE_STRESS_PLAN";

/// The settings of a stress test with many processes on one cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// URL of the cache under test; `{dir}` stands for the directory of the test.
    pub(crate) url: String,
    /// The test's directory, which contains the record of writes; the driver sets it.
    pub(crate) directory: PathBuf,
    pub(crate) seed: u64,
    /// The time after which the processes of the test end.
    pub(crate) time: Duration,
    /// The number of operations of all writing processes after which all end; `None` for no limit.
    pub(crate) steps: Option<u64>,
    /// The number of processes that write and read the cache.
    pub(crate) writers: u64,
    /// The number of processes that only read the cache.
    pub(crate) readers: u64,
    /// The number of threads of each process.
    pub(crate) threads: u64,
    /// The number of keys that each writing thread alone writes.
    pub(crate) keys: u64,
    pub(crate) least_value_bytes: u64,
    pub(crate) most_value_bytes: u64,
    /// The number of values that each thread keeps pinned (read in place) in the cache.
    pub(crate) pins: usize,
    /// The largest total size of live entries in bytes, up to which no entry may be missing; `None`
    /// if entries may be evicted.
    pub(crate) live_bytes: Option<u64>,
    /// The number of processes to kill, at times spread over the test.
    pub(crate) kills: u64,
    pub(crate) stops: u64,
    pub(crate) longest_stop: Duration,
    /// The kinds of operations to perform in the test; all if empty.
    pub(crate) operations: Vec<OperationKind>,
    pub(crate) denies_busy: bool,
    pub(crate) denies_full: bool,
}

/// A kind of operation that a test can be limited to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OperationKind {
    /// Writes: plain, many at once, reserved, compared.
    Set,
    /// Deletions, also of a version.
    Delete,
    /// New times to live.
    Touch,
    /// Reads of keys of all writers, one and many at once.
    Get,
    /// Values that are kept in place.
    Pin,
    /// Increments of counters of all.
    Count,
    /// Compare-and-swap on keys of all.
    Cas,
    /// Additions of keys that all want to add.
    Add,
    /// Computations of values that all want to compute.
    Compute,
    /// `len`, `bytes`, `stats` and iteration over keys.
    Census,
}

impl Plan {
    /// Returns the number of writing threads in all processes.
    pub(super) fn writing_threads(&self) -> u64 {
        self.writers * self.threads
    }

    /// Returns the number of keys that have one writing thread each.
    pub(super) fn owned_keys(&self) -> u64 {
        self.writing_threads() * self.keys
    }

    pub(super) fn processes(&self) -> u64 {
        self.writers + self.readers
    }

    /// Whether the test requires that no entry is missing from the cache.
    pub(super) fn keeps_all(&self) -> bool {
        self.live_bytes.is_some()
    }

    /// Whether one computation of a key's value serves all processes: if the last level is a file,
    /// in which processes claim keys.
    pub(super) fn computes_once(&self) -> bool {
        self.writers < 2 || self.url.split('+').any(|level| level.starts_with("file:"))
    }

    pub(super) fn does(&self, kind: OperationKind) -> bool {
        self.operations.is_empty() || self.operations.contains(&kind)
    }

    /// Returns the number of bytes of live entries that each writing thread may have in the cache;
    /// `None` for no limit.
    pub(super) fn budget_bytes(&self) -> Option<u64> {
        let shared_bytes = (2 * SHARED_KEYS + 2 * ELECTIONS) * LARGEST_SHARED_BYTES;
        let live_bytes = self.live_bytes?.saturating_sub(shared_bytes);
        Some(live_bytes / self.writing_threads().max(1))
    }
}

/// At least the bytes of an entry that all writers share.
const LARGEST_SHARED_BYTES: u64 = 320;
