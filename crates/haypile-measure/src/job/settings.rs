//! `job.txt`: lines of a name and a value.

use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use super::error::JobError;

/// The latest version of the job format. A job is written in the first version that can express it,
/// so that runners of earlier versions do what they can, and refuse the rest.
pub const SCHEMA: u64 = SCHEMA_OF_COMPUTING;

/// The version of a job for one process.
const SCHEMA_OF_ONE: u64 = 1;

/// The version of a job for several processes. A runner that knows only one would do the part of
/// the first process and nothing else.
const SCHEMA_OF_SEVERAL: u64 = 2;

/// The version of the job format that adds the operations clear, load, expire and compute.
pub(super) const SCHEMA_OF_COMPUTING: u64 = 3;

/// The longest time that computing a value may take, in milliseconds: a minute.
const MAX_COMPUTE_MS: u64 = 60_000;

/// The most executions of any kind of the timed operations.
const MAX_EXECUTIONS: u64 = 1_000_000;

/// The largest number of processes of a job.
pub const MAX_PROCESSES: u32 = 64;

/// The choice of the operations that a job times: all together, each by itself, or the opening of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timing {
    /// Times the operations as a whole.
    #[default]
    Total,
    /// Times the operations as a whole, and then once more with each operation timed by itself.
    Each,
    /// Times opening the cache and then the operations, until the first hit and to the end: the time that a cache takes
    /// to load. There is nothing before the timed part.
    Open,
}

impl Timing {
    /// Returns the name of the choice of timed operations in a job's file `job.txt`: `total`, `each` or `open`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Each => "each",
            Self::Open => "open",
        }
    }
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "total" => Ok(Self::Total),
            "each" => Ok(Self::Each),
            "open" => Ok(Self::Open),
            _ => Err(format!("timing is total, each or open, not {text}")),
        }
    }
}

/// The HTTP origin server of a job, which subjects that are HTTP caches use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobOrigin {
    /// A service within the runner that answers at once, with an empty response that is not stored:
    /// the cost of the layer.
    Inner,
    /// A server at this address, for whatever host a URL names.
    Server(SocketAddr),
}

impl fmt::Display for JobOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inner => f.write_str("inner"),
            Self::Server(address) => address.fmt(f),
        }
    }
}

impl FromStr for JobOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "inner" {
            return Ok(Self::Inner);
        }
        let server = text.parse().map(Self::Server);
        server.map_err(|_| format!("origin is inner, or an address with a port, not '{text}'"))
    }
}

/// The event between the preparation of a job's cache and the timed part, such as a kill of the process that prepared
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interlude {
    /// The cache stays open.
    #[default]
    None,
    /// The cache closes its files, drops them from the system's memory and opens them again, so that reads come from
    /// the disk.
    Cold,
    /// The process that has the cache is killed, and another one opens what it left.
    Killed,
}

/// The settings of a job: everything that a program reads to do it, except keys, values and operations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The seed of the job's random choices: the bytes of values, the operations and the keys.
    pub seed: u64,
    /// The cache's capacity in bytes; caches differ in which bytes they count.
    pub capacity_bytes: u64,
    /// The cache's capacity in entries, for caches that count entries.
    pub capacity_entries: u64,
    /// The choice of the operations that the job times.
    pub timing: Timing,
    /// The number of executions of the job's timed operations, which together are one measurement.
    pub executions: u64,
    /// The number of executions of the timed operations as a warm-up on a separate cache, before anything is timed: a
    /// language that compiles while it runs has compiled by then.
    pub warm_up: u64,
    /// Whether every key is read, and its value compared, before the timed part. A job about the order of uses goes
    /// without, because each read is a use.
    pub verify_before: bool,
    /// Whether every key is read, and its value compared, after the timed part.
    pub verify_after: bool,
    /// The number of processes that do the job's timed operations on one shared cache, from 1 to [`MAX_PROCESSES`].
    pub processes: u32,
    /// The time in milliseconds that [`Op::Compute`](super::Op::Compute) takes to compute a value:
    /// it waits that long, as for a database.
    pub compute_ms: u64,
    /// The event between the preparation of the job's cache and the timed part, such as a kill of the process that
    /// prepared it.
    pub interlude: Interlude,
    /// The HTTP origin server of a job for HTTP caches; `None` if the job has none.
    pub origin: Option<JobOrigin>,
}

