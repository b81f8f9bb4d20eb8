//! `micro`: the cost of single operations, of hits, misses and writes, by size, skew and threads.
//!
//! | case | prepared | timed | right by definition |
//! |---|---|---|---|
//! | `get-hit` | the resident keys, set in random order | reads of these, by the distribution | every read hits; all of them are there before and after |
//! | `get-miss` | the same | reads of the other keys | no read hits; the same |
//! | `set` | every key, set in random order, then as many sets by the distribution | sets by the distribution | nothing beyond correct values |
//! | `overwrite` | the resident keys, set in random order | sets of these, by the distribution | all of them are there before |
//! | `get-beside` | the same | reads of these by all processes but the last, which sets them, by the distribution | all of them are there before; the writer is busy until the last reader is finished |
//! | `set-evict` | every key, set in random order | sets of keys that were never set before: each write makes room | at the end no more is there than the capacity holds |
//! | `mix:S:G` | as `set` | S sets, G reads, and so on, by the distribution | every read is a hit or a miss |
//! | `aside` | as `set` | cache-aside: reads by the distribution, and a set after each miss | every read is a hit or a miss |
//!
//! The *capacity* is a share of the key space, or a size. The resident keys are that share of all
//! keys. `get-hit`, `get-miss`, `overwrite` and `get-beside` are about caches that hold what they were given: their
//! caches get as much more room as the resident keys need under any accounting
//! ([`ROOM_PER_ENTRY_BYTES`] more for each entry, and a quarter more of everything because shards
//! fill unevenly). A cache that keeps old versions for a while can run out of that room by
//! writes, and may evict then: how many keys are there afterwards is in the counts. In the other
//! cases the capacity is that share of the bytes of all keys and values, to the byte, and what else
//! a cache counts takes away from it.
//!
//! The first keys are the most asked for, yet no cache can tell: keys are random, and they are
//! prepared in random order. They are text without blanks, for some caches take no other. Until 22
//! November 2026 those of less than 16 bytes were any bytes: results of then are of other keys of
//! the same length.
//!
//! Several processes do the same on one cache, each with operations of its own. The first of them
//! prepares and verifies.
//!
//! In `get-beside` the last process writes and the others read. All begin at once. A row is of the
//! readers alone, and its counts say what the writer did at the same time and after:
//! `beside_operations`, `beside_wall_ns` and `beside_cpu_ns`. The writer has four times the
//! operations of a reader; where it was finished before the slowest of them nevertheless, the row
//! is an error, for then they have read alone for a while. What they read is what `get-hit` reads
//! in as many processes less one, so that the two rows say what a writer costs readers.

mod capacity;
mod case;
mod distribution;
mod mount;
mod options;
mod section;
mod stream;

use haypile_measure::job::{self, MAX_OPERAND, MAX_PROCESSES, Ops, Population, Settings, Timing};
use haypile_measure::measure::{Case, Expected};
use haypile_measure::result::Parameters;
use haypile_measure::subject::SubjectSpec;

use crate::experiment::Host;
pub use crate::experiment::lookups::ROOM_PER_ENTRY_BYTES;
use crate::experiment::lookups::roomy;
use crate::experiment::on_caches::{Measuring, OnCaches, Setup};

pub use capacity::Capacity;
pub use case::CaseKind;
pub use distribution::Distribution;
pub use mount::file_system;
pub use options::MicroOptions;

/// Name of the experiment `micro` in results.
pub const NAME: &str = "micro";

/// The experiment `micro`: the cost of single operations on a cache, such as hits, misses and
/// writes.
pub(crate) struct MicroExperiment;

impl OnCaches for MicroExperiment {
    const NAME: &'static str = NAME;
    const TITLE: &'static str = "Single operations";
    const FILE: &'static str = include_str!("micro.toml");

    type Options = MicroOptions;

    fn check(options: &MicroOptions, measuring: &Measuring) -> anyhow::Result<()> {
        cases(options, measuring.run.seed, None)?;
        Ok(())
    }

    fn setup(
        options: &MicroOptions,
        measuring: &Measuring,
        subjects: Vec<SubjectSpec>,
        _host: &dyn Host,
    ) -> anyhow::Result<Setup> {
        let file_system = measuring.run.directory.as_deref().and_then(file_system);
        Ok(Setup::new(cases(options, measuring.run.seed, file_system.as_deref())?, subjects))
    }

