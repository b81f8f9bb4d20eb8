//! How long an operation waits, and how it ends when that is over.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

/// The end of one operation's waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    end: Instant,
}

impl Deadline {
    /// The end of an operation that starts now.
    pub(crate) fn after(timeout: Duration) -> Self {
        // What lies beyond the clock's range is as good as a year.
        let end = Instant::now().checked_add(timeout);
        Self { timeout, end: end.unwrap_or_else(|| Instant::now() + Duration::from_hours(8760)) }
    }

    /// What is left, never zero.
    pub(crate) fn left(&self) -> Result<Duration, Lost> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.missed()) } else { Ok(left) }
    }

    /// An earlier end, after half of what is left.
    pub(crate) fn half(&self) -> Self {
        let left = self.end.saturating_duration_since(Instant::now());
        Self { timeout: self.timeout, end: Instant::now() + left / 2 }
    }

    /// How long the operation waits from its start.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// That it has passed.
    pub(crate) fn missed(&self) -> Lost {
        Lost {
            text: format!("no answer within {:?}", self.timeout),
            is_late: true,
            is_of_answer: false,
        }
    }

    /// What a connection's error means.
    pub(crate) fn lost(&self, error: &io::Error) -> Lost {
        match error.kind() {
            // What a socket's timeout is on Linux, and elsewhere.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.missed(),
            _ => Lost::new(error),
        }
    }
}

/// A connection that cannot be used any more, and why. The operation may have been done.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Lost {
    text: String,
    /// Whether the server did not answer in time. It may have ended a connection that was not used
    /// for a while; that another fails as well is likely only here.
    pub(crate) is_late: bool,
    /// Whether the server is there and answers, though not what it was asked for.
    pub(crate) is_of_answer: bool,
}

impl Lost {
    /// A connection lost for this reason.
    pub(crate) fn new(why: &dyn Error) -> Self {
        Self::because(why.to_string())
    }

    /// The same in words.
    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_late: false, is_of_answer: false }
    }

    /// The same for what the server has answered, which cannot be used.
    pub(crate) fn by_answer(self) -> Self {
        Self { is_of_answer: true, ..self }
    }
}
