//! Progress on standard error, and Ctrl-C.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The time between two lines of progress, on a terminal and elsewhere.
const PERIODS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the user has pressed Ctrl-C.
pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// A display of a test's progress on the terminal.
#[derive(Debug)]
pub(crate) struct Watch {
    is_terminal: bool,
    next: Instant,
    period: Duration,
}

impl Watch {
    /// Creates a display of progress, and makes Ctrl-C end the test normally.
    ///
    /// # Errors
    ///
    /// Those of installing a signal handler.
    pub(crate) fn new() -> anyhow::Result<Self> {
        flag::register(SIGINT, Arc::clone(&INTERRUPTED))?;
        let is_terminal = std::io::stderr().is_terminal();
        let period = PERIODS[usize::from(!is_terminal)];
        Ok(Self { is_terminal, next: Instant::now() + period, period })
    }

    /// Prints a line of progress from time to time.
    pub(crate) fn progress(&mut self, line: impl FnOnce() -> String) {
        // Reading the clock costs less than any operation under test.
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.period;
        if self.is_terminal {
            // Over the line before.
            eprint!("\r\x1b[2K{}", line());
            let _ = std::io::stderr().flush();
        } else {
            eprintln!("{}", line());
        }
    }

    /// Ends the line of progress on a terminal.
    pub(crate) fn finish(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[2K");
        }
    }
}
