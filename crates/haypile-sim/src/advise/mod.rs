//! Advice on a cache: a policy and a size, with reasons and their certainty.

mod certainty;
mod choose;
mod equal_reads;
mod growth;
mod lru;
mod rolling;
mod sampled;
mod text;

use haypile_number::ratio;
use haypile_policy::rules::memory::{MAX_SHARDS, MAX_SIZE_BYTES};
use haypile_policy::{PolicyError, PolicySpec};

use crate::Trace;
use crate::curve::LruCurve;
use crate::simulate::{
    Accounting, Cell, Contender, Goal, Monitor, Operations, Options, OtherReading, Outcome,
    SimulateError, SizeRule, Sweep, TtlRule, Warmup, Windows, least_capacity, other_reading,
};
use crate::trace::SampledTrace;
use choose::{Grid, check_budget, size_range};
use equal_reads::equal_reads;
use lru::{LruSearch, Stopped};

pub use certainty::{Certainty, Level};
pub use growth::Growth;
pub use rolling::RollingTest;

/// Parts of the trace in each of which the choice is compared with LRU.
const WINDOWS: usize = 10;

/// Days from which on a trace is divided into days: fewer make fewer tests than a certainty needs.
const MIN_DAYS: usize = 6;

/// A question for advice on which cache to use: budget, policies and the way to read the trace.
#[derive(Clone, Debug)]
pub struct Question {
    /// The largest cache size to recommend, in bytes or objects; `None` for no limit.
    pub budget: Option<u64>,
    /// The rule that weighs cache entries; `None` for the bytes that a `memory` store charges if the trace has sizes,
    /// and for a count of objects otherwise.
    pub accounting: Option<Accounting>,
    /// The eviction policies that may be recommended.
    pub policies: Vec<PolicySpec>,
    /// The quantity by which caches are compared: reads that hit, their bytes, or the cost of misses.
    pub goal: Goal,
    /// The requests at the beginning of the trace that warm the caches up and are not counted.
    pub warmup: Warmup,
    /// The treatment of writes and deletions in the trace: as they are, or as reads.
    pub operations: Operations,
    /// The rule for reads of keys whose size changes in the trace.
    pub sizes: SizeRule,
    /// The rule for the lifetime (TTL) of simulated entries.
    pub ttl: TtlRule,
    /// The number of shards of a simulated `memory` store, as in [`Options::shards`]; `None` for the store's default.
    pub shards: Option<usize>,
    /// The number of threads that run simulations.
    pub jobs: usize,
    /// Whether a long trace is simulated completely, instead of a sample of its keys.
    pub whole: bool,
    /// The seed of the random sample of the trace's keys.
    pub seed: u64,
}

impl Question {
    /// Creates a question for advice on a cache, without a budget, with the accounting of the `memory` store, the
    /// policies worth considering, and one thread.
    pub fn new() -> Self {
        let policies: Result<Vec<PolicySpec>, PolicyError> =
            PolicySpec::parse_list("s3fifo,sieve,lru,slru,wtinylfu,wtinylfu:window=10,arc,lirs");
        Self {
            budget: None,
            accounting: None,
            policies: policies.expect("the default policies exist"),
            goal: Goal::default(),
            warmup: Warmup::default(),
            operations: Operations::default(),
            sizes: SizeRule::default(),
            ttl: TtlRule::default(),
            shards: None,
            jobs: 1,
            whole: false,
            seed: 1,
        }
    }
}

impl Default for Question {
    fn default() -> Self {
        Self::new()
    }
}

/// The results of the best policy and of LRU at one simulated cache size.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SizeTried {
    /// The size of the cache, in bytes or objects.
    pub capacity: u64,
    /// The policy with the best result at this cache size, by the goal (reads, bytes or cost).
    pub best: String,
    /// The hit ratio of the best policy at this cache size.
    pub hit_ratio: f64,
    /// The hit ratio of LRU at this cache size.
    pub lru_hit_ratio: f64,
    /// The share of the reads, of their bytes or of their cost (by the goal) that hits of the best policy saved.
    pub saved: f64,
    /// The share of the reads, of their bytes or of their cost (by the goal) that hits of LRU saved at this cache size.
    pub lru_saved: f64,
}

/// An eviction policy with its hit ratios at all simulated cache sizes.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct PolicyTried {
    /// The name of the policy, with its parameters.
    pub policy: String,
    /// The hit ratio of the policy at each of the simulated cache sizes, in the order of the sizes.
    pub hit_ratios: Vec<f64>,
}

