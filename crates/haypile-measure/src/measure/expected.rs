//! The expected results of a case.

use std::path::Path;

use super::optimum::MostHits;
use crate::job::evidence::{NewKeys, ReadSums};
use crate::job::{Job, JobError, Timing};
use crate::result::Sample;
use crate::subject::SubjectSpec;

/// The counts of hits, misses and so on that a case's definition determines, summed over all its processes. A sample
/// with other counts is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The expected number of a case's operations, over all threads, processes and executions.
    pub operations: u64,
    /// The expected number of reads among a case's operations, each a hit or a miss.
    pub reads: u64,
    /// The expected number of reads that hit; `None` if it depends on the subject (cache).
    pub hits: Option<u64>,
    /// The smallest number of reads that have to miss in a correct cache.
    pub min_misses: u64,
    /// The expected number of keys in the cache before the timed part; `None` if it depends on the subject (cache).
    pub verified_before: Option<u64>,
    /// The expected number of keys in the cache after the timed part; `None` if it depends on the subject (cache).
    pub verified_after: Option<u64>,
    /// The largest number of keys that may be in the cache after the timed part, which
    /// distinguishes a cache without a bound from one that evicts; `None` for any number.
    pub max_verified_after: Option<u64>,
    /// The number of untimed executions (the warm-up) before the timed part, which the runner has to report: a runner
    /// that does not know them would be measured cold.
    pub warm_up: u64,
    /// Whether the process that prepared the cache is killed before the timed part, which the runner has to report.
    pub is_killed: bool,
    /// Whether the last of a case's processes is not measured, but only loads the cache in the background until the
    /// others are finished. The expected counts are those of the others.
    pub last_is_beside: bool,
}

/// The excess beyond its bound that a cache without an exact one may hold for some moments: a
/// twentieth.
const EXCESS_DIVISOR: u64 = 20;

/// Checksums that runners report for the values that they read, summed over all measured processes; `None` if one of
/// them reports none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reported {
    words: Option<u64>,
    crc32: Option<u64>,
}

impl Default for Reported {
    fn default() -> Self {
        Self { words: Some(0), crc32: Some(0) }
    }
}

impl Reported {
    pub(super) fn add_words(&mut self, words: Option<u64>) {
        self.words = self.words.zip(words).map(|(one, other)| one.wrapping_add(other));
    }

    pub(super) fn add_crc32(&mut self, crc32: Option<u64>) {
        self.crc32 = self.crc32.zip(crc32).map(|(one, other)| one.wrapping_add(other));
    }

    fn judge(self, sums: ReadSums) -> Result<(), String> {
        let equal = |what: &str, said: u64, right: u64| {
            if said == right {
                return Ok(());
            }
            Err(format!(
                "{what} is {said}, and {right} is right by definition: it did not read what it counts \
                 as hits"
            ))
        };
        match (self.words, self.crc32) {
            (Some(words), _) => equal("read_words", words, sums.words),
            (None, Some(crc32)) => equal("read_crc32", crc32, sums.crc32),
            (None, None) => {
                Err("the runner said neither read_words nor read_crc32: nothing shows that \
                                 it read the values"
                    .to_owned())
            }
        }
    }
}

/// Checksums and counts, computed from a job, that prove that a runner did the job's operations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    /// Checksums of all measured processes, if every read hits.
    sums: Option<ReadSums>,
    /// The keys that only the timed part wrote, if they can prove that it did.
    new_keys: NewKeys,
    most_hits: Option<MostHits>,
    /// The size of the job's smallest value in bytes; 0 where it is unknown.
    pub(super) least_value_bytes: u64,
}

/// Jobs of more operations than this are not read a second time.
const MAX_OPERATIONS: u64 = 1 << 26;

