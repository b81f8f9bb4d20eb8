//! Random bytes that values are cut from.
//!
//! Writing a value and comparing it with what it should be are copies and comparisons of memory, so
//! that a test spends its time in the cache. A value names a place in the filler by its identity;
//! two values whose places differ have no word in common, so parts of one in the other are noticed.

use std::sync::OnceLock;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The longest slice of filler bytes that a caller can ask for, in bytes.
pub(crate) const LONGEST_SLICE_BYTES: usize = 2 << 20;

/// The filler has this number of places at which a slice can begin.
const PLACES: usize = 2 << 20;

static FILLER: OnceLock<Box<[u8]>> = OnceLock::new();

/// Returns `bytes` filler bytes, at most [`LONGEST_SLICE_BYTES`], which `identity` determines, the same in every
/// process.
pub(crate) fn slice(identity: u64, bytes: usize) -> &'static [u8] {
    let filler = FILLER.get_or_init(|| {
        let mut filler = vec![0; PLACES + LONGEST_SLICE_BYTES].into_boxed_slice();
        ChaCha8Rng::seed_from_u64(0).fill_bytes(&mut filler);
        filler
    });
    let place = usize::try_from(mix(identity) % PLACES as u64).expect("the remainder is small");
    &filler[place..place + bytes]
}

/// Mixes the bits of a number (the finalizer of `SplitMix64`).
pub(crate) fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_differ_and_reach_the_end() {
        assert_eq!(slice(7, 100), slice(7, 100));
        assert_ne!(slice(7, 100), slice(8, 100));
        assert_eq!(slice(7, LONGEST_SLICE_BYTES).len(), LONGEST_SLICE_BYTES);
    }
}