    fn body(
        _samples: &haypile_measure::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}

/// The error of options of the experiment `micro` that cannot be measured, such as an unknown case
/// or a number out of its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MicroError {
    /// A text names no known case, distribution or capacity.
    #[error("unknown {what} '{text}' (known: {allowed})")]
    Unknown {
        /// The name of the parameter.
        what: &'static str,
        /// The text given.
        text: String,
        /// The values allowed.
        allowed: &'static str,
    },
    /// A number is out of its range.
    #[error("{what} is {value}; it has to be from {min} to {max}")]
    Range {
        /// The name of the parameter.
        what: &'static str,
        /// The value given.
        value: u64,
        /// The smallest allowed value.
        min: u64,
        /// The largest allowed value.
        max: u64,
    },
    /// There are too few different keys of this length.
    #[error(
        "the case {case} needs {keys} distinct keys, and keys of {key_bytes} bytes are too short \
         for that number; make them longer"
    )]
    ShortKeys {
        /// The length of keys, in bytes.
        key_bytes: u32,
        /// The number of keys needed.
        keys: u64,
        /// The case.
        case: String,
    },
    /// The case needs several processes: a single one has no other that could read while it writes.
    #[error(
        "the case {case} needs at least two processes, of which the last one writes; add \
         --processes 2"
    )]
    Alone {
        /// The case.
        case: String,
    },
    /// The capacity leaves nothing to hit, to miss or to evict.
    #[error(
        "the case {case} cannot be measured with a capacity of {capacity}, because {resident} of \
         {keys} keys fit into the cache; at least one has to fit, and for get-miss and set-evict \
         at least one must not"
    )]
    Capacity {
        /// The case.
        case: String,
        /// The capacity given.
        capacity: String,
        /// The number of keys that it holds.
        resident: u32,
        /// The number of keys.
        keys: u32,
    },
}

/// One case with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MicroPoint {
    kind: CaseKind,
    keys: u32,
    key_bytes: u32,
    value_bytes: u32,
    distribution: Distribution,
    capacity: Capacity,
    threads: u32,
    processes: u32,
    operations: u32,
    seed: u64,
    timing: Timing,
}

/// Returns the measurements (cases) of the experiment `micro`, one for each kind with each
/// combination of parameters. Keys and operations are drawn from `seed`. `file_system`, if it is
/// given, becomes a parameter of all cases.
///
/// # Errors
///
/// [`MicroError`], for what cannot be done or would show nothing.
pub fn cases(
    options: &MicroOptions,
    seed: u64,
    file_system: Option<&str>,
) -> Result<Vec<Case>, MicroError> {
    let one = MicroPoint {
        kind: CaseKind::GetHit,
        keys: 0,
        key_bytes: 0,
        value_bytes: 0,
        distribution: Distribution::Uniform,
        capacity: Capacity::Share(0.0),
        threads: 0,
        processes: 0,
        operations: options.operations,
        seed,
        timing: if options.latency { Timing::Each } else { Timing::Total },
    };
    let points = multiplied(vec![one], &options.case, |point, kind| point.kind = kind);
    let points = multiplied(points, &options.keys, |point, keys| point.keys = keys);
    let points = multiplied(points, &options.key_bytes, |point, bytes| point.key_bytes = bytes);
    let points = multiplied(points, &options.value_bytes, |point, bytes| point.value_bytes = bytes);
    let points = multiplied(points, &options.distribution, |point, drawn| {
        point.distribution = drawn;
    });
    let points = multiplied(points, &options.capacity, |point, held| point.capacity = held);
    let points = multiplied(points, &options.threads, |point, number| point.threads = number);
    let points = multiplied(points, &options.processes, |point, number| point.processes = number);
    let mut cases = points.into_iter().map(MicroPoint::case).collect::<Result<Vec<_>, _>>()?;
    if let Some(file_system) = file_system {
        for case in &mut cases {
            case.parameters.insert("file_system".to_owned(), file_system.into());
        }
    }
    Ok(cases)
}

/// Each point with each of the values, which `put` puts in.
fn multiplied<T: Copy>(
    points: Vec<MicroPoint>,
    values: &[T],
    put: impl Fn(&mut MicroPoint, T),
) -> Vec<MicroPoint> {
    let mut multiplied = Vec::with_capacity(points.len() * values.len());
    for point in points {
        for &value in values {
            multiplied.push(point);
            put(multiplied.last_mut().expect("it was pushed"), value);
        }
    }
    multiplied
}

impl MicroPoint {
    fn case(self) -> Result<Case, MicroError> {
        self.check()?;
        Ok(Case {
            experiment: NAME,
            name: self.kind.to_string(),
            parameters: self.parameters(),
            processes: self.processes,
            skips: &[],
            write: Box::new(move |directory| {
                let (settings, population, prepare, timed) = self.job()?;
                job::write(directory, &settings, &population, &prepare, &timed)?;
                Ok(self.expected(&timed))
            }),
        })
    }

