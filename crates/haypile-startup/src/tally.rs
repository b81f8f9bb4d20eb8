//! The usage of a tree of processes at a moment.

use haypile_measure::meter::{Meter, SystemMeter, process_clock_ns, process_waited_ns};
use rustix::param::clock_ticks_per_second;

use super::cgroup::ControlGroup;
use super::orders::{CpuSource, MemorySource, StartReport};
use super::reap::Usage;
use super::tree::{self, Process};

/// A measurement of the resources that a command's process tree has used since this value was
/// created.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    group: Option<&'a ControlGroup>,
    /// The group's and this process's processor time at the beginning.
    group_ns: u64,
    own_ns: u64,
    /// The group's memory at the beginning: this process's.
    memory_bytes: u64,
    /// The bytes that this process's ended children had read at the beginning.
    read_bytes: u64,
    /// The resources used by the processes of the command's tree that have ended.
    pub(super) ended: Usage,
    /// Processor time in nanoseconds of the readiness commands, which are not part of the measured
    /// tree.
    pub(super) probes_ns: u64,
    /// The number of ended processes that the supervisor has reaped.
    pub(super) reaped: u64,
}

/// The resources (processor time, memory and so on) that a command's process tree has used up to
/// one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) cpu_ns: u64,
    pub(super) cpu_source: CpuSource,
    /// The processor time of the process tree in nanoseconds according to the control group, if
    /// there is one.
    pub(super) group_cpu_ns: Option<u64>,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) read_bytes: u64,
    pub(super) disk_read_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) memory_source: MemorySource,
    /// The longest time in nanoseconds for which the main thread of one process of the tree waited
    /// for a processor.
    pub(super) waited_ns: Option<u64>,
}

impl<'a> Tally<'a> {
    pub(super) fn begin(group: Option<&'a ControlGroup>) -> Self {
        Self {
            group,
            group_ns: group.and_then(ControlGroup::cpu_ns).unwrap_or(0),
            own_ns: SystemMeter.cpu_ns(),
            memory_bytes: group.and_then(ControlGroup::memory_bytes).map_or(0, |(now, _)| now),
            read_bytes: read_by_ended(),
            ended: Usage::default(),
            probes_ns: 0,
            reaped: 0,
        }
    }

    /// Returns the processor time of the tree by the control group.
    fn group_cpu_ns(&self) -> Option<u64> {
        let group = self.group?.cpu_ns()?.saturating_sub(self.group_ns);
        let own = SystemMeter.cpu_ns().saturating_sub(self.own_ns);
        Some(group.saturating_sub(own).saturating_sub(self.probes_ns))
    }

    /// Returns the processor time that the command's process tree has used so far, in nanoseconds,
    /// and its source, given its living processes.
    pub(super) fn cpu_ns(&self, living: &[&Process]) -> (u64, CpuSource) {
        if living.is_empty() {
            return (self.ended.cpu_ns, CpuSource::Waited);
        }
        if let Some(group) = self.group_cpu_ns() {
            return (group, CpuSource::Group);
        }
        let tick_ns = 1_000_000_000 / clock_ticks_per_second().max(1);
        let of = |process: &&Process| {
            process_clock_ns(process.pid).unwrap_or(0) + process.children_ticks * tick_ns
        };
        (self.ended.cpu_ns + living.iter().map(of).sum::<u64>(), CpuSource::Clocks)
    }

    /// Returns all resources that the command's process tree has used so far, given its living
    /// processes.
    pub(super) fn moment(&self, living: &[&Process]) -> Moment {
        let (cpu_ns, cpu_source) = self.cpu_ns(living);
        let mut moment = Moment {
            cpu_ns,
            cpu_source,
            group_cpu_ns: self.group_cpu_ns(),
            minor_faults: self.ended.minor_faults,
            major_faults: self.ended.major_faults,
            read_bytes: read_by_ended().saturating_sub(self.read_bytes),
            disk_read_bytes: self.ended.disk_read_bytes,
            memory_bytes: self.ended.peak_bytes,
            memory_source: MemorySource::LargestProcess,
            waited_ns: self.ended.waited_ns,
        };
        for process in living {
            moment.waited_ns = moment.waited_ns.max(process_waited_ns(process.pid));
            let reads = tree::reads(&format!("/proc/{}/io", process.pid));
            moment.minor_faults += process.minor_faults;
            moment.major_faults += process.major_faults;
            moment.read_bytes += reads.read_bytes;
            moment.disk_read_bytes += reads.disk_read_bytes;
            moment.memory_bytes = moment.memory_bytes.max(tree::peak_bytes(process.pid));
        }
        if let Some((_, peak)) = self.group.and_then(ControlGroup::memory_bytes) {
            moment.memory_bytes = peak.saturating_sub(self.memory_bytes);
            moment.memory_source = MemorySource::Group;
        }
        moment
    }
}

impl Moment {
    pub(super) fn write(self, report: &mut StartReport) {
        report.cpu_ns = self.cpu_ns;
        report.cpu_source = self.cpu_source;
        report.group_cpu_ns = self.group_cpu_ns;
        report.minor_faults = self.minor_faults;
        report.major_faults = self.major_faults;
        report.read_bytes = self.read_bytes;
        report.disk_read_bytes = self.disk_read_bytes;
        report.memory_bytes = self.memory_bytes;
        report.memory_source = self.memory_source;
        report.waited_ns = self.waited_ns;
    }
}

/// Bytes that the ended children of this process read: what the kernel counts for the process, less
/// what its only thread read itself.
fn read_by_ended() -> u64 {
    let thread = tree::reads("/proc/thread-self/io").read_bytes;
    tree::reads("/proc/self/io").read_bytes.saturating_sub(thread)
}
