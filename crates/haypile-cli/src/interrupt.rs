//! Ctrl-C: the first asks for an end that keeps what is finished, the second ends at once.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::{process, thread};

use parking_lot::Mutex;

static ASKED: AtomicBool = AtomicBool::new(false);

/// Wakes who waits in [`unless_asked`].
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// The exit status of a program that ended because of Ctrl-C, by the shells' convention.
const INTERRUPTED: i32 = 130;

/// From now on the first Ctrl-C only sets [`asked`] and ends [`unless_asked`].
pub(crate) fn watch() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            process::exit(INTERRUPTED);
        }
        if let Some(wake) = WAKE.lock().as_ref() {
            wake();
        }
    })?;
    Ok(())
}

/// Whether the user asked for an end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}

/// Does `work` on a thread of its own and waits for it, or for Ctrl-C, whichever comes first;
/// `None` after Ctrl-C.
///
/// A read from a terminal or from a pipe that nobody fills never returns, and so never looks at
/// [`asked`]. The thread is left behind; it ends with the program.
pub(crate) fn unless_asked<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, outcome) = mpsc::channel();
    let interrupted = done.clone();
    // Nobody listens any more where both happen at once; the first one counts.
    *WAKE.lock() = Some(Box::new(move || drop(interrupted.send(None))));
    if asked() {
        return None;
    }
    thread::spawn(move || {
        // A panic that stayed on the thread would leave the caller waiting.
        let outcome = panic::catch_unwind(AssertUnwindSafe(work));
        drop(done.send(Some(outcome)));
    });
    let outcome = outcome.recv().expect("the handler of Ctrl-C holds a sender");
    *WAKE.lock() = None;
    outcome.map(|outcome| outcome.unwrap_or_else(|panic| panic::resume_unwind(panic)))
}
