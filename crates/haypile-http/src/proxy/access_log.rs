//! The access log, in the combined format of Apache httpd and nginx.
//!
//! ```text
//! 192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET http://example.org/a HTTP/1.1" 200 2326 "-" "curl/8" "hit; ttl=40" 0.000142
//! ```
//!
//! The target is absolute: it is the name under which the cache knows the response. Behind the user
//! agent stand what the cache did, as in `Cache-Status`, and the seconds from the request to the end
//! of its response.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::SystemTime;

use super::log_file::{LogFile, escape};

/// A log file of the requests to a proxy. A separate thread writes it, so that a slow disk delays no response.
#[derive(Debug)]
pub struct AccessLog(LogFile);

/// The content of a line of the access log, which is about one request.
#[derive(Debug)]
pub(super) struct LogLine<'a> {
    pub(super) client: &'a str,
    pub(super) time: SystemTime,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: &'a str,
    pub(super) status: u16,
    pub(super) sent_bytes: u64,
    pub(super) referer: &'a [u8],
    pub(super) agent: &'a [u8],
    pub(super) cache: &'a str,
    pub(super) seconds: f64,
}

impl AccessLog {
    /// Opens a log of requests to append to, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        LogFile::open(path.into(), "access-log").map(Self)
    }

    /// Opens the log of requests again by its name: to be called after the file was renamed, as log
    /// rotation does.
    pub fn reopen(&self) {
        self.0.reopen();
    }

    /// Writes a line to the log of requests, or counts it as lost if too many lines are waiting.
    pub(super) fn log(&self, line: &LogLine<'_>) {
        self.0.append(line.text());
    }

    /// Returns the count of lines that the access log lost, which rises while the log is used.
    pub(super) fn lost(&self) -> &Arc<AtomicU64> {
        self.0.lost()
    }
}

impl LogLine<'_> {
    fn text(&self) -> String {
        let mut text = String::with_capacity(200);
        let Self { client, method, target, version, status, sent_bytes, cache, seconds, .. } = self;
        // "Tue, 10 Oct 2000 13:55:36 GMT"
        let date = httpdate::fmt_http_date(self.time);
        let (day, month, year, clock) = (&date[5..7], &date[8..11], &date[12..16], &date[17..25]);
        let mut write = || {
            write!(text, "{client} - - [{day}/{month}/{year}:{clock} +0000] \"{method} ")?;
            escape(&mut text, target.as_bytes())?;
            write!(text, " {version}\" {status} {sent_bytes}")?;
            for field in [self.referer, self.agent, cache.as_bytes()] {
                text.push_str(" \"");
                escape(&mut text, if field.is_empty() { b"-" } else { field })?;
                text.push('"');
            }
            writeln!(text, " {seconds:.6}")
        };
        write().expect("writing to a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn line() -> LogLine<'static> {
        LogLine {
            client: "192.0.2.1",
            time: UNIX_EPOCH + Duration::from_secs(971_186_136),
            method: "GET",
            target: "http://example.org/a",
            version: "HTTP/1.1",
            status: 200,
            sent_bytes: 2326,
            referer: b"",
            agent: b"a \"b\"\n\xE9",
            cache: "hit; ttl=40",
            seconds: 0.000_142,
        }
    }

    #[test]
    fn a_line_as_text() {
        let expected = "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET http://example.org/a \
                        HTTP/1.1\" 200 2326 \"-\" \"a \\x22b\\x22\\x0A\\xE9\" \"hit; ttl=40\" 0.000142\n";
        assert_eq!(line().text(), expected);
    }
}
