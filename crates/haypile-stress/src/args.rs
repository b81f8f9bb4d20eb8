//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};
use haypile::ByteSize;

use crate::differential::ranges::{self, Ranges};
use crate::differential::{self, Allowed, Plan, Retention};
use crate::filler::LONGEST_SLICE_BYTES;
use crate::panics;
use crate::processes::{self, OperationKind};
use crate::target::{self, Target};
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
    /// Have many processes use one cache, kill and stop them, and check what each reads
    Processes(Processes),
    /// Be one process of a test
    #[command(hide = true)]
    Work { process: u64, life: u64 },
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

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile-stress processes 'file:{dir}/cache,size=8MiB' --values 0-60KB --deny busy,full
  haypile-stress processes 'file:{dir}/cache,size=16MiB' --values 300KB-600KB --live 50% --kills 100
  haypile-stress processes 'memory:stale=50ms+file:{dir}/cache' --writers 4 --stops 20")]
struct Processes {
    /// The cache, which several processes can open
    url: String,
    /// Seed of all choices; the order in which processes run is the system's
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time after which the processes end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    seconds: f64,
    /// Operations of the writing processes together after which all end
    #[arg(long)]
    steps: Option<u64>,
    /// Processes that write
    #[arg(long, default_value_t = 4)]
    writers: u64,
    /// Processes that only read
    #[arg(long, default_value_t = 1)]
    readers: u64,
    /// Threads of each process
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Keys of each writing thread
    #[arg(long, default_value_t = 100)]
    keys: u64,
    /// Shortest and longest value; one of less than 24 bytes has 24
    #[arg(long, value_name = "SIZE-SIZE", default_value = "0-4KB", value_parser = sizes)]
    values: (u64, u64),
    /// Values that each thread keeps in place
    #[arg(long, default_value_t = 2)]
    pins: usize,
    /// Bound on all live entries, of the cache's capacity or in bytes: nothing may be missing then
    #[arg(long, value_name = "PERCENT%|SIZE")]
    live: Option<Live>,
    /// Processes to kill, at random instants; each has a successor. The first is never killed
    #[arg(long, default_value_t = 0)]
    kills: u64,
    /// Processes to stop, at random instants
    #[arg(long, default_value_t = 0)]
    stops: u64,
    /// Longest stop, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 300)]
    stop_time: u64,
    /// Operations to perform [default: all]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    operations: Vec<OperationKind>,
    /// Refusals that are wrong
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    deny: Vec<Refusal>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A bound on live entries.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Live {
    Percent(u64),
    Bytes(u64),
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

/// Runs the stress test program `haypile-stress` with the arguments of the process.
pub fn run() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Differential(arguments) => arguments.run(),
        Command::Processes(arguments) => arguments.run(),
        Command::Work { process, life } => processes::work(process, life).map(|()| true),
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

impl Processes {
    fn plan(&self) -> Result<processes::Plan> {
        let denies = |refusal| self.deny.contains(&refusal);
        let live_bytes = match self.live {
            None => None,
            Some(Live::Bytes(bytes)) => Some(bytes),
            Some(Live::Percent(percent)) => Some(capacity_bytes(&self.url)? / 100 * percent),
        };
        Ok(processes::Plan {
            url: self.url.clone(),
            directory: PathBuf::new(),
            seed: self.seed,
            time: Duration::try_from_secs_f64(self.seconds)?,
            steps: self.steps,
            writers: self.writers,
            readers: self.readers,
            threads: self.threads,
            keys: self.keys.max(1),
            least_value_bytes: self.values.0,
            most_value_bytes: self.values.1,
            pins: self.pins,
            live_bytes,
            kills: self.kills,
            stops: self.stops,
            longest_stop: Duration::from_millis(self.stop_time),
            operations: self.operations.clone(),
            denies_busy: denies(Refusal::Busy),
            denies_full: denies(Refusal::Full),
        })
    }

    /// Returns whether nothing is wrong.
    #[expect(clippy::print_stdout, reason = "the program's answer")]
    fn run(&self) -> Result<bool> {
        let mut watch = Watch::new()?;
        let report = processes::test(self.plan()?, &mut watch)?;
        watch.finish();
        if self.json {
            println!("{}", serde_json::to_string(&report)?);
        } else {
            println!("{report}");
        }
        Ok(report.is_right)
    }
}

/// Returns the capacity of the cache of a URL.
fn capacity_bytes(url: &str) -> Result<u64> {
    let target = Target::new(url)?;
    let capacity_bytes = target::open(target.url(), None, 1)?.limits().capacity_bytes;
    capacity_bytes.context("this cache has no size; give the bound on live entries in bytes")
}

impl FromStr for Live {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            return Ok(Self::Bytes(size(text)?));
        };
        match percent.parse() {
            Ok(percent @ 0..=100) => Ok(Self::Percent(percent)),
            _ => Err(format!("'{text}' is not a percentage from 0% to 100%")),
        }
    }
}

/// Returns the bounds of a range of sizes.
fn sizes(text: &str) -> Result<(u64, u64), String> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let (least, most) = (size(least)?, size(most)?);
    let longest = LONGEST_SLICE_BYTES as u64;
    if least > most || most > longest {
        return Err(format!("'{text}' is not a range of sizes up to {}", ByteSize(longest)));
    }
    Ok((least, most))
}

fn size(text: &str) -> Result<u64, String> {
    text.parse().map(|ByteSize(bytes)| bytes).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
        assert_eq!(sizes("1KB-2KiB"), Ok((1_000, 2_048)));
        assert!(sizes("2-1").is_err() && sizes("1GiB").is_err());
        assert_eq!("31%".parse(), Ok(Live::Percent(31)));
        assert_eq!("5MB".parse(), Ok(Live::Bytes(5_000_000)));
        assert!("101%".parse::<Live>().is_err());
    }
}
