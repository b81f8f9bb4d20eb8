//! Choice of a size and a policy among the simulated ones.

use haypile::ByteSize;
use haypile::url::Level;
use haypile_number::ratio;
use haypile_policy::rules::memory::{MAX_SIZE_BYTES, MIN_SIZE_BYTES};

use super::lru::{LruSearch, Stopped};
use super::{AdviceTable, Choice, Lead, MoreBytes, PolicyTried, SizeTried};
use crate::Trace;
use crate::curve::LruCurve;
use crate::simulate::{
    Accounting, Contender, Counts, Goal, Monitor, Options, Outcome, SimulateError, Windows,
    simulate,
};

/// Number of sizes to try, each twice the previous one.
const SIZES: usize = 12;

/// Gain of the hit ratio that makes doubling the size worth it.
const WORTH_DOUBLING: f64 = 0.01;

/// Lead over the first requested policy that makes another the advised one.
const WORTH_ANOTHER_POLICY: f64 = 0.005;

/// Lead in bytes of a policy that is not advised.
const WORTH_SAYING: f64 = 0.01;

/// The smallest hit ratio at which the advice recommends a cache; a lower one is printed as 0.0 %.
pub(super) const WORTH_A_CACHE: f64 = 0.0005;

/// The position of the policy that is taken unless another is better.
const FIRST: usize = 0;

/// Assumed size of values if the trace has no sizes.
const ASSUMED_VALUE_BYTES: u64 = 1024;

/// Returns the smallest and the largest cache size that may be recommended, in bytes or objects.
pub(super) fn size_range(accounting: Accounting, shards: Option<usize>) -> (u64, u64) {
    match accounting {
        Accounting::Engine => (MIN_SIZE_BYTES * shards.unwrap_or(1).max(1) as u64, MAX_SIZE_BYTES),
        _ => (1, 1 << 63),
    }
}

/// Returns an error if the user's budget is 0, or below the size of the smallest cache (`min_bytes`).
pub(super) fn check_budget(budget: Option<u64>, min_bytes: u64) -> Result<(), SimulateError> {
    match budget {
        Some(0) => Err(SimulateError::ZeroCapacity),
        Some(budget_bytes) if budget_bytes < min_bytes => {
            Err(SimulateError::BudgetTooSmall { budget_bytes, min_bytes })
        }
        _ => Ok(()),
    }
}

/// The cache sizes that the advice simulates, in ascending order.
pub(super) struct Grid {
    pub(super) capacities: Vec<u64>,
    /// Number of sizes within the budget.
    affordable: usize,
}

impl Grid {
    /// Creates the list of cache sizes to simulate: powers of two up to the size that holds everything, and the budget.
    /// It leaves out sizes below `min`, which a store refuses or for which a sample is too small. The budget has been
    /// checked.
    pub(super) fn new(holds_everything: u64, budget: Option<u64>, (min, max): (u64, u64)) -> Self {
        let largest = holds_everything.clamp(min, max).next_power_of_two();
        let powers = (0..SIZES).map(|step| largest >> step).filter(|size| *size >= min);
        let mut capacities: Vec<u64> = powers.collect();
        let budget = budget.filter(|budget| *budget < largest);
        capacities.extend(budget);
        capacities.extend(budget.map(|budget| budget * 2).filter(|double| *double < largest));
        capacities.sort_unstable();
        capacities.dedup();
        let affordable = match budget {
            Some(budget) => capacities.partition_point(|size| *size <= budget),
            None => capacities.len(),
        };
        Self { capacities, affordable }
    }

    /// Returns the knee of the curve of hit ratios: the smallest cache size beyond which each doubling saves less than
    /// one percentage point more; `None` if it is beyond the budget.
    pub(super) fn knee(&self, sizes: &[SizeTried]) -> Option<u64> {
        let mut knee = sizes.len().checked_sub(1)?;
        while knee > 0 {
            let (smaller, larger) = (&sizes[knee - 1], &sizes[knee]);
            let doublings = ratio(larger.capacity, smaller.capacity).log2();
            let begins_to_answer = smaller.saved < WORTH_A_CACHE && larger.saved >= WORTH_A_CACHE;
            if begins_to_answer || larger.saved - smaller.saved >= WORTH_DOUBLING * doublings {
                break;
            }
            knee -= 1;
        }
        (knee < self.affordable).then(|| sizes[knee].capacity)
    }

    /// Returns the index of the cache size to recommend: the knee, beyond which doubling the cache adds few hits, or
    /// else the largest size within the budget.
    pub(super) fn chosen(&self, knee: Option<u64>) -> usize {
        knee.and_then(|knee| self.capacities.iter().position(|size| *size == knee))
            .unwrap_or(self.affordable.saturating_sub(1))
    }
}

