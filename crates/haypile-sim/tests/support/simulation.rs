//! Shared parts of the simulator's tests: traces, and a simulation in one line.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use haypile_sim::Trace;
use haypile_sim::simulate::{Accounting, Options, Outcome, simulate};
use haypile_sim::trace::format::{Format, ReadOptions, read};
use haypile_sim::trace::generate::Spec;
use haypile_sim::trace::{BuildOptions, Key, Op, Request, Sink, TraceBuilder};

/// Returns the directory of traces that may not be committed: `../shared/traces` next to the
/// workspace, or `traces` below `HAYPILE_SHARED`. Prints a line if it does not exist.
pub(crate) fn shared_traces() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("HAYPILE_SHARED").map_or_else(default, PathBuf::from);
    let traces = shared.join("traces");
    if !traces.is_dir() {
        eprintln!("skipped: there is no directory {}", traces.display());
        return None;
    }
    Some(traces)
}

/// Reads a file through the readers; headerless integers need their format named.
pub(crate) fn read_trace(path: &Path, format: Option<Format>) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let options = ReadOptions { format, ..ReadOptions::default() };
    let report = read(&[path], &options, &mut builder).unwrap();
    let trace = builder.finish().unwrap();
    assert_eq!(report.requests, trace.requests() as u64);
    assert_eq!(report.bad, 0);
    trace
}

/// The trace in the repository: the files that a build reads, writes and removes.
pub(crate) fn redis_build() -> Trace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/redis-build.csv.zst");
    read_trace(&path, None)
}

/// A generated trace.
pub(crate) fn generate(spec: &Spec) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    spec.generator().unwrap().run(&mut builder).unwrap();
    builder.finish().unwrap()
}

/// A generated trace of a pattern, without sizes or writes.
pub(crate) fn pattern(mixture: &str, requests: u64) -> Trace {
    generate(&Spec::new(mixture.parse().unwrap(), requests))
}

/// A trace of `(key, operation, bytes)`.
pub(crate) fn trace_of(requests: &[(u64, Op, u64)]) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for &(key, op, bytes) in requests {
        let key = Key::Number(key);
        builder
            .push(Request {
                key,
                size_bytes: Some(bytes),
                op,
                time_us: None,
                ttl_us: None,
                cost_ns: None,
            })
            .unwrap();
    }
    builder.finish().unwrap()
}

/// A trace of reads without sizes.
pub(crate) fn reads_of(keys: &[u64]) -> Trace {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for &key in keys {
        builder.push(Request::read(Key::Number(key))).unwrap();
    }
    builder.finish().unwrap()
}

/// One simulation to its end.
pub(crate) fn run(trace: &Trace, contender: &str, capacity: u64, options: &Options) -> Outcome {
    let mut progress = |_| ControlFlow::Continue(());
    simulate(trace, &contender.parse().unwrap(), capacity, options, &mut progress)
        .unwrap()
        .expect("nobody ends it")
}

/// One simulation to its end, everything counted.
pub(crate) fn run_in(
    trace: &Trace,
    contender: &str,
    capacity: u64,
    accounting: Accounting,
) -> Outcome {
    run(trace, contender, capacity, &Options::new(accounting))
}
