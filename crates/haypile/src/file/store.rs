//! The file store as a [`Store`].

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::compress::Compression;
use crate::error::{Error, Result};
use crate::file::area::wait::Wait;
use crate::file::area::{Area, Holder, Key};
use crate::file::format::record::{Head, MAX_VALUE_BYTES};
use crate::file::format::slot::Token;
use crate::file::groups::marked;
use crate::file::log::append::Appender;
use crate::file::log::recycler::Recycler;
use crate::file::operations::census::Census;
use crate::file::operations::claims::ClaimKey;
use crate::file::operations::name::FullKey;
use crate::file::operations::pin::{PINNED_FROM_BYTES, Pinning, Reading};
use crate::file::operations::prefetch::prefetch_keys;
use crate::file::operations::read::{Lookup, Search};
use crate::file::operations::write::{Expiry, Write, WriteOutcome, Writer};
use crate::file::platform::ground::Ground;
use crate::file::platform::mapped::Mapped;
use crate::file::process::error::FileError;
use crate::file::process::make;
use crate::file::process::owners::{Owners, Taken};
use crate::file::process::quiescence::{OperationGuard, OperationId};
use crate::file::process::session::Session;
use crate::file::process::sessions::{ClaimOutcome, Sessions};
use crate::file::reader::Reader;
use crate::file::reservation::FileReservation;
use crate::lease::Lease;
use crate::mutant;
use crate::pinned::Pinned;
use crate::stats::{Event, Stats};
use crate::store::{
    COMPARE_ATTEMPTS, Claim, ClaimHolder, Cursor, Durability, Hit, Limits, Page, Store, allocate,
};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, WriteMode, Written};
use crate::writers::Writers;

/// The number of keys whose lines are fetched together.
const TOGETHER: usize = 16;

/// A store whose entries are in one mapped file, which all processes that open it share.
///
/// It is warm after all of them have ended, also by `kill -9`. Times to live are counted by the
/// system's time of day, in milliseconds. Counts of [`stats`](Store::stats) are those of this
/// process since it opened the file. `docs/format-file.md` describes the file, and what is
/// promised when processes die, stop, or the power fails.
#[derive(Debug)]
pub(in crate::file) struct FileStore {
    pub(in crate::file) sessions: Sessions,
    pub(in crate::file) reader: Reader,
    ttl: Option<Duration>,
    compute_wait: Duration,
    /// Whether values that are read in place are verified, each once.
    verifies_in_place: bool,
}

impl FileStore {
    pub(in crate::file) fn new(
        sessions: Sessions,
        reader: Reader,
        ttl: Option<Duration>,
        compute_wait: Duration,
        verifies_in_place: bool,
    ) -> Self {
        Self { sessions, reader, ttl, compute_wait, verifies_in_place }
    }

    /// Returns the path of the cache file.
    pub(in crate::file) fn path(&self) -> &Path {
        self.sessions.path()
    }

