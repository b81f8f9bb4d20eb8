//! Simulations: the results that a cache of some size and policy would have had with a trace.
//!
//! The policies are those of the engine, the same code, and the `file` store's rules are its own; a
//! simulated request costs nanoseconds because the trace's dense key numbers serve as slots, so that
//! there is no table of keys.

mod accounting;
mod belady;
mod cost;
mod counts;
mod driver;
mod engine;
mod error;
mod expiry;
mod far_future;
mod file;
mod reading;
mod run;
mod size_rule;
mod sweep;
mod whole;
mod windows;

pub use accounting::{Accounting, RELSTORAGE_VALUE_LIMIT_BYTES, footprint};
pub use cost::{BadMissCost, Goal, MissCost};
pub use counts::Counts;
pub use driver::Driver;
pub use engine::ENGINE_HASH_SEED;
pub use error::SimulateError;
pub use expiry::TtlRule;
pub use file::SimulatedFile;
pub use reading::{OtherReading, other_reading};
pub use run::{Contender, Operations, Options, Outcome, Warmup, simulate, simulate_policy};
pub(crate) use size_rule::RuledSizes;
pub use size_rule::{SizeRule, changed_reads};
pub use sweep::{Cell, Monitor, Sweep};
pub(crate) use whole::check_sample;
pub use whole::{MIN_SAMPLED_ENTRIES, MIN_SAMPLED_KEYS, least_capacity};
pub use windows::Windows;
