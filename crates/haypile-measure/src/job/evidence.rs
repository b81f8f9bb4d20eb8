//! Proof that the operations of a job were done: `docs/job.md`.

use super::ops::Op;
use super::read::Job;

/// Returns a checksum of a cached value: the sum modulo 2^64 of its words of eight bytes, lowest byte first, and of
/// each remaining byte.
#[inline]
pub(crate) fn words_of(value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(u64::from(byte)))
}

/// Returns the operations (such as reads) that words of a job encode, each with its key's number; the keys of
/// [`Op::Many`] one by one.
pub(crate) fn operations(words: &[u32]) -> impl Iterator<Item = (Op, u32)> {
    let mut left_of_many = 0;
    words.iter().filter_map(move |&word| {
        if left_of_many > 0 {
            left_of_many -= 1;
            return Some((Op::Many, word));
        }
        let (op, operand) = Op::decode(word)?;
        if op == Op::Many {
            left_of_many = operand;
            return None;
        }
        Some((op, operand))
    })
}

/// Returns, for each key of a job, whether one of the operations that `words` encode writes it.
pub(crate) fn written(words: &[u32], keys: u32) -> Vec<bool> {
    let mut written = vec![false; keys as usize];
    add_written(words, &mut written);
    written
}

fn add_written(words: &[u32], written: &mut [bool]) {
    for (op, key) in operations(words) {
        if matches!(op, Op::Set | Op::GetSet | Op::Expire | Op::Compute) {
            written[key as usize] = true;
        }
    }
}

/// The checksums of all values that the timed operations of one process read, if every read hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadSums {
    /// The sum of the words (of eight bytes each) of all values that were read, which runners report as `read_words`.
    pub(crate) words: u64,
    /// The sum of the CRC-32 checksums of all values that were read, which runners report as `read_crc32`.
    pub(crate) crc32: u64,
}

impl ReadSums {
    /// Computes the checksums of the values that one process of a job reads.
    pub(crate) fn of(job: &Job) -> Self {
        let mut times = vec![0_u64; job.keys() as usize];
        for (op, key) in job.timed().iter().flat_map(|words| operations(words)) {
            if matches!(op, Op::Get | Op::GetSet | Op::Load | Op::Compute | Op::Many) {
                times[key as usize] += 1;
            }
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

    /// Returns the sums of these checksums of values read and those of another process.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            words: self.words.wrapping_add(other.words),
            crc32: self.crc32.wrapping_add(other.crc32),
        }
    }
}

/// The expectation for the keys that only a job's timed part writes: whether some of them have to be in the cache
/// afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum NewKeys {
    /// No such key: the timed part writes none, or some are removed again.
    #[default]
    None,
    /// Some of these keys are in the cache afterwards, for there is room for all keys.
    Stay,
    /// None of these keys may be in the cache: a policy can decline keys that it does not know to be used often.
    MayGo,
}

/// Room for an entry in addition to its key and value, more than any cache needs, where all are to fit.
const ROOM_PER_ENTRY_BYTES: u64 = 256;

impl NewKeys {
    pub(crate) fn of(jobs: &[Job]) -> Self {
        let Some(first) = jobs.first().filter(|_| has_new_keys(jobs)) else { return Self::None };
        let entry_bytes = |number| {
            let entry = first.entry(number);
            (first.key(entry).len() + entry.value_bytes()) as u64 + ROOM_PER_ENTRY_BYTES
        };
        let lists = jobs.iter().flat_map(Job::timed).map(Vec::as_slice);
        let mut written = written(first.prepare(), first.keys());
        lists.for_each(|words| add_written(words, &mut written));
        let all: u64 =
            (0..first.keys()).filter(|key| written[*key as usize]).map(entry_bytes).sum();
        if all <= first.settings().capacity_bytes { Self::Stay } else { Self::MayGo }
    }
}

/// Whether the timed part writes a key that nothing before it writes, and removes none.
fn has_new_keys(jobs: &[Job]) -> bool {
    let Some(first) = jobs.first() else { return false };
    let prepared = written(first.prepare(), first.keys());
    let removes = |op| matches!(op, Op::Delete | Op::Fresh | Op::Clear | Op::Expire);
    let lists = || jobs.iter().flat_map(Job::timed);
    if lists().flat_map(|words| operations(words)).any(|(op, _)| removes(op)) {
        return false;
    }
    lists().any(|words| {
        written(words, first.keys())
            .iter()
            .zip(&prepared)
            .any(|(timed, prepared)| *timed && !prepared)
    })
}

#[cfg(test)]
mod tests {
    use super::super::ops::Ops;
    use super::*;

    #[test]
    fn the_keys_of_many_come_one_by_one_and_what_follows_is_an_operation() {
        let mut ops = Ops::new();
        ops.set(7);
        ops.get_many(&[1, 2, 1]);
        ops.get(3);
        let many = |key| (Op::Many, key);
        let expected = [(Op::Set, 7), many(1), many(2), many(1), (Op::Get, 3)];
        assert_eq!(operations(ops.words()).collect::<Vec<_>>(), expected);
        assert_eq!(
            written(ops.words(), 8),
            [false, false, false, false, false, false, false, true]
        );
    }
}
