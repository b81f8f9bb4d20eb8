//! Searches for wrong values in Haypile's caches, in two ways.
//!
//! - `differential` performs random sequences of every operation on a cache and on a plain model,
//!   and compares all that can be seen.
//! - `processes` has many processes use one cache, kills and stops them at random instants, and
//!   checks in each of them what it reads.
//!
//! Both repeat by a seed, and both are the program `haypile-stress` and tests of this crate. The
//! product does not depend on it.

mod args;
mod differential;
mod filler;
mod memory_opener;
mod panics;
mod processes;
mod target;
mod watch;

pub use args::run;
