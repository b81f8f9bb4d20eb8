//! The orders of a supervisor, and its report.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitStatus;

use haypile_measure::result::Timeline;
use serde::{Deserialize, Serialize};

use super::ready::Ready;

/// The settings for one start of a command, which the supervisor process reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartOrders {
    /// The command to start: a program and its arguments.
    pub command: Vec<String>,
    /// All environment variables of the command.
    pub environment: BTreeMap<String, String>,
    /// The working directory of the command.
    pub directory: PathBuf,
    /// The file that the command reads as its standard input, from the beginning; `None` for an
    /// empty input.
    pub input: Option<PathBuf>,
    /// The signal of readiness: the event (such as an exit or an open port) that shows that the command is ready.
    pub ready: Ready,
    /// The exit statuses of the command that do not count as a failure.
    pub accepted: Accepted,
    /// Milliseconds after which a command that is not ready counts as an error.
    pub timeout_ms: u64,
    /// Milliseconds for which the command's process tree has to be quiet (to use hardly any processor time) after it is
    /// ready; 0 ends the tree as soon as it is ready.
    pub settle_ms: u64,
    /// Milliseconds between asking the command's process tree to end and killing it.
    pub grace_ms: u64,
    /// Milliseconds between observations of the command's processes; `None` for a timed start, which is not observed.
    pub observe_ms: Option<u64>,
    /// The control group (cgroup) that the supervisor process is in.
    pub group: Option<super::cgroup::ControlGroup>,
    /// The cache file whose counters are polled during the start.
    pub span: Option<PathBuf>,
    /// The largest number of processes in the command's tree at the same time; with more, the start is an error.
    pub max_processes: usize,
    /// The path of the file to which the supervisor writes the report on the start.
    pub report: PathBuf,
}

/// Processes and threads that a tree may have for each process that is allowed, and a number for a few
/// processes with many threads.
const TASKS_PER_PROCESS: u64 = 4;
const MORE_TASKS: u64 = 512;

impl StartOrders {
    /// Returns the time limit within which the command has to be ready as text, such as `60 s`.
    pub(super) fn timeout(&self) -> String {
        in_seconds(self.timeout_ms)
    }

    /// Returns the limit that the system puts on the processes and threads of the command's tree, which is above the
    /// largest number of processes.
    pub(super) fn most_tasks(&self) -> u64 {
        let most = self.max_processes as u64;
        most.saturating_mul(TASKS_PER_PROCESS).saturating_add(MORE_TASKS)
    }
}

/// Returns a number of milliseconds as text in seconds.
pub(super) fn in_seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000).trim_end_matches('0').trim_end_matches('.').to_owned()
        + " s"
}

/// The exit statuses of a command that do not count as a failure. An end by a signal always does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accepted {
    /// The exit status 0 alone.
    #[default]
    Success,
    /// The exit status 0, and these.
    Codes(Vec<i32>),
    /// Any exit status.
    Any,
}

impl Accepted {
    /// Returns whether the end of a process with this status does not count as a failure.
    pub(super) fn takes(&self, status: ExitStatus) -> bool {
        let code = status.code();
        match self {
            _ if status.success() => true,
            Self::Success => false,
            Self::Codes(codes) => code.is_some_and(|code| codes.contains(&code)),
            Self::Any => code.is_some(),
        }
    }
}

/// The source of a measured processor time of a command's processes, such as a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuSource {
    /// The kernel's sum over all processes that were waited for: exact.
    #[default]
    Waited,
    /// The control group's time: exact, even for processes that nobody waited for.
    Group,
    /// Clocks of the living processes, and their ended children in ticks of about 10 ms.
    Clocks,
}

/// The source of a measured peak memory use of a command's processes, such as a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemorySource {
    /// The control group's memory: of all processes together.
    Group,
    /// The resident memory of the largest process.
    #[default]
    LargestProcess,
}

/// The measured results of one start of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartReport {
    /// Nanoseconds from the start until the command was ready.
    pub ready_ns: u64,
    /// The uncertainty of `ready_ns` in nanoseconds, if a readiness command of the user tests the command repeatedly:
    /// the time since the last failing test began.
    pub ready_within_ns: Option<u64>,
    /// Processor time in nanoseconds of the commands that tested readiness, which no other figure
    /// includes.
    pub probes_ns: u64,
    /// The exit status of the command, for a command that counts as ready when it exits.
    pub exit_code: Option<i32>,
    /// Nanoseconds from the start until the command's process tree was quiet (used hardly any processor time), if that
    /// was asked for and happened.
    pub settled_ns: Option<u64>,
    /// Processor time of the command's process tree in nanoseconds until it was ready; for a command that is ready when
    /// it exits, until all of its processes had ended.
    pub cpu_ns: u64,
    /// The source of `cpu_ns`, such as a control group.
    pub cpu_source: CpuSource,
    /// Processor time of the command's process tree in nanoseconds according to the control group, if there is one.
    pub group_cpu_ns: Option<u64>,
    /// Whether some processor time of the command's processes is missing: a process ignored the end of its children
    /// (SIGCHLD), and no control group measured them.
    pub is_cpu_incomplete: bool,
    /// The name of a process that ignored the end of its children (SIGCHLD), whose usage is lost.
    pub ignores_children: Option<String>,
    /// The peak memory use of the command's processes, in bytes.
    pub memory_bytes: u64,
    /// The source of `memory_bytes`, such as a control group.
    pub memory_source: MemorySource,
    /// The longest time in nanoseconds for which the main thread of one of the command's processes waited for a
    /// processor, among living processes and those that the supervisor reaped; `None` where the system does not report
    /// it. (A control group's pressure counts processes of the group that wait for each other.)
    pub waited_ns: Option<u64>,
    /// Number of page faults of the command's processes that needed no disk.
    pub minor_faults: u64,
    /// Number of page faults of the command's processes that read from a disk.
    pub major_faults: u64,
    /// The number of bytes that the command's processes read from files, pipes and sockets, including the page cache.
    pub read_bytes: u64,
    /// The number of bytes that the command's processes read from a disk.
    pub disk_read_bytes: u64,
    /// The number of ended processes that the supervisor waited for: the command itself, and those that left their
    /// parents.
    pub reaped: u64,
    /// The number of the command's processes that were still running when the measurement ended, and were killed.
    pub left_running: u64,
    /// The time from the first to the last operation on the cache that `--span` names, in
    /// nanoseconds.
    pub span_ns: Option<u64>,
    /// The number of operations during the start on the cache that `--span` names.
    pub span_operations: Option<u64>,
    /// Names of processes that began outside of the command's process tree during its start, as systemd or D-Bus start
    /// them for a program.
    pub outside: Vec<String>,
    /// Regular files that were open or mapped during an observed start.
    pub files: Vec<PathBuf>,
    /// The timeline of an observed start: processes and their usage.
    pub timeline: Option<Timeline>,
    /// The last part of what the command wrote to its standard output and standard error.
    pub output: String,
    /// The reason why the start failed; the other fields mean nothing then.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn a_signal_is_a_failure_whatever_is_accepted() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let signal = ExitStatus::from_raw(9);
        let some = Accepted::Codes(vec![2, 3]);
        let takes =
            |accepted: &Accepted| [exit(0), exit(1), exit(3), signal].map(|it| accepted.takes(it));
        assert_eq!(takes(&Accepted::Success), [true, false, false, false]);
        assert_eq!(takes(&some), [true, false, true, false]);
        assert_eq!(takes(&Accepted::Any), [true, true, true, false]);
    }
}
