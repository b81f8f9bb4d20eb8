//! The memory store as a [`Store`].

use std::time::Duration;

use haypile_policy::rules::memory::longest_value;

use super::contents::{Contents, HashedKey, Outcome, Uncounted, Write};
use super::lock::{ReaderLine, WriteGuard};
use super::record::{Draft, Record};
use super::{MAX_KEY_BYTES, MemoryStore, Persistence, Policy};
use crate::error::{Error, Result};
use crate::groups::{self, Hashes};
use crate::lease::Lease;
use crate::mutant;
use crate::pinned::Pinned;
use crate::stats::Stats;
use crate::store::{Cursor, Durability, Found, Hit, Limits, Page, Store};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, Written};
use crate::writers::Writers;

/// The same in each process, for snapshots keep the hashes of groups.
const GROUP_SEED: u64 = 0;

impl<P: Policy> MemoryStore<P> {
    /// Writes a draft that [`check_sizes`](Self::check_sizes) has accepted.
    fn place(&self, draft: Draft, options: &SetOptions) -> Result<Written> {
        let ttl = options.ttl.resolve(self.ttl)?;
        let shard = self.shard_of(draft.record().fingerprint());
        let mut write = Write { draft, mode: options.mode, ttl, room: None };
        let mut contents = self.write(shard)?;
        loop {
            match contents.write(write, &*self.clock, &self.pool) {
                Outcome::Written(written) => return Ok(written),
                Outcome::OutOfMemory(bytes) => {
                    drop(contents);
                    return Err(self.out_of_memory(bytes));
                }
                Outcome::NeedsRoom(again, bytes) => {
                    // The store may have shrunk since the sizes were checked. All other entries
                    // would then be evicted for one that still does not fit.
                    let record = again.draft.record();
                    if !mutant::is_on("write-that-no-longer-fits-evicts-all") {
                        self.check_sizes(
                            record.key(),
                            record.value().len() + record.marks().len(),
                        )?;
                    }
                    write = again;
                    contents = self.room(contents, shard, bytes)?;
                }
            }
        }
    }

    /// Refuses a write while there is no memory for the text of an error.
    #[inline]
    fn check_memory(&self, value_bytes: usize) -> Result<()> {
        if self.reserve.is_there() { Ok(()) } else { Err(self.out_of_memory(value_bytes)) }
    }

    /// Writes an entry in these groups, if there are any.
    fn set_marked(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        let hashes = Hashes::of(self, groups, GROUP_SEED)?;
        self.groups.begin().map_err(|bytes| self.out_of_memory(bytes))?;
        let mut marks = Vec::new();
        hashes.mark(&mut marks, groups::number(options.mode, || self.groups.clock()));
        let key = self.key(key)?;
        self.check_sizes(key.bytes, value.len() + marks.len())?;
        self.check_memory(value.len())?;
        let draft = Draft::marked(key.fingerprint, key.bytes, value, &marks);
        let draft = draft.ok_or_else(|| self.out_of_memory(value.len()))?;
        self.place(draft, options)
    }

    pub(super) fn set_hashed(
        &self,
        key: HashedKey<'_>,
        value: &[u8],
        options: &SetOptions,
    ) -> Result<Written> {
        self.check_sizes(key.bytes, value.len())?;
        self.check_memory(value.len())?;
        // While the value is copied, the shard comes from the processor that used it last.
        self.shards[self.shard_of(key.fingerprint)].prefetch();
        let draft = Draft::copied(key.fingerprint, key.bytes, value);
        let draft = draft.ok_or_else(|| self.out_of_memory(value.len()))?;
        self.place(draft, options)
    }

    pub(super) fn delete_hashed(&self, key: HashedKey<'_>) -> Result<bool> {
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        Ok(contents.delete(key, &*self.clock, &self.pool))
    }

