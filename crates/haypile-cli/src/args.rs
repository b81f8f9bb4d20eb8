//! Arguments of every command. The help texts, the manual pages and the completions come from the
//! documentation here.

pub(crate) mod cache;
mod cache_file;
mod capacity;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod every_option;
pub(crate) mod file;
mod help;
pub(crate) mod icons;
pub(crate) mod lab;
pub(crate) mod meant;
pub(crate) mod proxy;
pub(crate) mod rivals;
mod value;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread;

use anyhow::bail;
use clap::{Args, Parser, Subcommand, ValueEnum};
use haypile::Ttl;
use haypile_sim::Trace;
use haypile_sim::simulate::{Accounting, Goal, MissCost, Operations, SizeRule, TtlRule, Warmup};
use haypile_sim::trace::format::{
    BlockSize, CsvOptions, Delimiter, Format, ReadOptions, SpcAs, Statuses, TimeUnit,
};
use haypile_sim::trace::generate::{Mixture, Sizes};

pub(crate) use capacity::CapacityArgument;
use haypile_lab::experiment::value::{count, percent};
pub(crate) use help::command;
use value::{AsArgument, assumed_sizes, block_size, columns, objects, positive, ttl, warmup};
pub(crate) use value::{Contenders, Delta, PolicyList, SampleArgument, WindowsArgument};

/// Find out which cache to use, how large to make it, and what it gains
#[derive(Debug, Parser)]
#[command(name = "haypile", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Exit status: 0 done; 1 a negative answer, such as a key that is not there; 2 wrong arguments,
unreadable input, or interrupted.

Your workers recompute the same page: a cache that all processes share
  haypile set file:/tmp/app.haypile user:7 Ada --ttl 1h
  haypile get file:/tmp/app.haypile user:7
  haypile proxy --help

How large must my cache be? From a log, a recording, or an example
  haypile trace example
  haypile advise traces/redis-build.csv.zst --budget 2MiB

You read one of the five measurements: every experiment, with its question and its source
  haypile lab experiments")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate eviction policies and cache sizes on traces
    Simulate(Simulate),
    /// Recommend a policy and a size, with the reasons
    Advise(Advise),
    /// Describe, convert and generate traces
    #[command(after_help = "\
Examples:
  haypile trace info traces/redis-build.csv.zst
  haypile trace generate loop:keys=2000 --requests 10000 | haypile simulate -")]
    Trace {
        #[command(subcommand)]
        command: TraceCommand,
    },
    /// Measure caches
    #[command(after_help = "\
Examples:
  haypile lab micro --subject memory:policy=s3fifo,memory:policy=lru
  haypile lab subjects")]
    Lab {
        #[command(subcommand)]
        command: lab::LabCommand,
    },
    /// Compare two commands: which is faster, and by how much?
    Bench(lab::Bench),
    /// List, install and check other caches that can be measured (rivals)
    #[command(after_help = "\
Examples:
  haypile rivals list
  haypile rivals install fastmmap && haypile rivals check fastmmap")]
    Rivals {
        #[command(subcommand)]
        command: rivals::RivalsCommand,
    },
    /// Answer HTTP requests from a cache, and from the servers behind it
    Proxy(proxy::Proxy),
    /// Find desktop icons, and fill the cache of icons that all of a user's processes share
    #[command(after_help = "\
Examples:
  haypile icons warm --theme breeze --size 16,32 folder-open document-save
  haypile icons lookup folder-open --theme breeze --size 32 --output folder.png
  haypile icons stat --theme breeze")]
    Icons {
        #[command(subcommand)]
        command: icons::IconsCommand,
    },
    /// Print a value
    Get(cache::Get),
    /// Write a value
    Set(cache::Set),
    /// Write a value unless the key exists
    Add(cache::Add),
    /// Delete entries
    Delete(cache::Delete),
    /// Make all entries of a group misses
    Invalidate(cache::Invalidate),
    /// Add to a counter, or subtract from it
    Incr(cache::Incr),
    /// List the keys of a cache
    Keys(cache::Keys),
    /// Write the entries of a cache as lines of JSON
    Dump(cache::Dump),
    /// Load the entries of a dump into a cache
    Load(cache::Load),
    /// Delete every entry of a cache
    Clear(cache::Clear),
    /// Show what the file of a file:// cache holds and which processes use it
    Stat(file::Stat),
    /// Verify every entry of the file of a file:// cache
    Check(file::Check),
    /// List the policies, their parameters and their sources
    Policies(Policies),
    /// List the kinds of caches that a URL can name, and their options
    Schemes(Schemes),
    /// Print a completion script for a shell
    #[command(after_help = "\
