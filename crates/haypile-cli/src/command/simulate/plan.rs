//! Plan of a simulation, from the arguments and defaults.

use std::num::NonZeroUsize;

use anyhow::bail;
use haypile_sim::Trace;
use haypile_sim::curve::Sampling;
use haypile_sim::simulate::{
    Accounting, Contender, Operations, Options, SizeRule, Sweep, Warmup, footprint,
};

use crate::args::{CapacityArgument, Simulate};

/// Default policies.
const POLICIES: &str = "fifo,lru,slru,sieve,s3fifo,wtinylfu,arc,lirs,belady";

/// Default sizes, as percentages of the working set.
const SHARES: [u64; 5] = [1, 5, 10, 25, 50];

/// Number of sizes of a curve.
const CURVE_POINTS: u32 = 25;

/// Plan of a simulation.
pub(crate) struct SimulationPlan {
    /// Sampling of the curve, if one is requested.
    pub(crate) curve: Option<Sampling>,
    contenders: Vec<Contender>,
    /// As they were written; counts of objects as bytes.
    capacities: Vec<CapacityArgument>,
    accounting: Option<Accounting>,
    warmup: Warmup,
    operations: Operations,
    jobs: usize,
    shards: Option<usize>,
    is_plotted: bool,
}

impl SimulationPlan {
    pub(crate) fn new(arguments: &Simulate) -> anyhow::Result<Self> {
        let counts_objects = !arguments.objects.is_empty();
        let accounting = match arguments.simulating.accounting {
            Some(Accounting::Objects) if !arguments.size.is_empty() => {
                bail!("--size is in bytes, but --accounting objects counts objects; use --objects")
            }
            Some(accounting) if counts_objects && accounting != Accounting::Objects => {
                bail!(
                    "--objects counts objects, but --accounting {accounting} counts bytes; use --size"
                )
            }
            None if counts_objects => Some(Accounting::Objects),
            None if !arguments.size.is_empty() => Some(Accounting::Bytes),
            accounting => accounting,
        };
        if arguments.simulating.shards.is_some() && accounting != Some(Accounting::Engine) {
            bail!("--shards are those of a memory:// cache; add --accounting engine")
        }
        if arguments.curve.is_some() && arguments.warmup != Warmup::None {
            bail!("--curve counts every request and cannot be combined with --warmup")
        }
        let sampling = arguments
            .sample
            .map_or(Sampling::Exact, |rate| Sampling::Rate { rate, seed: arguments.reading.seed });
        let curve = arguments.curve.as_ref().map(|_| sampling);
        let contenders = match &arguments.policy {
            Some(contenders) => contenders.0.clone(),
            None if curve.is_some() => Vec::new(),
            None => Contender::parse_list(POLICIES).expect("the default policies exist"),
        };
        let counts = arguments.objects.iter().copied().map(CapacityArgument::Bytes);
        let capacities = arguments.size.iter().copied().chain(counts).collect();
        Ok(Self {
            curve,
            contenders,
            capacities,
            accounting,
            warmup: arguments.warmup,
            operations: arguments.simulating.operations(),
            jobs: arguments.simulating.jobs(),
            shards: arguments.simulating.shards.map(NonZeroUsize::get),
            is_plotted: arguments.plot.is_some(),
        })
    }

    /// Whether the user named sizes.
    pub(crate) fn has_capacities(&self) -> bool {
        !self.capacities.is_empty()
    }

    /// Returns the number of curves to plot for each trace.
    pub(crate) fn curves(&self) -> usize {
        self.contenders.len() + usize::from(self.curve.is_some())
    }

    /// Whether a policy needs the future of the trace.
    pub(crate) fn needs_next_use(&self) -> bool {
        self.contenders.iter().any(|contender| matches!(contender, Contender::Belady { .. }))
    }

    /// Returns the accounting of a trace's entries.
    pub(crate) fn accounting(&self, trace: &Trace) -> Accounting {
        self.accounting.unwrap_or(match trace.sizes() {
            Some(_) => Accounting::Bytes,
            None => Accounting::Objects,
        })
    }

    /// Returns the simulations of a trace.
    pub(crate) fn sweep(&self, trace: &Trace, accounting: Accounting, sizes: SizeRule) -> Sweep {
        let capacities = if self.has_capacities() {
            let is_share = |it: &CapacityArgument| matches!(it, CapacityArgument::Share(_));
            let has_shares = self.capacities.iter().any(is_share);
            let all = if has_shares { footprint(trace, accounting) } else { 0 };
            let mut capacities: Vec<u64> = self.capacities.iter().map(|it| it.of(all)).collect();
            capacities.sort_unstable();
            capacities.dedup();
            capacities
        } else {
            let all = footprint(trace, accounting);
            if self.is_plotted { spread(all) } else { shares(all) }
        };
        Sweep {
            contenders: self.contenders.clone(),
            capacities,
            options: Options {
                accounting,
                warmup: self.warmup,
                operations: self.operations,
                sizes,
                windows: 0,
                shards: self.shards,
            },
            jobs: self.jobs,
        }
    }
}

/// Returns a few shares of `all`.
fn shares(all: u64) -> Vec<u64> {
    let share = |percent| all / 100 * percent + all % 100 * percent / 100;
    let mut sizes: Vec<u64> = SHARES.iter().map(|percent| round_up(share(*percent), 2)).collect();
    sizes.dedup();
    sizes
}

/// Rounds up to `digits` significant digits, so that people can read and type the number.
fn round_up(number: u64, digits: u32) -> u64 {
    let number = number.max(1);
    let unit = 10_u64.pow((number.ilog10() + 1).saturating_sub(digits));
    number.checked_next_multiple_of(unit).unwrap_or(number)
}

/// Returns sizes up to `all`, each larger than the previous one by the same factor.
pub(crate) fn spread(all: u64) -> Vec<u64> {
    let mut sizes: Vec<u64> = (1..=CURVE_POINTS)
        .map(|point| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the last digits of these sizes do not matter"
            )]
            {
                let exponent = f64::from(point) / f64::from(CURVE_POINTS);
                let smallest = (all as f64 / 1000.0).max(1.0);
                round_up((smallest * (all as f64 / smallest).powf(exponent)).round() as u64, 3)
            }
        })
        .collect();
    sizes.dedup();
    sizes
}
