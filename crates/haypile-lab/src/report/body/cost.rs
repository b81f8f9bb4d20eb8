//! The cost of operations.

use haypile_measure::compare::Metric;
use haypile_measure::result::Sample;

use super::super::case::Case;

/// Processor time per operation, in nanoseconds.
pub(crate) fn cpu(sample: &Sample) -> Option<f64> {
    Metric::Cpu.of(sample)
}

/// Wall time per operation.
pub(crate) fn wall(sample: &Sample) -> Option<f64> {
    Metric::Wall.of(sample)
}

/// The server's processor time per operation.
pub(crate) fn server(sample: &Sample) -> Option<f64> {
    Metric::Server.of(sample)
}

/// Processor time of client and server together.
pub(crate) fn both(sample: &Sample) -> Option<f64> {
    Some(cpu(sample)? + server(sample).unwrap_or(0.0))
}

/// Memory in bytes.
pub(crate) fn memory(sample: &Sample) -> Option<f64> {
    Metric::Memory.of(sample)
}

/// Wall time of the whole timed part.
#[expect(clippy::unnecessary_wraps, reason = "it is one of several costs")]
pub(crate) fn whole_wall(sample: &Sample) -> Option<f64> {
    Some(sample.wall_ns as f64)
}

/// Processor time of the whole timed part.
#[expect(clippy::unnecessary_wraps, reason = "it is one of several costs")]
pub(crate) fn whole_cpu(sample: &Sample) -> Option<f64> {
    Some(sample.cpu_ns as f64)
}

/// Whether a server worked for anybody in these cases.
pub(crate) fn has_server(cases: &[Case<'_>]) -> bool {
    let mut entrants = cases.iter().flat_map(|case| &case.entrants);
    entrants.any(|entrant| entrant.good().any(|sample| sample.server_cpu_ns.is_some()))
}
