//! LIRS: keeps what is asked for again soonest, by the distance between the last two requests.

use std::mem;

use super::column::SlotColumn;
use super::ghost::{Memory, Nodes};
use super::link::Links;
use super::ranking::best_first;
use super::weight::{Weights, share};
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `lirs`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "lirs",
    summary: "low inter-reference recency; strong on loops and scans",
    paper: "Jiang and Zhang, LIRS: An Efficient Low Inter-reference Recency Set Replacement \
            Policy, SIGMETRICS 2002",
    params: &[
        Param {
            name: "hir",
            default: 1.0,
            min: 0.1,
            max: 99.0,
            whole: false,
            help: "share of the capacity that resident HIR entries have, in per cent; a heavier \
                   entry is stored only while there is room",
        },
        Param {
            name: "stack",
            default: 2.0,
            min: 1.0,
            max: 100.0,
            whole: false,
            help: "weight of the stack S, ghosts included, in capacities",
        },
        Param {
            name: "demote",
            default: 0.0,
            min: 0.0,
            max: 1.0,
            whole: true,
            help: "1: a hit on a resident HIR entry that is not in S costs a LIR entry its place, and \
                   HIR entries leave when they exceed their share although there is room, as in \
                   libCacheSim; 0: as in the paper",
        },
    ],
};

/// Where an entry stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LirsStatus {
    /// Not known.
    #[default]
    Absent,
    /// Low inter-reference recency: resident and in S.
    Lir,
    /// High inter-reference recency, resident: in Q, and perhaps in S.
    Hir,
    /// High inter-reference recency, not resident: in S, and in the order of the ghosts.
    Ghost,
    /// Too heavy for the others: resident, and in neither S nor Q.
    Large,
}

/// Resident HIR entries, in the order in which they leave.
const Q: usize = 0;
/// Ghosts, in the order in which they are forgotten.
const GHOSTS: usize = 1;
/// Entries that are too heavy for the others, in the order in which they leave.
const LARGE: usize = 2;

/// The number of nodes that an insertion drops where too many are free.
const NODE_DROPS: usize = 2;

/// The eviction policy LIRS (low inter-reference recency set).
///
/// With `demote=1` it decides as libCacheSim does. Departures from the paper, which knows pages of
/// one size and does not bound the stack: weights stand for counts; S is held to `stack` times the
/// capacity by forgetting the oldest ghosts; resident HIR entries have all that LIR entries do not
/// use. An entry heavier than the HIR share, or than the LIR share, which
/// libCacheSim refuses, is stored while there is room, in a queue of its own (LRU) that makes room for all
/// others: about them it changes no decision. A cache of few large entries wants a larger `hir`.
#[derive(Debug)]
pub struct Lirs<W: Weights, M: Memory> {
    nodes: M::Nodes,
    /// The LIRS stack S: everything that was asked for since the last request for the LIR entry at
    /// its bottom.
    stack: Links<1>,
    queues: Links<3>,
    status: SlotColumn<LirsStatus>,
    in_stack: SlotColumn<bool>,
    weights: W,
    stack_weight: u64,
    lir_weight: u64,
    hir_weight: u64,
    large_weight: u64,
    capacity: u64,
    lir_capacity: u64,
    hir_capacity: u64,
    hir_share: f64,
    stack_capacities: f64,
    /// Whether a hit in the queue Q demotes LIR entries, as in libCacheSim.
    demotes_on_queue_hit: bool,
    /// The ghost of the newcomer that was admitted last.
    returning: Option<u32>,
    /// Entries that have lost their place and not yet been handed to the driver.
    evicted: Vec<Slot>,
}

