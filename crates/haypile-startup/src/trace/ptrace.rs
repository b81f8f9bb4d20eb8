//! The calls of `ptrace(2)` and `waitpid(2)` that tracing needs. (The crate `nix` has them, and loses the stop of a
//! process by a signal of real time, for which it has no name: that process would never go on.)

#![expect(unsafe_code, reason = "no safe interface has ptrace")]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::time::Duration;

/// An event of a traced process that its tracer gets, such as the process's exit or a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The process exited with this status.
    Exited(i32),
    /// This signal ended the process.
    Killed(i32),
    /// The process enters or leaves a system call.
    Call,
    /// The process has begun another program.
    Exec,
    /// Another event of tracing, such as a new child.
    Other,
    /// The process is about to get this signal.
    Signal(i32),
}

/// The entry or the return of a traced process's system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// The number and arguments of a call that is about to be carried out. `is_native` is false where a program of
    /// another width, such as one of 32 bits, has other numbers.
    Enter { number: i64, arguments: [u64; 6], is_native: bool },
    /// The result of a call that has been carried out; `None` if it failed.
    Leave(Option<u64>),
}

#[cfg(target_arch = "x86_64")]
const NATIVE_ARCH: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCH: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NATIVE_ARCH: u32 = 0;

/// Makes this process trace a command from its first instruction on. The command inherits the
/// signal mask from before `signals` were blocked.
pub(super) fn trace_from_the_start(command: &mut Command, signals: &Signals) {
    let before = signals.before;
    let ask = move || {
        // SAFETY: the first call reads a set and writes nothing; the request of the second has no other arguments.
        let answer = unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0)
        };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec, it makes two calls of the system, allocates nothing and takes no lock.
    unsafe { command.pre_exec(ask) };
}

/// Makes the tracer also trace the children of a stopped process, distinguish system calls from signals, and kill all
/// of them when the tracer ends.
pub(super) fn set_options(pid: i32) {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: the request takes a number. A process that was killed in the meantime needs no options.
    unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, i64::from(options)) };
}

/// Resumes a stopped traced process, with a signal or without one (0): until its next system call, or past all of them.
pub(super) fn go_on(pid: i32, signal: i32, stops_at_calls: bool) {
    let request = if stops_at_calls { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    // SAFETY: the request takes a number. A process that was killed in the meantime does not go on.
    unsafe { libc::ptrace(request, pid, 0, i64::from(signal)) };
}

/// The outcome of polling for an event of traced processes: an event, none yet, or no processes left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// An event of the process with this id.
    Of(i32, Event),
    /// No event yet.
    NotYet,
    /// No more events: all processes have ended.
    NoChildren,
}

/// Returns the next event of any traced process, without waiting for an event.
pub(super) fn next() -> Next {
    let mut status = 0;
    // SAFETY: the pointer is to a writable number.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) };
    match pid {
        0 => Next::NotYet,
        // Without the flag to wait, nothing interrupts the call.
        ..0 => Next::NoChildren,
        pid => Next::Of(pid, event(status)),
    }
}

fn event(status: i32) -> Event {
    if libc::WIFEXITED(status) {
        return Event::Exited(libc::WEXITSTATUS(status));
    }
    if libc::WIFSIGNALED(status) {
        return Event::Killed(libc::WTERMSIG(status));
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (signal, 0) if signal == libc::SIGTRAP | 0x80 => Event::Call,
        (signal, 0) => Event::Signal(signal),
        (_, libc::PTRACE_EVENT_EXEC) => Event::Exec,
        _ => Event::Other,
    }
}

/// Returns the system call that a stopped traced process enters or leaves; `None` if the kernel (before Linux 5.3) does
/// not report it.
pub(super) fn call(pid: i32) -> Option<Call> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let bytes = size_of::<libc::ptrace_syscall_info>();
    // SAFETY: the kernel writes at most as many bytes as the structure has.
    let answer =
        unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, bytes, info.as_mut_ptr()) };
    if answer <= 0 {
        return None;
    }
    // SAFETY: it was zeroed, and every field of it, in each variant, is a number.
    let info = unsafe { info.assume_init() };
    match info.op {
        libc::PTRACE_SYSCALL_INFO_ENTRY => {
            // SAFETY: the kernel says that this is the variant.
            let entry = unsafe { info.u.entry };
            let number = i64::try_from(entry.nr).ok()?;
            let is_native = NATIVE_ARCH == info.arch;
            Some(Call::Enter { number, arguments: entry.args, is_native })
        }
        libc::PTRACE_SYSCALL_INFO_EXIT => {
            // SAFETY: the kernel says that this is the variant.
            let exit = unsafe { info.u.exit };
            Some(Call::Leave(u64::try_from(exit.sval).ok().filter(|_| exit.is_error == 0)))
        }
        _ => None,
    }
}

/// The reason why a tracer's wait ended: an event of a child, a signal that asks the tracer to end, or the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// A child has an event.
    ByChild,
    /// This process is asked to end.
    ToEnd,
    /// The time has passed, or something else has interrupted the wait.
    Late,
}

/// Asks a process to end (SIGTERM).
pub(super) fn terminate(pid: i32) {
    // SAFETY: the call takes numbers. One that is gone needs no signal.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

/// The signals for which a tracer waits instead of being interrupted by them: SIGCHLD, and those
/// that ask it to end.
#[derive(Debug)]
pub(super) struct Signals {
    set: libc::sigset_t,
    /// The signals that were blocked before.
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks SIGCHLD and SIGTERM, so that no signal is lost between two polls of the children.
    pub(super) fn block() -> Self {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: `sigemptyset` makes sets of the memory; the others read and change them.
        unsafe {
            libc::sigemptyset(before.as_mut_ptr());
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            Self { set: set.assume_init(), before: before.assume_init() }
        }
    }

    /// Waits until SIGCHLD or SIGTERM arrives, for at most `limit`.
    pub(super) fn wait(&self, limit: Option<Duration>) -> Woken {
        // A longer wait than the type has is one without an end.
        let limit = limit.unwrap_or(Duration::MAX);
        let limit = libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // SAFETY: the pointers are to values of the right types, or nothing where nothing is wanted.
        let signal =
            unsafe { libc::sigtimedwait(&raw const self.set, ptr::null_mut(), &raw const limit) };
        match signal {
            libc::SIGTERM => Woken::ToEnd,
            libc::SIGCHLD => Woken::ByChild,
            _ => Woken::Late,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_waitpid_are_told_apart() {
        assert_eq!(event(3 << 8), Event::Exited(3));
        assert_eq!(event(9), Event::Killed(9));
        assert_eq!(event((libc::SIGTRAP | 0x80) << 8 | 0x7f), Event::Call);
        // Of real time, for which there is no name.
        assert_eq!(event(40 << 8 | 0x7f), Event::Signal(40));
        let exec = (libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8) << 8 | 0x7f;
        assert_eq!(event(exec), Event::Exec);
    }
}
