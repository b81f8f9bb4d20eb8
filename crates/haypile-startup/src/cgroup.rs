//! A control group for one start, where the system lets us make one.
//!
//! The kernel counts what all processes of a group use, whoever waited for them. The supervisor is in
//! the group as well; its own time is known and subtracted. Version 2 counts the processor in every
//! group; of version 1 the hierarchies `cpuacct`, `memory` and `pids` serve.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// The beginning of our groups' names; then comes the number of the laboratory's process.
const PREFIX: &str = "haypile-startup-";

/// The longest wait for the processes of a group to end.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The version of a Linux control group (cgroup): 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupKind {
    /// Version 2 of control groups, with `cpu.stat`.
    V2,
    /// Version 1, the hierarchy `cpuacct`.
    V1,
}

/// A Linux control group (cgroup) that this program has created, to measure and limit the processes of one start of a
/// command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// The version of the control group.
    pub kind: GroupKind,
    cpu: PathBuf,
    /// The folder of the hierarchy that counts memory, where there is one.
    memory: Option<PathBuf>,
    /// The one that limits the number of tasks.
    tasks: Option<PathBuf>,
}

impl ControlGroup {
    /// Creates a control group (cgroup) for a start within the one of this process; `None` if the system does not
    /// permit it.
    pub fn create() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let create = |hierarchy| {
            let parent = own_folder(hierarchy, &mounts, &own)?;
            remove_abandoned(&parent);
            let folder = parent.join(&name);
            fs::create_dir(&folder).ok()?;
            Some(folder)
        };
        let first = create(Hierarchy::V2).filter(|folder| is_counting(folder, GroupKind::V2));
        let (kind, cpu) = match first {
            Some(cpu) => (GroupKind::V2, cpu),
            None => (GroupKind::V1, create(Hierarchy::Controller("cpuacct"))?),
        };
        let has_peak = kind == GroupKind::V2 && cpu.join("memory.peak").exists();
        let memory =
            if has_peak { Some(cpu.clone()) } else { create(Hierarchy::Controller("memory")) };
        let has_tasks = kind == GroupKind::V2 && cpu.join("pids.max").exists();
        let tasks =
            if has_tasks { Some(cpu.clone()) } else { create(Hierarchy::Controller("pids")) };
        let group = Self { kind, cpu, memory, tasks };
        if group.cpu_ns().is_none() {
            group.remove();
            return None;
        }
        Some(group)
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        let others = [self.memory.as_deref(), self.tasks.as_deref()].into_iter().flatten();
        [self.cpu.as_path()].into_iter().chain(others.filter(|folder| *folder != self.cpu))
    }

    /// Limits the control group to this number of processes and threads, if the system permits that; more cannot be
    /// started in it.
    pub(super) fn limit_tasks(&self, most: u64) {
        if let Some(folder) = &self.tasks {
            // Without a limit, they are counted all the same.
            let _ = fs::write(folder.join("pids.max"), most.to_string());
        }
    }

    /// Returns the current number of processes and threads in the control group.
    pub(super) fn tasks(&self) -> Option<u64> {
        number(&self.tasks.as_ref()?.join("pids.current"))
    }

    /// Moves a process into the control group.
    ///
    /// # Errors
    ///
    /// The system does not let us.
    pub fn join(&self, pid: u32) -> io::Result<()> {
        self.folders()
            .try_for_each(|folder| fs::write(folder.join("cgroup.procs"), pid.to_string()))
    }

    /// Returns the processor time of all present and past processes of the control group, in nanoseconds.
    pub(super) fn cpu_ns(&self) -> Option<u64> {
        match self.kind {
            GroupKind::V2 => {
                let stat = fs::read_to_string(self.cpu.join("cpu.stat")).ok()?;
                let us = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
                us.trim().parse::<u64>().ok()?.checked_mul(1_000)
            }
            GroupKind::V1 => number(&self.cpu.join("cpuacct.usage")),
        }
    }

    /// Returns the current memory use of the control group, and its peak, in bytes. Both include pages of files that
    /// its processes were the first to read.
    pub(super) fn memory_bytes(&self) -> Option<(u64, u64)> {
        let memory = self.memory.as_ref()?;
        let both =
            |now: &str, most: &str| Some((number(&memory.join(now))?, number(&memory.join(most))?));
        both("memory.current", "memory.peak")
            .or_else(|| both("memory.usage_in_bytes", "memory.max_usage_in_bytes"))
    }

    /// Kills all processes in the control group, and removes the group. Returns whether it is gone.
    pub fn remove(&self) -> bool {
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            self.kill();
            let is_gone = |folder: &Path| match fs::remove_dir(folder) {
                Ok(()) => true,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            // All of them are tried, even if one is not gone.
            let gone: Vec<bool> = self.folders().map(is_gone).collect();
            if gone.iter().all(|gone| *gone) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill(&self) {
        if fs::write(self.cpu.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        let listed = fs::read_to_string(self.cpu.join("cgroup.procs")).unwrap_or_default();
        for pid in listed.lines().filter_map(|line| Pid::from_raw(line.trim().parse().ok()?)) {
            // It may have ended in the meantime.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A tree of control groups.
#[derive(Clone, Copy)]
enum Hierarchy {
    V2,
    Controller(&'static str),
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn is_counting(folder: &Path, kind: GroupKind) -> bool {
    let group = ControlGroup { kind, cpu: folder.to_owned(), memory: None, tasks: None };
    let is_counting = group.cpu_ns().is_some();
    if !is_counting {
        group.remove();
    }
    is_counting
}

/// Returns the folder of the group that this process is in, of a hierarchy.
fn own_folder(hierarchy: Hierarchy, mounts: &str, own: &str) -> Option<PathBuf> {
    // proc_pid_mountinfo(5): 36 35 98:0 /root /mount/point options fields - type source super-options
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let before: Vec<&str> = before.split(' ').collect();
        let after: Vec<&str> = after.split(' ').collect();
        let is_it = match hierarchy {
            Hierarchy::V2 => *after.first()? == "cgroup2",
            Hierarchy::Controller(name) => {
                *after.first()? == "cgroup" && after.get(2)?.split(',').any(|option| option == name)
            }
        };
        is_it.then_some((*before.get(3)?, *before.get(4)?))
    });
    let (root, point) = mount?;
    // cgroups(7): number:controllers:/path, and of version 2 0::/path
    let path = own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_it = match hierarchy {
            Hierarchy::V2 => controllers.is_empty(),
            Hierarchy::Controller(name) => {
                controllers.split(',').any(|controller| controller == name)
            }
        };
        is_it.then_some(path)
    })?;
    let below = if root == "/" { path } else { path.strip_prefix(root)? };
    let folder = Path::new(point).join(below.trim_start_matches('/'));
    folder.is_dir().then_some(folder)
}

/// Removes groups of laboratories that were killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists()) {
            // One that still has processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_group_counts_what_its_processes_used_and_is_gone_afterwards() {
        let Some(group) = ControlGroup::create() else {
            eprintln!("not tested: this system lets us make no control group");
            return;
        };
        let mut child = Command::new("sh");
        child.args([
            "-c",
            "read line; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 1000 & wait",
        ]);
        let mut child = child.stdin(std::process::Stdio::piped()).spawn().unwrap();
        group.join(child.id()).unwrap();
        group.limit_tasks(9);
        if let Some(folder) = &group.tasks {
            assert_eq!((group.tasks(), number(&folder.join("pids.max"))), (Some(1), Some(9)));
        }
        let before = group.cpu_ns().unwrap();
        drop(child.stdin.take());
        let deadline = Instant::now() + Duration::from_secs(20);
        while group.cpu_ns().unwrap() < before + 1_000_000 {
            assert!(Instant::now() < deadline, "the group counts nothing");
            thread::yield_now();
        }
        assert!(group.remove());
        // What is in it was killed.
        assert!(!child.wait().unwrap().success());
        assert!(!group.cpu.exists());
    }

    #[test]
    fn folders_are_found_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().to_str().unwrap();
        fs::create_dir_all(folder.path().join("a/b")).unwrap();
        let own = "5:cpu,cpuacct:/x\n4:memory:/docker/1\n0::/a/b\n";
        let v2 = format!("1 2 0:3 / {point} rw shared:1 - cgroup2 cgroup2 rw\n");
        assert_eq!(own_folder(Hierarchy::V2, &v2, own), Some(folder.path().join("a/b")));
        let v1 = format!("1 2 0:3 /docker/1 {point} rw - cgroup cgroup rw,memory\n");
        let memory = Hierarchy::Controller("memory");
        assert_eq!(own_folder(memory, &v1, own), Some(folder.path().to_owned()));
        assert_eq!(own_folder(Hierarchy::Controller("cpuacct"), &v1, own), None);
        for wrong in ["", " - ", "1 2 3 - cgroup2", "1 2 0:3 / /nowhere rw - cgroup2 cgroup2 rw"] {
            assert_eq!(own_folder(Hierarchy::V2, wrong, own), None, "{wrong}");
        }
    }
}
