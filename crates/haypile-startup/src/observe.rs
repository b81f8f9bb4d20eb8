//! A start watched closely, untimed: its timeline, its files, and what would spoil a measurement.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haypile_measure::meter::process_clock_ns;
use haypile_measure::result::{ProcessBar, Tick, Timeline};

use super::orders::StartReport;
use super::tally::Tally;
use super::tree::{self, Process};

/// The most files that are remembered.
const MAX_FILES: usize = 20_000;

/// The most processes outside of the tree that are named.
const MAX_OUTSIDE: usize = 8;

/// Programs that start others at somebody else's request.
const STARTERS: [&str; 4] = ["systemd", "dbus-daemon", "dbus-broker", "dbus-broker-lau"];

/// A periodic observation of all processes in a command's process tree: their use of the processor,
/// their files and so on.
#[derive(Debug)]
pub(super) struct Observation {
    interval: Duration,
    start: Instant,
    next: Instant,
    bars: BTreeMap<i32, ProcessBar>,
    timeline: Timeline,
    files: BTreeSet<PathBuf>,
    ignores_children: Option<String>,
    outside: BTreeSet<String>,
}

impl Observation {
    pub(super) fn begin(interval: Duration, start: Instant) -> Self {
        let interval_ns = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Self {
            interval,
            start,
            next: start,
            bars: BTreeMap::new(),
            timeline: Timeline { interval_ns, processors: processors(), ..Timeline::default() },
            files: BTreeSet::new(),
            ignores_children: None,
            outside: BTreeSet::new(),
        }
    }

    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Observes the processes of the command's tree if the interval is over; `probe` is a process
    /// that is not part of the tree.
    pub(super) fn look(&mut self, own: i32, main: i32, probe: Option<i32>, tally: &Tally<'_>) {
        let begin = Instant::now();
        if begin < self.next {
            return;
        }
        self.next = begin + self.interval;
        let at_ns = u64::try_from((begin - self.start).as_nanos()).unwrap_or(u64::MAX);
        let all = tree::all();
        let living = tree::living(own, probe, &all);
        for process in &living {
            self.see(process, at_ns);
        }
        let (cpu_ns, _) = tally.cpu_ns(&living);
        let read =
            |process: &&Process| tree::reads(&format!("/proc/{}/io", process.pid)).disk_read_bytes;
        let disk_read_bytes = tally.ended.disk_read_bytes + living.iter().map(read).sum::<u64>();
        self.timeline.add(Tick { at_ns, cpu_ns, disk_read_bytes });
        if let Some(main) = all.iter().find(|process| process.pid == main) {
            self.see_outside(main.began_ticks, &living, &all, own);
        }
    }

    fn see(&mut self, process: &Process, at_ns: u64) {
        let bar = self.bars.entry(process.pid).or_insert_with(|| ProcessBar {
            pid: process.pid,
            parent: process.parent,
            first_ns: at_ns,
            ..ProcessBar::default()
        });
        // It has another name once it has begun another program.
        bar.name.clone_from(&process.name);
        bar.last_ns = at_ns;
        bar.cpu_ns = process_clock_ns(process.pid).unwrap_or(bar.cpu_ns);
        if self.ignores_children.is_none() && tree::ignores_children(process.pid) {
            self.ignores_children = Some(format!("{} ({})", process.name, process.pid));
        }
        if self.files.len() < MAX_FILES {
            self.files.extend(tree::files(process.pid));
        }
    }

    /// Names processes that began after the command, and that a service manager or D-Bus started.
    fn see_outside(&mut self, since: u64, living: &[&Process], all: &[Process], own: i32) {
        for process in all.iter().filter(|process| process.began_ticks > since) {
            let is_inside = process.pid == own || living.iter().any(|it| it.pid == process.pid);
            let parent = all.iter().find(|parent| parent.pid == process.parent);
            let parent = parent.filter(|parent| STARTERS.contains(&parent.name.as_str()));
            if let Some(parent) = parent.filter(|_| !is_inside && self.outside.len() < MAX_OUTSIDE)
            {
                self.outside.insert(format!("{} (by {})", process.name, parent.name));
            }
        }
    }

    /// Writes the observed processes and files into the report on the start.
    pub(super) fn write(mut self, report: &mut StartReport) {
        let mut bars: Vec<ProcessBar> = self.bars.into_values().collect();
        bars.sort_by_key(|bar| (bar.first_ns, bar.pid));
        self.timeline.unlisted = bars.len().saturating_sub(Timeline::MAX_PROCESSES) as u64;
        bars.truncate(Timeline::MAX_PROCESSES);
        self.timeline.processes = bars;
        self.timeline.ready_ns = report.ready_ns;
        report.timeline = Some(self.timeline);
        report.files = self.files.into_iter().collect();
        report.ignores_children = self.ignores_children;
        report.outside = self.outside.into_iter().collect();
    }
}

fn processors() -> u64 {
    std::thread::available_parallelism().map_or(0, |number| number.get() as u64)
}