impl Evidence {
    /// Computes, from a written job, the checksums and counts that prove that a runner did its operations.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn of(
        directory: &Path,
        processes: u32,
        expected: &Expected,
    ) -> Result<Self, JobError> {
        if expected.operations > MAX_OPERATIONS {
            return Ok(Self::default());
        }
        let jobs = (0..processes).map(|process| Job::read_for(directory, process));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let measured = &jobs[..jobs.len() - usize::from(expected.last_is_beside)];
        let sums = || measured.iter().map(ReadSums::of).fold(ReadSums::default(), ReadSums::plus);
        let is_verified = jobs.first().is_some_and(|job| job.settings().verify_after);
        let is_filled = jobs.first().is_some_and(|job| {
            let settings = job.settings();
            // An earlier process wrote it; and a read over HTTP stores what it has fetched.
            settings.timing == Timing::Open || settings.origin.is_some()
        });
        Ok(Self {
            sums: (expected.reads > 0).then(sums),
            new_keys: if is_verified { NewKeys::of(&jobs) } else { NewKeys::None },
            most_hits: MostHits::of(&jobs).filter(|_| !is_filled),
            least_value_bytes: jobs.first().map_or(0, least_value_bytes),
        })
    }

    /// Whether nothing proves that a runner did a sample's writes: the cache has no room for all keys, and holds none
    /// of the keys that only the timed part writes.
    pub(super) fn lacks_writes(&self, sample: &Sample) -> bool {
        self.new_keys == NewKeys::MayGo && sample.error.is_none() && lacks_new_keys(sample)
    }

    /// Compares the hits of a sample with those that are possible.
    fn judge_hits(&self, sample: &Sample) -> Result<(), String> {
        let Some(most) = self.most_hits else { return Ok(()) };
        // With another room than the job gives, and with levels that hold what others do not, only a cache
        // without a bound is one.
        let is_larger = sample.counts.contains_key("levels")
            || ["room=", "size=", "+", "->"].iter().any(|it| sample.subject.name.contains(it));
        let (bound, what) = match most.optimum {
            Some(optimum) if !is_larger => (optimum, "Belady's optimum with this capacity has"),
            _ => (most.unbounded, "a cache without a bound has"),
        };
        if sample.hits <= bound {
            return Ok(());
        }
        Err(format!(
            "{} hits, and {what} {bound}: it holds more than its capacity, or counts wrongly",
            sample.hits
        ))
    }
}

/// Returns the bytes of the smallest value of a job; 0 without keys.
fn least_value_bytes(job: &Job) -> u64 {
    let sizes = (0..job.keys()).map(|key| job.entry(key).value_bytes() as u64);
    sizes.min().unwrap_or(0)
}

/// Whether a cache that keeps something has none of the keys that only the timed part writes.
fn lacks_new_keys(sample: &Sample) -> bool {
    let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
    let keeps_nothing = count("keeps_nothing") > 0 && count("verified_after") == 0;
    count("verified_new") == 0 && !keeps_nothing && count("pretends") == 0
}

impl Expected {
    /// Returns the counts that are right of a subject that never holds anything: what hits elsewhere misses there.
    fn of_none(&self) -> Self {
        let nothing = |count: Option<u64>| count.map(|_| 0);
        Self {
            hits: nothing(self.hits),
            verified_before: nothing(self.verified_before),
            verified_after: nothing(self.verified_after),
            ..*self
        }
    }

    /// Compares a sample with the results that its case must have; returns an error that states the difference.
    pub(super) fn judge(
        &self,
        sample: &Sample,
        reported: Reported,
        evidence: Evidence,
    ) -> Result<(), String> {
        let subject: Result<SubjectSpec, _> = sample.subject.name.parse();
        if subject.is_ok_and(|subject| subject.cache_name() == "none") {
            self.of_none().judge_counts(sample, reported, evidence)
        } else {
            self.judge_counts(sample, reported, evidence)
        }
    }

    fn judge_counts(
        &self,
        sample: &Sample,
        reported: Reported,
        evidence: Evidence,
    ) -> Result<(), String> {
        let count = |name: &str| sample.counts.get(name).copied().unwrap_or(0);
        let errors = count("errors");
        let wrong = count("wrong");
        if wrong > 0 {
            return Err(format!("{wrong} values were not those that were written"));
        }
        if errors > 0 {
            return Err(format!("{errors} operations failed"));
        }
        let equal = |what: &str, found: u64, expected: u64| {
            if found == expected {
                return Ok(());
            }
            Err(format!("{found} {what}, and {expected} are right by definition"))
        };
        equal("operations", sample.operations, self.operations)?;
        equal("hits and misses", sample.hits + sample.misses, self.reads)?;
        if count("pretends") > 0 {
            return Ok(());
        }
        let verified = [
            ("verified_before", "keys found before the timed part", self.verified_before),
            ("verified_after", "keys found after the timed part", self.verified_after),
        ];
        for (name, what, expected) in verified {
            if let Some(expected) = expected {
                equal(what, count(name), expected)?;
            }
        }
        if let Some(hits) = self.hits {
            equal("hits", sample.hits, hits)?;
        }
        if let Some(sums) = evidence.sums.filter(|_| sample.hits == self.reads) {
            reported.judge(sums)?;
        }
        evidence.judge_hits(sample)?;
        if evidence.new_keys == NewKeys::Stay && lacks_new_keys(sample) {
            return Err(
                "none of the keys that only the timed part writes is there afterwards: it did not write \
                 them, or verified_new is missing"
                    .to_owned(),
            );
        }
        if sample.misses < self.min_misses {
            let (found, least) = (sample.misses, self.min_misses);
            return Err(format!("{found} misses, and {least} are the least by definition"));
        }
        if let Some(max) = self.max_verified_after {
            let found = count("verified_after");
            if found > max + max / EXCESS_DIVISOR {
                return Err(format!(
                    "{found} keys found after the timed part, and the capacity is of {max}: the \
                     cache has no bound, or does not keep it"
                ));
            }
        }
        Ok(())
    }
}
