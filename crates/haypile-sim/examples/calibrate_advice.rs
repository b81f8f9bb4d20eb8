//! A test of advice: for each trace, cut and budget, a row with its certainty and its regret.
//!
//! `cargo run --release -p haypile-sim --example calibrate_advice -- [bytes|cost|days] [FORMAT=]TRACE...`
//!
//! `advise` reads a part of the trace. The regret is that of the part after it, which it has not seen: the hit ratio of the
//! best of all policies that may be advised, minus that of the advised one, each at the advised size and warmed by the part
//! that `advise` has read. The regrets of the rolling tests, on which the certainty rests, come last, with the best hit ratio in each.
//! Entries are counted in objects. After the word `bytes`, entries weigh their bytes and caches are judged by the bytes that
//! hits save, as by `advise --by bytes`: budgets are bytes, and all ratios are byte hit ratios. The column `sizes` says where
//! the trace has none: a key has then one between 64 bytes and 64 KiB, uniform in its logarithm, by a hash of its number. After the
//! word `cost`, entries are counted in objects, and caches are judged by the cost that hits save, as by `advise --by cost`: a key has
//! one between .1 ms and 1 s, drawn likewise, and all ratios are shares of it. After the word `days`, caches are judged by hits, and
//! requests have times, evenly spread, by which `advise` reads eight days. A policy's own hash seed is that of the simulation.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

mod support;

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::ops::{ControlFlow, Range};

use haypile_sim::Trace;
use haypile_sim::advise::{Question, advise};
use haypile_sim::simulate::{Accounting, Contender, Goal, MissCost, Options, Warmup, simulate};
use haypile_sim::trace::{BuildOptions, Op, Request, Sink, TraceBuilder};
use support::named_trace;

/// Budgets, as thousandths of the distinct keys that `advise` has seen, or of the bytes of their values.
const BUDGETS: [u64; 9] = [2, 5, 10, 20, 50, 100, 200, 300, 500];

/// Microseconds of a day.
const DAY_US: u64 = 86_400_000_000;

/// The begin and the end of the part that `advise` reads, and the end of the part after it, in twelfths of the trace.
const CUTS: [[usize; 3]; 3] = [[0, 6, 9], [0, 8, 12], [3, 9, 12]];

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "trace,requests,keys,from,cut,end,sizes,budget,policy,level,hit_ratio,best,best_hit_ratio,regret,rolling,parts"
    );
    let mut arguments = env::args().skip(1).peekable();
    let word = arguments.next_if(|word| ["bytes", "cost", "days"].contains(&&**word));
    let (goal, accounting) = match word.as_deref() {
        Some("bytes") => (Goal::Bytes, Accounting::Bytes),
        Some("cost") => (Goal::Cost(MissCost::OfTrace), Accounting::Objects),
        _ => (Goal::Reads, Accounting::Objects),
    };
    for argument in arguments {
        let (name, trace) = match named_trace(&argument) {
            Ok(named) => named,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        let sizes = match (accounting, trace.sizes()) {
            (Accounting::Objects, _) => "none",
            (_, Some(_)) => "own",
            (_, None) => "generated",
        };
        for [from, cut, end] in CUTS {
            let at = |twelfths| trace.requests() * twelfths / 12;
            let between_us = (word.as_deref() == Some("days"))
                .then(|| (8 * DAY_US).div_ceil((at(cut) - at(from) - 1).max(1) as u64));
            let (seen, whole) = (
                part(&trace, at(from)..at(cut), accounting, between_us)?,
                part(&trace, at(from)..at(end), accounting, between_us)?,
            );
            let room = room(&seen);
            for thousandths in BUDGETS {
                let budget = room * thousandths / 1_000;
                // Ten entries of the mean size.
                if budget * u64::from(seen.keys()) < 10 * room {
                    continue;
                }
                if let Some(row) = row(&whole, &seen, budget, goal, accounting)? {
                    let (requests, keys) = (trace.requests(), trace.keys());
                    println!("{name},{requests},{keys},{from},{cut},{end},{sizes},{budget},{row}");
                }
            }
        }
    }
    Ok(())
}

