//! Children that ended, with the kernel's count of what they used.

#![expect(unsafe_code, reason = "no safe interface has wait4, or another process's clock")]

use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The usage of a process and of all its descendants that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) cpu_ns: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) disk_read_bytes: u64,
    /// Of the largest process.
    pub(super) peak_bytes: u64,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.cpu_ns += other.cpu_ns;
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.disk_read_bytes += other.disk_read_bytes;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
    }
}

/// The outcome of asking for a child that ended.
#[derive(Debug)]
pub(super) enum Reaped {
    /// This one has.
    Ended(i32, ExitStatus, Usage),
    /// All children still run.
    NotYet,
    /// There are no children.
    NoChildren,
}

/// Returns a child that ended, without waiting for one.
pub(super) fn reap() -> Reaped {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to writable memory of the right types.
    let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr()) };
    match pid {
        0 => Reaped::NotYet,
        // Without the flag to wait, nothing interrupts the call.
        ..0 => Reaped::NoChildren,
        pid => {
            // SAFETY: it was zeroed, of which every field is a number, and filled by the call.
            let usage = unsafe { usage.assume_init() };
            Reaped::Ended(pid, ExitStatus::from_raw(status), Usage::of(&usage))
        }
    }
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
        }
    }
}

/// Makes ended children wait until they are reaped: a process that is started with SIGCHLD ignored
/// would not even know of them.
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
        sum.add(Usage { cpu_ns: 2, peak_bytes: 5, minor_faults: 3, ..Usage::default() });
        let expected = Usage { cpu_ns: 3, peak_bytes: 7, minor_faults: 3, ..Usage::default() };
        assert_eq!(sum, expected);
    }
}
