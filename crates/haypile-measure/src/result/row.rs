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

/// A run of an experiment: what the user asked for, and on which machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the results format of this run's rows.
    pub schema: u64,
    /// The name by which samples refer to the run: its time in UTC and random letters.
    pub run: String,
    /// The name of the experiment, such as `micro`.
    pub experiment: String,
    /// The question of a user's experiment file; `None` if the experiment's own file was used.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// The command line of the run.
    pub command: String,
    /// The seed of all random choices of the run.
    pub seed: u64,
    /// The machine on which the run was measured.
    pub machine: Machine,
    /// The program that measured the run.
    pub program: Program,
    /// The time in UTC at which the run began, in the form of RFC 3339.
    pub started: String,
}

/// One measurement of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The version of the results format.
    pub schema: u64,
    /// The name of the sample's run.
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
    /// The number of the block, from 0. Samples of one case and block are compared with each other.
    pub block: u64,
    /// The position of the subject within its block, from 0; drawn at random for each block.
    pub position: u64,
    /// The number of timed operations, one per key, over all threads, processes and executions.
    pub operations: u64,
    /// The wall time in nanoseconds of the slowest process, from the start signal to the end of its
    /// last thread.
    pub wall_ns: u64,
    /// The processor time of all processes of the subject in nanoseconds, in user space and in the
    /// kernel.
    pub cpu_ns: u64,
    /// The processor time of the cache's server during the sample in nanoseconds, if the subject
    /// has one.
    #[serde(default)]
    pub server_cpu_ns: Option<u64>,
    /// The number of reads that found their key.
    pub hits: u64,
    /// The number of reads that did not find their key.
    pub misses: u64,
    /// Resident memory in bytes after the timed part, minus that before the subject was opened,
    /// over all processes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Latencies of single operations by kind (`get`, `set`), if they were measured.
    #[serde(default)]
    pub latency_ns: Option<BTreeMap<String, Latency>>,
    /// Further numbers that the runner reports, by name.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// The processes over time, of a start that was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The system calls of a start that was traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<StartCalls>>,
    /// Other work on the machine during the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The error, if one occurred. All numbers of such a sample are zero or meaningless.
    #[serde(default)]
    pub error: Option<String>,
}

/// The name of the count that marks a sample whose memory is less than half of the values that it found in memory: the
/// bytes of these values.
pub const MEMORY_FOUND: &str = "memory_found_bytes";

impl Sample {
    /// Creates a sample of a run that has no results yet.
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

/// The identity of a subject: name, version, language and program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubjectId {
    /// The subject's name, as the user wrote it.
    pub name: String,
    /// The version of the cache, as the runner reports it.
    pub version: String,
    /// The language that the cache is used from.
    pub language: String,
    /// The program that ran the subject: `haypile`, or a name from the command line.
    pub program: String,
}

/// The latencies of single operations of one kind, in nanoseconds. Reading the clock is included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of operations whose latency was measured.
    pub count: u64,
    /// The median latency.
    pub p50: u64,
    /// The 90th percentile of the latencies.
    pub p90: u64,
    /// The 99th percentile of the latencies.
    pub p99: u64,
    /// The 99.9th percentile of the latencies.
    pub p999: u64,
    /// The longest latency.
    pub max: u64,
    /// The arithmetic mean of the latencies.
    pub mean: f64,
}

impl Sample {
    /// Returns the sample's processor time per operation in nanoseconds; `None` for an error.
    pub fn cpu_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.cpu_ns)
    }

    /// Returns the sample's wall time per operation in nanoseconds; `None` for an error. With
    /// several threads it is the wall time divided by the operations of all.
    pub fn wall_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.wall_ns)
    }

    fn per_operation(&self, total_ns: u64) -> Option<f64> {
        let is_good = self.error.is_none() && self.operations > 0;
        is_good.then(|| total_ns as f64 / self.operations as f64)
    }
}
