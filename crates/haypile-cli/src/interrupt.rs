//! Ctrl-C: the first asks for an end that keeps what is finished, the second ends at once.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The exit status of a program that ended because of Ctrl-C, by the shells' convention.
const INTERRUPTED: i32 = 130;

/// From now on the first Ctrl-C only sets [`asked`].
pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}

/// Whether the user asked for an end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
