//! Stack distances in bytes.

use super::fenwick::Fenwick;
use super::{NEVER, entry, positions_for};

/// Positions whose weights are added up one by one.
const BLOCK: usize = 32;

/// Stack distances in weights of distinct keys, for instance bytes.
///
/// A key weighs what its last access said. Memory: up to about 29 bytes per key.
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
    /// By id, the position of the last access.
    last: Vec<u32>,
    /// By position, the key that was accessed.
    owners: Vec<u32>,
    /// By position, what its key weighs if this is its last access, or 0.
    weights: Vec<u64>,
    /// The sums of the weights in blocks. The block that is being filled is not in it: nobody asks
    /// for a sum that has it.
    blocks: Fenwick,
    positions: usize,
    total: u64,
}

impl WeightedStackDistances {
    /// Ready for keys below `keys` without growing on the way. More are welcome.
    pub fn with_keys(keys: u32) -> Self {
        Self { last: vec![NEVER; keys as usize], ..Self::default() }
    }

    /// The weight of all distinct keys so far.
    pub fn total_weight(&self) -> u64 {
        self.total
    }

    /// Accesses a key, which weighs `weight` from now on: the weight of the distinct other keys
    /// since its last access, or `None` if this is its first one.
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
        let last = entry(&mut self.last, id, NEVER);
        let before = std::mem::replace(last, u32::try_from(position).expect("positions_for"));
        let distance = (before != NEVER).then(|| self.leave(before as usize, position));
        self.owners.push(id);
        self.weights.push(weight);
        self.total += weight;
        distance
    }

    /// Removes a key: the distance that an access would have had, or `None` if it is not there.
    ///
    /// Unlike in [`StackDistances`](super::StackDistances) it leaves no hole: what small caches
    /// evicted in its favour seems to be in them again, so that a trace with many removals looks a
    /// little better than it is.
    pub fn remove(&mut self, id: u32) -> Option<u64> {
        let last = self.last.get_mut(id as usize)?;
        let before = std::mem::replace(last, NEVER);
        (before != NEVER).then(|| self.leave(before as usize, self.owners.len() - 1))
    }

    /// Takes a key away from its position, and weighs the keys behind it.
    fn leave(&mut self, before: usize, newest: usize) -> u64 {
        let block = before / BLOCK;
        let up_to = self.blocks.sum_of_first(block)
            + self.weights[block * BLOCK..=before].iter().sum::<u64>();
        let behind = self.total - up_to;
        let weight = std::mem::take(&mut self.weights[before]);
        if block != newest / BLOCK {
            self.blocks.subtract(block, weight);
        }
        self.total -= weight;
        behind
    }

    /// Closes the gaps that keys left behind.
    fn renumber(&mut self) {
        let mut kept = 0_u32;
        for position in 0..self.owners.len() {
            let id = self.owners[position];
            let last = &mut self.last[id as usize];
            if *last as usize == position {
                *last = kept;
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
