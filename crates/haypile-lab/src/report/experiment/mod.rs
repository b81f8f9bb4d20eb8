//! What each experiment found: its answer, its charts and its tables, out of its samples.

mod calls;
mod cost;
mod crossover;
mod curves;
mod figures;
mod front;
pub(super) mod latency;
mod micro;
mod persist;
mod plain;
mod ratio;
mod replay;
mod search;
pub(super) mod simulate;
mod stampede;
mod torture;
mod workload;

pub(super) use figures::beyond;

use super::case::cases;
use super::section::Body;
use crate::result::Samples;

/// The body of an experiment's section. Whatever is not known becomes a plain table.
pub(super) fn body(experiment: &str, samples: &Samples<'_>) -> Body {
    let cases = cases(samples);
    match experiment {
        "micro" => micro::body(&cases),
        "ratio" => ratio::body(&cases),
        "workload" => workload::body(&cases),
        "persist" => persist::body(&cases),
        "loop" | "sequence" => calls::body(&cases),
        "search" => search::body(&cases),
        "crossover" => crossover::body(samples, &cases),
        "stampede" => stampede::body(&cases),
        "torture" => torture::body(&cases),
        "replay" => replay::body(samples, &cases),
        _ => plain::body(&cases),
    }
}
