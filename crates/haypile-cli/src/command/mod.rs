//! Commands, one file each.

pub(crate) mod advise;
pub(crate) mod cache;
pub(crate) mod completions;
pub(crate) mod file;
pub(crate) mod icons;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod policies;
pub(crate) mod proxy;
mod reading;
pub(crate) mod rivals;
pub(crate) mod schemes;
pub(crate) mod simulate;
pub(crate) mod trace;
mod watch;

use anyhow::{Error, anyhow};
use haypile_number::grouped;
use haypile_sim::Trace;
use haypile_sim::simulate::{MissCost, SimulateError};
use haypile_sim::trace::info::CostInfo;

use crate::output::note;

/// Returns a simulation's error with the trace's name, and with the command-line options that avoid
/// it.
pub(crate) fn explain(error: SimulateError, name: &str) -> Error {
    match error {
        SimulateError::NoSizes => anyhow!(
            "{name}: the trace has no sizes of values; count objects with --objects or --accounting \
            objects, or assume sizes, as in --assume-size 160 or --assume-size \
            normal:mean=10000,sd=512"
        ),
        SimulateError::NoSizesForCost => anyhow!(
            "{name}: the trace has no sizes of values, so that the cost of a byte says nothing; leave per-byte out of \
            --miss-cost, or assume sizes, as in --assume-size 160"
        ),
        SimulateError::NoSizesForGoal => anyhow!(
            "{name}: the trace has no sizes of values, so that no cache can be chosen by bytes; leave --by out, or \
            assume sizes, as in --assume-size 160"
        ),
        error => Error::new(error).context(name.to_owned()),
    }
}

/// Says on standard error how many reads cost nothing, where the costs are those that the trace states.
pub(crate) fn note_free_reads(cost: MissCost, trace: &Trace, name: &str) {
    let MissCost::OfTrace = cost else { return };
    if let Some(costs) = CostInfo::of(trace).filter(|costs| costs.free_reads > 0) {
        note!(
            "haypile: {name}: reads that count as free, because no request for their key states a cost: {}",
            grouped(costs.free_reads)
        );
    }
}
