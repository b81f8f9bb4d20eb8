//! Ctrl-C: the first asks the command to end and keep its finished results, the second ends it.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::{process, thread};

use parking_lot::Mutex;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether the handler is set.
static WATCHED: Mutex<bool> = Mutex::new(false);

/// Wakes the thread that waits in [`unless_asked`].
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Exit status of a program that Ctrl-C ended, by the shells' convention.
const INTERRUPTED: i32 = 130;

/// Makes the first Ctrl-C only set [`asked`] and end [`unless_asked`]. Further calls do nothing.
pub(crate) fn watch() -> anyhow::Result<()> {
    let mut is_watched = WATCHED.lock();
    if *is_watched {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            process::exit(INTERRUPTED);
        }
        if let Some(wake) = WAKE.lock().as_ref() {
            wake();
        }
    })?;
    *is_watched = true;
    Ok(())
}

/// Whether the user has pressed Ctrl-C.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Does `work` on a separate thread and waits for it or for Ctrl-C, whichever comes first; returns
/// `None` after Ctrl-C.
///
/// A read from a terminal or from an idle pipe never returns, and so never polls [`asked`]. The
/// thread continues until the program ends.
pub(crate) fn unless_asked<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, outcome) = mpsc::channel();
    let interrupted = done.clone();
    // If both happen at once, the receiver is gone after the first.
    *WAKE.lock() = Some(Box::new(move || drop(interrupted.send(None))));
    if asked() {
        return None;
    }
    thread::spawn(move || {
        // Without this, a panic on the thread would leave the caller waiting.
        let outcome = panic::catch_unwind(AssertUnwindSafe(work));
        drop(done.send(Some(outcome)));
    });
    let outcome = outcome.recv().expect("the handler of Ctrl-C keeps a sender");
    *WAKE.lock() = None;
    outcome.map(|outcome| outcome.unwrap_or_else(|panic| panic::resume_unwind(panic)))
}
