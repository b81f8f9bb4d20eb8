//! One file per command.

pub(crate) mod advise;
pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod policies;
pub(crate) mod simulate;
pub(crate) mod trace;