impl Settings {
    /// Creates a job's settings for one execution by one process, timed as a whole, with values verified before and
    /// after.
    pub fn new(seed: u64, capacity_bytes: u64, capacity_entries: u64) -> Self {
        Self {
            seed,
            capacity_bytes,
            capacity_entries,
            timing: Timing::Total,
            executions: 1,
            warm_up: 0,
            verify_before: true,
            verify_after: true,
            processes: 1,
            compute_ms: 0,
            interlude: Interlude::None,
            origin: None,
        }
    }

    /// Returns the job's settings with another choice of what is timed: all operations together, each by itself, or the
    /// opening of the cache.
    #[must_use]
    pub fn with_timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// Returns the job's settings with another number of executions of the timed operations, at least one.
    #[must_use]
    pub fn with_executions(self, executions: u64) -> Self {
        Self { executions: executions.max(1), ..self }
    }

    /// Returns the job's settings with or without verification of values before and after the timed part.
    #[must_use]
    pub fn with_verification(self, before: bool, after: bool) -> Self {
        Self { verify_before: before, verify_after: after, ..self }
    }

    /// Returns the job's settings with another number of milliseconds, at most a minute, for computing a value.
    #[must_use]
    pub fn with_compute_ms(self, compute_ms: u64) -> Self {
        Self { compute_ms: compute_ms.min(MAX_COMPUTE_MS), ..self }
    }

    /// Returns the job's settings with the cache's files dropped from the page cache before the timed part.
    #[must_use]
    pub fn cold(self) -> Self {
        Self { interlude: Interlude::Cold, ..self }
    }

    /// Returns the job's settings changed so that the process that prepared the cache is killed before the timed part.
    #[must_use]
    pub fn killed(self) -> Self {
        Self { interlude: Interlude::Killed, ..self }
    }

    /// Returns the job's settings with an HTTP origin server for HTTP caches.
    #[must_use]
    pub fn with_origin(self, origin: JobOrigin) -> Self {
        Self { origin: Some(origin), ..self }
    }

    /// Whether the job allows a warm-up on another cache: not if it times the opening of an existing cache.
    pub(super) fn can_warm_up(&self) -> bool {
        self.timing != Timing::Open
    }

    /// Returns the job's settings with another number of processes, at least one.
    #[must_use]
    pub fn with_processes(self, processes: u32) -> Self {
        Self { processes: processes.max(1), ..self }
    }
}

/// The lines of a job's file `job.txt`: the settings, and the sizes of the job's other files.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) settings: Settings,
    pub(super) keys: u32,
    pub(super) pool_span: u64,
    /// The number of threads of each process of the job.
    pub(super) threads: usize,
    /// Whether the job has an operation that is unknown to runners of the job format's versions 1 and 2.
    pub(super) is_of_schema_3: bool,
}

impl Lines {
    pub(super) fn text(&self) -> String {
        let Settings { seed, capacity_bytes, capacity_entries, timing, .. } = self.settings;
        let processes = self.settings.processes;
        let schema = match processes {
            _ if self.is_of_schema_3 => SCHEMA_OF_COMPUTING,
            1 => SCHEMA_OF_ONE,
            _ => SCHEMA_OF_SEVERAL,
        };
        let lines = [
            ("schema", schema),
            ("seed", seed),
            ("keys", u64::from(self.keys)),
            ("pool_span", self.pool_span),
            ("capacity_bytes", capacity_bytes),
            ("capacity_entries", capacity_entries),
            ("threads", self.threads as u64),
            ("processes", u64::from(processes)),
            ("executions", self.settings.executions),
            ("verify_before", u64::from(self.settings.verify_before)),
            ("verify_after", u64::from(self.settings.verify_after)),
        ];
        let mut text = String::new();
        for (name, value) in lines {
            writeln!(text, "{name} {value}").expect("a string can be written");
        }
        for (name, value) in
            [("warm_up", self.settings.warm_up), ("compute_ms", self.settings.compute_ms)]
        {
            if value > 0 {
                writeln!(text, "{name} {value}").expect("a string can be written");
            }
        }
        if let Some(origin) = self.settings.origin {
            writeln!(text, "origin {origin}").expect("a string can be written");
        }
        match self.settings.interlude {
            Interlude::None => {}
            Interlude::Cold => text.push_str("cold 1\n"),
            Interlude::Killed => text.push_str("killed 1\n"),
        }
        writeln!(text, "timing {}", timing.name()).expect("a string can be written");
        text
    }

