//! The processor time of another process, such as a server.

use std::fs;
use std::mem::MaybeUninit;

use rustix::param::clock_ticks_per_second;

/// Returns the processor time that a process has used so far, in nanoseconds; `None` if it does not
/// exist. Where the scheduler states nanoseconds, ended threads are left out; elsewhere the system
/// counts in ticks of about 10 ms.
pub(crate) fn process_cpu_ns(pid: u32) -> Option<u64> {
    scheduled_ns(pid).or_else(|| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(of_ticks(two_ticks(&stat, OWN_TICKS)?))
    })
}

/// Returns the processor time of a process, including its ended threads, in nanoseconds; `None` if
/// it does not exist.
#[expect(unsafe_code, reason = "no safe interface has the clock of another process")]
pub fn process_clock_ns(pid: i32) -> Option<u64> {
    // The kernel's number of the scheduler's clock of a process, which clock_getcpuclockid(3) returns.
    let clock = (!pid << 3) | 2;
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to writable memory of the right type.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: it was zeroed, and filled by the call.
    let time = unsafe { time.assume_init() };
    let (seconds, ns) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

/// Returns the processor time of a process group, including children that have ended and were
/// waited for, in nanoseconds. The latter counts in ticks of about 10 ms.
pub(crate) fn group_clock_ns(group: i32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let of_process = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // State, parent, group.
        let is_member = fields(&stat)?.nth(2)?.parse() == Ok(group);
        let children = is_member.then(|| two_ticks(&stat, CHILDREN_TICKS)).flatten()?;
        Some(process_clock_ns(pid)?.saturating_add(of_ticks(children)))
    };
    pids.filter_map(of_process).fold(0, u64::saturating_add)
}

/// Returns the time for which the first thread of a process has waited for a processor, in nanoseconds; `None` if the
/// system does not state this time.
pub fn process_waited_ns(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Returns the resident memory of a process, in bytes; `None` if it does not exist.
pub(crate) fn process_memory_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(super::status::parse(&status)?.resident_bytes)
}

/// The scheduler's times of all threads.
fn scheduled_ns(pid: u32) -> Option<u64> {
    let mut sum = None;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        // A thread may have ended in the meantime.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        let ns: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
        sum = Some(sum.unwrap_or(0_u64).checked_add(ns)?);
    }
    // Kernels that do not keep these numbers show zeros.
    sum.filter(|ns| *ns > 0)
}

/// Places of the ticks in user space, which those in the kernel follow, among the fields behind the name: of the
/// process, and of its children that were waited for.
const OWN_TICKS: usize = 11;
const CHILDREN_TICKS: usize = 13;

/// The fields behind the name of a process, which may hold blanks and brackets, and ends at the last bracket.
fn fields(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_ascii_whitespace())
}

/// Ticks in user space and in the kernel.
fn two_ticks(stat: &str, place: usize) -> Option<u64> {
    let mut ticks = fields(stat)?.skip(place).map(str::parse::<u64>);
    ticks.next()?.ok()?.checked_add(ticks.next()?.ok()?)
}

fn of_ticks(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000_000_000 / clock_ticks_per_second().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_clock_and_a_number_without_one_has_none() {
        let own = i32::try_from(std::process::id()).unwrap();
        let before = process_clock_ns(own).unwrap();
        let mut number = 1_u64;
        while process_clock_ns(own).unwrap() == before {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        assert!(process_clock_ns(own).unwrap() > before);
        // The largest number of a process on Linux is 2^22.
        assert_eq!(process_clock_ns(1 << 23), None);
    }

    #[test]
    fn ticks_are_behind_the_name() {
        let stat = "42 (a ) b (c) R 1 42 42 0 -1 4194304 100 0 0 0 17 5 3 4 20 0 1 0 300 1000 10";
        assert_eq!(
            (two_ticks(stat, OWN_TICKS), two_ticks(stat, CHILDREN_TICKS)),
            (Some(22), Some(7))
        );
        for wrong in ["", "42 (a", "42 (a) R 1 2", "42 (a) R 1 2 3 4 5 6 7 8 9 0 x y"] {
            assert_eq!(two_ticks(wrong, OWN_TICKS), None, "{wrong}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_that_is_there_has_a_time_and_memory() {
        let own = std::process::id();
        let before = process_cpu_ns(own).unwrap();
        let mut number = 1_u64;
        // Some kernels scale it, and then it goes back by a little at times.
        while process_cpu_ns(own).unwrap() <= before {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        assert!(process_memory_bytes(own).unwrap() > 0);
        assert_eq!((process_cpu_ns(u32::MAX), process_memory_bytes(u32::MAX)), (None, None));
    }
}
