//! Keys that all writers change: counters, values to compare and swap, elections.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use haypile::{Error, Written};
use rand::RngExt;

use super::ledger::{Count, Counted};
use super::plan::{ELECTIONS, SHARED_KEYS};
use super::process::Refused;
use super::record::{Name, Record};
use super::thread::Thread;

/// The life of a value that is computed again and again.
const SHORT_LIFE: Duration = Duration::from_millis(20);

impl Thread<'_> {
    /// Increments a counter that all writers share, and records the increment.
    pub(super) fn increment(&mut self) -> io::Result<()> {
        let number = self.random.random_range(0..SHARED_KEYS);
        let counted = Counted::Counter(number);
        let name = Name::Counter(number).key();
        let is_checked = self.one_in(16);
        let before = if is_checked { Some(self.shared.ledger.sum(counted)?) } else { None };
        let own = self.note_attempt(counted)?;
        match self.shared.cache.incr(&name, 1) {
            Ok(Some(count)) => {
                self.note_success(counted, own)?;
                if let Some(before) = before {
                    self.judge_count(counted, before.acknowledged + 1, count)?;
                }
            }
            Ok(None) => {
                self.note_failure(counted, own)?;
                if self.shared.plan.keeps_all() {
                    self.shared.lost(&format!("counter {number}"));
                } else {
                    self.recreate(&name, b"0");
                }
            }
            Err(error) => {
                if self.shared.refused(&error) == Refused::NothingChanged {
                    self.note_failure(counted, own)?;
                }
            }
        }
        Ok(())
    }

    /// Changes a value that all writers share by compare-and-swap, and records the change.
    pub(super) fn swap(&mut self) -> io::Result<()> {
        let number = self.random.random_range(0..SHARED_KEYS);
        let (counted, name) = (Counted::Swapped(number), Name::Swapped(number));
        let before = self.shared.ledger.sum(counted)?;
        let found = match self.shared.cache.get_versioned(name.key()) {
            Ok(found) => found,
            Err(Error::Unsupported { .. }) => return Ok(()),
            Err(error) => {
                self.shared.refused(&error);
                return Ok(());
            }
        };
        let Some((value, version)) = found else {
            if self.shared.plan.keeps_all() {
                self.shared.lost(&format!("{name:?}"));
            } else {
                self.recreate(&name.key(), &Record::shared(name, 0).to_vec());
            }
            return Ok(());
        };
        let record = match Record::parse(name, &value) {
            Ok(record) => record,
            Err(text) => {
                self.shared.wrong(&format!("{name:?}: {text}"));
                return Ok(());
            }
        };
        // Through levels, the value may be stale; its version decides.
        if self.shared.target.kinds().len() == 1 {
            self.judge_count(counted, before.acknowledged, record.sequence)?;
        }
        let own = self.note_attempt(counted)?;
        let next = Record::shared(name, record.sequence + 1).to_vec();
        match self.shared.cache.cas(name.key(), next, version) {
            Ok(Written::Stored) => self.note_success(counted, own)?,
            Ok(_) => self.note_failure(counted, own)?,
            Err(error) => {
                if self.shared.refused(&error) == Refused::NothingChanged {
                    self.note_failure(counted, own)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a value again that was evicted; another process may be faster.
    fn recreate(&self, name: &[u8], value: &[u8]) {
        if let Err(error) = self.shared.cache.add(name, value) {
            self.shared.refused(&error);
        }
    }

    fn note_attempt(&self, counted: Counted) -> io::Result<Count> {
        let own = self.shared.ledger.read_count(self.number, counted)?;
        let attempt = Count { attempted: own.attempted + 1, ..own };
        self.shared.ledger.write_count(self.number, counted, attempt)?;
        Ok(own)
    }

    fn note_success(&self, counted: Counted, own: Count) -> io::Result<()> {
        let done = Count { attempted: own.attempted + 1, acknowledged: own.acknowledged + 1 };
        self.shared.ledger.write_count(self.number, counted, done)
    }

    fn note_failure(&self, counted: Counted, own: Count) -> io::Result<()> {
        self.shared.ledger.write_count(self.number, counted, own)
    }

    /// Judges a count of all: what was acknowledged before is in it, and nothing that was not
    /// attempted.
    fn judge_count(&self, counted: Counted, least: u64, count: u64) -> io::Result<()> {
        let most = self.shared.ledger.sum(counted)?.attempted;
        let least = if self.shared.plan.keeps_all() { least } else { 0 };
        if count < least || count > most {
            self.shared.wrong(&format!("{counted:?} is {count}, and it is {least} to {most}"));
        }
        Ok(())
    }

    /// Adds a value under a key that all writers try to add: one of them succeeds, and its value
    /// stays.
    pub(super) fn add(&mut self) {
        let number = self.random.random_range(0..ELECTIONS);
        let name = Name::Added(number);
        let value = Record::shared(name, self.number).to_vec();
        let added = self.shared.cache.add(name.key(), &value);
        let found = match added.and_then(|added| Ok((added, self.shared.cache.get(name.key())?))) {
            Ok((_, None)) => None,
            Ok((is_mine, Some(found))) => {
                if is_mine && self.shared.plan.keeps_all() && found != value {
                    self.shared.wrong(&format!("{name:?} was added, and another one is there"));
                }
                Some(found)
            }
            Err(error) => {
                self.shared.refused(&error);
                return;
            }
        };
        self.judge_elected(name, number, found.as_deref());
    }

    /// Computes a value under a key that all writers compute, unless another writer has. Some of
    /// these values expire soon, so that threads and processes wait for each other repeatedly.
    pub(super) fn compute(&mut self) {
        let number = self.random.random_range(0..ELECTIONS);
        let name = Name::Computed(number);
        let record = Record::shared(name, self.number);
        let is_short_lived = number < ELECTIONS / 2;
        let life = is_short_lived.then_some(SHORT_LIFE);
        let pause = Duration::from_micros(self.random.random_range(0..1_000));
        let found = self.shared.cache.get_or_compute(name.key(), life, || {
            thread::sleep(pause);
            record.to_vec()
        });
        match found {
            Ok(found) if is_short_lived || !self.shared.plan.computes_once() => {
                if let Err(text) = Record::parse(name, &found) {
                    self.shared.wrong(&format!("{name:?}: {text}"));
                }
            }
            Ok(found) => self.judge_elected(name, number, Some(&found)),
            Err(error) => drop(self.shared.refused(&error)),
        }
    }

    /// Judges the value of an election: whole, and always the same where nothing is evicted.
    fn judge_elected(&self, name: Name, number: u64, found: Option<&[u8]>) {
        let keeps_all = self.shared.plan.keeps_all();
        let Some(found) = found else {
            if keeps_all {
                self.shared.lost(&format!("{name:?}"));
            }
            return;
        };
        let record = match Record::parse(name, found) {
            Ok(record) => record,
            Err(text) => return self.shared.wrong(&format!("{name:?}: {text}")),
        };
        let elected = match name {
            Name::Added(_) => &self.shared.added,
            _ => &self.shared.computed,
        };
        let place = &elected[usize::try_from(number).expect("there are few elections")];
        let winner = record.sequence + 1;
        let seen = place.compare_exchange(0, winner, Ordering::SeqCst, Ordering::SeqCst);
        if let Err(seen) = seen
            && seen != winner
            && keeps_all
        {
            let text = format!("{name:?} is of writer {}, and was of {}", winner - 1, seen - 1);
            self.shared.wrong(&text);
        }
    }
}
