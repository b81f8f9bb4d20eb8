//! `scale`: operations per second by the number of threads, and of processes, that use a cache.
//!
//! The cases are those of [`micro`](super::micro): every worker does the same number of operations,
//! with keys drawn by Zipf's law with the exponent 0.99, in a cache for half of the keys.
//! *Speed-up* is the rate of all workers over the rate of the fewest, *efficiency* the speed-up per
//! worker. Samples of different numbers of workers form no pairs, because they are not measured in
//! turns.

mod case;
mod options;
mod printout;
mod section;
mod speedup;

pub use case::cases;
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use options::ScaleOptions;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `scale` in results.
pub const NAME: &str = "scale";

/// The experiment `scale`: the speed-up of a cache with the number of threads or processes.
pub(crate) struct ScaleExperiment;

impl OnCaches for ScaleExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "More threads, more processes";
    const FILE: &'static str = include_str!("scale.toml");

    type Options = ScaleOptions;

    fn check(options: &ScaleOptions, measuring: &Measuring) -> anyhow::Result<()> {
        cases(options, measuring.run.seed)?;
        Ok(())
    }

    fn setup(
        options: &ScaleOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        Ok(Setup::new(cases(options, measuring.run.seed)?, subjects))
    }

    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        printout::printout(samples, contenders)
    }

    fn body(
        samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}
