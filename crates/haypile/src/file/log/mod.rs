//! The log of segments: appending records to it, and making room in it.

pub(in crate::file) mod append;
pub(in crate::file) mod candidates;
mod choose_lane;
pub(in crate::file) mod clear;
pub(in crate::file) mod ghosts;
pub(in crate::file) mod hazards;
pub(in crate::file) mod lane;
pub(in crate::file) mod open;
pub(in crate::file) mod plan;
pub(in crate::file) mod ready;
pub(in crate::file) mod recycle;
pub(in crate::file) mod recycler;
pub(in crate::file) mod reserve;
pub(in crate::file) mod run;
pub(in crate::file) mod survey;
pub(in crate::file) mod sweep;