/// The lead of one policy over another: the difference of the reads, bytes or cost that they save.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Lead {
    /// The difference of the shares (of reads, bytes or cost) that the two compared policies save on the whole trace.
    pub difference: f64,
    /// The smallest lead of the first policy over the second in any part of the trace, as a difference of the shares
    /// saved.
    pub least: f64,
    /// The largest lead of the first policy over the second in any part of the trace, as a difference of the shares
    /// saved.
    pub most: f64,
    /// Number of parts of the trace in which the first of two compared policies saves the larger share of reads, bytes
    /// or cost.
    pub ahead: usize,
    /// Number of compared parts of the trace, which are those that have reads.
    pub windows: usize,
}

impl Lead {
    /// The lead of `own` over `other`.
    fn of(goal: Goal, own: &Outcome, other: &Outcome) -> Self {
        let parts = own.windows.iter().zip(&other.windows).filter(|(own, _)| own.reads() > 0);
        let differences: Vec<f64> =
            parts.map(|(own, other)| goal.saved_ratio(own) - goal.saved_ratio(other)).collect();
        let difference = goal.saved_ratio(&own.counts) - goal.saved_ratio(&other.counts);
        Self {
            difference,
            least: differences.iter().copied().reduce(f64::min).unwrap_or(difference),
            most: differences.iter().copied().reduce(f64::max).unwrap_or(difference),
            ahead: differences.iter().filter(|one| **one > 0.0).count(),
            windows: differences.len(),
        }
    }
}

/// A policy with a higher byte hit ratio than the recommended policy.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct MoreBytes {
    /// The name of the policy that serves more bytes from the cache than the recommended one.
    pub policy: String,
    /// The byte hit ratio of the policy that serves more bytes than the recommended one.
    pub byte_hit_ratio: f64,
    /// The hit ratio, in requests, of the policy that serves more bytes than the recommended one.
    pub hit_ratio: f64,
}

/// The cache that the advice recommends.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Choice {
    /// The policy of the recommended cache.
    pub policy: String,
    /// The size of the recommended cache, in bytes or objects.
    pub capacity: u64,
    /// The hit ratio of the recommended cache over the whole trace, starting with an empty cache.
    pub hit_ratio: f64,
    /// The byte hit ratio of the recommended cache over the whole trace; 0 if the trace has no sizes.
    pub byte_hit_ratio: f64,
    /// The share of the cost of all reads that hits of the recommended cache save; `None` unless caches are compared by
    /// cost.
    pub cost_saved_ratio: Option<f64>,
    /// The time that hits of the recommended cache save, in nanoseconds; `None` unless caches are compared by cost.
    pub cost_saved_ns: Option<f64>,
    /// The policy that serves the most bytes, if its byte hit ratio is at least one percentage point above that of the
    /// recommended policy; otherwise `None`.
    pub more_bytes: Option<MoreBytes>,
    /// The hit ratio of the recommended cache in the first tenth of the trace, starting with an empty cache.
    pub first_part_hit_ratio: f64,
    /// The hit ratio of the recommended cache in the last tenth of the trace, in which the cache is warm.
    pub last_part_hit_ratio: f64,
    /// Tests of the choice of a policy: each policy was chosen on the earlier parts of the trace
    /// and tested on the next part.
    pub rolling: Vec<RollingTest>,
    /// The hit ratio of a cache of the recommended size that knows the future: the offline optimum if all entries weigh
    /// the same, or else the best known. `None` if entries expire, or if the goal is not to save reads.
    pub optimum_hit_ratio: Option<f64>,
    /// The lead of the recommended policy over LRU at the same cache size; `None` if LRU is recommended.
    pub over_lru: Option<Lead>,
    /// The smallest round cache size at which LRU saves as much as the recommended cache, found by simulation; `None`
    /// if no size is enough.
    pub lru_needs: Option<u64>,
    /// The increase of the saved share (of reads, bytes or cost) from doubling the recommended cache size; `None` if
    /// the doubled size was not simulated.
    pub doubling_adds: Option<f64>,
    /// The name of a policy that is better than the recommended one, but by too little to be certain; `None` if there
    /// is none.
    pub too_close_to_call: Option<String>,
    /// Number of evictions from the recommended cache divided by the number of its entries at the end; below 1, the
    /// trace is too short for this size.
    pub turnovers: f64,
    /// The URL with which a program opens the recommended cache.
    pub url: String,
    /// Whether the size in the URL of the recommended cache assumes values of 1 KiB, because the trace has no sizes.
    pub url_assumes_sizes: bool,
}

