//! Steps that write, delete and count entries.

use std::rc::Rc;

use haypile::{Error, Event, OwnedReservation, Result, SetOptions, Ttl, WriteMode, Written};

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::model::Presence;
use super::operation::{Condition, KnownVersion, Write, WriteForm};
use super::reads::kind_of;
use super::run::{At, Run};
use super::time::Moment;
use super::value::describe;
use super::versions::Chosen;
use crate::target::Kind;

/// The most reservations that are kept at once.
const MOST_RESERVATIONS: usize = 3;

/// A reserved write (space that `reserve` returned) that a later step commits or drops.
pub(super) struct KeptReservation {
    at: At,
    write: Prepared,
    reservation: OwnedReservation,
}

/// A write to the cache whose random value and options have been decided.
#[derive(Clone)]
pub(super) struct Prepared {
    key: Key,
    bytes: Vec<u8>,
    value: Rc<[u8]>,
    options: SetOptions,
    /// The write whose version a compare-and-swap names.
    expected_write: Option<u64>,
}

impl Run {
    fn prepare(&self, at: At, write: &Write) -> Prepared {
        let (mut options, mut expected_write) = (SetOptions::set(), None);
        match write.condition {
            Condition::None => {}
            Condition::Add => options = SetOptions::add(),
            Condition::Replace => options = SetOptions::replace(),
            Condition::Cas(known) => {
                let Chosen { version, write: of } =
                    self.tenants[at.tenant].versions.choose(write.key, known);
                (options, expected_write) = (SetOptions::cas(version), of);
            }
        }
        Prepared {
            key: write.key,
            bytes: write.key.bytes(),
            value: write.value.build(),
            options: options.with_ttl(write.ttl),
            expected_write,
        }
    }

    pub(super) fn write(&mut self, at: At, write: &Write, form: WriteForm) -> Checked<String> {
        let cache = self.cache(at);
        let prepared = self.prepare(at, write);
        let Prepared { bytes, value, options, .. } = &prepared;
        if form == WriteForm::Set {
            let (written, now) = self.time.of(|| cache.write(bytes, value, *options));
            return self.judge_write(at, &prepared, written, now);
        }
        let (reserved, _) = self.time.of(|| cache.reserve_owned(bytes, value.len(), *options));
        let mut reservation = match reserved {
            Ok(reservation) => reservation,
            Err(error) => return self.refused_write(at, &prepared, &error),
        };
        reservation.buffer().copy_from_slice(value);
        match form {
            WriteForm::Abandon => drop(reservation),
            WriteForm::Keep => {
                self.reservations.push_back(KeptReservation { at, write: prepared, reservation });
                if self.reservations.len() > MOST_RESERVATIONS {
                    self.reservations.pop_front();
                }
            }
            WriteForm::Reserve | WriteForm::Set => {
                let (written, now) = self.time.of(|| reservation.commit());
                return self.judge_write(at, &prepared, written, now);
            }
        }
        Ok("reserved".to_owned())
    }

    pub(super) fn write_many(&mut self, at: At, writes: &[Write]) -> Checked<String> {
        let cache = self.cache(at);
        let prepared: Vec<Prepared> = writes.iter().map(|write| self.prepare(at, write)).collect();
        let entries: Vec<(&[u8], &[u8], SetOptions)> = prepared
            .iter()
            .map(|write| (write.bytes.as_slice(), &*write.value, write.options))
            .collect();
        let (written, now) = self.time.of(|| cache.write_many(&entries));
        if written.len() != writes.len() {
            return wrong!(-, "set_many of {} had {} results", writes.len(), written.len());
        }
        let mut outcomes = Vec::new();
        for (write, written) in prepared.iter().zip(written) {
            outcomes.push(self.judge_write(at, write, written, now)?);
        }
        Ok(outcomes.join(", "))
    }

    /// Commits or drops the reserved write (space that `reserve` returned) that has been kept
    /// longest.
    pub(super) fn commit(&mut self, is_dropped: bool) -> Checked<String> {
        let Some(kept) = self.reservations.pop_front() else {
            return Ok("none is kept".to_owned());
        };
        let KeptReservation { at, write, reservation } = kept;
        if is_dropped {
            return Ok(format!("dropped that of {}", write.key));
        }
        let (written, now) = self.time.of(|| reservation.commit());
        let outcome = self.judge_write(at, &write, written, now)?;
        Ok(format!("{} = {}: {outcome}", write.key, describe(&write.value)))
    }

    /// Commits all reserved writes after their cache was closed, and checks that they fail.
    pub(super) fn commit_to_closed(&mut self) -> Checked {
        for KeptReservation { write, reservation, .. } in self.reservations.drain(..) {
            match reservation.commit() {
                Err(Error::Closed { .. }) => {}
                other => return wrong!(write.key, "committed to a closed cache: {other:?}"),
            }
        }
        Ok(())
    }

