//! The parent's side: starts runners, subjects in turns, and checks their results.
//!
//! Cases come one after the other. Within a case there are blocks, and within a block every
//! contender comes once, in an order that is drawn for each block: what changes with time changes
//! for all. Nothing is pinned to a processor; the system schedules runners as it does other
//! programs.

mod child;
mod clocks;
mod expected;
mod memory;
mod optimum;
mod places;
mod plan;
mod program;
mod protocol;
mod sample;
mod turns;

use std::path::Path;

pub use child::{Child, Deadline, Failure};
use expected::Evidence;
pub use expected::Expected;
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
    // For the choice of further cases.
    let mut finished = Vec::new();
    let mut cases = plan.cases.iter();
    for number in 0.. {
        let next;
        let case = match cases.next() {
            Some(case) => case,
            None => match plan.then.as_ref().and_then(|then| then(&finished)) {
                Some(case) => {
                    next = case;
                    &next
                }
                None => break,
            },
        };
        let directory = tempfile::tempdir().map_err(MeasureError::Directory)?;
        let mut expected = (case.write)(directory.path())?;
        if plan.warm_up > 0 && job::add_warm_up(directory.path(), plan.warm_up)? {
            expected.warm_up = plan.warm_up;
        }
        let evidence = Evidence::of(directory.path(), case.processes, &expected)?;
        let contenders = plan.contenders_of(case);
        let mut turns = Turns::new(plan.seed, number, contenders.len());
        for block in 0..plan.blocks {
            for (position, &contender) in turns.next_block().iter().enumerate() {
                let slot = MeasureSlot { plan, run, case, block, position: position as u64 };
                let contender = contenders[contender];
                let is_interrupted = || watcher.is_interrupted();
                let expected = (&expected, evidence);
                let Some(sample) =
                    slot.take(contender, directory.path(), expected, &is_interrupted)
                else {
                    return Ok(false);
                };
                if plan.then.is_some() {
                    finished.push(sample.clone());
                }
                keep(sample)?;
                watcher.advance(1);
            }
        }
    }
    Ok(true)
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
        job: &Path,
        (expected, evidence): (&Expected, Evidence),
        is_interrupted: &dyn Fn() -> bool,
    ) -> Option<Sample> {
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
        let work = protocol::Work { job, place: place.as_deref(), processes: self.case.processes };
        let done = protocol::run(contender, work, &plan.limits, is_interrupted);
        let judged = match done {
            Ok(ran) => {
                let memory = match &ran.done[..] {
                    // Of several, none has the whole cache.
                    [one] => one.memory,
                    _ => None,
                };
                let least_value_bytes = evidence.least_value_bytes;
                sample::fill(&mut sample, ran, expected).and_then(|reported| {
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