    #[expect(clippy::inline_always, reason = "what it is given and returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn session<'a>(
        &'a self,
        using: &'a OperationGuard<'_>,
        operation: &'static str,
    ) -> Result<&'a Session> {
        if self.sessions.is_due(using.operation()) {
            self.attend(using.operation(), operation)?;
        }
        self.sessions.get(using).map_err(|error| self.backend(operation, error))
    }

    #[cold]
    #[inline(never)]
    fn attend(&self, number: OperationId, operation: &'static str) -> Result<()> {
        if self.sessions.is_closed() {
            return Err(self.closed());
        }
        let attended = self.sessions.attend(number, &*self.reader.clock, || self.reader.now_ms());
        attended.map_err(|error| self.backend(operation, error))
    }

    #[cold]
    #[inline(never)]
    fn closed(&self) -> Error {
        Error::Closed { store: self.describe() }
    }

    #[cold]
    #[inline(never)]
    fn backend(&self, operation: &'static str, error: FileError) -> Error {
        Error::Backend { operation, store: self.describe(), source: Box::new(error) }
    }

    /// Returns the mapped cache file, and an owner slot in it (an entry of this process) through which this thread can
    /// write.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn writing<'a>(
        &'a self,
        using: &'a OperationGuard<'_>,
        operation: &'static str,
    ) -> Result<(&'a Area<Mapped>, Taken<'a>)> {
        let session = self.session(using, operation)?;
        if let Some(owners) = &session.owners
            && let Some(taken) = owners.take_own()
            && !self.sessions.is_closed()
        {
            return Ok((&session.area, taken));
        }
        // Not handed through as it is: see `Area::lock`.
        let writing = self.writing_anyhow(using, operation)?;
        Ok(writing)
    }

    #[cold]
    fn writing_anyhow<'a>(
        &'a self,
        using: &'a OperationGuard<'_>,
        operation: &'static str,
    ) -> Result<(&'a Area<Mapped>, Taken<'a>)> {
        let mut wait = Wait::default();
        loop {
            let session = self.session(using, operation)?;
            let Some(owners) = &session.owners else {
                return Err(self.reads_only(operation, session));
            };
            let taken = owners.take(&session.area, || self.reader.now_ms());
            // It may have been closed while another thread had the owner slot.
            if self.sessions.is_closed() {
                return Err(self.closed());
            }
            // Else this process has just left the file for another.
            if let Some(taken) = taken {
                return Ok((&session.area, taken));
            }
            self.again(&mut wait, &session.area)?;
        }
    }

    /// Pauses before another attempt at an operation on the cache file that failed because others changed the same
    /// data; an error once that took too long.
    #[cold]
    pub(in crate::file) fn again(&self, wait: &mut Wait, area: &Area<Mapped>) -> Result<()> {
        wait.again(&area.ground, Holder::Running).map_err(|stop| self.reader.stopped(stop))
    }

    #[cold]
    pub(in crate::file) fn reads_only(&self, operation: &'static str, session: &Session) -> Error {
        match session.why_it_only_reads(self.path()) {
            None => Error::Unsupported { operation, store: self.describe() },
            Some(reason) => self.backend(operation, reason),
        }
    }

    /// When what is written now expires.
    fn expires_ms(&self, ttl: Ttl) -> Result<u64> {
        let Some(ttl) = ttl.resolve(self.ttl)? else {
            return Ok(u64::MAX);
        };
        // Up, so that no TTL is too short and none becomes zero.
        let ms = u64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Ok(self.reader.now_ms().checked_add(ms).filter(|ms| *ms < 1 << 47).unwrap_or(u64::MAX))
    }

    fn check_value(&self, area: &Area<Mapped>, key: &Key<'_>, value_bytes: usize) -> Result<()> {
        let limit_bytes = longest_value(area, key.bytes.len() as u64);
        if value_bytes as u64 <= limit_bytes {
            return Ok(());
        }
        let value_bytes = value_bytes as u64;
        Err(Error::ValueTooLarge { value_bytes, limit_bytes, store: self.describe() })
    }

    /// Writes an entry to the cache file, puts it in these groups, which invalidate entries together, and returns the
    /// outcome.
    pub(in crate::file) fn write(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        let expires_ms = self.expires_ms(options.ttl)?;
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, mut taken) = self.writing(&using, "set")?;
        let key = key.hashed(area);
        let groups = self.group_hashes(area, groups)?;
        let marked = groups.as_ref().map(|groups| marked(area, value, options.mode, groups));
        let value = marked.as_deref().unwrap_or(value);
        self.check_value(area, &key, value.len())?;
        let mut write = Write {
            key,
            value,
            has_groups: groups.is_some(),
            groups: groups.as_ref(),
            mode: options.mode,
            namespace: self.leased_namespace(options.mode, area),
            expiry: Expiry::At(expires_ms),
            version: taken.version(area),
            now: &self.reader.now(),
        };
        let written = self.put(area, &mut taken, &mut write)?;
        let event = match written {
            Written::Stored => Event::Set,
            Written::Revoked => Event::Revoked,
            Written::Exists | Written::Absent | Written::Changed => Event::Unmet,
        };
        area.count(taken.owner.counting(), event, 1);
        Ok(written)
    }

    /// Deletes an entry, whatever it is or if it has this version.
    fn remove(&self, key: &[u8], version: Option<Version>) -> Result<bool> {
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, taken) = self.writing(&using, "delete")?;
        let (key, version) = (key.hashed(area), version.map(Version::raw));
        let deleted = Writer::new(area, taken.owner).delete(&key, version, &self.reader.now());
        let deleted = deleted.map_err(|stop| self.reader.stopped(stop))?;
        let event = if deleted { Event::Delete } else { Event::DeleteMiss };
        area.count(taken.owner.counting(), event, 1);
        Ok(deleted)
    }

    /// Deletes an entry that has this value. It is compared without the bucket's lock, however long it is:
    /// no two writes have the same version, so that the version stands for the value under the lock.
    fn remove_value(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let full = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, taken) = self.writing(&using, "compare_and_delete")?;
        let key = full.hashed(area);
        let mut value = Vec::new();
        for _ in 0..COMPARE_ATTEMPTS {
            let found = self.reader.find(area, &key, Some(&mut value))?;
            let Some((seen, _)) = found.filter(|_| value == expected) else {
                area.count(taken.owner.counting(), Event::DeleteMiss, 1);
                return Ok(false);
            };
            let deleted =
                Writer::new(area, taken.owner).delete(&key, Some(seen.version), &self.reader.now());
            if deleted.map_err(|stop| self.reader.stopped(stop))? {
                area.count(taken.owner.counting(), Event::Delete, 1);
                return Ok(true);
            }
            // It was written since, perhaps with an equal value.
        }
        Err(Error::Busy { store: self.describe(), process: None })
    }

    /// Prefetches what operations on these keys read, [`TOGETHER`] of them at most. Where that cannot be,
    /// the operations say why.
    fn prefetch<'a>(&self, keys: impl ExactSizeIterator<Item = &'a [u8]>) {
        // Alone, a key is waited for here as well as there.
        if keys.len() < 2 {
            return;
        }
        let using = self.sessions.begin();
        let Ok(session) = self.sessions.get(&using) else { return };
        let mut hashes = [0; TOGETHER];
        let mut count = 0;
        for key in keys.take(TOGETHER) {
            if let Ok(key) = self.reader.key(key) {
                hashes[count] = key.hashed(&session.area).hash;
                count += 1;
            }
        }
        prefetch_keys(&session.area, &hashes[..count]);
    }

    /// Writes an entry to the cache file, with a version higher than that of the entry that it replaces.
    #[inline]
    pub(in crate::file) fn put(
        &self,
        area: &Area<Mapped>,
        taken: &mut Taken<'_>,
        write: &mut Write<'_>,
    ) -> Result<Written> {
        let mut wait = Wait::default();
        loop {
            let outcome = Writer::new(area, taken.owner)
                .write(write)
                .map_err(|stop| self.reader.stopped(stop))?;
            if area.upkeep.is_due() {
                Appender::new(area, taken.owner).keep_up(write.now.ms());
            }
            match outcome {
                WriteOutcome::Written(written) => return Ok(written),
                WriteOutcome::Outrun => write.version = taken.version(area),
            }
            self.again(&mut wait, area)?;
        }
    }

    /// Writes an entry that has no room for an expiry again, with one.
    fn touch_by_copy(
        &self,
        area: &Area<Mapped>,
        taken: &mut Taken<'_>,
        key: &Key<'_>,
        expires_ms: u64,
    ) -> Result<bool> {
        let (mut value, mut wait) = (Vec::new(), Wait::default());
        loop {
            let Some((seen, _)) = self.reader.find(area, key, Some(&mut value))? else {
                return Ok(false);
            };
            let mut write = Write {
                key: *key,
                value: &value,
                has_groups: false,
                groups: None,
                mode: WriteMode::Cas(Version::from_raw(seen.version)),
                namespace: None,
                expiry: Expiry::At(expires_ms),
                version: seen.version,
                now: &self.reader.now(),
            };
            match self.put(area, taken, &mut write)? {
                Written::Stored => return Ok(true),
                Written::Absent => return Ok(false),
                Written::Exists | Written::Changed | Written::Revoked => {
                    self.again(&mut wait, area)?;
                }
            }
        }
    }

    fn live(&self, operation: &'static str) -> Result<(u64, u64)> {
        let using = self.sessions.begin();
        let session = self.session(&using, operation)?;
        if self.reader.namespace.is_some() {
            return self.reader.count(&session.area);
        }
        session.recount(|| self.reader.now_ms());
        let live = Census::of(&session.area).live();
        Ok((live.entries, live.bytes))
    }
}