Example:
  haypile completions bash > ~/.local/share/bash-completion/completions/haypile")]
    Completions {
        /// Shell that runs the script
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory
    #[command(after_help = "\
Example:
  haypile man ~/.local/share/man/man1")]
    Man {
        /// Existing directory for the pages
        directory: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Describe a trace: keys, sizes, skew, reuse, working set
    Info(Info),
    /// Convert a trace to .hpt, which opens at once, or to libCacheSim's format
    Convert(Convert),
    /// Generate a trace: zipf, uniform, scan, loop, hotspot, mixtures
    Generate(Generate),
    /// Write a small real trace, on which the examples of the help texts run
    Example(Example),
}

/// Command-line options for reading traces.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Reading traces")]
pub(crate) struct Reading {
    /// Format of the traces [default: recognised from the content]: spc, arc, lirs, csv, u32le, i32be,
    /// u64le, oracle-general, lcs, vscsi, address, access-log, json-log, w3c, squid, elb, s3-log, haproxy, redis-monitor, memcached-watch, hpt,
    /// recording
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Public data set that the traces belong to: twitter, meta-kv, meta-cdn, wiki, tencent-photo,
    /// ibm-cos, and in blocks msr, alibaba, tencent-block. Or the interpretation of a line in an
    /// SPC trace: relstorage, one request of its size for the key LBA alone (units, ASU, share
    /// their addresses); blocks, one for each block, by unit and address
    #[arg(long = "as", value_name = "READING", default_value = "relstorage", value_parser = AsArgument::from_str)]
    pub(crate) read_as: AsArgument,
    /// Size of the blocks that requests of block traces (SPC, vscsi, data sets) are divided into [default: 512 for blocks of SPC, 4KiB
    /// for data sets, undivided otherwise]
    #[arg(long, value_name = "SIZE", value_parser = block_size)]
    pub(crate) block_size: Option<BlockSize>,
    /// Columns of a CSV trace, by name or by number from 1, such as key=url,size=3,op=none; the
    /// roles are key, size, op, time, ttl, cost (time that a miss takes; ttl and cost in seconds, or by the end of the
    /// name: _ms, _us, _ns) and count (number of times that the request was made). Of JSON, names or paths:
    /// key=request.uri
    #[arg(long, value_name = "ROLE=COLUMN,...", value_parser = columns)]
    pub(crate) columns: Option<CsvOptions>,
    /// Separator of the columns of a CSV trace: tab, comma, semicolon, blanks, or a character
    #[arg(long, value_name = "DELIMITER")]
    pub(crate) delimiter: Option<Delimiter>,
    /// Unit of the times in a CSV trace: s, ms, us, ns
    #[arg(long, value_name = "UNIT")]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Statuses of responses that a cache would store, in logs of web servers; nginx's own are
    /// 200,301,302 [default: 200,203,204,300,301,308,404,410]
    #[arg(long = "status", value_name = "STATUS,...")]
    pub(crate) statuses: Option<Statuses>,
    /// Skip and count bad lines instead of stopping at the first
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Assume these sizes of values, drawn per request: 160, 4KiB, normal:mean=10000,sd=512,
    /// lognormal:..., pareto:...
    #[arg(long, value_name = "SIZES", value_parser = assumed_sizes)]
    pub(crate) assume_size: Option<Sizes>,
    /// Assume that this share of the reads are writes, such as 0.1 for 10 %
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) assume_writes: Option<f64>,
    /// Seed for the assumed sizes and writes, and for samples
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// The part of a trace that is read: all, or a sample of its keys.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Reading traces")]
pub(crate) struct Part {
    /// Sample this share of the keys, such as 0.01, or this number of them, such as 50000 (the trace is then read twice), with all their
    /// requests: cache sizes and results are scaled, so that they estimate those of the whole trace, in a fraction of the time and
    /// memory. Another --seed takes other keys; 1 is the whole trace
    #[arg(long, value_name = "RATE|KEYS", value_parser = SampleArgument::from_str)]
    pub(crate) sample: Option<SampleArgument>,
}

impl Part {
    /// Whether the user asked for the whole trace instead of a sample of its keys.
    pub(crate) fn is_whole(&self) -> bool {
        self.sample == Some(SampleArgument::Whole)
    }
}

/// Command-line options for simulating traces.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulating")]
pub(crate) struct Simulating {
    /// Weight of an entry: objects (1 each), bytes (its value), relstorage (key and value; values of
    /// 16 KiB or more are never stored), engine (a memory:// cache: its charge, in its shards)
    #[arg(long, value_name = "ACCOUNTING")]
    pub(crate) accounting: Option<Accounting>,
    /// Requests that warm the cache up and are not counted: a number, or a share such as 10%
    #[arg(long, value_name = "N|N%", default_value = "0", value_parser = warmup)]
    pub(crate) warmup: Warmup,
    /// Treat every request as a read, as most simulators do
    #[arg(long)]
    pub(crate) all_reads: bool,
    /// Time that a miss costs, such as that of computing its value again: a fixed time, a time for each byte, or both,
    /// as in fixed=20ms,per-byte=0.5ns; or trace, for the times that the trace states: a recording, a column cost, a
    /// log with the time of the server behind. The share of that cost that hits save is printed too
    #[arg(long, value_name = "COST")]
    pub(crate) miss_cost: Option<MissCost>,
    /// A read of another size than the key had before: a hit, after which the entry has the last full
    /// size; a miss, because the value has changed; or a hit of what was stored first [default: last for
    /// access logs, changed for recordings, else first]
    #[arg(long, value_name = "RULE", value_enum)]
    pub(crate) sizes: Option<SizesArgument>,
    /// Lifetime of simulated entries without a TTL in the trace: 30s, 10m, 24h; or never, which
    /// ignores a column ttl as well
    #[arg(long, value_name = "DURATION", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,
    /// Number of shards of the memory:// cache, with --accounting engine [default: as a memory://
    /// cache of this size has on this machine]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) shards: Option<NonZeroUsize>,
    /// Number of simulations that run at once [default: the number of processors]
    #[arg(long, short, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// The unit in which the gain of simulated caches is judged: reads that they save, bytes of reads,
/// or the cost of misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GoalArgument {
    // The option says what these are.
    Reads,
    Bytes,
    Cost,
}

/// The treatment of reads whose key had a value of another size before: as a hit of the last size,
/// as a miss, or as a hit of the first size.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SizesArgument {
    // The option says what these are.
    Last,
    Changed,
    First,
}

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Without --size or --objects, the command tries a few sizes up to the trace's working set.

