//! The traces that the operations of a job leave if they are done: `docs/job.md`.

use super::ops::Op;
use super::read::Job;

/// The bytes of a value as words of eight, lowest byte first, and each of the bytes that are left, added
/// up modulo 2^64.
#[inline]
pub(crate) fn words_of(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

/// Whether operations write each of the keys.
pub(crate) fn written(words: &[u32], keys: u32) -> Vec<bool> {
    let mut written = vec![false; keys as usize];
    let mut at = 0;
    while let Some((op, operand)) = words.get(at).and_then(|&word| Op::decode(word)) {
        match op {
            Op::Set | Op::GetSet | Op::Expire | Op::Compute => written[operand as usize] = true,
            Op::Many => at += operand as usize,
            _ => {}
        }
        at += 1;
    }
    written
}

/// The checksums of all values that the timed operations of a process read, if every read hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadSums {
    /// The result `read_words`.
    pub(crate) words: u64,
    /// The result `read_crc32`.
    pub(crate) crc32: u64,
}

impl ReadSums {
    /// The sums of one process.
    pub(crate) fn of(job: &Job) -> Self {
        let mut times = vec![0_u64; job.keys() as usize];
        for words in job.timed() {
            count_reads(words, &mut times);
        }
        let mut pool = job.pool().to_vec();
        let executions = job.settings().executions;
        let mut sums = Self::default();
        for (number, times) in (0..).zip(times).filter(|(_, times)| *times > 0) {
            let times = times.wrapping_mul(executions);
            let (words, crc32) = job.entry(number).value(number, &mut pool, |value| {
                (words_of(value), u64::from(crc32fast::hash(value)))
            });
            sums.words = sums.words.wrapping_add(words.wrapping_mul(times));
            sums.crc32 = sums.crc32.wrapping_add(crc32.wrapping_mul(times));
        }
        sums
    }

    /// The sums of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            words: self.words.wrapping_add(other.words),
            crc32: self.crc32.wrapping_add(other.crc32),
        }
    }
}

fn count_reads(words: &[u32], times: &mut [u64]) {
    let mut at = 0;
    while let Some((op, operand)) = words.get(at).and_then(|&word| Op::decode(word)) {
        match op {
            Op::Get | Op::GetSet | Op::Load | Op::Compute => times[operand as usize] += 1,
            Op::Many => {
                for &key in &words[at + 1..=at + operand as usize] {
                    times[key as usize] += 1;
                }
                at += operand as usize;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether the timed part writes a key that nothing before it writes, and removes none: some of
/// these are there afterwards, whatever a cache evicts.
pub(crate) fn leaves_new_keys(jobs: &[Job]) -> bool {
    let Some(first) = jobs.first() else { return false };
    let prepared = written(first.prepare(), first.keys());
    let removes = |op| matches!(op, Op::Delete | Op::Fresh | Op::Clear | Op::Expire);
    let lists = || jobs.iter().flat_map(Job::timed);
    let ops = |words: &[u32]| {
        let mut at = 0;
        let mut found = false;
        while let Some((op, operand)) = words.get(at).and_then(|&word| Op::decode(word)) {
            found |= removes(op);
            at += if op == Op::Many { 1 + operand as usize } else { 1 };
        }
        found
    };
    if lists().any(|words| ops(words)) {
        return false;
    }
    lists().any(|words| {
        written(words, first.keys())
            .iter()
            .zip(&prepared)
            .any(|(timed, prepared)| *timed && !prepared)
    })
}
