//! The loop that gives a worker its operations: what everything else is there for.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use crate::job::evidence::{words_of, written};
use crate::job::{Job, JobEntry, Op};
use crate::subject::{Cause, Worker};

/// The counted outcomes of a job's operations: hits, misses, errors and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) hits: u64,
    /// The total length of the values that reads found in the cache, in bytes.
    pub(super) hit_bytes: u64,
    pub(super) misses: u64,
    pub(super) errors: u64,
    pub(super) wrong: u64,
    /// The checksum of the values that reads found: their words of eight bytes added up modulo 2^64
    /// (`docs/job.md`).
    pub(super) read_words: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.hit_bytes += other.hit_bytes;
        self.misses += other.misses;
        self.errors += other.errors;
        self.wrong += other.wrong;
        self.read_words = self.read_words.wrapping_add(other.read_words);
    }

    /// Adds reads, each of which was found, failed, or was a miss.
    fn read(&mut self, reads: u64, errors: u64, found: &FoundValues) {
        self.operations += reads;
        self.errors += errors;
        self.hits += found.hits;
        self.hit_bytes += found.hit_bytes;
        self.wrong += found.wrong;
        self.misses += reads - errors - found.hits;
        self.read_words = self.read_words.wrapping_add(found.words);
    }
}

/// The outcomes of reads.
#[derive(Default)]
struct FoundValues {
    hits: u64,
    hit_bytes: u64,
    wrong: u64,
    /// The words of everything found, added up.
    words: u64,
}

impl FoundValues {
    /// Looks at a value that was found for a key.
    #[inline]
    fn add(&mut self, entry: JobEntry, number: u32, value: &[u8]) {
        self.hits += 1;
        self.hit_bytes += value.len() as u64;
        self.wrong += u64::from(!entry.begins(number, value));
        self.words = self.words.wrapping_add(words_of(value));
    }
}

/// The working data of one thread that does a job's operations, such as its buffers. It is
/// allocated before memory is measured and anything is timed.
pub(super) struct Lane<'job> {
    job: &'job Job,
    /// A copy of the job's pool, in which values get the numbers of their keys.
    pool: Vec<u8>,
    /// Where values are read to.
    buffer: Vec<u8>,
    /// The keys of one read of many.
    many: Vec<&'job [u8]>,
    /// The text of the first error of the cache in this thread; `None` if there was none.
    pub(super) first_error: Option<String>,
}

/// An observer of a job's operations, called at the beginning and at the end of each.
pub(super) trait Probe {
    /// The data kept from the beginning to the end.
    type Begun;

    fn begin(&mut self) -> Self::Begun;
    fn end(&mut self, op: Op, begun: Self::Begun);
}

/// An observer of a job's operations that does nothing and costs nothing.
pub(super) struct Blind;

impl Probe for Blind {
    type Begun = ();

    #[inline]
    fn begin(&mut self) {}

    #[inline]
    fn end(&mut self, _op: Op, (): ()) {}
}

impl<'job> Lane<'job> {
    pub(super) fn new(job: &'job Job) -> Self {
        let largest = (0..job.keys()).map(|key| job.entry(key).value_bytes()).max().unwrap_or(0);
        let many = job.timed().iter().map(|words| longest_many(words)).max().unwrap_or(0);
        Self {
            job,
            pool: job.pool().to_vec(),
            buffer: Vec::with_capacity(largest),
            many: Vec::with_capacity(many.max(longest_many(job.prepare()))),
            first_error: None,
        }
    }

