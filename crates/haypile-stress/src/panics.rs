//! Panics as results: the place of the last panic, without a line of output for each.

use std::cell::RefCell;
use std::panic;

thread_local! {
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics of this program print nothing and record their source location, because runs catch
/// and report them.
pub(crate) fn keep_silent() {
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
        PLACE.set(place);
    }));
}

/// Returns the source location of this thread's last panic, as text that begins with " at ".
pub(crate) fn last_place() -> Option<String> {
    PLACE.take()
}
