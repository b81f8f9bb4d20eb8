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

use anyhow::{Context, bail};

use ptrace::{Event, Signals, go_on, next_event, set_options, trace_from_the_start};
use record::Recorder;

pub use record::{CallTrace, FileUse};

/// Starts a command, traces it and all its processes, and writes a [`CallTrace`] as JSON to `file` when it exits, or
/// when this process is asked to end (SIGTERM). Then all of its processes are killed. Returns the command's exit
/// status, or 128 and the signal that ended it; 0 where this process was asked to end.
///
/// # Errors
///
/// The command cannot be started, tracing is not permitted, or the file cannot be written.
pub fn serve(file: &Path, command: &[String]) -> anyhow::Result<i32> {
    let signals = Signals::block();
    let Some((program, arguments)) = command.split_first() else { bail!("there is no command") };
    let mut start = Command::new(program);
    start.args(arguments);
    trace_from_the_start(&mut start);
    let child = start.spawn().with_context(|| format!("{program} cannot be started and traced"))?;
    let main = i32::try_from(child.id())?;
    let mut recorder = Recorder::new(file);
    let status = follow(main, &signals, &mut recorder);
    recorder.write()?;
    Ok(status)
}

/// Follows the command until it has ended or this process is to end. Returns the exit status.
fn follow(main: i32, signals: &Signals, recorder: &mut Recorder) -> i32 {
    loop {
        while let Some((pid, event)) = next_event() {
            match event {
                Event::Exited(status) if pid == main => return status,
                Event::Killed(signal) if pid == main => return 128 + signal,
                Event::Exited(_) | Event::Killed(_) => recorder.forget(pid),
                stop => go_on(pid, at_stop((pid, stop), recorder)),
            }
        }
        if signals.wait() {
            return 0;
        }
    }
}

/// Takes note of a stop, and returns the signal with which the process goes on.
fn at_stop((pid, event): (i32, Event), recorder: &mut Recorder) -> i32 {
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
        Event::Call => {
            recorder.at_call(pid);
            0
        }
        Event::Exec => {
            recorder.at_exec(pid);
            0
        }
        Event::Exited(_) | Event::Killed(_) | Event::Other => 0,
    }
}
