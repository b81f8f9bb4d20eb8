//! One benchmark job: a JSON line on standard input, a JSON line on standard output.
//!
//! `scripts/bench-simulate` starts this program once per job, in turns with a rival's. A job has
//! `trace` (a path), `policy`, `size`, `unit` (`objects` or `bytes`); the answer adds `requests`,
//! `keys`, `misses`, `cpu_ns` and `wall_ns` of the timed pass, and what memory the process took in
//! all and beyond the trace. Reading the trace is not timed, and one pass warms up.
//!
//! In addition to the policies: `lru-curve`, the whole miss-ratio curve in one pass; `read`, reading and
//! numbering the keys of the file itself; `sweep`, five policies at eight sizes with two threads.

#![allow(clippy::print_stdout, reason = "a program prints")]

use std::error::Error;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, hint};

use haypile_sim::Trace;
use haypile_sim::curve::{LruCurve, Sampling};
use haypile_sim::simulate::{Accounting, Contender, Operations, Options, Sweep, simulate};
use haypile_sim::trace::format::{Format, ReadOptions, TraceReader};
use haypile_sim::trace::{BuildOptions, TraceBuilder};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
struct Job {
    trace: PathBuf,
    policy: String,
    size: u64,
    unit: String,
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    job: Job,
    requests: u64,
    keys: u32,
    misses: u64,
    cpu_ns: u64,
    wall_ns: u64,
    peak_bytes: u64,
    peak_beyond_trace_bytes: u64,
    version: &'static str,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let job: Job = serde_json::from_str(&text)?;
    let trace = read(&job)?;
    let with_trace = memory_bytes("VmRSS")?;
    // What reading needed is not what simulating needs.
    fs::write("/proc/self/clear_refs", "5")?;
    run(&job, &trace)?;
    let (misses, cpu, wall) = timed(|| run(&job, &trace))?;
    let peak_bytes = memory_bytes("VmHWM")?;
    let row = Row {
        requests: trace.requests() as u64,
        keys: trace.keys(),
        misses,
        cpu_ns: u64::try_from(cpu.as_nanos())?,
        wall_ns: u64::try_from(wall.as_nanos())?,
        peak_bytes,
        peak_beyond_trace_bytes: peak_bytes.saturating_sub(with_trace),
        version: env!("CARGO_PKG_VERSION"),
        job,
    };
    println!("{}", serde_json::to_string(&row)?);
    Ok(())
}

fn timed<T>(
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<(T, Duration, Duration), Box<dyn Error>> {
    let (cpu, wall) = (clock_gettime(ClockId::ProcessCPUTime), Instant::now());
    let result = work()?;
    let wall = wall.elapsed();
    let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime) - cpu)?;
    Ok((result, cpu, wall))
}

fn read(job: &Job) -> Result<Trace, Box<dyn Error>> {
    let reader = TraceReader::open(&[&job.trace], &ReadOptions::default())?;
    if reader.format() == Format::Hpt {
        return Ok(Trace::open(&job.trace)?);
    }
    let next_use = job.policy.starts_with("belady");
    let mut builder = TraceBuilder::new(BuildOptions { next_use, ..BuildOptions::default() });
    reader.read(&mut builder)?;
    Ok(builder.finish()?)
}

/// Does the job; gives the misses, where there are any.
fn run(job: &Job, trace: &Trace) -> Result<u64, Box<dyn Error>> {
    let accounting = match job.unit.as_str() {
        "objects" => Accounting::Objects,
        "bytes" => Accounting::Bytes,
        unit => return Err(format!("unit '{unit}' is neither objects nor bytes").into()),
    };
    let mut go_on = |_| ControlFlow::Continue(());
    let options = Options { operations: Operations::AllReads, ..Options::new(accounting) };
    match job.policy.as_str() {
        "lru-curve" => {
            let operations = Operations::AllReads;
            let curve =
                LruCurve::measure(trace, accounting, operations, Sampling::Exact, &mut go_on)?;
            hint::black_box(curve);
            Ok(0)
        }
        "read" => {
            hint::black_box(read(job)?);
            Ok(0)
        }
        "sweep" => {
            let contenders = Contender::parse_list("fifo,lru,slru,sieve,s3fifo")?;
            let capacities = (1..=8).map(|eighth| u64::from(trace.keys()) * eighth / 16).collect();
            let sweep = Sweep { contenders, capacities, options, jobs: 2 };
            hint::black_box(sweep.run(trace, &())?);
            Ok(0)
        }
        policy => {
            let outcome = simulate(trace, &policy.parse()?, job.size, &options, &mut go_on)?;
            Ok(outcome.expect("nothing interrupts it").counts.misses)
        }
    }
}

/// A line of `/proc/self/status` in bytes.
fn memory_bytes(name: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib * 1024)
}
