//! Doubly linked lists over slots, several of them in one array.
//!
//! Each list has a sentinel at the front of the array and is a ring through it, so that linking
//! and unlinking take no branch. A slot is in one list at most.

use super::Slot;

#[derive(Clone, Copy, Debug)]
struct Link {
    toward_tail: u32,
    toward_head: u32,
}

/// `LISTS` lists over one set of slots. New entries go to the head; the tail leaves first.
#[derive(Debug)]
pub(super) struct Links<const LISTS: usize> {
    nodes: Vec<Link>,
}

impl<const LISTS: usize> Links<LISTS> {
    /// Empty lists.
    pub(super) fn new() -> Self {
        let sentinels = (0..index(LISTS)).map(|at| Link { toward_tail: at, toward_head: at });
        Self { nodes: sentinels.collect() }
    }

    /// Makes room for slots below `slots`.
    pub(super) fn reserve(&mut self, slots: usize) {
        if slots + LISTS > self.nodes.len() {
            self.nodes.resize(slots + LISTS, Link { toward_tail: 0, toward_head: 0 });
        }
    }

    /// Places `slot`, which is in no list, at the head of `list`.
    #[inline]
    pub(super) fn push_head(&mut self, list: usize, slot: Slot) {
        let node = slot + index(LISTS);
        let head = self.nodes[list].toward_tail;
        self.nodes[node as usize] = Link { toward_tail: head, toward_head: index(list) };
        self.nodes[head as usize].toward_head = node;
        self.nodes[list].toward_tail = node;
    }

    /// Takes `slot` out of the list that it is in.
    #[inline]
    pub(super) fn unlink(&mut self, slot: Slot) {
        let link = self.nodes[slot as usize + LISTS];
        self.nodes[link.toward_head as usize].toward_tail = link.toward_tail;
        self.nodes[link.toward_tail as usize].toward_head = link.toward_head;
    }

    /// Moves `slot`, which is in some list, to the head of `list`.
    #[inline]
    pub(super) fn move_to_head(&mut self, list: usize, slot: Slot) {
        self.unlink(slot);
        self.push_head(list, slot);
    }

    /// The next to leave `list`.
    #[inline]
    pub(super) fn tail(&self, list: usize) -> Option<Slot> {
        Self::slot(self.nodes[list].toward_head)
    }

    /// The neighbour of `slot` on the side of the head; `None` at the head.
    #[inline]
    pub(super) fn toward_head(&self, slot: Slot) -> Option<Slot> {
        Self::slot(self.nodes[slot as usize + LISTS].toward_head)
    }

    /// Takes the tail out of `list`.
    #[inline]
    pub(super) fn pop_tail(&mut self, list: usize) -> Option<Slot> {
        let slot = self.tail(list)?;
        self.unlink(slot);
        Some(slot)
    }

    /// The slots of `list` from the tail to the head.
    pub(super) fn iter(&self, list: usize) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.tail(list), |slot| self.toward_head(*slot))
    }

    /// The slots of `list` as [`Queue`](super::Queue) shows them.
    pub(super) fn dump(&self, list: usize) -> Vec<u64> {
        self.iter(list).map(u64::from).collect()
    }

    /// Bytes of memory used.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Link>()
    }

    #[inline]
    fn slot(node: u32) -> Option<Slot> {
        node.checked_sub(index(LISTS))
    }
}

#[inline]
fn index(list: usize) -> u32 {
    u32::try_from(list).expect("a handful of lists")
}