Examples:
  haypile simulate web.log --policy lru,sieve,s3fifo --size 100MB,512MB,1GB
  haypile simulate OLTP.lis.zst --policy lru,arc,belady --objects 1000,5000
  haypile simulate Financial1.spc.bz2 --policy lru,slru --size 100MB,1GB --accounting relstorage
  haypile simulate trace.csv --policy s3fifo:small=10,threshold=1,lru --plot curves.svg
  haypile simulate huge.hpt --curve lru --sample 0.01
  haypile simulate app.rec.* --policy lru,s3fifo --accounting engine"
)]
pub(crate) struct Simulate {
    /// Trace files, plain or compressed (gz, bz2, xz, zstd, lz4, zip); - is standard input. The
    /// files of one recording are one trace
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Policies, separated by commas, with parameters as in s3fifo:small=10,threshold=1; belady is
    /// the optimum that knows the future (belady:decline=1 may refuse to store a new key)
    #[arg(long, short, value_name = "POLICIES", value_parser = Contenders::from_str)]
    pub(crate) policy: Option<Contenders>,
    /// Cache sizes, separated by commas: bytes, such as 64MiB or 1.5GiB (powers of 1024), 100MB or 2TB
    /// (of 1000); or shares of the trace's working set, such as 10%
    #[arg(long, short, value_name = "SIZES", value_delimiter = ',', value_parser = CapacityArgument::from_str)]
    #[arg(conflicts_with = "objects")]
    pub(crate) size: Vec<CapacityArgument>,
    /// Cache sizes in objects, separated by commas: counts, or shares of the trace's keys, such as 10%
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = objects)]
    pub(crate) objects: Vec<CapacityArgument>,
    /// Print the hit ratio over time as well: in this number of parts of the trace after the warm-up, or in days of 24
    /// hours from its first request on
    #[arg(long, value_name = "N|days", value_parser = WindowsArgument::from_str)]
    pub(crate) windows: Option<WindowsArgument>,
    /// Read all files as one trace instead of one trace each: CSV with times, access logs and
    /// recordings are merged by time, others are read one after the other
    #[arg(long)]
    pub(crate) join: bool,
    /// Print the miss ratio of these policies, separated by commas, at many sizes; that of lru takes one pass
    #[arg(long, value_name = "POLICIES", value_parser = Contenders::from_str)]
    pub(crate) curve: Option<Contenders>,
    /// Plot the miss ratio by size into an SVG file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) simulating: Simulating,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) part: Part,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Command-line options for the form in which the results of simulations are printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option without a value")]
