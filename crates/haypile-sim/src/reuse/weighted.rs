//! Stack distances in bytes.

use std::collections::BTreeSet;

use super::fenwick::Fenwick;
use super::{NEVER, entry, positions_for};

/// Positions whose weights are added up one by one.
const BLOCK: usize = 32;

/// A calculator of LRU stack distances in weights: the sums of the weights (such as bytes) of the distinct keys between
/// two accesses of a key.
///
/// A key has the weight of its last access. Memory: up to about 29 bytes per key.
///
/// ```
/// # use haypile_sim::reuse::WeightedStackDistances;
/// let mut distances = WeightedStackDistances::default();
/// assert_eq!(distances.access(7, 100), None);
/// assert_eq!(distances.access(8, 50), None);
/// assert_eq!(distances.access(8, 60), Some(0));
/// assert_eq!(distances.access(7, 100), Some(60));
/// ```
#[derive(Clone, Debug, Default)]
pub struct WeightedStackDistances {
    /// Position of the last access of each key, indexed by id.
    last: Vec<u32>,
    /// Key that was accessed at each position.
    owners: Vec<u32>,
    /// Weight at each position: of its key if this is its last access, of the hole there, or 0.
    weights: Vec<u64>,
    /// The positions of removed keys in whose room there is something left.
    holes: BTreeSet<u32>,
    /// Sum of the weights in each block, without the block that is being filled, whose sum is never needed.
    blocks: Fenwick,
    positions: usize,
    /// The weight of all keys and holes.
    occupied: u64,
    /// The weight of all holes.
    free: u64,
}

impl WeightedStackDistances {
    /// Creates a calculator of weighted stack distances without accesses, with memory for keys below `keys`. Larger
    /// keys are allowed.
    pub fn with_keys(keys: u32) -> Self {
        Self { last: vec![NEVER; keys as usize], ..Self::default() }
    }

    /// Returns the sum of the weights of all distinct keys that were accessed and not removed.
    pub fn total_weight(&self) -> u64 {
        self.occupied - self.free
    }

    /// Returns the weight of a key at its last access; `None` if the key was never accessed, or was removed since.
    pub fn weight(&self, id: u32) -> Option<u64> {
        let last = self.last.get(id as usize).copied().filter(|last| *last != NEVER)?;
        Some(self.weights[last as usize])
    }

    /// Accesses a key, which weighs `weight` from then on, and returns the weight of the distinct other keys since its
    /// last access, with the room that removed keys left ([holes](super)); `None` if this is its first access.
    ///
    /// Ids should be dense: memory is proportional to the largest one. The sum of all weights has
    /// to stay below 2^64, which 2^32 keys of 32-bit sizes do.
    ///
    /// # Panics
    /// At more than 2^31 - 1,024 distinct keys.
    pub fn access(&mut self, id: u32, weight: u64) -> Option<u64> {
        if self.owners.len() == self.positions {
            self.renumber();
        }
        let position = self.owners.len();
        if position.is_multiple_of(BLOCK) && position > 0 {
            self.blocks.add(position / BLOCK - 1, self.weights[position - BLOCK..].iter().sum());
        }
        self.owners.push(id);
        self.weights.push(0);
        let last = entry(&mut self.last, id, NEVER);
        let before = std::mem::replace(last, u32::try_from(position).expect("positions_for"));
        let distance = if before == NEVER {
            self.fill_holes(0, weight);
            None
        } else {
            let distance = self.behind(before as usize);
            // Caches that had the holes and not the key fill them; in those that had both, as much
            // room is free as before.
            let filled = self.fill_holes(before + 1, weight);
            self.weigh(before as usize, filled);
            if filled > 0 {
                self.holes.insert(before);
                self.free += filled;
            }
            Some(distance)
        };
        self.weigh(position, weight);
        distance
    }

    /// Removes a key, whose room in the LRU stack stays free ([a hole](super)) until another key fills it; returns the
    /// stack distance that an access of it would have had, or `None` if the key is not there.
    pub fn remove(&mut self, id: u32) -> Option<u64> {
        let last = self.last.get_mut(id as usize)?;
        let before = std::mem::replace(last, NEVER);
        if before == NEVER {
            return None;
        }
        let distance = self.behind(before as usize);
        if self.weights[before as usize] > 0 {
            self.holes.insert(before);
            self.free += self.weights[before as usize];
        }
        Some(distance)
    }

    /// Fills holes at `lowest` and behind it, the nearest to the top first, with `weight`; says how
    /// much of it went into them.
    fn fill_holes(&mut self, lowest: u32, weight: u64) -> u64 {
        let mut left = weight;
        while left > 0
            && let Some(hole) = self.holes.last().copied().filter(|hole| *hole >= lowest)
        {
            let room = self.weights[hole as usize];
            let filled = room.min(left);
            left -= filled;
            self.free -= filled;
            self.weigh(hole as usize, room - filled);
            if filled == room {
                self.holes.remove(&hole);
            }
        }
        weight - left
    }

    /// Weighs what is behind a position.
    #[inline]
    fn behind(&self, position: usize) -> u64 {
        let block = position / BLOCK;
        let up_to = self.blocks.sum_of_first(block)
            + self.weights[block * BLOCK..=position].iter().sum::<u64>();
        self.occupied - up_to
    }

    /// Gives a position another weight.
    #[inline]
    fn weigh(&mut self, position: usize, weight: u64) {
        let before = std::mem::replace(&mut self.weights[position], weight);
        self.occupied = self.occupied - before + weight;
        let block = position / BLOCK;
        if block != (self.owners.len() - 1) / BLOCK {
            self.blocks.subtract(block, before);
            if weight > 0 {
                self.blocks.add(block, weight);
            }
        }
    }

    /// Closes the gaps that keys left behind.
    fn renumber(&mut self) {
        let mut kept = 0_u32;
        let holes = std::mem::take(&mut self.holes);
        for (position, at) in (0..self.owners.len()).zip(0_u32..) {
            let id = self.owners[position];
            let last = &mut self.last[id as usize];
            let is_last = *last == at;
            if is_last || (!holes.is_empty() && holes.contains(&at)) {
                if is_last {
                    *last = kept;
                } else {
                    self.holes.insert(kept);
                }
                self.owners[kept as usize] = id;
                self.weights[kept as usize] = self.weights[position];
                kept += 1;
            }
        }
        let kept = kept as usize;
        self.positions = positions_for(kept);
        self.owners.truncate(kept);
        self.owners.reserve_exact(self.positions - kept);
        self.weights.truncate(kept);
        self.weights.reserve_exact(self.positions - kept);
        self.blocks = Fenwick::zeros(self.positions / BLOCK);
        // The last full block is counted when the position behind it is given.
        let full = (kept / BLOCK).saturating_sub(usize::from(kept.is_multiple_of(BLOCK)));
        for (block, weights) in self.weights.chunks(BLOCK).take(full).enumerate() {
            self.blocks.add(block, weights.iter().sum());
        }
    }
}
