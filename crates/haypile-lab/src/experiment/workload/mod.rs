//! `workload`: the local client tests of document 004.

pub mod case;
mod groups;
mod kind;

pub use groups::{GROUPS, Groups, KEYS_PER_GROUP, LIMIT_BYTES, VALUE_BYTES};
pub use kind::{EXECUTIONS, Workload, population};

/// What the experiment is called.
pub const NAME: &str = "workload";

/// The subjects where none are named: the source's policies, and the engine's own choice.
pub const SUBJECTS: &str = "memory:policy=lru,memory:policy=slru,memory:policy=s3fifo";

/// The parameter over which a sample's time is divided to compare it with the source.
pub const SOURCE_OPERATIONS: &str = "source_operations";
