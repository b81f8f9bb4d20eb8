//! The command line.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use haypile::ByteSize;

use crate::differential::ranges::{self, Ranges};
use crate::differential::{self, Allowed, Plan, Retention};
use crate::panics;
use crate::watch::Watch;

/// Exit status where something is wrong with the cache.
const WRONG: u8 = 1;
/// Exit status of wrong arguments, and of a test that could not be made.
const FAILURE: u8 = 2;

/// Search for wrong values in caches
#[derive(Debug, Parser)]
#[command(name = "haypile-stress", version, max_term_width = 100)]
#[command(after_help = "\
In a URL, {dir} stands for a new directory that is removed at the end. A cache that the URL names
otherwise is cleared at the beginning.

Exit status: 0 nothing wrong; 1 something wrong; 2 wrong arguments, or the test could not be made.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Perform random operations on a cache and on a plain model, and compare
    Differential(Differential),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile-stress differential memory:size=1MiB,policy=lru
  haypile-stress differential 'file:{dir}/cache,size=4MiB,compress=lz4' --namespaces 3 --seconds 60
  haypile-stress differential 'memory:stale=1h+file:{dir}/cache' --replay 7 --only 3,12,40")]
struct Differential {
    /// The cache
    url: String,
    /// Seed of the first run: it decides every step
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Steps of a run
    #[arg(long, default_value_t = 20_000)]
    steps: u64,
    /// Go on with the next seeds for this number of seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Perform the run of this seed, and print each step
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seed", "seconds"])]
    replay: Option<u64>,
    /// Perform these steps alone, as a failure names them
    #[arg(long, value_name = "STEP,FIRST-LAST,...", value_parser = ranges::parse)]
    only: Option<Ranges>,
    /// Number of keys; every sixth is an unusual one
    #[arg(long, default_value_t = 48)]
    keys: u16,
    /// Longest value
    #[arg(long, value_name = "SIZE", default_value = "1500KB")]
    longest: ByteSize,
    /// Users of the cache in namespaces of their own
    #[arg(long, default_value_t = 0)]
    namespaces: usize,
    /// Handles of each user, where several can use one cache
    #[arg(long, default_value_t = 2)]
    handles: usize,
    /// Values that are kept in place at once
    #[arg(long, default_value_t = 8)]
    pins: usize,
    /// Which entries may be missing: those that the documents of the cache permit, none or any
    #[arg(long, value_name = "RULE", default_value = "documented")]
    missing: Missing,
    /// Refusals that are not wrong
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    allow: Vec<Refusal>,
    /// Longest time for shortening a failing run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    shrink: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Missing {
    Documented,
    None,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Refusal {
    Busy,
    Full,
}

/// Runs the program with the arguments of the process.
pub fn run() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Differential(arguments) => arguments.run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(WRONG),
        Err(error) => {
            eprintln!("haypile-stress: {error:#}");
            ExitCode::from(FAILURE)
        }
    }
}

impl Differential {
    fn plan(&self) -> Plan {
        let allows = |refusal| self.allow.contains(&refusal);
        Plan {
            url: self.url.clone(),
            seed: self.replay.unwrap_or(self.seed),
            steps: self.steps,
            time: self.seconds.map(Duration::from_secs),
            keys: self.keys,
            longest_value_bytes: usize::try_from(self.longest.0).unwrap_or(usize::MAX),
            namespaces: self.namespaces,
            handles: self.handles,
            pins: self.pins,
            retention: match self.missing {
                Missing::Documented => None,
                Missing::None => Some(Retention::KeepsAll),
                Missing::Any => Some(Retention::MayForget),
            },
            allows: Allowed { busy: allows(Refusal::Busy), full: allows(Refusal::Full) },
            is_verbose: self.replay.is_some(),
            only: self.only.clone().map(|Ranges(numbers)| numbers),
            shrink_time: Duration::from_secs(self.shrink),
        }
    }

    /// Returns whether nothing is wrong.
    #[expect(clippy::print_stdout, reason = "the program's answer")]
    fn run(&self) -> Result<bool> {
        let mut watch = Watch::new()?;
        panics::keep_silent();
        let report = differential::test(&self.plan(), &mut watch)?;
        watch.finish();
        if self.json {
            println!("{}", serde_json::to_string(&report)?);
        } else {
            println!("{report}");
        }
        Ok(report.failure.is_none())
    }
}
