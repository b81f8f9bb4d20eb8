//! The state that all threads of a case share.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::plan::{Contestant, TorturePlan};
use super::role::Role;
use super::stage::Stage;
use super::tally::Tally;
use crate::measure::Watcher;

/// The number of processes that crash or hang after which a case is given up.
const GIVE_UP: u64 = 8;

pub(super) struct TestContext<'a> {
    pub(super) options: &'a TorturePlan,
    pub(super) contestant: &'a Contestant,
    pub(super) stage: Stage,
    /// The working directory of the torture case, which contains the cache.
    pub(super) place: PathBuf,
    pub(super) watcher: &'a dyn Watcher,
    pub(super) tally: Mutex<Tally>,
    /// The number of cache operations that the torture's writer processes reported as done.
    pub(super) operations: AtomicU64,
    pub(super) written_bytes: AtomicU64,
    /// Whether all processes of the torture case should end.
    pub(super) is_over: AtomicBool,
    /// Whether all processes of the torture case are being killed.
    pub(super) is_killing_all: AtomicBool,
    /// The number of writer processes that have opened the cache and finished checking it.
    pub(super) ready: AtomicUsize,
    /// Number of processes that were started.
    started: AtomicU64,
    /// The process ids of the writers, then of the readers; 0 where no process runs.
    pub(super) pids: Vec<AtomicI32>,
}

impl<'a> TestContext<'a> {
    pub(super) fn new(
        options: &'a TorturePlan,
        contestant: &'a Contestant,
        watcher: &'a dyn Watcher,
        stage: Stage,
        place: PathBuf,
    ) -> Self {
        Self {
            options,
            contestant,
            stage,
            place,
            watcher,
            tally: Mutex::default(),
            operations: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_killing_all: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            started: AtomicU64::new(0),
            pids: (0..options.writers + options.readers).map(|_| AtomicI32::new(0)).collect(),
        }
    }

    /// Returns the command that starts a process of the torture case (a test that kills processes
    /// of a cache) in a role, such as a writer.
    pub(super) fn command(&self, role: Role, seed: u64, numbers: &[(&str, u64)]) -> Command {
        let Stage { lengths, keys, delete, fetch, .. } = self.stage;
        let common = [
            ("capacity", self.options.capacity_bytes),
            ("keys", keys),
            ("writers", self.options.writers),
            ("common", lengths.common_bytes),
            ("longest", lengths.longest_bytes),
            ("delete", delete),
            ("fetch", fetch),
            ("leases", u64::from(self.options.leases)),
        ];
        let mut command = self.contestant.runner.command("run-torture");
        let started = self.started.fetch_add(1, Ordering::Relaxed);
        if let Some(boot) = started.checked_rem(self.options.boots) {
            command.env("HAYPILE_BOOT_ID", format!("boot {boot}"));
        }
        command.arg(role.name()).arg(&self.place).arg(seed.to_string());
        command.arg(self.contestant.subject.as_str());
        for (name, number) in common.iter().chain(numbers) {
            command.arg(format!("{name}={number}"));
        }
        command
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether all processes of the torture case should end, because the case is over or the user
    /// interrupts it.
    pub(super) fn ends(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || self.watcher.is_interrupted()
    }

    pub(super) fn crashed(&self, text: String) {
        let mut tally = self.tally.lock();
        tally.crashed += 1;
        tally.find(|| text);
        self.give_up(&tally);
    }

    pub(super) fn hung(&self, text: String) {
        let mut tally = self.tally.lock();
        tally.hung += 1;
        tally.find(|| text);
        self.give_up(&tally);
    }

    fn give_up(&self, tally: &Tally) {
        if tally.crashed + tally.hung >= GIVE_UP {
            self.end();
        }
    }

    /// Returns the number of processes of the torture case that crashed or hung.
    pub(super) fn broken(&self) -> u64 {
        let tally = self.tally.lock();
        tally.crashed + tally.hung
    }

    /// Whether as many processes crashed or hung as end the torture case early.
    pub(super) fn has_given_up(&self) -> bool {
        self.broken() >= GIVE_UP
    }
}
