//! Lists of free slot and node numbers, which are reused.

/// A list of the free numbers of a policy's slots (entry numbers) or nodes, for reuse; numbers that are no longer in
/// range are skipped.
#[derive(Debug, Default)]
pub(crate) struct FreeList {
    numbers: Vec<u32>,
}

impl FreeList {
    /// Adds a number to the list of free ones. If no memory can be allocated for it, [`pop`](Self::pop) never returns
    /// it, and the caller has to search for it.
    #[inline]
    pub(crate) fn push(&mut self, number: u32) {
        if self.numbers.len() < self.numbers.capacity() || self.grow() {
            self.numbers.push(number);
        }
    }

    #[cold]
    fn grow(&mut self) -> bool {
        self.numbers.try_reserve(1).is_ok()
    }

    /// Removes and returns a free number below `slots` from the list; `None` if there is none.
    #[inline]
    pub(crate) fn pop(&mut self, slots: usize) -> Option<u32> {
        std::iter::from_fn(|| self.numbers.pop()).find(|number| (*number as usize) < slots)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Drops the free numbers from `slots` on from the list, and returns memory to the allocator.
    pub(crate) fn shrink(&mut self, slots: usize) {
        self.numbers.retain(|number| (*number as usize) < slots);
        self.numbers.shrink_to_fit();
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<u32>()
    }
}