impl AdviceTable<'_> {
    pub(super) fn outcome(&self, capacity: usize, contender: usize) -> &Outcome {
        let cell = &self.cells[capacity * self.sweep.contenders.len() + contender];
        cell.outcome.as_ref().expect("the sweep is complete")
    }

    /// Returns the share that a contender saves at a capacity, by the goal.
    fn saved(&self, capacity: usize, contender: usize) -> f64 {
        self.goal.saved_ratio(&self.outcome(capacity, contender).counts)
    }

    /// The contender that saves most at a capacity; of equals the first.
    fn best(&self, capacity: usize) -> usize {
        most(self.sweep.contenders.len(), |contender| self.saved(capacity, contender))
    }

    fn position(&self, contender: &Contender) -> usize {
        let position = self.sweep.contenders.iter().position(|one| one == contender);
        position.expect("a contender of the sweep")
    }

    /// Returns the hit ratios of the best policy and of LRU at each simulated cache size, in ascending order of size.
    pub(super) fn sizes(&self) -> Vec<SizeTried> {
        let lru = self.position(&self.lru);
        let sizes = self.sweep.capacities.iter().enumerate().map(|(at, capacity)| {
            let best = self.best(at);
            SizeTried {
                capacity: *capacity,
                best: self.sweep.contenders[best].to_string(),
                hit_ratio: self.outcome(at, best).counts.hit_ratio(),
                lru_hit_ratio: self.outcome(at, lru).counts.hit_ratio(),
                saved: self.saved(at, best),
                lru_saved: self.saved(at, lru),
            }
        });
        sizes.collect()
    }

    /// Returns the simulated policies, each with its hit ratio at each cache size, in ascending order of size.
    pub(super) fn policies(&self) -> Vec<PolicyTried> {
        let contenders = self.sweep.contenders.iter().enumerate();
        let tried = contenders.map(|(at, contender)| PolicyTried {
            policy: contender.to_string(),
            hit_ratios: (0..self.sweep.capacities.len())
                .map(|capacity| self.outcome(capacity, at).counts.hit_ratio())
                .collect(),
        });
        tried.collect()
    }

    /// Returns the index of the policy to recommend at the cache size with index `at`: the first one that was
    /// requested, unless the best saves over half a percentage point more.
    pub(super) fn policy(&self, at: usize) -> usize {
        Self::preferred(self.sweep.contenders.len(), |contender| self.saved(at, contender))
    }

    /// Returns the index of the policy to recommend, by the share of reads, bytes or cost that each saves: the first
    /// one, unless the best saves over half a percentage point more.
    pub(super) fn preferred(contenders: usize, saved: impl Fn(usize) -> f64) -> usize {
        let best = most(contenders, &saved);
        let is_clear = saved(best) - saved(FIRST) > WORTH_ANOTHER_POLICY;
        if is_clear || saved(FIRST) < WORTH_A_CACHE { best } else { FIRST }
    }

    /// Returns the policy that serves the most bytes, if it is noticeably more than `chosen` does.
    fn more_bytes(&self, at: usize, chosen: usize) -> Option<MoreBytes> {
        let counts = |contender| &self.outcome(at, contender).counts;
        // Of equals the first, as in every other choice.
        let most = (0..self.sweep.contenders.len())
            .rev()
            .max_by(|&one, &other| {
                let [one, other] = [one, other].map(|at| counts(at).byte_hit_ratio());
                one.total_cmp(&other)
            })
            .filter(|&most| {
                counts(most).byte_hit_ratio() >= counts(chosen).byte_hit_ratio() + WORTH_SAYING
            })?;
        Some(MoreBytes {
            policy: self.sweep.contenders[most].to_string(),
            byte_hit_ratio: counts(most).byte_hit_ratio(),
            hit_ratio: counts(most).hit_ratio(),
        })
    }

    /// Returns the cache to recommend at the size with index `at`: its policy, and the hit ratios of its simulation;
    /// `None` if no policy has hits at that size.
    pub(super) fn choose(
        &self,
        trace: &Trace,
        grid: &Grid,
        at: usize,
        (curve, lru_sizes): (&LruCurve, &mut LruSearch<'_>),
        monitor: &dyn Monitor,
    ) -> Result<Option<Choice>, Stopped> {
        let capacity = grid.capacities[at];
        let (best, chosen) = (self.best(at), self.policy(at));
        let outcome = self.outcome(at, chosen);
        let saved = self.saved(at, chosen);
        if saved < WORTH_A_CACHE {
            return Ok(None);
        }
        let lru = self.position(&self.lru);

        // With entries of different weights Belady's is not the optimum, and can be behind others.
        let belady = Contender::Belady { may_decline: true };
        let options = Options { windows: Windows::default(), ..self.sweep.options };
        // It knows the reads of the future, and not their costs.
        let optimum_hits = if options.ttl.applies_to(trace) || self.goal != Goal::Reads {
            None
        } else {
            let mut progress = |requests| monitor.advance(requests);
            let belady = simulate(trace, &belady, capacity, &options, &mut progress)?;
            let belady = belady.ok_or(Stopped::Ended)?;
            Some(belady.counts.hits.max(self.outcome(at, best).counts.hits))
        };

        let hit_ratio = outcome.counts.hit_ratio();
        let double = grid.capacities.iter().position(|size| *size == capacity * 2);
        let best_at = |at| self.saved(at, self.best(at));
        let doubling_adds = double.map(|double| best_at(double) - best_at(at));
        let policy = self.sweep.contenders[chosen].to_string();
        let mut parts = outcome.windows.iter().filter(|part| part.reads() > 0);
        let first_part = parts.next().map_or(hit_ratio, Counts::hit_ratio);
        let last_part = parts.next_back().map_or(first_part, Counts::hit_ratio);
        let by_cost = matches!(self.goal, Goal::Cost(_));
        let accounting = self.sweep.options.accounting;
        let (bytes, url_assumes_sizes) = store_bytes(trace, accounting, capacity, outcome);
        let lru_needs = if chosen == lru {
            Some(capacity)
        } else {
            let guess = curve.capacity_for(1.0 - hit_ratio).unwrap_or(capacity);
            lru_sizes
                .smallest(guess, |lru| self.goal.saved(lru) >= self.goal.saved(&outcome.counts))?
        };
        Ok(Some(Choice {
            capacity,
            hit_ratio,
            byte_hit_ratio: outcome.counts.byte_hit_ratio(),
            cost_saved_ratio: by_cost.then_some(saved),
            cost_saved_ns: by_cost.then(|| self.goal.saved(&outcome.counts)),
            more_bytes: self.more_bytes(at, chosen),
            first_part_hit_ratio: first_part,
            last_part_hit_ratio: last_part,
            rolling: self.rolling_tests(at),
            optimum_hit_ratio: optimum_hits.map(|hits| ratio(hits, outcome.counts.reads())),
            over_lru: (chosen != lru).then(|| Lead::of(self.goal, outcome, self.outcome(at, lru))),
            lru_needs,
            doubling_adds,
            too_close_to_call: (best != chosen).then(|| self.sweep.contenders[best].to_string()),
            turnovers: ratio(outcome.counts.evictions, outcome.entries),
            url: url(bytes, &policy, self.sweep.options.shards),
            policy,
            url_assumes_sizes,
        }))
    }
}

