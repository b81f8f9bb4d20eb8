//! Steps that concern all entries.

use std::collections::BTreeSet;

use haypile::{Cursor, Durability, Error, Result, SetOptions, Store};

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::operation::{Write, WriteForm};
use super::reads::kind_of;
use super::run::{At, Run};
use crate::target::Kind;

/// The longest value that is written to see whether there is room for it.
const LONGEST_CHECKED_BYTES: u64 = 8 << 20;

/// The room that a short key can take of the longest value's.
const KEY_ROOM_BYTES: usize = 64;

impl Run {
    /// Reads every key of a namespace, and compares the entries with those that the cache lists, counts and sums up in
    /// bytes.
    pub(super) fn census(&mut self, at: At, page: usize) -> Checked<String> {
        if self.promises.loads_later {
            // Nothing can be counted before all is loaded.
            self.flush(at, Durability::Disk)?;
        }
        let (cache, now) = (self.cache(at), self.time.now());
        let store = cache.store();
        self.model(at).expire(now);
        // Also keys that expired unnoticed: a store in memory removes them when it meets them.
        for key in (0..self.keys).map(Key) {
            self.contains(at, key)?;
        }
        let (listed, now) = self.time.of(|| list(&**store, page));
        self.judge_listed(at, listed)?;
        let (len, is_empty, bytes, stats) =
            (cache.len(), cache.is_empty(), store.bytes(), cache.stats());
        self.model(at).expire(now);
        let present = self.model(at).entries().count() as u64;
        let most = present + self.uncounted(at);
        let len = match len {
            Ok(len) => len,
            Err(Error::Unsupported { .. }) if self.promises.last == Kind::Memcached => present,
            Err(error) => return wrong!(-, "len failed: {error}"),
        };
        if self.promises.counts_entries() {
            let least = match (self.promises.clock_is_ours(), self.promises.levels()) {
                (false, _) => 0,
                (true, 1) => present,
                (true, _) => {
                    self.model(at).entries().filter(|(_, it)| it.is_certain).count() as u64
                }
            };
            if len < least || len > most {
                return wrong!(-, "len is {len}, and there are {least} to {most} entries");
            }
            match is_empty {
                Ok(is_empty) if is_empty == (len == 0) => {}
                other => return wrong!(-, "len is {len}, and is_empty {other:?}"),
            }
        }
        let stats = match stats {
            Ok(stats) => stats,
            Err(error) => return wrong!(-, "stats failed: {error}"),
        };
        // What waits to be written below is counted where it will be.
        if !self.promises.is_write_back {
            self.counts(at).judge(&stats)?;
        }
        if let Ok(bytes) = bytes
            && self.promises.counts_entries()
        {
            // The statistics are those of the whole cache, not of a namespace.
            if self.tenants.len() == 1 && (stats.entries != len || stats.bytes != bytes) {
                return wrong!(-, "len {len} and bytes {bytes}, and stats has {stats:?}");
            }
            if (bytes == 0) != (len == 0) || stats.capacity_bytes.is_some_and(|most| bytes > most) {
                return wrong!(-, "{len} entries have {bytes} bytes: {stats:?}");
            }
        }
        let lost = stats.evictions + stats.declined;
        if lost > 0 && !self.was_full && self.tenants.len() == 1 && self.handles == 1 {
            return wrong!(-, "entries were evicted or declined though all fit: {stats:?}");
        }
        Ok(format!("{present} entries"))
    }

    /// Returns the number of expired entries that the store may still count.
    fn uncounted(&self, at: At) -> u64 {
        if self.promises.drops_expired_entries() && self.promises.levels() == 1 {
            return 0;
        }
        self.tenants[at.tenant].model.expired()
    }

    /// Judges a list of all keys. Every key of the model was just found.
    fn judge_listed(&mut self, at: At, listed: Result<Vec<Vec<u8>>>) -> Checked {
        let listed = match listed {
            Ok(listed) => listed,
            Err(Error::Unsupported { .. }) if !self.promises.lists_keys() => return Ok(()),
            Err(error) => return wrong!(-, "keys failed: {error}"),
        };
        let listed: BTreeSet<Vec<u8>> = listed.into_iter().collect();
        let now = self.time.now();
        let (is_ours, levels) = (self.promises.clock_is_ours(), self.promises.levels());
        let mut known = BTreeSet::new();
        for (key, entry) in self.model(at).entries() {
            let may_be_over = entry.expiry.is_some_and(|expiry| expiry.may_be_over(now));
            let bytes = key.bytes();
            // An upper level may have what was evicted from the last.
            let is_below = levels == 1 || entry.is_certain;
            if !listed.contains(&bytes) && is_below && !may_be_over {
                return wrong!(key, "it was found, and keys does not list it");
            }
            known.insert(bytes);
        }
        // A server lists what expired a moment ago.
        match listed.difference(&known).next() {
            Some(other) if is_ours => {
                wrong!(-, "keys lists '{}', which is not there", other.escape_ascii())
            }
            _ => Ok(()),
        }
    }

    pub(super) fn flush(&mut self, at: At, durability: Durability) -> Checked<String> {
        let flushed = self.cache(at).flush(durability);
        match flushed {
            Ok(()) => {
                // Saving waits until all is loaded.
                if durability == Durability::Disk {
                    self.model(at).load(true);
                }
                Ok("done".to_owned())
            }
            Err(Error::Unsupported { .. })
                if durability == Durability::Disk && self.promises.last != Kind::File =>
            {
                Ok("unsupported".to_owned())
            }
            Err(error) => wrong!(-, "flush failed: {error}"),
        }
    }

