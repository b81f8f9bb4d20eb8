//! Arguments of `haypile lab`.

mod all;
mod experiment;
mod first;
mod report;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use haypile_measure::compare::{Gate, Metric};
use haypile_measure::subject::SubjectSpec;

pub(crate) use all::All;
pub(crate) use experiment::{Bench, ExperimentCommand};
pub(crate) use first::First;
use haypile_lab::experiment::value::percent;
pub(crate) use report::Report;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    #[command(flatten)]
    Experiment(ExperimentCommand),
    /// Take a first look at this machine, in half a minute: what do caches cost, and what survives?
    First(First),
    /// Run every experiment and write a report
    All(All),
    /// List the experiments, or print the experiment file of one
    Experiments(Experiments),
    /// List the caches that can be measured
    Subjects(Subjects),
    /// Compare results: is the new faster than the old, and how certain is it?
    Compare(Compare),
    /// Write an HTML page of results: questions, answers, plots, tables, methods, machines
    Report(Report),
    /// Update the tables of a document from raw results
    Splice(Splice),
    /// Execute a measurement's job on one of this program's own caches
    #[command(hide = true)]
    RunJob(RunJob),
    /// Load web pages, as orders on standard input say
    #[command(hide = true)]
    RunPages,
    /// Start a command, as orders on standard input say, and report what it used
    #[command(hide = true)]
    RunStart,
    /// Start a command under ptrace, and write what it used to a file
    #[command(hide = true)]
    RunTrace(RunTrace),
    /// Load icons, as orders on standard input say
    #[command(hide = true)]
    RunIcons,
    /// Run one process of lab torture
    #[command(hide = true)]
    RunTorture(RunTorture),
    /// List the caches that this program can measure, in a form for programs
    #[command(hide = true)]
    ListSubjects,
}

#[derive(Debug, Args)]
#[command(after_help = "\
An experiment file contains the question of an experiment, its source, its method, and options: for
a normal run, and for one with --quick. haypile lab NAME --experiment FILE runs your own file.

Examples:
  haypile lab experiments
  haypile lab experiments ratio > mine.toml && haypile lab ratio --experiment mine.toml")]
pub(crate) struct Experiments {
    /// Experiment whose experiment file is printed [default: list all experiments]
    pub(crate) name: Option<String>,
    /// Print the list of experiments as JSON
    #[arg(long, conflicts_with = "name")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile lab subjects
  haypile lab subjects --rivals target/rivals/rust/release/haypile-rivals")]
pub(crate) struct Subjects {
    /// Programs (runners) that measure further caches (docs/job.md describes how to write one)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// Print the list of caches as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
The command compares samples of the same run and block in pairs; the table marks samples of
different runs, which form no pairs. A verdict other than \"no difference shown\" needs p < 0.01 and
an effect beyond the noise floor. docs/results.md describes the files and the JSON.

Exit status: 0 done; 1 a result is slower than --fail-above allows, fails where it did not before,
or is missing in NEW; 2 wrong arguments or unreadable results.

Examples:
  haypile lab compare old.jsonl new.jsonl --fail-above 3%
  haypile lab compare results.jsonl --subjects memory:policy=lru,memory:policy=sieve
  haypile lab compare results.jsonl --subjects @main,@branch --metric wall"
)]
pub(crate) struct Compare {
    /// Old results: a file, or a directory of files *.jsonl
    pub(crate) old: PathBuf,
    /// New results, which are compared with the old ones; optional with --subjects
    #[arg(required_unless_present = "subjects")]
    pub(crate) new: Option<PathBuf>,
    /// Old and new subject: names of caches, names with the program that measured them
    /// (NAME@PROGRAM), or programs (@PROGRAM) [default: each subject with itself]
    #[arg(long, value_name = "OLD,NEW")]
    pub(crate) subjects: Option<String>,
    /// Cost to compare: cpu (processor time), wall (wall time), server (the server's processor
    /// time), memory
    #[arg(long, value_name = "METRIC", default_value = "cpu")]
    pub(crate) metric: Metric,
    /// Exit with status 1 if a cost in NEW is higher than in OLD by more than this percentage, or
    /// if a result fails, or is missing in NEW
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,
    /// Figures that --fail-above checks: median and mean, each at half of the significance level;
    /// the median alone; or slow samples as well
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub(crate) gate: GateChoice,
    /// Percentage up to which a difference between old and new results counts as none, however
    /// certain it is
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) noise_floor: f64,
    /// Print the comparison of old and new results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The figures of old and new results that `--fail-above` compares: median and mean, the median
/// alone, or slow samples as well.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum GateChoice {
    /// The median and the mean: finds slow samples that are too few to change the median
    Both,
    /// The median alone, which a few slow samples do not change
    Median,
    /// Both, and slow samples that only the new side has: finds them in few blocks, and fails now and then where both
    /// sides have some
    Tails,
}

impl From<GateChoice> for Gate {
    fn from(choice: GateChoice) -> Self {
        match choice {
            GateChoice::Both => Self::Both,
            GateChoice::Median => Self::Median,
            GateChoice::Tails => Self::Tails,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
A table stands between two comments, each on a line of its own; docs/results.md describes the
options of the first:
  <!-- table: record/2026-11-21-host/micro.jsonl case=get-hit columns=subject,cpu,memory -->
  <!-- end of table -->

Exit status: 0 done; 1 a document is out of date (--check); 2 wrong arguments, or a table that
cannot be made.

Examples:
  haypile lab splice README.md
  haypile lab splice --check README.md")]
pub(crate) struct Splice {
    /// Markdown documents to update; paths of results are relative to a document's folder
    #[arg(required = true, value_name = "DOCUMENT")]
    pub(crate) documents: Vec<PathBuf>,
    /// Exit with status 1 if a document is out of date, and write nothing
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunTrace {
    /// File to write the trace of the program's system calls to
    pub(crate) file: PathBuf,
    /// Program to trace, with its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunJob {
    /// Directory of the job (operations on a cache, with their keys and values)
    pub(crate) directory: PathBuf,
    /// Subject (cache) that does the job
    pub(crate) subject: SubjectSpec,
    /// Number of this process among those of the job, from 0
    #[arg(long, value_name = "NUMBER")]
    pub(crate) process: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct RunTorture {
    /// Orders for a process of the experiment torture: role, path, seed, subject, and numbers by
    /// name
    #[arg(trailing_var_arg = true)]
    pub(crate) orders: Vec<String>,
}
