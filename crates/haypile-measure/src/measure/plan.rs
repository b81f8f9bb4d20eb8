//! The plan of a measurement.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::expected::Expected;
use super::program::Runner;
use tempfile::TempDir;

use crate::job::JobError;
use crate::result::{Parameters, ResultsError, Sample};
use crate::subject::SubjectSpec;

/// A function that writes the job of a case into a directory, and returns the expected results.
pub type WriteJob = Box<dyn Fn(&Path) -> Result<Expected, JobError>>;

/// A function that chooses the next case of an experiment to measure, given all samples so far;
/// `None` ends the choice.
pub type NextCase = Box<dyn Fn(&[Sample]) -> Option<Case>>;

/// The plan of one run of an experiment: its cases, its contenders (caches with the programs that
/// run them) and their limits.
pub struct Plan {
    /// The cases of the experiment to measure, in this order.
    pub cases: Vec<Case>,
    /// A function that chooses further cases by the samples so far; `None` for no further cases.
    pub then: Option<NextCase>,
    /// The contenders (caches, with the programs that run them) that do each case.
    pub contenders: Vec<Contender>,
    /// The number of blocks (rounds): how many times each contender does each case.
    pub blocks: u64,
    /// The seed of the random order of the contenders within each block (round).
    pub seed: u64,
    /// The number of untimed executions before each measurement, on a separate cache, for jobs that
    /// allow a warm-up.
    pub warm_up: u64,
    /// The time limits of the programs that run the contenders.
    pub limits: RunnerLimits,
    /// The preparation and inspection of the contenders' working directories before and after each
    /// sample; `None` if files do not matter.
    pub surroundings: Option<Box<dyn Surroundings>>,
    /// Whether a runner that does several jobs in one process is kept for a block, instead of being
    /// started for each sample. Then each block has all cases. Ignored if `then` chooses cases.
    pub keeps_runners: bool,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("cases", &self.cases)
            .field("contenders", &self.contenders)
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}

/// The preparation and inspection of a runner's working directory, before and after each sample is
/// measured.
pub trait Surroundings: fmt::Debug {
    /// Makes the place for a sample: the working directory of its processes.
    ///
    /// # Errors
    ///
    /// What the system said. It makes the sample an error.
    fn before(&self, case: &Case, contender: &Contender) -> io::Result<PathBuf>;

    /// Looks at what was left there: further counts of the sample by name.
    ///
    /// # Errors
    ///
    /// The text of the error that the remains show. It makes the sample an error.
    fn after(&self, case: &Case, contender: &Contender) -> Result<Vec<(String, u64)>, String>;

    /// Makes the working directory of a runner that does the jobs of several samples in one
    /// process, apart from those of [`before`](Self::before).
    ///
    /// # Errors
    ///
    /// What the system said. It makes the sample for which the runner was to start an error.
    fn kept(&self) -> io::Result<TempDir>;
}

impl Plan {
    /// Returns the number of samples that the plan's cases need, without cases that are chosen
    /// later by results.
    pub fn samples(&self) -> u64 {
        let contenders = |case: &Case| self.contenders_of(case).count() as u64;
        self.blocks * self.cases.iter().map(contenders).sum::<u64>()
    }

    /// Returns the numbers of the contenders (caches) that measure a case: all but those that the
    /// case skips.
    pub(super) fn contenders_of(&self, case: &Case) -> impl Iterator<Item = usize> {
        (0..self.contenders.len()).filter(|&contender| self.measures(contender, case))
    }

    /// Whether a contender (cache) measures a case.
    pub(super) fn measures(&self, contender: usize, case: &Case) -> bool {
        !case.skips.contains(&self.contenders[contender].subject.cache_name())
    }

    /// Whether there is a runner that is kept for a block.
    pub(super) fn keeps_a_runner(&self) -> bool {
        self.keeps_runners
            && self.then.is_none()
            && self.contenders.iter().any(|contender| contender.runner.several_jobs)
    }
}

/// A case of an experiment: one job (keys, values and operations) that all contenders (caches) do.
pub struct Case {
    /// The name of the experiment that the case belongs to.
    pub experiment: &'static str,
    /// The name of the case within its experiment.
    pub name: String,
    /// The parameters that distinguish the case from others of its experiment, such as a number of
    /// threads.
    pub parameters: Parameters,
    /// The number of processes of the case's job, from 1 to
    /// [`MAX_PROCESSES`](crate::job::MAX_PROCESSES): they do it at the same time, on one cache.
    pub processes: u32,
    /// The names of the caches that skip the case, such as `none` in a case that expects hits.
    pub skips: &'static [&'static str],
    /// A function that writes the case's job (keys, values and operations) into a directory; called
    /// before the case is measured: once, or once for each block where runners are kept.
    pub write: WriteJob,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

/// A contender in a measurement: a subject (cache under test) and the program that runs it.
#[derive(Clone, Debug)]
pub struct Contender {
    /// The contender's subject: the name of a cache, with its options.
    pub subject: SubjectSpec,
    /// The program (runner) that runs the contender's cache and measures it.
    pub runner: Arc<Runner>,
}

/// The time limits of a runner (the program that runs a cache).
#[derive(Clone, Copy, Debug)]
pub struct RunnerLimits {
    /// Time limit from the start of a runner until it is ready.
    pub prepare: Duration,
    /// Time limit of a runner from the start signal (`go`) to its results.
    pub timed: Duration,
}

impl Default for RunnerLimits {
    /// Ten minutes each.
    fn default() -> Self {
        let limit = Duration::from_mins(10);
        Self { prepare: limit, timed: limit }
    }
}

/// An observer of a measurement's progress, such as a display, which can end the measurement early.
pub trait Watcher: Sync {
    /// This number of further steps is done.
    fn advance(&self, steps: u64);

    /// Whether to stop. Asked many times per second.
    fn is_interrupted(&self) -> bool;
}

/// A function that stores a finished sample, such as by writing it to a file.
pub type KeepSample<'a> = dyn FnMut(Sample) -> Result<(), ResultsError> + 'a;

/// The error that ended a measurement before it was complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The directory for jobs cannot be used.
    #[error(
        "no directory for the files of measurements can be created; set TMPDIR to one that can be \
         written: {0}"
    )]
    Directory(#[source] io::Error),
    /// A job cannot be written.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The results cannot be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A runner reports that it cannot run, as one does whose cache is not installed.
    #[error("{program}: {why}")]
    Refused {
        /// The program.
        program: String,
        /// The reason.
        why: String,
    },
    /// A program does not answer as a runner.
    #[error("{program} is not a runner, a program that measures caches for haypile: {wrong}")]
    NoRunner {
        /// The program.
        program: String,
        /// The wrong answer.
        wrong: String,
    },
}
