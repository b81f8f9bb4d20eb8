//! Reads the directory of a job and checks it once, so that the timed part has nothing to test.

use std::fs;
use std::path::Path;

use super::error::JobError;
use super::file;
use super::ops::Op;
use super::population::VALUE_STEP;
use super::settings::{Lines, Settings, Timing};

/// The positions of a key and its value in a job's data, in one record, so that one memory access
/// finds both.
#[derive(Clone, Copy, Debug)]
pub struct JobEntry {
    key_start: u32,
    key_bytes: u32,
    value_start: u32,
    value_bytes: u32,
}

/// A job (keys, values and operations for a cache), as one of its processes reads it.
#[derive(Debug)]
pub struct Job {
    settings: Settings,
    keys: Vec<u8>,
    entries: Vec<JobEntry>,
    pool: Vec<u8>,
    prepare: Vec<u32>,
    timed: Vec<Vec<u32>>,
}

impl Job {
    /// Reads a job (keys, values and operations for a cache) from its directory, for the job's
    /// first process.
    ///
    /// # Errors
    ///
    /// [`JobError`], for every file that is not as the format says.
    pub fn read(directory: &Path) -> Result<Self, JobError> {
        Self::read_for(directory, 0)
    }

    /// Reads a job from its directory for one of its processes, numbered from 0: only the first one
    /// prepares the cache, and each has its own timed operations.
    ///
    /// # Errors
    ///
    /// [`JobError`], for every file that is not as the format says, and a process that the job
    /// does not have.
    pub fn read_for(directory: &Path, process: u32) -> Result<Self, JobError> {
        let path = directory.join(file::SETTINGS);
        let text = fs::read_to_string(&path).map_err(JobError::io(&path))?;
        let lines = Lines::parse(&path, &text)?;
        let processes = lines.settings.processes;
        if process >= processes {
            return Err(JobError::NoProcess { process, processes });
        }
        let keys = bytes(&directory.join(file::KEYS))?;
        let pool = bytes(&directory.join(file::POOL))?;
        let entries = entries(directory, &lines, &keys, &pool)?;
        let alone = lines.threads == 1 && processes == 1;
        let prepare = match process {
            0 => ops(&directory.join(file::PREPARE), entries.len(), true, lines.is_of_schema_3)?,
            _ => Vec::new(),
        };
        let first = process as usize * lines.threads;
        let timed = (first..first + lines.threads)
            .map(|thread| {
                ops(
                    &directory.join(file::timed(thread)),
                    entries.len(),
                    alone,
                    lines.is_of_schema_3,
                )
            })
            .collect::<Result<Vec<_>, _>>()?;
        if lines.settings.timing == Timing::Open {
            check_opening(directory, alone, &prepare, &timed)?;
        }
        Ok(Self { settings: lines.settings, keys, entries, pool, prepare, timed })
    }

    /// Returns the settings of the job: everything but keys, values and operations.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the number of keys of the job.
    pub fn keys(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("at most 2^28, as job.txt says")
    }

    /// Returns the positions of a key and its value in the job's data, by the key's number.
    ///
    /// # Panics
    ///
    /// If there is no such key; the operations of a job have none such.
    #[inline]
    pub fn entry(&self, number: u32) -> JobEntry {
        self.entries[number as usize]
    }

    /// Returns the bytes of a key of the job.
    #[inline]
    pub fn key(&self, entry: JobEntry) -> &[u8] {
        &self.keys[entry.key_start as usize..][..entry.key_bytes as usize]
    }

    /// Returns the pool of random bytes that values are made of; see [`JobEntry::value`].
    pub fn pool(&self) -> &[u8] {
        &self.pool
    }

    /// Returns the encoded operations before the timed part, which the first process does. All
    /// words are valid: each operation is known, each key exists, and the keys of [`Op::Many`]
    /// follow it.
    pub fn prepare(&self) -> &[u32] {
        &self.prepare
    }

    /// Returns the encoded timed operations of each thread of this process; all words are valid.
    pub fn timed(&self) -> &[Vec<u32>] {
        &self.timed
    }
}

impl JobEntry {
    /// Returns the size of the value of a job's key, in bytes.
    #[inline]
    pub fn value_bytes(self) -> usize {
        self.value_bytes as usize
    }

    /// Calls `write` with the value of a job's key, without copying it: the number of the key is
    /// written into `pool`, a copy of the job's, and afterwards replaced by the original bytes.
    #[inline]
    pub fn value<T>(self, number: u32, pool: &mut [u8], write: impl FnOnce(&[u8]) -> T) -> T {
        let (start, size) = (self.value_start as usize, self.value_bytes as usize);
        let place = start..start + 8;
        let kept: [u8; 8] = pool[place.clone()].try_into().expect("a range of eight");
        pool[place.clone()].copy_from_slice(&u64::from(number).to_le_bytes());
        let result = write(&pool[start..start + size]);
        pool[place].copy_from_slice(&kept);
        result
    }

