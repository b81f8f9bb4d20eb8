//! Commands around a start, which are not timed.

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::condition::Condition;
use super::plan::StartPlan;

/// Between two looks at a command.
const PAUSE: Duration = Duration::from_millis(2);

/// The end of the output that errors show, in bytes.
const TAIL_BYTES: usize = 500;

/// The error of a hook, a command that the user runs before or after starts.
#[derive(Debug)]
pub(super) enum HookError {
    /// The user wants to stop.
    Interrupted,
    /// Another failure, in words.
    Failed(String),
}

/// Runs a hook (a command before or after starts) with the shell, with `input` as its standard
/// input.
///
/// # Errors
///
/// It cannot be started, fails, or takes longer than `limit`; then it is killed.
pub(super) fn run(
    plan: &StartPlan,
    condition: Condition,
    (what, command): (&str, &str),
    input: &str,
    limit: Duration,
    is_interrupted: &dyn Fn() -> bool,
) -> Result<(), HookError> {
    let failed = |error: std::io::Error| HookError::Failed(format!("{what} '{command}': {error}"));
    // Files and no pipes: nobody has to read or write while it runs.
    let mut stdin = tempfile::tempfile().map_err(failed)?;
    stdin.write_all(input.as_bytes()).map_err(failed)?;
    stdin.rewind().map_err(failed)?;
    let output = tempfile::NamedTempFile::new().map_err(failed)?;
    let end = || -> std::io::Result<Stdio> {
        Ok(File::options().append(true).open(output.path())?.into())
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(&plan.directory);
    shell.env_clear().envs(plan.hook_environment(condition));
    shell.stdin(stdin).stdout(end().map_err(failed)?).stderr(end().map_err(failed)?);
    shell.process_group(0);
    let mut child = shell.spawn().map_err(failed)?;
    let deadline = Instant::now() + limit;
    let outcome = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => break Ok(()),
            Some(status) => break Err(HookError::Failed(format!("ended with {status}"))),
            None if is_interrupted() => break Err(HookError::Interrupted),
            None if Instant::now() > deadline => {
                break Err(HookError::Failed(format!("took longer than {limit:?} (--timeout)")));
            }
            None => thread::sleep(PAUSE),
        }
    };
    if outcome.is_err() {
        // What it has started ends with it.
        if let Some(group) = Pid::from_raw(i32::try_from(child.id()).unwrap_or(0)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
    outcome.map_err(|error| match error {
        HookError::Interrupted => HookError::Interrupted,
        HookError::Failed(text) => {
            let said = fs::read(output.path()).unwrap_or_default();
            let tail = &said[said.len().saturating_sub(TAIL_BYTES)..];
            let tail = String::from_utf8_lossy(tail);
            let tail = tail.trim().lines().collect::<Vec<_>>().join(" / ");
            let separator = if tail.is_empty() { "" } else { ": " };
            HookError::Failed(format!("{what} '{command}' {text}{separator}{tail}"))
        }
    })
}
