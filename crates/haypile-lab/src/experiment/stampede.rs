//! `stampede`: several processes ask for one entry that has expired. How often is it computed?
//!
//! Each key is written with a time to live of one second, which is over when the processes begin.
//! Then each process asks for the keys in the same order. Who finds none has it computed, which
//! takes some time, as a database does; nothing but waiting happens in it. Where a cache has no
//! protection, whoever asks while a key is being computed computes it too: up to all of them, who then
//! go on to the next one together. Where it has, one computes and the others wait for it, or get the
//! old value.
//!
//! A miss is a computation: `misses` divided by `keys` says how often each key was computed, and 1 is
//! the least there can be.

use std::path::Path;

use crate::job::{self, JobError, MAX_PROCESSES, Ops, Settings};
use crate::measure::{Case, Expected};

use super::{keys, parameters};

/// What the experiment is called.
pub const NAME: &str = "stampede";

/// The caches that are asked where none are named.
pub const SUBJECTS: &str = "file,memory+file,memcached,redis";

/// Milliseconds after which an entry of one second is gone under any clock of whole seconds.
const EXPIRY_MS: u32 = 2_100;

const KEY_BYTES: u32 = 36;
const VALUE_BYTES: u32 = 160;
const CAPACITY_BYTES: u64 = 16_000_000;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many processes ask, each from 1 to [`MAX_PROCESSES`].
    pub processes: Vec<u32>,
    /// How many keys they ask for, one after the other, at most 10,000.
    pub keys: u32,
    /// How long computing one takes, in milliseconds, at most a minute.
    pub compute_ms: u64,
    /// What keys and values are drawn from.
    pub seed: u64,
}

/// The most keys.
pub const MAX_KEYS: u32 = 10_000;

/// A case for each number of processes.
pub fn cases(options: &Options) -> Vec<Case> {
    let case = |&processes: &u32| {
        let processes = processes.clamp(1, MAX_PROCESSES);
        let options = options.clone();
        Case {
            experiment: NAME,
            name: "expired".to_owned(),
            parameters: parameters([
                ("processes", processes.into()),
                ("keys", options.keys.into()),
                ("compute_ms", options.compute_ms.into()),
                ("value_bytes", VALUE_BYTES.into()),
            ]),
            processes,
            skips: &["none"],
            write: Box::new(move |directory| write(directory, processes, &options)),
        }
    };
    options.processes.iter().map(case).collect()
}

fn write(directory: &Path, processes: u32, options: &Options) -> Result<Expected, JobError> {
    let population = keys::population(options.seed, options.keys, KEY_BYTES, VALUE_BYTES)?;
    let (mut prepare, mut timed) = (Ops::new(), Ops::new());
    (0..options.keys).for_each(|key| prepare.expire(key));
    prepare.wait(EXPIRY_MS);
    (0..options.keys).for_each(|key| timed.compute(key));
    let entry_bytes = u64::from(KEY_BYTES + VALUE_BYTES);
    let settings = Settings::new(options.seed, CAPACITY_BYTES, CAPACITY_BYTES / entry_bytes)
        .with_processes(processes)
        .with_compute_ms(options.compute_ms);
    let all = vec![timed.clone(); processes as usize];
    job::write(directory, &settings, &population, &prepare, &all)?;
    Ok(Expected {
        operations: u64::from(processes) * timed.operations(),
        reads: u64::from(processes) * timed.reads(),
        // All have expired.
        verified_before: Some(0),
        verified_after: Some(u64::from(options.keys)),
        // Each is computed once at least.
        min_misses: u64::from(options.keys),
        ..Expected::default()
    })
}
