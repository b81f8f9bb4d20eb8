//! Stack distances in numbers of keys.

use std::collections::BTreeSet;

use super::fenwick::Fenwick;
use super::{NEVER, entry, positions_for};

/// Positions whose keys are counted bit by bit.
const BLOCK: usize = 256;
const WORD: usize = u64::BITS as usize;

/// Stack distances in numbers of distinct keys.
///
/// An access costs one sum and one change of a tree with an entry per 256 positions, and the
/// counting of at most 256 bits. Memory: up to about 13 bytes per key.
///
/// ```
/// # use haypile_sim::reuse::StackDistances;
/// let mut distances = StackDistances::default();
/// assert_eq!(distances.access(7), None);
/// assert_eq!(distances.access(8), None);
/// assert_eq!(distances.access(8), Some(0));
/// assert_eq!(distances.access(7), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct StackDistances {
    /// By id, the position of the last access.
    last: Vec<u32>,
    /// By position, the key that was accessed.
    owners: Vec<u32>,
    /// A bit by position: whether this is the last access of its key, or a hole.
    live: Vec<u64>,
    /// The positions of keys that were removed and whose room nothing has taken.
    holes: BTreeSet<u32>,
    /// Bits that are set.
    occupied: u64,
    /// The numbers of bits in blocks. The block that is being filled is not in it: nobody asks for
    /// a sum that has it.
    blocks: Fenwick,
    keys: usize,
}

impl StackDistances {
    /// Ready for keys below `keys` without growing on the way. More are welcome.
    pub fn with_keys(keys: u32) -> Self {
        Self { last: vec![NEVER; keys as usize], ..Self::default() }
    }

    /// The number of distinct keys so far.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Accesses a key: the number of distinct other keys since its last access, with the
    /// [holes](super) among them, or `None` if this is its first one.
    ///
    /// Ids should be dense: memory is proportional to the largest one.
    ///
    /// # Panics
    /// At more than 2^31 - 1,024 distinct keys.
    pub fn access(&mut self, id: u32) -> Option<u64> {
        if self.owners.len() == self.live.len() * WORD {
            self.renumber();
        }
        let position = self.owners.len();
        if position.is_multiple_of(BLOCK) && position > 0 {
            let block = position / BLOCK - 1;
            self.blocks.add(block, ones(&self.live[block * BLOCK / WORD..position / WORD]));
        }
        self.owners.push(id);
        self.live[position / WORD] |= 1 << (position % WORD);
        self.occupied += 1;

        let last = entry(&mut self.last, id, NEVER);
        let before = std::mem::replace(last, u32::try_from(position).expect("positions_for"));
        if before == NEVER {
            self.keys += 1;
            if let Some(hole) = self.holes.pop_last() {
                self.leave(hole as usize);
            }
            return None;
        }
        let distance = self.behind(before as usize) - 1;
        match self.holes.last().copied().filter(|hole| *hole > before) {
            // Caches that had the hole and not the key fill it; in those that had both, the room
            // is free as before.
            Some(hole) => {
                self.holes.remove(&hole);
                self.leave(hole as usize);
                self.holes.insert(before);
            }
            None => self.leave(before as usize),
        }
        Some(distance)
    }

    /// Removes a key, which leaves a [hole](super) behind.
    pub fn remove(&mut self, id: u32) {
        let last = entry(&mut self.last, id, NEVER);
        let before = std::mem::replace(last, NEVER);
        if before != NEVER {
            self.holes.insert(before);
            self.keys -= 1;
        }
    }

    /// Counts the bits behind a position.
    #[inline]
    fn behind(&self, position: usize) -> u64 {
        let (block, word) = (position / BLOCK, position / WORD);
        let bit = 1 << (position % WORD);
        let up_to = self.blocks.sum_of_first(block)
            + ones(&self.live[block * BLOCK / WORD..word])
            + u64::from((self.live[word] & (bit | (bit - 1))).count_ones());
        self.occupied - up_to
    }

    /// Takes the bit at a position away.
    #[inline]
    fn leave(&mut self, position: usize) {
        let newest = self.owners.len() - 1;
        self.live[position / WORD] &= !(1 << (position % WORD));
        self.occupied -= 1;
        if position / BLOCK != newest / BLOCK {
            self.blocks.subtract(position / BLOCK, 1);
        }
    }

    /// Closes the gaps that keys left behind.
    fn renumber(&mut self) {
        let mut kept = 0_u32;
        let holes = std::mem::take(&mut self.holes);
        for (position, at) in (0..self.owners.len()).zip(0_u32..) {
            if self.live[position / WORD] >> (position % WORD) & 1 == 1 {
                let id = self.owners[position];
                self.owners[kept as usize] = id;
                if !holes.is_empty() && holes.contains(&at) {
                    self.holes.insert(kept);
                } else {
                    self.last[id as usize] = kept;
                }
                kept += 1;
            }
        }
        let kept = kept as usize;
        let positions = positions_for(kept);
        self.owners.truncate(kept);
        self.owners.reserve_exact(positions - kept);
        self.live.clear();
        self.live.resize(kept / WORD, u64::MAX);
        self.live.push((1 << (kept % WORD)) - 1);
        self.live.resize(positions / WORD, 0);
        self.blocks = Fenwick::zeros(positions / BLOCK);
        // The last full block is counted when the position behind it is given.
        for block in 0..(kept / BLOCK).saturating_sub(usize::from(kept.is_multiple_of(BLOCK))) {
            self.blocks.add(block, BLOCK as u64);
        }
    }
}

fn ones(words: &[u64]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}
