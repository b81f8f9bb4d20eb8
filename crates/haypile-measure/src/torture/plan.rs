//! The plan of a torture.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::controls;
use crate::measure::Runner;
use crate::subject::SubjectSpec;

/// The name of torture in results.
pub const NAME: &str = "torture";

/// A cache, and the program that runs it.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// The cache.
    pub subject: SubjectSpec,
    /// The program.
    pub runner: Arc<Runner>,
    /// The version of the cache.
    pub version: String,
    /// The language that it is used from.
    pub language: String,
}

/// A case of the torture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TortureCase {
    /// `keep`: writers are killed one by one while the cache has room for all entries.
    Keep,
    /// `evict`: writers are killed one by one while the cache is full.
    Evict,
    /// `stop`: a writer is stopped for a while.
    Stop,
    /// `all`: all processes are killed at once.
    All,
    /// `compute`: a process is killed that computes a value for others.
    Compute,
    /// `invalidate`: entries are removed while others compute them, and both are killed.
    Invalidate,
}

impl TortureCase {
    /// All cases, in their order.
    pub const ALL: [Self; 6] =
        [Self::Keep, Self::Evict, Self::Stop, Self::All, Self::Compute, Self::Invalidate];

    /// Returns the name of the case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Evict => "evict",
            Self::Stop => "stop",
            Self::All => "all",
            Self::Compute => "compute",
            Self::Invalidate => "invalidate",
        }
    }
}

impl fmt::Display for TortureCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TortureCase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|case| case.name() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("unknown case '{text}' (known: {known})")
        })
    }
}

/// The extent of a torture.
#[derive(Clone, Debug)]
pub struct TorturePlan {
    /// The cases.
    pub cases: Vec<TortureCase>,
    /// The seed of everything random, except the instants of kills, which differ between runs.
    pub seed: u64,
    /// The size of the caches in bytes.
    pub capacity_bytes: u64,
    /// The number of writers at a time, at least 2. The first one is never killed alone.
    pub writers: u64,
    /// The number of readers.
    pub readers: u64,
    /// Kills in each of the cases keep, evict and invalidate.
    pub kills: u64,
    /// The longest run of a writer that is killed.
    pub longest_run: Duration,
    /// The number of times that a writer is stopped.
    pub stops: u64,
    /// Time for which a writer is stopped.
    pub stop: Duration,
    /// The number of times that all processes are killed at once.
    pub kill_all_rounds: u64,
    /// The number of times that a process is killed while it computes.
    pub takeovers: u64,
    /// The distance by which the hit ratio may be below those of the controls, beyond the
    /// difference between these; `None` for any.
    pub tolerance: Option<f64>,
    /// The number of containers that processes are in, in turn, each with a boot id of its own; 0: all see that of the
    /// system. Runners are told by the variable `HAYPILE_BOOT_ID`.
    pub boots: u64,
    /// Whether clients of the case `invalidate` protect what they compute by the leases of the cache.
    pub leases: bool,
    /// The longest time for which a process may be silent.
    pub timeout: Duration,
    /// The directory of the caches.
    pub directory: PathBuf,
}

impl TorturePlan {
    /// Returns the number of runs of a case without kills.
    pub(super) fn controls(&self, case: TortureCase) -> u64 {
        match case {
            TortureCase::Evict if self.tolerance.is_some() => controls::COMPARED,
            TortureCase::Keep | TortureCase::Evict | TortureCase::Invalidate => 1,
            TortureCase::Stop | TortureCase::All | TortureCase::Compute => 0,
        }
    }

    /// Returns the number of steps for each cache, of which [`Watcher::advance`](crate::measure::Watcher::advance) is
    /// told.
    pub fn steps(&self) -> u64 {
        let steps = self.cases.iter().map(|case| match case {
            TortureCase::Keep | TortureCase::Evict | TortureCase::Invalidate => {
                (1 + self.controls(*case)) * self.kills
            }
            TortureCase::Stop => self.stops,
            TortureCase::All => self.kill_all_rounds,
            TortureCase::Compute => self.takeovers,
        });
        steps.sum()
    }
}

/// The outcome of a torture, in addition to its samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TortureOutcome {
    /// The subjects that do not support a case, each with that case.
    pub unsupported: Vec<(SubjectSpec, TortureCase)>,
    /// Whether the torture was finished.
    pub is_complete: bool,
}
