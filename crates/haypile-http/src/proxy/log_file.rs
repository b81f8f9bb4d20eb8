//! Files of lines, which a thread writes.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The lines that wait for the thread at most; more are lost.
const MOST_WAITING: usize = 8192;
/// The bytes that wait for room on the disk at most, unless one line is longer.
const MOST_UNWRITTEN_BYTES: usize = 64 << 10;

/// A log file of the proxy, or standard error. A separate thread writes the lines, so that a slow
/// disk delays no response.
#[derive(Debug)]
pub(super) struct LogFile {
    messages: Option<SyncSender<Message>>,
    /// The number of lines that could not be written.
    lost: Arc<AtomicU64>,
    writer: Option<thread::JoinHandle<()>>,
}

/// Where lines go.
type Out = Box<dyn Write + Send>;

enum Message {
    Line(String),
    /// Opens the file again, because somebody has renamed it.
    Reopen,
}

impl LogFile {
    /// Opens a log file to append to, and creates it if it does not exist; a new thread with the
    /// given name writes it.
    pub(super) fn open(path: PathBuf, thread: &str) -> io::Result<Self> {
        Self::start(append_to(&path)?, Some(path), thread)
    }

    /// Creates a log that a new thread with the given name writes to standard error.
    pub(super) fn standard_error(thread: &str) -> io::Result<Self> {
        Self::start(Box::new(io::stderr()), None, thread)
    }

    fn start(file: Out, path: Option<PathBuf>, thread: &str) -> io::Result<Self> {
        let (messages, received) = sync_channel(MOST_WAITING);
        let lost = Arc::<AtomicU64>::default();
        let lines = Lines::new(file, Arc::clone(&lost));
        let writer = thread::Builder::new()
            .name(thread.into())
            .spawn(move || write(&received, lines, path.as_deref()))?;
        Ok(Self { messages: Some(messages), lost, writer: Some(writer) })
    }

    /// Opens the log file again by its name, after log rotation has renamed it.
    pub(super) fn reopen(&self) {
        if let Some(messages) = &self.messages {
            let _ = messages.send(Message::Reopen);
        }
    }

