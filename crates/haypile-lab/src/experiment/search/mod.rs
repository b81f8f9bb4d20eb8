//! `search`: what a lookup costs that finds nothing, by how many entries a cache is made for and how
//! full it is. The Necko benchmarks ask whether searching a cache takes time: their caches were
//! nearly empty when it measured.
//!
//! The cache is as large as its `entries` need under any accounting. `fill` says how many of
//! them are there. All keys that are looked up were never set.

mod case;
mod options;
mod section;

pub use case::cases;
use haypile_measure::subject::SubjectSpec;
pub use options::SearchOptions;

use crate::experiment::Host;
use crate::experiment::on_caches::{Measuring, OnCaches, Setup};

/// Name of the experiment `search` in results.
pub const NAME: &str = "search";

/// The parameter of cases whose process was killed before the lookups.
const KILLED: &str = "killed";

/// The largest number of entries in the experiment `search`: the same number of absent keys is
/// looked up, and all keys of a job have at most 4 GiB.
pub const MAX_ENTRIES: u32 = 1 << 25;

/// The experiment `search`: the cost of lookups in caches of several sizes and fill levels.
pub(crate) struct SearchExperiment;

impl OnCaches for SearchExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Looking for what is not there";
    const FILE: &'static str = include_str!("search.toml");

    type Options = SearchOptions;

    fn setup(
        options: &SearchOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let subjects = options.http.subjects(subjects)?;
        Ok(Setup::new(cases(options, measuring.run.seed), subjects))
    }

    fn body(
        _samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}
