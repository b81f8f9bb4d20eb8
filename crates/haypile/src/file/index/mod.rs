//! The index: buckets of slots, and the rules for which slots are believed.

pub(in crate::file) mod bucket;
pub(in crate::file) mod chain;
pub(in crate::file) mod doubt;
pub(in crate::file) mod removals;
