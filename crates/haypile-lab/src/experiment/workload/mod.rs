//! `workload`: RelStorage's local client tests.

pub mod case;
mod groups;
mod kind;
mod options;
mod printout;
mod section;
mod source;

pub use groups::{GROUPS, Groups, KEYS_PER_GROUP, LIMIT_BYTES, VALUE_BYTES};
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use kind::{EXECUTIONS, Workload, population};
pub use options::WorkloadOptions;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `workload` in results.
pub const NAME: &str = "workload";

/// The name of the parameter with the number by which a sample's time is divided to compare it with
/// RelStorage's results.
pub const SOURCE_OPERATIONS: &str = "source_operations";

/// The experiment `workload`, which repeats RelStorage's local client tests.
pub(crate) struct WorkloadExperiment;

impl OnCaches for WorkloadExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "A database client's cache";
    const FILE: &'static str = include_str!("workload.toml");

    type Options = WorkloadOptions;

    fn setup(
        options: &WorkloadOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let workloads = match &options.workloads[..] {
            [] => &Workload::ALL,
            workloads => workloads,
        };
        Ok(Setup::new(case::cases(workloads, measuring.run.seed), subjects))
    }

    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        printout::printout(samples, contenders)
    }

    fn body(
        _samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}
