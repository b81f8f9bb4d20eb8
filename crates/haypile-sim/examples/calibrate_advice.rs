//! A test of advice: for each trace and budget, a row with its certainty and its regret.
//!
//! `cargo run --release -p haypile-sim --example calibrate_advice -- TRACE...`
//!
//! `advise` reads the first two thirds of the trace. The regret is that of the last third: the hit ratio of the best of
//! all policies that may be advised, minus that of the advised one, each at the advised size and warmed by the first two
//! thirds. A policy's own hash seed is that of the simulation.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

use std::env;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;

use haypile_sim::Trace;
use haypile_sim::advise::{Question, advise};
use haypile_sim::simulate::{Accounting, Contender, Options, Warmup, simulate};
use haypile_sim::trace::format::{self, ReadOptions};
use haypile_sim::trace::{BuildOptions, Op, Request, Sink, TraceBuilder};

/// Budgets, as thousandths of the distinct keys.
const BUDGETS: [u64; 5] = [3, 10, 30, 100, 300];

fn main() -> Result<(), Box<dyn Error>> {
    println!("trace,requests,keys,budget,policy,level,hit_ratio,best,best_hit_ratio,regret");
    for path in env::args_os().skip(1).map(PathBuf::from) {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        if let Err(error) = format::read(&[&path], &ReadOptions::default(), &mut builder) {
            eprintln!("{error}");
            continue;
        }
        let trace = builder.finish()?;
        let seen = beginning(&trace, trace.requests() / 3 * 2)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for thousandths in BUDGETS {
            let budget = u64::from(seen.keys()) * thousandths / 1_000;
            if budget < 10 {
                continue;
            }
            if let Some(row) = row(&trace, &seen, budget)? {
                println!("{name},{},{},{budget},{row}", trace.requests(), trace.keys());
            }
        }
    }
    Ok(())
}

/// The first requests of a trace.
fn beginning(trace: &Trace, requests: usize) -> Result<Trace, Box<dyn Error>> {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for (at, id) in trace.ids().iter().enumerate().take(requests) {
        builder.push(Request {
            key: trace.key(id.get()),
            size_bytes: None,
            op: trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[at])),
            time_us: None,
        })?;
    }
    Ok(builder.finish()?)
}

fn row(trace: &Trace, seen: &Trace, budget: u64) -> Result<Option<String>, Box<dyn Error>> {
    let question = Question {
        budget: Some(budget),
        accounting: Some(Accounting::Objects),
        jobs: 2,
        ..Question::new()
    };
    let advice = advise(seen, &question, &())?.ok_or("nobody ends it")?;
    let Some(choice) = &advice.choice else { return Ok(None) };
    let options = Options {
        warmup: Warmup::Requests(seen.requests() as u64),
        ..Options::new(Accounting::Objects)
    };
    let mut ratios = Vec::new();
    for policy in &question.policies {
        let contender = Contender::Policy(policy.clone());
        let mut go_on = |_| ControlFlow::Continue(());
        let outcome = simulate(trace, &contender, choice.capacity, &options, &mut go_on)?;
        let outcome = outcome.ok_or("nobody ends it")?;
        ratios.push((outcome.counts.hit_ratio(), policy.to_string()));
    }
    let best = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0)).ok_or("policies")?;
    let own = ratios.iter().find(|ratio| ratio.1 == choice.policy).ok_or("a policy")?;
    let level = serde_json::to_string(&advice.certainty(choice).level)?;
    Ok(Some(format!(
        "{},{},{:.4},{},{:.4},{:.4}",
        own.1,
        level.trim_matches('"'),
        own.0,
        best.1,
        best.0,
        best.0 - own.0
    )))
}
