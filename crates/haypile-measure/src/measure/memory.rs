//! The laboratory's check of a runner's memory: none has more than the most that was resident, and what is in memory
//! takes memory.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::Pid;

use crate::meter::ResidentMemory;
use crate::result::{MEMORY_FOUND, Sample};

/// The kernel counts resident pages in batches for each thread.
const SLACK_DIVISOR: u64 = 20;
const SLACK_BYTES: u64 = 4 << 20;
/// Values of fewer bytes are hidden by what every process has.
const FEWEST_BYTES: u64 = 4 << 20;

/// The memory of a runner's process (a program that runs a cache under test), read at the end of its timed part.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenMemory {
    resident: ResidentMemory,
    /// Bytes of the regular files that the process has open or mapped, those of the job aside, or that it has written:
    /// files may be closed.
    file_bytes: u64,
}

impl SeenMemory {
    /// Reads the memory of a runner's process that waits after its timed part; `None` if the system does not state it.
    pub(super) fn of(pid: Pid, job: &Path) -> Option<Self> {
        let number = pid.as_raw_nonzero().get();
        let resident = ResidentMemory::of(number)?;
        let file_bytes = file_bytes(number, job).max(written_bytes(number));
        Some(Self { resident, file_bytes })
    }

    /// Checks the memory that a runner reports for its cache, without a server's; returns an error if it exceeds the
    /// peak memory of the runner's process.
    pub(super) fn judge(&self, said_bytes: u64) -> Result<(), String> {
        let most = self.resident.peak_bytes;
        if said_bytes <= most.saturating_add(most / SLACK_DIVISOR).saturating_add(SLACK_BYTES) {
            return Ok(());
        }
        Err(format!(
            "the runner said a memory of {said_bytes} bytes, and at most {most} bytes of it were resident"
        ))
    }

    /// Marks a sample whose reported memory is less than half of the values that were found in
    /// memory: its cache keeps references to objects of the job, or the report is wrong. A value
    /// has at least `value_bytes`.
    pub(super) fn mark(&self, sample: &mut Sample, value_bytes: u64) {
        let count = |name: &str| sample.counts.get(name).copied();
        let found = count("verified_after").or_else(|| count("verified_before")).unwrap_or(0);
        let values = found.saturating_mul(value_bytes);
        let Some(said_bytes) = sample.memory_bytes else { return };
        let is_elsewhere = self.file_bytes >= values / 2
            || self.resident.own_bytes < values
            || sample.server_cpu_ns.is_some();
        if values < FEWEST_BYTES || said_bytes >= values / 2 || is_elsewhere {
            return;
        }
        sample.counts.insert(MEMORY_FOUND.to_owned(), values);
    }
}

/// Returns the bytes that a process has written by calls, to files or sockets.
fn written_bytes(pid: i32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0)
}

/// Returns the bytes of the regular files that a process has open or mapped shared, each once, those of the job aside.
fn file_bytes(pid: i32, job: &Path) -> u64 {
    let mut paths: Vec<_> = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    // Address, permissions, offset, device, inode, path. Programs and their libraries are mapped privately.
    let mapped = maps.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_shared = fields.next()?.ends_with('s');
        fields.nth(3).filter(|_| is_shared)
    });
    paths.extend(mapped.filter(|path| path.starts_with('/')).map(Into::into));
    let mut known = BTreeSet::new();
    let mut sum = 0_u64;
    for path in paths {
        let target = fs::read_link(&path).unwrap_or_else(|_| path.clone());
        let Ok(data) = fs::metadata(&path) else { continue };
        let is_job = target.starts_with(job);
        if data.is_file() && !is_job && known.insert((data.dev(), data.ino())) {
            sum = sum.saturating_add(data.len());
        }
    }
    sum
}
