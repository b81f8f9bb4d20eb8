//! The most hits that are possible in a job: a runner that reports more does not do the job, or holds
//! more than it may.

use std::collections::{BTreeSet, HashMap};

use crate::job::evidence::operations;
use crate::job::{Job, Op};

/// Jobs of more operations have no bound: it would take longer than the job.
const MAX_OPERATIONS: usize = 4 << 20;

/// The excess beyond its capacity of a cache that counts no keys, or not exactly: a twentieth.
const EXCESS_DIVISOR: u64 = 20;

/// The largest numbers of hits that a job of one thread can have, with and without a bound on the cache's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MostHits {
    /// The number of a job's hits in a cache without a bound on its size.
    pub(super) unbounded: u64,
    /// The largest number of hits of a cache with the job's capacity (Belady, IBM Systems Journal
    /// 5, 1966), if all entries have the same size; a new entry may also be refused.
    pub(super) optimum: Option<u64>,
}

/// A request, as bounds see it.
#[derive(Clone, Copy)]
struct Request {
    key: u32,
    /// Whether the request counts as a hit or a miss.
    is_read: bool,
    /// Whether the key may be in the cache afterwards.
    stays: bool,
    is_timed: bool,
}

impl MostHits {
    /// Computes the largest numbers of hits that a job can have; `None` if several threads leave the order of
    /// operations open, or an operation removes all entries.
    pub(super) fn of(jobs: &[Job]) -> Option<Self> {
        let [job] = jobs else { return None };
        let [timed] = job.timed() else { return None };
        let executions = usize::try_from(job.settings().executions).ok()?;
        let all = timed.len().checked_mul(executions)?.checked_add(job.prepare().len())?;
        if all > MAX_OPERATIONS {
            return None;
        }
        let mut requests = Vec::with_capacity(all);
        push(job.prepare(), false, &mut requests)?;
        for _ in 0..executions {
            push(timed, true, &mut requests)?;
        }
        Some(Self {
            unbounded: unbounded(&requests, job.keys()),
            optimum: capacity(job).map(|entries| optimum(&requests, entries)),
        })
    }
}

/// The entries that fit, where all weigh the same: as if keys weighed nothing.
fn capacity(job: &Job) -> Option<usize> {
    let bytes = (job.keys() > 0).then(|| job.entry(0).value_bytes())?;
    let is_one = (0..job.keys()).all(|key| job.entry(key).value_bytes() == bytes);
    let capacity = job.settings().capacity_bytes;
    let entries = (capacity + capacity / EXCESS_DIVISOR) / (bytes as u64).max(1);
    usize::try_from(entries).ok().filter(|_| is_one && bytes > 0)
}

fn push(words: &[u32], is_timed: bool, requests: &mut Vec<Request>) -> Option<()> {
    for (op, key) in operations(words) {
        let (is_read, stays) = match op {
            Op::Get | Op::Load | Op::Many => (true, false),
            Op::GetSet | Op::Compute => (true, true),
            Op::Set | Op::Expire => (false, true),
            Op::Flush | Op::Wait => continue,
            Op::Delete | Op::Fresh | Op::Clear => return None,
        };
        requests.push(Request { key, is_read, stays, is_timed });
    }
    Some(())
}

fn unbounded(requests: &[Request], keys: u32) -> u64 {
    let mut known = vec![false; keys as usize];
    let mut hits = 0;
    for request in requests {
        let known = &mut known[request.key as usize];
        hits += u64::from(*known && request.is_read && request.is_timed);
        *known |= request.stays;
    }
    hits
}

/// Evicts what is read again last, and refuses what is not read before it is written again. What is
/// read and not there may be kept from then on: where it may not, fewer hits are possible.
fn optimum(requests: &[Request], entries: usize) -> u64 {
    let counts = |request: &Request| request.is_read && request.is_timed;
    // The next read of each request's key, if nothing writes it before.
    let mut next = vec![usize::MAX; requests.len()];
    let mut seen: HashMap<u32, usize> = HashMap::new();
    for (at, request) in requests.iter().enumerate().rev() {
        next[at] = seen.get(&request.key).copied().unwrap_or(usize::MAX);
        if counts(request) {
            seen.insert(request.key, at);
        } else {
            seen.remove(&request.key);
        }
    }
    // The keys that are there, by their next reads.
    let mut held: BTreeSet<(usize, u32)> = BTreeSet::new();
    let mut read_at: HashMap<u32, usize> = HashMap::new();
    let mut hits = 0;
    for (request, &next) in requests.iter().zip(&next) {
        let before = read_at.remove(&request.key);
        if let Some(at) = before {
            held.remove(&(at, request.key));
        }
        hits += u64::from(before.is_some() && counts(request));
        if next == usize::MAX {
            continue;
        }
        held.insert((next, request.key));
        read_at.insert(request.key, next);
        if held.len() > entries
            && let Some((_, key)) = held.pop_last()
        {
            read_at.remove(&key);
        }
    }
    hits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reads(keys: &[u32]) -> Vec<Request> {
        let read = |&key| Request { key, is_read: true, stays: true, is_timed: true };
        keys.iter().map(read).collect()
    }

    #[test]
    fn the_textbook_s_example_has_its_optimum() {
        // Silberschatz and others, Operating System Concepts: 9 faults of 20 with three frames, and 8 where
        // a page may be refused.
        let keys = [7, 0, 1, 2, 0, 3, 0, 4, 2, 3, 0, 3, 2, 1, 2, 0, 1, 7, 0, 1];
        assert_eq!(optimum(&reads(&keys), 3), 12);
        assert_eq!(unbounded(&reads(&keys), 8), 20 - 6);
        assert_eq!(optimum(&reads(&keys), 100), 20 - 6);
    }

    /// The best of all choices of what to keep.
    fn best(requests: &[Request], held: &BTreeSet<u32>, entries: usize) -> u64 {
        let Some((request, rest)) = requests.split_first() else { return 0 };
        let hit = u64::from(held.contains(&request.key) && request.is_read && request.is_timed);
        let mut after = held.clone();
        if request.stays {
            after.insert(request.key);
        }
        if after.len() <= entries {
            return hit + best(rest, &after, entries);
        }
        let without = |key: &u32| {
            let mut fewer = after.clone();
            fewer.remove(key);
            best(rest, &fewer, entries)
        };
        hit + after.iter().map(without).max().unwrap_or(0)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn no_choice_is_better_than_the_optimum(
            requests in proptest::collection::vec((0_u32..5, 0..4_u32), 0..11), entries in 1_usize..4,
        ) {
            let request = |&(key, kind): &(u32, u32)| {
                Request { key, is_read: kind != 1, stays: kind != 2, is_timed: kind != 3 }
            };
            let requests: Vec<Request> = requests.iter().map(request).collect();
            let best_of = |requests: &[Request]| best(requests, &BTreeSet::new(), entries);
            let bound = optimum(&requests, entries);
            prop_assert!(bound >= best_of(&requests));
            let kept: Vec<Request> =
                requests.iter().map(|request| Request { stays: true, ..*request }).collect();
            prop_assert_eq!(bound, best_of(&kept));
        }
    }
}
