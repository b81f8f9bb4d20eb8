//! `haypile lab micro`

use std::process::ExitCode;

use haypile_lab::experiment::micro;
use haypile_lab::job::Timing;

use super::measuring;
use crate::args::lab::Micro;

/// Measures single operations.
pub(crate) fn run(arguments: &Micro) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let cases = micro::cases(&micro::Options {
        cases: arguments.case.clone(),
        keys: arguments.keys.clone(),
        key_bytes: arguments.key_bytes.clone(),
        value_bytes: arguments.value_bytes.clone(),
        distributions: arguments.distribution.clone(),
        capacities: arguments.capacity.clone(),
        threads: arguments.threads.clone(),
        processes: arguments.processes.clone(),
        operations: arguments.operations,
        seed: measuring.seed,
        file_system: measuring.directory.as_deref().and_then(micro::file_system),
        timing: if arguments.latency { Timing::Each } else { Timing::Total },
    })?;
    let subjects = measuring.subjects("memory");
    measuring::run(micro::NAME, cases, &subjects, measuring, measuring::table::text)
}
