//! Experiments that measure caches by jobs, all in turn.

mod contenders;
mod http;
mod installed;
mod latency;
mod measuring;
mod run;
mod strip;
pub(crate) mod table;

use clap::{ArgMatches, Args, Command};
use haypile_measure::measure::{Case, Contender, NextCase, Surroundings};
use haypile_measure::result::Sample;
use haypile_measure::result::Samples;
use haypile_measure::subject::SubjectSpec;

pub use contenders::{LIST_LIMIT, Listing, listings};
pub use http::OverHttp;
pub(crate) use installed::Installed;
pub use measuring::{Build, Measuring, SubjectList};

use super::fill::Filled;
use super::session::Session;
use super::{Ended, Experiment, Host, Printout};
use crate::report::{body, case::Case as ReportCase, section::Body};

/// An experiment that measures several caches in turn, each by executing the same operations.
pub(crate) trait OnCaches: Sync {
    /// Name of its command under `haypile lab`, in results, and in experiment files.
    const NAME: &'static str;
    /// Heading of its section in reports.
    const TITLE: &'static str;
    /// Text of its experiment file.
    const FILE: &'static str;

    /// Its own options, with the help of its command. The options of [`Measuring`] follow them.
    type Options: Args;

    /// Checks what the parsers of single options cannot, before any cache is started.
    ///
    /// # Errors
    ///
    /// A combination of options that cannot be measured.
    fn check(options: &Self::Options, measuring: &Measuring) -> anyhow::Result<()> {
        let _ = (options, measuring);
        Ok(())
    }

    /// Returns what to measure.
    ///
    /// # Errors
    ///
    /// Options, subjects or input files that cannot be measured.
    fn setup(
        options: &Self::Options,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        host: &dyn Host,
    ) -> anyhow::Result<Setup>;

    /// Returns the results for people.
    fn print(samples: &[Sample], contenders: &[Contender]) -> Printout {
        table::printout(samples, contenders)
    }

    /// Returns the body of its section in a report.
    fn body(samples: &Samples<'_>, cases: &[ReportCase<'_>]) -> Body {
        let _ = samples;
        body::plain::body(cases)
    }
}

/// The cases, the caches and the working directories of an experiment that measures caches.
pub(crate) struct Setup {
    pub(crate) cases: Vec<Case>,
    /// A function that chooses the next case to measure from the results up to then; `None` if the
    /// cases are fixed.
    pub(crate) then: Option<NextCase>,
    pub(crate) subjects: Vec<SubjectSpec>,
    /// Working directories of the programs that measure caches; `None` for an empty directory for
    /// each sample.
    pub(crate) surroundings: Option<Box<dyn Surroundings>>,
    /// Whether programs that can do several jobs are kept for a block.
    pub(crate) keeps_runners: bool,
}

impl Setup {
    /// Returns the setup of an experiment that measures these cases on all of these caches.
    pub(crate) fn new(cases: Vec<Case>, subjects: Vec<SubjectSpec>) -> Self {
        Self { cases, then: None, subjects, surroundings: None, keeps_runners: false }
    }
}

impl<E: OnCaches> Experiment for E {
    fn name(&self) -> &'static str {
        E::NAME
    }

    fn title(&self) -> &'static str {
        E::TITLE
    }

    fn file(&self) -> &'static str {
        E::FILE
    }

    fn arguments(&self, command: Command) -> Command {
        let command = E::Options::augment_args(command);
        // The description of `Measuring` would replace that of the experiment.
        let about = command.get_about().cloned();
        Measuring::augment_args(command).about(about.unwrap_or_default())
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        let (options, measuring): (E::Options, Measuring) = (filled.get()?, filled.get()?);
        E::check(&options, &measuring)?;
        let subjects = contenders::subjects(E::NAME, &measuring, &filled, host)?;
        let session = Session::new(E::NAME, filled.asked, &measuring.run, host)?;
        let setup = E::setup(&options, &measuring, subjects, host)?;
        run::run::<E>(session, setup, &measuring)
    }

    fn body(&self, samples: &Samples<'_>, cases: &[ReportCase<'_>]) -> Body {
        E::body(samples, cases)
    }
}
