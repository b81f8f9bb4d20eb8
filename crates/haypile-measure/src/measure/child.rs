//! A runner's process: its lines, its end, and the limits of both.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The interval between checks for an interruption.
const PATIENCE: Duration = Duration::from_millis(50);

/// The longest line that a runner may say.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// Lines that wait to be read.
const WAITING_LINES: usize = 64;

/// The length of the end of standard error that messages show.
const TAIL_BYTES: usize = 1 << 10;

/// The longest wait for the end of standard error after the process has ended.
const TAIL_PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at whether a process has ended whose output is closed.
const REAP_PAUSE: Duration = Duration::from_millis(1);

/// The reason why a runner returned no results.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// The user interrupted the measurement.
    Interrupted,
    /// The runner sent nothing before a deadline; the text says what was due.
    Late(String),
    /// Another failure, in words.
    Failed(String),
}

impl Failure {
    fn new(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}

/// A kind of line of the output.
enum OutputLine {
    /// A line of text, with the moment at which it was read.
    Text(String, Instant),
    TooLong,
}

/// The outcome of one look at a process.
enum Look {
    Line(String),
    NotYet,
    End,
}

/// A child process in a separate process group, so that the terminal's Ctrl-C reaches this program
/// alone. The process is killed when this is dropped.
pub struct Child {
    process: std::process::Child,
    lines: Receiver<OutputLine>,
    tail: Receiver<String>,
    ended: Option<ExitStatus>,
    said_at: Option<Instant>,
}

impl Child {
    /// Starts a command as a child process, which messages call `label`.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] if it cannot be started.
    pub fn spawn(mut command: Command, label: &str) -> Result<Self, Failure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = start(&mut command, label)?;
        let stdout = process.stdout.take().expect("it is piped");
        let stderr = process.stderr.take().expect("it is piped");
        let (tail_sender, tail) = sync_channel(1);
        thread::spawn(move || drop(tail_sender.send(read_tail(stderr))));
        Ok(Self { process, lines: lines_of(stdout), tail, ended: None, said_at: None })
    }

