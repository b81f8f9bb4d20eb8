//! Panics as results: where the last one was, without a line for each.

use std::cell::RefCell;
use std::panic;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Has panics note their place and print nothing. A run catches them, and repeats them often.
pub(crate) fn keep_silent() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        PLACE.set(place);
    }));
}

/// Returns the place of this thread's last panic, with a word before it.
pub(crate) fn last_place() -> Option<String> {
    PLACE.take()
}
