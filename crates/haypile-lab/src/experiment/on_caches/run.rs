//! Measures the cases of an experiment and prints the results.

use anyhow::{Context, bail};
use haypile_measure::measure::{Places, Plan, RunnerLimits, Surroundings, measure};

use super::{Measuring, OnCaches, Setup, contenders};
use crate::experiment::Ended;
use crate::experiment::session::{Interrupted, RunOptions, Session, no_fields};

/// Measures the cases of an experiment on caches, prints the results, and returns whether some of
/// them are errors.
pub(super) fn run<E: OnCaches>(
    mut session: Session<'_>,
    setup: Setup,
    measuring: &Measuring,
) -> anyhow::Result<Ended> {
    if setup.cases.is_empty() {
        bail!(
            "these options leave no case of the experiment to measure; allow more values of its \
             parameters"
        );
    }
    let (options, host) = (&measuring.run, session.host);
    let surroundings = setup.surroundings.map_or_else(|| places(options), Ok)?;
    let plan = Plan {
        cases: setup.cases,
        then: setup.then,
        contenders: contenders::contenders(measuring, &setup.subjects)?,
        blocks: measuring.blocks,
        seed: options.seed,
        warm_up: measuring.warm_up,
        limits: RunnerLimits { prepare: options.timeout, timed: options.timeout },
        surroundings: Some(surroundings),
        keeps_runners: setup.keeps_runners,
    };
    // With further cases to come, the total is not known.
    session.begin(plan.then.is_none().then(|| plan.samples()))?;
    host.begin(plan.samples(), format!("measuring {}", E::NAME))?;
    let run = session.run.clone();
    let measured = match measure(&plan, &run, host, &mut |sample| session.keep(sample)) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Interrupted.into()),
        Err(error) => Err(error.into()),
    };
    session.end(measured, no_fields, |samples| E::print(samples, &plan.contenders))
}

/// Creates an empty directory for each sample in the chosen directory.
fn places(options: &RunOptions) -> anyhow::Result<Box<dyn Surroundings>> {
    let directory = options.absolute_directory()?;
    let places = Places::new(&directory);
    let places = places.with_context(|| format!("cannot write into {}", directory.display()))?;
    Ok(Box::new(places))
}
