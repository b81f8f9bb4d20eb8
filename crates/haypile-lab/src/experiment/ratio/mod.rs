//! `ratio`: the Perl cache benchmark, which compares the cache modules of Perl by how many reads there are for
//! each write, and by the size of values.
//!
//! One iteration is one set and then as many gets as the ratio says, over keys that rotate: sets go
//! round from the first key on, gets from the middle one on, so that with 1:1 too every key is written and
//! read and no key is read right after it was written. All keys were written before, and the cache
//! has room for them: every read is a hit.
//!
//! The source counts the client's processor time alone, where a server's work and waiting for it
//! do not appear. Rows have all three.

mod agreement;
mod case;
mod cmpthese;
mod options;
mod printout;
mod section;
mod source;

use std::str::FromStr;

pub use agreement::{Agreement, Inversion};
pub use case::cases;
pub use cmpthese::cmpthese;
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use options::RatioOptions;
pub use source::{SUBJECTS, SourceTable, abbreviation, source_tables};

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `ratio` in results.
pub const NAME: &str = "ratio";

/// The number of keys in the experiment `ratio`. The Perl cache benchmark does not state it.
pub const KEYS: u32 = 2_000;

/// The length of the keys in the experiment `ratio`, in bytes: that of a UUID as text.
pub const KEY_BYTES: u32 = 36;

/// The capacity of each cache in the experiment `ratio`, in bytes. The Perl cache benchmark sets a
/// `max_size` without stating it.
pub const CAPACITY_BYTES: u64 = 16_000_000;

/// A case of the experiment `ratio`: the number of gets for each set, and the size of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ratio {
    /// The number of reads (gets) of the cache for each write (set).
    pub gets: u32,
    /// The size class of the values in this case: small, medium or large.
    pub size: Size,
}

/// A size class of values in the Perl cache benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 16 bytes: a binary UUID.
    Small,
    /// 160 bytes.
    Medium,
    /// 1,600 bytes.
    Large,
}

impl Size {
    /// Returns the size of the values in this size class, in bytes.
    pub fn bytes(self) -> u32 {
        match self {
            Self::Small => 16,
            Self::Medium => 160,
            Self::Large => 1_600,
        }
    }

    /// Returns the name that the Perl cache benchmark has for this size class of values.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

impl Ratio {
    /// All cases of the Perl cache benchmark, in its order. It measured 1:10 with medium values
    /// twice.
    pub const ALL: [Self; 5] = [
        Self { gets: 10, size: Size::Small },
        Self { gets: 10, size: Size::Medium },
        Self { gets: 10, size: Size::Large },
        Self { gets: 1, size: Size::Medium },
        Self { gets: 100, size: Size::Medium },
    ];

    /// Returns the name of this case of the experiment `ratio`, such as `1:10 medium`.
    pub fn name(self) -> String {
        format!("1:{} {}", self.gets, self.size.name())
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|ratio| ratio.name() == text.trim());
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("unknown case '{text}' (known: {names})")
        })
    }
}

/// The experiment `ratio`, which repeats the Perl cache benchmark: several gets for each set.
pub(crate) struct RatioExperiment;

impl OnCaches for RatioExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Sets and reads in proportion";
    const FILE: &'static str = include_str!("ratio.toml");

    type Options = RatioOptions;

    fn setup(
        options: &RatioOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let ratios = match &options.cases[..] {
            [] => &Ratio::ALL,
            ratios => ratios,
        };
        Ok(Setup::new(cases(ratios, options.operations, measuring.run.seed), subjects))
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
