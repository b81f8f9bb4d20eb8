//! Commands that read the file of a `file://` cache.

pub(crate) mod check;
pub(crate) mod stat;
