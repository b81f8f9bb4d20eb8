//! `workload`: the local client tests of document 004.

mod groups;
mod kind;

pub use groups::{GROUPS, Groups, KEYS_PER_GROUP, LIMIT_BYTES, VALUE_BYTES};
pub use kind::{EXECUTIONS, Workload, population};
