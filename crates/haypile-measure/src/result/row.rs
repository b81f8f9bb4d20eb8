//! The rows of a results file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::asked::Asked;
use super::calls::StartCalls;
use super::load::Load;
use super::machine::{Machine, Program};
use super::timeline::Timeline;

/// The parameters of an experiment's case by name, with units in the names: `value_bytes`, `threads`. Two samples
/// belong to the same case if its name and all parameters are the same.
pub type Parameters = Map<String, Value>;

/// A row (line) of a file of benchmark results: a run of an experiment, or a sample (one measurement).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Row {
    /// The row that begins a run.
    Run(Run),
    /// One measurement.
    Sample(Sample),
}

/// A run of an experiment: the user's command, the machine and the program that measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The version of the results format in which the run and its samples are written.
    pub schema: u64,
    /// The name by which samples refer to the run: its time in UTC and random letters.
    pub run: String,
    /// The name of the experiment that was run, such as `micro`.
    pub experiment: String,
    /// The question of a user's experiment file; `None` if the experiment's own file was used.
    #[serde(default)]
    pub asked: Option<Asked>,
    /// The command line that started the run of the experiment.
    pub command: String,
    /// The seed of all random choices of the run, such as the order of the caches.
    pub seed: u64,
    /// The machine on which the run was measured.
    pub machine: Machine,
    /// The program that measured the run: its version and how it was built.
    pub program: Program,
    /// The time in UTC at which the run of the experiment began, in the form of RFC 3339.
    pub started: String,
}

/// One measurement of one subject (cache under test).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The version of the results format in which the sample is written.
    pub schema: u64,
    /// The name of the run of the experiment that the sample belongs to.
    pub run: String,
    /// The name of the experiment that was measured, such as `micro`.
    pub experiment: String,
    /// The name of the experiment's case.
    pub case: String,
    /// The parameters of the experiment's case, such as its number of threads.
    pub parameters: Parameters,
    /// The seed of the sample's random choices of keys and operations.
    pub seed: u64,
    /// The subject (cache under test) that was measured.
    pub subject: SubjectId,
    /// The number of the block (round) of the run, from 0. Samples of one case and block are compared with each other.
    pub block: u64,
    /// The position of the subject in the random order of its block (round), from 0.
    pub position: u64,
    /// The number of the sample's timed operations, one per key, over all threads, processes and executions.
    pub operations: u64,
    /// The wall time in nanoseconds of the sample's slowest process, from the start signal to the end of its last
    /// thread.
    pub wall_ns: u64,
    /// The processor time of all processes of the subject (cache under test) in nanoseconds, in user space and in the
    /// kernel, without a server's.
    pub cpu_ns: u64,
    /// The processor time of the cache's server during the sample in nanoseconds; `None` if the cache does not have a
    /// server.
    #[serde(default)]
    pub server_cpu_ns: Option<u64>,
    /// The number of reads that found their key.
    pub hits: u64,
    /// The number of reads that did not find their key.
    pub misses: u64,
    /// The resident memory in bytes after the timed part, minus that before the cache was opened, over all processes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The latencies of single operations by kind (`get`, `set`); `None` if they were not measured.
    #[serde(default)]
    pub latency_ns: Option<BTreeMap<String, Latency>>,
    /// Further numbers that the program which ran the cache reports, by name.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// The processes and their resources over time, of a program's start that was watched; `None` for other samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The system calls of a program's start that was traced; `None` for other samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Box<StartCalls>>,
    /// Other work on the machine during the sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The text of the sample's error, if one occurred. All numbers of such a sample are zero or meaningless.
    #[serde(default)]
    pub error: Option<String>,
}

/// The name of the count that marks a sample whose memory is less than half of the values that it found in memory: the
/// bytes of these values.
pub const MEMORY_FOUND: &str = "memory_found_bytes";

impl Sample {
    /// Creates a sample of a run that has no results yet, for a subject in a case.
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

/// The identity of a subject (cache under test): name, version, language and program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SubjectId {
    /// The name of the subject (cache under test) with its options, as the user wrote it.
    pub name: String,
    /// The version of the cache, as the program that ran it reports it.
    pub version: String,
    /// The programming language that the cache is used from.
    pub language: String,
    /// The program that ran the subject: `haypile`, or a name from the command line.
    pub program: String,
}

/// The latencies of single cache operations of one kind (such as reads) in a sample, in nanoseconds. Reading the clock
/// is included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number of single operations whose latency was measured.
    pub count: u64,
    /// The median latency of the single operations, in nanoseconds.
    pub p50: u64,
    /// The 90th percentile of the latencies, in nanoseconds.
    pub p90: u64,
    /// The 99th percentile of the latencies, in nanoseconds.
    pub p99: u64,
    /// The 99.9th percentile of the latencies, in nanoseconds.
    pub p999: u64,
    /// The longest latency of a single operation, in nanoseconds.
    pub max: u64,
    /// The arithmetic mean of the latencies, in nanoseconds.
    pub mean: f64,
}

impl Sample {
    /// Returns the sample's processor time per operation in nanoseconds; `None` for an error.
    pub fn cpu_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.cpu_ns)
    }

    /// Returns the sample's wall time per operation in nanoseconds; `None` for an error. With several threads it is the
    /// wall time divided by the operations of all threads.
    pub fn wall_ns_per_operation(&self) -> Option<f64> {
        self.per_operation(self.wall_ns)
    }

    fn per_operation(&self, total_ns: u64) -> Option<f64> {
        let is_good = self.error.is_none() && self.operations > 0;
        is_good.then(|| total_ns as f64 / self.operations as f64)
    }
}
