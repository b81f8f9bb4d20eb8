//! The log of what went wrong: a line for each failure of an origin, and for each request that is refused.
//!
//! ```text
//! 2026-11-29T07:12:00Z 5f0c9a1b2d3e4f60 192.0.2.1 502 GET http://example.org/a: the origin http://10.0.0.2 cannot be reached
//! ```
//!
//! The second word is the id that stands in the page that the client got.

use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use http::{Method, Uri};
use humantime::format_rfc3339_seconds;

use super::log_file::{LogFile, escape};

/// A log file of a proxy's failures and refused requests. A separate thread writes it.
#[derive(Debug)]
pub struct ErrorLog(LogFile);

/// The content of a line of the error log, which is about one failed or refused request.
#[derive(Debug)]
pub(super) struct ErrorLine<'a> {
    pub(super) id: &'a str,
    pub(super) client: IpAddr,
    pub(super) status: u16,
    /// The method and URI of the request; `None` if the client's bytes are not a request.
    pub(super) request: Option<(&'a Method, &'a Uri)>,
    pub(super) cause: &'a str,
}

impl ErrorLog {
    /// Creates an error log of a proxy that is written to standard error.
    ///
    /// # Errors
    ///
    /// If there is no thread for it.
    pub fn standard_error() -> io::Result<Self> {
        LogFile::standard_error("error-log").map(Self)
    }

    /// Opens an error log of a proxy to append to, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        LogFile::open(path.into(), "error-log").map(Self)
    }

    /// Opens the log of failures again by its name: to be called after the file was renamed, as log
    /// rotation does.
    pub fn reopen(&self) {
        self.0.reopen();
    }

    /// Writes a line to the log of failures, unless too many lines are waiting.
    pub(super) fn log(&self, line: &ErrorLine<'_>) {
        self.0.append(line.text(SystemTime::now()));
    }
}

impl ErrorLine<'_> {
    fn text(&self, time: SystemTime) -> String {
        let Self { id, client, status, cause, .. } = self;
        let mut text = format!("{} {id} {client} {status} ", format_rfc3339_seconds(time));
        let mut write = || {
            match self.request {
                Some((method, target)) => {
                    write!(text, "{method} ")?;
                    escape(&mut text, target.to_string().as_bytes())?;
                }
                None => text.push('-'),
            }
            text.push_str(": ");
            escape(&mut text, cause.as_bytes())?;
            writeln!(text)
        };
        write().expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn lines_as_text() {
        let uri = Uri::from_static("http://example.org/a");
        let time = UNIX_EPOCH + Duration::from_secs(971_186_136);
        let mut line = ErrorLine {
            id: "0a1b",
            client: Ipv4Addr::LOCALHOST.into(),
            status: 502,
            request: Some((&Method::GET, &uri)),
            cause: "it \"breaks\noff\"",
        };
        let expected = "2000-10-10T13:55:36Z 0a1b 127.0.0.1 502 GET http://example.org/a: \
                        it \\x22breaks\\x0Aoff\\x22\n";
        assert_eq!(line.text(time), expected);
        line.request = None;
        assert!(line.text(time).contains(" 502 -: it"));
    }
}
