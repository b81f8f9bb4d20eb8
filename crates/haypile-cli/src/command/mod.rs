//! One file per command.

pub mod advise;
pub mod completions;
pub mod man;
pub mod policies;
pub mod simulate;
pub mod trace;
