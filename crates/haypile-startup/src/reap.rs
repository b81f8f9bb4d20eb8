//! Children that ended, with the kernel's count of what they used.

#![expect(unsafe_code, reason = "no safe interface has wait4, or another process's clock")]

use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use haypile_measure::meter::process_waited_ns;

/// The resources (processor time, memory, page faults) used by a process and all its descendants that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu_ns: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) disk_read_bytes: u64,
    /// The peak memory use of the process that used most, of a process and its descendants, in bytes.
    pub(super) peak_bytes: u64,
    /// The longest time in nanoseconds for which the main thread of one of the ended processes waited for a processor;
    /// `None` where the system does not report it. A process that its own parent waits for is not among them.
    pub(super) waited_ns: Option<u64>,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.disk_read_bytes += other.disk_read_bytes;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.waited_ns = self.waited_ns.max(other.waited_ns);
    }
}

/// The outcome of reaping (collecting the exit status of) an ended child process.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This child has ended, with its usage.
    Ended(i32, ExitStatus, Usage),
    /// No child has ended: all still run.
    NotYet,
    /// There are no children.
    NoChildren,
}

/// Reaps (collects the exit status of) a child process that has ended, without waiting for one.
pub(super) fn reap() -> Reaped {
    let ended = ended_child();
    // Once it is reaped, nothing is left to be read of it.
    let waited_ns = ended.and_then(process_waited_ns);
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // Without one, any: whether there are children at all.
    let pid = ended.unwrap_or(-1);
    // SAFETY: both pointers are to writable memory of the right types.
    let pid = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => Reaped::NotYet,
        // Without the flag to wait, nothing interrupts the call.
        ..0 => Reaped::NoChildren,
        pid => {
            // SAFETY: it was zeroed, of which every field is a number, and filled by the call.
            let usage = unsafe { usage.assume_init() };
            let usage = Usage { waited_ns, ..Usage::of(&usage) };
            Reaped::Ended(pid, ExitStatus::from_raw(status), usage)
        }
    }
}

/// Returns a child that has ended and is not reaped.
fn ended_child() -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to writable memory of the right type.
    if unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), flags) } != 0 {
        return None;
    }
    // SAFETY: it was zeroed, of which every field is a number, and filled by the call.
    let info = unsafe { info.assume_init() };
    // SAFETY: the call fills the fields of an ended child; without one, they are zero.
    Some(unsafe { info.si_pid() }).filter(|pid| *pid > 0)
}

impl Usage {
    fn of(usage: &libc::rusage) -> Self {
        let whole = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        let ns = |time: libc::timeval| {
            whole(time.tv_sec).saturating_mul(1_000_000_000) + whole(time.tv_usec) * 1_000
        };
        Self {
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            minor_faults: whole(usage.ru_minflt),
            major_faults: whole(usage.ru_majflt),
            disk_read_bytes: whole(usage.ru_inblock) * 512,
            peak_bytes: whole(usage.ru_maxrss) * 1024,
            waited_ns: None,
        }
    }
}

/// Makes the system keep ended children until this process reaps them: a process that is started with SIGCHLD ignored
/// would not be told of them.
pub(super) fn keep_ended_children() {
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_adds_up_and_keeps_the_largest_memory() {
        let mut sum = Usage { cpu_ns: 1, peak_bytes: 7, ..Usage::default() };
        let other = Usage { cpu_ns: 2, peak_bytes: 5, minor_faults: 3, ..Usage::default() };
        sum.add(Usage { waited_ns: Some(9), ..other });
        sum.add(Usage { waited_ns: Some(4), ..Usage::default() });
        let expected = Usage {
            cpu_ns: 3,
            peak_bytes: 7,
            minor_faults: 3,
            waited_ns: Some(9),
            ..Usage::default()
        };
        assert_eq!(sum, expected);
    }
}