/// Returns the length of the longest value that the cache file can store under a key of this length.
pub(in crate::file) fn longest_value<G: Ground>(area: &Area<G>, key_bytes: u64) -> u64 {
    let run = u64::from(area.geometry.longest_run()) << area.geometry.numbers.segment_log2;
    let overhead = Head::EXPIRY_AT + 8 + key_bytes.next_multiple_of(8);
    run.saturating_sub(overhead).min(MAX_VALUE_BYTES)
}

impl Store for FileStore {
    fn url(&self) -> CacheUrl {
        self.reader.url_at(self.sessions.file_bytes())
    }

    fn compression(&self) -> Option<Compression> {
        let using = self.sessions.begin_in_passing();
        self.sessions.get(&using).ok()?.header.compression.map(Compression::from)
    }

    fn compute_wait(&self) -> Duration {
        self.compute_wait
    }

    fn writers(&self) -> Vec<Writers> {
        let using = self.sessions.begin_in_passing();
        let of_session = |session: &Session| {
            let kernel = &session.area.ground.kernel;
            kernel.with_file(|file| Ok(Writers::of_file(&kernel.path, &file.metadata()?))).ok()
        };
        let writers = self.sessions.get(&using).ok().and_then(of_session);
        vec![writers.unwrap_or_else(|| Writers::Anyone { store: self.describe() })]
    }

