//! The experiments. Each is a folder: its experiment file (question, source, method, options), its
//! options, its cases, what it prints, and its section of the report.
//!
//! To add one, create a folder and add its `Experiment` to the list `EXPERIMENTS`; the command
//! under `haypile lab`, `haypile lab all` and the report follow from the list.
//!
//! ```text
//! experiment file ─┐
//!                  ├─> Filled ──> options ──> Setup (cases) ──> measure ──> samples ─┬─> Printout
//! command line ────┘                                                                 └─> Body
//! ```
//!
//! Errors are those of a command: a text that tells what to do, with its causes (`anyhow`).

mod cold;
pub mod crossover;
mod definition;
mod fill;
mod host;
pub mod icons;
mod keys;
mod lookups;
pub mod micro;
pub mod necko;
pub mod on_caches;
pub mod on_pages;
pub mod pages;
pub mod persist;
mod printout;
pub mod ratio;
pub mod replay;
pub mod resources;
pub mod scale;
pub mod search;
pub mod session;
pub mod stampede;
pub mod startup;
pub mod torture;
pub mod value;
pub mod workload;

use clap::{ArgMatches, Command};
use haypile_measure::figure::{FIGURES, Findings};
use haypile_measure::result::{Parameters, Samples};
use serde_json::Value;

pub use definition::{ExperimentFile, ExperimentFileError, Setting, Settings};
pub use host::{Ended, Host};
pub use printout::{Block, Printout};

use crate::report::Topics;
use crate::report::case::Case;
use crate::report::section::Body;
use crate::report::topic::{Texts, Topic};

/// All experiments, in the order in which `lab all` runs them and reports contain them.
static EXPERIMENTS: [&dyn Experiment; 17] = [
    &replay::ReplayExperiment,
    &micro::MicroExperiment,
    &scale::ScaleExperiment,
    &ratio::RatioExperiment,
    &workload::WorkloadExperiment,
    &persist::PersistExperiment,
    &necko::looped::LoopExperiment,
    &necko::sequence::SequenceExperiment,
    &resources::ResourcesExperiment,
    &pages::PagesExperiment,
    &startup::StartupExperiment,
    &startup::bench::BenchExperiment,
    &icons::IconsExperiment,
    &search::SearchExperiment,
    &crossover::CrossoverExperiment,
    &stampede::StampedeExperiment,
    &torture::TortureExperiment,
];

/// An experiment: its command, its run, and its section of a report.
///
/// One that measures caches by jobs implements [`on_caches::OnCaches`] instead.
pub(crate) trait Experiment: Sync {
    /// Name of its command under `haypile lab`, in results, and in experiment files.
    fn name(&self) -> &'static str;

    /// Heading of its section in reports.
    fn title(&self) -> &'static str;

    /// Text of its experiment file.
    fn file(&self) -> &'static str;

    /// Returns whether it measures only what the user names, so that `lab all` leaves it out.
    fn needs_commands(&self) -> bool {
        false
    }

    /// Adds its arguments and help texts to a command.
    fn arguments(&self, command: Command) -> Command;

    /// Runs it with the arguments of a command line, and prints its results.
    ///
    /// # Errors
    ///
    /// Wrong options, a cache that cannot be measured here, results that cannot be written, an
    /// interruption.
    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended>;

    /// Returns the figures of its samples.
    fn findings(&self, samples: &Samples<'_>) -> Findings {
        Findings::of(samples, FIGURES)
    }

    /// Returns the body of its section in a report.
    fn body(&self, samples: &Samples<'_>, cases: &[Case<'_>]) -> Body;
}

/// An experiment of the laboratory that this program has.
#[derive(Clone, Copy)]
pub struct Known(&'static dyn Experiment);

impl Known {
    /// Returns all experiments of the laboratory, in the order of the help.
    pub fn all() -> impl Iterator<Item = Self> {
        EXPERIMENTS.iter().map(|experiment| Self(*experiment))
    }

    /// Returns the experiment of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|known| known.name() == name)
    }

    /// Returns the name of the experiment's command under `haypile lab`, which results and
    /// experiment files use too.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the heading of the experiment's section in reports.
    pub fn title(self) -> &'static str {
        self.0.title()
    }

    /// Returns the text of the experiment file that the program contains for this experiment.
    pub fn file(self) -> &'static str {
        self.0.file()
    }

    /// Returns the experiment file that the program contains for this experiment: question, source,
    /// method and options.
    pub fn definition(self) -> &'static ExperimentFile {
        ExperimentFile::built_in(self.name()).expect("every experiment of the list has a file")
    }

    /// Whether the experiment measures only commands that the user names, so that `lab all` leaves
    /// it out.
    pub fn needs_commands(self) -> bool {
        self.0.needs_commands()
    }

    /// Returns the experiment's command with all arguments, for the parser of the command line.
    pub fn command(self) -> Command {
        self.arguments(Command::new(self.name()))
    }

    /// Adds the experiment's arguments and help texts to a command.
    pub fn arguments(self, command: Command) -> Command {
        self.0.arguments(command)
    }

    /// Runs the experiment with the arguments of a command line, and prints its results.
    ///
    /// # Errors
    ///
    /// Wrong options, a cache that cannot be measured here, results that cannot be written, an
    /// interruption.
    pub fn run(self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        self.0.run(line, host)
    }
}

impl Topic for Known {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn title(&self) -> &'static str {
        self.0.title()
    }

    fn texts(&self) -> Texts {
        let ExperimentFile { question, method, source, .. } = self.definition();
        Texts { question, method, source }
    }

    fn findings(&self, samples: &Samples<'_>) -> Findings {
        self.0.findings(samples)
    }

    fn body(&self, samples: &Samples<'_>, cases: &[Case<'_>]) -> Body {
        self.0.body(samples, cases)
    }
}

/// Returns all experiments of this program as sections of a report.
pub fn topics() -> Topics {
    Topics::new(Known::all())
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Known").field(&self.name()).finish()
    }
}

/// Returns the parameters of a case by name.
fn parameters<const N: usize>(named: [(&str, Value); N]) -> Parameters {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