impl<W: Weights, M: Memory> Lirs<W, M> {
    /// Creates the LIRS policy for an empty cache of size `capacity`.
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        let mut policy = Self {
            nodes: M::Nodes::default(),
            stack: Links::new(),
            queues: Links::new(),
            status: SlotColumn::default(),
            in_stack: SlotColumn::default(),
            weights: W::default(),
            stack_weight: 0,
            lir_weight: 0,
            hir_weight: 0,
            large_weight: 0,
            capacity: 0,
            lir_capacity: 0,
            hir_capacity: 0,
            hir_share: spec.value("hir"),
            stack_capacities: spec.value("stack"),
            demotes_on_queue_hit: spec.value("demote") != 0.0,
            returning: None,
            evicted: Vec::new(),
        };
        policy.set_capacity(capacity);
        policy
    }

    fn status(&self, node: u32) -> LirsStatus {
        self.status[node]
    }

    fn set_status(&mut self, node: u32, status: LirsStatus) {
        self.status[node] = status;
    }

    fn weight(&self, node: u32) -> u64 {
        self.weights.get(node)
    }

    /// Returns the ghost of a key, if there is one.
    fn ghost(&self, fingerprint: u64) -> Option<u32> {
        let node = self.nodes.find(fingerprint)?;
        (self.status(node) == LirsStatus::Ghost).then_some(node)
    }

    /// Makes room for the nodes that there are now.
    fn reserve_nodes(&mut self) {
        let bound = self.nodes.bound();
        if bound > self.status.slots() {
            self.stack.reserve(bound);
            self.queues.reserve(bound);
            self.weights.reserve(bound);
            self.status.reserve(bound);
            self.in_stack.reserve(bound);
        }
    }

    /// Drops up to `steps` nodes where too many are free.
    fn drop_nodes(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.nodes.is_sparse() {
                break;
            }
            if let Some((from, to)) = self.nodes.drop_last() {
                self.renumber(from, to);
            }
        }
        let bound = self.nodes.bound();
        if bound < self.status.slots() {
            self.stack.drop_slots(bound);
            self.queues.drop_slots(bound);
            self.weights.drop_slots(bound);
            self.status.drop_slots(bound);
            self.in_stack.drop_slots(bound);
        }
    }

    /// Gives the number `to`, which was free, to the holder of node `from`.
    fn renumber(&mut self, from: u32, to: u32) {
        if self.in_stack[from] {
            self.stack.relocate(from, to);
        }
        if !matches!(self.status(from), LirsStatus::Absent | LirsStatus::Lir) {
            self.queues.relocate(from, to);
        }
        if self.returning == Some(from) {
            self.returning = Some(to);
        }
        self.weights.relocate(from, to);
        self.status.relocate(from, to);
        self.in_stack.relocate(from, to);
    }

    fn top_stack(&mut self, node: u32) {
        if mem::replace(&mut self.in_stack[node], true) {
            self.stack.move_to_head(0, node);
        } else {
            self.stack_weight += self.weight(node);
            self.stack.push_head(0, node);
        }
    }

    fn leave_stack(&mut self, node: u32) {
        if mem::replace(&mut self.in_stack[node], false) {
            self.stack_weight -= self.weight(node);
            self.stack.unlink(node);
        }
    }

    fn enter_queue(&mut self, node: u32) {
        self.hir_weight += self.weight(node);
        self.queues.push_head(Q, node);
    }

    fn leave_queue(&mut self, node: u32) {
        self.hir_weight -= self.weight(node);
        self.queues.unlink(node);
    }

    fn is_large(&self, weight: u64) -> bool {
        weight > self.hir_capacity.min(self.lir_capacity)
    }

    /// Places an entry that is neither LIR nor HIR among the large ones.
    fn enter_large(&mut self, node: u32) {
        self.set_status(node, LirsStatus::Large);
        self.large_weight += self.weight(node);
        self.queues.push_head(LARGE, node);
    }

    fn leave_large(&mut self, node: u32) {
        self.large_weight -= self.weight(node);
        self.queues.unlink(node);
    }

    fn forget_ghost(&mut self, node: u32) {
        self.queues.unlink(node);
        self.leave_stack(node);
        self.set_status(node, LirsStatus::Absent);
        self.nodes.forget(node);
    }

    /// Takes from the bottom of S whatever is not LIR: its recency tells nothing any more.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.tail(0) {
            // The top stays, so that what was just asked for keeps its recency.
            if self.status(bottom) == LirsStatus::Lir || self.stack.toward_head(bottom).is_none() {
                break;
            }
            if self.status(bottom) == LirsStatus::Ghost {
                self.forget_ghost(bottom);
            } else {
                self.leave_stack(bottom);
            }
        }
    }

    /// The oldest of the large entries leaves the cache.
    fn evict_large(&mut self) -> bool {
        let Some(node) = self.queues.tail(LARGE) else { return false };
        self.leave_large(node);
        self.set_status(node, LirsStatus::Absent);
        let slot = self.nodes.release(node);
        self.evicted.push(slot);
        true
    }

    /// The oldest resident HIR entry leaves the cache. In S, it stays as a ghost.
    fn evict_hir(&mut self) -> bool {
        let Some(node) = self.queues.tail(Q) else { return false };
        self.leave_queue(node);
        let slot = if self.in_stack[node] {
            self.set_status(node, LirsStatus::Ghost);
            self.queues.push_head(GHOSTS, node);
            self.nodes.detach(node)
        } else {
            self.set_status(node, LirsStatus::Absent);
            self.nodes.release(node)
        };
        self.evicted.push(slot);
        true
    }

    /// The LIR entry at the bottom of S becomes HIR, at the young end of Q, or is too heavy for that.
    fn demote_lir(&mut self) -> bool {
        self.prune();
        let Some(node) = self.stack.tail(0).filter(|node| self.status(*node) == LirsStatus::Lir)
        else {
            return false;
        };
        let weight = self.weight(node);
        self.lir_weight -= weight;
        self.leave_stack(node);
        if weight <= self.hir_capacity {
            self.shrink_queue(weight);
            self.set_status(node, LirsStatus::Hir);
            self.enter_queue(node);
        } else {
            self.enter_large(node);
        }
        self.prune();
        true
    }

    /// Demotes LIR entries until `incoming` more fit among them.
    fn shrink_lir(&mut self, incoming: u64) {
        while self.lir_weight + incoming > self.lir_capacity && self.demote_lir() {}
    }

    /// Evicts resident HIR entries until `incoming` more fit among them, as libCacheSim does. One that would not
    /// fit alone, since the capacity has shrunk, is a large entry from here on.
    fn shrink_queue(&mut self, incoming: u64) {
        if !self.demotes_on_queue_hit {
            return;
        }
        while self.hir_weight + incoming > self.hir_capacity
            && let Some(node) = self.queues.tail(Q)
        {
            if self.weight(node) > self.hir_capacity {
                self.leave_queue(node);
                self.leave_stack(node);
                self.enter_large(node);
            } else {
                self.evict_hir();
            }
        }
    }

    /// Makes room in Q for an entry that does not fit among the LIR entries.
    fn make_place(&mut self, weight: u64) {
        if self.lir_weight + weight > self.lir_capacity {
            self.shrink_queue(weight);
        }
    }

    /// Places an entry that has no status yet and is not large: among the LIR entries while they have room.
    fn place(&mut self, node: u32) {
        let weight = self.weight(node);
        self.top_stack(node);
        if self.lir_weight + weight <= self.lir_capacity {
            self.set_status(node, LirsStatus::Lir);
            self.lir_weight += weight;
            // Without a LIR entry in S the bottom was not one.
            self.prune();
        } else {
            self.set_status(node, LirsStatus::Hir);
            self.enter_queue(node);
        }
    }

    fn bound_stack(&mut self) {
        let bound = share(self.capacity, self.stack_capacities * 100.0);
        while self.stack_weight > bound
            && let Some(oldest) = self.queues.tail(GHOSTS)
        {
            self.forget_ghost(oldest);
        }
    }

    fn hit(&mut self, node: u32) {
        match self.status(node) {
            LirsStatus::Lir => {
                self.top_stack(node);
                self.prune();
            }
            LirsStatus::Hir if self.in_stack[node] => {
                self.leave_queue(node);
                self.top_stack(node);
                self.set_status(node, LirsStatus::Lir);
                let weight = self.weight(node);
                self.lir_weight += weight;
                self.shrink_lir(0);
                self.prune();
            }
            LirsStatus::Hir => {
                self.queues.move_to_head(Q, node);
                if self.demotes_on_queue_hit && self.queues.tail(Q) != Some(node) {
                    let weight = self.weight(node);
                    self.shrink_lir(weight);
                }
                // A heavy LIR entry may have pushed this one out of Q, and so out of the cache.
                if self.status(node) == LirsStatus::Hir {
                    self.top_stack(node);
                }
            }
            LirsStatus::Large if self.is_large(self.weight(node)) => {
                self.queues.move_to_head(LARGE, node);
            }
            LirsStatus::Large => {
                // It has become lighter, or the capacity larger.
                self.leave_large(node);
                self.make_place(self.weight(node));
                self.place(node);
            }
            LirsStatus::Absent | LirsStatus::Ghost => {
                unreachable!("a hit on an entry that is gone")
            }
        }
        self.bound_stack();
    }
}

