//! Random numbers that distinguish one lease from another.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Returns a random number that distinguishes a lease (the right to write the computed value of a key) from all others,
/// in any process.
pub(crate) fn random() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    // The keys of the standard library's hashers come from the system, but a forked child has those of its parent.
    let own = (process::id(), SystemTime::now(), DRAWN.fetch_add(1, Ordering::Relaxed));
    RandomState::new().hash_one(own)
}
