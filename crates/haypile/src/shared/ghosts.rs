//! Fingerprints of keys that were evicted soon after they came. Hints: they may be lost or wrong.

use std::sync::atomic::Ordering;

use super::area::Area;
use super::ground::Ground;
use super::header;

/// Ghosts in a line: two in a word, each a fingerprint (16 bits) and when it came (16 bits).
const PER_LINE: u64 = 16;
/// The clock of ghosts ticks so often in the time that all of them are replaced.
const TICKS: u64 = 256;

impl<G: Ground> Area<G> {
    fn ghost_age(&self) -> u64 {
        let capacity = u64::from(self.geometry.numbers.ghosts) * PER_LINE;
        self.ground.load(header::GHOST_CLOCK, Ordering::Relaxed) / (capacity / TICKS).max(1)
    }

    fn fingerprint(hash: u64) -> u64 {
        // The line was chosen by the upper bits. Zero is of no key.
        (hash & 0xFFFF).max(1)
    }

    /// Remembers a key that was evicted.
    pub(super) fn remember(&self, hash: u64) {
        let line = self.geometry.ghost_line(self.geometry.ghost_line_of(hash));
        let now = self.ghost_age() & 0xFFFF;
        self.ground.add(header::GHOST_CLOCK, 1);
        // The oldest of the line, or one that is none.
        let (mut oldest, mut oldest_age) = ((line, 0, 0), 0);
        for at in (0..PER_LINE / 2).map(|number| line + 8 * number) {
            let word = self.ground.load(at, Ordering::Relaxed);
            for shift in [0, 32] {
                let ghost = word >> shift & 0xFFFF_FFFF;
                let age =
                    if ghost == 0 { u64::MAX } else { now.wrapping_sub(ghost >> 16) & 0xFFFF };
                if age >= oldest_age {
                    (oldest, oldest_age) = ((at, shift, word), age);
                }
            }
        }
        let (at, shift, word) = oldest;
        let ghost = now << 16 | Self::fingerprint(hash);
        self.ground.store(at, word & !(0xFFFF_FFFF << shift) | ghost << shift, Ordering::Relaxed);
    }

    /// Whether a key is remembered. It is forgotten by that.
    pub(super) fn recall(&self, hash: u64) -> bool {
        let line = self.geometry.ghost_line(self.geometry.ghost_line_of(hash));
        let now = self.ghost_age();
        for at in (0..PER_LINE / 2).map(|number| line + 8 * number) {
            let word = self.ground.load(at, Ordering::Relaxed);
            for shift in [0, 32] {
                let ghost = word >> shift & 0xFFFF_FFFF;
                if ghost & 0xFFFF == Self::fingerprint(hash)
                    && now.wrapping_sub(ghost >> 16) & 0xFFFF <= TICKS
                {
                    let word = word & !(0xFFFF_FFFF << shift);
                    self.ground.store(at, word, Ordering::Relaxed);
                    return true;
                }
            }
        }
        false
    }
}