    /// Starts a server as a child process, whose messages are read from its standard error.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn spawn_server(mut command: Command, label: &str) -> Result<Self, Failure> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = start(&mut command, label)?;
        let lines = lines_of(process.stderr.take().expect("it is piped"));
        let (_, tail) = sync_channel(1);
        Ok(Self { process, lines, tail, ended: None, said_at: None })
    }

    /// Returns the id of the child process, which is also that of its process group.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// Returns the time at which the last line of the child process's output was read; `None`
    /// before the first one.
    pub fn said_at(&self) -> Option<Instant> {
        self.said_at
    }

    /// Writes text to the standard input of the child process. An error is ignored: readers of its
    /// output notice that the process has ended.
    pub fn say(&mut self, text: &str) {
        if let Some(stdin) = &mut self.process.stdin {
            let _ = stdin.write_all(text.as_bytes());
        }
    }

    /// Waits for the next line of the child process's output. The end of the output is a failure.
    pub fn line(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<String, Failure> {
        loop {
            if let Some(line) = self.line_soon(deadline, is_interrupted)? {
                return Ok(line);
            }
        }
    }

    /// Returns the next line of the child process's output; `None` if it does not come soon, so
    /// that other processes can be polled. The end of the output is a failure.
    pub fn line_soon(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<String>, Failure> {
        match self.look(deadline, is_interrupted)? {
            Look::Line(line) => Ok(Some(line)),
            Look::NotYet => Ok(None),
            // It may live on with its output closed; other processes are polled in the meantime.
            Look::End => match self.try_end()? {
                Some(status) => Err(match self.judge(status) {
                    Ok(()) => Failure::new("the runner ended before it said everything"),
                    Err(failure) => failure,
                }),
                None if deadline.is_over() => Err(Failure::Late(deadline.text())),
                None => {
                    thread::sleep(REAP_PAUSE);
                    Ok(None)
                }
            },
        }
    }

    /// Waits for the next line of the child process's output; returns `None` at the end of the
    /// output.
    pub fn line_or_end(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<String>, Failure> {
        loop {
            match self.look(deadline, is_interrupted)? {
                Look::Line(line) => return Ok(Some(line)),
                Look::NotYet => {}
                Look::End => return Ok(None),
            }
        }
    }

    /// Waits some moments for a line.
    fn look(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<Look, Failure> {
        if is_interrupted() {
            return Err(Failure::Interrupted);
        }
        match self.lines.recv_timeout(deadline.left().min(PATIENCE)) {
            Ok(OutputLine::Text(line, at)) => {
                self.said_at = Some(at);
                Ok(Look::Line(line))
            }
            Ok(OutputLine::TooLong) => {
                let text = format!("the runner said a line of more than {MAX_LINE_BYTES} bytes");
                Err(Failure::Failed(text))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(Look::End),
            Err(RecvTimeoutError::Timeout) if deadline.is_over() => {
                Err(Failure::Late(deadline.text()))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Look::NotYet),
        }
    }

    /// Waits for the end of the child process; an unsuccessful exit status is a failure.
    pub fn finish(
        &mut self,
        deadline: Deadline,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        drop(self.process.stdin.take());
        let status = loop {
            match self.try_end()? {
                Some(status) => break status,
                None if is_interrupted() => return Err(Failure::Interrupted),
                None if deadline.is_over() => return Err(Failure::Late(deadline.text())),
                None => thread::sleep(REAP_PAUSE),
            }
        };
        self.judge(status)
    }

    /// The exit status, if the process has ended.
    fn try_end(&mut self) -> Result<Option<ExitStatus>, Failure> {
        let status = self.process.try_wait();
        let status =
            status.map_err(|error| Failure::new(format!("the runner is lost: {error}")))?;
        self.ended = self.ended.or(status);
        Ok(status)
    }

    /// Whether this was a good end.
    fn judge(&self, status: ExitStatus) -> Result<(), Failure> {
        if status.success() {
            return Ok(());
        }
        let tail = self.tail.recv_timeout(TAIL_PATIENCE).unwrap_or_default();
        let tail = tail.trim();
        let separator = if tail.is_empty() { "" } else { ": " };
        Err(Failure::new(format!("the runner ended with {status}{separator}{tail}")))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Whatever it has started ends with it.
            let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// A deadline until which to wait for a child process's output.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: Instant,
    limit: Duration,
}

impl Deadline {
    /// Creates a deadline that is over after a time limit.
    pub fn after(limit: Duration) -> Self {
        let now = Instant::now();
        // A limit beyond what the clock can hold is none.
        let end = now.checked_add(limit).unwrap_or(now + Duration::from_secs(1 << 30));
        Self { end, limit }
    }

    fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    fn is_over(self) -> bool {
        self.left().is_zero()
    }

    fn text(self) -> String {
        let limit = self.limit;
        format!(
            "the runner took longer than {limit:?} and was killed; --timeout gives it more time"
        )
    }
}

/// Starts a command in a group of its own.
fn start(command: &mut Command, label: &str) -> Result<std::process::Child, Failure> {
    command.process_group(0).spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        Failure::new(format!("{label} cannot be started: {program}: {error}"))
    })
}

/// The lines of an output, which a thread reads.
fn lines_of(output: impl Read + Send + 'static) -> Receiver<OutputLine> {
    let (sender, lines) = sync_channel(WAITING_LINES);
    thread::spawn(move || send_lines(output, &sender));
    lines
}

fn send_lines(output: impl Read, lines: &SyncSender<OutputLine>) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = output.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes);
        if read.is_err() || bytes.is_empty() {
            return;
        }
        let line = if bytes.len() as u64 > MAX_LINE_BYTES {
            OutputLine::TooLong
        } else {
            let text = String::from_utf8_lossy(&bytes);
            OutputLine::Text(text.trim_end_matches(['\n', '\r']).to_owned(), Instant::now())
        };
        // Nobody listens any more to a runner that is given up.
        if lines.send(line).is_err() {
            return;
        }
    }
}

/// The end of what a runner says on standard error.
fn read_tail(mut errors: impl Read) -> String {
    let mut tail = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = errors.read(&mut buffer) {
        tail.extend_from_slice(&buffer[..read]);
        let excess = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..excess);
    }
    String::from_utf8_lossy(&tail).into_owned()
}
