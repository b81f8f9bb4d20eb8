//! Doubly linked lists over slots, several of them in one array.
//!
//! Each list has a sentinel at the front of the array and is a ring through it, so that linking
//! and unlinking take no branch. A slot is in one list at most.

use super::Slot;
use crate::prefetch::prefetch_to_write;

#[derive(Clone, Copy, Debug)]
struct Link {
    toward_tail: u32,
    toward_head: u32,
}

/// A set of `LISTS` doubly linked lists of slots (numbers of entries), each in one list at most. New entries go to the
/// head; the tail is evicted first.
#[derive(Debug)]
pub struct Links<const LISTS: usize> {
    nodes: Vec<Link>,
}

impl<const LISTS: usize> Default for Links<LISTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const LISTS: usize> Links<LISTS> {
    /// Creates linked lists without entries.
    #[inline]
    pub fn new() -> Self {
        let sentinels = (0..index(LISTS)).map(|at| Link { toward_tail: at, toward_head: at });
        Self { nodes: sentinels.collect() }
    }

    /// Allocates memory for the links of the slots below number `slots`.
    #[inline]
    pub fn reserve(&mut self, slots: usize) {
        let nodes = slots + LISTS;
        if nodes > self.nodes.len() {
            // `resize` alone would double the capacity; the driver reserves in steps of its own.
            self.nodes.reserve_exact(nodes - self.nodes.len());
            self.nodes.resize(nodes, Link { toward_tail: 0, toward_head: 0 });
        }
    }

    /// Prefetches the links of a slot into the processor's cache, in order to change them.
    #[inline]
    pub fn prefetch_to_write(&self, slot: Slot) {
        if let Some(node) = self.nodes.get(slot as usize + LISTS) {
            prefetch_to_write(node);
        }
    }

    /// Inserts a slot, which is in no list yet, at the head of `list`.
    #[inline]
    pub fn push_head(&mut self, list: usize, slot: Slot) {
        let node = slot + index(LISTS);
        let head = self.nodes[list].toward_tail;
        self.nodes[node as usize] = Link { toward_tail: head, toward_head: index(list) };
        self.nodes[head as usize].toward_head = node;
        self.nodes[list].toward_tail = node;
    }

    /// Removes a slot from the list that it is in.
    #[inline]
    pub fn unlink(&mut self, slot: Slot) {
        let link = self.nodes[slot as usize + LISTS];
        self.nodes[link.toward_head as usize].toward_tail = link.toward_tail;
        self.nodes[link.toward_tail as usize].toward_head = link.toward_head;
    }

    /// Moves a slot, which is in some list, to the head of `list`.
    #[inline]
    pub fn move_to_head(&mut self, list: usize, slot: Slot) {
        self.unlink(slot);
        self.push_head(list, slot);
    }

    /// Moves all slots of list `from` to the head of list `to`, in their order.
    pub fn move_all(&mut self, from: usize, to: usize) {
        let Link { toward_tail: first, toward_head: last } = self.nodes[from];
        let (from, to) = (index(from), index(to));
        if first == from {
            return;
        }
        self.nodes[from as usize] = Link { toward_tail: from, toward_head: from };
        let head = self.nodes[to as usize].toward_tail;
        self.nodes[last as usize].toward_tail = head;
        self.nodes[head as usize].toward_head = last;
        self.nodes[first as usize].toward_head = to;
        self.nodes[to as usize].toward_tail = first;
    }

    /// Replaces slot `from`, in its list, by slot `to`, which is in no list.
    #[inline]
    pub fn relocate(&mut self, from: Slot, to: Slot) {
        let link = self.nodes[from as usize + LISTS];
        let node = to + index(LISTS);
        self.nodes[node as usize] = link;
        self.nodes[link.toward_head as usize].toward_tail = node;
        self.nodes[link.toward_tail as usize].toward_head = node;
    }

    /// Drops the links of the slots from number `slots` on, none of which is in a list.
    #[inline]
    pub fn drop_slots(&mut self, slots: usize) {
        self.nodes.truncate(slots + LISTS);
        self.nodes.shrink_to_fit();
    }

    /// Returns the slot at the tail of `list`, which is the next to be evicted; `None` if the list is empty.
    #[inline]
    pub fn tail(&self, list: usize) -> Option<Slot> {
        Self::slot(self.nodes[list].toward_head)
    }

    /// Returns the next slot towards the head in the list of `slot`; `None` at the head.
    #[inline]
    pub fn toward_head(&self, slot: Slot) -> Option<Slot> {
        Self::slot(self.nodes[slot as usize + LISTS].toward_head)
    }

    /// Removes the slot at the tail of `list` and returns it; `None` if the list is empty.
    #[inline]
    pub fn pop_tail(&mut self, list: usize) -> Option<Slot> {
        let slot = self.tail(list)?;
        self.unlink(slot);
        Some(slot)
    }

    /// Returns the slots of `list` from the tail to the head.
    #[inline]
    pub fn iter(&self, list: usize) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.tail(list), |slot| self.toward_head(*slot))
    }

    /// Returns the slots of `list` from the tail to the head, in the form of [`Queue`](super::Queue), for tests.
    #[inline]
    pub fn dump(&self, list: usize) -> Vec<u64> {
        self.iter(list).map(u64::from).collect()
    }

    /// Returns the number of bytes of memory that the links take.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Link>()
    }

    #[inline]
    fn slot(node: u32) -> Option<Slot> {
        node.checked_sub(index(LISTS))
    }
}

#[inline]
fn index(list: usize) -> u32 {
    u32::try_from(list).expect("a few hundred lists at most")
}
