//! Futures on the heap.

use std::pin::Pin;

/// Builds a future directly on the heap, where `Box::pin` would build it on the stack and copy it. A future that sends
/// a request and receives the response is 15 KiB long, though only its arguments are set before it is polled.
///
/// The memory is allocated first: nothing can fail between the making of the future and its move there. Otherwise the
/// future might have to be dropped from the stack, and so would have to be there as a whole.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as a call of its own it would get a copy")]
pub(crate) fn on_heap<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}
