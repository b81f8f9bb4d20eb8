//! Deadlines of operations, and connections that fail.

use std::error::Error;
use std::io;
use std::time::{Duration, Instant};

/// The deadline of one operation on a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    timeout: Duration,
    end: Instant,
}

impl Deadline {
    /// Returns the deadline of an operation on a server that starts now and may take `timeout`.
    pub(crate) fn after(timeout: Duration) -> Self {
        // A year stands for everything beyond the clock's range.
        let end = Instant::now().checked_add(timeout);
        Self { timeout, end: end.unwrap_or_else(|| Instant::now() + Duration::from_hours(8760)) }
    }

    /// Returns the time left until the deadline, which is never zero; an error if the deadline has passed.
    pub(crate) fn left(&self) -> Result<Duration, Lost> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(self.missed()) } else { Ok(left) }
    }

    /// Returns a deadline after half of the time that is left until this one.
    pub(crate) fn half(&self) -> Self {
        let left = self.end.saturating_duration_since(Instant::now());
        Self { timeout: self.timeout, end: Instant::now() + left / 2 }
    }

    /// Returns the error of an operation for which the server did not answer before the deadline.
    pub(crate) fn missed(&self) -> Lost {
        Lost {
            text: format!("no answer within {:?}", self.timeout),
            is_late: true,
            is_of_answer: false,
            is_cut: false,
        }
    }

    /// Converts an I/O error of a connection to a server into the loss of that connection.
    pub(crate) fn lost(&self, error: &io::Error) -> Lost {
        match error.kind() {
            io::ErrorKind::WouldBlock => self.missed(),
            // The system's own says that nothing comes from the server's machine any more.
            io::ErrorKind::TimedOut if error.raw_os_error().is_none() => self.missed(),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
            | io::ErrorKind::Interrupted => Lost::new(error),
            _ => Lost { is_cut: true, ..Lost::new(error) },
        }
    }
}

/// The loss of a connection to a server, and its reason. The server may have done the operation.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Lost {
    text: String,
    /// Whether the connection was lost because the server did not answer in time. Any other failure may only mean that
    /// the server closed an idle connection, so that a new one is worth a try.
    pub(crate) is_late: bool,
    /// Whether the connection was lost because the server gave an unusable answer, so that it is up.
    pub(crate) is_of_answer: bool,
    /// Whether the connection was lost because the network broke it: the server may still receive what was sent on it,
    /// at an unknown time.
    pub(crate) is_cut: bool,
}

impl Lost {
    /// Creates the loss of a connection to a server, with an error as its reason.
    pub(crate) fn new(why: &dyn Error) -> Self {
        Self::because(why.to_string())
    }

    /// Creates the loss of a connection to a server, with a text as its reason.
    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_late: false, is_of_answer: false, is_cut: false }
    }

    /// Marks the loss of a connection as caused by an unusable answer of the server.
    pub(crate) fn by_answer(self) -> Self {
        Self { is_of_answer: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_connection_are_told_apart() {
        let lost = |error: io::Error| {
            let lost = Deadline::after(Duration::from_secs(1)).lost(&error);
            (lost.is_late, lost.is_cut)
        };
        for kind in [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut] {
            assert_eq!(lost(kind.into()), (true, false), "{kind}");
        }
        for kind in [
            io::ErrorKind::ConnectionReset,
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::UnexpectedEof,
            io::ErrorKind::Interrupted,
        ] {
            assert_eq!(lost(kind.into()), (false, false), "{kind}");
        }
        // What the system says of a connection whose other side cannot be reached.
        for code in [libc::ETIMEDOUT, libc::EHOSTUNREACH, libc::ENETDOWN] {
            assert_eq!(lost(io::Error::from_raw_os_error(code)), (false, true), "{code}");
        }
    }
}
