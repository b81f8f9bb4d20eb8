//! The parent's side: starts runners, subjects in turns, and checks their results.
//!
//! Cases come one after the other. Within a case there are blocks, and within a block every
//! contender comes once, in an order that is drawn for each block: what changes with time changes
//! for all. Where runners are kept for a block, blocks come one after the other, and each has all
//! cases. Nothing is pinned to a processor; the system schedules runners as it does other
//! programs.

mod child;
mod clocks;
mod expected;
mod kept;
mod memory;
mod optimum;
mod places;
mod plan;
mod program;
mod protocol;
mod sample;
mod turns;

use std::fs;
use std::io;
use std::path::Path;

pub use child::{Child, Deadline, Failure};
use expected::Evidence;
pub use expected::Expected;
use kept::{KeptRunners, KeptSlot};
pub use places::Places;
pub use plan::{
    Case, Contender, KeepSample, MeasureError, NextCase, Plan, RunnerLimits, Surroundings, Watcher,
    WriteJob,
};
pub use program::{Listed, OWN_LABEL, Runner};

use crate::job;
use crate::result::{Run, Sample};
pub use turns::{Turns, shuffle};

/// The name of the count that marks a sample whose writes are not proven: none of the keys that
/// only its timed part writes was found afterwards, for example because a policy declined them.
pub const UNPROVEN: &str = "writes_unproven";

/// Measures all cases of a plan, and calls `keep` with each finished sample, so that an
/// interruption loses only the one in progress. Returns whether the plan was completed. A contender
/// that fails makes a sample with an error, and the others continue.
///
/// # Errors
///
/// [`MeasureError`], where a job cannot be written or a sample cannot be kept.
pub fn measure(
    plan: &Plan,
    run: &Run,
    watcher: &dyn Watcher,
    keep: &mut KeepSample<'_>,
) -> Result<bool, MeasureError> {
    let mut measurement = Measurement { plan, run, watcher, keep, finished: Vec::new() };
    if plan.keeps_a_runner() { measurement.by_blocks() } else { measurement.by_cases() }
}

/// A measurement in progress. Its methods return whether it was completed.
struct Measurement<'a, 'k> {
    plan: &'a Plan,
    run: &'a Run,
    watcher: &'a dyn Watcher,
    keep: &'a mut KeepSample<'k>,
    /// All samples so far, for the choice of further cases.
    finished: Vec<Sample>,
}

/// The job of a case in its directory, with what its results have to be.
#[derive(Clone, Copy)]
struct WrittenJob<'a> {
    case: &'a Case,
    directory: &'a Path,
    expected: Expected,
    evidence: Evidence,
}

