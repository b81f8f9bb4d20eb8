//! The course of a start: its processes, and their usage over time.

use serde::{Deserialize, Serialize};

/// A program's start over time: its processes and their use of processor and disk, polled. Use
/// shorter than the interval may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The interval between two polls of the processes in nanoseconds, as configured.
    pub interval_ns: u64,
    /// The time from the program's start until it was ready, in nanoseconds.
    pub ready_ns: u64,
    /// The number of processors of the machine; 0 if it was not recorded.
    #[serde(default)]
    pub processors: u64,
    /// The processes of the program's start, in the order in which they were first seen.
    pub processes: Vec<ProcessBar>,
    /// The number of processes that the timeline does not list, beyond [`Timeline::MAX_PROCESSES`].
    pub unlisted: u64,
    /// The polled use of resources by the whole process tree, in order of time.
    pub ticks: Vec<Tick>,
}

/// A process of a watched start, from its first to its last poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessBar {
    /// The id of the process that was watched.
    pub pid: i32,
    /// The id of the process's parent when it was first seen.
    pub parent: i32,
    /// The name of the process in the kernel, at most 15 bytes.
    pub name: String,
    /// The time after the start at which the process was first seen, in nanoseconds.
    pub first_ns: u64,
    /// The time after the start at which the process was last seen, in nanoseconds.
    pub last_ns: u64,
    /// The processor time of the process when it was last seen, in nanoseconds.
    pub cpu_ns: u64,
}

/// The resources that the whole process tree of a start has used up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// The time from the program's start to the poll, in nanoseconds.
    pub at_ns: u64,
    /// The processor time that the process tree has used up to the poll, in nanoseconds.
    pub cpu_ns: u64,
    /// The number of bytes that the process tree has read from disks up to the poll.
    pub disk_read_bytes: u64,
}

impl Timeline {
    /// The largest number of processes that a timeline lists.
    pub const MAX_PROCESSES: usize = 400;

    /// The largest number of polled values in a timeline. A timeline of a longer start keeps every
    /// second value, then every fourth.
    pub const MAX_TICKS: usize = 1_000;

    /// Adds a poll of the processes' resources to the timeline, and drops every second one when
    /// there are too many.
    pub fn add(&mut self, tick: Tick) {
        if self.ticks.len() >= Self::MAX_TICKS {
            let mut at = 0;
            self.ticks.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
        self.ticks.push(tick);
    }

    /// Returns the end of the timeline, in nanoseconds after the program's start.
    pub fn end_ns(&self) -> u64 {
        let processes = self.processes.iter().map(|process| process.last_ns);
        let ticks = self.ticks.iter().map(|tick| tick.at_ns);
        processes.chain(ticks).chain([self.ready_ns]).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_start_keeps_every_second_tick_and_the_last() {
        let mut timeline = Timeline::default();
        for at_ns in 0..5_000 {
            timeline.add(Tick { at_ns, ..Tick::default() });
            assert!(timeline.ticks.len() <= Timeline::MAX_TICKS);
        }
        assert!(timeline.ticks.len() > Timeline::MAX_TICKS / 2);
        assert!(timeline.ticks.is_sorted_by_key(|tick| tick.at_ns));
        assert_eq!(timeline.end_ns(), 4_999);
    }
}