/// Returns the size of a cache that holds all entries of the trace: bytes if it has sizes, and otherwise objects.
fn room(trace: &Trace) -> u64 {
    let Some(sizes) = trace.sizes() else { return u64::from(trace.keys()) };
    let last: HashMap<u32, u64> =
        trace.ids().iter().zip(sizes).map(|(id, size)| (id.get(), u64::from(size.get()))).collect();
    last.values().sum()
}

/// Returns a trace of these requests of another one, with generated costs. Its requests have times that are `between_us` apart, if
/// that is stated, and sizes if entries weigh their bytes.
fn part(
    trace: &Trace,
    requests: Range<usize>,
    accounting: Accounting,
    between_us: Option<u64>,
) -> Result<Trace, Box<dyn Error>> {
    let mut builder = TraceBuilder::new(BuildOptions::default());
    let begin = requests.start;
    for at in requests {
        let id = trace.ids()[at].get();
        let size_bytes = match trace.sizes() {
            _ if accounting == Accounting::Objects => None,
            Some(sizes) => Some(u64::from(sizes[at].get())),
            None => Some(generated(id, 0x9e37_79b9_7f4a_7c15, 64.0, 1_024.0)),
        };
        builder.push(Request {
            key: trace.key(id),
            size_bytes,
            op: trace.ops().map_or(Op::Read, |ops| Op::from_number(ops[at])),
            time_us: between_us.map(|between_us| (at - begin) as u64 * between_us),
            ttl_us: None,
            cost_ns: Some(generated(id, 0xd1b5_4a32_d192_ed03, 1e5, 1e4)),
        })?;
    }
    Ok(builder.finish()?)
}

/// Returns a quantity of a key, from `least` to `times` as much, uniform in its logarithm.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "64 to 1e9")]
fn generated(id: u32, multiplier: u64, least: f64, times: f64) -> u64 {
    // Fibonacci hashing: neighbours, which are often used together, are far apart.
    let hash = u64::from(id + 1).wrapping_mul(multiplier) >> 11;
    let fraction = hash as f64 / (1_u64 << 53) as f64;
    (least * times.powf(fraction)) as u64
}

fn row(
    trace: &Trace,
    seen: &Trace,
    budget: u64,
    goal: Goal,
    accounting: Accounting,
) -> Result<Option<String>, Box<dyn Error>> {
    let question = Question {
        budget: Some(budget),
        accounting: Some(accounting),
        goal,
        jobs: 2,
        ..Question::new()
    };
    let advice = advise(seen, &question, &())?.ok_or("nobody ends it")?;
    let Some(choice) = &advice.choice else { return Ok(None) };
    let options =
        Options { warmup: Warmup::Requests(seen.requests() as u64), ..Options::new(accounting) };
    let mut ratios = Vec::new();
    for policy in &question.policies {
        let contender = Contender::Policy(policy.clone());
        let mut go_on = |_| ControlFlow::Continue(());
        let outcome = simulate(trace, &contender, choice.capacity, &options, &mut go_on)?;
        let outcome = outcome.ok_or("nobody ends it")?;
        ratios.push((goal.saved_ratio(&outcome.counts), policy.to_string()));
    }
    let best = ratios.iter().max_by(|one, other| one.0.total_cmp(&other.0)).ok_or("policies")?;
    let own = ratios.iter().find(|ratio| ratio.1 == choice.policy).ok_or("a policy")?;
    let level = serde_json::to_string(&advice.certainty(choice).level)?;
    let rolling: Vec<String> =
        choice.rolling.iter().map(|test| format!("{:.4}", test.regret())).collect();
    let parts: Vec<String> =
        choice.rolling.iter().map(|test| format!("{:.4}", test.best_saved)).collect();
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
