//! The common parts of leases on all servers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use haypile::Lease;

/// Returns the lease of these words.
pub(crate) fn lease_of(words: [u64; 4]) -> Lease {
    let mut bytes = [0; Lease::BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Lease::from_bytes(bytes)
}

/// Returns the words of a lease.
pub(crate) fn words_of(lease: Lease) -> [u64; 4] {
    let bytes = lease.to_bytes();
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|number| u64::from_le_bytes(words[number]))
}

/// Returns a number that nobody else has.
pub(crate) fn random() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    // The keys of the standard library's hashers come from the system, but a forked child has those of its parent.
    let own = (process::id(), SystemTime::now(), DRAWN.fetch_add(1, Ordering::Relaxed));
    RandomState::new().hash_one(own)
}
