//! The commands on one cache.

pub(crate) mod clear;
pub(crate) mod delete;
pub(crate) mod dump;
pub(crate) mod get;
pub(crate) mod incr;
pub(crate) mod invalidate;
pub(crate) mod keys;
mod lease;
pub(crate) mod load;
pub(crate) mod set;
mod walk;