impl<W: Weights, M: Memory> Policy for Lirs<W, M> {
    const HAS_OVERFLOW: bool = true;
    const RELOCATES: bool = M::REUSES_SLOTS;

    fn reserve_slots(&mut self, slots: usize) {
        self.nodes.reserve(slots);
        self.reserve_nodes();
    }

    fn on_hit(&mut self, slot: Slot) {
        self.hit(self.nodes.node(slot));
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        let node = self.nodes.node(slot);
        let old = self.weights.replace(node, weight);
        if self.in_stack[node] {
            self.stack_weight = self.stack_weight - old + weight;
        }
        let status = self.status(node);
        let sum = match status {
            LirsStatus::Lir => &mut self.lir_weight,
            LirsStatus::Large => &mut self.large_weight,
            _ => &mut self.hir_weight,
        };
        *sum = *sum - old + weight;
        // A hit makes a HIR entry LIR if it is in S.
        let becomes_lir = status == LirsStatus::Lir || self.in_stack[node];
        let limit = if becomes_lir { self.lir_capacity } else { self.hir_capacity };
        if status == LirsStatus::Large || weight <= limit {
            self.hit(node);
            return;
        }
        match status {
            LirsStatus::Lir => self.lir_weight -= weight,
            _ => self.leave_queue(node),
        }
        self.leave_stack(node);
        self.enter_large(node);
        self.prune();
        self.bound_stack();
    }

