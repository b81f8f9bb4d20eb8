//! Distances between requests for the same key.

use serde::Serialize;

use super::rank;
use crate::reuse::StackDistances;
use crate::trace::{Op, Trace};

/// The LRU stack distances in a trace: the numbers of distinct other keys between two requests for the same key.
///
/// Reads and writes count alike: an LRU cache of more keys than the distance has the key. Deletions
/// remove their key and have no distance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReuseDistances {
    /// Number of reads and writes without a stack distance: the first of their key, or the first after its deletion.
    pub first_requests: u64,
    /// The median stack distance of the requests that have one; `None` if no key is requested twice.
    pub median: Option<u64>,
    /// The numbers of requests by order of magnitude of their stack distance, up to the largest one.
    pub histogram: Vec<DistanceClass>,
}

/// The number of requests whose stack distance is in one range of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DistanceClass {
    /// The smallest stack distance in the range.
    pub from: u64,
    /// The largest stack distance in the range.
    pub to: u64,
    /// Number of requests whose stack distance is in this range.
    pub requests: u64,
}

impl ReuseDistances {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut distances = StackDistances::with_keys(trace.keys());
        // By distance, which is always below the number of keys.
        let mut counts = vec![0_u32; trace.keys() as usize];
        let (mut first_requests, mut reused) = (0, 0);
        for (n, id) in trace.ids().iter().enumerate() {
            let id = id.get();
            if trace.ops().is_some_and(|ops| ops[n] == Op::Delete as u8) {
                distances.remove(id);
            } else if let Some(distance) = distances.access(id) {
                counts[usize::try_from(distance).expect("below the number of keys")] += 1;
                reused += 1;
            } else {
                first_requests += 1;
            }
        }
        Self { first_requests, median: median(&counts, reused), histogram: histogram(&counts) }
    }
}

fn median(counts: &[u32], reused: u64) -> Option<u64> {
    let middle = rank(50, reused);
    let mut up_to = 0;
    let position = counts.iter().position(|&count| {
        up_to += u64::from(count);
        up_to > middle
    });
    position.map(|distance| distance as u64)
}

/// Classes of 0, 1, 2-3, 4-7 and so on.
fn histogram(counts: &[u32]) -> Vec<DistanceClass> {
    let mut classes: Vec<DistanceClass> = Vec::new();
    for (distance, &count) in counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
        let class = distance.checked_ilog2().map_or(0, |log| log as usize + 1);
        while classes.len() <= class {
            let from = if classes.is_empty() { 0 } else { 1 << (classes.len() - 1) };
            let to = if from == 0 { 0 } else { 2 * from - 1 };
            classes.push(DistanceClass { from, to, requests: 0 });
        }
        classes[class].requests += u64::from(count);
    }
    classes
}
