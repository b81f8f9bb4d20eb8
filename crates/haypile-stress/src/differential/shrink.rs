//! Shortening a failing run to the steps that it takes to fail.

use std::time::Instant;

use anyhow::Result;

use super::{Failure, Plan, attempt, generator};
use crate::watch::{Watch, is_interrupted};

/// Shortens a failing run as long as it still fails: first to the last few steps, then without the
/// steps on other keys, then by ever smaller parts (delta debugging: A. Zeller, R. Hildebrandt,
/// "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software Engineering
/// 2002). It ends when no single step can be left out, or when the time for it is over.
pub(super) fn shorten(plan: &Plan, failure: Failure, watch: &mut Watch) -> Result<Failure> {
    let end = Instant::now() + plan.shrink_time;
    let plan = Plan { is_verbose: false, ..plan.clone() };
    let mut shortest = failure;
    for last in std::iter::successors(Some(16), |last| Some(last * 4)) {
        let Some(start) = shortest.only.len().checked_sub(last) else { break };
        if let Some(failure) = attempt(&plan, shortest.seed, &shortest.only[start..], watch)?.1 {
            shortest = failure;
            break;
        }
    }
    let about_it = steps_about(&shortest);
    if let Some(failure) = attempt(&plan, shortest.seed, &about_it, watch)?.1 {
        shortest = failure;
    }
    let mut part = shortest.only.len().div_ceil(2);
    while part > 0 && !is_interrupted() {
        let mut start = 0;
        while start < shortest.only.len() {
            if Instant::now() >= end {
                return Ok(shortest);
            }
            let rest = without(&shortest.only, start, part);
            match attempt(&plan, shortest.seed, &rest, watch)?.1 {
                // What now stands there was not tried yet.
                Some(failure) => shortest = failure,
                None => start += part,
            }
        }
        part /= 2;
    }
    Ok(shortest)
}

/// Returns the steps of a failing run that are about its key or about all keys.
fn steps_about(failure: &Failure) -> Vec<u64> {
    let is_about = |number: &u64| {
        let operation = generator::step(failure.shape, failure.seed, *number).operation;
        let is_about_key = failure.key.is_none_or(|key| operation.keys().contains(&key));
        is_about_key || operation.is_about_all()
    };
    failure.only.iter().copied().filter(is_about).collect()
}

/// Returns the steps without `part` of them.
fn without(steps: &[u64], start: usize, part: usize) -> Vec<u64> {
    let end = (start + part).min(steps.len());
    [&steps[..start], &steps[end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_left_out() {
        assert_eq!(without(&[1, 2, 3, 4], 1, 2), [1, 4]);
        assert_eq!(without(&[1, 2, 3], 2, 5), [1, 2]);
    }
}
