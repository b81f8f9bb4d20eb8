//! A process of the torture, which may be killed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// The longest line that a runner may say.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// The length of standard error that messages show.
const SHOWN_BYTES: u64 = 600;

/// The longest wait for the end of a process whose output has ended, and for its standard error
/// after that.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_micros(200);

/// A child process of the torture in a separate process group, which is killed when this is
/// dropped.
pub(super) struct Process {
    child: Child,
    errors: Receiver<String>,
    is_over: bool,
}

impl Process {
    pub(super) fn spawn(mut command: Command) -> Result<(Self, BufReader<ChildStdout>), String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| {
            format!("{} cannot be started: {error}", command.get_program().to_string_lossy())
        })?;
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut stderr = child.stderr.take().expect("it is piped");
        let (sender, errors) = sync_channel(1);
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.by_ref().take(SHOWN_BYTES).read_to_end(&mut text);
            // Nobody may wait for it any more.
            let _ = sender.send(String::from_utf8_lossy(&text).trim().to_owned());
            let _ = std::io::copy(&mut stderr, &mut std::io::sink());
        });
        Ok((Self { child, errors, is_over: false }, output))
    }

    /// Returns the id of the child process, which is also that of its process group.
    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn kill(&self) {
        // One that has ended is not collected yet, so that the number is nobody else's.
        let _ = kill_process_group(self.pid(), Signal::KILL);
    }

    fn kill_if_alive(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
        }
    }

    /// Closes the standard input of the child process, so that it ends after the current operation.
    pub(super) fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits for the end of a child process whose output has ended; returns its exit status and its
    /// standard error.
    pub(super) fn collect(mut self) -> (Option<ExitStatus>, String) {
        self.end_input();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(PAUSE);
        }
        self.kill_if_alive();
        let status = self.child.wait().ok();
        self.is_over = true;
        (status, self.errors.recv_timeout(PATIENCE).unwrap_or_default())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_over {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// Calls `take` with each whole line of a process's output until the output ends, or `take` returns
/// `false`. A line that a kill cut off is skipped.
pub(super) fn each_line(mut output: impl BufRead, mut take: impl FnMut(&str) -> bool) {
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let read = output.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes);
        if read.is_err() || bytes.pop() != Some(b'\n') {
            return;
        }
        if !take(&String::from_utf8_lossy(&bytes)) {
            return;
        }
    }
}
