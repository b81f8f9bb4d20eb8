//! `stampede`: the number of computations of an entry that has expired and that several processes ask for.
//!
//! Each key is written with a time to live of one second, which is over when the processes begin.
//! Then each process asks for the keys in the same order. Who finds none has it computed, which
//! takes some time, as a database does; nothing but waiting happens in it. Where a cache has no
//! protection, whoever asks while a key is being computed computes it too: up to all of them, who then
//! go on to the next one together. Where it has, one computes and the others wait for it, or get the
//! old value.
//!
//! A miss is a computation: `misses` divided by `keys` says how often each key was computed, and 1 is
//! the least there can be.

mod case;
mod options;
mod printout;
mod section;

pub use case::cases;
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use options::StampedeOptions;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `stampede` in results.
pub const NAME: &str = "stampede";

/// The largest number of keys that the option `--keys` of the experiment `stampede` accepts.
pub const MAX_KEYS: u32 = 10_000;

/// The experiment `stampede`: how often a value is computed when several processes miss it at once.
pub(crate) struct StampedeExperiment;

impl OnCaches for StampedeExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "One expired key, many processes";
    const FILE: &'static str = include_str!("stampede.toml");

    type Options = StampedeOptions;

    fn setup(
        options: &StampedeOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        Ok(Setup::new(cases(options, measuring.run.seed), subjects))
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
