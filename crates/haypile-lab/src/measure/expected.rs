//! The results that a case has to come to.

use crate::result::Sample;

/// The counts that the definition of a case determines, of all its processes together. A sample
/// that differs is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Operations, over all threads, processes and executions.
    pub operations: u64,
    /// The number of reads among these, each a hit or a miss.
    pub reads: u64,
    /// The number of reads that hit; `None` where that is up to the subject.
    pub hits: Option<u64>,
    /// The least number of reads that miss.
    pub min_misses: u64,
    /// The number of keys that are there before the timed part; `None` where that is up to the
    /// subject.
    pub verified_before: Option<u64>,
    /// The number of keys that are there after it; `None` where that is up to the subject.
    pub verified_after: Option<u64>,
    /// The largest number of keys that may be there after it, so that a cache without a bound is
    /// told from one that evicts; `None` where any number may.
    pub max_verified_after: Option<u64>,
    /// Whether the last of several processes is not measured: it only does its part in the
    /// background of the others, and has to be busy until all of them are finished. What is
    /// expected is of them.
    pub last_is_beside: bool,
}

/// The excess beyond its bound that a cache without an exact one may hold for some moments: a
/// twentieth.
const EXCESS_DIVISOR: u64 = 20;

impl Expected {
    /// Compares a sample.
    pub(super) fn judge(&self, sample: &Sample) -> Result<(), String> {
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
