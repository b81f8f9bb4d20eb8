//! `haypile simulate`

mod csv;
mod curve;
mod details;
mod json;
mod plan;
mod tables;

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Error;
use haypile_sim::Trace;
use haypile_sim::curve::{Estimate, LruCurve};
use haypile_sim::simulate::{
    Accounting, Cell, Contender, MissCost, Monitor, OtherReading, Outcome, SimulateError, SizeRule,
    Sweep, other_reading,
};
use haypile_sim::trace::SampledTrace;
use haypile_sim::trace::format::group_recordings;

use self::plan::SimulationPlan;
use crate::args::Simulate;
use crate::command::watch::Watch;
use crate::output::progress::Progress;
use crate::{command, input, interrupt, output};

/// The results of simulating eviction policies on one trace.
pub(crate) struct Results {
    /// The name of the trace in tables.
    pub(crate) name: String,
    /// Number of the trace's requests.
    pub(crate) requests: u64,
    /// Number of the trace's distinct keys.
    pub(crate) keys: u64,
    /// The part of the trace that was simulated, if it is a sample.
    pub(crate) sample: Option<SampledTrace>,
    /// The rule by which simulated entries are weighed, such as by their bytes.
    pub(crate) accounting: Accounting,
    /// Whether the trace has sizes of values.
    pub(crate) has_sizes: bool,
    /// The cost of a miss that the user stated; `None` if there is none.
    pub(crate) miss_cost: Option<MissCost>,
    /// The simulations that the user requested: policies, cache sizes and rules.
    pub(crate) sweep: Sweep,
    /// The outcomes of the simulations, one for each policy and cache size.
    pub(crate) cells: Vec<Cell>,
    /// The hit ratios with reads of another size than before counted as hits, and counted as
    /// misses; `None` if they hardly differ.
    pub(crate) other_reading: Option<OtherReading>,
    /// Whether the simulations are the points of a miss-ratio curve over cache sizes.
    pub(crate) is_of_curve: bool,
    /// Whether the user asked for the miss-ratio curve of LRU.
    pub(crate) wants_curve: bool,
    /// The miss-ratio curve of LRU, and the cache sizes at which it is printed.
    pub(crate) curve: Option<(LruCurve, Vec<u64>)>,
}

/// Returns the hit ratio of a simulation; `None` without reads.
pub(crate) fn hit_ratio(outcome: &Outcome) -> Option<f64> {
    (outcome.counts.reads() > 0).then(|| outcome.counts.hit_ratio())
}

impl Results {
    /// Returns the share of the cost of misses that a simulation's hits saved; `None` without a
    /// known cost or without reads.
    pub(crate) fn cost_saved_ratio(&self, outcome: &Outcome) -> Option<f64> {
        let cost = self.miss_cost?;
        hit_ratio(outcome).map(|_| cost.saved_ratio(&outcome.counts))
    }

    fn finished(&self) -> usize {
        self.cells.iter().filter(|cell| cell.outcome.is_some()).count()
    }

    /// Whether the LRU curve, computed in one pass, equals the miss ratios that simulations would
    /// have.
    pub(crate) fn is_curve_exact(&self) -> bool {
        self.curve.as_ref().is_some_and(|(curve, _)| curve.is_exact())
    }

    /// Returns the estimated error of a point's miss ratio on the LRU curve: that of the sampling,
    /// or 0 if the curve is exact; `None` if it is unknown.
    pub(crate) fn curve_error(&self, estimate: &Estimate) -> Option<f64> {
        let (curve, _) = self.curve.as_ref()?;
        (!curve.is_whole() || self.is_curve_exact()).then_some(estimate.error)
    }

    /// Whether all requested simulations of the trace were completed.
    pub(crate) fn is_complete(&self) -> bool {
        self.finished() == self.sweep.cells() && self.curve.is_some() == self.wants_curve
    }
}

/// Executes `haypile simulate`: simulates traces, one after the other, and prints the results.
pub(crate) fn run(arguments: &Simulate) -> anyhow::Result<()> {
    let plan = SimulationPlan::new(arguments)?;
    input::check(&arguments.traces)?;
    let groups = if arguments.join {
        vec![arguments.traces.clone()]
    } else {
        group_recordings(&arguments.traces)
    };
    let inputs: Vec<&[PathBuf]> = groups.iter().map(Vec::as_slice).collect();
    if let Some(path) = &arguments.plot {
        curve::check(path, plan.curves() * inputs.len())?;
    }
    interrupt::watch()?;
    let mut results = Vec::new();
    let mut failure = None;
    for (paths, name) in inputs.iter().zip(input::names(&inputs)) {
        let trace = input::open_with_origin(paths, &arguments.reading, plan.wanted());
        let done = trace.and_then(|(trace, origin)| {
            simulate(name, &trace, &plan, arguments.simulating.sizes(origin.sizes))
        });
        match done {
            Ok(one) => results.push(one),
            Err(error) => failure = Some(error),
        }
        if failure.is_some() || interrupt::asked() {
            break;
        }
    }
    // Finished results are printed even after an error.
    if !results.is_empty() {
        print(&results, arguments)?;
        let has_curves = results.iter().any(|one| one.finished() > 0 || one.curve.is_some());
        if let Some(path) = arguments.plot.as_ref().filter(|_| has_curves) {
            curve::plot(&results, path)?;
        }
    }
    match failure {
        Some(error) => Err(error),
        None if interrupt::asked() => check_complete(&results, inputs.len()),
        None => Ok(()),
    }
}

