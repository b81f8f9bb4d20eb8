//! The findings of an experiment: its answer, its charts and its tables, computed from its samples.

pub(crate) mod curves;
pub(crate) mod details;
pub(crate) mod figures;
pub(crate) mod front;
pub(crate) mod latency;
pub(crate) mod plain;
pub(crate) mod simulate;

use haypile_measure::result::Samples;

use super::case::cases;
use super::section::Body;
use super::topic::Topic;

/// Returns the content of an experiment's section in the report; of an unknown experiment, a plain
/// table.
pub(super) fn body(topic: Option<&dyn Topic>, samples: &Samples<'_>) -> Body {
    let cases = cases(samples);
    match topic {
        Some(topic) => topic.body(samples, &cases),
        None => plain::body(&cases),
    }
}
