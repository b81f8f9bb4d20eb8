//! `bench`: two commands, compared by the method of start-ups. In each block both are started, and the first once more,
//! in random order.

mod options;
mod sentence;

use anyhow::bail;
use clap::{ArgMatches, Args, Command};
use haypile_measure::figure::Findings;
use haypile_measure::measure::Runner;
use haypile_measure::result::Samples;

pub use options::BenchOptions;

use super::measure::Measuring;
use super::plan::StartPlan;
use super::{difference, differences, hyperfine, printout, section};
use crate::experiment::fill::Filled;
use crate::experiment::session::Session;
use crate::experiment::{Ended, Experiment, Host};

pub(super) use sentence::sentence;

/// Name of the experiment.
const NAME: &str = "bench";

/// The experiment `bench`: which of two commands is faster.
pub(crate) struct BenchExperiment;

impl Experiment for BenchExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Two commands"
    }

    fn file(&self) -> &'static str {
        include_str!("bench.toml")
    }

    fn needs_commands(&self) -> bool {
        true
    }

    fn arguments(&self, command: Command) -> Command {
        BenchOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let options: BenchOptions = filled.get()?;
        if let Some(path) = &options.import_hyperfine {
            let accepts_failure = options.ignore_failure.is_some();
            return hyperfine::compare(path, accepts_failure, options.run.json, host);
        }
        let scratch = options.run.scratch("haypile-bench-")?;
        let plan = StartPlan::of_two(&options, scratch.path())?;
        let mut session = Session::new(NAME, filled.asked.clone(), &options.run, host)?;
        options.exports.check(host)?;
        if !cfg!(target_os = "linux") {
            bail!("the starts of commands can be measured on Linux only");
        }
        session.begin(None)?;
        let runner = Runner::own()?;
        let mut measuring = Measuring::new((&plan, 0), options.schedule(), &runner, &mut session);
        let measured = measuring.measure();
        let cleaned = measuring.clean_up();
        host.finish();
        let written = options.exports.write(session.samples(), host);
        // What was measured is printed even if a file cannot be written, and each error is said.
        let ended =
            session.end(measured, differences, |samples| printout::printout(samples, false));
        let mut errors: Vec<anyhow::Error> =
            [written.err(), cleaned.err()].into_iter().flatten().collect();
        let (first, others) = match ended {
            Ok(ended) if errors.is_empty() => return Ok(ended),
            Ok(_) => (errors.remove(0), errors),
            Err(error) => (error, errors),
        };
        for error in others {
            host.note(&format!(
                "error: writing results or cleaning up after the measurement failed as well: \
                 {error:#}"
            ));
        }
        Err(first)
    }

    fn findings(&self, samples: &Samples<'_>) -> Findings {
        difference::findings(samples)
    }

    fn body(
        &self,
        samples: &Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(samples, cases)
    }
}