    /// Parses the text of a job's file `job.txt`. Unknown names are ignored: they come from later versions of the
    /// format.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, JobError> {
        let damaged = |wrong: String| JobError::damaged(path, wrong);
        let optional = |name: &str| {
            let mut values = text.lines().filter_map(|line| match line.split_once(' ') {
                Some((found, value)) if found == name => Some(value),
                _ => None,
            });
            match (values.next(), values.next()) {
                (value, None) => Ok(value),
                _ => Err(damaged(format!("the line '{name}' comes twice"))),
            }
        };
        let value = |name: &str| {
            optional(name)?.ok_or_else(|| damaged(format!("the line '{name}' is missing")))
        };
        let within = |name: &str, value: &str, min: u64, max: u64| {
            let number = value.parse().ok().filter(|number| (min..=max).contains(number));
            number.ok_or_else(|| {
                damaged(format!("{name} is {value}; it is a number from {min} to {max}"))
            })
        };
        let number = |name: &str, min: u64, max: u64| within(name, value(name)?, min, max);
        let is = |name: &str| Ok(within(name, optional(name)?.unwrap_or("0"), 0, 1)? == 1);
        let schema = number("schema", 1, u64::MAX)?;
        if schema > SCHEMA {
            return Err(JobError::Newer { path: path.into(), schema, known: SCHEMA });
        }
        // Without this line there is one process.
        let processes = optional("processes")?.unwrap_or("1");
        let most = if schema < SCHEMA_OF_SEVERAL { 1 } else { u64::from(MAX_PROCESSES) };
        let processes = within("processes", processes, 1, most)?;
        let compute_ms = optional("compute_ms")?.unwrap_or("0");
        let warm_up = optional("warm_up")?.unwrap_or("0");
        let settings = Settings {
            seed: number("seed", 0, u64::MAX)?,
            capacity_bytes: number("capacity_bytes", 0, u64::MAX)?,
            capacity_entries: number("capacity_entries", 0, u64::MAX)?,
            timing: value("timing")?.parse().map_err(damaged)?,
            executions: number("executions", 1, MAX_EXECUTIONS)?,
            warm_up: within("warm_up", warm_up, 0, MAX_EXECUTIONS)?,
            verify_before: number("verify_before", 0, 1)? == 1,
            verify_after: number("verify_after", 0, 1)? == 1,
            processes: u32::try_from(processes).expect("at most 64"),
            compute_ms: within("compute_ms", compute_ms, 0, MAX_COMPUTE_MS)?,
            interlude: match [is("cold")?, is("killed")?] {
                [false, false] => Interlude::None,
                [true, false] => Interlude::Cold,
                [false, true] => Interlude::Killed,
                [true, true] => {
                    return Err(damaged("a job is cold or killed, and not both".to_owned()));
                }
            },
            origin: optional("origin")?.map(str::parse).transpose().map_err(damaged)?,
        };
        if settings.warm_up > 0 && !settings.can_warm_up() {
            let timing = settings.timing.name();
            return Err(damaged(format!("a job with the timing {timing} has no warm_up")));
        }
        Ok(Self {
            settings,
            keys: u32::try_from(number("keys", 0, 1 << 28)?).expect("at most 2^28"),
            pool_span: number("pool_span", 1, u64::from(u32::MAX))?,
            threads: usize::try_from(number("threads", 1, 1024)?).expect("at most 1024"),
            is_of_schema_3: schema >= SCHEMA_OF_COMPUTING,
        })
    }
}
