//! Tests of a choice on parts of the trace that it was not made on.
//!
//! The policy is chosen on the first parts, as if the trace ended there, and then compared with all others on the next
//! part, in which each goes on with the entries that it has. That says more about tomorrow than an interval of the parts that the
//! choice was made on, but it is not a probability.

use super::AdviceTable;
use super::choose::most;

/// A test of choosing a policy by past requests: the policy chosen on the earlier parts of a trace is compared with the
/// best one on the next part.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RollingTest {
    /// The number of the part of the trace on which the chosen policy was tested, from 2; the policy was chosen on all
    /// earlier parts.
    pub part: usize,
    /// The policy that the advice chooses if it knows only the earlier parts of the trace, and that was tested on the
    /// next part.
    pub policy: String,
    /// The hit ratio of the chosen policy in the tested part.
    pub hit_ratio: f64,
    /// The policy that saved the most reads, bytes or cost (by the goal) in the tested part of the trace.
    pub best: String,
    /// The hit ratio in the tested part of the trace of the policy that saved the most there.
    pub best_hit_ratio: f64,
    /// The share of the reads, of their bytes or of their cost (by the goal) that hits of the chosen policy saved in the
    /// tested part.
    pub saved: f64,
    /// The share of the reads, of their bytes or of their cost (by the goal) that hits of the tested part's best policy
    /// saved in that part.
    pub best_saved: f64,
}

impl RollingTest {
    /// Returns how much more the best policy would have saved than the chosen one in the tested part of the trace, as a
    /// share of reads, bytes or cost.
    pub fn regret(&self) -> f64 {
        self.best_saved - self.saved
    }
}

impl AdviceTable<'_> {
    /// Tests the choice of a policy at the cache size with index `at`: chooses it on the earlier parts of the trace,
    /// and tests it on the next part. Parts without reads and the first part are left out.
    pub(super) fn rolling_tests(&self, at: usize) -> Vec<RollingTest> {
        let contenders = self.sweep.contenders.len();
        let windows = |contender: usize| &self.outcome(at, contender).windows;
        let mut before = vec![(0.0, 0.0); contenders];
        let mut tests = Vec::new();
        for part in 0..windows(0).len() {
            let counts = |contender: usize| windows(contender)[part];
            if before[0].1 > 0.0 && counts(0).reads() > 0 {
                let chosen = Self::preferred(contenders, |contender| {
                    let (saved, all): (f64, f64) = before[contender];
                    saved / all.max(f64::MIN_POSITIVE)
                });
                let best = most(contenders, |contender| self.goal.saved(&counts(contender)));
                tests.push(RollingTest {
                    part: part + 1,
                    policy: self.sweep.contenders[chosen].to_string(),
                    hit_ratio: counts(chosen).hit_ratio(),
                    best: self.sweep.contenders[best].to_string(),
                    best_hit_ratio: counts(best).hit_ratio(),
                    saved: self.goal.saved_ratio(&counts(chosen)),
                    best_saved: self.goal.saved_ratio(&counts(best)),
                });
            }
            for (contender, (saved, all)) in before.iter_mut().enumerate() {
                let counts = counts(contender);
                *saved += self.goal.saved(&counts);
                *all += self.goal.saved(&counts) + self.goal.lost(&counts);
            }
        }
        tests
    }
}