    /// Appends a line to the log, or counts it as lost if too many lines are waiting.
    pub(super) fn append(&self, line: String) {
        let messages = self.messages.as_ref().expect("it is not dropped");
        if messages.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the count of lines that the log lost, which rises while the log is used.
    pub(super) fn lost(&self) -> &Arc<AtomicU64> {
        &self.lost
    }
}

impl Drop for LogFile {
    /// Waits until all lines are written.
    fn drop(&mut self) {
        self.messages = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn append_to(path: &Path) -> io::Result<Out> {
    Ok(Box::new(OpenOptions::new().append(true).create(true).open(path)?))
}

fn write(received: &Receiver<Message>, mut lines: Lines<Out>, path: Option<&Path>) {
    let complain = |failure: Option<io::Error>| {
        if let (Some(error), Some(path)) = (failure, path) {
            // A panic would end the thread, and lose all later lines.
            let _ = writeln!(io::stderr(), "haypile: cannot write {}: {error}", path.display());
        }
    };
    while let Ok(first) = received.recv() {
        // Whatever waits goes with it.
        for message in std::iter::once(first).chain(received.try_iter()) {
            match message {
                Message::Line(line) => complain(lines.push(&line)),
                Message::Reopen => {
                    complain(lines.flush());
                    let Some(path) = path else { continue };
                    match append_to(path) {
                        Ok(opened) => lines.continue_in(opened),
                        Err(error) => complain(lines.failed(error)),
                    }
                }
            }
        }
        complain(lines.flush());
    }
}

/// Lines on their way to a file that may have no room for them.
struct Lines<W> {
    file: W,
    unwritten: Vec<u8>,
    /// Whether the file already has the beginning of the first unwritten line.
    has_torn: bool,
    /// Whether nothing has failed since the last time that all lines were written.
    is_well: bool,
    lost: Arc<AtomicU64>,
}

impl<W: Write> Lines<W> {
    fn new(file: W, lost: Arc<AtomicU64>) -> Self {
        Self { file, unwritten: Vec::new(), has_torn: false, is_well: true, lost }
    }

    /// Adds a line, or counts it as lost if it has no room. Returns a failure that is news.
    fn push(&mut self, line: &str) -> Option<io::Error> {
        let has_room = |unwritten: &Vec<u8>| {
            unwritten.is_empty() || unwritten.len() + line.len() <= MOST_UNWRITTEN_BYTES
        };
        let failure = if has_room(&self.unwritten) { None } else { self.flush() };
        if has_room(&self.unwritten) {
            self.unwritten.extend_from_slice(line.as_bytes());
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        failure
    }

    /// Writes what has come. Returns a failure that is news.
    fn flush(&mut self) -> Option<io::Error> {
        let mut written = 0;
        let outcome = loop {
            if written == self.unwritten.len() {
                break Ok(());
            }
            match self.file.write(&self.unwritten[written..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if let Some(last) = written.checked_sub(1) {
            self.has_torn = self.unwritten[last] != b'\n';
            self.unwritten.drain(..written);
        }
        match outcome {
            Ok(()) => {
                self.is_well = true;
                None
            }
            Err(error) => self.failed(error),
        }
    }

    /// Returns a failure if it is the first since all was well: a full disk fails with each line.
    fn failed(&mut self, error: io::Error) -> Option<io::Error> {
        std::mem::take(&mut self.is_well).then_some(error)
    }

    /// Writes on in another file, which begins with a whole line.
    fn continue_in(&mut self, file: W) {
        self.file = file;
        if std::mem::take(&mut self.has_torn) {
            let end = self.unwritten.iter().position(|byte| *byte == b'\n');
            self.unwritten.drain(..end.map_or(0, |end| end + 1));
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Appends bytes to a line of a log, escaped so that no client can forge the end of a field or a
/// line.
pub(super) fn escape(text: &mut String, bytes: &[u8]) -> std::fmt::Result {
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
    use super::*;

    #[test]
    fn a_renamed_file_is_left_alone_after_reopening() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("log"), folder.path().join("old"));
        let log = LogFile::open(path.clone(), "log").expect("it opens");
        log.append(LINE.into());
        std::fs::rename(&path, &old).expect("it is there");
        log.append(LINE.into());
        log.reopen();
        log.append(LINE.into());
        drop(log);
        let lines = |path| std::fs::read_to_string(path).expect("it is there").lines().count();
        assert_eq!([lines(&old), lines(&path)], [2, 1]);
    }

    /// A disk with room for some bytes.
    #[derive(Default)]
    struct Disk {
        room: usize,
        bytes: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let length = bytes.len().min(self.room);
            if length == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= length;
            self.bytes.extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const LINE: &str = "123456789\n";

    fn lines_on(room: usize) -> Lines<Disk> {
        Lines::new(Disk { room, ..Disk::default() }, Arc::default())
    }

    /// Pushes lines, and flushes after each, as one that comes alone is; returns the complaints.
    fn push(lines: &mut Lines<Disk>, number: usize) -> usize {
        let complaints = (0..number).flat_map(|_| [lines.push(LINE), lines.flush()]);
        complaints.flatten().count()
    }

    fn lost(lines: &Lines<Disk>) -> usize {
        usize::try_from(lines.lost.load(Ordering::Relaxed)).expect("few")
    }

    #[test]
    fn a_full_disk_is_told_of_once_and_what_it_loses_is_counted() {
        let mut lines = lines_on(15);
        let waiting = (MOST_UNWRITTEN_BYTES + 5) / LINE.len();
        assert_eq!((push(&mut lines, 10_000), lost(&lines)), (1, 10_000 - (1 + waiting)));
        // Some room is not all that is needed.
        lines.file.room = 15;
        assert_eq!((push(&mut lines, 10_000), lost(&lines)), (0, 20_000 - (2 + waiting)));
        lines.file.room = usize::MAX;
        assert_eq!(push(&mut lines, 10), 0);
        let written = String::from_utf8(std::mem::take(&mut lines.file.bytes)).expect("text");
        assert!(written.lines().all(|line| line == LINE.trim_end()));
        assert_eq!(written.lines().count() + lost(&lines), 20_010);
        lines.file.room = 0;
        assert_eq!(push(&mut lines, 10), 1);
    }

    #[test]
    fn a_file_after_a_full_disk_begins_with_a_whole_line() {
        let mut lines = lines_on(15);
        push(&mut lines, 3);
        lines.continue_in(Disk { room: usize::MAX, ..Disk::default() });
        push(&mut lines, 1);
        assert_eq!(lines.file.bytes, LINE.repeat(2).as_bytes());
        assert_eq!(lost(&lines), 1);
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(LogFile::open(folder.path().into(), "log").is_err());
    }
}
