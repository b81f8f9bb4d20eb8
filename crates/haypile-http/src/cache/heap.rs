//! Futures on the heap.

use std::pin::Pin;

/// Builds a future directly on the heap, where `Box::pin` would build it on the stack and copy it. A future that sends
/// a request and receives the response is 15 KiB long, though only its arguments are set before it is polled.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as a call of its own it would get a copy")]
pub(crate) fn on_heap<F: Future>(future: F) -> Pin<Box<F>> {
    Box::into_pin(Box::write(Box::new_uninit(), future))
}
