//! The two levels, and what keeps them together; the protocol is in the [module](super).

use std::sync::Arc;
use std::time::Duration;

use super::counts::Counts;
use super::options::TierOptions;
use super::queue::{Pending, Queue};
use super::stripes::{Held, Note, Stripes};
use super::trailer::{Known, TRAILER_BYTES, Trailer};
use crate::clock::{Clock, nanos};
use crate::error::{Error, Result};
use crate::store::{Found, Hit, Store};
use crate::ttl::{Ttl, expiry_ns};
use crate::write::{SetOptions, WriteMode, Written};

/// A front and what is below.
#[derive(Debug)]
pub(super) struct Levels {
    pub(super) front: Arc<dyn Store>,
    pub(super) lower: Arc<dyn Store>,
    pub(super) options: TierOptions,
    pub(super) counts: Counts,
    clock: Arc<dyn Clock>,
    stripes: Stripes,
    queue: Option<Queue>,
}

/// What a reader knew before it looked below.
pub(super) struct Asked {
    note: Note,
    at_ns: u64,
}

/// The right to change a key that has left the front.
pub(super) struct Change<'a> {
    _held: Held<'a>,
    began_ns: u64,
}

/// What the queue has of a key.
enum Waiting {
    Nothing,
    /// It has expired: what is below has been overwritten all the same.
    Gone,
    Value(Arc<[u8]>, Hit),
}

impl Levels {
    pub(super) fn new(
        front: Arc<dyn Store>,
        lower: Arc<dyn Store>,
        options: TierOptions,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let queue = options.write_max_bytes.map(Queue::new);
        let (stripes, counts) = (Stripes::new(), Counts::default());
        Self { front, lower, options, counts, clock, stripes, queue }
    }

    /// What waits to be written, where anything may.
    pub(super) fn queue(&self) -> Option<&Queue> {
        self.queue.as_ref()
    }

    pub(super) fn describe(&self) -> String {
        self.options.describe(&self.front.describe(), &self.lower.describe())
    }

    /// What the front's `kept` says of an entry and the length of its value; `None` where that does
    /// not serve, and the reader has to look below.
    pub(super) fn serve(
        &self,
        kept: &[u8],
        copy: Hit,
        needs_version: bool,
    ) -> Option<(usize, Hit)> {
        let serves = |trailer: &Trailer| !needs_version || trailer.version != Known::Nothing;
        let served = Trailer::decode(kept).filter(|(_, trailer)| serves(trailer));
        if served.is_none() {
            self.counts.passed();
        }
        served.map(|(value_bytes, trailer)| (value_bytes, trailer.hit(copy)))
    }

    /// Reads a key; where `needs_version`, from where its version is known.
    pub(super) fn read(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        needs_version: bool,
    ) -> Result<Option<Hit>> {
        match self.front.get_into(key, buffer) {
            Ok(Some(copy)) => {
                if let Some((value_bytes, hit)) = self.serve(buffer, copy, needs_version) {
                    buffer.truncate(value_bytes);
                    return Ok(Some(hit));
                }
            }
            Ok(None) => {}
            Err(error) => self.counts.front_failed(&error),
        }
        self.read_below(key, buffer, needs_version)
    }

    /// Reads a key that the front does not have, and puts it there.
    pub(super) fn read_below(
        &self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        needs_version: bool,
    ) -> Result<Option<Hit>> {
        buffer.clear();
        // Its version is known when it is written. Where that fails, its value still is.
        if needs_version && self.queue.as_ref().is_some_and(|queue| queue.get(key).is_some()) {
            let _ = self.write_pending(key);
        }
        let asked = self.ask(key);
        match self.waiting(key) {
            Waiting::Nothing => {}
            Waiting::Gone => return Ok(None),
            Waiting::Value(value, hit) => {
                self.copy(&value, buffer)?;
                return Ok(Some(hit));
            }
        }
        let found = if needs_version {
            self.lower.get_versioned_into(key, buffer)
        } else {
            self.lower.get_into(key, buffer)
        };
        let hit = match found {
            Ok(hit) => hit,
            Err(error) => return self.unread(error, 1).map(|()| None),
        };
        if let Some(hit) = hit {
            self.promote(&asked, key, buffer, hit, needs_version);
        }
        Ok(hit)
    }