impl Measurement<'_, '_> {
    /// Measures one case after the other, each in all blocks.
    fn by_cases(&mut self) -> Result<bool, MeasureError> {
        let plan = self.plan;
        let mut cases = plan.cases.iter();
        for number in 0.. {
            let next;
            let case = match cases.next() {
                Some(case) => case,
                None => match plan.then.as_ref().and_then(|then| then(&self.finished)) {
                    Some(case) => {
                        next = case;
                        &next
                    }
                    None => break,
                },
            };
            let directory = tempfile::tempdir().map_err(MeasureError::Directory)?;
            let job = self.write(case, directory.path())?;
            let mut turns = Turns::new(plan.seed, number, plan.contenders_of(case).count());
            for block in 0..plan.blocks {
                let order = turns.next_block();
                if !self.in_turns(job, block, &order, None)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Measures one block after the other, each with all cases, so that a runner can be kept for
    /// the whole block, and the blocks still share nothing.
    fn by_blocks(&mut self) -> Result<bool, MeasureError> {
        let plan = self.plan;
        let root = tempfile::tempdir().map_err(MeasureError::Directory)?;
        // A kept runner is told the directory at its start, and finds each of its jobs there.
        let directory = root.path().join("job");
        let turns =
            |(number, case)| Turns::new(plan.seed, number, plan.contenders_of(case).count());
        let mut turns: Vec<_> = plan.cases.iter().enumerate().map(turns).collect();
        let mut orders = Turns::of_cases(plan.seed, plan.cases.len());
        for block in 0..plan.blocks {
            // Tables list cases in the order of their first rows.
            let order = match block {
                0 => (0..plan.cases.len()).collect(),
                _ => orders.next_block(),
            };
            let mut kept = KeptRunners::new(plan.contenders.len());
            for (at, &number) in order.iter().enumerate() {
                let later = &order[at + 1..];
                remake(&directory).map_err(MeasureError::Directory)?;
                let job = self.write(&plan.cases[number], &directory)?;
                let order = turns[number].next_block();
                if !self.in_turns(job, block, &order, Some((&mut kept, later)))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn write<'c>(
        &self,
        case: &'c Case,
        directory: &'c Path,
    ) -> Result<WrittenJob<'c>, MeasureError> {
        let mut expected = (case.write)(directory)?;
        let warm_up = self.plan.warm_up;
        if warm_up > 0 && job::add_warm_up(directory, warm_up)? {
            expected.warm_up = warm_up;
        }
        let evidence = Evidence::of(directory, case.processes, &expected)?;
        Ok(WrittenJob { case, directory, expected, evidence })
    }

    /// Measures a case once on each of its contenders, in this order. `kept` are the runners that
    /// are kept, and the numbers of the cases that come later in the block.
    fn in_turns(
        &mut self,
        job: WrittenJob<'_>,
        block: u64,
        order: &[usize],
        mut kept: Option<(&mut KeptRunners, &[usize])>,
    ) -> Result<bool, MeasureError> {
        let (plan, run, watcher) = (self.plan, self.run, self.watcher);
        let contenders: Vec<_> = plan.contenders_of(job.case).collect();
        for (position, &turn) in order.iter().enumerate() {
            let slot = MeasureSlot { plan, run, case: job.case, block, position: position as u64 };
            let number = contenders[turn];
            let contender = &plan.contenders[number];
            let kept = kept.as_mut().filter(|_| contender.runner.several_jobs);
            let kept = kept.map(|(kept, later)| {
                let goes_on = later.iter().any(|&case| plan.measures(number, &plan.cases[case]));
                KeptSlot { kept: kept.of(number), goes_on }
            });
            let is_interrupted = || watcher.is_interrupted();
            let Some(sample) = slot.take(contender, job, kept, &is_interrupted) else {
                return Ok(false);
            };
            if plan.then.is_some() {
                self.finished.push(sample.clone());
            }
            (self.keep)(sample)?;
            watcher.advance(1);
        }
        Ok(true)
    }
}

/// Makes a directory, in the place of the one that is there.
fn remake(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::create_dir(directory),
    }
}

/// The place of one sample among all.
struct MeasureSlot<'a> {
    plan: &'a Plan,
    run: &'a Run,
    case: &'a Case,
    block: u64,
    position: u64,
}

impl MeasureSlot<'_> {
    /// Measures; `None` if it was interrupted.
    fn take(
        &self,
        contender: &Contender,
        job: WrittenJob<'_>,
        kept: Option<KeptSlot<'_>>,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Option<Sample> {
        let WrittenJob { expected, evidence, .. } = job;
        let mut sample = sample::blank(self, contender);
        if expected.warm_up > 0 {
            sample.parameters.insert("warm_up".to_owned(), expected.warm_up.into());
        }
        let plan = self.plan;
        let surroundings = plan.surroundings.as_deref();
        let place = surroundings.map(|surroundings| surroundings.before(self.case, contender));
        let place = match place.transpose() {
            Ok(place) => place,
            Err(error) => return Some(sample::failed(sample, no_place(&error))),
        };
        let (job, processes) = (job.directory, self.case.processes);
        let work = protocol::Work { job, place: place.as_deref(), processes };
        let done = match kept {
            // Several processes are not for one that does the jobs of several samples.
            Some(slot) if processes == 1 => {
                slot.run(contender, job, (&plan.limits, surroundings), is_interrupted)
            }
            _ => protocol::run(contender, work, &plan.limits, is_interrupted),
        };
        let judged = match done {
            Ok(ran) => {
                let memory = match &ran.done[..] {
                    // Of several, none has the whole cache.
                    [one] => one.memory,
                    _ => None,
                };
                let least_value_bytes = evidence.least_value_bytes;
                sample::fill(&mut sample, ran, &expected).and_then(|reported| {
                    let memory = memory.filter(|_| !sample.counts.contains_key("pretends"));
                    if let Some(memory) = memory {
                        memory.mark(&mut sample, least_value_bytes);
                    }
                    expected.judge(&sample, reported, evidence)
                })
            }
            Err(child::Failure::Interrupted) => return None,
            Err(child::Failure::Late(error) | child::Failure::Failed(error)) => Err(error),
        };
        if let Err(error) = judged {
            sample = sample::failed(sample, error);
        }
        if evidence.lacks_writes(&sample) {
            sample.counts.insert(UNPROVEN.to_owned(), 1);
        }
        match surroundings.map(|surroundings| surroundings.after(self.case, contender)) {
            None => {}
            Some(Ok(counts)) => sample.counts.extend(counts),
            // The first error is the cause of others.
            Some(Err(_)) if sample.error.is_some() => {}
            Some(Err(error)) => sample = sample::failed(sample, error),
        }
        Some(sample)
    }
}

/// Returns the text of the error that a sample's working directory cannot be used.
pub fn no_place(error: &std::io::Error) -> String {
    format!("its working directory cannot be used: {error}")
}
