//! Processes as the kernel lists them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

/// Number of times that a tree which is to be killed is searched for new processes.
const STOP_ROUNDS: usize = 64;

/// A process of the system with its processor time and so on, as `/proc/PID/stat` states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) name: String,
    /// Whether the process is stopped by a signal.
    pub(super) is_stopped: bool,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    /// Processor time of the process's ended children that it has waited for, in clock ticks.
    pub(super) children_ticks: u64,
    /// The time at which the process began, in clock ticks since the system started.
    pub(super) began_ticks: u64,
}

/// The numbers of bytes that a process and its ended children have read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    /// Bytes that the process and its ended children have read by `read` and similar calls,
    /// including the page cache.
    pub(super) read_bytes: u64,
    /// Bytes that the process and its ended children have read from a disk.
    pub(super) disk_read_bytes: u64,
}

impl Process {
    /// Returns the process with this id, as `/proc` states it; `None` if there is none.
    pub(super) fn of(pid: i32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name may hold blanks, brackets and bytes of any kind, and ends at the last bracket.
    fn parse(stat: &[u8]) -> Option<Self> {
        let open = stat.iter().position(|byte| *byte == b'(')?;
        let close = stat.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(stat.get(..open)?).ok()?.trim().parse().ok()?;
        let name = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
        let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
        // The state, field 3 of proc(5), is the first of these.
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            name,
            is_stopped: matches!(*fields.first()?, "T" | "t"),
            minor_faults: field(10)? + field(11)?,
            major_faults: field(12)? + field(13)?,
            children_ticks: field(16)? + field(17)?,
            began_ticks: field(22)?,
        })
    }
}

/// Returns all processes of the system that this process may see.
pub(super) fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pid = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    entries.filter_map(pid).filter_map(Process::of).collect()
}

/// Returns the descendants of the process with the id `root` among the given processes, in no
/// particular order.
pub(super) fn descendants(root: i32, processes: &[Process]) -> Vec<&Process> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found: Vec<&Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        // The list was not taken at one instant: a number that was used again must not make a circle.
        for child in children.remove(&parent).into_iter().flatten() {
            if child.pid != root {
                parents.push(child.pid);
                found.push(child);
            }
        }
    }
    found
}

/// Kills all processes whose ids `find` returns from the list of all. It stops the processes first,
/// so that none starts others in the meantime. Processes that multiply faster than they are stopped
/// may remain.
pub(super) fn kill(find: impl Fn(&[Process]) -> Vec<i32>) {
    let mut stopped = HashSet::new();
    for _ in 0..STOP_ROUNDS {
        let mut new = find(&all());
        new.retain(|pid| stopped.insert(*pid));
        if new.is_empty() {
            break;
        }
        for pid in new {
            send(pid, Signal::STOP);
        }
    }
    for pid in stopped {
        send(pid, Signal::KILL);
    }
}

pub(super) fn send(pid: i32, signal: Signal) {
    // It may have ended in the meantime.
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns the living processes of the command's tree (the descendants of its supervisor), without
/// the readiness command and its descendants.
pub(super) fn living(own: i32, probe: Option<i32>, processes: &[Process]) -> Vec<&Process> {
    let mut living = descendants(own, processes);
    if let Some(probe) = probe {
        let probes: Vec<i32> = descendants(probe, processes).iter().map(|it| it.pid).collect();
        living.retain(|process| process.pid != probe && !probes.contains(&process.pid));
    }
    living
}

/// Whether a process ignores the end of its children, so that the kernel drops their usage.
pub(super) fn ignores_children(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    is_ignored(&status).unwrap_or(false)
}

fn is_ignored(status: &str) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (libc::SIGCHLD - 1) & 1 == 1)
}

/// Parses the numbers of bytes that a process and its ended children have read, from the text of
/// `/proc/PID/io`; zeros if the kernel does not report them.
pub(super) fn reads(io: &str) -> Reads {
    let text = fs::read_to_string(io).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    Reads { read_bytes: field("rchar:"), disk_read_bytes: field("read_bytes:") }
}

/// Returns the peak resident memory of a process, in bytes; 0 if the kernel does not report it.
pub(super) fn peak_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Returns the regular files that a process has open or mapped into memory.
pub(super) fn files(pid: i32) -> Vec<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| Some(PathBuf::from(&line[line.find('/')?..])));
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let is_file = |path: &PathBuf| {
        let is_of_system = ["/proc", "/dev", "/sys"].iter().any(|root| path.starts_with(root));
        path.is_absolute() && !is_of_system && path.is_file()
    };
    mapped.chain(open).filter(is_file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            name: String::new(),
            is_stopped: false,
            minor_faults: 0,
            major_faults: 0,
            children_ticks: 0,
            began_ticks: 0,
        }
    }

    #[test]
    fn fields_are_behind_the_name_whatever_it_holds() {
        let stat = "42 (a ) b (c) R 7 42 42 0 -1 4194304 100 20 3 4 17 5 6 7 20 0 1 0 300 1000 10";
        let found = Process::parse(stat.as_bytes()).unwrap();
        let expected = Process {
            name: "a ) b (c".to_owned(),
            minor_faults: 120,
            major_faults: 7,
            children_ticks: 13,
            began_ticks: 300,
            ..process(42, 7)
        };
        assert_eq!(found, expected);
        assert!(
            Process::parse(b"42 (\xff\n) T 7 1 1 0 -1 0 1 2 3 4 5 6 7 8 9 10 11 12 13")
                .is_some_and(|process| process.is_stopped)
        );
        for wrong in ["", "42", "42 (a", ")(", "42 (a) R 1 2", "x (a) R 1 2 3 4 5 6 7 8 9 0"] {
            assert_eq!(Process::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn descendants_are_found_over_generations_and_circles_end() {
        let of = |pairs: &[(i32, i32)]| -> Vec<Process> {
            pairs.iter().map(|&(pid, parent)| process(pid, parent)).collect()
        };
        let pids = |root, processes: &[Process]| {
            let mut pids: Vec<i32> = descendants(root, processes).iter().map(|it| it.pid).collect();
            pids.sort_unstable();
            pids
        };
        let tree = of(&[(1, 0), (5, 1), (6, 5), (7, 6), (8, 1), (9, 8)]);
        assert_eq!(pids(5, &tree), [6, 7]);
        assert_eq!(pids(9, &tree), Vec::<i32>::new());
        assert_eq!(pids(5, &of(&[(6, 5), (5, 6), (7, 7)])), [6]);
    }

    #[test]
    fn an_ignored_signal_is_a_bit_of_a_mask() {
        assert_eq!(is_ignored("Name:\tx\nSigIgn:\t0000000000010000\n"), Some(true));
        assert_eq!(is_ignored("SigIgn:\t0000000000001000\n"), Some(false));
        assert_eq!(is_ignored("SigIgn:\tx\n"), None);
        assert_eq!(is_ignored(""), None);
    }

    #[test]
    fn this_process_is_listed_with_its_files() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(all().iter().any(|process| process.pid == own));
        let program = std::env::current_exe().unwrap();
        assert!(files(own).contains(&program));
        assert!(reads(&format!("/proc/{own}/io")).read_bytes > 0);
        assert_eq!(reads("/proc/0/io"), Reads::default());
    }
}