    /// Unlocks a shard to make room in it, and locks it again.
    fn room<'a>(
        &'a self,
        contents: WriteGuard<'a, Contents<P>>,
        shard: usize,
        bytes: u64,
    ) -> Result<WriteGuard<'a, Contents<P>>> {
        drop(contents);
        self.make_room(shard, bytes)
    }

    /// Makes all shards of the memory store refuse operations from now on; returns whether any
    /// shard was still open.
    pub(super) fn refuse_all(&self) -> bool {
        // Closes every shard, even after one that was open.
        self.shards.iter().fold(false, |was_open, shard| {
            was_open && mutant::is_on("close-leaves-shards-open")
                || shard.0.write().close() | was_open
        })
    }

    /// Deletes all entries of a closed memory store.
    pub(super) fn forget_all(&self) {
        for shard in &self.shards {
            shard.0.write().clear(&self.pool);
        }
    }

    fn count(
        &self,
        operation: &'static str,
        key: &[u8],
        count: impl Fn(u64) -> u64,
    ) -> Result<Option<u64>> {
        let key = self.key(key)?;
        let shard = self.shard_of(key.fingerprint);
        let mut contents = self.write(shard)?;
        let mut has_room = false;
        loop {
            let limit_bytes = self.capacity_bytes();
            let clock = &*self.clock;
            match contents.count(key, &count, limit_bytes, has_room, clock, &self.pool) {
                Ok(number) => return Ok(number),
                Err(Uncounted::NotACounter) => {
                    return Err(Error::NotACounter { operation, store: self.describe() });
                }
                Err(Uncounted::TooLarge(value_bytes)) => {
                    return Err(self.too_large(key.bytes, value_bytes));
                }
                Err(Uncounted::OutOfMemory(bytes)) => return Err(self.out_of_memory(bytes)),
                Err(Uncounted::NeedsRoom(bytes)) => {
                    has_room = true;
                    contents = self.room(contents, shard, bytes)?;
                }
            }
        }
    }
}

impl<P: Policy> Store for MemoryStore<P> {
    fn url(&self) -> CacheUrl {
        self.name.url(self.capacity_bytes())
    }

    fn compute_wait(&self) -> Duration {
        self.compute_wait
    }

    fn limits(&self) -> Limits {
        let capacity_bytes = self.capacity_bytes();
        let max_value_bytes = longest_value(0, capacity_bytes).unwrap_or(0);
        Limits::new(self.max_key_bytes().min(MAX_KEY_BYTES), max_value_bytes, Some(capacity_bytes))
    }

