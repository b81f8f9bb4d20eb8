//! One thread of a process: it reads all keys, and writes those that it owns and those that all
//! writers share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::checker::{Before, Judgement};
use super::ledger::{Entry, NEVER_US, State};
use super::plan::OperationKind;
use super::process::Shared;
use super::reads::Pin;
use super::record::{Name, Record};
use super::tally::count;

/// The time that no operation takes on any machine, unless it waits for what does not come: computations
/// wait for 30 s.
const PATIENCE: Duration = Duration::from_secs(20);

/// One thread of a process of the stress test, which performs random operations on the cache.
pub(super) struct Thread<'a> {
    pub(super) shared: &'a Shared,
    pub(super) number: u64,
    pub(super) random: ChaCha8Rng,
    /// The size in bytes of each live entry that this thread wrote, by key; `live_bytes` is their sum.
    pub(super) live: HashMap<u64, u64>,
    pub(super) live_bytes: u64,
    pub(super) pins: VecDeque<Pin>,
}

impl<'a> Thread<'a> {
    pub(super) fn new(shared: &'a Shared, number: u64, seed: u64) -> Self {
        Self {
            shared,
            number,
            random: ChaCha8Rng::seed_from_u64(seed),
            live: HashMap::new(),
            live_bytes: 0,
            pins: VecDeque::new(),
        }
    }

    /// Performs random operations on the cache until the test is over.
    ///
    /// # Errors
    ///
    /// Those of the ledger.
    pub(super) fn run(&mut self) -> io::Result<()> {
        self.audit()?;
        while !self.shared.is_over() {
            let begin = Instant::now();
            if self.operate()? {
                count(&self.shared.counters.operations);
                let elapsed = begin.elapsed();
                if elapsed > PATIENCE && self.shared.plan.stops == 0 {
                    self.shared.finding(&format!("slow: an operation took {elapsed:?}"));
                }
                let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
                self.shared.counters.longest_us.fetch_max(us, Ordering::Relaxed);
            }
        }
        while !self.pins.is_empty() {
            self.unpin();
        }
        Ok(())
    }

    pub(super) fn owns_keys(&self) -> bool {
        self.number < self.shared.plan.writing_threads()
    }

    /// Reads all keys that this thread owns, and settles what a kill has left open.
    fn audit(&mut self) -> io::Result<()> {
        if !self.owns_keys() {
            return Ok(());
        }
        for index in 0..self.shared.plan.keys {
            let key = self.owned(index);
            let before = self.shared.checker.before(&self.shared.ledger, key)?;
            let found = match self.shared.cache.get(Name::Owned(key).key()) {
                Ok(found) => found,
                Err(error) => {
                    self.shared.refused(&error);
                    continue;
                }
            };
            // Writes that a killed process had deferred are lost, so that older values are right.
            if !self.shared.target.is_write_back() {
                self.judge(key, &before, found.as_deref())?;
            }
            let record = found.and_then(|value| Record::parse(Name::Owned(key), &value).ok());
            let entry = self.settle(&before.entry, record);
            self.shared.ledger.write(key, entry)?;
            if entry.acknowledged.is_there {
                self.note_live(key, Some(self.record(key, entry.acknowledged.sequence).bytes));
            }
        }
        Ok(())
    }

    /// Returns the entry of a key whose operations in progress were cut off by a kill, as they turned
    /// out: what was found is what happened last, and nothing else will happen any more.
    fn settle(&self, entry: &Entry, found: Option<Record>) -> Entry {
        let (attempted, acknowledged) = (entry.attempted, entry.acknowledged);
        let settled = |state| Entry { attempted: state, acknowledged: state, ..*entry };
        let is_write_back = self.shared.target.is_write_back();
        match found.map(|record| record.sequence) {
            Some(sequence) if sequence == attempted.sequence => entry.acknowledge(),
            // One of several writes of the key in one call, or an older value that uncovers a deferred
            // write that was lost. Its life is not that of the latest.
            Some(sequence) if sequence > acknowledged.sequence || is_write_back => {
                let entry = settled(State { sequence, is_there: true });
                Entry { expires_from_us: 0, expires_until_us: NEVER_US, ..entry }
            }
            Some(_) => settled(acknowledged),
            // A deletion happened, or what was there has been evicted or has expired.
            None if attempted != acknowledged || is_write_back => {
                settled(State { is_there: false, ..attempted })
            }
            None => *entry,
        }
    }

    /// Performs one operation; returns whether there was one.
    fn operate(&mut self) -> io::Result<bool> {
        self.check_a_pin();
        let kind = match self.random.random_range(0..1_000) {
            0..450 => OperationKind::Get,
            450..800 => OperationKind::Set,
            800..840 => OperationKind::Delete,
            840..860 => OperationKind::Touch,
            860..910 => OperationKind::Pin,
            910..945 => OperationKind::Count,
            945..970 => OperationKind::Cas,
            970..983 => OperationKind::Add,
            983..996 => OperationKind::Compute,
            _ => OperationKind::Census,
        };
        let writes = !matches!(
            kind,
            OperationKind::Get
                | OperationKind::Pin
                | OperationKind::Compute
                | OperationKind::Census
        );
        if !self.shared.plan.does(kind) || (writes && !self.owns_keys()) {
            return Ok(false);
        }
        match kind {
            OperationKind::Get => self.get()?,
            OperationKind::Set => self.set()?,
            OperationKind::Delete => self.delete()?,
            OperationKind::Touch => self.touch()?,
            OperationKind::Pin => return self.pin(),
            OperationKind::Count => self.increment()?,
            OperationKind::Cas => self.swap()?,
            OperationKind::Add => self.add(),
            OperationKind::Compute => self.compute(),
            OperationKind::Census => self.census()?,
        }
        Ok(true)
    }

    /// Returns `true` at random, with a probability of 1 in `number`.
    pub(super) fn one_in(&mut self, number: u64) -> bool {
        self.random.random_range(0..number) == 0
    }

    /// Returns a number below `end`, small ones more often.
    fn skewed(&mut self, end: u64) -> u64 {
        let mut draw = || self.random.random_range(0..end);
        draw().min(draw()).min(draw())
    }

    pub(super) fn owned(&self, index: u64) -> u64 {
        index * self.shared.plan.writing_threads() + self.number
    }

    pub(super) fn own_key(&mut self) -> u64 {
        let index = self.skewed(self.shared.plan.keys);
        self.owned(index)
    }

    /// Returns a random key among those of all writers.
    pub(super) fn any_key(&mut self) -> u64 {
        let owner = self.random.random_range(0..self.shared.plan.writing_threads());
        let index = self.skewed(self.shared.plan.keys);
        index * self.shared.plan.writing_threads() + owner
    }

    pub(super) fn record(&self, key: u64, sequence: u64) -> Record {
        let plan = &self.shared.plan;
        Record::owned(key, sequence, plan.least_value_bytes, plan.most_value_bytes)
    }

    pub(super) fn judge(
        &self,
        key: u64,
        before: &Before,
        found: Option<&[u8]>,
    ) -> io::Result<bool> {
        let shared = self.shared;
        count(&shared.counters.gets);
        if before.entry.acknowledged.is_there && !shared.checker.may_have_expired(&before.entry) {
            count(&shared.counters.expected_hits);
            if found.is_some() {
                count(&shared.counters.hits);
            }
        }
        let judgement = shared.checker.judge(&shared.ledger, key, before, found)?;
        shared.note(&judgement);
        Ok(judgement == Judgement::Right)
    }
}
