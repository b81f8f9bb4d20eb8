//! The arguments of `haypile lab`.

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
    /// Sets and gets at 1:1, 1:10 and 1:100, as a table of Perl's Benchmark.pm
    Ratio(Box<Ratios>),
    /// The workloads of RelStorage's local client: populate, mix, read, and why policy matters
    Workload(Box<Workloads>),
    /// What writing a cache to disk costs, and opening it again
    Persist(Box<Persist>),
    /// One operation, again and again: calls, clearing, misses and hits by size
    Loop(Box<Loop>),
    /// 101 entries, missed and then hit, by size
    Sequence(Box<Sequence>),
    /// What a lookup costs that finds nothing, by entries and fill
    Search(Box<Search>),
    /// The size of entries from which on one cache is clearly slower than another
    Crossover(Box<Crossover>),
    /// How often an expired entry is computed when several processes ask for it
    Stampede(Box<Stampede>),
    /// The hit ratios of caches, driven by the requests of traces
    Replay(Box<Replay>),
    /// Kill and stop the processes that share a cache, and look for what is lost or wrong
    Torture(Box<Torture>),
    /// Do every experiment, and report
    All(All),
    /// List the caches that can be measured
    Subjects(Subjects),
    /// Compare results: is new faster than old, and how sure is that?
    Compare(Compare),
    /// Make a page of results: questions, answers, plots, tables, methods, machines
    Report(Report),
    /// Write the tables of a document anew from raw results
    Splice(Splice),
    /// Do a job, as the runner of this program's own caches
    #[command(hide = true)]
    RunJob(RunJob),
    /// Be a process of a torture
    #[command(hide = true)]
    RunTorture(RunTorture),
    /// List the subjects of this runner for programs
    #[command(hide = true)]
    ListSubjects,
}

impl LabCommand {
    /// What an experiment that measures is told; `None` for all other commands.
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
    /// Programs that run further caches, which docs/job.md tells how to write
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
Samples of the same run and block are compared in pairs; samples of different runs cannot be, which
the table says. A verdict other than \"no difference shown\" needs p < 0.01 and an effect beyond the
noise floor. docs/results.md describes the files and the JSON.

Exit status: 0 done; 1 something is slower than --fail-above allows, or fails where it did not, or is
missing in NEW; 2 wrong arguments or unreadable results.

Examples:
  haypile lab compare old.jsonl new.jsonl --fail-above 3%
  haypile lab compare results.jsonl --subjects memory:policy=lru,memory:policy=sieve
  haypile lab compare results.jsonl --subjects @main,@branch --metric wall"
)]
pub(crate) struct Compare {
    /// A file of results, or a directory of files *.jsonl
    pub(crate) old: PathBuf,
    /// The same of what is new; may be left out with --subjects
    #[arg(required_unless_present = "subjects")]
    pub(crate) new: Option<PathBuf>,
    /// The old and the new subject: names, names with the program that ran them (NAME@PROGRAM), or
    /// programs (@PROGRAM) [default: each subject with itself]
    #[arg(long, value_name = "OLD,NEW")]
    pub(crate) subjects: Option<String>,
    /// The cost: cpu, wall, server (its processor time), memory
    #[arg(long, value_name = "METRIC", default_value = "cpu")]
    pub(crate) metric: Metric,
    /// Exit with status 1 if something is slower by more than this, or fails, or is missing in NEW
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_above: Option<f64>,
    /// Effects up to this are no difference, however sure they are
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    pub(crate) noise_floor: f64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A table stands between two comments, each on a line of its own; docs/results.md lists what the first
can say:
  <!-- table: record/2026-11-21-host/micro.jsonl case=get-hit columns=subject,cpu,memory -->
  <!-- end of table -->

Exit status: 0 done; 1 a document is out of date (--check); 2 wrong arguments, or a table that
cannot be made.

Examples:
  haypile lab splice README.md
  haypile lab splice --check README.md")]
pub(crate) struct Splice {
    /// Documents in Markdown; files of results are found from their folder
    #[arg(required = true, value_name = "DOCUMENT")]
    pub(crate) documents: Vec<PathBuf>,
    /// Write nothing; exit with status 1 if a document is out of date
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunJob {
    /// The directory of the job
    pub(crate) directory: PathBuf,
    /// The subject
    pub(crate) subject: SubjectSpec,
    /// Which of the processes of the job this is, from 0
    #[arg(long, value_name = "NUMBER")]
    pub(crate) process: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct RunTorture {
    /// Role, path, seed, subject and numbers by name
    #[arg(trailing_var_arg = true)]
    pub(crate) orders: Vec<String>,
}