    fn check(&self) -> Result<(), MicroError> {
        let range = |what, value: u32, min: u64, max: u64| {
            let value = u64::from(value);
            let within = (min..=max).contains(&value);
            within.then_some(()).ok_or(MicroError::Range { what, value, min, max })
        };
        range("the number of keys", self.keys, 2, 1 << 27)?;
        range("the length of keys", self.key_bytes, 1, 65_535)?;
        range("the size of values", self.value_bytes, 0, 1 << 30)?;
        range("the number of threads", self.threads, 1, 1024)?;
        range("the number of processes", self.processes, 1, MAX_PROCESSES.into())?;
        range("the number of operations", self.operations, 1, 1 << 30)?;
        if self.kind == CaseKind::GetBeside && self.processes < 2 {
            return Err(MicroError::Alone { case: self.kind.to_string() });
        }
        let keys = self.all_keys();
        let told_apart = super::keys::bits(self.key_bytes);
        if told_apart < u64::BITS && keys > 1 << told_apart {
            let (key_bytes, case) = (self.key_bytes, self.kind.to_string());
            return Err(MicroError::ShortKeys { key_bytes, keys, case });
        }
        if keys > u64::from(MAX_OPERAND) {
            let (what, max) = ("the number of keys and new keys", u64::from(MAX_OPERAND));
            return Err(MicroError::Range { what, value: keys, min: 2, max });
        }
        let resident = self.resident();
        if resident == 0 || (self.kind.needs_others() && resident >= self.keys) {
            return Err(MicroError::Capacity {
                case: self.kind.to_string(),
                capacity: self.capacity.to_string(),
                resident,
                keys: self.keys,
            });
        }
        Ok(())
    }

    /// Keys of the key space, and those that are new.
    fn all_keys(&self) -> u64 {
        let new = match self.kind {
            CaseKind::SetEvict => {
                u64::from(self.operations) * u64::from(self.threads) * u64::from(self.processes)
            }
            _ => 0,
        };
        u64::from(self.keys) + new
    }

    /// The threads of all processes but the last.
    fn readers(&self) -> u32 {
        self.threads * (self.processes - 1)
    }

    fn entry_bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// The number of keys of the key space that the capacity stands for.
    fn resident(&self) -> u32 {
        self.capacity.entries(self.keys, self.entry_bytes())
    }

    /// The capacity of the cache, in bytes.
    fn capacity_bytes(&self) -> u64 {
        if self.kind.holds_all() {
            roomy(u64::from(self.resident()), self.entry_bytes())
        } else {
            self.capacity.bytes(self.keys, self.entry_bytes())
        }
    }

    fn parameters(&self) -> Parameters {
        super::parameters([
            ("keys", self.keys.into()),
            ("key_bytes", self.key_bytes.into()),
            ("value_bytes", self.value_bytes.into()),
            ("distribution", self.distribution.to_string().into()),
            ("capacity", self.capacity.to_string().into()),
            ("capacity_bytes", self.capacity_bytes().into()),
            ("threads", self.threads.into()),
            ("processes", self.processes.into()),
            ("operations", self.operations.into()),
        ])
    }

    fn job(&self) -> Result<(Settings, Population, Ops, Vec<Ops>), job::JobError> {
        let all = u32::try_from(self.all_keys()).expect("checked: at most 2^28");
        let population = super::keys::population(self.seed, all, self.key_bytes, self.value_bytes)?;
        let capacity_bytes = self.capacity_bytes();
        let capacity_entries = capacity_bytes / self.entry_bytes().max(1);
        let settings = Settings::new(self.seed, capacity_bytes, capacity_entries)
            .with_timing(self.timing)
            .with_processes(self.processes);
        let (prepare, timed) = stream::ops(self);
        Ok((settings, population, prepare, timed))
    }

    fn expected(&self, timed: &[Ops]) -> Expected {
        let is_beside = self.kind == CaseKind::GetBeside;
        let measured = if is_beside { &timed[..self.readers() as usize] } else { timed };
        let mut expected = Expected {
            operations: measured.iter().map(Ops::operations).sum(),
            reads: measured.iter().map(Ops::reads).sum(),
            last_is_beside: is_beside,
            ..Expected::default()
        };
        let resident = Some(u64::from(self.resident()));
        match self.kind {
            CaseKind::GetHit | CaseKind::GetMiss => {
                let hits = if self.kind == CaseKind::GetHit { expected.reads } else { 0 };
                expected.hits = Some(hits);
                (expected.verified_before, expected.verified_after) = (resident, resident);
            }
            CaseKind::Overwrite | CaseKind::GetBeside => {
                let left_out = stream::left_out(self, timed).len() as u64;
                expected.verified_before = resident.map(|resident| resident - left_out);
            }
            _ => {
                let held = self.capacity_bytes() / self.entry_bytes().max(1);
                expected.max_verified_after = Some(held);
            }
        }
        expected
    }
}

#[cfg(test)]
mod tests;
