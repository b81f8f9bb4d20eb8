//! The number of reads on which the comparison of caches rests.

use crate::Trace;
use crate::simulate::Goal;
use crate::trace::Op;

/// Returns the number of reads that would tell as much about the caches if each had the same weight, after the first
/// `warmup` requests: all of them by the reads that hit; fewer by their bytes or cost, where a few large values decide.
///
/// This is Kish's effective sample size (L. Kish, *Survey Sampling*, 1965): the square of the sum of the weights, over the
/// sum of their squares. Of a sample of keys, it is an estimate for the whole trace.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the number of reads"
)]
pub(super) fn equal_reads(trace: &Trace, goal: Goal, warmup: usize) -> u64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for at in warmup..trace.requests() {
        if trace.ops().is_some_and(|ops| Op::from_number(ops[at]) != Op::Read) {
            continue;
        }
        let size_bytes = trace.sizes().map_or(0, |sizes| sizes[at].get());
        let stated_ns = trace.costs_ns().map_or(0, |costs| costs[at].get());
        let weight = goal.weight(u64::from(size_bytes), stated_ns);
        sum += weight;
        squares += weight * weight;
    }
    if squares > 0.0 { trace.scaled_up((sum * sum / squares) as u64) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{BuildOptions, Request, Sink, TraceBuilder};

    fn trace(sizes: &[u64]) -> Trace {
        let mut builder = TraceBuilder::new(BuildOptions::default());
        for (at, size_bytes) in sizes.iter().enumerate() {
            let key = crate::trace::Key::Number(at as u64);
            let op = if at == 1 { Op::Write } else { Op::Read };
            let request = Request {
                key,
                size_bytes: Some(*size_bytes),
                op,
                time_us: None,
                ttl_us: None,
                cost_ns: None,
            };
            builder.push(request).unwrap();
        }
        builder.finish().unwrap()
    }

    #[test]
    fn reads_of_equal_size_count_in_full_and_a_large_one_decides_alone() {
        let equal = trace(&[5; 101]);
        assert_eq!(equal_reads(&equal, Goal::Bytes, 0), 100);
        assert_eq!(equal_reads(&equal, Goal::Bytes, 50), 51);
        let mut sizes = [1; 101];
        sizes[7] = 1_000_000;
        assert_eq!(equal_reads(&trace(&sizes), Goal::Bytes, 0), 1);
        assert_eq!(equal_reads(&trace(&sizes), Goal::Reads, 0), 100);
        let fixed = "fixed=1ms".parse().map(Goal::Cost).unwrap();
        assert_eq!(equal_reads(&trace(&sizes), fixed, 0), 100);
    }
}
