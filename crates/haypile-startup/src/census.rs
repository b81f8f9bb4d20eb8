//! Notices early when a tree has too many processes.
//!
//! To count a tree, all processes of the system are read, which would disturb a start that is timed. The
//! number of tasks is one number to read: the tree is counted where that has grown by enough.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::cgroup::ControlGroup;

/// Between two looks at the number of tasks.
const LOOK_PAUSE: Duration = Duration::from_millis(10);
/// The longest time between two counts.
const COUNT_PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Census<'a> {
    group: Option<&'a ControlGroup>,
    most: usize,
    /// Processes and tasks at the last count.
    processes: usize,
    tasks: u64,
    next_look: Instant,
    next_count: Instant,
}

impl<'a> Census<'a> {
    pub(super) fn begin(group: Option<&'a ControlGroup>, most: usize) -> Self {
        let now = Instant::now();
        let (next_look, next_count) = (now + LOOK_PAUSE, now + COUNT_PAUSE);
        let tasks = tasks(group);
        Self { group, most, processes: 0, tasks, next_look, next_count }
    }

    /// Returns the time at which the tasks (processes and threads) are next counted, to decide whether the command's
    /// process tree has to be read.
    pub(super) fn next(&self) -> Instant {
        self.next_look
    }

    /// Whether the processes of the command's tree have to be counted now: some time has passed, or there are many new
    /// tasks.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        if now < self.next_look {
            return false;
        }
        self.next_look = now + LOOK_PAUSE;
        now >= self.next_count || has_filled_room(self, tasks(self.group))
    }

    /// Whether the command's process tree had more processes than the limit allows when it was last counted.
    pub(super) fn is_overgrown(&self) -> bool {
        self.processes > self.most
    }

    /// Records the number of processes in the command's tree; returns an error if it exceeds the limit.
    pub(super) fn note(&mut self, now: Instant, processes: usize) -> Result<(), String> {
        self.processes = processes;
        self.tasks = tasks(self.group);
        self.next_count = now + COUNT_PAUSE;
        if !self.is_overgrown() {
            return Ok(());
        }
        Err(format!(
            "it has {processes} processes at the same time, which is more than {}; --max-processes \
             allows more",
            self.most
        ))
    }
}

/// Whether the new processes may take half of what is left to the tree. Others of the system, and
/// threads, count as well: then the tree is counted in vain.
fn has_filled_room(census: &Census<'_>, tasks: u64) -> bool {
    let room = census.most.saturating_sub(census.processes) as u64;
    tasks.saturating_sub(census.tasks) > room / 2
}

/// Limits the number of tasks (processes and threads) that this process and its children may have, if no control group
/// limits it. The limit counts all tasks of the user, and does not apply to root.
pub(super) fn limit_tasks(group: Option<&ControlGroup>, most: u64) {
    if group.and_then(ControlGroup::tasks).is_some() {
        return;
    }
    let known = getrlimit(Resource::Nproc);
    let most = most.saturating_add(tasks(None)).min(known.current.unwrap_or(u64::MAX));
    // Without a limit, they are counted all the same.
    let _ = setrlimit(Resource::Nproc, Rlimit { current: Some(most), maximum: known.maximum });
}

/// Returns the number of tasks in a control group, or else in the system.
fn tasks(group: Option<&ControlGroup>) -> u64 {
    let of_system = || in_loadavg(&fs::read_to_string("/proc/loadavg").ok()?);
    group.and_then(ControlGroup::tasks).or_else(of_system).unwrap_or(0)
}

/// `proc_loadavg(5)`: the fourth field is the number of running tasks, a slash, and that of all.
fn in_loadavg(text: &str) -> Option<u64> {
    text.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_counted_and_growth_is_noticed_before_the_next_count() {
        assert_eq!(in_loadavg("0.20 0.18 0.12 1/80 11206\n"), Some(80));
        assert_eq!(in_loadavg("0.20"), None);
        assert!(tasks(None) > 0);
        let mut census = Census::begin(None, 100);
        census.note(Instant::now(), 60).unwrap();
        let (before, now) = (census.tasks, Instant::now());
        assert!(!has_filled_room(&census, before + 20));
        assert!(has_filled_room(&census, before + 21));
        assert!(!census.is_due(now), "it has just looked");
        assert!(census.is_due(now + COUNT_PAUSE));
        assert!(census.note(now, 101).unwrap_err().contains("101 processes"));
    }
}
