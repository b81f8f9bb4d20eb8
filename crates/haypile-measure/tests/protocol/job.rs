//! A small job.

use std::path::Path;

use haypile_measure::job::{Ops, Population, Settings, write};

/// Keys of the job.
pub(crate) const KEYS: u32 = 10;

/// Ten keys with values of 0 to 90 bytes.
pub(crate) fn population() -> Population {
    let mut population = Population::new();
    for number in 0..KEYS {
        population.push(format!("key {number}").as_bytes(), number * 10).unwrap();
    }
    population
}

pub(crate) fn settings() -> Settings {
    Settings::new(7, 1 << 20, 1000)
}

/// Sets all keys before the timed part.
pub(crate) fn set_all() -> Ops {
    let mut ops = Ops::new();
    (0..KEYS).for_each(|key| ops.set(key));
    ops
}

pub(crate) fn write_job(directory: &Path, settings: &Settings, prepare: &Ops, timed: &[Ops]) {
    write(directory, settings, &population(), prepare, timed).unwrap();
}