    /// Whether `found` has the size of the key's value and begins with the key's number: a check
    /// that is fast enough for the timed part.
    #[inline]
    pub fn begins(self, number: u32, found: &[u8]) -> bool {
        if found.len() != self.value_bytes as usize {
            return false;
        }
        let number = u64::from(number);
        match found.first_chunk::<8>() {
            Some(first) => u64::from_le_bytes(*first) == number,
            None => number.to_le_bytes().starts_with(found),
        }
    }

    /// Whether `found` equals the value of the job's key, byte for byte.
    pub fn is(self, number: u32, found: &[u8], pool: &[u8]) -> bool {
        let rest = |bytes: &[u8]| bytes.len().min(8);
        self.begins(number, found)
            && found[rest(found)..]
                == pool[self.value_start as usize..][..self.value_bytes as usize][rest(found)..]
    }
}

fn entries(
    directory: &Path,
    lines: &Lines,
    keys: &[u8],
    pool: &[u8],
) -> Result<Vec<JobEntry>, JobError> {
    let path = directory.join(file::INDEX);
    let index = words(&path)?;
    let count = lines.keys as usize;
    if index.len() != count + 1 {
        let wrong = format!("{} numbers; {count} keys have {}", index.len(), count + 1);
        return Err(JobError::damaged(path, wrong));
    }
    let ends_well = index[0] == 0 && index[count] as usize == keys.len();
    if !ends_well || !index.is_sorted() {
        let wrong = format!("it does not go from 0 up to the {} bytes of keys", keys.len());
        return Err(JobError::damaged(path, wrong));
    }
    let path = directory.join(file::SIZES);
    let sizes = words(&path)?;
    if sizes.len() != count {
        return Err(JobError::damaged(path, format!("{} sizes of {count} keys", sizes.len())));
    }
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let needed = lines.pool_span + u64::from(largest) + 8;
    if pool.len() as u64 != needed || u32::try_from(pool.len()).is_err() {
        let wrong = format!("{} bytes; the job needs {needed}", pool.len());
        return Err(JobError::damaged(directory.join(file::POOL), wrong));
    }
    let entry = |(number, &size): (usize, &u32)| JobEntry {
        key_start: index[number],
        key_bytes: index[number + 1] - index[number],
        value_start: u32::try_from(number as u64 * VALUE_STEP % lines.pool_span)
            .expect("the pool has fewer than 2^32 bytes"),
        value_bytes: size,
    };
    Ok(sizes.iter().enumerate().map(entry).collect())
}

/// A job that begins with the opening has reads alone, on one thread.
fn check_opening(
    directory: &Path,
    alone: bool,
    prepare: &[u32],
    timed: &[Vec<u32>],
) -> Result<(), JobError> {
    let is_get = |&word: &u32| matches!(Op::decode(word), Some((Op::Get, _)));
    if alone && prepare.is_empty() && matches!(timed, [words] if words.iter().all(is_get)) {
        return Ok(());
    }
    let wrong = "with the timing 'open' there is one thread of one process, which reads, and nothing \
                 before";
    Err(JobError::damaged(directory.join(file::SETTINGS), wrong))
}

/// Reads operations and tests each of them. Only one thread `alone` may replace the client.
fn ops(path: &Path, keys: usize, alone: bool, is_of_schema_3: bool) -> Result<Vec<u32>, JobError> {
    let words = words(path)?;
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        let wrong = |what: String| JobError::damaged(path, format!("word {at}: {what}"));
        let (op, operand) =
            Op::decode(word).ok_or_else(|| wrong(format!("{word:#x} is an unknown operation")))?;
        if op.is_of_schema_3() && !is_of_schema_3 {
            return Err(wrong(format!("'{}' is of schema 3", op.name())));
        }
        let operands = match op {
            Op::Many => {
                let operands = words.get(at + 1..=at + operand as usize);
                operands.ok_or_else(|| wrong(format!("it ends before {operand} keys")))?
            }
            _ if op.is_for_the_whole() && !alone => {
                let what = format!("'{}' is not for several threads or processes", op.name());
                return Err(wrong(what));
            }
            _ if op.is_for_the_whole() => &[],
            _ => &[operand],
        };
        if let Some(key) = operands.iter().find(|&&key| key as usize >= keys) {
            return Err(wrong(format!("there is no key {key}; there are {keys}")));
        }
        at += if op == Op::Many { 1 + operands.len() } else { 1 };
    }
    Ok(words)
}

fn bytes(path: &Path) -> Result<Vec<u8>, JobError> {
    fs::read(path).map_err(JobError::io(path))
}

fn words(path: &Path) -> Result<Vec<u32>, JobError> {
    let bytes = bytes(path)?;
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        let wrong = format!("{} bytes are not a multiple of 4", bytes.len());
        return Err(JobError::damaged(path, wrong));
    }
    Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}
