//! A progress bar, on a terminal, for what takes longer than a second.

use std::fmt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use parking_lot::Mutex;

use super::number::grouped;

const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of one thing. Shows nothing where standard error is no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// When to show it; `None` once it is shown.
    due: Mutex<Option<Instant>>,
}

impl Progress {
    /// Towards a known number of steps.
    pub(crate) fn towards(total: u64, what: String) -> Self {
        let style = "{msg} [{bar:32}] {percent} %, {eta} to go";
        Self::new(ProgressBar::with_draw_target(Some(total), hidden()), style, what)
    }

    /// Of things whose number is not known.
    pub(crate) fn counting(what: String, things: &str) -> Self {
        let style = format!("{{msg}}: {{human_pos}} {things}, {{rate}} per second");
        Self::new(ProgressBar::with_draw_target(None, hidden()), &style, what)
    }

    /// Never shown, for what is seen anyway.
    pub(crate) fn silent() -> Self {
        Self { bar: ProgressBar::hidden(), due: Mutex::new(None) }
    }

    fn new(bar: ProgressBar, style: &str, what: String) -> Self {
        let style = ProgressStyle::with_template(style).expect("a template that is ours");
        bar.set_style(style.progress_chars("=> ").with_key("rate", rate));
        bar.set_message(what);
        Self { bar, due: Mutex::new(Some(Instant::now() + PATIENCE)) }
    }

    /// So many steps more are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        let mut due = self.due.lock();
        if due.is_some_and(|due| Instant::now() >= due) {
            *due = None;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// It is over; the line goes away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Steps per second, without the fractions that indicatif shows of them.
fn rate(state: &ProgressState, out: &mut dyn fmt::Write) {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is not negative, and for people"
    )]
    let rate = state.per_sec() as u64;
    // There is nobody to tell that a string cannot be written.
    let _ = out.write_str(&grouped(rate));
}

fn hidden() -> ProgressDrawTarget {
    ProgressDrawTarget::hidden()
}