pub(crate) struct Output {
    /// Print the results of the simulations as JSON
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the results as CSV, one line per simulation
    #[arg(long)]
    pub(crate) csv: bool,
    /// Also print the byte hit ratio, the processor time and the bytes in use of each simulation
    #[arg(long, conflicts_with = "details")]
    pub(crate) all: bool,
    /// Print exact counts such as hits and evictions, one row per simulation; JSON and CSV always
    /// contain them
    #[arg(long, short)]
    pub(crate) details: bool,
}

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Examples:
  haypile advise access.log --budget 1GB
  haypile advise access.log --budget 1GB --plot choice.svg
  haypile advise access.log --budget 1GB --warmup 20% --miss-cost fixed=20ms,per-byte=1ns
  haypile advise keys.txt --assume-size lognormal:median=4096,sigma=1.5"
)]
pub(crate) struct Advise {
    /// Trace files, read as one trace (merged by time if all have times and are CSV, access logs or
    /// recordings); - is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Largest size to recommend: bytes (1.5GB, 512MiB), a share of the working set (10%), or objects with
    /// --accounting objects
    #[arg(long, value_name = "SIZE", value_parser = CapacityArgument::from_str)]
    pub(crate) budget: Option<CapacityArgument>,
    /// Policies to choose from; the first wins unless another is clearly better
    #[arg(long, short, value_name = "POLICIES", value_parser = PolicyList::from_str)]
    pub(crate) policy: Option<PolicyList>,
    /// Goal of the choice: to save reads, bytes of reads, or the cost of misses that --miss-cost or the trace
    /// states [default: cost with --miss-cost, else reads]
    #[arg(long, value_name = "GOAL", value_enum)]
    pub(crate) by: Option<GoalArgument>,
    /// Plot the miss ratios of all policies that were tried by size into an SVG file, with a mark on the choice
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print all sizes that were tried, not only those around the choice
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) simulating: Simulating,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) part: Part,
    /// Print the advice as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  haypile trace info traces/redis-build.csv.zst")]
pub(crate) struct Info {
    /// Trace files, read as one trace (merged by time if all have times and are CSV, access logs or
    /// recordings); - is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Number of parts of the trace for which the working set is printed
    #[arg(long, value_name = "N", default_value = "10", value_parser = positive)]
    pub(crate) windows: NonZeroUsize,
    #[command(flatten)]
    pub(crate) reading: Reading,
    /// Print the description of the trace as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile trace convert access.log.gz access.hpt
  zcat huge.csv.gz | haypile trace convert - huge.hpt --format csv")]
pub(crate) struct Convert {
    /// Trace files, read as one trace (merged by time if all have times and are CSV, access logs or
    /// recordings); - is standard input
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// File to write: .hpt, or .oracleGeneral.bin for libCacheSim
    #[arg(value_name = "FILE")]
    pub(crate) target: PathBuf,
    /// Omit the column with the next use of each key, which only belady needs
    #[arg(long)]
    pub(crate) no_next_use: bool,
    #[command(flatten)]
    pub(crate) reading: Reading,
    #[command(flatten)]
    pub(crate) part: Part,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  haypile trace example && haypile advise traces/redis-build.csv.zst --budget 2MiB")]
pub(crate) struct Example {
    /// File to write, or - for standard output [default: traces/redis-build.csv.zst]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "\
Patterns, joined by + and weighted by @ (each pattern has keys of its own):
  zipf:keys=100000,exponent=0.99    uniform:keys=1000    scan:keys=50000
  loop:keys=2000    hotspot:keys=100000,hot=1000,share=0.9,every=50000

Examples:
  haypile trace generate zipf:keys=100000,exponent=0.99 --requests 1000000 --output zipf.hpt
  haypile trace generate loop:keys=2000 --sizes lognormal:median=4096,sigma=1.5 --writes 10 | head
  haypile trace generate 'zipf:keys=10000,exponent=0.9@0.8+scan:keys=90000@0.2' --output mix.csv"
)]
pub(crate) struct Generate {
    /// Pattern of the keys, or mixture of patterns
    pub(crate) pattern: Mixture,
    /// Number of requests to generate
    #[arg(long, short = 'n', value_name = "N", default_value = "1000000", value_parser = count)]
    pub(crate) requests: u64,
    /// Sizes of values: fixed:bytes=160, uniform:min=100,max=2000, normal:mean=10000,sd=512,
    /// lognormal:median=4096,sigma=1.5, pareto:min=100,shape=1.2; each with per=key or per=request
    #[arg(long, value_name = "SIZES")]
    pub(crate) sizes: Option<Sizes>,
    /// Share of the generated requests that are writes, such as 0.1 for 10 %
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    pub(crate) writes: f64,
    /// Share of the generated requests that are deletions, such as 0.01 for 1 %
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent)]
    pub(crate) deletes: f64,
    /// Seed of the trace; another seed generates another trace of the same kind
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// File to write, .hpt or .csv [default: -, CSV to standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile policies
  haypile simulate traces/redis-build.csv.zst --policy s3fifo:small=20,ghost=50 --size 4MiB")]