    /// Takes a lower level that failed for one that has nothing; any other error is the caller's.
    pub(super) fn unread(&self, error: Error, misses: usize) -> Result<()> {
        if matches!(error, Error::Backend { .. }) {
            self.counts.unread(misses, &error);
            return Ok(());
        }
        Err(error)
    }

    fn copy(&self, value: &[u8], buffer: &mut Vec<u8>) -> Result<()> {
        let bytes = value.len();
        if buffer.try_reserve(bytes).is_err() {
            return Err(Error::OutOfMemory { bytes, store: self.describe() });
        }
        buffer.extend_from_slice(value);
        Ok(())
    }

    /// To be called before the lower level is.
    fn ask(&self, key: &[u8]) -> Asked {
        Asked { note: self.stripes.note(key), at_ns: self.clock.now_ns() }
    }

    fn waiting(&self, key: &[u8]) -> Waiting {
        let Some(pending) = self.queue.as_ref().and_then(|queue| queue.get(key)) else {
            return Waiting::Nothing;
        };
        let left = pending.left(self.clock.now_ns());
        self.counts.pending_read(left.is_some());
        match left {
            Some(expires_in) => Waiting::Value(pending.value, Hit::new(None, expires_in)),
            None => Waiting::Gone,
        }
    }

    /// Puts what was found below into the front, unless it may be out of date.
    fn promote(&self, asked: &Asked, key: &[u8], value: &[u8], hit: Hit, is_versioned: bool) {
        let version = match hit.version {
            Some(version) => Known::Version(version),
            None if is_versioned => Known::HasNone,
            None => Known::Nothing,
        };
        if let Some(_held) = self.stripes.hold_unchanged(asked.note) {
            self.put(key, value, version, hit.expires_in, asked.at_ns);
        }
    }

    /// Puts a copy into the front, of an entry that lived at least so long at an instant.
    fn put(&self, key: &[u8], value: &[u8], version: Known, life: Option<Duration>, at_ns: u64) {
        let life_ns = life.map(nanos);
        let most_ns = nanos(self.options.copies_live()).min(life_ns.unwrap_or(u64::MAX));
        let elapsed_ns = self.clock.now_ns().saturating_sub(at_ns);
        let ttl_ns = most_ns.saturating_sub(elapsed_ns);
        if ttl_ns == 0 {
            return;
        }
        let trailer = Trailer { version, beyond_ns: life_ns.map(|life_ns| life_ns - most_ns) };
        let options = SetOptions::set().with_ttl(Duration::from_nanos(ttl_ns));
        let reserved = self.front.reserve(key, value.len() + TRAILER_BYTES, &options);
        let written = reserved.and_then(|mut reservation| {
            let (place, behind) = reservation.buffer().split_at_mut(value.len());
            place.copy_from_slice(value);
            behind.copy_from_slice(&trailer.encode());
            reservation.commit()
        });
        if let Err(error) = written {
            self.counts.front_failed(&error);
        }
    }

