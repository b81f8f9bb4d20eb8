//! `replay`: the hit ratios of real caches, each driven by the requests of traces.
//!
//! It is what the simulator predicts, measured: values are really stored, and every cache counts
//! as it counts.

mod case;
mod job;
mod options;
mod printout;
mod section;
mod source;
mod table;

pub use case::{cases, write};
use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::subject::SubjectSpec;
pub use job::Replay;
pub use options::{ReplayOptions, TraceName};
pub use source::{Generated, REQUESTS, SEED, SIZES};
pub use table::{Ratios, ReplayRow, ratios};

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_sim::Trace;

use crate::experiment::on_caches::{Measuring, OnCaches, Setup};
use crate::experiment::{Host, Printout};
pub use haypile_measure::figure::REQUESTED_BYTES;

/// Name of the experiment `replay` in results.
pub const NAME: &str = "replay";

/// The name of the parameter for the cache's capacity, in per cent of the total size of the trace's
/// distinct keys' values.
pub const CAPACITY_PERCENT: &str = "capacity_percent";

/// The experiment `replay`: hit ratios of real caches on a trace.
pub(crate) struct ReplayExperiment;

impl OnCaches for ReplayExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Hit ratios of real caches";
    const FILE: &'static str = include_str!("replay.toml");

    type Options = ReplayOptions;

    fn check(options: &ReplayOptions, measuring: &Measuring) -> anyhow::Result<()> {
        let _ = measuring;
        if options.traces.is_empty() {
            bail!("name a trace to replay: zipf, zipf-scan, or a file");
        }
        Ok(())
    }

    fn setup(
        options: &ReplayOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let ByteSize(value_bytes) = options.value_size;
        let value_bytes =
            u32::try_from(value_bytes).context("a value is at most 4294967295 bytes")?;
        let mut cases = Vec::new();
        for trace in &options.traces {
            let (name, trace) = open(trace, host)?;
            let replay = Replay::new(&trace, value_bytes).context(name.clone())?;
            cases.extend(self::cases(&name, replay, &options.capacity, measuring.run.seed));
        }
        Ok(Setup::new(cases, subjects))
    }

    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        let _ = contenders;
        printout::printout(samples)
    }

    fn body(
        samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}

/// Opens a trace and returns it with its name: its file's up to the first dot.
fn open(name: &TraceName, host: &dyn Host) -> anyhow::Result<(String, Trace)> {
    let generated = name.path.to_str().and_then(Generated::find);
    if let (Some(generated), false) = (generated, name.path.exists()) {
        return Ok((generated.name.to_owned(), generated.trace()?));
    }
    let (name, trace) = host.trace(&name.path, name.format)?;
    let short = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
    Ok((short, trace))
}
