//! Places in a policy's lists that outlive the slots of their entries.

use hashbrown::HashTable;

use super::super::Slot;
use super::super::column::SlotColumn;
use super::super::free::FreeList;
use super::{never_relocated, slot_of};
use crate::table::spread;

/// The node numbers of keys in a policy's lists: a key keeps its node as a ghost after its entry was evicted and its
/// slot freed, as LIRS needs.
///
/// Nodes are dense like slots; [`attach`](Self::attach) says when the policy has to grow.
pub trait Nodes: Default + Send + Sync + 'static {
    /// Makes room for the slots below number `slots`.
    fn reserve(&mut self, slots: usize);
    /// Returns the node under which a ghost of this key may be remembered; the policy's own state
    /// decides whether it is a ghost.
    fn find(&self, fingerprint: u64) -> Option<u32>;
    /// Assigns a node to the key in `slot`, and returns it: that of its ghost, or a new one.
    fn attach(&mut self, slot: Slot, fingerprint: u64) -> u32;
    /// Returns the node of the entry in `slot`.
    fn node(&self, slot: Slot) -> u32;
    /// Returns the slot of the entry of `node`, which is not a ghost.
    fn slot(&self, node: u32) -> Slot;
    /// Removes the entry of `node` from its slot, keeps it as a ghost, and returns the slot.
    fn detach(&mut self, node: u32) -> Slot;
    /// Forgets the ghost of `node`.
    fn forget(&mut self, node: u32);
    /// Removes the entry of `node` from its slot, keeps no ghost, and returns the slot.
    fn release(&mut self, node: u32) -> Slot {
        let slot = self.detach(node);
        self.forget(node);
        slot
    }
    /// Records that the entry in slot `from` has moved to slot `to`, which was free.
    fn relocate(&mut self, from: Slot, to: Slot);
    /// Drops the slots from number `slots` on.
    fn drop_slots(&mut self, slots: usize);
    /// Whether enough nodes are free to make it worth the work to have fewer.
    fn is_sparse(&self) -> bool;
    /// Drops the last node, where nodes are sparse. If it is not free, what it stands for gets
    /// another number first; both are returned.
    fn drop_last(&mut self) -> Option<(u32, u32)>;
    /// Returns the number of nodes that there can be at the moment: the size of arrays over them.
    /// Less after nodes were dropped.
    fn bound(&self) -> usize;
    /// Returns the bytes of memory that the nodes take.
    fn memory_bytes(&self) -> usize;
}

/// The node numbers of entries whose slots belong to one key permanently ([`Nodes`]): slot, node and fingerprint are
/// the same number.
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

    fn relocate(&mut self, _from: Slot, _to: Slot) {
        never_relocated();
    }

    fn drop_slots(&mut self, _slots: usize) {
        never_relocated();
    }

    #[inline]
    fn is_sparse(&self) -> bool {
        false
    }

    fn drop_last(&mut self) -> Option<(u32, u32)> {
        None
    }

    fn bound(&self) -> usize {
        self.bound
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// As the slot of a node: the node is free.
const FREE: Slot = Slot::MAX;

/// As the slot of a node: it is that of a ghost.
const GHOST: Slot = Slot::MAX - 1;

/// A node in 12 bytes, which unpacked would take 16.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct Node {
    fingerprint: u64,
    slot: Slot,
}

/// The node numbers of entries whose slots are reused for other keys ([`Nodes`]), so that a ghost keeps its node
/// without a slot.
#[derive(Debug, Default)]
pub struct FingerprintNodes {
    by_slot: SlotColumn<u32>,
    nodes: Vec<Node>,
    /// The nodes of ghosts, by fingerprint.
    ghosts: HashTable<u32>,
    free: FreeList,
    /// The number of nodes that are not free.
    taken: usize,
}

impl FingerprintNodes {
    fn fingerprint(&self, node: u32) -> u64 {
        self.nodes[node as usize].fingerprint
    }

    /// Makes a ghost one that is not found.
    fn remove_ghost(&mut self, fingerprint: u64) -> Option<u32> {
        let nodes = &self.nodes;
        let same = |node: &u32| nodes[*node as usize].fingerprint == fingerprint;
        let found = self.ghosts.find_entry(spread(fingerprint), same).ok()?;
        Some(found.remove().0)
    }

