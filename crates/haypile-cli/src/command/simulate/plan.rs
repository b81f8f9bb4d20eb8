//! Plan of a simulation, from the arguments and defaults.

use std::num::NonZeroUsize;

use anyhow::bail;
use haypile_sim::Trace;
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{
    Accounting, Contender, MissCost, Operations, Options, SimulateError, SizeRule, Sweep, TtlRule,
    Warmup, Windows, footprint, least_capacity,
};

use crate::args::{CapacityArgument, Part, Simulate, WindowsArgument};
use crate::input::Wanted;

/// Default policies.
const POLICIES: &str = "fifo,lru,slru,sieve,s3fifo,wtinylfu,arc,lirs,belady";

/// Default sizes, as percentages of the working set.
const SHARES: [u64; 5] = [1, 5, 10, 25, 50];

/// Number of sizes of a curve.
const CURVE_POINTS: u32 = 25;

/// The way in which policies are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// The user asked for no simulations: the default policies run.
    Default,
    /// The user asked by `--policy`, or for the LRU curve alone.
    Policies,
    /// The user asked by `--curve`.
    Curve,
}

/// The plan of `haypile simulate`: the eviction policies and cache sizes to simulate, and which
/// curves to print.
pub(crate) struct SimulationPlan {
    /// Whether the user asked for the LRU miss-ratio curve, which takes one pass over the trace.
    pub(crate) has_lru_curve: bool,
    /// The way in which the simulated policies were asked for.
    asked: Asked,
    part: Part,
    contenders: Vec<Contender>,
    /// Capacities as the user wrote them.
    capacities: Vec<CapacityArgument>,
    accounting: Option<Accounting>,
    warmup: Warmup,
    miss_cost: Option<MissCost>,
    windows: Option<WindowsArgument>,
    operations: Operations,
    ttl: TtlRule,
    jobs: usize,
    shards: Option<usize>,
    is_plotted: bool,
}

impl SimulationPlan {
    pub(crate) fn new(arguments: &Simulate) -> anyhow::Result<Self> {
        let counts_objects = !arguments.objects.is_empty();
        // A share is one of the accounting's unit, whatever that is.
        let counts_bytes = !arguments.size.iter().all(|size| size.is_share());
        let accounting = match arguments.simulating.accounting {
            Some(Accounting::Objects) if counts_bytes => {
                bail!("--size is in bytes, but --accounting objects counts objects; use --objects")
            }
            Some(accounting) if counts_objects && accounting != Accounting::Objects => {
                bail!(
                    "--objects counts objects, but --accounting {accounting} counts bytes; use --size"
                )
            }
            None if counts_objects => Some(Accounting::Objects),
            None if counts_bytes => Some(Accounting::Bytes),
            accounting => accounting,
        };
        if arguments.simulating.shards.is_some() && accounting != Some(Accounting::Engine) {
            bail!(
                "--shards simulates the shards of a memory: cache, whose sizes include its overhead; add --accounting engine"
            )
        }
        let curve = arguments.curve.as_ref().map_or(&[][..], |policies| &policies.0);
        let is_lru = |contender: &&Contender| contender.to_string() == "lru";
        let has_lru_curve = curve.iter().any(|contender| is_lru(&contender));
        let curve: Vec<Contender> = curve.iter().filter(|it| !is_lru(it)).cloned().collect();
        if has_lru_curve && arguments.simulating.warmup != Warmup::None {
            bail!(
                "the curve of lru counts every request and cannot be combined with --warmup; simulate --policy lru"
            )
        }
        if !curve.is_empty() && arguments.policy.is_some() {
            bail!(
                "--policy prints ratios at a few sizes and --curve at many; name all policies in one of them"
            )
        }
        let asked = match &arguments.policy {
            None if arguments.curve.is_none() => Asked::Default,
            None if !curve.is_empty() => Asked::Curve,
            _ => Asked::Policies,
        };
        let contenders = match &arguments.policy {
            Some(contenders) => contenders.0.clone(),
            None if arguments.curve.is_some() => curve,
            None => Contender::parse_list(POLICIES).expect("the default policies exist"),
        };
        let capacities = arguments.size.iter().chain(&arguments.objects).copied().collect();
        Ok(Self {
            has_lru_curve,
            asked,
            part: arguments.part,
            contenders,
            capacities,
            accounting,
            warmup: arguments.simulating.warmup,
            miss_cost: arguments.simulating.miss_cost,
            windows: arguments.windows,
            operations: arguments.simulating.operations(),
            ttl: arguments.simulating.ttl(),
            jobs: arguments.simulating.jobs(),
            shards: arguments.simulating.shards.map(NonZeroUsize::get),
            is_plotted: arguments.plot.is_some(),
        })
    }

    /// Whether the user named sizes.
    fn has_capacities(&self) -> bool {
        !self.capacities.is_empty()
    }

