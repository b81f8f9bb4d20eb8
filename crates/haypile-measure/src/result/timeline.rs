//! The course of a start: its processes, and their usage over time.

use serde::{Deserialize, Serialize};

/// The processes of a start and their usage over time, polled. Usage shorter than the interval may
/// be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Nanoseconds between two polls, as asked for.
    pub interval_ns: u64,
    /// Nanoseconds from the start until the command was ready.
    pub ready_ns: u64,
    /// Number of processors of the machine; 0 where that was not noted.
    #[serde(default)]
    pub processors: u64,
    /// The processes, in the order in which they were first seen.
    pub processes: Vec<ProcessBar>,
    /// Number of processes that are not listed, beyond [`Timeline::MAX_PROCESSES`].
    pub unlisted: u64,
    /// The ticks, in order of time.
    pub ticks: Vec<Tick>,
}

/// A process on a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessBar {
    /// The number of the process.
    pub pid: i32,
    /// The number of the process's parent when it was first seen.
    pub parent: i32,
    /// The name of the process as the kernel has it: at most 15 bytes.
    pub name: String,
    /// Nanoseconds after the start at which it was first seen.
    pub first_ns: u64,
    /// Nanoseconds after the start at which it was last seen.
    pub last_ns: u64,
    /// The processor time of the process when it was last seen, in nanoseconds.
    pub cpu_ns: u64,
}

/// The usage of the whole tree up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// Nanoseconds after the start.
    pub at_ns: u64,
    /// Processor time used until then, in nanoseconds.
    pub cpu_ns: u64,
    /// Bytes read from disks until then.
    pub disk_read_bytes: u64,
}

impl Timeline {
    /// The largest number of processes that are listed.
    pub const MAX_PROCESSES: usize = 400;

    /// The largest number of ticks. A longer start keeps every second one, then every fourth.
    pub const MAX_TICKS: usize = 1_000;

    /// Adds a tick, and thins the ticks out when there are too many.
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

    /// Returns the end of what is known, in nanoseconds after the start.
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
