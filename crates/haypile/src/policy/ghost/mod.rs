//! What a policy remembers of entries that are gone.
//!
//! In a store a slot is reused as soon as its entry leaves, so ghosts have to be found by the
//! fingerprint of their key. In the simulator a slot belongs to a key for good and *is* its
//! fingerprint, so that a ghost is found without a hash table. [`Memory`] picks one or the other;
//! policies are written once over it.

mod fingerprint;
mod list;
mod node;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub use fingerprint::{FingerprintPerSlot, Fingerprints, SlotIsFingerprint};
pub use list::{FingerprintGhosts, GhostList, SlotGhosts};
pub use node::{FingerprintNodes, Nodes, SlotNodes};

use super::Slot;
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
