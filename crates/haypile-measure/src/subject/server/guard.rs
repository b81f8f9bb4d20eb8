//! A guard that ends a server when no process of its job is left, however these ended.
//!
//! Each process holds a shared lock on a file as long as it lives. The guard, a shell that the first
//! one starts, waits until it has that lock alone, and then ends the server, which is its child and
//! which the kernel kills if the guard is killed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use super::super::error::Cause;

/// $1 is the lock, and what follows is the server and its arguments. It says the number of the
/// server's process. A server that ends by itself ends the guard.
const SCRIPT: &str = "\
    lock=$1; shift
    setpriv --pdeathsig KILL -- \"$@\" >&2 &
    server=$!
    echo $server
    exec >/dev/null
    { flock --exclusive \"$lock\" true; kill -KILL $server; } &
    waiting=$!
    wait $server
    kill $waiting 2>/dev/null
    exit 1";

/// The most of a server's own words that is shown.
const MAX_SAID_BYTES: usize = 2000;

#[derive(Debug)]
pub(super) struct Guard {
    /// The shared lock on the server, which ends with the process.
    lock: Option<File>,
    /// Whether no other process uses the server.
    is_alone: bool,
    /// The guard's shell, in the process that has started it.
    shell: Option<Child>,
    pid: u32,
    log: PathBuf,
}

impl Guard {
    /// Starts a cache server in a directory, with a guard process that ends the server after its last user. If
    /// `is_alone`, dropping the guard waits for the server's end.
    pub(super) fn start(
        directory: &Path,
        name: &str,
        program: &str,
        arguments: &[String],
        is_alone: bool,
    ) -> Result<Self, Cause> {
        let lock_path = directory.join(format!("{name}.lock"));
        // The guard of an earlier attempt may still wait for the file that was there.
        remove(&lock_path)?;
        let lock = lock(&lock_path)?;
        let log = directory.join(format!("{name}.log"));
        let said = File::create(&log)?;
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(&lock_path)
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(said.try_clone()?)
            .spawn()?;
        let output = shell.stdout.take().ok_or("the guard has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let pid = line.trim().parse().map_err(|_| format!("the guard said '{line}'"))?;
        fs::write(pid_file(directory, name), line)?;
        Ok(Self { lock: Some(lock), is_alone, shell: Some(shell), pid, log })
    }

    /// Joins the processes that use a running cache server, so that it ends with the last of them.
    pub(super) fn join(directory: &Path, name: &str) -> Result<Self, Cause> {
        let lock = lock(&directory.join(format!("{name}.lock")))?;
        let pid = fs::read_to_string(pid_file(directory, name))?.trim().parse()?;
        let log = directory.join(format!("{name}.log"));
        Ok(Self { lock: Some(lock), is_alone: false, shell: None, pid, log })
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the cache server is still running.
    pub(super) fn is_running(&mut self) -> bool {
        self.shell.as_mut().is_none_or(|shell| matches!(shell.try_wait(), Ok(None)))
    }

    /// Returns the messages on the cache server's standard error.
    pub(super) fn said(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let last = &bytes[bytes.len().saturating_sub(MAX_SAID_BYTES)..];
        String::from_utf8_lossy(last).trim().to_owned()
    }
}

impl Drop for Guard {
    /// The work that a server still does while it ends would be in the time of whoever is next.
    fn drop(&mut self) {
        drop(self.lock.take());
        if let (Some(shell), true) = (&mut self.shell, self.is_alone) {
            let _ = shell.wait();
        }
    }
}

fn lock(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(file),
        // The guard has it: the others have ended, and so will the server.
        Err(error) if error == rustix::io::Errno::WOULDBLOCK => Err(io::Error::new(
            ErrorKind::NotConnected,
            format!("{}: the server of this job is ending", path.display()),
        )),
        Err(error) => Err(error.into()),
    }
}

fn pid_file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.pid"))
}

/// Removes a file, if it exists.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