    fn judge(&self, newcomer: Newcomer, missing: u64) -> bool {
        let returns =
            newcomer.weight <= self.lir_capacity && self.ghost(newcomer.fingerprint).is_some();
        returns || !self.is_large(newcomer.weight) || missing <= self.large_weight
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        let ghost = self.ghost(newcomer.fingerprint);
        self.returning = ghost.filter(|_| newcomer.weight <= self.lir_capacity);
        if let Some(node) = self.returning {
            // Its weight in S is that of the new value from now on.
            self.leave_stack(node);
            self.weights.replace(node, newcomer.weight);
            self.top_stack(node);
            // It is at the top and no longer the oldest of the ghosts, so that it stays one until
            // it is placed.
            self.queues.move_to_head(GHOSTS, node);
            self.shrink_lir(newcomer.weight);
            return true;
        }
        if let Some(node) = ghost {
            self.forget_ghost(node);
        }
        if self.is_large(newcomer.weight) {
            return missing <= self.large_weight;
        }
        self.make_place(newcomer.weight);
        true
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        while self.evicted.is_empty() {
            let is_found = self.evict_large() || self.evict_hir() || self.demote_lir();
            assert!(is_found, "an entry to evict");
        }
        if newcomer.is_none() {
            // With a newcomer, this waits until that is placed.
            self.bound_stack();
        }
        self.evicted.swap_remove(0)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.drop_nodes(NODE_DROPS);
        let node = self.nodes.attach(slot, newcomer.fingerprint);
        self.reserve_nodes();
        if self.returning.take() == Some(node) {
            self.queues.unlink(node);
            self.set_status(node, LirsStatus::Lir);
            self.lir_weight += newcomer.weight;
            self.prune();
            self.bound_stack();
            return;
        }
        if self.status(node) == LirsStatus::Ghost {
            // A key with the same fingerprint became a ghost since `admit`.
            self.queues.unlink(node);
            self.leave_stack(node);
        }
        self.weights.replace(node, newcomer.weight);
        if self.is_large(newcomer.weight) {
            self.enter_large(node);
        } else {
            self.place(node);
        }
        self.bound_stack();
    }

    fn on_remove(&mut self, slot: Slot) {
        let node = self.nodes.node(slot);
        match self.status(node) {
            LirsStatus::Lir => self.lir_weight -= self.weight(node),
            LirsStatus::Large => self.leave_large(node),
            _ => self.leave_queue(node),
        }
        self.leave_stack(node);
        self.set_status(node, LirsStatus::Absent);
        self.nodes.release(node);
        self.prune();
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.evicted.pop()
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.hir_capacity = share(capacity, self.hir_share).max(1);
        self.lir_capacity = capacity.saturating_sub(self.hir_capacity);
        self.shrink_lir(0);
        self.shrink_queue(0);
        self.bound_stack();
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        debug_assert!(self.evicted.is_empty(), "the driver has taken the overflow");
        self.nodes.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.nodes.drop_slots(slots);
        self.drop_nodes(usize::MAX);
    }

    fn ranking(&self) -> Vec<Ranked> {
        let leaving = [LARGE, Q].into_iter().flat_map(|queue| self.queues.iter(queue));
        let hir = leaving.map(|node| Ranked { slot: self.nodes.slot(node), uses: 0 });
        let lir = self.stack.iter(0).filter(|node| self.status(*node) == LirsStatus::Lir);
        best_first(hir.chain(lir.map(|node| Ranked { slot: self.nodes.slot(node), uses: 1 })))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "s", entries: self.stack.dump(0) },
            Queue { name: "q", entries: self.queues.dump(Q) },
            Queue { name: "ghosts", entries: self.queues.dump(GHOSTS) },
            Queue { name: "large", entries: self.queues.dump(LARGE) },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.nodes.memory_bytes()
            + self.stack.memory_bytes()
            + self.queues.memory_bytes()
            + self.weights.memory_bytes()
            + self.status.memory_bytes()
            + self.in_stack.memory_bytes()
    }
}
