//! Futures on the heap.

use std::pin::Pin;

/// Puts a future on the heap, where it begins. `Box::pin` makes it elsewhere first, and copies all of it: one that sends a
/// request and receives its response has 15 KiB, of which only its arguments are set when it begins.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as a call of its own it would get a copy")]
pub(crate) fn on_heap<F: Future>(future: F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), future))
}
