//! Progress of work: a bar on a terminal after a second, elsewhere a line every half minute.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use parking_lot::Mutex;

use super::number::grouped;

const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two lines of progress, which stand for the bar where standard error is not a terminal.
const PERIOD: Duration = Duration::from_secs(30);

/// The progress of one piece of a command's work (such as reading a trace), shown on the terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Time at which the progress appears; `None` once it has appeared.
    due: Mutex<Option<Instant>>,
    /// Writer of lines, where standard error is not a terminal.
    lines: Mutex<Option<Lines>>,
}

impl Progress {
    /// Creates a progress bar for work with a known number of steps; `what` names the work.
    pub(crate) fn towards(total: u64, what: String) -> Self {
        let style = "{msg} [{bar:32}] {percent} %, {eta} to go";
        Self::new(ProgressBar::with_draw_target(Some(total), hidden()), style, what, "")
    }

    /// Creates a progress counter for work whose total is not known; `things` names what is
    /// counted.
    pub(crate) fn counting(what: String, things: &str) -> Self {
        let style = format!("{{msg}}: {{human_pos}} {things}, {{rate}} per second");
        Self::new(ProgressBar::with_draw_target(None, hidden()), &style, what, things)
    }

    /// Creates a progress that is never shown, for work whose output is visible itself.
    pub(crate) fn silent() -> Self {
        Self { bar: ProgressBar::hidden(), due: Mutex::new(None), lines: Mutex::new(None) }
    }

    fn new(bar: ProgressBar, style: &str, what: String, things: &str) -> Self {
        let style =
            ProgressStyle::with_template(style).expect("the templates of this module parse");
        bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
        bar.set_message(what);
        let lines = (!stderr().is_terminal()).then(|| {
            let (bar, things) = (bar.clone(), things.to_owned());
            // A reader that has gone away does not end the work.
            let write = move || drop(writeln!(stderr(), "haypile: {}", line(&bar, &things)));
            Lines::begin(PERIOD, write)
        });
        Self { bar, due: Mutex::new(Some(Instant::now() + PATIENCE)), lines: Mutex::new(lines) }
    }

    /// Reports that this number of further steps of the work is done.
    pub(crate) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        let mut due = self.due.lock();
        if due.is_some_and(|due| Instant::now() >= due) {
            *due = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Removes the progress bar, or ends its line, at the end of the work.
    pub(crate) fn finish(&self) {
        drop(self.lines.lock().take());
        self.bar.finish_and_clear();
    }
}

/// Thread that calls a function once in each period, until this is dropped.
struct Lines {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    fn begin(period: Duration, write: impl Fn() + Send + 'static) -> Self {
        let (stop, stopped) = channel::<()>();
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(move || {
            while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                write();
            }
        });
        // Without a thread there is no progress, but the work is done.
        Self { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        drop(self.stop.take());
        // No line comes after the results.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the progress as text: how much of the total is done and how long the rest takes, or how many
/// `things` are done without a total.
fn line(bar: &ProgressBar, things: &str) -> String {
    let (what, done, elapsed) = (bar.message(), bar.position(), bar.elapsed());
    let Some(total) = bar.length() else {
        return format!("{what}: {} {things}", grouped(done));
    };
    let (count, all) = (grouped(done), grouped(total));
    let seconds = elapsed.as_secs_f64() * ratio(total.saturating_sub(done), done);
    match Duration::try_from_secs_f64(seconds) {
        Ok(left) => {
            let left = humantime::format_duration(Duration::from_secs(left.as_secs() + 1));
            format!("{what}: {count} of {all}, about {left} to go")
        }
        // Nothing is done yet.
        Err(_) => format!("{what}: {count} of {all}"),
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Writes the steps per second, without the fractions that indicatif shows.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative, and for people"
    )]
    let rate = state.per_sec() as u64;
    // The caller takes no error.
    let _ = out.write_str(&grouped(rate));
}

fn hidden() -> ProgressDrawTarget {
    ProgressDrawTarget::hidden()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_again_and_again_and_none_after_the_end() {
        let (write, written) = channel();
        let lines = Lines::begin(Duration::from_millis(1), move || write.send(()).unwrap());
        for _ in 0..3 {
            written.recv().unwrap();
        }
        drop(lines);
        while written.try_recv().is_ok() {}
        assert!(written.recv().is_err(), "the thread has ended and dropped its sender");
    }

    #[test]
    fn a_line_has_what_is_done_and_what_is_left() {
        let bar =
            ProgressBar::with_draw_target(Some(4000), hidden()).with_message("measuring micro");
        assert_eq!(line(&bar, ""), "measuring micro: 0 of 4,000");
        bar.inc(1000);
        let bar = bar.with_elapsed(Duration::from_secs(10));
        let text = line(&bar, "");
        let left = text.strip_prefix("measuring micro: 1,000 of 4,000, about ").unwrap();
        assert!(["30s to go", "31s to go"].contains(&left), "{text}");
        let bar = ProgressBar::with_draw_target(None, hidden()).with_message("reading trace.csv");
        bar.inc(1234);
        assert_eq!(line(&bar, "requests"), "reading trace.csv: 1,234 requests");
    }
}