    #[inline]
    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.copy_into(key, buffer)
    }

    fn get_if_changed_into(
        &self,
        key: &[u8],
        version: Version,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        self.copy_if_changed(key, version, buffer)
    }

    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pin(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        self.read_many(keys)
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        self.write_many(entries)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        self.remove_many(keys)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        let fingerprint = self.hasher.fingerprint(key);
        self.set_hashed(HashedKey { bytes: key, fingerprint }, value, options)
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        if groups.is_empty() {
            return self.set(key, value, options);
        }
        self.set_marked(key, value, options, groups)
    }

    fn invalidate(&self, group: &[u8]) -> Result<()> {
        groups::check(self, &[group])?;
        drop(self.read(0)?);
        self.groups.begin().map_err(|bytes| self.out_of_memory(bytes))?;
        self.groups.invalidate(groups::hash(group, GROUP_SEED));
        Ok(())
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.check_sizes(key, value_bytes)?;
        self.check_memory(value_bytes)?;
        options.ttl.resolve(self.ttl)?;
        let fingerprint = self.hasher.fingerprint(key);
        drop(self.read(self.shard_of(fingerprint))?);
        let draft = Draft::zeroed(fingerprint, key, value_bytes);
        let draft = draft.ok_or_else(|| self.out_of_memory(value_bytes))?;
        Ok(Box::new(MemoryReservation { store: self, draft, options: *options }))
    }

    fn lease(&self, key: &[u8]) -> Result<Lease> {
        let key = self.key(key)?;
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        let lease = contents.lease(key, &*self.clock, &self.pool);
        drop(contents);
        lease.map_err(|bytes| self.out_of_memory(bytes))
    }

    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        let key = self.key(key)?;
        let groups = Hashes::of(self, groups, GROUP_SEED)?;
        Ok(self.read(self.shard_of(key.fingerprint))?.is_kept(lease, key, Some(&groups)))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.delete_hashed(self.key(key)?)
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let key = self.key(key)?;
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        let is_it = |record: &Record| record.version() == version.raw();
        Ok(contents.delete_if(key, is_it, &*self.clock, &self.pool))
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        let is_expected = |record: &Record| record.value() == expected;
        Ok(contents.delete_if(key, is_expected, &*self.clock, &self.pool))
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let ttl = ttl.resolve(self.ttl)?;
        let key = self.key(key)?;
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        Ok(contents.touch(key, ttl, &*self.clock, &self.pool))
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("incr", key, |number| number.wrapping_add(delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("decr", key, |number| number.saturating_sub(delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        let mut contents = self.write(self.shard_of(key.fingerprint))?;
        Ok(contents.contains(key, &*self.clock, &self.pool))
    }

    /// Deletes every entry that was there before the call, shard by shard. An entry that is written
    /// during the call may stay or not.
    fn clear(&self) -> Result<()> {
        for shard in 0..self.shards.len() {
            self.write(shard)?.clear(&self.pool);
        }
        Ok(())
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        let shard = usize::try_from(from.server()).unwrap_or(usize::MAX);
        if shard >= self.shards.len() {
            return Ok(Page::default());
        }
        let end = (from.position() > 0).then(|| from.position());
        let mut page = self.read(shard)?.keys(end, limit, &*self.clock);
        let next_shard =
            || (shard + 1 < self.shards.len()).then(|| Cursor::new(from.server() + 1, 0));
        page.next = match page.next {
            Some(place) => Some(Cursor::new(from.server(), place.position())),
            None => next_shard(),
        };
        Ok(page)
    }

    fn len(&self) -> Result<u64> {
        (0..self.shards.len()).map(|shard| Ok(self.read(shard)?.len())).sum()
    }

    fn bytes(&self) -> Result<u64> {
        (0..self.shards.len()).map(|shard| Ok(self.read(shard)?.bytes())).sum()
    }

    fn stats(&self) -> Result<Stats> {
        let mut stats = Stats { capacity_bytes: Some(self.capacity_bytes()), ..Stats::default() };
        for shard in &self.shards {
            shard.0.read().add_to(&mut stats);
        }
        ReaderLine::add_to(&self.lines, &mut stats);
        stats.loading = self.persistence.as_ref().and_then(Persistence::loaded);
        Ok(stats)
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        drop(self.read(0)?);
        match durability {
            Durability::Visible => Ok(()),
            Durability::Disk => self.save(),
        }
    }

    fn resize(&self, size_bytes: u64) -> Result<()> {
        self.change_size(size_bytes)
    }

    fn close(&self) -> Result<()> {
        if let Some(persistence) = &self.persistence {
            return self.save_and_close(persistence);
        }
        self.refuse_all();
        self.forget_all();
        Ok(())
    }

    fn writers(&self) -> Vec<Writers> {
        self.persistence.as_ref().map_or_else(Vec::new, Persistence::writers)
    }

    fn warnings(&self) -> Vec<String> {
        self.persistence.as_ref().map_or_else(Vec::new, Persistence::warnings)
    }
}

struct MemoryReservation<'a, P: Policy> {
    store: &'a MemoryStore<P>,
    draft: Draft,
    options: SetOptions,
}

impl<P: Policy> Reservation for MemoryReservation<'_, P> {
    fn buffer(&mut self) -> &mut [u8] {
        self.draft.value_mut()
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        self.store.place(self.draft, &self.options)
    }
}
