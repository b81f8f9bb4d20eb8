//! The loop that gives a worker its operations: what everything else is there for.

use std::hint::black_box;

use crate::job::{Job, Op};
use crate::subject::{Cause, Worker};

/// What came of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) operations: u64,
    pub(super) hits: u64,
    /// Bytes of the values that were found.
    pub(super) hit_bytes: u64,
    pub(super) misses: u64,
    pub(super) errors: u64,
    pub(super) wrong: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.hit_bytes += other.hit_bytes;
        self.misses += other.misses;
        self.errors += other.errors;
        self.wrong += other.wrong;
    }
}

/// What a thread needs beside its worker. It is made before memory is looked at and before
/// anything is timed.
pub(super) struct Lane<'job> {
    job: &'job Job,
    /// A copy of the job's pool, in which values get the numbers of their keys.
    pool: Vec<u8>,
    /// Where values are read to.
    buffer: Vec<u8>,
    /// The keys of one read of many.
    many: Vec<&'job [u8]>,
    /// The bytes of everything read, added up, so that they all are looked at.
    sum: u64,
    /// What the cache said when it failed first.
    pub(super) first_error: Option<String>,
}

/// Sees each operation begin and end.
pub(super) trait Probe {
    /// What is kept from the beginning to the end.
    type Begun;

    fn begin(&mut self) -> Self::Begun;
    fn end(&mut self, op: Op, begun: Self::Begun);
}

/// Sees nothing and costs nothing.
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
            sum: 0,
            first_error: None,
        }
    }

    /// Does operations that the job has proved sound, none of them for the cache as a
    /// whole.
    pub(super) fn drive<P: Probe>(
        &mut self,
        words: &[u32],
        worker: &mut dyn Worker,
        probe: &mut P,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut at = 0;
        while at < words.len() {
            let (op, operand) = Op::decode(words[at]).expect("the job was tested");
            at += 1;
            let begun = probe.begin();
            match op {
                Op::Get => {
                    self.get(operand, worker, &mut tally);
                }
                Op::Set => self.set(operand, worker, &mut tally),
                Op::Many => {
                    let keys = &words[at..at + operand as usize];
                    at += keys.len();
                    self.get_many(keys, worker, &mut tally);
                }
                Op::Delete => {
                    let entry = self.job.entry(operand);
                    if let Err(cause) = worker.delete(self.job.key(entry)) {
                        self.failed(&mut tally, 1, &cause);
                    }
                    tally.operations += 1;
                }
                Op::GetSet => {
                    if !self.get(operand, worker, &mut tally) {
                        self.set(operand, worker, &mut tally);
                        tally.operations -= 1;
                    }
                }
                Op::Fresh | Op::Flush | Op::Wait => {
                    unreachable!("the operations were split at each of these")
                }
            }
            probe.end(op, begun);
        }
        black_box(self.sum);
        tally
    }

    /// Reads a key; says whether it hit.
    #[inline]
    fn get(&mut self, number: u32, worker: &mut dyn Worker, tally: &mut Tally) -> bool {
        let entry = self.job.entry(number);
        tally.operations += 1;
        match worker.get_into(self.job.key(entry), &mut self.buffer) {
            Ok(true) => {
                tally.hits += 1;
                tally.hit_bytes += self.buffer.len() as u64;
                tally.wrong += u64::from(!entry.begins(number, &self.buffer));
                self.sum = self.sum.wrapping_add(touch(&self.buffer));
                true
            }
            Ok(false) => {
                tally.misses += 1;
                false
            }
            Err(cause) => {
                self.failed(tally, 1, &cause);
                true
            }
        }
    }

    #[inline]
    fn set(&mut self, number: u32, worker: &mut dyn Worker, tally: &mut Tally) {
        let entry = self.job.entry(number);
        let key = self.job.key(entry);
        tally.operations += 1;
        let written = entry.value(number, &mut self.pool, |value| worker.set(key, value));
        if let Err(cause) = written {
            self.failed(tally, 1, &cause);
        }
    }

    fn get_many(&mut self, numbers: &[u32], worker: &mut dyn Worker, tally: &mut Tally) {
        let job = self.job;
        self.many.clear();
        self.many.extend(numbers.iter().map(|&number| job.key(job.entry(number))));
        let (mut answers, mut hits, mut hit_bytes, mut wrong, mut sum) = (0, 0, 0, 0, 0_u64);
        let result = worker.get_many(&self.many, &mut |position, value| {
            answers += 1;
            let (Some(value), Some(&number)) = (value, numbers.get(position)) else { return };
            hits += 1;
            hit_bytes += value.len() as u64;
            wrong += u64::from(!job.entry(number).begins(number, value));
            sum = sum.wrapping_add(touch(value));
        });
        let asked = numbers.len() as u64;
        self.sum = self.sum.wrapping_add(sum);
        tally.operations += asked;
        tally.wrong += wrong;
        match result {
            Ok(()) if answers == asked => {
                tally.hits += hits;
                tally.hit_bytes += hit_bytes;
                tally.misses += asked - hits;
            }
            Ok(()) => {
                let cause = format!("get_many of {asked} keys gave {answers} answers");
                self.failed(tally, asked, &cause.into());
            }
            Err(cause) => self.failed(tally, asked, &cause),
        }
    }

    #[cold]
    fn failed(&mut self, tally: &mut Tally, operations: u64, cause: &Cause) {
        tally.errors += operations;
        self.first_error.get_or_insert_with(|| cause.to_string());
    }

    /// Reads every key and compares its value byte for byte: how many were there and right, and
    /// what else there was to count.
    pub(super) fn verify(&mut self, worker: &mut dyn Worker) -> (u64, Tally) {
        let mut tally = Tally::default();
        let mut verified = 0;
        for number in 0..self.job.keys() {
            let entry = self.job.entry(number);
            match worker.get_into(self.job.key(entry), &mut self.buffer) {
                Ok(true) if entry.is(number, &self.buffer, &self.pool) => verified += 1,
                Ok(true) => tally.wrong += 1,
                Ok(false) => {}
                Err(cause) => self.failed(&mut tally, 1, &cause),
            }
        }
        (verified, tally)
    }
}

/// The most keys of one read.
fn longest_many(words: &[u32]) -> usize {
    let decoded = words.iter().filter_map(|&word| Op::decode(word));
    let many = decoded.filter(|(op, _)| *op == Op::Many);
    many.map(|(_, count)| count as usize).max().unwrap_or(0)
}

/// The sum of all bytes, eight at a time.
#[inline]
fn touch(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}
