//! Whether another process has been halted from outside, as far as that can be seen.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process, identified by its id and by the namespace that the id belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct ProcessId {
    pub(in crate::file) number: u64,
    /// The inode of the process's PID namespace; 0 where the system does not report it.
    pub(in crate::file) namespace: u64,
}

impl ProcessId {
    pub(in crate::file) fn own() -> Self {
        let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |metadata| metadata.ino());
        Self { number: std::process::id().into(), namespace }
    }

    /// Returns whether the process was stopped by a signal or a tracer, is in a frozen control
    /// group, or writes a core dump. Returns `false` where that cannot be seen: the id of another
    /// PID namespace belongs to an unrelated process here.
    pub(in crate::file) fn is_halted(self) -> bool {
        self.namespace == Self::own().namespace && is_halted(&PathBuf::from("/proc"), self.number)
    }
}

fn is_halted(proc: &Path, number: u64) -> bool {
    let read = |name: &str| {
        fs::read_to_string(proc.join(number.to_string()).join(name)).unwrap_or_default()
    };
    is_stopped(&read("stat"))
        || is_dumping_core(&read("status"))
        || is_frozen(&read("cgroup"), Path::new("/sys/fs/cgroup"))
}

/// Returns the state follows the name of the program, which may have any characters.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['T', 't']))
}

fn is_dumping_core(status: &str) -> bool {
    let value = status.lines().find_map(|line| line.strip_prefix("CoreDumping:"));
    value.is_some_and(|value| value.trim() == "1")
}

/// Returns whether the control group of a process is frozen, by either version of control groups.
fn is_frozen(groups: &str, mounted_at: &Path) -> bool {
    groups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return false };
        let group = group.trim_start_matches('/');
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        if controllers.is_empty() {
            let events = read(mounted_at.join(group).join("cgroup.events"));
            events.lines().any(|line| line == "frozen 1")
        } else if controllers.split(',').any(|controller| controller == "freezer") {
            let state = read(mounted_at.join("freezer").join(group).join("freezer.state"));
            state.trim() == "FROZEN"
        } else {
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_told_from_one_that_runs_or_sleeps() {
        for (stat, stopped) in [
            ("7 (a program) S 1 7", false),
            ("7 (odd) T name) R 1 7", false),
            ("7 (a program) T 1 7", true),
            ("7 (traced) t 1 7", true),
            ("", false),
        ] {
            assert_eq!(is_stopped(stat), stopped, "{stat}");
        }
        assert!(is_dumping_core("State:\tS (sleeping)\nCoreDumping:\t1\n"));
        assert!(!is_dumping_core("CoreDumping:\t0\n"));
        assert!(!ProcessId::own().is_halted());
    }

    #[test]
    fn a_frozen_control_group_halts_its_processes() {
        let mounted = tempfile::tempdir().expect("a directory");
        let (new, old) = (mounted.path().join("box"), mounted.path().join("freezer/box"));
        for group in [&new, &old] {
            fs::create_dir_all(group).expect("a directory");
        }
        let is_frozen = |groups: &str| is_frozen(groups, mounted.path());
        assert!(!is_frozen("0::/box\n3:freezer:/box\n"), "nothing can be read");
        fs::write(new.join("cgroup.events"), "populated 1\nfrozen 1\n").expect("written");
        assert!(is_frozen("0::/box\n") && !is_frozen("0::/other\n") && !is_frozen("0::/\n"));
        fs::write(new.join("cgroup.events"), "populated 1\nfrozen 0\n").expect("written");
        assert!(!is_frozen("0::/box\n"));
        fs::write(old.join("freezer.state"), "FROZEN\n").expect("written");
        assert!(is_frozen("5:cpu,memory:/\n3:freezer:/box\n"));
    }

    #[test]
    fn a_number_of_another_namespace_says_nothing() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let process = |namespace| ProcessId { number: child.id().into(), namespace };
        let pid = rustix::process::Pid::from_child(&child);
        let own = ProcessId::own().namespace;
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
        while !process(own).is_halted() {
            std::thread::yield_now();
        }
        assert!(!process(own + 1).is_halted());
        child.kill().expect("ended");
        child.wait().expect("its end");
    }
}
