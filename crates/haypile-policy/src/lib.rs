//! Eviction policies, each written once and run by Haypile's stores and by its simulator alike.
//!
//! [`PolicySpec`] names a policy and builds it; [`Policy`] is the contract between a policy and the cache that drives
//! it. With both, a cache of your own can use these policies, and a policy of yours can compete with them in the
//! simulator (`haypile_sim::simulate::simulate_policy`).
//!
//! ```
//! use haypile_policy::{Newcomer, Policy, sieve::Sieve};
//!
//! // A cache of two entries, each of which weighs 1. It puts keys into slots 0 and 1.
//! let mut policy = Sieve::new();
//! policy.reserve_slots(2);
//! let key = |fingerprint| Newcomer { fingerprint, weight: 1 };
//! policy.on_insert(0, key(10));
//! policy.on_insert(1, key(11));
//! policy.on_hit(0);
//! // The third key needs room: the entry that was not read leaves.
//! assert!(policy.admit(key(12), 1));
//! assert_eq!(policy.evict(Some(key(12))), 1);
//! policy.on_insert(1, key(12));
//! ```
//!
//! The stores and the simulator share the rest of the crate, so that a prediction and the store that it predicts cannot
//! disagree: [`rules`], the hash [`table`], the [`slab`], and the format of a [`recording`].
//!
//! # The contract
//!
//! A policy never sees a key. It works on dense slot numbers, on fingerprints (64-bit hashes of
//! keys, for what it remembers of entries that are gone) and on weights. Whoever drives it, a
//! store or the simulator, owns the entries, knows which slots are taken and keeps the sum of
//! their weights within the capacity.
//!
//! ## The life of an entry
//!
//! 1. A key that is not in the cache is about to be stored: [`Policy::admit`] is asked once. A
//!    policy looks into its ghosts and sketches here, and may refuse, if entries would have to
//!    leave. A driver that would take room from elsewhere first asks [`Policy::judge`] before that.
//! 2. While the newcomer does not fit, [`Policy::evict`] names a victim. Room is made *before* the
//!    newcomer is placed, so that the bound is never exceeded, and *after* it was admitted, so that
//!    nothing leaves for an entry that is not stored.
//! 3. [`Policy::on_insert`] places it, or [`Policy::on_restore`] where it comes from a snapshot.
//! 4. Each read calls [`Policy::on_hit`] (or [`Policy::on_hit_shared`], where
//!    [`Policy::SHARED_HITS`] allows it without an exclusive lock).
//! 5. A new value for a key that is in the cache calls [`Policy::on_update`].
//! 6. It leaves as a victim of `evict`, or by [`Policy::on_remove`] when it is deleted or expired.
//!
//! After 1, 3, 4 and 5, and after [`Policy::set_capacity`], the driver takes what
//! [`Policy::overflow`] gives before it makes any other call, where [`Policy::HAS_OVERFLOW`] says
//! that there can be any. Those entries are in its slots still, and the policy has forgotten them.
//!
//! A lookup that finds nothing is not reported: what matters to a policy is the key that is
//! stored after it, and reporting both would count one access twice.

mod column;
mod free;
pub mod ghost;
pub mod link;
mod mark;
pub mod prefetch;
mod queues;
mod ranking;
pub mod recording;
pub mod rules;
mod sketch;
pub mod slab;
mod spec;
pub mod table;
pub mod weight;

pub mod arc;
pub mod clock;
pub mod fifo;
pub mod lirs;
pub mod lru;
pub mod s3fifo;
pub mod segment;
pub mod sieve;
pub mod slru;
pub mod slru4;
pub mod wtinylfu;

pub use ranking::Ranked;
pub use spec::{Param, PolicyError, PolicyKind, PolicySpec, PolicyVisitor};

/// The number of a cache entry (its slot): an index into the arrays of a policy and of its driver.
///
/// A driver reuses the slots of entries that left. The simulator uses the trace's dense key
/// numbers, so that there an entry that returns has the slot it had before.
pub type Slot = u32;

/// The properties of an entry that is about to be stored in a cache, which a policy may use: a hash of its key, and its
/// weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// A hash of the entry's key, which is the same each time the key is seen.
    pub fingerprint: u64,
    /// The entry's weight: its size in bytes, or 1 if objects are counted.
    pub weight: u64,
}

/// An eviction policy: it decides which entry leaves a full cache.
///
/// The sequence of calls that a driver makes is described in the [module documentation](self).
/// A policy has to be deterministic: the same calls give the same victims.
pub trait Policy: Send + Sync {
    /// Whether [`on_hit_shared`](Self::on_hit_shared) records a hit completely, so that a store
    /// needs no exclusive lock to serve it.
    const SHARED_HITS: bool = false;

    /// Whether [`overflow`](Self::overflow) can ever return an entry.
    const HAS_OVERFLOW: bool = false;

    /// Whether the policy keeps the bound itself, through [`overflow`](Self::overflow), and so may
    /// exceed it for a moment. Only the simulator runs such a policy; a store refuses it.
    const EXCEEDS_BOUND: bool = false;

    /// Whether [`relocate`](Self::relocate) and [`drop_slots`](Self::drop_slots) are implemented.
    /// If not, a store keeps the slots of its largest number of entries.
    const RELOCATES: bool = false;

    /// Prepares for slots below `slots`. Called before the first use of a slot and again when the
    /// driver grows. It makes nothing smaller.
    fn reserve_slots(&mut self, slots: usize);

    /// Records that the entry in `slot` was read.
    fn on_hit(&mut self, slot: Slot);