    fn limits(&self) -> Limits {
        let using = self.sessions.begin_in_passing();
        let area = self.sessions.get(&using).ok().map(|session| &session.area);
        let max_value_bytes = area.map_or(0, |area| longest_value(area, 0));
        let capacity_bytes = area.map(|area| area.geometry.capacity_bytes());
        Limits::new(self.reader.max_key_bytes(), max_value_bytes, capacity_bytes)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let session = self.session(&using, "get")?;
        let area = &session.area;
        let key = key.hashed(area);
        let search = Lookup::new(area, &key).search_inline(Some(buffer), false);
        let search = search.map_err(|stop| self.reader.stopped(stop))?;
        let hit = self.note_search(session, &search);
        if hit.is_none() {
            buffer.clear();
        }
        Ok(hit)
    }

    fn get_if_changed_into(
        &self,
        key: &[u8],
        version: Version,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        {
            let key = self.reader.key(key)?;
            let using = self.sessions.begin();
            let session = self.session(&using, "get")?;
            let search = Lookup::new(&session.area, &key.hashed(&session.area)).search(None);
            let search = search.map_err(|stop| self.reader.stopped(stop))?;
            if matches!(search, Search::Found(seen) if seen.version == version.raw()) {
                buffer.clear();
                return Ok(self.note_search(session, &search));
            }
        }
        self.get_into(key, buffer)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<crate::store::Found>> {
        let mut found = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TOGETHER) {
            self.prefetch(keys.iter().copied());
            for key in keys {
                let mut buffer = Vec::new();
                found.push(self.get_into(key, &mut buffer)?.map(|hit| (buffer, hit)));
            }
        }
        Ok(found)
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        let mut written = Vec::with_capacity(entries.len());
        for entries in entries.chunks(TOGETHER) {
            self.prefetch(entries.iter().map(|(key, ..)| *key));
            let set = |(key, value, options): &(&[u8], &[u8], SetOptions)| {
                self.write(key, value, options, &[])
            };
            written.extend(entries.iter().map(set));
        }
        written
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        let mut deleted = Vec::with_capacity(keys.len());
        for keys in keys.chunks(TOGETHER) {
            self.prefetch(keys.iter().copied());
            deleted.extend(keys.iter().map(|key| self.remove(key, None)));
        }
        deleted
    }

