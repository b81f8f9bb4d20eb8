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

/// A cache that is tortured (by kills of its processes), and the program that runs it.
#[derive(Clone, Debug)]
pub struct Contestant {
    /// The name of the cache that is tortured, with its options.
    pub subject: SubjectSpec,
    /// The program that runs the cache's processes.
    pub runner: Arc<Runner>,
    /// The version of the cache that is tortured.
    pub version: String,
    /// The programming language that the cache is used from.
    pub language: String,
}

/// A case of the experiment `torture`, such as `keep`: killing the processes that write to a cache
/// with room for all entries.
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
    /// All cases of the experiment `torture`, in their order.
    pub const ALL: [Self; 6] =
        [Self::Keep, Self::Evict, Self::Stop, Self::All, Self::Compute, Self::Invalidate];

    /// Returns the name of the torture case, such as `keep`.
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

/// The plan of a torture of caches: its cases, and how many processes and kills they have.
#[derive(Clone, Debug)]
pub struct TorturePlan {
    /// The cases of the torture to run, such as `keep` (killed writers while the cache has room).
    pub cases: Vec<TortureCase>,
    /// The seed of all random choices of the torture, except the times of kills, which differ
    /// between runs.
    pub seed: u64,
    /// The size of each tortured cache in bytes.
    pub capacity_bytes: u64,
    /// The number of concurrent writer processes, at least 2. The first one is never killed alone.
    pub writers: u64,
    /// The number of concurrent reader processes.
    pub readers: u64,
    /// The number of processes that are killed in each of the cases keep, evict and invalidate.
    pub kills: u64,
    /// The longest time that a writer process runs before it is killed.
    pub longest_run: Duration,
    /// The number of times that a writer process is stopped (SIGSTOP), in the case `stop`.
    pub stops: u64,
    /// The time for which a writer process is stopped (SIGSTOP), in the case `stop`.
    pub stop: Duration,
    /// The number of times that all processes are killed at once, in the case `all`.
    pub kill_all_rounds: u64,
    /// The number of times that a process is killed while it computes a value, in the case
    /// `compute`.
    pub takeovers: u64,
    /// The allowed distance, as a part of 1, of the hit ratio with kills below the control runs
    /// without kills, beyond the range of these; `None` for any.
    pub tolerance: Option<f64>,
    /// The number of simulated containers, over which processes are distributed in turn, each with
    /// its own boot id (set by the variable `HAYPILE_BOOT_ID`); 0: all processes see the system's.
    pub boots: u64,
    /// Whether client processes of the case `invalidate` write computed values under a lease of the
    /// cache.
    pub leases: bool,
    /// The longest time for which a process may print nothing before it counts as hung.
    pub timeout: Duration,
    /// The directory in which the tortured caches are created.
    pub directory: PathBuf,
}

impl TorturePlan {
    /// Returns the number of control runs (without kills) of a torture case.
    pub(super) fn controls(&self, case: TortureCase) -> u64 {
        match case {
            TortureCase::Evict if self.tolerance.is_some() => controls::COMPARED,
            TortureCase::Keep | TortureCase::Evict | TortureCase::Invalidate => 1,
            TortureCase::Stop | TortureCase::All | TortureCase::Compute => 0,
        }
    }

    /// Returns the number of steps of the torture for each cache, as
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

/// The outcome of a torture of caches, in addition to its samples.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TortureOutcome {
    /// The caches that do not support a torture case, each with that case.
    pub unsupported: Vec<(SubjectSpec, TortureCase)>,
    /// Whether the torture was completed, and not interrupted.
    pub is_complete: bool,
}
