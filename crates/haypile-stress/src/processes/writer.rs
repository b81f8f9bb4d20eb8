//! One thread of a process: it reads all keys, and writes those that it owns and those of all.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use haypile::{Error, Event, OwnedPinned, Result, SetOptions, Version, Written};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::checker::{Before, Judgement, may_have_expired};
use super::ledger::{Count, Counted, Entry, NEVER_US, State, now_us};
use super::plan::{ELECTIONS, OperationKind, SHARED_KEYS};
use super::record::{Name, Record};
use super::tally::count;
use super::worker::{Refused, Shared};

/// The most keys of one call.
const MOST_KEYS: usize = 8;

/// The lives that some writes have.
const SHORTEST_LIFE_MS: u64 = 20;
const LONGEST_LIFE_MS: u64 = 2_000;

/// The bytes by which an entry exceeds its value at most.
const METADATA_BYTES: u64 = 160;

/// A value that is kept in place.
struct Pin {
    record: Record,
    kept: OwnedPinned,
}

/// A write to an owned key that was noted as attempted.
struct Attempt {
    key: u64,
    record: Record,
    /// The entry before, to which a refusal returns.
    before: Entry,
    entry: Entry,
    life: Option<Duration>,
}

/// A thread.
pub(super) struct Worker<'a> {
    shared: &'a Shared,
    number: u64,
    random: ChaCha8Rng,
    /// The bytes of this thread's live entries, by key, and their sum.
    live: HashMap<u64, u64>,
    live_bytes: u64,
    pins: VecDeque<Pin>,
}

impl<'a> Worker<'a> {
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

