//! Signals that ask the program to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP. The first asks the command to end and keep
//! its finished results, the second ends it at once.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use parking_lot::Mutex;
use rustix::process::Signal;
use signal_hook::iterator::Signals;

/// Number of the first signal; 0 before it.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Whether the handler is set.
static WATCHED: Mutex<bool> = Mutex::new(false);

/// Wakes the thread that waits in [`unless_asked`].
static WAKE: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);

/// Time after the first signal in which another is taken for the same: `timeout` sends its signal to the program and
/// to the program's group, and `lab all` passes on what the terminal has sent to both.
const SAME: Duration = Duration::from_millis(500);

/// Exit status of a program that a signal ended, less the number of the signal, by the shells' convention.
const ENDED_BY_SIGNAL: i32 = 128;

/// Handles signals that ask the program to end: the first one only makes [`asked`] return true, and
/// [`unless_asked`] return. Further calls do nothing.
///
/// A SIGHUP that this program's parent ignores, as `nohup` does, stays ignored.
pub(crate) fn watch() -> anyhow::Result<()> {
    let mut is_watched = WATCHED.lock();
    if *is_watched {
        return Ok(());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let hang_up = (!is_ignored(Signal::HUP, &status)).then_some(Signal::HUP);
    let signals = [Signal::INT, Signal::TERM].into_iter().chain(hang_up);
    let mut signals = Signals::new(signals.map(Signal::as_raw))?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let mut first: Option<Instant> = None;
        for signal in signals.forever() {
            match first {
                Some(first) if first.elapsed() < SAME => continue,
                Some(_) => process::exit(ENDED_BY_SIGNAL + signal),
                None => first = Some(Instant::now()),
            }
            SIGNAL.store(signal, Ordering::SeqCst);
            if let Some(wake) = WAKE.lock().as_ref() {
                wake();
            }
        }
    })?;
    *is_watched = true;
    Ok(())
}

/// Returns whether a signal has asked the program to end.
pub(crate) fn asked() -> bool {
    SIGNAL.load(Ordering::SeqCst) != 0
}

/// Returns the exit status of a command that a signal has ended; `None` without one.
pub(crate) fn status() -> Option<u8> {
    match SIGNAL.load(Ordering::SeqCst) {
        0 => None,
        signal => Some(status_of(signal)),
    }
}

/// Returns the exit status of a program that the signal with this number has ended.
pub(crate) fn status_of(signal: i32) -> u8 {
    u8::try_from(ENDED_BY_SIGNAL + signal).expect("signals have numbers below 65")
}

/// Does `work` on a separate thread and waits for it or for a signal, whichever comes first; returns
/// `None` after a signal.
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
    let outcome = outcome.recv().expect("the thread of signals keeps a sender");
    *WAKE.lock() = None;
    outcome.map(|outcome| outcome.unwrap_or_else(|panic| panic::resume_unwind(panic)))
}

/// Returns whether a process ignores a signal, by the text of its `/proc/PID/status`; an empty text, of systems without
/// that file, says no.
fn is_ignored(signal: Signal, status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_bits_of_the_status() {
        let status = "Name:\thaypile\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(Signal::HUP, status));
        assert!(!is_ignored(Signal::INT, status));
        assert!(!is_ignored(Signal::HUP, ""));
    }
}