    /// Performs the operations of one thread of a job on the cache; they have been checked, and
    /// none of them affects the whole cache.
    pub(super) fn drive<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut at = 0;
        while let Some(&word) = words.get(at) {
            let (op, operand) = Op::decode(word).expect("the job was tested");
            let rest = &words[at..];
            at += match op {
                Op::Get => self.gets(rest, worker, probe, &mut tally),
                Op::Set => self.sets(rest, worker, probe, &mut tally),
                Op::GetSet => self.get_sets(rest, worker, probe, &mut tally),
                Op::Many => {
                    let keys = &rest[1..=operand as usize];
                    let begun = probe.begin();
                    self.get_many(keys, worker, &mut tally);
                    probe.end(op, begun);
                    1 + keys.len()
                }
                Op::Delete => {
                    let begun = probe.begin();
                    if let Err(cause) = worker.delete(self.job.key(self.job.entry(operand))) {
                        tally.errors += 1;
                        keep(&mut self.first_error, &cause);
                    }
                    tally.operations += 1;
                    probe.end(op, begun);
                    1
                }
                Op::Load => self.loads(rest, worker, probe, &mut tally),
                Op::Expire | Op::Compute => {
                    let begun = probe.begin();
                    if op == Op::Expire {
                        self.expire(operand, worker, &mut tally);
                    } else {
                        self.compute(operand, worker, &mut tally);
                    }
                    probe.end(op, begun);
                    1
                }
                Op::Fresh | Op::Flush | Op::Wait | Op::Clear => {
                    unreachable!("the operations were split at each of these")
                }
            }
        }
        tally
    }

    // Operations of a kind mostly follow each other. Each kind has a loop of its own, whose
    // counters nothing else sees, so that they stay in registers across the calls of the cache.

    /// Does the reads that come first; how many these are.
    fn gets<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
        tally: &mut Tally,
    ) -> usize {
        let Self { job, buffer, first_error, .. } = self;
        let (mut found, mut done, mut errors) = (FoundValues::default(), 0, 0);
        for number in run(words, Op::Get) {
            let begun = probe.begin();
            let entry = job.entry(number);
            match worker.get_into(job.key(entry), buffer) {
                Ok(true) => found.add(entry, number, buffer),
                Ok(false) => {}
                Err(cause) => {
                    errors += 1;
                    keep(first_error, &cause);
                }
            }
            probe.end(Op::Get, begun);
            done += 1;
        }
        tally.read(done as u64, errors, &found);
        done
    }

    /// Does the writes that come first; how many these are.
    fn sets<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
        tally: &mut Tally,
    ) -> usize {
        let Self { job, pool, first_error, .. } = self;
        let (mut done, mut errors) = (0, 0);
        for number in run(words, Op::Set) {
            let begun = probe.begin();
            let entry = job.entry(number);
            let key = job.key(entry);
            if let Err(cause) = entry.value(number, pool, |value| worker.set(key, value)) {
                errors += 1;
                keep(first_error, &cause);
            }
            probe.end(Op::Set, begun);
            done += 1;
        }
        tally.operations += done as u64;
        tally.errors += errors;
        done
    }

    /// Does the reads with a write after a miss that come first; how many these are.
    fn get_sets<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
        tally: &mut Tally,
    ) -> usize {
        let Self { job, buffer, pool, first_error, .. } = self;
        let (mut found, mut done) = (FoundValues::default(), 0);
        let (mut read_errors, mut write_errors) = (0, 0);
        for number in run(words, Op::GetSet) {
            let begun = probe.begin();
            let entry = job.entry(number);
            let key = job.key(entry);
            match worker.get_into(key, buffer) {
                Ok(true) => found.add(entry, number, buffer),
                Ok(false) => {
                    if let Err(cause) = entry.value(number, pool, |value| worker.set(key, value)) {
                        write_errors += 1;
                        keep(first_error, &cause);
                    }
                }
                Err(cause) => {
                    read_errors += 1;
                    keep(first_error, &cause);
                }
            }
            probe.end(Op::GetSet, begun);
            done += 1;
        }
        tally.read(done as u64, read_errors, &found);
        tally.errors += write_errors;
        done
    }

    /// Does the reads that come first whose values are made after a miss and not written; how many
    /// these are.
    fn loads<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
        tally: &mut Tally,
    ) -> usize {
        let Self { job, buffer, pool, first_error, .. } = self;
        let (mut found, mut done, mut errors) = (FoundValues::default(), 0, 0);
        for number in run(words, Op::Load) {
            let begun = probe.begin();
            let entry = job.entry(number);
            match worker.get_into(job.key(entry), buffer) {
                Ok(true) => found.add(entry, number, buffer),
                Ok(false) => entry.value(number, pool, |value| {
                    buffer.clear();
                    buffer.extend_from_slice(value);
                    black_box(words_of(buffer));
                }),
                Err(cause) => {
                    errors += 1;
                    keep(first_error, &cause);
                }
            }
            probe.end(Op::Load, begun);
            done += 1;
        }
        tally.read(done as u64, errors, &found);
        done
    }

    fn expire(&mut self, number: u32, worker: &mut dyn Worker, tally: &mut Tally) {
        let Self { job, pool, first_error, .. } = self;
        let entry = job.entry(number);
        let key = job.key(entry);
        tally.operations += 1;
        if let Err(cause) = entry.value(number, pool, |value| worker.set_expiring(key, value)) {
            tally.errors += 1;
            keep(first_error, &cause);
        }
    }

    fn compute(&mut self, number: u32, worker: &mut dyn Worker, tally: &mut Tally) {
        let Self { job, buffer, pool, first_error, .. } = self;
        let entry = job.entry(number);
        let took = Duration::from_millis(job.settings().compute_ms);
        let mut computed = false;
        let result = worker.compute(job.key(entry), buffer, &mut |made: &mut Vec<u8>| {
            computed = true;
            thread::sleep(took);
            entry.value(number, pool, |value| made.extend_from_slice(value));
        });
        let mut found = FoundValues::default();
        if let Err(cause) = &result {
            keep(first_error, cause);
        } else if computed {
            found.wrong = u64::from(!entry.begins(number, buffer));
        } else {
            found.add(entry, number, buffer);
        }
        tally.read(1, u64::from(result.is_err()), &found);
    }

    fn get_many(&mut self, numbers: &[u32], worker: &mut dyn Worker, tally: &mut Tally) {
        let job = self.job;
        self.many.clear();
        self.many.extend(numbers.iter().map(|&number| job.key(job.entry(number))));
        let (mut answers, mut read) = (0, FoundValues::default());
        let result = worker.get_many(&self.many, &mut |position, value| {
            answers += 1;
            let (Some(value), Some(&number)) = (value, numbers.get(position)) else { return };
            read.add(job.entry(number), number, value);
        });
        let asked = numbers.len() as u64;
        let cause = match result {
            Ok(()) if answers == asked => {
                tally.read(asked, 0, &read);
                return;
            }
            Ok(()) => format!("get_many of {asked} keys gave {answers} answers").into(),
            Err(cause) => cause,
        };
        keep(&mut self.first_error, &cause);
        tally.read(asked, asked, &FoundValues { wrong: read.wrong, ..FoundValues::default() });
    }

    /// Reads every key of the job from the cache and compares its value byte for byte; returns the
    /// number of right values, and other counts.
    pub(super) fn verify(&mut self, worker: &mut dyn Worker) -> (Verified, Tally) {
        let mut tally = Tally::default();
        let mut verified = Verified::default();
        let prepared = written(self.job.prepare(), self.job.keys());
        for number in 0..self.job.keys() {
            let entry = self.job.entry(number);
            match worker.get_into(self.job.key(entry), &mut self.buffer) {
                Ok(true) if entry.is(number, &self.buffer, &self.pool) => {
                    verified.all += 1;
                    verified.new += u64::from(!prepared[number as usize]);
                }
                Ok(true) => tally.wrong += 1,
                Ok(false) => {}
                Err(cause) => {
                    tally.errors += 1;
                    keep(&mut self.first_error, &cause);
                }
            }
        }
        (verified, tally)
    }
}

/// The number of the job's keys that the cache returned with the right value, in all and of those
/// that only the timed part writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verified {
    pub(super) all: u64,
    /// The number of keys with the right value that only the timed part of the job writes.
    pub(super) new: u64,
}

/// The operands of the words that come first and are all of this kind.
#[inline]
fn run(words: &[u32], kind: Op) -> impl Iterator<Item = u32> {
    words.iter().map_while(move |&word| match Op::decode(word) {
        Some((op, operand)) if op == kind => Some(operand),
        _ => None,
    })
}

/// Remembers what a cache said when it failed first.
#[cold]
fn keep(first_error: &mut Option<String>, cause: &Cause) {
    first_error.get_or_insert_with(|| cause.to_string());
}

/// The most keys of one read.
fn longest_many(words: &[u32]) -> usize {
    let decoded = words.iter().filter_map(|&word| Op::decode(word));
    let many = decoded.filter(|(op, _)| *op == Op::Many);
    many.map(|(_, count)| count as usize).max().unwrap_or(0)
}
