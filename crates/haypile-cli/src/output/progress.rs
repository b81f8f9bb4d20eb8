//! Progress bar on a terminal, for work that takes longer than a second.

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use parking_lot::Mutex;

use super::number::grouped;

const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of one piece of work. Shows nothing if standard error is not a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Time at which it appears; `None` once it has appeared.
    due: Mutex<Option<Instant>>,
}

impl Progress {
    /// Creates a bar with a known number of steps.
    pub(crate) fn towards(total: u64, what: String) -> Self {
        let style = "{msg} [{bar:32}] {percent} %, {eta} to go";
        Self::new(ProgressBar::with_draw_target(Some(total), hidden()), style, what)
    }

    /// Creates a counter of `things` whose total is not known.
    pub(crate) fn counting(what: String, things: &str) -> Self {
        let style = format!("{{msg}}: {{human_pos}} {things}, {{rate}} per second");
        Self::new(ProgressBar::with_draw_target(None, hidden()), &style, what)
    }

    /// Creates a progress that never appears, for work whose output is visible itself.
    pub(crate) fn silent() -> Self {
        Self { bar: ProgressBar::hidden(), due: Mutex::new(None) }
    }

    fn new(bar: ProgressBar, style: &str, what: String) -> Self {
        let style =
            ProgressStyle::with_template(style).expect("the templates of this module parse");
        bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
        bar.set_message(what);
        Self { bar, due: Mutex::new(Some(Instant::now() + PATIENCE)) }
    }

    /// Reports that `steps` more are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        let mut due = self.due.lock();
        if due.is_some_and(|due| Instant::now() >= due) {
            *due = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Removes the line at the end of the work.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
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