    /// Checks that the cache has lost no room: an empty cache of one level can hold the longest value that it accepts.
    pub(super) fn check_room(&mut self) -> Checked {
        let is_own = matches!(self.promises.last, Kind::Memory | Kind::File);
        if !is_own || self.promises.levels() > 1 || self.promises.retention.is_some() {
            return Ok(());
        }
        self.pins.clear();
        self.reservations.clear();
        for tenant in 0..self.tenants.len() {
            self.clear(At { tenant, handle: 0 })?;
        }
        let cache = self.cache(At { tenant: 0, handle: 0 });
        let longest = cache.store().limits().max_value_bytes.min(LONGEST_CHECKED_BYTES);
        let value = vec![7; usize::try_from(longest).expect("it is bounded") - KEY_ROOM_BYTES];
        match cache.set("room", &value).and_then(|()| cache.get("room")) {
            Ok(Some(found)) if found == value => Ok(()),
            other => {
                let found = other.map(|found| found.map(|found| found.len()));
                wrong!(-, "of an empty cache that takes {longest} bytes, {found:?} was found")
            }
        }
    }

    pub(super) fn clear(&mut self, at: At) -> Checked<String> {
        match self.cache(at).clear() {
            Ok(()) => {
                self.model(at).clear();
                Ok("done".to_owned())
            }
            Err(error) => wrong!(-, "clear failed: {error}"),
        }
    }

    pub(super) fn resize(&mut self, at: At, percent: u64) -> Checked<String> {
        let cache = self.cache(at);
        let Some(opened_bytes) = self.opened_bytes else { return Ok("no size".to_owned()) };
        let resized = cache.resize(opened_bytes / 100 * percent);
        match (resized, self.promises.last) {
            (Ok(()), Kind::Memory) => {
                if !self.fits() {
                    self.was_full = true;
                    self.tenants.iter_mut().for_each(|tenant| tenant.model.doubt_all());
                }
                Ok("done".to_owned())
            }
            (Err(Error::Unsupported { .. }), kind) if kind != Kind::Memory => {
                Ok("unsupported".to_owned())
            }
            (other, kind) => wrong!(-, "resize of {kind:?} had the outcome {other:?}"),
        }
    }

    /// Closes all handles of the cache, checks that they are closed, and opens the cache again.
    pub(super) fn reopen(&mut self, at: At, writes: &[Write]) -> Checked<String> {
        for write in writes {
            self.write(at, write, WriteForm::Set)?;
        }
        for tenant in &mut self.tenants {
            for handle in tenant.handles.drain(..) {
                if let Err(error) = handle.cache.close().and_then(|()| handle.cache.close()) {
                    return wrong!(-, "close failed: {error}");
                }
                check_closed(&**handle.cache.store())?;
            }
            tenant.below = None;
        }
        self.commit_to_closed()?;
        // Versions of a store in memory begin at the time of its opening.
        self.time.advance(std::time::Duration::from_secs(1));
        if let Err(error) = self.open() {
            return wrong!(-, "it cannot be opened again: {error:#}");
        }
        for tenant in &mut self.tenants {
            if !self.promises.outlives_its_users {
                tenant.model.clear();
            } else if !self.promises.keeps_versions() {
                tenant.model.renumber();
                tenant.model.load(!self.promises.loads_later);
            }
        }
        if !self.fits() {
            self.was_full = true;
        }
        Ok("done".to_owned())
    }
}

/// Checks that a closed store refuses everything but what it may still answer.
fn check_closed(store: &dyn Store) -> Checked {
    let set = SetOptions::set();
    let answers = [
        ("get", store.get(b"key").map(drop)),
        ("get_pinned", store.get_pinned(b"key").map(drop)),
        ("contains", store.contains(b"key").map(drop)),
        ("set", store.set(b"key", b"value", &set).map(drop)),
        ("reserve", store.reserve(b"key", 5, &set).map(drop)),
        ("delete", store.delete(b"key").map(drop)),
        ("incr", store.incr(b"key", 1).map(drop)),
        ("touch", store.touch(b"key", haypile::Ttl::Never).map(drop)),
        ("get_many", store.get_many(&[b"key"]).map(drop)),
        ("set_many", store.set_many(&[(b"key", b"value", set)]).remove(0).map(drop)),
        ("delete_many", store.delete_many(&[b"key"]).remove(0).map(drop)),
        ("clear", store.clear()),
        ("flush", store.flush(Durability::Visible)),
    ];
    for (operation, answer) in answers {
        match answer {
            Err(Error::Closed { .. }) => {}
            Ok(()) => return wrong!(-, "{operation} of a closed cache succeeds"),
            Err(error) => {
                return wrong!(-, "{operation} of a closed cache fails by {}", kind_of(&error));
            }
        }
    }
    match store.stats() {
        Ok(_) => Ok(()),
        Err(error) => wrong!(-, "a closed cache has no statistics: {error}"),
    }
}

/// Lists all keys, page by page.
fn list(store: &dyn Store, page: usize) -> Result<Vec<Vec<u8>>> {
    let (mut keys, mut next) = (Vec::new(), Some(Cursor::default()));
    while let Some(from) = next {
        let found = store.keys(from, page)?;
        keys.extend(found.keys);
        next = found.next;
    }
    Ok(keys)
}
