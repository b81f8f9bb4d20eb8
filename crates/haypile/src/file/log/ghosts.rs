//! Ghosts: fingerprints of keys that were evicted soon after they came. Hints: they may be lost or
//! wrong.

use std::sync::atomic::Ordering;

use crate::file::area::Area;
use crate::file::format::header;
use crate::file::format::layout::Geometry;
use crate::file::platform::ground::Ground;

/// Ghosts in a line: two in a word, each a fingerprint (16 bits) and when it came (16 bits).
const PER_LINE: u64 = 16;
/// The ticks of the clock of ghosts in the time that a key is remembered.
const TICKS: u64 = 256;
/// A key is remembered until as much was evicted after it as this part of the cache, in per cent.
const REMEMBERED_PERCENT: u64 = 90;

/// Returns 16 bits of a hash, never zero.
fn fingerprint(hash: u64) -> u64 {
    // The line was chosen by the upper bits. Zero is of no key.
    (hash & 0xFFFF).max(1)
}

/// The hashes of recently evicted keys (ghosts) that a cache file remembers without their values.
#[derive(Debug)]
pub(in crate::file) struct Ghosts<'a, G> {
    ground: &'a G,
    geometry: &'a Geometry,
}

impl<'a, G: Ground> Ghosts<'a, G> {
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { ground: &area.ground, geometry: &area.geometry }
    }

    /// Prefetches the line of the cache file in which an evicted key with this hash would be
    /// remembered.
    pub(in crate::file) fn prefetch(&self, hash: u64) {
        self.ground.prefetch(self.geometry.ghost_line(self.geometry.ghost_line_of(hash)));
    }

    /// Returns the time by the clock of ghosts, which is how much was evicted. It does not depend on how many ghosts
    /// have room: in a cache of large values, that many would be keys of long ago.
    fn time(&self) -> u64 {
        let tick_bytes = self.geometry.capacity_bytes() / 100 * REMEMBERED_PERCENT / TICKS;
        self.ground.load(header::GHOST_CLOCK, Ordering::Relaxed) / tick_bytes.max(1)
    }

    /// Remembers in the cache file that the key with this hash was evicted, with a record of this
    /// length.
    pub(in crate::file) fn remember(&self, hash: u64, bytes: u64) {
        let line = self.geometry.ghost_line(self.geometry.ghost_line_of(hash));
        let now = self.time() & 0xFFFF;
        self.ground.add(header::GHOST_CLOCK, bytes);
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
        let ghost = now << 16 | fingerprint(hash);
        self.ground.store(at, word & !(0xFFFF_FFFF << shift) | ghost << shift, Ordering::Relaxed);
    }

    /// Returns whether the key with this hash was evicted recently, and forgets that eviction.
    pub(in crate::file) fn recall(&self, hash: u64) -> bool {
        let line = self.geometry.ghost_line(self.geometry.ghost_line_of(hash));
        let now = self.time();
        for at in (0..PER_LINE / 2).map(|number| line + 8 * number) {
            let word = self.ground.load(at, Ordering::Relaxed);
            for shift in [0, 32] {
                let ghost = word >> shift & 0xFFFF_FFFF;
                if ghost & 0xFFFF == fingerprint(hash)
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
