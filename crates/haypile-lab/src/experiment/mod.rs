//! The experiments: each builds jobs and cases, and states the counts that are right for them. None
//! measures by itself.

pub mod crossover;
mod file;
mod keys;
mod lookups;
pub mod micro;
pub mod necko;
pub mod persist;
mod places;
pub mod ratio;
pub mod replay;
pub mod search;
pub mod stampede;
pub mod workload;

use serde_json::Value;

pub use file::{ExperimentFile, ExperimentFileError, Setting, Settings};
pub use places::Places;

use crate::result::Parameters;

/// The parameters of a case by name.
fn parameters<const N: usize>(named: [(&str, Value); N]) -> Parameters {
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