pub(crate) struct Policies {
    /// Print the list of eviction policies as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  haypile schemes
  haypile set file:/tmp/app.haypile,size=16MiB,ttl=1h user:7 Ada")]
pub(crate) struct Schemes {
    /// Print the list of URL schemes as JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// Print the list of URL schemes as Markdown (docs/options.md)
    #[arg(long)]
    pub(crate) markdown: bool,
}

impl Advise {
    /// Returns the unit in which simulated caches are judged: reads, bytes of reads, or the cost of
    /// misses.
    pub(crate) fn goal(&self, trace: &Trace) -> anyhow::Result<Goal> {
        match (self.by, self.simulating.miss_cost) {
            (Some(GoalArgument::Cost) | None, Some(cost)) => Ok(Goal::Cost(cost)),
            (Some(GoalArgument::Cost), None) if trace.costs_ns().is_some() => {
                Ok(Goal::Cost(MissCost::OfTrace))
            }
            (Some(GoalArgument::Cost), None) => bail!(
                "--by cost needs the cost of a miss, which the trace does not state; add it, as in --miss-cost \
                fixed=20ms,per-byte=0.5ns"
            ),
            (Some(GoalArgument::Bytes), _) => Ok(Goal::Bytes),
            (Some(GoalArgument::Reads) | None, _) => Ok(Goal::Reads),
        }
    }
}

impl Simulating {
    /// Returns how the simulator treats a trace's operations: as they are, or all as reads.
    pub(crate) fn operations(&self) -> Operations {
        if self.all_reads { Operations::AllReads } else { Operations::AsTheyAre }
    }

    /// Returns the rule for requests whose key had another value size before; `known` is the
    /// trace's own default.
    pub(crate) fn sizes(&self, known: SizeRule) -> SizeRule {
        match self.sizes {
            None => known,
            Some(SizesArgument::Last) => SizeRule::Last,
            Some(SizesArgument::Changed) => SizeRule::Changed,
            Some(SizesArgument::First) => SizeRule::First,
        }
    }

    /// Returns the rule for the lifetime of simulated entries: that of the trace, another one for
    /// entries without any, or never.
    pub(crate) fn ttl(&self) -> TtlRule {
        match self.ttl {
            None | Some(Ttl::Default) => TtlRule::AsTheyAre,
            Some(Ttl::Never) => TtlRule::Never,
            Some(Ttl::After(ttl)) => {
                TtlRule::Otherwise(u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX).max(1))
            }
        }
    }

    /// Returns the number of threads that run simulations at the same time.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }
}

impl Reading {
    /// Returns the user's options for reading traces, in the form that the library's readers take.
    pub(crate) fn options(&self) -> ReadOptions {
        let mut csv = self.columns.clone().unwrap_or_default();
        csv.delimiter = self.delimiter;
        csv.time_unit = self.time_unit;
        let (format, spc_as) = match self.read_as {
            AsArgument::DataSet(set) => (Some(Format::DataSet(set)), SpcAs::default()),
            AsArgument::Spc(spc_as) => (self.format, spc_as),
        };
        ReadOptions {
            format,
            spc_as,
            block_size: self.block_size,
            csv,
            statuses: self.statuses.clone().unwrap_or_default(),
            skip_bad: self.skip_bad,
        }
    }
}
