//! The access log, in the combined format of Apache httpd and nginx.
//!
//! ```text
//! 192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] "GET http://example.org/a HTTP/1.1" 200 2326 "-" "curl/8" "hit; ttl=40" 0.000142
//! ```
//!
//! The target is absolute: it is the name under which the cache knows the response. Behind the user
//! agent stand what the cache did, as in `Cache-Status`, and the seconds from the request to the end
//! of its response.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::SystemTime;

/// The lines that wait for the disk at most; more are lost.
const MOST_WAITING: usize = 8192;

/// An access log. A thread writes it, so that a slow disk delays no response.
#[derive(Debug)]
pub struct AccessLog {
    messages: Option<SyncSender<Message>>,
    writer: Option<thread::JoinHandle<()>>,
}

enum Message {
    Line(String),
    /// Opens the file again, because somebody has renamed it.
    Reopen,
}

/// The content of a line.
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
    /// Appends to a file, which is created if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = append_to(&path)?;
        let (messages, received) = sync_channel(MOST_WAITING);
        let writer = thread::Builder::new()
            .name("access-log".into())
            .spawn(move || write(&received, file, &path))?;
        Ok(Self { messages: Some(messages), writer: Some(writer) })
    }

    /// Opens the file again, under its name: whoever rotates logs calls this after renaming it.
    pub fn reopen(&self) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(Message::Reopen);
        }
    }

    /// Writes a line; returns whether there was room for it.
    pub(super) fn log(&self, line: &LogLine<'_>) -> bool {
        let messages = self.messages.as_ref().expect("it is not dropped");
        messages.try_send(Message::Line(line.text())).is_ok()
    }
}

impl Drop for AccessLog {
    /// Waits until all lines are written.
    fn drop(&mut self) {
        self.messages = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

fn write(received: &Receiver<Message>, file: File, path: &Path) {
    let mut file = BufWriter::with_capacity(64 << 10, file);
    let mut is_well = true;
    let mut complain = |result: io::Result<()>| match result {
        Ok(()) => is_well = true,
        Err(error) => {
            // Once, and not for each line of a full disk.
            if std::mem::take(&mut is_well) {
                eprintln!("haypile: cannot write {}: {error}", path.display());
            }
        }
    };
    while let Ok(first) = received.recv() {
        // Whatever waits goes with it.
        for message in std::iter::once(first).chain(received.try_iter()) {
            match message {
                Message::Line(line) => complain(file.write_all(line.as_bytes())),
                Message::Reopen => {
                    complain(file.flush());
                    match append_to(path) {
                        Ok(opened) => file = BufWriter::with_capacity(64 << 10, opened),
                        Err(error) => complain(Err(error)),
                    }
                }
            }
        }
        complain(file.flush());
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

/// Adds text in which no client can forge the end of a field or a line.
fn escape(text: &mut String, bytes: &[u8]) -> std::fmt::Result {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => write!(text, "\\x{byte:02X}")?,
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => write!(text, "\\x{byte:02X}")?,
        }
    }
    Ok(())
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

    #[test]
    fn a_renamed_file_is_left_alone_after_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("log"), folder.path().join("old"));
        let log = AccessLog::open(&path).expect("it opens");
        assert!(log.log(&line()));
        std::fs::rename(&path, &old).expect("it is there");
        assert!(log.log(&line()));
        log.reopen();
        assert!(log.log(&line()));
        drop(log);
        let lines = |path| std::fs::read_to_string(path).expect("it is there").lines().count();
        assert_eq!([lines(&old), lines(&path)], [2, 1]);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(AccessLog::open(folder.path()).is_err());
    }
}
