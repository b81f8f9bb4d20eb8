//! The rows.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::asked::Asked;
use super::calls::StartCalls;
use super::load::Load;
use super::machine::{Machine, Program};
use super::timeline::Timeline;

/// The parameters of a case by name, with units in the names: `value_bytes`, `threads`. Two
/// samples belong to the same case if its name and all parameters are the same.
pub type Parameters = Map<String, Value>;

/// A line of a results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Row {
    /// Begins a run.
    Run(Run),
    /// One measurement.
    Sample(Sample),
}

/// A run of an experiment: what was asked for, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the schema of this run's rows.
    pub schema: u64,
    /// Names the run in its samples: its time in UTC and random letters.
    pub run: String,
    /// Which experiment: `micro`.
    pub experiment: String,
    /// The question, where a user's own file asks it; `None` where the experiment's own file was
    /// taken.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// The command line.
    pub command: String,
    /// The seed of everything random.
    pub seed: u64,
    /// Where it ran.
    pub machine: Machine,
    /// The program that ran it.
    pub program: Program,
    /// When it began, in UTC, as RFC 3339 has it.
    pub started: String,
}

/// One measurement of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The version of the schema.
    pub schema: u64,
    /// The run that it belongs to.
    pub run: String,
    /// Which experiment.
    pub experiment: String,
    /// Which case of it.
    pub case: String,
    /// The parameters of the case.
    pub parameters: Parameters,
    /// The seed of the operations.
    pub seed: u64,
    /// The subject measured.
    pub subject: SubjectId,
    /// The block, from 0. Samples of one case and block are compared with each other.
    pub block: u64,
    /// The place of the subject within its block, from 0; drawn for each block.
    pub position: u64,
    /// The number of timed operations: one per key, over all threads, processes and executions.
    pub operations: u64,
    /// The time of the slowest process from `go` to its last thread's end.
    pub wall_ns: u64,
    /// The processor time of all processes of the subject, in user space and in the kernel.
    pub cpu_ns: u64,
    /// The processor time of the server in the meantime, where the subject has one.
    #[serde(default)]
    pub server_cpu_ns: Option<u64>,
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Memory that is resident after the timed part beyond that before the subject was opened,
    /// over all processes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Times of single operations by the kind of the operation (`get`, `set`), where asked for.
    #[serde(default)]
    pub latency_ns: Option<BTreeMap<String, Latency>>,
    /// Further numbers of the runner by name.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// The course of a start that was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The calls of the system of a start that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<StartCalls>>,
    /// Other work on the machine in the meantime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The error, if one occurred. All numbers of such a row are zero or meaningless.
    #[serde(default)]
    pub error: Option<String>,
}

/// The count of a sample whose memory is less than half of what was found in memory: the bytes of the values that were
/// found.
pub const MEMORY_FOUND: &str = "memory_found_bytes";

impl Sample {
    /// A sample of a run, of which nothing is known yet.
    pub fn blank(
        run: &Run,
        experiment: impl Into<String>,
        case: impl Into<String>,
        parameters: Parameters,
        subject: SubjectId,
    ) -> Self {
        Self {
            schema: super::SCHEMA,
            run: run.run.clone(),
            experiment: experiment.into(),
            case: case.into(),
            parameters,
            seed: run.seed,
            subject,
            block: 0,
            position: 0,
            operations: 0,
            wall_ns: 0,
            cpu_ns: 0,
            server_cpu_ns: None,
            hits: 0,
            misses: 0,
            memory_bytes: None,
            latency_ns: None,
            counts: BTreeMap::new(),
            timeline: None,
            calls: None,
            load: None,
            error: None,
        }
    }
}

/// The identity of a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubjectId {
    /// Its name, as it was asked for.
    pub name: String,
    /// Its version, as the runner says.
    pub version: String,
    /// The language that it is used from.
    pub language: String,
    /// The program that ran it: `haypile`, or what the command line names.
    pub program: String,
}

/// The times of single operations of one kind, in nanoseconds. Reading the clock is included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of operations.
    pub count: u64,
    /// Half of them took at most this.
    pub p50: u64,
    /// 90 % took at most this.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// All of them.
    pub max: u64,
    /// The mean.
    pub mean: f64,
}

impl Sample {
    /// Nanoseconds of processor time per operation; `None` for an error.
    pub fn cpu_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.cpu_ns)
    }

    /// Nanoseconds of wall time per operation; `None` for an error. With several threads it is
    /// the time between two operations of all together.
    pub fn wall_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.wall_ns)
    }

    fn per_operation(&self, total_ns: u64) -> Option<f64> {
        let is_good = self.error.is_none() && self.operations > 0;
        is_good.then(|| total_ns as f64 / self.operations as f64)
    }
}
