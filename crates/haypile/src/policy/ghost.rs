//! What a policy remembers of entries that are gone.
//!
//! In a store a slot is reused as soon as its entry leaves, so ghosts have to be found by the
//! fingerprint of their key. In the simulator a slot belongs to a key for good and *is* its
//! fingerprint, so that a ghost is found without a hash table. [`Memory`] picks one or the other;
//! policies are written once over it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::Slot;
use super::link::Links;
use super::weight::Weights;

/// How ghosts are found.
pub trait Memory: Send + Sync + 'static {
    /// The fingerprints of the entries in slots.
    type Fingerprints: Fingerprints;
    /// Lists of ghosts, of weights kept as the policy keeps those of its entries.
    type List<W: Weights>: GhostList;
    /// Numbers for entries that outlive their slots.
    type Nodes: Nodes;
}

/// A slot belongs to one key for ever and a fingerprint is the slot: the simulator.
#[derive(Debug)]
pub struct BySlot;

impl Memory for BySlot {
    type Fingerprints = SlotIsFingerprint;
    type List<W: Weights> = SlotGhosts<W>;
    type Nodes = SlotNodes;
}

/// Slots are reused and a fingerprint is a hash of the key: stores.
#[derive(Debug)]
pub struct ByFingerprint;

impl Memory for ByFingerprint {
    type Fingerprints = FingerprintPerSlot;
    type List<W: Weights> = FingerprintGhosts;
    type Nodes = FingerprintNodes;
}

/// The fingerprint of the entry in each slot.
pub trait Fingerprints: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// Records the fingerprint of the entry in `slot`.
    fn set(&mut self, slot: Slot, fingerprint: u64);
    /// The fingerprint of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// [`Fingerprints`] where slots belong to keys.
#[derive(Debug, Default)]
pub struct SlotIsFingerprint;

impl Fingerprints for SlotIsFingerprint {
    fn reserve(&mut self, _slots: usize) {}

    fn set(&mut self, _slot: Slot, _fingerprint: u64) {}

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        u64::from(slot)
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// [`Fingerprints`] where slots are reused.
#[derive(Debug, Default)]
pub struct FingerprintPerSlot(Vec<u64>);

impl Fingerprints for FingerprintPerSlot {
    fn reserve(&mut self, slots: usize) {
        if slots > self.0.len() {
            self.0.resize(slots, 0);
        }
    }

    #[inline]
    fn set(&mut self, slot: Slot, fingerprint: u64) {
        self.0[slot as usize] = fingerprint;
    }

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        self.0[slot as usize]
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}

/// A queue of ghosts, oldest first out.
pub trait GhostList: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// Remembers a key as the youngest. A key that is remembered already stays where it is.
    fn push(&mut self, fingerprint: u64, weight: u64);
    /// Forgets a key; gives its weight, or `None` where it was not remembered.
    fn remove(&mut self, fingerprint: u64) -> Option<u64>;
    /// Forgets the oldest.
    fn pop(&mut self) -> Option<u64>;
    /// The sum of the weights.
    fn weight(&self) -> u64;
    /// Fingerprints from the oldest to the youngest.
    fn dump(&self) -> Vec<u64>;
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// [`GhostList`] over slots that belong to keys.
#[derive(Debug)]
pub struct SlotGhosts<W> {
    links: Links<1>,
    present: Vec<bool>,
    weights: W,
    weight: u64,
}

impl<W: Weights> Default for SlotGhosts<W> {
    fn default() -> Self {
        Self { links: Links::new(), present: Vec::new(), weights: W::default(), weight: 0 }
    }
}

impl<W: Weights> SlotGhosts<W> {
    fn forget(&mut self, slot: Slot) -> u64 {
        self.present[slot as usize] = false;
        let weight = self.weights.get(slot);
        self.weight -= weight;
        weight
    }
}

impl<W: Weights> GhostList for SlotGhosts<W> {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.weights.reserve(slots);
        if slots > self.present.len() {
            self.present.resize(slots, false);
        }
    }

    #[inline]
    fn push(&mut self, fingerprint: u64, weight: u64) {
        let slot = slot_of(fingerprint);
        if !self.present[slot as usize] {
            self.present[slot as usize] = true;
            self.weights.replace(slot, weight);
            self.weight += weight;
            self.links.push_head(0, slot);
        }
    }

    #[inline]
    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let slot = slot_of(fingerprint);
        if !self.present[slot as usize] {
            return None;
        }
        self.links.unlink(slot);
        Some(self.forget(slot))
    }

    #[inline]
    fn pop(&mut self) -> Option<u64> {
        let slot = self.links.pop_tail(0)?;
        Some(self.forget(slot))
    }

    #[inline]
    fn weight(&self) -> u64 {
        self.weight
    }

    fn dump(&self) -> Vec<u64> {
        self.links.dump(0)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + self.weights.memory_bytes() + self.present.capacity()
    }
}

/// [`GhostList`] over fingerprints. Two keys with the same fingerprint share a ghost.
#[derive(Debug, Default)]
pub struct FingerprintGhosts {
    /// The weight of each ghost and the turn at which it was pushed.
    table: FingerprintMap<(u64, u64)>,
    /// Fingerprints in the order of their turns. An entry whose turn the table does not confirm
    /// was removed since.
    order: VecDeque<(u64, u64)>,
    turn: u64,
    weight: u64,
}

impl FingerprintGhosts {
    /// Drops what was removed out of the middle once it is most of the order.
    fn compact(&mut self) {
        if self.order.len() > 16 + 2 * self.table.len() {
            let table = &self.table;
            self.order.retain(|(fingerprint, turn)| {
                table.get(fingerprint).is_some_and(|(_, current)| current == turn)
            });
        }
    }
}

impl GhostList for FingerprintGhosts {
    fn reserve(&mut self, _slots: usize) {}

    fn push(&mut self, fingerprint: u64, weight: u64) {
        if let Entry::Vacant(entry) = self.table.entry(fingerprint) {
            self.turn += 1;
            entry.insert((weight, self.turn));
            self.order.push_back((fingerprint, self.turn));
            self.weight += weight;
        }
    }

    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let (weight, _) = self.table.remove(&fingerprint)?;
        self.weight -= weight;
        self.compact();
        Some(weight)
    }

    fn pop(&mut self) -> Option<u64> {
        while let Some((fingerprint, turn)) = self.order.pop_front() {
            if self.table.get(&fingerprint).is_some_and(|(_, current)| *current == turn) {
                return self.remove(fingerprint);
            }
        }
        None
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn dump(&self) -> Vec<u64> {
        let current = |(fingerprint, turn): &&(u64, u64)| {
            self.table.get(fingerprint).is_some_and(|(_, current)| current == turn)
        };
        self.order.iter().filter(current).map(|(fingerprint, _)| *fingerprint).collect()
    }

    fn memory_bytes(&self) -> usize {
        self.order.capacity() * size_of::<(u64, u64)>()
            + self.table.capacity() * size_of::<(u64, (u64, u64))>()
    }
}

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

#[inline]
fn slot_of(fingerprint: u64) -> Slot {
    u32::try_from(fingerprint).expect("a fingerprint that is a slot")
}

type FingerprintMap<V> = HashMap<u64, V, BuildHasherDefault<AlreadyHashed>>;

/// A fingerprint is a hash already.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("fingerprints are u64");
    }

    fn write_u64(&mut self, fingerprint: u64) {
        // Small numbers, which tests use as fingerprints, differ only in low bits; the table
        // looks at the high ones too.
        self.0 = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
