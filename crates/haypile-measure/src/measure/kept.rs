//! Runners that are kept for a block, and do the jobs of its samples one after the other.

use std::path::Path;

use tempfile::TempDir;

use super::child::Failure;
use super::no_place;
use super::plan::{Contender, RunnerLimits, Surroundings};
use super::protocol::{KeptProcess, Ran, Work};

/// The runners of a block's contenders, as far as they are kept. Those that run end when this is
/// dropped.
pub(super) struct KeptRunners(Vec<Option<Kept>>);

/// A runner between two jobs, and its working directory, which is removed after its end.
pub(super) struct Kept {
    process: KeptProcess,
    place: Option<TempDir>,
}

impl KeptRunners {
    /// Creates the list, in which none is started yet.
    pub(super) fn new(contenders: usize) -> Self {
        Self((0..contenders).map(|_| None).collect())
    }

    /// Returns the runner of a contender, by its number.
    pub(super) fn of(&mut self, contender: usize) -> &mut Option<Kept> {
        &mut self.0[contender]
    }
}

/// The runner that does the job of a sample.
pub(super) struct KeptSlot<'a> {
    /// The runner; `None` where it has to be started.
    pub(super) kept: &'a mut Option<Kept>,
    /// Whether it has more to do in this block.
    pub(super) goes_on: bool,
}

impl KeptSlot<'_> {
    /// Does a job, and ends the runner if it was its last one. A runner that fails ends as well, so
    /// that the next job begins with another one.
    pub(super) fn run(
        self,
        contender: &Contender,
        job: &Path,
        (limits, surroundings): (&RunnerLimits, Option<&dyn Surroundings>),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Ran, Failure> {
        let kept = self.kept.take().map_or_else(|| Kept::start(contender, job, surroundings), Ok);
        let mut kept = kept?;
        let ran = kept.process.run(job, self.goes_on, limits, is_interrupted)?;
        if self.goes_on {
            *self.kept = Some(kept);
        } else {
            kept.close()?;
        }
        Ok(ran)
    }
}

impl Kept {
    fn start(
        contender: &Contender,
        job: &Path,
        surroundings: Option<&dyn Surroundings>,
    ) -> Result<Self, Failure> {
        let place = surroundings.map(Surroundings::kept).transpose();
        let place = place.map_err(|error| Failure::Failed(no_place(&error)))?;
        let work = Work { job, place: place.as_ref().map(TempDir::path), processes: 1 };
        Ok(Self { process: KeptProcess::start(contender, work)?, place })
    }

    /// Removes the working directory of a runner that has ended.
    fn close(self) -> Result<(), Failure> {
        let closed = self.place.map_or(Ok(()), TempDir::close);
        closed.map_err(|error| Failure::Failed(no_place(&error)))
    }
}