    /// Long values stay in the file, which is read in place; others are copied.
    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned_from(PINNED_FROM_BYTES, key, self.verifies_in_place)
    }

    fn get_in_place(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned_from(0, key, self.verifies_in_place)
    }

    fn get_in_place_verified(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned_from(0, key, true)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.write(key, value, options, &[])
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        self.write(key, value, options, groups)
    }

    fn invalidate(&self, group: &[u8]) -> Result<()> {
        self.invalidate_group(group)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        options.ttl.resolve(self.ttl)?;
        let full = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, _) = self.writing(&using, "reserve")?;
        self.check_value(area, &full.hashed(area), value_bytes)?;
        // Not in the file: what is there may not be borrowed, for others write to it.
        let mut buffer = allocate(self, value_bytes)?;
        buffer.resize(value_bytes, 0);
        Ok(Box::new(FileReservation::new(self, key, *options, buffer)))
    }

    fn lease(&self, key: &[u8]) -> Result<Lease> {
        self.grant_lease(key)
    }

    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        self.holds_lease(key, lease, groups)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.remove(key, None)
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        self.remove(key, Some(version))
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        self.remove_value(key, expected)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let expires_ms = self.expires_ms(ttl)?;
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let (area, mut taken) = self.writing(&using, "touch")?;
        let key = key.hashed(area);
        let touched = Writer::new(area, taken.owner).touch(&key, expires_ms, &self.reader.now());
        let touched = match touched.map_err(|stop| self.reader.stopped(stop))? {
            Some(touched) => touched,
            None => self.touch_by_copy(area, &mut taken, &key, expires_ms)?,
        };
        let event = if touched { Event::Touch } else { Event::TouchMiss };
        area.count(taken.owner.counting(), event, 1);
        Ok(touched)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("incr", key, |number| number.wrapping_add(delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("decr", key, |number| number.saturating_sub(delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let area = &self.session(&using, "contains")?.area;
        self.reader.has(area, &key.hashed(area))
    }

    /// Deletes every entry that was there before the call; of a namespace, one after the other.
    fn clear(&self) -> Result<()> {
        if self.reader.namespace.is_none() {
            let using = self.sessions.begin();
            let (area, taken) = self.writing(&using, "clear")?;
            return Recycler::lock(area, taken.owner)
                .map(|recycler| recycler.clear())
                .map_err(|stop| self.reader.stopped(stop));
        }
        let buckets = {
            let using = self.sessions.begin();
            let (area, _taken) = self.writing(&using, "clear")?;
            // Before any bucket: whoever stores a value there later sees it.
            if let Some(hash) = self.reader.namespace_hash(area)
                && !mutant::is_on("clearing-a-namespace-is-not-noted")
            {
                area.note_clearing(hash);
            }
            area.geometry.numbers.buckets
        };
        for bucket in 0..buckets {
            let using = self.sessions.begin();
            let (area, taken) = self.writing(&using, "clear")?;
            let namespace = self.reader.namespace.as_deref();
            let is_own = |key: &[u8], has_namespace| FullKey::is_of(namespace, key, has_namespace);
            let cleared = Writer::new(area, taken.owner).clear_bucket(bucket, is_own);
            cleared.map_err(|stop| self.reader.stopped(stop))?;
        }
        Ok(())
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        let using = self.sessions.begin();
        self.reader.page(&self.session(&using, "keys")?.area, from, limit)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.live("len")?.0)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.live("bytes")?.1)
    }

    fn stats(&self) -> Result<Stats> {
        let using = self.sessions.begin_in_passing();
        let session = self.sessions.get(&using);
        let session = session.map_err(|error| self.backend("stats", error))?;
        session.recount(|| self.reader.now_ms());
        let live = Census::of(&session.area).live();
        let counted = session.owners.as_ref().map(|owners| owners.counted(&session.area));
        Ok(session.area.stats(live, &counted.unwrap_or_default()))
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        let using = self.sessions.begin();
        if durability == Durability::Disk {
            // A file that has lost its name is lost when its last user ends.
            self.sessions.look(using.operation(), || self.reader.now_ms());
        }
        let session = self.session(&using, "flush")?;
        match durability {
            Durability::Visible => Ok(()),
            Durability::Disk => {
                self.sync(session).map_err(|error| self.backend("flush to disk", error))
            }
        }
    }

    fn warnings(&self) -> Vec<String> {
        let using = self.sessions.begin_in_passing();
        let size = self.reader.size_warning(self.path(), self.sessions.file_bytes());
        let Ok(session) = self.sessions.get(&using) else { return size.into_iter().collect() };
        let warning = match session.why_it_only_reads(self.path()) {
            Some(reason) => Some(reason.to_string()),
            None => session.is_watched.then(|| {
                format!(
                    "{} lies on btrfs, which needs free space for each page that is written, \
                     although the file was allocated: while fewer than {} bytes are free, this \
                     process only reads the cache",
                    self.path().display(),
                    session.needed_bytes()
                )
            }),
        };
        warning.into_iter().chain(size).collect()
    }

    /// Ends this process' use of the file; its entries stay.
    fn close(&self) -> Result<()> {
        if !self.sessions.close() {
            return Ok(());
        }
        let using = self.sessions.begin_in_passing();
        if let Ok(session) = self.sessions.get(&using) {
            session.leave_slots();
        }
        Ok(())
    }

    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        let key = self.reader.key(key)?;
        let using = self.sessions.begin();
        let session = self.session(&using, "claim")?;
        let area = &session.area;
        let take_over = take_over.and_then(|holder| u32::try_from(holder.id).ok()).map(Token);
        let hash = key.hashed(area).hash;
        // Read first: a claim that is released between the two counts as released later.
        let released = ClaimKey::new(area, hash).releases();
        let owners = session.owners.as_ref();
        let claim = |owner| self.sessions.claim(session, owner, hash, take_over);
        let Some(claimed) = owners.and_then(|owners| owners.as_process(claim)) else {
            return Ok(Claim::Unneeded);
        };
        Ok(match claimed.map_err(|stop| self.reader.stopped(stop))? {
            ClaimOutcome::Held(claim) => Claim::Held { guard: Box::new(claim) },
            ClaimOutcome::NoRoom => Claim::Unneeded,
            ClaimOutcome::Taken(owner) => {
                let is_halted = area.halted_process(owner).is_some();
                let holder = ClaimHolder::new(owner.0.into(), is_halted);
                Claim::Taken(holder.with_released(released))
            }
        })
    }

    fn await_claim(&self, key: &[u8], holder: ClaimHolder, at_most: Duration) {
        let using = self.sessions.begin();
        let (Ok(key), Ok(session)) = (self.reader.key(key), self.session(&using, "claim")) else {
            return;
        };
        let area = &session.area;
        let hash = key.hashed(area).hash;
        let releases = ClaimKey::new(area, hash).releases();
        // Given back before the count was read, it is not waited for.
        if u32::try_from(holder.id)
            .is_ok_and(|owner| ClaimKey::new(area, hash).is_held_by(Token(owner)))
        {
            area.ground.sleep_on(ClaimKey::new(area, hash).releases_at(), releases, at_most);
        }
    }
}

