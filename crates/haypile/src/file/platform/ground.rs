//! The ground of the protocol: words that processes share, and what the kernel knows of owners.
//!
//! The protocol is written over this trait, so that a model checker can run it on memory of its
//! own.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::file::format::layout::LINE_BYTES;
use crate::file::platform::halted::ProcessId;
use crate::mutant;

/// The memory order of an atomic store that must come after all earlier stores of its thread. Only
/// a process that inspects what a dead process left depends on it: a stopped processor has stored
/// everything before, in order, but a compiler may not reorder it. A model checker treats it as
/// relaxed.
pub(in crate::file) const IN_ORDER: Ordering =
    if cfg!(shuttle) { Ordering::Relaxed } else { Ordering::Release };

/// Returns the memory orders of each compare-and-swap on a word of a cache file: the one for
/// success, and the one for failure.
#[inline]
pub(in crate::file) fn exchange_orders() -> (Ordering, Ordering) {
    if mutant::is_on("exchange-does-not-release") {
        (Ordering::Acquire, Ordering::Acquire)
    } else if mutant::is_on("exchange-does-not-acquire") {
        (Ordering::Release, Ordering::Relaxed)
    } else {
        (Ordering::AcqRel, Ordering::Acquire)
    }
}

/// Returns whether the lower bytes of a 64-bit word equal `rest`, which has fewer than 8 bytes.
#[inline]
pub(in crate::file) fn is_equal_rest(word: u64, rest: &[u8]) -> bool {
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    (word ^ u64::from_le_bytes(last)) << (64 - 8 * rest.len()) == 0
}

/// A 64-byte line of the cache file: eight shared words at byte offsets, which are taken modulo 64.
/// One check ensures that the whole line is within the file.
pub(in crate::file) trait Line: Copy + fmt::Debug {
    fn load(&self, at: u64, order: Ordering) -> u64;

    fn store(&self, at: u64, value: u64, order: Ordering);
}

/// A 64-byte line of a cache file that reads and writes its words one by one through the file's
/// memory, which checks each offset.
#[derive(Debug)]
pub(in crate::file) struct Checked<'a, G> {
    pub(in crate::file) ground: &'a G,
    pub(in crate::file) at: u64,
}

impl<G> Clone for Checked<'_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for Checked<'_, G> {}

impl<G: Ground> Line for Checked<'_, G> {
    fn load(&self, at: u64, order: Ordering) -> u64 {
        self.ground.load(self.at + at % LINE_BYTES, order)
    }

    fn store(&self, at: u64, value: u64, order: Ordering) {
        self.ground.store(self.at + at % LINE_BYTES, value, order);
    }
}

/// The memory of a cache file as shared words, at byte offsets that are multiples of 8, and the
/// kernel's knowledge about the processes that use the file.
///
/// An offset beyond the end is a defect of the caller's and panics: what a file says is checked
/// before it becomes an offset.
pub(in crate::file) trait Ground: fmt::Debug + Send + Sync {
    type Pin<'a>: fmt::Debug
    where
        Self: 'a;

    type Line<'a>: Line
    where
        Self: 'a;

    /// Returns the line at a multiple of its length.
    fn line(&self, at: u64) -> Self::Line<'_>;

    fn load(&self, at: u64, order: Ordering) -> u64;

    fn store(&self, at: u64, value: u64, order: Ordering);

    /// Stores `new` if the word is `old`; otherwise returns the word.
    fn exchange(&self, at: u64, old: u64, new: u64) -> Result<(), u64>;

    /// Issues a fence like [`std::sync::atomic::fence`]; a relaxed one does nothing. Every fence of the protocol is one
    /// of these, so that a model of memory knows of it.
    fn fence(&self, order: Ordering);

    /// Adds to a word, wrapping, and returns the previous value. Orders nothing.
    fn add(&self, at: u64, delta: u64) -> u64;

    /// Raises a word to at least `value`, [in order](IN_ORDER).
    fn raise(&self, at: u64, value: u64);

    /// Appends `bytes` to a vector that has room for them, `at` being a multiple of 8. Others may
    /// write concurrently: then the copy is any mixture of words.
    fn copy_out_to(&self, at: u64, bytes: usize, into: &mut Vec<u8>);

    /// Copies bytes into the file, `at` being a multiple of 8. What follows up to the next multiple
    /// is undefined.
    fn copy_in(&self, at: u64, from: &[u8]);

    /// Compares bytes with those at a multiple of 8. Others may write concurrently: then the
    /// answer may be either.
    fn is_equal(&self, at: u64, bytes: &[u8]) -> bool {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut at = at;
        for word in words {
            if self.load(at, Ordering::Relaxed) != u64::from_le_bytes(*word) {
                return false;
            }
            at += 8;
        }
        rest.is_empty() || is_equal_rest(self.load(at, Ordering::Relaxed), rest)
    }

    /// Prefetches the line at an offset.
    fn prefetch(&self, at: u64);

    /// Prefetches the lines of `bytes` bytes, as far as there are any.
    fn prefetch_bytes(&self, at: u64, bytes: u64);

    /// Prefetches lines like [`prefetch_bytes`](Self::prefetch_bytes), for bytes that are written
    /// next.
    fn prefetch_to_write(&self, at: u64, bytes: u64);

    /// Returns whether the process that took this owner slot is alive.
    fn is_taken(&self, slot: u32) -> bool;

    /// Returns whether a process was stopped or frozen from outside; `false` where that cannot be seen.
    fn is_halted(&self, process: ProcessId) -> bool;

    /// Returns whether some process reads values of this segment in place.
    fn is_pinned(&self, segment: u32) -> bool;

    /// Announces to all processes that the owner of this slot reads values of a segment in place, until the result is
    /// dropped; returns `None` where that is not possible.
    fn pin(&self, segment: u32, slot: u32) -> Option<Self::Pin<'_>>;

    /// Returns a time that does not go back.
    fn now(&self) -> Duration;

    /// Sleeps while the lower half of the word is this, at most for this long.
    fn sleep_on(&self, at: u64, value: u64, at_most: Duration);

    /// Wakes all threads that sleep on the word.
    fn wake(&self, at: u64);

    /// Yields the processor to others, for longer the more often it was called.
    fn pause(&self, times: u32);
}
