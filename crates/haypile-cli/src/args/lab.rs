//! Arguments of `haypile lab`.

mod all;
mod crossover;
mod measuring;
mod micro;
mod necko;
mod persist;
mod ratio;
mod replay;
mod report;
mod search;
mod stampede;
mod torture;
mod workload;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haypile_lab::compare::Metric;
use haypile_lab::subject::SubjectSpec;

use super::value::percent;
pub(crate) use all::All;
pub(crate) use crossover::Crossover;
pub(crate) use measuring::Measuring;
pub(super) use measuring::seconds;
pub(crate) use micro::Micro;
pub(crate) use necko::{Loop, Sequence};
pub(crate) use persist::Persist;
pub(crate) use ratio::Ratios;
pub(crate) use replay::{Replay, TraceName};
pub(crate) use report::Report;
pub(crate) use search::Search;
pub(crate) use stampede::Stampede;
pub(crate) use torture::Torture;
pub(crate) use workload::Workloads;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Measure single operations: hits, misses, writes that evict, mixtures
    Micro(Box<Micro>),
    /// Measure sets and gets at 1:1, 1:10 and 1:100, as a table of Perl's Benchmark.pm
    Ratio(Box<Ratios>),
    /// Run the workloads of RelStorage's local client: populate, mix, read, proof of policy
    Workload(Box<Workloads>),
    /// Measure writing a cache to disk and opening it again
    Persist(Box<Persist>),
    /// Repeat one operation: calls, clears, misses and hits, by size
    Loop(Box<Loop>),
    /// Read 101 entries, which miss and then hit, by size
    Sequence(Box<Sequence>),
    /// Measure lookups that find nothing, by entries and fill
    Search(Box<Search>),
    /// Find the entry size from which one cache is clearly slower than another
    Crossover(Box<Crossover>),
    /// Count how often processes that share an expired entry compute it
    Stampede(Box<Stampede>),
    /// Replay traces on caches and compare their hit ratios
    Replay(Box<Replay>),
    /// Kill and stop processes that share a cache, and find lost and wrong entries
    Torture(Box<Torture>),
    /// Run every experiment and write a report
    All(All),
    /// List the caches that can be measured
    Subjects(Subjects),
    /// Compare results: is the new faster than the old, and how certain is it?
    Compare(Compare),
    /// Write a page of results: questions, answers, plots, tables, methods, machines
    Report(Report),
    /// Update the tables of a document from raw results
    Splice(Splice),
    /// Execute a job, as the runner of this program's own caches
    #[command(hide = true)]
    RunJob(RunJob),
    /// Run one process of lab torture
    #[command(hide = true)]
    RunTorture(RunTorture),
    /// List the subjects of this runner in a form for programs
    #[command(hide = true)]
    ListSubjects,
}

impl LabCommand {
    /// Returns the common arguments of an experiment that measures; `None` for all other commands.
    pub(crate) fn measuring_mut(&mut self) -> Option<&mut Measuring> {
        match self {
            Self::Micro(arguments) => Some(&mut arguments.measuring),
            Self::Ratio(arguments) => Some(&mut arguments.measuring),
            Self::Workload(arguments) => Some(&mut arguments.measuring),
            Self::Persist(arguments) => Some(&mut arguments.measuring),
            Self::Loop(arguments) => Some(&mut arguments.measuring),
            Self::Sequence(arguments) => Some(&mut arguments.measuring),
            Self::Search(arguments) => Some(&mut arguments.measuring),
            Self::Crossover(arguments) => Some(&mut arguments.measuring),
            Self::Stampede(arguments) => Some(&mut arguments.measuring),
            Self::Replay(arguments) => Some(&mut arguments.measuring),
            Self::Torture(_)
            | Self::All(_)
            | Self::Subjects(_)
            | Self::Compare(_)
            | Self::Report(_)
            | Self::Splice(_)
            | Self::RunJob(_)
            | Self::RunTorture(_)
            | Self::ListSubjects => None,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile lab subjects
  haypile lab subjects --rivals target/rivals/rust/release/haypile-rivals")]
pub(crate) struct Subjects {
    /// Runners of further caches (docs/job.md describes how to write one)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// Print JSON
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
    /// New results; optional with --subjects
    #[arg(required_unless_present = "subjects")]
    pub(crate) new: Option<PathBuf>,
    /// Old and new subject: names, names with the program that ran them (NAME@PROGRAM), or programs
    /// (@PROGRAM) [default: each subject with itself]
    #[arg(long, value_name = "OLD,NEW")]
    pub(crate) subjects: Option<String>,
    /// Cost to compare: cpu, wall, server (its processor time), memory
    #[arg(long, value_name = "METRIC", default_value = "cpu")]
    pub(crate) metric: Metric,
    /// Exit with status 1 if a result is slower by more than this, fails, or is missing in NEW
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,
    /// Effects up to this count as no difference, however certain they are
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) noise_floor: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Markdown documents; paths of results are relative to a document's folder
    #[arg(required = true, value_name = "DOCUMENT")]
    pub(crate) documents: Vec<PathBuf>,
    /// Exit with status 1 if a document is out of date, and write nothing
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunJob {
    /// Directory of the job
    pub(crate) directory: PathBuf,
    /// Subject that does the job
    pub(crate) subject: SubjectSpec,
    /// Number of this process among those of the job, from 0
    #[arg(long, value_name = "NUMBER")]
    pub(crate) process: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct RunTorture {
    /// Role, path, seed, subject, and numbers by name
    #[arg(trailing_var_arg = true)]
    pub(crate) orders: Vec<String>,
}
