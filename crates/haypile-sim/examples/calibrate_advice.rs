//! A test of advice: for each trace, cut and budget, a row with its certainty and its regret.
//!
//! `cargo run --release -p haypile-sim --example calibrate_advice -- [FORMAT=]TRACE...`
//!
//! `advise` reads a part of the trace. The regret is that of the part after it, which it has not seen: the hit ratio of the
//! best of all policies that may be advised, minus that of the advised one, each at the advised size and warmed by the part
//! that `advise` has read. The regrets of the rolling tests, on which the certainty rests, come last, with the best hit ratio in each. Entries are counted in objects. A policy's own hash seed is that of the simulation.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

mod support;

use std::env;
use std::error::Error;
use std::ops::{ControlFlow, Range};

use haypile_sim::Trace;
use haypile_sim::advise::{Question, advise};
use haypile_sim::simulate::{Accounting, Contender, Options, Warmup, simulate};
use haypile_sim::trace::{BuildOptions, Op, Request, Sink, TraceBuilder};
use support::named_trace;

/// Budgets, as thousandths of the distinct keys that `advise` has seen.
const BUDGETS: [u64; 9] = [2, 5, 10, 20, 50, 100, 200, 300, 500];

/// The begin and the end of the part that `advise` reads, and the end of the part after it, in twelfths of the trace.
const CUTS: [[usize; 3]; 3] = [[0, 6, 9], [0, 8, 12], [3, 9, 12]];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "trace,requests,keys,from,cut,end,budget,policy,level,hit_ratio,best,best_hit_ratio,regret,rolling,parts"
    );
    for argument in env::args().skip(1) {
        let (name, trace) = match named_trace(&argument) {
            Ok(named) => named,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        for [from, cut, end] in CUTS {
            let at = |twelfths| trace.requests() * twelfths / 12;
            let (seen, whole) =
                (part(&trace, at(from)..at(cut))?, part(&trace, at(from)..at(end))?);
            for thousandths in BUDGETS {
                let budget = u64::from(seen.keys()) * thousandths / 1_000;
                if budget < 10 {
                    continue;
                }
                if let Some(row) = row(&whole, &seen, budget)? {
                    let (requests, keys) = (trace.requests(), trace.keys());
                    println!("{name},{requests},{keys},{from},{cut},{end},{budget},{row}");
                }
            }
        }
    }
    Ok(())
}

/// Returns a trace of these requests of another one, without their sizes and times.
fn part(trace: &Trace, requests: Range<usize>) -> Result<Trace, Box<dyn Error>> {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    for at in requests {
        builder.push(Request {
            key: trace.key(trace.ids()[at].get()),
            size_bytes: None,
            op: trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[at])),
            time_us: None,
            ttl_us: None,
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
    let rolling: Vec<String> =
        choice.rolling.iter().map(|test| format!("{:.4}", test.regret())).collect();
    let parts: Vec<String> =
        choice.rolling.iter().map(|test| format!("{:.4}", test.best_hit_ratio)).collect();
    Ok(Some(format!(
        "{},{},{:.4},{},{:.4},{:.4},{},{}",
        own.1,
        level.trim_matches('"'),
        own.0,
        best.1,
        best.0,
        best.0 - own.0,
        rolling.join(" "),
        parts.join(" ")
    )))
}