    /// Returns the cache sizes at which the LRU miss-ratio curve is printed: those of the
    /// simulations, if there are any.
    pub(crate) fn curve_sizes(&self, trace: &Trace, sweep: &Sweep, curve: &LruCurve) -> Vec<u64> {
        if self.has_capacities() || self.is_of_curve() {
            return sweep.capacities.clone();
        }
        let accounting = sweep.options.accounting;
        let least = least_capacity(trace, accounting, &sweep.contenders);
        spread(curve.largest_useful().max(footprint(trace, accounting)), least)
    }

    /// Whether the simulations are printed as miss-ratio curves over cache sizes.
    pub(crate) fn is_of_curve(&self) -> bool {
        self.asked == Asked::Curve
    }

    /// Returns the number of miss-ratio curves to plot for each trace.
    pub(crate) fn curves(&self) -> usize {
        self.contenders.len() + usize::from(self.has_lru_curve)
    }

    /// Returns the windows of a trace whose hits and misses are printed separately: as many as the user asked for, but no more than
    /// the trace has requests, or its whole days.
    fn windows(&self, trace: &Trace) -> Result<Windows, SimulateError> {
        match self.windows {
            None => Ok(Windows::default()),
            Some(WindowsArgument::Equal(count)) => {
                Ok(Windows::Equal(count.get().min(trace.requests())))
            }
            Some(WindowsArgument::Days) => {
                Windows::whole_days(trace, self.warmup.requests(trace.whole_requests())?)
            }
        }
    }

    /// Returns the form in which traces are read: with the next use of each key, if a policy needs it.
    pub(crate) fn wanted(&self) -> Wanted {
        let next_use = self.contenders.iter().any(Contender::is_belady);
        Wanted { part: self.part, next_use }
    }

    /// Returns the rule by which a trace's entries are weighed: by bytes if the trace has sizes,
    /// else each as one, unless the user chose another.
    pub(crate) fn accounting(&self, trace: &Trace) -> Accounting {
        self.accounting.unwrap_or(match trace.sizes() {
            Some(_) => Accounting::Bytes,
            None => Accounting::Objects,
        })
    }

    /// Returns the cost of a miss that the user stated; `None` if there is none.
    pub(crate) fn miss_cost(&self) -> Option<MissCost> {
        self.miss_cost
    }

    /// Returns the simulations to run on a trace: policies, cache sizes and rules.
    pub(crate) fn sweep(
        &self,
        trace: &Trace,
        accounting: Accounting,
        sizes: SizeRule,
    ) -> Result<Sweep, SimulateError> {
        let capacities = if self.has_capacities() {
            let has_shares = self.capacities.iter().any(|size| size.is_share());
            let all = if has_shares { footprint(trace, accounting) } else { 0 };
            let mut capacities: Vec<u64> = self.capacities.iter().map(|it| it.of(all)).collect();
            capacities.sort_unstable();
            capacities.dedup();
            capacities
        } else {
            let (all, least) =
                (footprint(trace, accounting), least_capacity(trace, accounting, &self.contenders));
            if self.is_plotted || self.is_of_curve() {
                spread(all, least)
            } else {
                shares(all, least)
            }
        };
        let mut contenders = self.contenders.clone();
        // It is not the optimum where entries expire.
        if self.asked == Asked::Default && self.ttl.applies_to(trace) {
            contenders.retain(|contender| !contender.is_belady());
        }
        Ok(Sweep {
            contenders,
            capacities,
            options: Options {
                accounting,
                warmup: self.warmup,
                operations: self.operations,
                sizes,
                ttl: self.ttl,
                windows: self.windows(trace)?,
                shards: self.shards,
            },
            jobs: self.jobs,
        })
    }
}

/// Returns a few shares of `all`, and none below `least`.
fn shares(all: u64, least: u64) -> Vec<u64> {
    let share = |percent| all / 100 * percent + all % 100 * percent / 100;
    let mut sizes: Vec<u64> = SHARES.iter().map(|percent| round_up(share(*percent), 2)).collect();
    sizes.retain(|size| *size >= least);
    sizes.dedup();
    sizes
}

/// Rounds up to `digits` significant digits, so that people can read and type the number.
fn round_up(number: u64, digits: u32) -> u64 {
    let number = number.max(1);
    let unit = 10_u64.pow((number.ilog10() + 1).saturating_sub(digits));
    number.checked_next_multiple_of(unit).unwrap_or(number)
}

/// Returns sizes up to `all`, each larger than the previous one by the same factor, and none below `least`.
fn spread(all: u64, least: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (1..=CURVE_POINTS)
        .map(|point| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the last digits of these sizes do not matter"
            )]
            {
                let exponent = f64::from(point) / f64::from(CURVE_POINTS);
                let smallest = (all as f64 / 1000.0).max(least as f64);
                round_up((smallest * (all as f64 / smallest).powf(exponent)).round() as u64, 3)
            }
        })
        .collect();
    sizes.dedup();
    sizes
}