/// Advice on which cache (policy and size) to use for a trace.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Advice {
    /// Number of requests in the trace, including those of the warm-up.
    pub requests: u64,
    /// Number of requests at the beginning of the trace that warmed the simulated caches up and are not counted.
    pub warmup: u64,
    /// Number of reads in the trace, without those of the warm-up.
    pub reads: u64,
    /// Number of reads that would tell as much if all had the same weight: `reads` if caches are compared by the reads that
    /// hit, and fewer by bytes or cost, if a few large values decide (Kish's effective sample size).
    pub equal_reads: u64,
    /// Number of distinct keys in the trace; an estimate if a sample was simulated.
    pub keys: u64,
    /// The sample of keys that was simulated, so that all results are estimates; `None` if the whole trace was
    /// simulated.
    pub sample: Option<SampledTrace>,
    /// The rule by which entries were weighed in the simulations, such as by bytes.
    pub accounting: Accounting,
    /// The quantity by which caches were compared: reads that hit, their bytes, or the cost of misses.
    pub by: Goal,
    /// The parts of the trace, after the warm-up, in which caches are compared over time: days from six of them on, or else tenths.
    pub windows: Windows,
    /// The smallest cache size at which LRU has every hit that is possible, so that a larger cache gains nothing; in
    /// bytes or objects.
    pub holds_everything: u64,
    /// The hit ratio of a cache of unlimited size, which is the highest possible one.
    pub best_possible: f64,
    /// The results at each simulated cache size, in ascending order of size.
    pub sizes: Vec<SizeTried>,
    /// The results of each simulated policy at all simulated cache sizes.
    pub policies: Vec<PolicyTried>,
    /// The smallest cache size beyond which each doubling saves less than one percentage point more; `None` if it is
    /// beyond the budget.
    pub knee: Option<u64>,
    /// The growth of the working set at the end of the trace.
    pub growth: Growth,
    /// The recommended cache; `None` if no cache would help.
    pub choice: Option<Choice>,
    /// The hit ratio of the chosen cache (or of the largest one within the budget) under the opposite interpretation of
    /// reads whose size changed; `None` if the difference is less than one percentage point.
    pub other_reading: Option<OtherReading>,
}

/// Advises on the size and the policy of a cache for a trace; returns `None` if `monitor` ended the
/// simulations.
///
/// Of a trace with more than two million requests it simulates a sample, unless the question asks for the whole.
///
/// # Errors
/// [`SimulateError::NoSizes`] if bytes are to be counted and the trace has none;
/// [`SimulateError::ZeroCapacity`] and [`SimulateError::BudgetTooSmall`] for a budget that buys
/// nothing; [`SimulateError::WarmupTooLong`] for a warm-up that leaves nothing to count; what [`Goal::check`] says.
pub fn advise(
    trace: &Trace,
    question: &Question,
    monitor: &dyn Monitor,
) -> Result<Option<Advice>, SimulateError> {
    let accounting = question.accounting.unwrap_or(match trace.sizes() {
        Some(_) => Accounting::Engine,
        None => Accounting::Objects,
    });
    if let Some(shards) = question.shards {
        if accounting != Accounting::Engine {
            return Err(SimulateError::ShardsOfNothing);
        }
        // The smallest store that has them is tried first.
        if !shards.is_power_of_two() || shards > MAX_SHARDS {
            return Err(SimulateError::BadShards {
                shards,
                capacity: MAX_SIZE_BYTES,
                most: MAX_SHARDS,
            });
        }
    }
    let is_not_for_memory =
        |policy: &&PolicySpec| policy.exceeds_bound() || policy.is_of_file_store();
    if let Some(policy) = question.policies.iter().find(is_not_for_memory) {
        return Err(SimulateError::NotAdvisable { policy: policy.to_string() });
    }
    question.goal.check(trace)?;
    check_budget(question.budget, size_range(accounting, question.shards).0)?;
    let sample = match sampled::sampling(trace, question, accounting)? {
        Some(sampling) => {
            let mut progress = |requests| monitor.advance(requests);
            let sample = trace.sample_unless(sampling, &mut progress)?;
            if sample.is_none() {
                return Ok(None);
            }
            sample
        }
        None => None,
    };
    match advice(sample.as_ref().unwrap_or(trace), question, accounting, monitor) {
        Ok(advice) => Ok(Some(advice)),
        Err(Stopped::Ended) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
    }
}