    /// Performs operations until the test is over.
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
                let us = u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.shared.counters.longest_us.fetch_max(us, Ordering::Relaxed);
            }
        }
        while !self.pins.is_empty() {
            self.unpin();
        }
        Ok(())
    }

    fn owns_keys(&self) -> bool {
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

    /// Returns the entry of a key whose operation in progress was cut off: it has happened if its
    /// value was found, and will not happen any more otherwise.
    fn settle(&self, entry: &Entry, found: Option<Record>) -> Entry {
        let is_write_back = self.shared.target.is_write_back();
        match found {
            Some(record) if record.sequence == entry.attempted.sequence => entry.acknowledge(),
            // What waited to be written below died with its process.
            Some(record) if is_write_back => {
                let state = State { sequence: record.sequence, is_there: true };
                let entry = Entry { attempted: state, acknowledged: state, ..*entry };
                // The life of this value is not that of the latest.
                Entry { expires_from_us: 0, expires_until_us: NEVER_US, ..entry }
            }
            None if is_write_back || (entry.attempted != entry.acknowledged && !entry.attempted.is_there) => {
                let state = State { is_there: false, ..entry.attempted };
                Entry { attempted: state, acknowledged: state, ..*entry }
            }
            _ => Entry { attempted: entry.acknowledged, ..*entry },
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
            OperationKind::Get | OperationKind::Pin | OperationKind::Compute | OperationKind::Census
        );
        if !self.shared.plan.does(kind) || (writes && !self.owns_keys()) {
            return Ok(false);
        }
        match kind {
            OperationKind::Get => self.get()?,
            OperationKind::Set => self.set()?,
            OperationKind::Delete => self.delete()?,
            OperationKind::Touch => self.touch()?,
            OperationKind::Pin => self.pin()?,
            OperationKind::Count => self.increment()?,
            OperationKind::Cas => self.swap()?,
            OperationKind::Add => self.add(),
            OperationKind::Compute => self.compute(),
            OperationKind::Census => self.census()?,
        }
        Ok(true)
    }

    /// Returns true once in `number` draws.
    fn one_in(&mut self, number: u64) -> bool {
        self.random.random_range(0..number) == 0
    }

    /// Returns a number below `end`, small ones more often.
    fn skewed(&mut self, end: u64) -> u64 {
        let mut draw = || self.random.random_range(0..end);
        draw().min(draw()).min(draw())
    }

    fn owned(&self, index: u64) -> u64 {
        index * self.shared.plan.writing_threads() + self.number
    }

    fn own_key(&mut self) -> u64 {
        let index = self.skewed(self.shared.plan.keys);
        self.owned(index)
    }

    /// Returns a key of any writer.
    fn any_key(&mut self) -> u64 {
        let owner = self.random.random_range(0..self.shared.plan.writing_threads());
        let index = self.skewed(self.shared.plan.keys);
        index * self.shared.plan.writing_threads() + owner
    }

    fn record(&self, key: u64, sequence: u64) -> Record {
        let plan = &self.shared.plan;
        Record::owned(key, sequence, plan.least_value_bytes, plan.most_value_bytes)
    }

    fn judge(&self, key: u64, before: &Before, found: Option<&[u8]>) -> io::Result<bool> {
        let shared = self.shared;
        count(&shared.counters.gets);
        if before.entry.acknowledged.is_there && !may_have_expired(&before.entry) {
            count(&shared.counters.expected_hits);
            if found.is_some() {
                count(&shared.counters.hits);
            }
        }
        let judgement = shared.checker.judge(&shared.ledger, key, before, found)?;
        shared.note(&judgement);
        Ok(judgement == Judgement::Right)
    }

    /// Reads one key or several, of any writer.
    fn get(&mut self) -> io::Result<()> {
        let shared = self.shared;
        if self.one_in(10) {
            let keys: Vec<u64> = (0..MOST_KEYS).map(|_| self.any_key()).collect();
            let names: Vec<Vec<u8>> = keys.iter().map(|key| Name::Owned(*key).key()).collect();
            let before: Vec<Before> = keys
                .iter()
                .map(|key| shared.checker.before(&shared.ledger, *key))
                .collect::<io::Result<_>>()?;
            match shared.cache.get_many(&names) {
                Err(error) => drop(shared.refused(&error)),
                Ok(found) => {
                    for ((key, before), found) in keys.iter().zip(&before).zip(&found) {
                        self.judge(*key, before, found.as_deref())?;
                    }
                }
            }
            return Ok(());
        }
        let key = self.any_key();
        let name = Name::Owned(key).key();
        let before = shared.checker.before(&shared.ledger, key)?;
        let mut value = Vec::new();
        let found = match self.random.random_range(0..4) {
            0 => shared.cache.store().get_versioned_into(&name, &mut value),
            1 => shared.cache.store().get_into(&name, &mut value),
            2 => shared.cache.get(&name).map(|found| {
                value = found?;
                Some(haypile::Hit::new(None, None))
            }),
            _ => shared.cache.get_pinned(&name).map(|found| {
                let found = found?;
                value.extend_from_slice(&found);
                Some(found.hit())
            }),
        };
        match found {
            Err(error) => drop(shared.refused(&error)),
            Ok(hit) => drop(self.judge(key, &before, hit.map(|_| value.as_slice()))?),
        }
        Ok(())
    }

    /// Writes own keys, in one of several ways.
    fn set(&mut self) -> io::Result<()> {
        match self.random.random_range(0..12) {
            0 => self.set_many(),
            1 => self.compare_and_swap_own(),
            way => {
                let key = self.own_key();
                if !self.make_room(key)? {
                    return Ok(());
                }
                let attempt = self.attempt(key)?;
                let options = attempt.options();
                let written = if way == 2 {
                    self.reserve(&attempt, options)
                } else {
                    let value = attempt.record.to_vec();
                    self.shared.cache.write(Name::Owned(key).key(), value, options)
                };
                self.conclude(&attempt, written)
            }
        }
    }

    fn reserve(&mut self, attempt: &Attempt, options: SetOptions) -> Result<Written> {
        let name = Name::Owned(attempt.key).key();
        let cache = &self.shared.cache;
        let mut reservation = cache.reserve_owned(name, attempt.record.bytes, options)?;
        attempt.record.write(reservation.buffer());
        reservation.commit()
    }

    /// Notes a write of an own key as attempted.
    fn attempt(&mut self, key: u64) -> io::Result<Attempt> {
        let before = self.shared.ledger.read(key)?;
        let record = self.record(key, before.next_sequence());
        let life = if self.one_in(16) {
            let ms = self.random.random_range(SHORTEST_LIFE_MS..=LONGEST_LIFE_MS);
            Some(Duration::from_millis(ms))
        } else {
            None
        };
        let from_us = life.map_or(NEVER_US, |life| after(life));
        let entry = Entry {
            attempted: State { sequence: record.sequence, is_there: true },
            expires_from_us: before.expires_from_us.min(from_us),
            expires_until_us: NEVER_US,
            ..before
        };
        self.shared.ledger.write(key, entry)?;
        self.note_live(key, Some(record.bytes));
        Ok(Attempt { key, record, before, entry, life })
    }

    /// Notes the outcome of a write.
    fn conclude(&mut self, attempt: &Attempt, written: Result<Written>) -> io::Result<()> {
        let Attempt { key, before, entry, life, .. } = attempt;
        match written {
            Ok(Written::Stored) => {
                count(&self.shared.counters.sets);
                let from_us = life.map_or(NEVER_US, |_| entry.expires_from_us);
                let until_us = life.map_or(NEVER_US, |life| after(life));
                let entry = Entry { expires_from_us: from_us, expires_until_us: until_us, ..*entry };
                self.shared.ledger.write(*key, entry.acknowledge())
            }
            Ok(other) => {
                self.shared.wrong(&format!("a set of key {key} had the outcome {other:?}"));
                self.shared.ledger.write(*key, *before)
            }
            Err(error) => {
                if self.shared.refused(&error) == Refused::Unknown {
                    return Ok(());
                }
                let state = before.acknowledged;
                let bytes = state.is_there.then(|| self.record(*key, state.sequence).bytes);
                self.note_live(*key, bytes);
                self.shared.ledger.write(*key, *before)
            }
        }
    }

    /// Writes several own keys at once, some of them twice.
    fn set_many(&mut self) -> io::Result<()> {
        let mut attempts: Vec<Attempt> = Vec::new();
        for _ in 0..self.random.random_range(1..=MOST_KEYS) {
            let key = self.own_key();
            // Deleting another key for its room could meet one of this batch.
            if self.fits(key)? {
                attempts.push(self.attempt(key)?);
            }
        }
        let written: Vec<(Vec<u8>, Vec<u8>, SetOptions)> = attempts
            .iter()
            .map(|attempt| {
                let name = Name::Owned(attempt.key).key();
                (name, attempt.record.to_vec(), attempt.options())
            })
            .collect();
        let entries: Vec<(&[u8], &[u8], SetOptions)> = written
            .iter()
            .map(|(key, value, options)| (key.as_slice(), value.as_slice(), *options))
            .collect();
        let results = self.shared.cache.write_many(&entries);
        // The first refusal of a key would hide that a later write of it was stored.
        let mut last: HashMap<u64, usize> = HashMap::new();
        for (position, (attempt, result)) in attempts.iter().zip(&results).enumerate() {
            if result.is_ok() {
                last.insert(attempt.key, position);
            } else {
                last.entry(attempt.key).or_insert(position);
            }
        }
        for (position, (attempt, result)) in attempts.iter().zip(results).enumerate() {
            match result {
                Err(error) if last[&attempt.key] != position => {
                    self.shared.refused(&error);
                }
                Ok(_) if last[&attempt.key] != position => count(&self.shared.counters.sets),
                result => self.conclude(attempt, result)?,
            }
        }
        Ok(())
    }

    /// Reads an own key with its version, and writes the next value if it is still that one.
    fn compare_and_swap_own(&mut self) -> io::Result<()> {
        let key = self.own_key();
        let Some((version, entry)) = self.read_version(key)? else { return Ok(()) };
        if !self.make_room(key)? {
            return Ok(());
        }
        let attempt = self.attempt(key)?;
        let options = SetOptions::cas(version).with_ttl(attempt.life);
        let value = attempt.record.to_vec();
        match self.shared.cache.write(Name::Owned(key).key(), value, options) {
            Ok(Written::Absent) if self.may_be_gone(&entry) => {
                self.shared.ledger.write(key, attempt.before)
            }
            written => self.conclude(&attempt, written),
        }
    }

    /// Whether an own entry that was just read may be gone.
    fn may_be_gone(&self, entry: &Entry) -> bool {
        !self.shared.plan.keeps_all() || may_have_expired(entry)
    }

    /// Reads an own key with its version; `None` without one.
    fn read_version(&mut self, key: u64) -> io::Result<Option<(Version, Entry)>> {
        let before = self.shared.checker.before(&self.shared.ledger, key)?;
        match self.shared.cache.get_versioned(Name::Owned(key).key()) {
            Err(Error::Unsupported { .. }) => Ok(None),
            Err(error) => {
                self.shared.refused(&error);
                Ok(None)
            }
            Ok(found) => {
                let value = found.as_ref().map(|(value, _)| value.as_slice());
                let is_right = self.judge(key, &before, value)?;
                Ok(found.filter(|_| is_right).map(|(_, version)| (version, before.entry)))
            }
        }
    }

    /// Deletes an own key.
    fn delete(&mut self) -> io::Result<()> {
        let key = self.own_key();
        self.delete_key(key)
    }

    fn delete_key(&mut self, key: u64) -> io::Result<()> {
        let version = if self.one_in(3) { self.read_version(key)? } else { None };
        let before = self.shared.ledger.read(key)?;
        let attempted = State { sequence: before.next_sequence(), is_there: false };
        let entry = Entry { attempted, expires_until_us: NEVER_US, ..before };
        self.shared.ledger.write(key, entry)?;
        let name = Name::Owned(key).key();
        let deleted = match version {
            Some((version, _)) => self.shared.cache.delete_version(name, version),
            None => self.shared.cache.delete(name),
        };
        let was_there = before.acknowledged.is_there;
        match deleted {
            Ok(true) if !was_there && before.attempted == before.acknowledged => {
                self.shared.wrong(&format!("own key {key} was deleted, and was not there"));
            }
            Ok(false) if was_there && !self.may_be_gone(&before) => {
                self.shared.lost(&format!("own key {key}, which was to be deleted: {before:?}"));
            }
            Ok(_) => {}
            Err(error) => {
                return match self.shared.refused(&error) {
                    Refused::NothingChanged => self.shared.ledger.write(key, before),
                    Refused::Unknown => Ok(()),
                };
            }
        }
        let gone = Entry { expires_from_us: NEVER_US, expires_until_us: NEVER_US, ..entry };
        self.shared.ledger.write(key, gone.acknowledge())?;
        self.note_live(key, None);
        Ok(())
    }

    /// Gives an own key another life.
    fn touch(&mut self) -> io::Result<()> {
        let key = self.own_key();
        let before = self.shared.ledger.read(key)?;
        let life = self.one_in(2).then_some(Duration::from_millis(LONGEST_LIFE_MS));
        let from_us = life.map_or(NEVER_US, |life| after(life));
        let open = Entry {
            expires_from_us: before.expires_from_us.min(from_us),
            expires_until_us: NEVER_US,
            ..before
        };
        self.shared.ledger.write(key, open)?;
        match self.shared.cache.touch(Name::Owned(key).key(), life) {
            Ok(true) => {
                if !before.acknowledged.is_there && before.attempted == before.acknowledged {
                    self.shared.wrong(&format!("own key {key} was touched, and was not there"));
                }
                let until_us = life.map_or(NEVER_US, |life| after(life));
                let entry = Entry { expires_from_us: from_us, expires_until_us: until_us, ..before };
                self.shared.ledger.write(key, entry)
            }
            Ok(false) => {
                if before.acknowledged.is_there && !self.may_be_gone(&before) {
                    self.shared.lost(&format!("own key {key}, which was touched: {before:?}"));
                }
                self.shared.ledger.write(key, before)
            }
            Err(error) => match self.shared.refused(&error) {
                Refused::NothingChanged => self.shared.ledger.write(key, before),
                Refused::Unknown => Ok(()),
            },
        }
    }

    /// Reads a value in place and keeps it.
    fn pin(&mut self) -> io::Result<()> {
        let key = self.any_key();
        let name = Name::Owned(key).key();
        let before = self.shared.checker.before(&self.shared.ledger, key)?;
        let kept = if self.one_in(2) {
            self.shared.cache.get_pinned_owned(name)
        } else {
            self.shared.cache.get_in_place_owned(name)
        };
        let kept = match kept {
            Ok(kept) => kept,
            Err(error) => {
                self.shared.refused(&error);
                return Ok(());
            }
        };
        let is_right = self.judge(key, &before, kept.as_deref())?;
        if let Some(kept) = kept.filter(|_| is_right && self.shared.plan.pins > 0) {
            let record = Record::parse(Name::Owned(key), &kept).expect("it was judged");
            self.pins.push_back(Pin { record, kept });
            if self.pins.len() > self.shared.plan.pins {
                self.unpin();
            }
        }
        Ok(())
    }

    fn unpin(&mut self) {
        if let Some(pin) = self.pins.pop_front() {
            self.check_pin(&pin);
        }
    }

    /// Compares one of the kept values, now and then.
    fn check_a_pin(&mut self) {
        if !self.pins.is_empty() && self.one_in(4) {
            let which = self.random.random_range(0..self.pins.len());
            self.check_pin(&self.pins[which]);
        }
    }

    fn check_pin(&self, pin: &Pin) {
        count(&self.shared.counters.pins_compared);
        match Record::parse(pin.record.name, &pin.kept) {
            Ok(record) if record == pin.record => {}
            other => {
                let text = format!("{:?}, kept in place, became {other:?}", pin.record);
                self.shared.wrong(&text);
            }
        }
    }

    /// Increments a counter of all.
    fn increment(&mut self) -> io::Result<()> {
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

    /// Raises a value of all by compare-and-swap.
    fn swap(&mut self) -> io::Result<()> {
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
        let done = Count {
            attempted: own.attempted + 1,
            acknowledged: own.acknowledged + 1,
        };
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

    /// Adds a value under a key of all: one of all writers succeeds, and its value stays.
    fn add(&mut self) {
        let number = self.random.random_range(0..ELECTIONS);
        let name = Name::Added(number);
        let value = Record::shared(name, self.number).to_vec();
        let added = self.shared.cache.add(name.key(), &value);
        let found = match added.and_then(|added| Ok((added, self.shared.cache.get(name.key())?))) {
            Ok((true, None)) | Ok((false, None)) => None,
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

    /// Computes a value under a key of all, unless another writer has.
    fn compute(&mut self) {
        let number = self.random.random_range(0..ELECTIONS);
        let name = Name::Computed(number);
        let value = Record::shared(name, self.number).to_vec();
        match self.shared.cache.get_or_compute(name.key(), None, || value) {
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

    /// Lists and counts all entries.
    fn census(&mut self) -> io::Result<()> {
        let shared = self.shared;
        let counted = shared.cache.len().and_then(|_| shared.cache.stats());
        match counted {
            Ok(stats) => {
                let evictions = stats[Event::Eviction];
                if shared.plan.keeps_all() && evictions > 0 {
                    shared.lost(&format!("this process has evicted {evictions} entries"));
                }
            }
            Err(Error::Unsupported { .. }) => {}
            Err(error) => drop(shared.refused(&error)),
        }
        if !self.owns_keys() || !self.one_in(8) {
            return Ok(());
        }
        let mut listed = std::collections::HashSet::new();
        for key in shared.cache.keys() {
            match key {
                Ok(key) => drop(listed.insert(key)),
                Err(error) => {
                    if !matches!(error, Error::Unsupported { .. }) {
                        shared.refused(&error);
                    }
                    return Ok(());
                }
            }
        }
        for index in 0..shared.plan.keys {
            let key = self.owned(index);
            let entry = shared.ledger.read(key)?;
            let is_listed = listed.contains(&Name::Owned(key).key());
            let state = entry.acknowledged;
            if entry.attempted != state {
                continue;
            }
            if is_listed && !state.is_there {
                shared.wrong(&format!("own key {key} is listed, and was deleted: {entry:?}"));
            }
            if !is_listed && state.is_there && !self.may_be_gone(&entry) {
                shared.lost(&format!("own key {key}, which is not listed: {entry:?}"));
            }
        }
        Ok(())
    }

    /// Whether the next value of an own key fits this thread's part of the bound on live entries.
    fn fits(&self, key: u64) -> io::Result<bool> {
        let Some(budget_bytes) = self.shared.plan.budget_bytes() else { return Ok(true) };
        let entry = self.shared.ledger.read(key)?;
        let new_bytes = self.record(key, entry.next_sequence()).bytes as u64 + METADATA_BYTES;
        let old_bytes = self.live.get(&key).copied().unwrap_or(0);
        Ok(self.live_bytes - old_bytes + new_bytes <= budget_bytes)
    }

    /// Deletes other own entries until the next value of a key fits; returns whether it does.
    fn make_room(&mut self, key: u64) -> io::Result<bool> {
        while !self.fits(key)? {
            let others: Vec<u64> = self.live.keys().copied().filter(|other| *other != key).collect();
            if others.is_empty() {
                return Ok(false);
            }
            let other = others[self.random.random_range(0..others.len())];
            self.delete_key(other)?;
            if self.live.contains_key(&other) {
                // The deletion was refused.
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes the length of an own entry, or that there is none.
    fn note_live(&mut self, key: u64, bytes: Option<usize>) {
        let bytes = bytes.map(|bytes| bytes as u64 + METADATA_BYTES);
        let before = match bytes {
            Some(bytes) => self.live.insert(key, bytes),
            None => self.live.remove(&key),
        };
        self.live_bytes = self.live_bytes - before.unwrap_or(0) + bytes.unwrap_or(0);
    }
}

impl Attempt {
    fn options(&self) -> SetOptions {
        SetOptions::set().with_ttl(self.life)
    }
}

/// Returns the point in time after a life that begins now.
fn after(life: Duration) -> u64 {
    now_us() + u64::try_from(life.as_micros()).unwrap_or(u64::MAX / 2)
}
