//! An array with a value per slot.

use std::mem;
use std::ops::{Index, IndexMut};

use super::Slot;
use crate::prefetch::{prefetch, prefetch_to_write};

/// An array that holds one value of a policy (such as a weight) for each slot, the number of a cache entry. It
/// allocates exactly what its slots need: the driver reserves in suitable steps, and returns slots.
#[derive(Debug)]
pub(crate) struct SlotColumn<T>(Vec<T>);

impl<T> Default for SlotColumn<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> SlotColumn<T> {
    /// Allocates memory for the values of the slots below number `slots`.
    pub(crate) fn reserve(&mut self, slots: usize) {
        if slots > self.0.len() {
            // `resize_with` alone would double the capacity.
            self.0.reserve_exact(slots - self.0.len());
            self.0.resize_with(slots, T::default);
        }
    }

    /// Moves the value of the entry in slot `from` to slot `to`.
    pub(crate) fn relocate(&mut self, from: Slot, to: Slot) {
        self[to] = mem::take(&mut self[from]);
    }

    /// Drops the values of the slots from number `slots` on.
    pub(crate) fn drop_slots(&mut self, slots: usize) {
        self.0.truncate(slots);
        self.0.shrink_to_fit();
    }

    /// Prefetches the value of the entry in a slot into the processor's cache.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Slot) {
        if let Some(value) = self.0.get(slot as usize) {
            prefetch(value);
        }
    }

    /// Prefetches the value of the entry in a slot into the processor's cache, in order to change it.
    #[inline]
    pub(crate) fn prefetch_to_write(&self, slot: Slot) {
        if let Some(value) = self.0.get(slot as usize) {
            prefetch_to_write(value);
        }
    }

    /// Returns the number of slots for which memory is allocated.
    pub(crate) fn slots(&self) -> usize {
        self.0.len()
    }

    /// Returns the number of bytes of memory that the array takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<T>()
    }
}

impl<T> Index<Slot> for SlotColumn<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: Slot) -> &T {
        &self.0[slot as usize]
    }
}

impl<T> IndexMut<Slot> for SlotColumn<T> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        &mut self.0[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_memory_of_its_slots() {
        let mut column = SlotColumn::<u64>::default();
        column.reserve(100);
        column.reserve(113);
        column.reserve(7);
        assert_eq!((column.slots(), column.memory_bytes()), (113, 113 * 8));
        column[112] = 5;
        column.relocate(112, 3);
        column.drop_slots(10);
        assert_eq!((column[3], column.memory_bytes()), (5, 80));
        column.reserve(11);
        assert_eq!((column[3], column[10]), (5, 0));
    }
}
