//! Writing the keys that a thread owns.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use haypile::{Error, Result, SetOptions, Version, Written};
use rand::RngExt;

use super::ledger::{Entry, NEVER_US, State, now_us};
use super::process::Refused;
use super::reads::MOST_KEYS;
use super::record::{Name, Record};
use super::tally::count;
use super::thread::Thread;

/// The lives that some writes have.
const SHORTEST_LIFE_MS: u64 = 20;
const LONGEST_LIFE_MS: u64 = 2_000;

/// The bytes by which an entry exceeds its value at most.
const METADATA_BYTES: u64 = 160;

/// A write to an owned key that was noted as attempted.
struct Attempt {
    key: u64,
    record: Record,
    /// The entry before, to which a refusal returns.
    before: Entry,
    entry: Entry,
    life: Option<Duration>,
}

impl Thread<'_> {
    /// Writes keys that only this thread writes to the cache, by one of several kinds of calls
    /// (such as a conditional write).
    pub(super) fn set(&mut self) -> io::Result<()> {
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
        let from_us = life.map_or(NEVER_US, after);
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
                let until_us = life.map_or(NEVER_US, after);
                let entry =
                    Entry { expires_from_us: from_us, expires_until_us: until_us, ..*entry };
                self.shared.ledger.write(*key, entry.acknowledge())
            }
            Ok(other) => {
                let text = format!("key {key}, a write of which had the outcome {other:?}");
                if other == Written::Absent {
                    self.shared.lost(&text);
                } else {
                    self.shared.wrong(&text);
                }
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

    /// Whether an entry that only this thread writes may be missing from the cache, because it may
    /// have been evicted or expired.
    pub(super) fn may_be_gone(&self, entry: &Entry) -> bool {
        !self.shared.plan.keeps_all() || self.shared.checker.may_have_expired(entry)
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

    /// Deletes a key that only this thread writes.
    pub(super) fn delete(&mut self) -> io::Result<()> {
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

    /// Sets a new TTL for the cache entry of a key that only this thread writes.
    pub(super) fn touch(&mut self) -> io::Result<()> {
        let key = self.own_key();
        let before = self.shared.ledger.read(key)?;
        let life = self.one_in(2).then_some(Duration::from_millis(LONGEST_LIFE_MS));
        let from_us = life.map_or(NEVER_US, after);
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
                let until_us = life.map_or(NEVER_US, after);
                let entry =
                    Entry { expires_from_us: from_us, expires_until_us: until_us, ..before };
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
            let others: Vec<u64> =
                self.live.keys().copied().filter(|other| *other != key).collect();
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

    /// Records the length of the entry of a key that only this thread writes, or that there is no
    /// entry.
    pub(super) fn note_live(&mut self, key: u64, bytes: Option<usize>) {
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
