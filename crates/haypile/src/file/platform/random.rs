//! Random numbers, which no other process has.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;
use std::time::SystemTime;

/// Returns a random 64-bit number, different for each call in any process.
pub(in crate::file) fn random() -> u64 {
    // The keys of the standard library's hashers come from the system, but a forked child has those of its parent.
    RandomState::new().hash_one((process::id(), SystemTime::now()))
}
