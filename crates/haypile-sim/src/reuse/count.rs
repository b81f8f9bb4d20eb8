//! Stack distances in numbers of keys.

use std::collections::BinaryHeap;

use super::fenwick::Fenwick;
use super::{NEVER, entry, positions_for};

/// Positions whose keys are counted bit by bit.
const BLOCK: usize = 256;
const WORD: usize = u64::BITS as usize;

/// A calculator of LRU stack distances: the numbers of distinct keys between two accesses of a key.
///
/// An access costs one sum and one change of a tree with an entry per 256 positions, and the
/// counting of at most 256 bits. Memory: up to about 13 bytes per key.
///
/// A key that is removed leaves a hole, which the next access from beyond it fills: an LRU cache
/// that has the hole has room for one more key. Holes count in distances until then, so that a
/// cache of `n` keys hits exactly if the distance is below `n`, with removals too.
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
    /// Position of the last access of each key, indexed by id.
    last: Vec<u32>,
    /// Key that was accessed at each position, or `NEVER` for a hole.
    owners: Vec<u32>,
    /// Bit of each position: whether it is a hole, or the last access of its key.
    live: Vec<u64>,
    /// Number of set bits in each block. The block of the newest position is left out: nobody asks
    /// for a sum that includes it.
    blocks: Fenwick,
    /// The positions of holes.
    holes: BinaryHeap<u32>,
    keys: usize,
}

impl StackDistances {
    /// Creates a calculator of stack distances without accesses, with memory for keys below `keys`. Larger keys are
    /// allowed.
    pub fn with_keys(keys: u32) -> Self {
        Self { last: vec![NEVER; keys as usize], ..Self::default() }
    }

    /// Returns the number of distinct keys that were accessed and not removed.
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Accesses a key and returns the number of distinct other keys since its last access, or `None` if this is its
    /// first access, or the first after it was removed.
    ///
    /// Ids should be dense: memory is proportional to the largest one.
    ///
    /// # Panics
    /// At more than 2^31 - 1,024 distinct keys.
    pub fn access(&mut self, id: u32) -> Option<u64> {
        if self.owners.len() == self.live.len() * WORD {
            self.renumber();
        }
        let last = entry(&mut self.last, id, NEVER);
        let position = u32::try_from(self.owners.len()).expect("positions_for tested it");
        let before = std::mem::replace(last, position);
        let distance = (before != NEVER).then(|| self.behind(before as usize));
        self.push(id);
        match self.holes.peek() {
            // What was accessed since the hole was left moves down by one and fills it. (A key
            // without a position comes from beyond all of them.)
            Some(&hole) if before == NEVER || hole > before => {
                self.holes.pop();
                self.clear(hole as usize);
                if before != NEVER {
                    self.dig(before);
                }
            }
            _ if before != NEVER => self.clear(before as usize),
            _ => {}
        }
        self.keys += usize::from(before == NEVER);
        distance
    }

    /// Removes a key; returns the stack distance that an access of it would have had, or `None` if the key is not
    /// there.
    pub fn remove(&mut self, id: u32) -> Option<u64> {
        let last = self.last.get_mut(id as usize)?;
        let before = std::mem::replace(last, NEVER);
        if before == NEVER {
            return None;
        }
        let distance = self.behind(before as usize);
        self.dig(before);
        self.keys -= 1;
        Some(distance)
    }

    /// Gives the next position to a key.
    fn push(&mut self, id: u32) {
        let position = self.owners.len();
        if position.is_multiple_of(BLOCK) && position > 0 {
            let block = position / BLOCK - 1;
            self.blocks.add(block, ones(&self.live[block * BLOCK / WORD..position / WORD]));
        }
        self.owners.push(id);
        self.live[position / WORD] |= 1 << (position % WORD);
    }

    /// The number of live positions behind a live one.
    fn behind(&self, position: usize) -> u64 {
        let (block, word) = (position / BLOCK, position / WORD);
        let bit = 1 << (position % WORD);
        let up_to = self.blocks.sum_of_first(block)
            + ones(&self.live[block * BLOCK / WORD..word])
            + u64::from((self.live[word] & (bit | (bit - 1))).count_ones());
        (self.keys + self.holes.len()) as u64 - up_to
    }

    /// Makes a live position a dead one.
    fn clear(&mut self, position: usize) {
        self.live[position / WORD] &= !(1 << (position % WORD));
        let newest = self.owners.len() - 1;
        if position / BLOCK != newest / BLOCK {
            self.blocks.subtract(position / BLOCK, 1);
        }
    }

    /// Makes the live position of a key a hole.
    fn dig(&mut self, position: u32) {
        self.owners[position as usize] = NEVER;
        self.holes.push(position);
    }

    /// Closes the gaps that dead positions are.
    fn renumber(&mut self) {
        self.holes.clear();
        let mut kept = 0_u32;
        for position in 0..self.owners.len() {
            if self.live[position / WORD] >> (position % WORD) & 1 == 1 {
                let id = self.owners[position];
                self.owners[kept as usize] = id;
                match self.last.get_mut(id as usize) {
                    Some(last) if id != NEVER => *last = kept,
                    _ => self.holes.push(kept),
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
