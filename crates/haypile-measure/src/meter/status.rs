//! The memory of this process, from `/proc/self/status`.

use std::fs;

/// The memory that this process uses, now and at its peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The resident memory of this process at this moment, in bytes.
    pub resident_bytes: u64,
    /// The peak of this process's resident memory in bytes, since the process began or a runner
    /// opened its cache.
    pub peak_bytes: u64,
}

/// The resident memory of another process, according to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResidentMemory {
    /// The peak of the process's resident memory, in bytes.
    pub(crate) peak_bytes: u64,
    /// The resident memory of the process that is not pages of files, in bytes.
    pub(crate) own_bytes: u64,
}

impl ResidentMemory {
    /// Returns the memory of a process; `None` if it does not exist.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let own = [bytes(&status, "RssAnon:")?, bytes(&status, "RssShmem:")?];
        Some(Self { peak_bytes: bytes(&status, "VmHWM:")?, own_bytes: own.iter().sum() })
    }
}

/// Resets the peak of this process's resident memory to the present amount. If the system refuses,
/// the peak stays.
pub(crate) fn forget_peak() {
    // 5 resets the high-water mark: proc_pid_clear_refs(5).
    let _ = fs::write("/proc/self/clear_refs", "5");
}

pub(super) fn read() -> Option<Memory> {
    parse(&fs::read_to_string("/proc/self/status").ok()?)
}

pub(super) fn parse(status: &str) -> Option<Memory> {
    Some(Memory { resident_bytes: bytes(status, "VmRSS:")?, peak_bytes: bytes(status, "VmHWM:")? })
}

/// Returns the bytes of a line of `/proc/PID/status`.
fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_in_kib() {
        let status = "Name:\thaypile\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t1\n";
        let memory = Memory { resident_bytes: 1 << 20, peak_bytes: 2 << 20 };
        assert_eq!(parse(status), Some(memory));
        for other in
            ["", "VmRSS:\t1 kB\n", "VmRSS:\t1 MB\nVmHWM:\t1 kB\n", "VmRSS:\t-1 kB\nVmHWM:\t1 kB"]
        {
            assert_eq!(parse(other), None, "{other:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory() {
        let memory = read().unwrap();
        assert!(0 < memory.resident_bytes);
    }
}
