//! Writes the directory of a job.

use std::path::Path;
use std::{fs, iter};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::error::JobError;
use super::file;
use super::ops::Ops;
use super::population::Population;
use super::settings::{Lines, MAX_PROCESSES, Settings};

/// At how many places of the pool values begin.
const POOL_SPAN: u32 = 1 << 16;

/// The stream of random numbers of the pool.
const POOL_STREAM: u64 = 1 << 32;

/// Writes a job (settings, keys, values and operations) into an empty directory. `timed` has the
/// operations of each thread: first all threads of the first process, then all of the second, and
/// so on, the same number for each.
///
/// The same arguments write the same bytes, on every machine and in every later version of the
/// same schema.
///
/// # Errors
///
/// [`JobError::Io`].
///
/// # Panics
///
/// If `timed` has no thread, or not as many for each process, or if there are more than
/// [`MAX_PROCESSES`].
pub fn write(
    directory: &Path,
    settings: &Settings,
    population: &Population,
    prepare: &Ops,
    timed: &[Ops],
) -> Result<(), JobError> {
    let processes = settings.processes as usize;
    assert!(!timed.is_empty(), "a job has at least one thread");
    assert!(timed.len().is_multiple_of(processes), "each process has as many threads");
    assert!(settings.processes <= MAX_PROCESSES, "at most {MAX_PROCESSES} processes");
    let lines = Lines {
        settings: settings.clone(),
        keys: population.len(),
        pool_span: u64::from(POOL_SPAN),
        threads: timed.len() / processes,
        is_of_schema_3: iter::once(prepare).chain(timed).any(Ops::is_of_schema_3),
    };
    put(directory, file::SETTINGS, lines.text().as_bytes())?;
    put(directory, file::KEYS, &population.keys)?;
    put(directory, file::INDEX, &bytes(&population.index))?;
    put(directory, file::SIZES, &bytes(&population.sizes))?;
    put(directory, file::POOL, &pool(settings.seed, &population.sizes))?;
    put(directory, file::PREPARE, &bytes(prepare.words()))?;
    for (thread, ops) in timed.iter().enumerate() {
        put(directory, &file::timed(thread), &bytes(ops.words()))?;
    }
    Ok(())
}

/// Adds a warm-up (untimed executions) to the job in a directory; returns whether the job allows
/// one. A job whose requests a server counts does not, nor does one that times the opening.
///
/// # Errors
///
/// [`JobError`], where the job cannot be read or written.
pub(crate) fn add_warm_up(directory: &Path, executions: u64) -> Result<bool, JobError> {
    let path = directory.join(file::SETTINGS);
    let text = fs::read_to_string(&path).map_err(JobError::io(&path))?;
    let mut lines = Lines::parse(&path, &text)?;
    if !lines.settings.can_warm_up() || lines.settings.origin.is_some() {
        return Ok(false);
    }
    lines.settings.warm_up = executions;
    put(directory, file::SETTINGS, lines.text().as_bytes())?;
    Ok(true)
}

fn put(directory: &Path, name: &str, bytes: &[u8]) -> Result<(), JobError> {
    let path = directory.join(name);
    fs::write(&path, bytes).map_err(JobError::io(path))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Random bytes: what no compression makes smaller. Eight more than the largest value needs, so
/// that a runner can lay the number of a key over the first eight of any value.
fn pool(seed: u64, sizes: &[u32]) -> Vec<u8> {
    let largest = sizes.iter().copied().max().unwrap_or(0) as usize;
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(POOL_STREAM);
    let mut pool = vec![0; POOL_SPAN as usize + largest + 8];
    random.fill_bytes(&mut pool);
    pool
}
