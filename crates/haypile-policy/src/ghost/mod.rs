//! A policy's memory of entries that are gone.
//!
//! In a store a slot is reused as soon as its entry leaves, so ghosts have to be found by the
//! fingerprint of their key. In the simulator a slot belongs to a key for good and *is* its
//! fingerprint, so that a ghost is found without a hash table. [`Memory`] picks one or the other;
//! policies are written once over it.

mod fingerprint;
mod fingerprint_list;
mod list;
mod node;

pub use fingerprint::{FingerprintPerSlot, Fingerprints, SlotIsFingerprint};
pub use fingerprint_list::FingerprintGhosts;
pub use list::{GhostList, SlotGhosts};
pub use node::{FingerprintNodes, Nodes, SlotNodes};

use super::Slot;
use super::weight::Weights;

/// The way in which an eviction policy identifies keys that it remembers after their eviction (ghosts).
pub trait Memory: Send + Sync + 'static {
    /// Whether slots are reused for other keys, so that entries can be moved among them.
    const REUSES_SLOTS: bool;
    /// The type that keeps the fingerprints of the entries in slots.
    type Fingerprints: Fingerprints;
    /// The type of ghost lists, with weights kept as the policy keeps those of its entries.
    type List<W: Weights>: GhostList;
    /// The type that numbers entries which outlive their slots.
    type Nodes: Nodes;
}

/// The way in which the simulator's policies identify evicted keys ([`Memory`]): a slot belongs to one key permanently,
/// and is its fingerprint.
#[derive(Debug)]
pub struct BySlot;

impl Memory for BySlot {
    const REUSES_SLOTS: bool = false;
    type Fingerprints = SlotIsFingerprint;
    type List<W: Weights> = SlotGhosts<W>;
    type Nodes = SlotNodes;
}

/// The way in which the policies of stores identify evicted keys ([`Memory`]): slots are reused, and a fingerprint is a
/// hash of the key.
#[derive(Debug)]
pub struct ByFingerprint;

impl Memory for ByFingerprint {
    const REUSES_SLOTS: bool = true;
    type Fingerprints = FingerprintPerSlot;
    type List<W: Weights> = FingerprintGhosts;
    type Nodes = FingerprintNodes;
}

#[inline]
fn slot_of(fingerprint: u64) -> Slot {
    u32::try_from(fingerprint).expect("a fingerprint that is a slot")
}

/// The [`Policy::relocate`](super::Policy::relocate) of memories whose slots belong to keys.
#[cold]
fn never_relocated() -> ! {
    unreachable!("a slot that belongs to a key stays its slot")
}
