//! The errors of samples: for each trace, size and policy, the hit ratio of the whole trace and those of samples with several seeds.
//!
//! `cargo run --release -p haypile-sim --example sample_errors -- [FORMAT=]TRACE...`
//!
//! Entries are counted in objects, and in bytes too where the trace has sizes. Sizes are shares of the working set. A row is left out where
//! a sample is too small for its cache, as `haypile simulate` refuses it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "rows go to standard output")]

mod support;

use std::env;
use std::error::Error;
use std::ops::ControlFlow;

use haypile_sim::Trace;
use haypile_sim::simulate::{
    Accounting, Contender, MIN_SAMPLED_KEYS, Options, footprint, least_capacity, simulate,
};
use haypile_sim::trace::Sampling;
use support::named_trace;

/// The rates that are tried, where the sample has enough keys.
const RATES: [f64; 5] = [0.01, 0.03, 0.05, 0.1, 0.3];

/// The seeds of each rate.
const SEEDS: u64 = 8;

/// Sizes, as thousandths of the working set.
const SIZES: [u64; 6] = [5, 20, 50, 100, 200, 500];

/// The policies that `advise` considers, the baseline, and the optimum.
const POLICIES: &str = "s3fifo,sieve,lru,slru,wtinylfu,wtinylfu:window=10,arc,lirs,fifo,belady";

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "trace,requests,keys,accounting,capacity,policy,hit_ratio,rate,sampled_keys,hit_ratios"
    );
    for argument in env::args().skip(1) {
        let (name, trace) = match named_trace(&argument) {
            Ok(named) => named,
            Err(error) => {
                eprintln!("{error}");
                continue;
            }
        };
        rows(&trace, &name)?;
    }
    Ok(())
}

fn rows(trace: &Trace, name: &str) -> Result<(), Box<dyn Error>> {
    let mut samples = Vec::new();
    for rate in RATES {
        if f64::from(trace.keys()) * rate < 1.1 * f64::from(MIN_SAMPLED_KEYS) {
            continue;
        }
        let seeds = (1..=SEEDS).map(|seed| trace.sample(Sampling::new(rate, seed)?));
        samples.push((rate, seeds.collect::<Result<Vec<Trace>, _>>()?));
    }
    let accountings = match trace.sizes() {
        Some(_) => vec![Accounting::Objects, Accounting::Bytes],
        None => vec![Accounting::Objects],
    };
    for accounting in accountings {
        let all = footprint(trace, accounting);
        for thousandths in SIZES {
            let capacity = all / 1_000 * thousandths;
            let enough: Vec<_> = samples
                .iter()
                .filter(|(_, seeds)| {
                    seeds.iter().all(|sample| capacity >= least_capacity(sample, accounting, &[]))
                })
                .collect();
            if enough.is_empty() {
                continue;
            }
            for contender in Contender::parse_list(POLICIES)? {
                let truth = hit_ratio(trace, &contender, capacity, accounting)?;
                for (rate, seeds) in &enough {
                    let estimates: Result<Vec<String>, Box<dyn Error>> = seeds
                        .iter()
                        .map(|sample| {
                            let ratio = hit_ratio(sample, &contender, capacity, accounting)?;
                            Ok(format!("{ratio:.5}"))
                        })
                        .collect();
                    let (requests, keys) = (trace.requests(), trace.keys());
                    println!(
                        "{name},{requests},{keys},{accounting},{capacity},{contender},{truth:.5},{rate},{},{}",
                        seeds[0].keys(),
                        estimates?.join(" ")
                    );
                }
            }
        }
    }
    Ok(())
}

fn hit_ratio(
    trace: &Trace,
    contender: &Contender,
    capacity: u64,
    accounting: Accounting,
) -> Result<f64, Box<dyn Error>> {
    let mut go_on = |_| ControlFlow::Continue(());
    let outcome = simulate(trace, contender, capacity, &Options::new(accounting), &mut go_on)?;
    Ok(outcome.ok_or("nobody ends it")?.counts.hit_ratio())
}