    /// Records a hit through a shared reference. Meaningful only where
    /// [`SHARED_HITS`](Self::SHARED_HITS) is true; then it does all that `on_hit` does.
    fn on_hit_shared(&self, slot: Slot) {
        let _ = slot;
    }

    /// Returns the answer that [`admit`](Self::admit) would give now, without learning from the
    /// question.
    fn judge(&self, newcomer: Newcomer, missing: u64) -> bool {
        let _ = (newcomer, missing);
        true
    }

    /// Decides whether to store a key that is not in the cache. Entries that weigh `missing` together have to leave
    /// before it fits, as [`evict`](Self::evict) would name them; `false` refuses it instead, and then nothing leaves.
    /// With `missing` of zero the answer is `true`: there is room, or it was judged before. Not called for a newcomer
    /// that outweighs the whole cache.
    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        self.judge(newcomer, missing)
    }

    /// Names an entry to evict so that `newcomer`, which was admitted, fits. Called only while at least one slot is
    /// taken. The policy has forgotten the victim's slot (though perhaps not its fingerprint) when this returns. There
    /// is no newcomer if an entry grew or the capacity shrank.
    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot;

    /// Records that `newcomer`, which was admitted, is now in `slot`.
    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer);

    /// Records that `newcomer`, an entry of a [`ranking`](Self::ranking), is now in `slot`; it
    /// stands for [`on_insert`](Self::on_insert) when a ranking is brought back, the least worth
    /// keeping first. `uses` is what the ranking said; any number does no harm, and neither does
    /// another policy's ranking. As given, the hits follow each other without the driver taking the
    /// overflow in between.
    fn on_restore(&mut self, slot: Slot, newcomer: Newcomer, uses: u8) {
        self.on_insert(slot, newcomer);
        for _ in 0..uses {
            self.on_hit(slot);
        }
    }

    /// Records that the entry in `slot` has a new value that weighs `weight`. It counts as a use. The driver makes room
    /// *afterwards* where the entry grew, through [`evict`](Self::evict). The entry itself may be the victim; if
    /// entries elsewhere have left for it, it stays all the same, as a newcomer.
    fn on_update(&mut self, slot: Slot, weight: u64) {
        let _ = weight;
        self.on_hit(slot);
    }

    /// Records that the entry in `slot` was deleted or has expired. It leaves no ghost.
    fn on_remove(&mut self, slot: Slot);

    /// Returns an entry that this policy gives up although the bound does not ask for it: segments
    /// with shares of their own can overflow while the cache as a whole does not.
    fn overflow(&mut self) -> Option<Slot> {
        None
    }

    /// Records that the capacity has changed, in the unit of the weights. The driver takes the
    /// overflow, and then evicts what is too much.
    fn set_capacity(&mut self, capacity: u64) {
        let _ = capacity;
    }

    /// Records that the entry in slot `from` has moved to slot `to`, which was free. Nothing else about it
    /// changes. Not called between [`admit`](Self::admit) and what comes of it.
    fn relocate(&mut self, from: Slot, to: Slot) {
        let _ = (from, to);
    }

    /// Drops the slots from number `slots` on, all of which were free: what is kept for them
    /// may go. They have to be reserved again before they are used.
    fn drop_slots(&mut self, slots: usize) {
        let _ = slots;
    }

    /// Returns the entry that [`evict`](Self::evict) would examine next, as far as that is known at
    /// no cost: a store fetches it into the processor's cache before it is needed.
    fn next_victim(&self) -> Option<Slot> {
        None
    }

    /// Prefetches the memory of this slot that [`on_insert`](Self::on_insert) changes for an entry that is placed in it, and that
    /// [`evict`](Self::evict) reads and changes for its entry.
    fn prefetch_victim(&self, slot: Slot) {
        let _ = slot;
    }

    /// Returns the fingerprint of the entry in this slot, where the policy keeps it.
    fn fingerprint(&self, slot: Slot) -> Option<u64> {
        let _ = slot;
        None
    }

    /// Prefetches the memory that [`admit`](Self::admit) reads for a newcomer with this
    /// fingerprint, and [`evict`](Self::evict) where an entry with it leaves.
    fn prefetch(&self, fingerprint: u64) {
        let _ = fingerprint;
    }

    /// Prefetches the memory that a hit in this slot changes.
    fn prefetch_slot(&self, slot: Slot) {
        let _ = slot;
    }

    /// Returns the policy's queues from the next to leave to the last, for tests and for people.
    fn queues(&self) -> Vec<Queue> {
        Vec::new()
    }

    /// Returns every entry once, from the one to keep longest to the one to give up first: what a
    /// snapshot keeps where it cannot keep all. A new policy of this kind that gets them back in
    /// the reverse order, through [`on_restore`](Self::on_restore), decides about as this one
    /// would. An empty ranking has no opinion.
    ///
    /// Takes time and memory in proportion to the entries. Hits may be recorded concurrently
    /// through [`on_hit_shared`](Self::on_hit_shared).
    fn ranking(&self) -> Vec<Ranked> {
        Vec::new()
    }

    /// Returns the bytes that this policy's own bookkeeping occupies, ghosts and sketches included.
    fn metadata_bytes(&self) -> usize {
        0
    }
}

/// One queue of an eviction policy (such as S3-FIFO's small queue) with its entries, as [`Policy::queues`] returns it
/// for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The queue's name in the policy's paper.
    pub name: &'static str,
    /// Slots of the queue's entries (or fingerprints, for ghosts), from the next to be evicted to
    /// the last.
    pub entries: Vec<u64>,
}