    /// Takes a key out of the front and keeps it out until the change is dropped.
    pub(super) fn change(&self, key: &[u8]) -> Change<'_> {
        let held = self.stripes.hold(key);
        let change = Change { _held: held, began_ns: self.clock.now_ns() };
        if let Err(error) = self.front.delete(key) {
            self.counts.front_failed(&error);
        }
        change
    }

    /// Takes keys out of the front; also gives the instant.
    fn change_many(&self, keys: &[&[u8]]) -> (Vec<Held<'_>>, u64) {
        let held = self.stripes.hold_many(keys.iter().copied());
        let began_ns = self.clock.now_ns();
        for error in self.front.delete_many(keys).into_iter().filter_map(Result::err) {
            self.counts.front_failed(&error);
        }
        (held, began_ns)
    }

    /// Writes a value, below now or later.
    pub(super) fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let change = self.change(key);
        let life = self.options.life(options.ttl);
        if options.mode == WriteMode::Set {
            if let Some(life) = life
                && self.defer(key, value, life, change.began_ns)
            {
                self.put(key, value, Known::Nothing, life, change.began_ns);
                return Ok(Written::Stored);
            }
        } else {
            self.settle(key, &change)?;
        }
        let written = self.lower.set(key, value, options)?;
        if written.is_stored() {
            self.overtake(key, &change);
            if let Some(life) = life {
                self.put(key, value, Known::Nothing, life, change.began_ns);
            }
        }
        Ok(written)
    }

    /// Takes a write to be done later, if that can be.
    fn defer(&self, key: &[u8], value: &[u8], life: Option<Duration>, began_ns: u64) -> bool {
        let Some(queue) = &self.queue else { return false };
        let limits = self.lower.limits();
        // What the lower level might refuse it has to judge now.
        let fits = key.len() <= limits.max_key_bytes
            && (key.len() as u64).saturating_add(value.len() as u64) <= limits.max_value_bytes;
        let deferred = fits && queue.put(key, value, expiry_ns(began_ns, life));
        if deferred {
            self.counts.deferred();
        }
        deferred
    }

    /// Writes what waits for a key that is being changed, so that the lower level can judge what comes
    /// next.
    pub(super) fn settle(&self, key: &[u8], _change: &Change<'_>) -> Result<()> {
        self.settle_held(key)
    }

    /// Forgets what waits for a key, because something else has been done below. Says whether that was
    /// an entry, or has expired; `None` where nothing waited.
    pub(super) fn overtake(&self, key: &[u8], _change: &Change<'_>) -> Option<bool> {
        let pending = self.queue.as_ref()?.remove(key)?;
        Some(pending.left(self.clock.now_ns()).is_some())
    }

    /// Writes what waits for a key.
    pub(super) fn write_pending(&self, key: &[u8]) -> Result<()> {
        let _held = self.stripes.hold(key);
        self.settle_held(key)
    }

    /// The caller holds the stripe of the key.
    fn settle_held(&self, key: &[u8]) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let Some(pending) = queue.get(key) else { return Ok(()) };
        let error = match self.write_now(key, &pending) {
            Ok(()) => {
                queue.remove(key);
                return Ok(());
            }
            Err(error) => error,
        };
        if is_passing(&error) {
            return Err(error);
        }
        // It would be refused each time. What it replaced must not come back.
        queue.remove(key);
        self.counts.lost(1, &error);
        for level in [&self.front, &self.lower] {
            let _ = level.delete(key);
        }
        Err(error)
    }

    fn write_now(&self, key: &[u8], pending: &Pending) -> Result<()> {
        let Some(left) = pending.left(self.clock.now_ns()) else {
            return self.lower.delete(key).map(drop);
        };
        let options = SetOptions::set().with_ttl(Ttl::from(left));
        let _ = self.lower.set(key, &pending.value, &options)?;
        self.counts.settled();
        Ok(())
    }

    /// Writes all that waits. A lower level that fails ends it.
    pub(super) fn drain(&self) -> Result<()> {
        let Some(queue) = &self.queue else { return Ok(()) };
        let mut result = Ok(());
        for key in queue.keys() {
            match self.write_pending(&key) {
                Err(error) if is_passing(&error) => return Err(error),
                Err(error) if result.is_ok() => result = Err(error),
                _ => {}
            }
        }
        result
    }

    /// Writes all that waits before the end; what cannot be written is lost.
    pub(super) fn drain_finally(&self) -> Result<()> {
        let drained = self.drain();
        if let (Some(queue), Err(error)) = (&self.queue, &drained) {
            self.counts.lost(queue.clear(), error);
        }
        drained
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<bool> {
        let change = self.change(key);
        let deleted = self.lower.delete(key)?;
        // What waited had taken the place of what was below.
        Ok(self.overtake(key, &change).unwrap_or(deleted))
    }

    pub(super) fn clear(&self) -> Result<()> {
        let _held = self.stripes.hold_all();
        if let Err(error) = self.front.clear() {
            self.counts.front_failed(&error);
        }
        self.lower.clear()?;
        if let Some(queue) = &self.queue {
            queue.clear();
        }
        Ok(())
    }

    pub(super) fn contains(&self, key: &[u8]) -> Result<bool> {
        match self.front.contains(key) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) => self.counts.front_failed(&error),
        }
        if let Some(pending) = self.queue.as_ref().and_then(|queue| queue.get(key)) {
            return Ok(pending.left(self.clock.now_ns()).is_some());
        }
        match self.lower.contains(key) {
            Err(error) => self.unread(error, 0).map(|()| false),
            contains => contains,
        }
    }

    /// Reads many keys: those that the front does not have with one call below.
    pub(super) fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let mut found = match self.front.get_many(keys) {
            Ok(found) => found.into_iter().map(|found| self.served(found)).collect(),
            Err(error) => {
                self.counts.front_failed(&error);
                vec![None; keys.len()]
            }
        };
        let mut missing = Vec::new();
        for (place, found) in found.iter_mut().enumerate().filter(|(_, found)| found.is_none()) {
            let asked = self.ask(keys[place]);
            match self.waiting(keys[place]) {
                Waiting::Nothing => missing.push((place, asked)),
                Waiting::Gone => {}
                Waiting::Value(value, hit) => *found = Some((value.to_vec(), hit)),
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let asked_for: Vec<&[u8]> = missing.iter().map(|(place, _)| keys[*place]).collect();
        match self.lower.get_many(&asked_for) {
            Err(error) => self.unread(error, missing.len())?,
            Ok(below) => {
                for ((place, asked), below) in missing.iter().zip(below) {
                    if let Some((value, hit)) = &below {
                        self.promote(asked, keys[*place], value, *hit, false);
                    }
                    found[*place] = below;
                }
            }
        }
        Ok(found)
    }

    fn served(&self, found: Found) -> Found {
        let (mut kept, copy) = found?;
        let (value_bytes, hit) = self.serve(&kept, copy, false)?;
        kept.truncate(value_bytes);
        Some((kept, hit))
    }

    /// Writes many values with one call below. Where writes are deferred, one after the other.
    pub(super) fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        if self.queue.is_some() {
            let set =
                |(key, value, options): &(&[u8], &[u8], SetOptions)| self.set(key, value, options);
            return entries.iter().map(set).collect();
        }
        let keys: Vec<&[u8]> = entries.iter().map(|(key, ..)| *key).collect();
        let (_held, began_ns) = self.change_many(&keys);
        let results = self.lower.set_many(entries);
        for ((key, value, options), result) in entries.iter().zip(&results) {
            if let Ok(Written::Stored) = result {
                match self.options.life(options.ttl) {
                    Some(life) => self.put(key, value, Known::Nothing, life, began_ns),
                    // The same key may have come before, with a TTL that is known.
                    None => drop(self.front.delete(key)),
                }
            }
        }
        results
    }

    pub(super) fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        if self.queue.is_some() {
            return keys.iter().map(|key| self.delete(key)).collect();
        }
        let _change = self.change_many(keys);
        self.lower.delete_many(keys)
    }
}

/// Whether what was refused could be accepted another time.
fn is_passing(error: &Error) -> bool {
    matches!(
        error,
        Error::Backend { .. } | Error::Busy { .. } | Error::Full { .. } | Error::OutOfMemory { .. }
    )
}
