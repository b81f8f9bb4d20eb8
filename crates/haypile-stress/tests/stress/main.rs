//! Short runs of both tests, with fixed seeds: `make stress` has long ones.

mod daemon;
mod differential;
mod processes;
mod program;
