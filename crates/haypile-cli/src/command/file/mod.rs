//! Commands that look into the file of a `file://` cache.

pub(crate) mod check;
pub(crate) mod stat;