/// Returns the index of the policy for which `number` returns the largest value (such as hits); of equal ones the
/// first.
pub(super) fn most<N: PartialOrd>(contenders: usize, number: impl Fn(usize) -> N) -> usize {
    (1..contenders)
        .fold(FIRST, |most, other| if number(other) > number(most) { other } else { most })
}

/// The size of a `memory` store that holds what the simulated cache held, and whether it had to
/// assume what values weigh.
fn store_bytes(
    trace: &Trace,
    accounting: Accounting,
    capacity: u64,
    outcome: &Outcome,
) -> (u64, bool) {
    let entries = outcome.entries;
    let (bytes, assumed) = match accounting {
        Accounting::Engine => (capacity, false),
        Accounting::Bytes | Accounting::Relstorage => {
            let keys = mean_key_bytes(trace);
            let key_bytes = if accounting == Accounting::Bytes { keys } else { 0 };
            (capacity + entries * (haypile_policy::rules::memory::charge(key_bytes, 0)), false)
        }
        Accounting::Objects => {
            let known = mean_value_bytes(trace);
            let value_bytes = known.unwrap_or(ASSUMED_VALUE_BYTES);
            let entry_bytes =
                haypile_policy::rules::memory::charge(mean_key_bytes(trace), value_bytes);
            (capacity.saturating_mul(entry_bytes).div_ceil(1 << 20) << 20, known.is_none())
        }
    };
    (bytes.clamp(MIN_SIZE_BYTES, MAX_SIZE_BYTES), assumed)
}

/// The canonical URL of a `memory` store.
fn url(size_bytes: u64, policy: &str, shards: Option<usize>) -> String {
    let level = Level::new("memory")
        .and_then(|level| level.with_option("size", ByteSize(size_bytes).to_string()))
        .and_then(|level| level.with_option("policy", policy.replace(',', ":")))
        .and_then(|level| match shards {
            Some(shards) => level.with_option("shards", shards.to_string()),
            None => Ok(level),
        });
    level.expect("a scheme and options that exist").to_string()
}

/// By request, which is what the entries that are worth keeping weigh.
fn mean_value_bytes(trace: &Trace) -> Option<u64> {
    let sizes = trace.sizes()?;
    let total: u64 = sizes.iter().map(|size| u64::from(size.get())).sum();
    Some(total.div_ceil((sizes.len() as u64).max(1)))
}

fn mean_key_bytes(trace: &Trace) -> u64 {
    let total: u64 = (0..trace.keys()).map(|id| u64::from(trace.key_bytes(id))).sum();
    total.div_ceil(u64::from(trace.keys()).max(1))
}
