//! The cases of `workload`.

use std::path::Path;
use std::rc::Rc;

use haypile_measure::job::{self, JobError, Ops, Settings};
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Parameters;

use super::groups::{GROUPS, Groups, KEYS_PER_GROUP, LIMIT_BYTES, VALUE_BYTES};
use super::kind::{Workload, population};

/// Returns a case for each of these RelStorage workloads, with values drawn from a seed.
pub fn cases(workloads: &[Workload], seed: u64) -> Vec<Case> {
    let groups = Rc::new(Groups::new());
    let case = |&workload: &Workload| {
        let groups = Rc::clone(&groups);
        Case {
            experiment: super::NAME,
            name: workload.name().to_owned(),
            parameters: parameters(workload, &groups),
            processes: 1,
            skips: &[],
            write: Box::new(move |directory| write(directory, workload, &groups, seed)),
        }
    };
    workloads.iter().map(case).collect()
}

fn parameters(workload: Workload, groups: &Groups) -> Parameters {
    let parameters = [
        ("groups", u64::from(GROUPS)),
        ("keys_per_group", u64::from(KEYS_PER_GROUP)),
        ("keys", groups.keys().len() as u64),
        ("value_bytes", u64::from(VALUE_BYTES)),
        ("capacity_bytes", LIMIT_BYTES),
        ("executions", workload.executions()),
        (super::SOURCE_OPERATIONS, workload.source_operations(groups) * workload.executions()),
        ("threads", 1),
        ("processes", 1),
    ];
    parameters.into_iter().map(|(name, number)| (name.to_owned(), number.into())).collect()
}

/// Writes the job of a RelStorage workload into an empty directory, and returns the results to
/// expect. The number of hits depends on the cache and its policy.
///
/// # Errors
///
/// [`JobError::Io`].
pub fn write(
    directory: &Path,
    workload: Workload,
    groups: &Groups,
    seed: u64,
) -> Result<Expected, JobError> {
    let population = population(groups)?;
    let mean_bytes = population.bytes() / u64::from(population.len());
    let settings = Settings::new(seed, LIMIT_BYTES, LIMIT_BYTES / mean_bytes)
        .with_executions(workload.executions())
        .with_verification(workload.verifies_before(), true);
    let timed: Ops = workload.timed(groups);
    let prepare = workload.prepare(groups);
    job::write(directory, &settings, &population, &prepare, std::slice::from_ref(&timed))?;
    let executions = workload.executions();
    Ok(Expected {
        operations: executions * timed.operations(),
        reads: executions * timed.reads(),
        ..Expected::default()
    })
}