/// Returns an error that names the missing results after Ctrl-C, or nothing if none is missing.
fn check_complete(results: &[Results], traces: usize) -> anyhow::Result<()> {
    if results.len() == traces && results.iter().all(Results::is_complete) {
        return Ok(());
    }
    let finished: usize = results.iter().map(Results::finished).sum();
    let asked: usize = results.iter().map(|one| one.sweep.cells()).sum();
    let mut text = format!("interrupted; printed {finished} of {asked} simulations");
    if results.iter().any(|one| one.curve.is_some() != one.wants_curve) {
        text.push_str(", without the curve");
    }
    match traces - results.len() {
        0 => {}
        1 => text.push_str("; 1 trace was not started"),
        rest => write!(text, "; {rest} traces were not started")?,
    }
    Err(Error::msg(text))
}

fn simulate(
    name: String,
    trace: &Trace,
    plan: &SimulationPlan,
    sizes: SizeRule,
) -> anyhow::Result<Results> {
    let accounting = plan.accounting(trace);
    if let Some(cost) = plan.miss_cost() {
        cost.check(trace).map_err(|error| command::explain(error, &name))?;
        command::note_free_reads(cost, trace, &name);
    }
    let sweep =
        plan.sweep(trace, accounting, sizes).map_err(|error| command::explain(error, &name))?;
    let passes = sweep.cells() + usize::from(plan.has_lru_curve);
    let progress =
        Progress::towards((trace.requests() * passes) as u64, format!("simulating {name}"));
    let watch = Watch(&progress);
    let curve = if plan.has_lru_curve {
        let mut advance = |requests| watch.advance(requests);
        LruCurve::measure(trace, &sweep.options, &mut advance)
            .map_err(|error| command::explain(error, &name))?
    } else {
        None
    };
    let cells = sweep.run(trace, &watch).map_err(|error| command::explain(error, &name))?;
    let other_reading = other_reading_of_best(trace, &sweep, &cells, &watch)
        .map_err(|error| command::explain(error, &name))?;
    progress.finish();
    Ok(Results {
        name,
        requests: trace.whole_requests(),
        keys: trace.whole_keys(),
        sample: trace.sampled(),
        accounting,
        has_sizes: trace.sizes().is_some(),
        miss_cost: plan.miss_cost(),
        is_of_curve: plan.is_of_curve(),
        wants_curve: plan.has_lru_curve,
        curve: curve.map(|curve| {
            let sizes = plan.curve_sizes(trace, &sweep, &curve);
            (curve, sizes)
        }),
        sweep,
        cells,
        other_reading,
    })
}

/// Returns what the simulation with the most hits would have had if sizes that change meant the opposite, if
/// that matters. The optimum is taken only where nothing else was simulated.
fn other_reading_of_best(
    trace: &Trace,
    sweep: &Sweep,
    cells: &[Cell],
    watch: &Watch<'_>,
) -> Result<Option<OtherReading>, SimulateError> {
    let is_policy = |cell: &Cell| matches!(sweep.contenders[cell.contender], Contender::Policy(_));
    let finished = cells.iter().filter_map(|cell| Some((cell, cell.outcome.as_ref()?)));
    // Of equals the first: the smallest cache, and the policy that was named first.
    let better = |one: &(&Cell, &Outcome)| (is_policy(one.0), one.1.counts.hits);
    let best = finished.rev().max_by_key(better);
    let Some((cell, outcome)) = best else { return Ok(None) };
    let simulated = (&sweep.contenders[cell.contender], sweep.capacities[cell.capacity]);
    let mut advance = |requests| watch.advance(requests);
    other_reading(trace, simulated, &sweep.options, &outcome.counts, &mut advance)
}

fn print(results: &[Results], arguments: &Simulate) -> anyhow::Result<()> {
    if arguments.output.json {
        return output::json(&json::document(results));
    }
    let text = if arguments.output.csv {
        csv::lines(results)?
    } else {
        tables::text(results, arguments.output.details, arguments.output.all)
    };
    output::text(&text)?;
    Ok(())
}
