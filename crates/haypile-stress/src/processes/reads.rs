//! Operations that read the keys of all writers, keep values in place, and take a census.

use std::collections::HashSet;
use std::io;

use haypile::{Error, Event, Hit, OwnedPinned};
use rand::RngExt;

use super::checker::Before;
use super::record::{Name, Record};
use super::tally::count;
use super::thread::Thread;

/// The largest number of keys in one call of the cache (such as a read of several keys).
pub(super) const MOST_KEYS: usize = 8;

/// Of this number of chances, a thread that keeps all the values it may takes one to release a value.
const ONE_IS_RELEASED_IN: u64 = 64;

/// A value that a thread keeps pinned (read in place) in the cache.
pub(super) struct Pin {
    record: Record,
    kept: OwnedPinned,
}

impl Thread<'_> {
    /// Reads one or several keys of any writer, and checks the values.
    pub(super) fn get(&mut self) -> io::Result<()> {
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
                Some(Hit::new(None, None))
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

    /// Reads a value of a random key in place in the cache, and keeps it pinned.
    pub(super) fn pin(&mut self) -> io::Result<bool> {
        // Most values are kept for long, as by a program that shows pictures.
        let most = self.shared.plan.pins;
        if most > 0 && self.pins.len() >= most && !self.one_in(ONE_IS_RELEASED_IN) {
            return Ok(false);
        }
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
                return Ok(true);
            }
        };
        let is_right = self.judge(key, &before, kept.as_deref())?;
        if let Some(kept) = kept.filter(|_| is_right && most > 0) {
            let record = Record::parse(Name::Owned(key), &kept).expect("it was judged");
            self.pins.push_back(Pin { record, kept });
            if self.pins.len() > most {
                self.unpin();
            }
        }
        Ok(true)
    }

    pub(super) fn unpin(&mut self) {
        if let Some(pin) = self.pins.pop_front() {
            self.check_pin(&pin);
        }
    }

    /// Compares one of the values kept pinned in the cache, chosen at random, with the bytes that it must have.
    pub(super) fn check_a_pin(&mut self) {
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

    /// Lists and counts all entries of the cache, and checks the result.
    pub(super) fn census(&mut self) -> io::Result<()> {
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
        let mut listed = HashSet::new();
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
}