/// Advises on a question that has been checked.
fn advice(
    trace: &Trace,
    question: &Question,
    accounting: Accounting,
    monitor: &dyn Monitor,
) -> Result<Advice, Stopped> {
    let options = Options {
        accounting,
        warmup: question.warmup,
        operations: question.operations,
        sizes: question.sizes,
        ttl: question.ttl,
        windows: windows(trace, question.warmup.requests(trace.whole_requests())?),
        shards: question.shards,
    };
    let mut progress = |requests| monitor.advance(requests);
    // A guess of the sizes that LRU needs, where entries expire.
    let without_ttl = Options { ttl: TtlRule::Never, warmup: Warmup::None, ..options };
    let curve = LruCurve::measure(trace, &without_ttl, &mut progress)?;
    let curve = curve.ok_or(Stopped::Ended)?;
    let range = size_range(accounting, question.shards);
    let mut lru_sizes = LruSearch::new(trace, &options, monitor, range);
    let holds_everything = match curve.largest_useful() {
        0 => 0,
        guess => lru_sizes.smallest(guess, |lru| lru.capacity_misses() == 0)?.unwrap_or(range.1),
    };
    let least = least_capacity(trace, accounting, &[]).max(range.0);
    let grid = Grid::new(holds_everything, question.budget, (least, range.1));

    let mut contenders: Vec<Contender> =
        question.policies.iter().cloned().map(Contender::Policy).collect();
    let lru = Contender::Policy("lru".parse().expect("a policy that exists"));
    if !contenders.contains(&lru) {
        contenders.push(lru.clone());
    }
    let sweep =
        Sweep { contenders, capacities: grid.capacities.clone(), options, jobs: question.jobs };
    let cells = sweep.run(trace, monitor)?;
    if cells.len() < sweep.cells() || cells.iter().any(|cell| cell.outcome.is_none()) {
        return Err(Stopped::Ended);
    }
    let table = AdviceTable { sweep: &sweep, cells: &cells, lru, goal: question.goal };

    // What expires makes other misses cold in a small cache, where it leaves before its time.
    let unbounded = cells.last().and_then(|cell| cell.outcome.as_ref()).map(|one| one.counts);
    let unbounded = unbounded.unwrap_or_default();
    let sizes = table.sizes();
    let knee = grid.knee(&sizes);
    let warmup = question.warmup.requests(trace.whole_requests())?;
    let mut advice = Advice {
        requests: trace.whole_requests(),
        warmup,
        reads: unbounded.reads(),
        equal_reads: match question.goal {
            Goal::Reads => unbounded.reads(),
            goal => equal_reads(trace, goal, trace.place(warmup)),
        },
        keys: trace.whole_keys(),
        sample: trace.sampled(),
        accounting,
        by: question.goal,
        windows: options.windows,
        holds_everything,
        best_possible: ratio(unbounded.reads() - unbounded.cold_misses, unbounded.reads()),
        sizes,
        policies: table.policies(),
        knee,
        growth: Growth::of(trace),
        choice: None,
        other_reading: None,
    };
    if grid.capacities.is_empty() {
        return Ok(advice);
    }
    let mut at = grid.chosen(knee);
    if advice.best_possible > 0.0 {
        advice.choice = table.choose(trace, &grid, at, (&curve, &mut lru_sizes), monitor)?;
    }
    if advice.choice.is_none() {
        at = grid.chosen(None);
    }
    let contender = table.policy(at);
    let counts = &table.outcome(at, contender).counts;
    let simulated = (&sweep.contenders[contender], grid.capacities[at]);
    let mut progress = |requests| monitor.advance(requests);
    advice.other_reading = other_reading(trace, simulated, &options, counts, &mut progress)?;
    Ok(advice)
}

/// Returns the parts in which caches are compared over time: days, if there are enough, or else tenths.
fn windows(trace: &Trace, warmup: u64) -> Windows {
    match Windows::whole_days(trace, warmup) {
        Ok(days) if days.count() >= MIN_DAYS => days,
        _ => Windows::Equal(WINDOWS),
    }
}

/// Returns the outcomes of a complete sweep.
struct AdviceTable<'a> {
    sweep: &'a Sweep,
    cells: &'a [Cell],
    lru: Contender,
    goal: Goal,
}
