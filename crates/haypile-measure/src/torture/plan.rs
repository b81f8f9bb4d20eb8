//! The plan of a torture.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::controls;
use crate::measure::Runner;
use crate::subject::SubjectSpec;

/// The name of the experiment `torture` in results.
pub const NAME: &str = "torture";

/// A cache that is tortured, and the program that runs it.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// The subject: the name of the cache.
    pub subject: SubjectSpec,
    /// The program that runs the cache.
    pub runner: Arc<Runner>,
    /// The version of the cache.
    pub version: String,
    /// The language that the cache is used from.
    pub language: String,
}

/// A case of the experiment `torture`, such as killing writers.
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
    /// All cases of `torture`, in their order.
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

/// The plan of a torture: its cases, and how many processes and kills they have.
#[derive(Clone, Debug)]
pub struct TorturePlan {
    /// The cases of the torture.
    pub cases: Vec<TortureCase>,
    /// The seed of all random choices, except the times of kills, which differ between runs.
    pub seed: u64,
    /// The size of the caches in bytes.
    pub capacity_bytes: u64,
    /// The number of concurrent writers, at least 2. The first one is never killed alone.
    pub writers: u64,
    /// The number of readers.
    pub readers: u64,
    /// The number of kills in each of the cases keep, evict and invalidate.
    pub kills: u64,
    /// The longest time that a writer runs before it is killed.
    pub longest_run: Duration,
    /// The number of times that a writer is stopped.
    pub stops: u64,
    /// The time for which a writer is stopped (SIGSTOP).
    pub stop: Duration,
    /// The number of times that all processes are killed at once.
    pub kill_all_rounds: u64,
    /// The number of times that a process is killed while it computes.
    pub takeovers: u64,
    /// The allowed difference of the hit ratio below those of the control runs, beyond the range of
    /// these; `None` for any.
    pub tolerance: Option<f64>,
    /// The number of simulated containers that processes are in, in turn, each with its own boot id
    /// (set by the variable `HAYPILE_BOOT_ID`); 0: all processes see the system's.
    pub boots: u64,
    /// Whether clients of the case `invalidate` write computed values under a lease of the cache.
    pub leases: bool,
    /// The longest time for which a process may print nothing.
    pub timeout: Duration,
    /// The directory of the caches.
    pub directory: PathBuf,
}

impl TorturePlan {
    /// Returns the number of control runs (without kills) of a case.
    pub(super) fn controls(&self, case: TortureCase) -> u64 {
        match case {
            TortureCase::Evict if self.tolerance.is_some() => controls::COMPARED,
            TortureCase::Keep | TortureCase::Evict | TortureCase::Invalidate => 1,
            TortureCase::Stop | TortureCase::All | TortureCase::Compute => 0,
        }
    }

    /// Returns the number of steps for each cache, as
    /// [`Watcher::advance`](crate::measure::Watcher::advance) counts them.
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
    /// Whether the torture was completed, and not interrupted.
    pub is_complete: bool,
}
