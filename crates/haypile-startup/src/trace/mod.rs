//! One start under `ptrace`, untimed: which files and folders it uses, and how often it asks the kernel for them.
//!
//! A *tracer* is a process of its own ([`serve`]) between a supervisor and the command: the supervisor waits and ends
//! as it does for any start, and ends the tracer when the command is ready. Without root a process may trace those that
//! it starts; a container or `kernel.yama.ptrace_scope=3` may forbid it, upon which the command is not run.

mod call;
mod ptrace;
mod record;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use ptrace::{
    Event, Next, Signals, Woken, go_on, next, set_options, terminate, trace_from_the_start,
};
use record::Recorder;

pub use record::{CallTrace, FileUse};

/// The longest wait for processes that go on after the command has exited, and for those that are asked to end.
const STRAGGLER_PATIENCE: Duration = Duration::from_secs(1);

/// Starts a command, traces it and all its processes, and writes a [`CallTrace`] as JSON to `file` when the command
/// exits, or when this process is asked to end (SIGTERM). Processes that remain a second after the exit are asked to
/// end, and killed a second later. Returns the command's exit status, or 128 plus the signal that ended it.
///
/// # Errors
///
/// The command cannot be started, tracing is not permitted, or the file cannot be written.
pub fn serve(file: &Path, command: &[String]) -> anyhow::Result<i32> {
    let signals = Signals::block();
    let Some((program, arguments)) = command.split_first() else {
        bail!("there is no command to trace; write it after --")
    };
    let mut start = Command::new(program);
    start.args(arguments);
    trace_from_the_start(&mut start, &signals);
    let child = start.spawn().with_context(|| format!("{program} cannot be started and traced"))?;
    let main = i32::try_from(child.id())?;
    follow(main, &signals, &mut Recorder::new(file))
}

/// Follows the command until all of its processes have ended. Once this process is asked to end, or a while after the
/// command has exited, nothing is recorded any more, and what is left may end in peace. Returns the exit status.
///
/// # Errors
///
/// The trace cannot be written.
fn follow(main: i32, signals: &Signals, recorder: &mut Recorder) -> anyhow::Result<i32> {
    let mut status = 0;
    let mut deadline: Option<Instant> = None;
    let mut is_recording = true;
    loop {
        match next() {
            Next::NoChildren => {
                if is_recording {
                    recorder.write()?;
                }
                return Ok(status);
            }
            Next::Of(pid, event @ (Event::Exited(_) | Event::Killed(_))) => {
                recorder.forget(pid);
                if pid == main {
                    status = exit_status(event);
                    deadline = Some(Instant::now() + STRAGGLER_PATIENCE);
                }
            }
            Next::Of(pid, stop) => {
                let signal = at_stop((pid, stop), is_recording, recorder);
                go_on(pid, signal, is_recording);
            }
            Next::NotYet => {
                let now = Instant::now();
                let is_late = deadline.is_some_and(|deadline| now >= deadline);
                if is_late && !is_recording {
                    return Ok(status);
                }
                let woken = if is_late {
                    Woken::Late
                } else {
                    signals.wait(deadline.map(|deadline| deadline - now))
                };
                if is_recording && (is_late || woken == Woken::ToEnd) {
                    is_recording = false;
                    recorder.write()?;
                    if is_late {
                        recorder.living().for_each(terminate);
                        deadline = Some(now + STRAGGLER_PATIENCE);
                    }
                }
            }
        }
    }
}

/// Returns the status with which a tracer ends as its command did.
fn exit_status(event: Event) -> i32 {
    match event {
        Event::Exited(status) => status,
        Event::Killed(signal) => 128 + signal,
        _ => 0,
    }
}

/// Takes note of a stop, and returns the signal with which the process goes on.
fn at_stop((pid, event): (i32, Event), is_recording: bool, recorder: &mut Recorder) -> i32 {
    match event {
        // The command's own first stop, at its start.
        Event::Signal(libc::SIGTRAP) if !recorder.has_begun() => {
            set_options(pid);
            recorder.at_exec(pid);
            0
        }
        // A new process stops once before it begins, by no signal of anybody.
        Event::Signal(libc::SIGSTOP) if recorder.is_new(pid) => 0,
        Event::Signal(signal) => signal,
        Event::Call if is_recording => {
            recorder.at_call(pid);
            0
        }
        Event::Exec if is_recording => {
            recorder.at_exec(pid);
            0
        }
        Event::Exited(_) | Event::Killed(_) | Event::Call | Event::Exec | Event::Other => 0,
    }
}
