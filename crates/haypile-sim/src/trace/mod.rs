//! Traces: the requests to a cache, in order.

mod assume;
mod builder;
mod bytes;
mod column;
mod completed;
mod error;
mod export;
pub mod format;
pub mod generate;
pub mod hpt;
pub mod info;
mod input;
mod keys;
mod next_use;
mod request;
mod sample;
mod size_changes;
mod table;

pub use builder::{BuildOptions, TraceBuilder};
pub use error::{Limit, TraceError};
pub use export::OracleGeneralLosses;
pub use input::Compression;
pub use next_use::NextUse;
pub use request::{Key, Op, Request, Sink};
pub(crate) use sample::Mark;
pub use sample::{KeyCountPass, Sample, SampledTrace, Sampling};
pub(crate) use size_changes::SizeChanges;
pub use table::Trace;
