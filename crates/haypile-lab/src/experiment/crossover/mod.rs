//! `crossover`: the size of entries from which on one cache is clearly slower than another. The
//! Necko benchmarks ask it of their disk cache and its memory cache.
//!
//! Reads that hit are measured at sizes spread over the range, all in turns. *Clearly slower* is a
//! cache whose wall time per read is above the first one's by more than a margin, with the whole
//! 95 % interval. Where that changes from one size to the next, the sizes between are
//! halved again and again, on a logarithmic scale, until the two are close: the crossover is
//! between them. The cache can be clearly slower at every size, at none, or between two crossovers:
//! then that is the answer.

mod find;
mod options;
mod printout;
mod section;

pub use find::{Crossover, FoundCrossovers, case, find, first_sizes, next};
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use options::CrossoverOptions;

use anyhow::{Context, bail};
use haypile::ByteSize;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};

/// Name of the experiment `crossover` in results.
pub const NAME: &str = "crossover";

/// Options that define the measurements of the experiment `crossover`: the baseline, the sizes of
/// values, and when one cache counts as slower.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossoverPlan {
    /// Name of the cache that all other caches are compared with.
    pub baseline: String,
    /// The smallest size of values to measure, in bytes, at least 1.
    pub min_bytes: u32,
    /// The largest size of values to measure, in bytes, at most 1 GiB.
    pub max_bytes: u32,
    /// The margin by which a cache has to be slower than the baseline to count as slower: 0.1 is 10
    /// %.
    pub margin: f64,
    /// Ratio of the two value sizes around a crossover (larger over smaller) at which the search
    /// for it ends.
    pub precision: f64,
    /// Total size in bytes of all keys and values of a measurement, for which every cache has room.
    pub total_bytes: u64,
    /// The number of reads in one measurement; for values above 16 KiB fewer, down to a hundredth.
    pub operations: u32,
    /// Seed of the random generator that draws the keys and the reads.
    pub seed: u64,
}

/// The experiment `crossover`: the size of values from which one cache is slower than another.
pub(crate) struct CrossoverExperiment;

impl OnCaches for CrossoverExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "From which size on does it matter?";
    const FILE: &'static str = include_str!("crossover.toml");

    type Options = CrossoverOptions;

    fn check(options: &CrossoverOptions, measuring: &Measuring) -> anyhow::Result<()> {
        let [min, max] = [bytes("--min", options.min)?, bytes("--max", options.max)?];
        if min > max {
            bail!(
                "--min {} is above --max {}; write the smallest and the largest size of values",
                options.min,
                options.max
            );
        }
        if measuring.blocks < 2 {
            bail!(
                "a crossover needs confidence intervals; measure at least 2 blocks, as in --blocks 3"
            );
        }
        Ok(())
    }

    fn setup(
        options: &CrossoverOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let subjects = options.http.subjects(subjects)?;
        let [baseline, _, ..] = &subjects[..] else {
            bail!("a crossover needs at least two caches; name them with --subjects");
        };
        let plan = CrossoverPlan {
            baseline: baseline.to_string(),
            min_bytes: bytes("--min", options.min)?,
            max_bytes: bytes("--max", options.max)?,
            margin: options.margin,
            precision: 1.0 + options.precision,
            total_bytes: options.total.0,
            operations: options.operations,
            seed: measuring.run.seed,
        };
        let cases = first_sizes(&plan).iter().map(|&size| case(size, &plan)).collect();
        let then = move |samples: &[Sample]| Some(case(next(samples, &plan)?, &plan));
        Ok(Setup { then: Some(Box::new(then)), ..Setup::new(cases, subjects) })
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

/// Returns a size of values that can be measured.
fn bytes(option: &str, ByteSize(bytes): ByteSize) -> anyhow::Result<u32> {
    u32::try_from(bytes)
        .ok()
        .filter(|bytes| (1..=1 << 30).contains(bytes))
        .with_context(|| format!("invalid {option} {} (from 1 byte to 1 GiB)", ByteSize(bytes)))
}