    /// Judges the outcome of a write, and has the model do the same.
    fn judge_write(
        &mut self,
        at: At,
        write: &Prepared,
        written: Result<Written>,
        now: Moment,
    ) -> Checked<String> {
        let written = match written {
            Ok(written) => written,
            Err(error) => return self.refused_write(at, write, &error),
        };
        let Prepared { key, value, options, expected_write, .. } = write;
        let key = *key;
        self.judge_acceptance(at, key, Some(value.len()), Some(options.ttl))?;
        if matches!(options.mode, WriteMode::Cas(_)) && !self.promises.has_versions() {
            return wrong!(key, "a store without versions compares them: {written:?}");
        }
        let model = self.model(at);
        let presence = model.presence(key, now);
        let is_current = model.get(key).is_some_and(|entry| Some(entry.write) == *expected_write);
        let is_right = match (options.mode, written) {
            (WriteMode::Set, Written::Stored) => true,
            (WriteMode::Add, Written::Stored)
            | (WriteMode::Replace | WriteMode::Cas(_), Written::Absent) => presence.may_be_absent(),
            (WriteMode::Add, Written::Exists) | (WriteMode::Replace, Written::Stored) => {
                presence.may_be_there()
            }
            (WriteMode::Cas(_), Written::Stored) => presence.may_be_there() && is_current,
            (WriteMode::Cas(_), Written::Changed) => presence.may_be_there() && !is_current,
            _ => false,
        };
        if !is_right {
            return wrong!(
                key,
                "{:?} had the outcome {written:?}; the entry's presence is {presence:?}, and its \
                 version is {}the one that was named",
                options.mode,
                if is_current { "" } else { "not " },
            );
        }
        match written {
            Written::Stored => {
                let expiry = self.expiry(now, options.ttl);
                self.counts(at).add(Event::Set);
                self.tally.stored += 1;
                self.stored(at, key, Rc::clone(value), expiry);
            }
            Written::Absent => {
                self.counts(at).add(Event::Unmet);
                self.model(at).judge_presence(key, false, now)?;
            }
            _ => {
                self.counts(at).add(Event::Unmet);
                self.seen(at, key);
            }
        }
        Ok(format!("{written:?}"))
    }

    fn refused_write(&mut self, at: At, write: &Prepared, error: &Error) -> Checked<String> {
        let is_cas = matches!(write.options.mode, WriteMode::Cas(_));
        if is_cas && !self.promises.has_versions() && matches!(error, Error::Unsupported { .. }) {
            return Ok("unsupported".to_owned());
        }
        let (bytes, ttl) = (Some(write.value.len()), Some(write.options.ttl));
        self.judge_refusal(at, write.key, bytes, ttl, error)?;
        Ok(format!("refused: {}", kind_of(error)))
    }

