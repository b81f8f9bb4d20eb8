//! The cases of `stampede` and their jobs.

use std::path::Path;

use haypile_measure::job::{self, JobError, MAX_PROCESSES, Ops, Settings};
use haypile_measure::measure::{Case, Expected};

use super::super::{keys, parameters};
use super::{NAME, StampedeOptions};

/// Milliseconds after which an entry of one second is gone under any clock of whole seconds.
const EXPIRY_MS: u32 = 2_100;

const KEY_BYTES: u32 = 36;
const VALUE_BYTES: u32 = 160;
const CAPACITY_BYTES: u64 = 16_000_000;

/// Returns a case of the experiment `stampede` for each number of processes.
pub fn cases(options: &StampedeOptions, seed: u64) -> Vec<Case> {
    let case = |&processes: &u32| {
        let processes = processes.clamp(1, MAX_PROCESSES);
        let options = options.clone();
        Case {
            experiment: NAME,
            name: "expired".to_owned(),
            parameters: parameters([
                ("processes", processes.into()),
                ("keys", options.keys.into()),
                ("compute_ms", options.compute_ms.into()),
                ("value_bytes", VALUE_BYTES.into()),
            ]),
            processes,
            skips: &["none"],
            write: Box::new(move |directory| write(directory, processes, &options, seed)),
        }
    };
    options.processes.iter().map(case).collect()
}

fn write(
    directory: &Path,
    processes: u32,
    options: &StampedeOptions,
    seed: u64,
) -> Result<Expected, JobError> {
    let population = keys::population(seed, options.keys, KEY_BYTES, VALUE_BYTES)?;
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    (0..options.keys).for_each(|key| prepare.expire(key));
    prepare.wait(EXPIRY_MS);
    (0..options.keys).for_each(|key| timed.compute(key));
    let entry_bytes = u64::from(KEY_BYTES + VALUE_BYTES);
    let settings = Settings::new(seed, CAPACITY_BYTES, CAPACITY_BYTES / entry_bytes)
        .with_processes(processes)
        .with_compute_ms(options.compute_ms);
    let all = vec![timed.clone(); processes as usize];
    job::write(directory, &settings, &population, &prepare, &all)?;
    Ok(Expected {
        operations: u64::from(processes) * timed.operations(),
        reads: u64::from(processes) * timed.reads(),
        // All have expired.
        verified_before: Some(0),
        verified_after: Some(u64::from(options.keys)),
        // Each is computed once at least.
        min_misses: u64::from(options.keys),
        ..Expected::default()
    })
}