impl FileStore {
    /// Counts a read; returns the properties of the entry if it is a hit.
    #[expect(clippy::inline_always, reason = "the hottest path of all")]
    #[inline(always)]
    fn note_search(&self, session: &Session, search: &Search) -> Option<Hit> {
        let area = &session.area;
        let counting = session.owners.as_ref().map(Owners::counting);
        if let Search::Found(seen) = search
            && let Some(hit) = self.reader.hit(seen)
        {
            if let Some(counting) = counting {
                seen.note_use(&area.ground);
                area.count(counting, Event::Hit, 1);
            }
            return Some(hit);
        }
        if let Some(counting) = counting {
            area.count(counting, Event::Miss, 1);
            if *search == Search::Damaged {
                area.count(counting, Event::Corrupt, 1);
            }
        }
        None
    }

    /// Reads a value in place if it has at least `least_bytes`, or else copies it. With `verifies`, a value in
    /// place is verified when this process first reads it so, and a copy each time.
    fn pinned_from(
        &self,
        least_bytes: u64,
        key: &[u8],
        verifies: bool,
    ) -> Result<Option<Pinned<'_>>> {
        let using = self.sessions.begin();
        let session = self.session(&using, "get")?;
        let (area, full) = (&session.area, self.reader.key(key)?);
        let name = full.hashed(area);
        let mut is_out_of_pins = false;
        if let Some((seen, _)) = self.reader.find(area, &name, None)? {
            let pinning = Pinning {
                least_bytes,
                pins: &session.pins,
                owner_slot: session.owners.as_ref().map(Owners::first_slot),
                verified: verifies.then_some(&session.verified),
            };
            let reading = self.sessions.pin(session, &name, &seen, pinning);
            match reading.map_err(|stop| self.reader.stopped(stop))? {
                Reading::InPlace(value, seen) => {
                    let hit = self.note_search(session, &Search::Found(seen));
                    return Ok(hit.map(|hit| Pinned::shared(value, hit)));
                }
                Reading::Damaged => {
                    self.note_search(session, &Search::Damaged);
                    return Ok(None);
                }
                Reading::OutOfPins => is_out_of_pins = true,
                Reading::Copied => {}
            }
        }
        let mut buffer = Vec::new();
        let hit = if verifies {
            let search = Lookup::new(area, &name).search_verified(&mut buffer);
            let search = search.map_err(|stop| self.reader.stopped(stop))?;
            self.note_search(session, &search)
        } else {
            self.get_into(key, &mut buffer)?
        };
        let pinned = if is_out_of_pins { Pinned::out_of_pins } else { Pinned::copied };
        Ok(hit.map(|hit| pinned(buffer, hit)))
    }

    /// Brings the file to disk, and its name.
    fn sync(&self, session: &Session) -> std::result::Result<(), FileError> {
        let io_error = |source| FileError::Io { path: self.path().to_owned(), source };
        if !mutant::is_on("flush-does-nothing") {
            let is_named = session.area.ground.sync().map_err(io_error)?;
            #[cfg(feature = "test-hooks")]
            crate::file::hooks::note_sync("data");
            if !is_named {
                return Err(FileError::Removed(self.path().to_owned()));
            }
        }
        if !session.is_name_durable.swap(true, Ordering::AcqRel)
            && !mutant::is_on("name-not-brought-to-disk")
        {
            make::make_name_durable(self.path()).map_err(io_error)?;
        }
        Ok(())
    }
}
