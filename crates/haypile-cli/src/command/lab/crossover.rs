//! `haypile lab crossover`

use std::process::ExitCode;

use anyhow::{Context, bail};
use haypile::ByteSize;
use haypile_lab::experiment::crossover::{self, Found, Options, SUBJECTS, first_sizes};
use haypile_lab::measure::Contender;
use haypile_lab::result::Sample;

use super::measuring;
use crate::args::lab::Crossover;
use crate::output::table::table;

/// Finds the size from which a cache is clearly slower.
pub(crate) fn run(arguments: &Crossover) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let subjects = measuring.subjects(SUBJECTS);
    let [baseline, _, ..] = &subjects[..] else {
        bail!("a crossover needs at least two caches; name them with --subjects");
    };
    let bytes = |name: &str, ByteSize(bytes): ByteSize| {
        u32::try_from(bytes)
            .ok()
            .filter(|bytes| (1..=1 << 30).contains(bytes))
            .with_context(|| format!("invalid {name} {} (from 1 byte to 1 GiB)", ByteSize(bytes)))
    };
    let options = Options {
        baseline: baseline.to_string(),
        min_bytes: bytes("--min", arguments.min)?,
        max_bytes: bytes("--max", arguments.max)?,
        margin: arguments.margin,
        precision: 1.0 + arguments.precision,
        total_bytes: arguments.total.0,
        operations: arguments.operations,
        seed: measuring.seed,
    };
    if options.min_bytes > options.max_bytes {
        bail!("--min {} is above --max {}", arguments.min, arguments.max);
    }
    if measuring.blocks < 2 {
        bail!(
            "a crossover needs confidence intervals; measure at least 2 blocks, as in --blocks 3"
        );
    }
    let sizes = first_sizes(&options);
    let cases = sizes.iter().map(|&size| crossover::case(size, &options)).collect();
    let then = move |samples: &[Sample]| {
        let size = crossover::next(samples, &options)?;
        Some(crossover::case(size, &options))
    };
    measuring::run_adaptive(
        crossover::NAME,
        cases,
        Some(Box::new(then)),
        &subjects,
        measuring,
        text,
    )
}

/// Returns the answer for each cache with its effects, then the tables of every experiment.
fn text(samples: &[Sample], contenders: &[Contender]) -> String {
    let found = crossover::find(samples);
    let answers = found.iter().map(|found| format!("{}\n{}", found.answer(), effects(found)));
    let mut texts: Vec<String> = answers.collect();
    texts.push(measuring::table::text(samples, contenders));
    texts.join("\n")
}

fn effects(found: &Found) -> String {
    let header = ["Value bytes", "Wall, times the other", "95 % interval"].map(str::to_owned);
    let row = |(size, effect): &(u32, haypile_lab::statistics::Effect)| {
        let interval = effect.interval().map_or_else(
            || "-".to_owned(),
            |interval| format!("{:.3} to {:.3}", 1.0 + interval.low, 1.0 + interval.high),
        );
        vec![size.to_string(), format!("{:.3}", effect.ratio()), interval]
    };
    table(&header, 0, 1, &found.effects.iter().map(row).collect::<Vec<_>>())
}
