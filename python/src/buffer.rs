//! The buffer that a thread reads values into, before Python gets its copy.

use std::cell::Cell;

/// Largest buffer that a thread keeps for its next read.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

pub(crate) fn take() -> Vec<u8> {
    // A thread that is ending has none any more.
    BUFFER.try_with(Cell::take).unwrap_or_default()
}

pub(crate) fn give_back(buffer: Vec<u8>) {
    if buffer.capacity() <= KEPT_BYTES {
        let _ = BUFFER.try_with(|kept| kept.set(buffer));
    }
}
