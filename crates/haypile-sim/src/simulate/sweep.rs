//! Every contender at every capacity, on as many threads as asked for.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::whole::check_capacities;
use super::{Contender, Options, Outcome, SimulateError, simulate};
use crate::Trace;

/// A sweep: simulations of several policies, each at several cache sizes.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The policies to simulate at each cache size.
    pub contenders: Vec<Contender>,
    /// The cache sizes at which to simulate each policy, in bytes or objects.
    pub capacities: Vec<u64>,
    /// The options that all simulations of the sweep share.
    pub options: Options,
    /// The number of threads that run simulations; at least one is used.
    pub jobs: usize,
}

/// One simulation of a sweep: a policy at a cache size.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Index of the simulated policy in the sweep's list of policies.
    pub contender: usize,
    /// Index of the simulated cache size in the sweep's list of sizes.
    pub capacity: usize,
    /// The outcome of the simulation; `None` if the sweep was interrupted before it ended.
    pub outcome: Option<Outcome>,
}

/// An observer of the progress of simulations that can interrupt them. It is called from several threads.
pub trait Monitor: Sync {
    /// This number of further requests has been simulated. `Break` ends the sweep; what is finished
    /// stays.
    fn advance(&self, requests: u64) -> ControlFlow<()>;
    /// A simulation is finished.
    fn finished(&self, contender: &Contender, capacity: u64, outcome: &Outcome) {
        let _ = (contender, capacity, outcome);
    }
}

/// Nobody watches.
impl Monitor for () {
    fn advance(&self, _requests: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Sweep {
    /// Returns the number of simulations in the sweep.
    pub fn cells(&self) -> usize {
        self.contenders.len() * self.capacities.len()
    }

    /// Runs all simulations of the sweep, and returns them with their outcomes, by cache size and then by policy.
    ///
    /// # Errors
    /// [`SimulateError::SmallSampledCache`] if the trace is a sample that is too small for one of the capacities, and the errors of
    /// [`simulate`].
    pub fn run(&self, trace: &Trace, monitor: &dyn Monitor) -> Result<Vec<Cell>, SimulateError> {
        check_capacities(trace, self)?;
        let next = AtomicUsize::new(0);
        let ended = AtomicBool::new(false);
        let finished = Mutex::new(Vec::with_capacity(self.cells()));
        let work = || -> Result<(), SimulateError> {
            loop {
                let cell = next.fetch_add(1, Ordering::Relaxed);
                if cell >= self.cells() {
                    return Ok(());
                }
                let capacity = cell / self.contenders.len();
                let contender = cell % self.contenders.len();
                // Beginning what is not wanted any more costs time: Belady looks at all requests
                // before the first is simulated.
                let outcome = if ended.load(Ordering::Relaxed) {
                    None
                } else {
                    simulate(
                        trace,
                        &self.contenders[contender],
                        self.capacities[capacity],
                        &self.options,
                        &mut |requests| monitor.advance(requests),
                    )?
                };
                match &outcome {
                    Some(outcome) => {
                        let capacity = self.capacities[capacity];
                        monitor.finished(&self.contenders[contender], capacity, outcome);
                    }
                    None => ended.store(true, Ordering::Relaxed),
                }
                finished.lock().push(Cell { contender, capacity, outcome });
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> =
                (1..self.jobs.min(self.cells())).map(|_| scope.spawn(work)).collect();
            let own = work();
            let others = workers.into_iter().map(|worker| worker.join().expect("no panic"));
            others.fold(own, Result::and)
        })?;
        let mut cells = finished.into_inner();
        cells.sort_by_key(|cell| (cell.capacity, cell.contender));
        Ok(cells)
    }
}
