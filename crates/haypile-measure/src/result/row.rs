//! The rows of a results file.

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
    /// The row that begins a run.
    Run(Run),
    /// One measurement.
    Sample(Sample),
}

/// A run of an experiment: what was asked for, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the schema of this run's rows.
    pub schema: u64,
    /// The name of the run in its samples: its time in UTC and random letters.
    pub run: String,
    /// The name of the experiment: `micro`.
    pub experiment: String,
    /// The question, where a user's own file asks it; `None` where the experiment's own file was
    /// taken.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// The command line.
    pub command: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The machine on which the run was made.
    pub machine: Machine,
    /// The program that ran it.
    pub program: Program,
    /// The time in UTC at which the run began, in the form of RFC 3339.
    pub started: String,
}

/// One measurement of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The version of the schema.
    pub schema: u64,
    /// The run of the sample.
    pub run: String,
    /// The name of the experiment.
    pub experiment: String,
    /// The name of the experiment's case.
    pub case: String,
    /// The parameters of the case.
    pub parameters: Parameters,
    /// The seed of the operations.
    pub seed: u64,
    /// The subject measured.
    pub subject: SubjectId,
    /// The block, from 0. Samples of one case and block are compared with each other.
    pub block: u64,
    /// The position of the subject within its block, from 0; drawn for each block.
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
    /// Reads that did not find their key.
    pub misses: u64,
    /// Memory that is resident after the timed part beyond that before the subject was opened,
    /// over all processes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Times of single operations by the kind of the operation (`get`, `set`), where asked for.
    #[serde(default)]
    pub latency_ns: Option<BTreeMap<String, Latency>>,
    /// Further numbers that the runner reports, by name.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// The course of a start that was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The calls of the system of a start that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<StartCalls>>,
    /// Other work on the machine during the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The error, if one occurred. All numbers of such a row are zero or meaningless.
    #[serde(default)]
    pub error: Option<String>,
}

/// The name of the count that marks a sample whose memory is less than half of the values that it found in memory: the
/// bytes of these values.
pub const MEMORY_FOUND: &str = "memory_found_bytes";

impl Sample {
    /// Creates a sample of a run without results.
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
    /// The subject's name, as it was asked for.
    pub name: String,
    /// The version of the subject, as the runner reports it.
    pub version: String,
    /// The language that the subject is used from.
    pub language: String,
    /// The program that ran the subject: `haypile`, or a name from the command line.
    pub program: String,
}

/// The times of single operations of one kind, in nanoseconds. Reading the clock is included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of operations.
    pub count: u64,
    /// The median time.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
    /// The longest time.
    pub max: u64,
    /// The arithmetic mean.
    pub mean: f64,
}

impl Sample {
    /// Returns the processor time per operation in nanoseconds; `None` for an error.
    pub fn cpu_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.cpu_ns)
    }

    /// Returns the wall time per operation in nanoseconds; `None` for an error. With several threads it is the time
    /// between two operations of all together.
    pub fn wall_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.wall_ns)
    }

    fn per_operation(&self, total_ns: u64) -> Option<f64> {
        let is_good = self.error.is_none() && self.operations > 0;
        is_good.then(|| total_ns as f64 / self.operations as f64)
    }
}
