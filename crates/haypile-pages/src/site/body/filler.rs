//! Seeded bytes that fill bodies, the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A generator of pseudo-random bytes with which generated response bodies are filled up.
pub(super) struct Filler(ChaCha8Rng);

impl Filler {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Returns random bytes of any value, which do not compress.
    pub(super) fn binary(&mut self, bytes: usize) -> Vec<u8> {
        let mut filled = vec![0; bytes];
        self.0.fill_bytes(&mut filled);
        filled
    }

    /// Returns random letters and blanks, which cannot end a comment or a string.
    pub(super) fn letters(&mut self, bytes: usize) -> Vec<u8> {
        const LETTERS: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz aeint";
        let mut filled = self.binary(bytes);
        for byte in &mut filled {
            *byte = LETTERS[usize::from(*byte) % LETTERS.len()];
        }
        filled
    }
}