    pub(super) fn delete(&mut self, at: At, key: Key) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let (deleted, now) = self.time.of(|| cache.delete(&bytes));
        self.judge_deletion(at, key, deleted, now)
    }

    pub(super) fn delete_many(&mut self, at: At, keys: &[Key]) -> Checked<String> {
        let cache = self.cache(at);
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes()).collect();
        let (deleted, now) = self.time.of(|| cache.delete_many(&bytes));
        if deleted.len() != keys.len() {
            return wrong!(-, "delete_many of {} had {} results", keys.len(), deleted.len());
        }
        let mut outcomes = Vec::new();
        for (key, deleted) in keys.iter().zip(deleted) {
            outcomes.push(self.judge_deletion(at, *key, deleted, now)?);
        }
        Ok(outcomes.join(", "))
    }

    pub(super) fn judge_deletion(
        &mut self,
        at: At,
        key: Key,
        deleted: Result<bool>,
        now: Moment,
    ) -> Checked<String> {
        let is_deleted = match deleted {
            Ok(is_deleted) => is_deleted,
            Err(error) => {
                self.judge_refusal(at, key, None, None, &error)?;
                return Ok(format!("refused: {}", kind_of(&error)));
            }
        };
        self.judge_acceptance(at, key, None, None)?;
        self.counts(at).add_deletion(is_deleted);
        self.model(at).judge_presence(key, is_deleted, now)?;
        self.model(at).remove(key);
        Ok(if is_deleted { "deleted" } else { "nothing" }.to_owned())
    }

    pub(super) fn delete_version(
        &mut self,
        at: At,
        key: Key,
        known: KnownVersion,
    ) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let chosen = self.tenants[at.tenant].versions.choose(key, known);
        let (deleted, now) = self.time.of(|| cache.delete_version(&bytes, chosen.version));
        let is_deleted = match deleted {
            Ok(is_deleted) => is_deleted,
            Err(Error::Unsupported { .. }) if !self.promises.has_versions() => {
                return Ok("unsupported".to_owned());
            }
            Err(error) => {
                self.judge_refusal(at, key, None, None, &error)?;
                return Ok(format!("refused: {}", kind_of(&error)));
            }
        };
        self.judge_acceptance(at, key, None, None)?;
        self.counts(at).add_deletion(is_deleted);
        let model = self.model(at);
        let presence = model.presence(key, now);
        let is_current =
            chosen.write.is_some() && model.get(key).map(|entry| entry.write) == chosen.write;
        let is_right = if is_deleted {
            is_current && presence.may_be_there()
        } else {
            !is_current || presence.may_be_absent()
        };
        if !is_right {
            return wrong!(
                key,
                "delete_version returned {is_deleted}; the entry's presence is {presence:?}, and \
                 its version is {}the one that was named",
                if is_current { "" } else { "not " },
            );
        }
        if is_deleted {
            model.remove(key);
        } else if is_current {
            model.judge_presence(key, false, now)?;
            model.miss(key);
        }
        Ok(is_deleted.to_string())
    }

    pub(super) fn touch(&mut self, at: At, key: Key, ttl: Ttl) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let (touched, now) = self.time.of(|| cache.touch(&bytes, ttl));
        let is_touched = match touched {
            Ok(is_touched) => is_touched,
            Err(error) => {
                self.judge_refusal(at, key, None, Some(ttl), &error)?;
                return Ok(format!("refused: {}", kind_of(&error)));
            }
        };
        self.judge_acceptance(at, key, None, Some(ttl))?;
        self.counts(at).add(if is_touched { Event::Touch } else { Event::TouchMiss });
        self.model(at).judge_presence(key, is_touched, now)?;
        if is_touched {
            let expiry = self.expiry(now, ttl);
            self.model(at).touch(key, expiry);
            self.seen(at, key);
        } else {
            self.model(at).miss(key);
        }
        Ok(is_touched.to_string())
    }

    pub(super) fn count(&mut self, at: At, key: Key, delta: u64, is_up: bool) -> Checked<String> {
        let (cache, bytes) = (self.cache(at), key.bytes());
        let held = self.model(at).get(key).map(|entry| Rc::clone(&entry.value));
        if self.promises.last == Kind::Memcached && held.as_deref().is_some_and(is_odd_number) {
            return Ok("left out: memcached reads numbers that others do not".to_owned());
        }
        let (counted, now) = self
            .time
            .of(|| if is_up { cache.incr(&bytes, delta) } else { cache.decr(&bytes, delta) });
        let number = held.as_deref().and_then(haypile_policy::rules::counter::parse);
        let presence = self.model(at).presence(key, now);
        match counted {
            Ok(None) => {
                self.judge_acceptance(at, key, None, None)?;
                self.counts(at).add(Event::CountMiss);
                self.model(at).judge_presence(key, false, now)?;
                self.model(at).miss(key);
                Ok("nothing".to_owned())
            }
            Ok(Some(counted)) => {
                self.judge_acceptance(at, key, None, None)?;
                self.counts(at).add(Event::Count);
                self.counts(at).add(Event::Set);
                let next = |number: u64| {
                    if is_up { number.wrapping_add(delta) } else { number.saturating_sub(delta) }
                };
                if presence == Presence::Absent || number.map(next) != Some(counted) {
                    let held = held.as_deref().map(describe);
                    return wrong!(key, "it was counted to {counted}, and {held:?} was there");
                }
                let expiry = self.model(at).get(key).and_then(|entry| entry.expiry);
                self.stored(at, key, counted.to_string().into_bytes().into(), expiry);
                Ok(counted.to_string())
            }
            Err(Error::NotACounter { .. }) if presence.may_be_there() && number.is_none() => {
                Ok("not a counter".to_owned())
            }
            Err(error) => {
                self.judge_refusal(at, key, Some(20), None, &error)?;
                Ok(format!("refused: {}", kind_of(&error)))
            }
        }
    }
}

/// Whether memcached may read bytes as a number, or refuse a number, where the engine does not: it
/// reads like `strtoull`, past blanks and a sign, up to a blank or a zero byte; and it refuses some
/// numbers from 2^63 on.
fn is_odd_number(value: &[u8]) -> bool {
    match haypile_policy::rules::counter::parse(value) {
        Some(number) => number >= 1 << 63 || value.len() > number.to_string().len(),
        None => value
            .first()
            .is_none_or(|byte| byte.is_ascii_digit() || b"+- \t\r\n\x0b\x0c\0".contains(byte)),
    }
}
