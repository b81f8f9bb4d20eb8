//! Places in a policy's lists that outlive the slots of their entries.

use super::super::Slot;
use super::{FingerprintMap, slot_of};

/// Numbers of entries that keep their place in a policy's lists after their slot was taken away:
/// a ghost among residents, as LIRS has them.
///
/// Nodes are dense like slots; [`attach`](Self::attach) says when the policy has to grow.
pub trait Nodes: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// The node under which a ghost of this key may be remembered. Whether it is one, the policy's
    /// own state says.
    fn find(&self, fingerprint: u64) -> Option<u32>;
    /// Gives the key in `slot` a node: that of its ghost, or a new one.
    fn attach(&mut self, slot: Slot, fingerprint: u64) -> u32;
    /// The node of the entry in `slot`.
    fn node(&self, slot: Slot) -> u32;
    /// The slot of the entry of `node`, which is no ghost.
    fn slot(&self, node: u32) -> Slot;
    /// The entry of `node` leaves its slot, which is returned, and stays as a ghost.
    fn detach(&mut self, node: u32) -> Slot;
    /// Forgets a ghost.
    fn forget(&mut self, node: u32);
    /// The entry of `node` leaves its slot, which is returned, and nothing stays.
    fn release(&mut self, node: u32) -> Slot {
        let slot = self.detach(node);
        self.forget(node);
        slot
    }
    /// How many nodes there can be now: the size of arrays over them.
    fn bound(&self) -> usize;
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// [`Nodes`] where slots belong to keys: slot, node and fingerprint are one number.
#[derive(Debug, Default)]
pub struct SlotNodes {
    bound: usize,
}

impl Nodes for SlotNodes {
    fn reserve(&mut self, slots: usize) {
        self.bound = self.bound.max(slots);
    }

    #[inline]
    fn find(&self, fingerprint: u64) -> Option<u32> {
        Some(slot_of(fingerprint))
    }

    #[inline]
    fn attach(&mut self, slot: Slot, _fingerprint: u64) -> u32 {
        slot
    }

    #[inline]
    fn node(&self, slot: Slot) -> u32 {
        slot
    }

    #[inline]
    fn slot(&self, node: u32) -> Slot {
        node
    }

    #[inline]
    fn detach(&mut self, node: u32) -> Slot {
        node
    }

    fn forget(&mut self, _node: u32) {}

    fn bound(&self) -> usize {
        self.bound
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// [`Nodes`] where slots are reused.
#[derive(Debug, Default)]
pub struct FingerprintNodes {
    by_slot: Vec<u32>,
    /// For each node its slot (meaningless for a ghost) and its fingerprint.
    nodes: Vec<(Slot, u64)>,
    ghosts: FingerprintMap<u32>,
    free: Vec<u32>,
}

impl Nodes for FingerprintNodes {
    fn reserve(&mut self, slots: usize) {
        if slots > self.by_slot.len() {
            self.by_slot.resize(slots, 0);
        }
    }

    fn find(&self, fingerprint: u64) -> Option<u32> {
        self.ghosts.get(&fingerprint).copied()
    }

    fn attach(&mut self, slot: Slot, fingerprint: u64) -> u32 {
        let node =
            self.ghosts.remove(&fingerprint).or_else(|| self.free.pop()).unwrap_or_else(|| {
                self.nodes.push((slot, fingerprint));
                u32::try_from(self.nodes.len() - 1).expect("fewer nodes than slots and ghosts")
            });
        self.nodes[node as usize] = (slot, fingerprint);
        self.by_slot[slot as usize] = node;
        node
    }

    fn node(&self, slot: Slot) -> u32 {
        self.by_slot[slot as usize]
    }

    fn slot(&self, node: u32) -> Slot {
        self.nodes[node as usize].0
    }

    fn detach(&mut self, node: u32) -> Slot {
        let (slot, fingerprint) = self.nodes[node as usize];
        // Of two keys with one fingerprint the later ghost is the one that is found. The earlier
        // stays in the policy's lists until it is forgotten there.
        self.ghosts.insert(fingerprint, node);
        slot
    }

    fn forget(&mut self, node: u32) {
        let (_, fingerprint) = self.nodes[node as usize];
        if self.ghosts.get(&fingerprint) == Some(&node) {
            self.ghosts.remove(&fingerprint);
        }
        self.free.push(node);
    }

    fn bound(&self) -> usize {
        self.nodes.len()
    }

    fn memory_bytes(&self) -> usize {
        self.by_slot.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<(Slot, u64)>()
            + self.ghosts.capacity() * size_of::<(u64, u32)>()
            + self.free.capacity() * size_of::<u32>()
    }
}