    fn take_free(&mut self) -> u32 {
        self.taken += 1;
        self.free.pop(self.nodes.len()).unwrap_or_else(|| {
            if self.nodes.len() == self.nodes.capacity() {
                // By an eighth: nodes that are not there yet cost memory as well.
                self.nodes.reserve_exact(self.nodes.len() / 8 + 16);
            }
            self.nodes.push(Node { fingerprint: 0, slot: FREE });
            u32::try_from(self.nodes.len() - 1).expect("fewer nodes than slots and ghosts")
        })
    }

    #[cold]
    fn find_free(&self) -> Option<u32> {
        self.nodes.iter().zip(0..).find_map(|(node, number)| (node.slot == FREE).then_some(number))
    }

    fn shrink(&mut self) {
        let nodes = self.nodes.len();
        if self.nodes.capacity() > nodes + nodes / 4 + 64 {
            self.nodes.shrink_to(nodes + nodes / 8);
            self.free.shrink(nodes);
        }
        if self.ghosts.capacity() > 4 * self.ghosts.len() + 64 {
            let nodes = &self.nodes;
            let rehash = |node: &u32| spread(nodes[*node as usize].fingerprint);
            self.ghosts.shrink_to(self.ghosts.len(), rehash);
        }
    }
}

impl Nodes for FingerprintNodes {
    fn reserve(&mut self, slots: usize) {
        self.by_slot.reserve(slots);
    }

    fn find(&self, fingerprint: u64) -> Option<u32> {
        let same = |node: &u32| self.fingerprint(*node) == fingerprint;
        self.ghosts.find(spread(fingerprint), same).copied()
    }

    fn attach(&mut self, slot: Slot, fingerprint: u64) -> u32 {
        let node = self.remove_ghost(fingerprint).unwrap_or_else(|| self.take_free());
        self.nodes[node as usize] = Node { fingerprint, slot };
        self.by_slot[slot] = node;
        node
    }

    fn node(&self, slot: Slot) -> u32 {
        self.by_slot[slot]
    }

    fn slot(&self, node: u32) -> Slot {
        self.nodes[node as usize].slot
    }

    fn detach(&mut self, node: u32) -> Slot {
        let Node { fingerprint, slot } = self.nodes[node as usize];
        // Of two keys with one fingerprint the later ghost is the one that is found. The earlier
        // stays in the policy's lists until it is forgotten there.
        self.remove_ghost(fingerprint);
        self.nodes[node as usize].slot = GHOST;
        let nodes = &self.nodes;
        let rehash = |node: &u32| spread(nodes[*node as usize].fingerprint);
        self.ghosts.insert_unique(spread(fingerprint), node, rehash);
        slot
    }

    fn forget(&mut self, node: u32) {
        let hash = spread(self.fingerprint(node));
        if let Ok(found) = self.ghosts.find_entry(hash, |other| *other == node) {
            found.remove();
        }
        self.nodes[node as usize].slot = FREE;
        self.free.push(node);
        self.taken -= 1;
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        let node = self.by_slot[from];
        self.by_slot[to] = node;
        self.nodes[node as usize].slot = to;
    }

    fn drop_slots(&mut self, slots: usize) {
        self.by_slot.drop_slots(slots);
    }

    fn is_sparse(&self) -> bool {
        self.nodes.len() > self.taken + self.taken / 8 + 64
    }

    fn drop_last(&mut self) -> Option<(u32, u32)> {
        let last = self.nodes.pop()?;
        let from = u32::try_from(self.nodes.len()).expect("nodes are numbered by u32");
        let moved = (last.slot != FREE).then(|| {
            let to = self.free.pop(self.nodes.len()).or_else(|| self.find_free());
            let to = to.expect("only where nodes are free any is dropped");
            self.nodes[to as usize] = last;
            (from, to)
        });
        if let Some((_, to)) = moved {
            if last.slot != GHOST {
                self.by_slot[last.slot] = to;
            } else if let Some(node) =
                self.ghosts.find_mut(spread(last.fingerprint), |node| *node == from)
            {
                *node = to;
            }
        }
        self.shrink();
        moved
    }

    fn bound(&self) -> usize {
        self.nodes.capacity()
    }

    fn memory_bytes(&self) -> usize {
        self.by_slot.memory_bytes()
            + self.nodes.capacity() * size_of::<Node>()
            + self.ghosts.allocation_size()
            + self.free.memory_bytes()
    }
}
