//! `haypile simulate`

mod csv;
mod curve;
mod json;
mod plan;
mod tables;

use std::path::PathBuf;
use std::slice;

use anyhow::{Context, bail};
use haypile_sim::Trace;
use haypile_sim::curve::LruCurve;
use haypile_sim::simulate::{Accounting, Cell, Sweep, footprint};

use self::plan::Plan;
use crate::args::Simulate;
use crate::command::advise::Watch;
use crate::output::progress::Progress;
use crate::{input, interrupt, output};

/// What came of one trace.
pub(crate) struct Results {
    /// What people call it.
    pub(crate) name: String,
    /// Its requests.
    pub(crate) requests: u64,
    /// Its distinct keys.
    pub(crate) keys: u64,
    /// What entries weighed.
    pub(crate) accounting: Accounting,
    /// Whether bytes can be told.
    pub(crate) has_sizes: bool,
    /// What was asked for.
    pub(crate) sweep: Sweep,
    /// What was simulated.
    pub(crate) cells: Vec<Cell>,
    /// The curve, if it was asked for, and the sizes at which it is shown.
    pub(crate) curve: Option<(LruCurve, Vec<u64>)>,
}

/// Simulates traces, one after the other, and prints what came of them.
pub(crate) fn run(arguments: &Simulate) -> anyhow::Result<()> {
    interrupt::watch()?;
    let plan = Plan::new(arguments)?;
    let inputs: Vec<&[PathBuf]> = if arguments.join {
        vec![&arguments.traces]
    } else {
        arguments.traces.iter().map(slice::from_ref).collect()
    };
    let mut results = Vec::new();
    for paths in inputs {
        if interrupt::asked() {
            break;
        }
        let trace = input::open(paths, &arguments.reading, plan.needs_next_use())?;
        results.push(simulate(input::name(paths), &trace, &plan)?);
    }
    print(&results, arguments)?;
    if let Some(path) = &arguments.plot {
        curve::plot(&results, path)?;
    }
    let (asked, finished) = results.iter().fold((0, 0), |(asked, finished), one| {
        let done = one.cells.iter().filter(|cell| cell.outcome.is_some()).count();
        (asked + one.sweep.cells(), finished + done)
    });
    if interrupt::asked() {
        bail!("interrupted; {finished} of {asked} simulations are finished and shown");
    }
    Ok(())
}

fn simulate(name: String, trace: &Trace, plan: &Plan) -> anyhow::Result<Results> {
    let accounting = plan.accounting(trace);
    let sweep = plan.sweep(trace, accounting);
    let passes = sweep.cells() + usize::from(plan.curve.is_some());
    let progress =
        Progress::towards((trace.requests() * passes) as u64, format!("simulating {name}"));
    let watch = Watch(&progress);
    let curve = match plan.curve {
        Some(sampling) => {
            let operations = sweep.options.operations;
            let mut advance = |requests| haypile_sim::simulate::Monitor::advance(&watch, requests);
            LruCurve::measure(trace, accounting, operations, sampling, &mut advance)
                .with_context(|| name.clone())?
        }
        None => None,
    };
    let cells = sweep.run(trace, &watch).with_context(|| name.clone())?;
    progress.finish();
    let sizes = |curve: &LruCurve| {
        if plan.has_capacities() {
            sweep.capacities.clone()
        } else {
            plan::spread(curve.largest_useful().max(footprint(trace, accounting)))
        }
    };
    Ok(Results {
        name,
        requests: trace.requests() as u64,
        keys: u64::from(trace.keys()),
        accounting,
        has_sizes: trace.sizes().is_some(),
        curve: curve.map(|curve| {
            let sizes = sizes(&curve);
            (curve, sizes)
        }),
        sweep,
        cells,
    })
}

fn print(results: &[Results], arguments: &Simulate) -> anyhow::Result<()> {
    if arguments.output.json {
        return output::json(&json::document(results));
    }
    let text = if arguments.output.csv {
        csv::lines(results)?
    } else {
        tables::text(results, arguments.output.details)
    };
    output::text(&text)?;
    Ok(())
}
