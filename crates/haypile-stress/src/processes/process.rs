//! One process of a test, with its threads.

use std::io::{self, Read};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use haypile::{Cache, Error};

use super::checker::{Checker, Judgement};
use super::driver::{audit, prepare};
use super::ledger::Ledger;
use super::lines::{self, Line};
use super::plan::{ELECTIONS, PLAN_VARIABLE, Plan};
use super::tally::{Counters, count};
use super::thread::Thread;
use crate::filler::mix;
use crate::target::{self, Target};

/// The time between two lines with counts.
const PERIOD: Duration = Duration::from_millis(50);

/// The findings of a kind that a process writes out; it counts the others.
const MOST_FINDINGS: usize = 10;

/// The open cache, the settings and the counters that all threads of one process of the stress test
/// share.
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) target: Target,
    pub(super) ledger: Ledger,
    pub(super) checker: Checker,
    pub(super) counters: Counters,
    pub(super) cache: Cache,
    /// For each key that all writers try to add, the hash of the value that was successfully added,
    /// plus 1; 0 if none was seen.
    pub(super) added: Vec<AtomicU64>,
    pub(super) computed: Vec<AtomicU64>,
    pub(super) is_over: AtomicBool,
    findings: Mutex<Vec<String>>,
}

/// The possible effect of an operation that the cache refused: nothing has changed, or the
/// operation may have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nothing has changed, as the documents say.
    NothingChanged,
    /// The operation may have happened or not.
    Unknown,
}

/// Performs the cache operations of one process of the stress test, until its standard input ends.
///
/// # Errors
///
/// A cache or a ledger that cannot be opened.
pub(crate) fn work(process: u64, life: u64) -> Result<()> {
    let plan = std::env::var(PLAN_VARIABLE).context("only a test starts such a process")?;
    let plan: Plan = serde_json::from_str(&plan).context("the plan of the test")?;
    let target = Target::new(&plan.url)?;
    let cache = Cache::new(target::open(target.url(), None, plan.seed)?);
    let elections = || (0..ELECTIONS).map(|_| AtomicU64::new(0)).collect();
    let shared = Shared {
        ledger: Ledger::open(&plan).context("cannot open the ledger")?,
        checker: Checker::new(&plan, &target, Some(process)),
        counters: Counters::default(),
        cache,
        added: elections(),
        computed: elections(),
        is_over: AtomicBool::new(false),
        findings: Mutex::default(),
        target,
        plan,
    };
    let plan = &shared.plan;
    if !shared.target.is_shared() {
        prepare(&shared.cache)?;
    }
    let running = AtomicU64::new(plan.threads);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The driver's end ends this process as well.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            shared.is_over.store(true, Ordering::Relaxed);
        });
        for thread in 0..plan.threads {
            let number = process * plan.threads + thread;
            let seed = mix(mix(plan.seed) ^ number) ^ life;
            let (shared, running) = (&shared, &running);
            scope.spawn(move || {
                let mut thread = Thread::new(shared, number, seed);
                if let Err(error) = thread.run() {
                    shared.finding(&format!("the ledger cannot be used: {error}"));
                }
                running.fetch_sub(1, Ordering::Release);
            });
        }
        while running.load(Ordering::Acquire) > 0 {
            thread::sleep(PERIOD);
            shared.report();
        }
    });
    if !shared.target.is_shared() {
        let findings = audit(plan, &shared.target, &shared.cache)?;
        for text in findings {
            shared.wrong(&text);
        }
    }
    shared.report();
    shared.cache.close()?;
    Ok(())
}

impl Shared {
    fn report(&self) {
        let _ = Line::Tally(self.counters.tally()).write();
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Prints a finding (a wrong answer of the cache) for the driver, once.
    pub(super) fn finding(&self, text: &str) {
        let mut findings = self.findings.lock().expect("no thread panics with it");
        if lines::is_news(&findings, text, MOST_FINDINGS) {
            findings.push(text.to_owned());
            let _ = Line::Finding(text.to_owned()).write();
        }
    }

    pub(super) fn wrong(&self, text: &str) {
        count(&self.counters.wrong);
        self.finding(&format!("wrong: {text}"));
    }

    pub(super) fn lost(&self, text: &str) {
        count(&self.counters.lost);
        self.finding(&format!("lost: {text}"));
    }

    /// Counts and reports a read whose value was wrong or lost.
    pub(super) fn note(&self, judgement: &Judgement) {
        match judgement {
            Judgement::Right => {}
            Judgement::Wrong(text) => self.wrong(text),
            Judgement::Lost(text) => self.lost(text),
        }
    }

    /// Counts an operation that the cache refused with this error; returns whether it may have had
    /// an effect.
    pub(super) fn refused(&self, error: &Error) -> Refused {
        match error {
            Error::Busy { .. } => {
                count(&self.counters.busy);
                if self.plan.denies_busy {
                    self.finding(&format!("denied: {error}"));
                }
                Refused::NothingChanged
            }
            Error::Full { .. } => {
                count(&self.counters.full);
                if self.plan.denies_full {
                    self.finding(&format!("denied: {error}"));
                }
                Refused::NothingChanged
            }
            _ => {
                count(&self.counters.failed);
                self.finding(&format!("failed: {error}"));
                Refused::Unknown
            }
        }
    }
}
