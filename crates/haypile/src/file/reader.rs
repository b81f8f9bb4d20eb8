//! Reads of a file for a [`Store`](crate::Store), whichever way the file is accessed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::file::area::now::{Now, ms_of};
use crate::file::area::{Area, Holder, Key, OpError};
use crate::file::format::layout::SLOTS;
use crate::file::format::record;
use crate::file::operations::keys::keys_of;
use crate::file::operations::name::FullKey;
use crate::file::operations::read::{Lookup, Search, Seen};
use crate::file::platform::ground::Ground;
use crate::size::ByteSize;
use crate::store::{Cursor, Hit, Page};
use crate::url::{CacheUrl, ResolvedLevel};
use crate::write::Version;

/// The view that a store has of the entries in a cache file: namespace, clock, and the store's name
/// for messages.
#[derive(Debug)]
pub(in crate::file) struct Reader {
    url: CacheUrl,
    pub(in crate::file) namespace: Option<String>,
    pub(in crate::file) clock: Arc<dyn Clock>,
    /// The size in the URL that was given, which an existing file ignores.
    asked_bytes: Option<u64>,
}

impl Reader {
    /// Returns a store's view of the entries in a cache file of this size, with the namespace of
    /// its URL.
    pub(in crate::file) fn new(
        level: &ResolvedLevel,
        clock: Arc<dyn Clock>,
        file_bytes: u64,
    ) -> Self {
        let namespace = level.text("namespace").map(str::to_owned);
        let asked_bytes = level.size("size");
        let mut reader = Self { url: level.url(), namespace, clock, asked_bytes };
        reader.url = reader.url_at(file_bytes);
        reader
    }

    /// Returns the URL of the store, with the size of the cache file.
    pub(in crate::file) fn url_at(&self, file_bytes: u64) -> CacheUrl {
        let [level] = self.url.levels() else { return self.url.clone() };
        level.clone().with_value("size", &ByteSize(file_bytes).to_string()).into()
    }

    /// Returns a warning if the size of the cache file differs from the size that the URL asks for.
    pub(in crate::file) fn size_warning(&self, path: &Path, file_bytes: u64) -> Option<String> {
        let asked_bytes = self.asked_bytes.filter(|bytes| *bytes != file_bytes)?;
        Some(format!(
            "{} has {}, and size={} has no effect: a file keeps the size that it was made with; \
             leave size= out, or replace the file with recreate=yes, which empties it",
            path.display(),
            ByteSize(file_bytes),
            ByteSize(asked_bytes),
        ))
    }

    pub(in crate::file) fn now_ms(&self) -> u64 {
        ms_of(&*self.clock)
    }

    /// Returns the time of day for one operation on the cache file; the store's clock is read at
    /// most once, when it is needed.
    pub(in crate::file) fn now(&self) -> Now<'_> {
        Now::by(&*self.clock)
    }

    pub(in crate::file) fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES - self.namespace.as_ref().map_or(0, |namespace| namespace.len() + 1)
    }

    /// Returns a key as it is stored in the cache file: after the name of the store's namespace, if
    /// it has one.
    #[inline]
    pub(in crate::file) fn key<'a>(&self, key: &'a [u8]) -> Result<FullKey<'a>> {
        let limit_bytes = self.max_key_bytes();
        if key.len() > limit_bytes {
            return Err(self.too_long(key.len(), limit_bytes));
        }
        Ok(FullKey::new(self.namespace.as_deref(), key))
    }

    /// Returns the hash of the store's namespace, if it has one.
    #[inline]
    pub(in crate::file) fn namespace_hash<G: Ground>(&self, area: &Area<G>) -> Option<u64> {
        self.namespace.as_ref().map(|namespace| record::namespace_hash(namespace, area.hash_seed))
    }

    // The errors are kept out of line: the text of a URL is much code, and callers are inlined.
    #[cold]
    #[inline(never)]
    fn too_long(&self, key_bytes: usize, limit_bytes: usize) -> Error {
        Error::KeyTooLong { key_bytes, limit_bytes, store: self.url.to_string() }
    }

    #[cold]
    #[inline(never)]
    pub(in crate::file) fn stopped(&self, stop: OpError) -> Error {
        let store = self.url.to_string();
        match stop {
            OpError::Busy(Holder::Halted(process)) => Error::Busy { store, process: Some(process) },
            OpError::Busy(Holder::Running) => Error::Busy { store, process: None },
            OpError::Full => Error::Full { store },
            OpError::OutOfMemory(bytes) => Error::OutOfMemory { bytes, store },
        }
    }

    /// Finds the entry of a key in the cache file, copies its value, and returns the entry's state;
    /// `None` if there is none, or it has expired.
    #[inline]
    pub(in crate::file) fn find<G: Ground>(
        &self,
        area: &Area<G>,
        key: &Key<'_>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<Option<(Seen, Hit)>> {
        let search = Lookup::new(area, key).search(value).map_err(|stop| self.stopped(stop))?;
        Ok(match search {
            Search::Found(seen) => self.hit(&seen).map(|hit| (seen, hit)),
            Search::Nothing | Search::Damaged | Search::Contended => None,
        })
    }

    /// Returns whether the cache file has an entry of a key that has not expired.
    pub(in crate::file) fn has<G: Ground>(&self, area: &Area<G>, key: &Key<'_>) -> Result<bool> {
        let search = Lookup::new(area, key).search(None).map_err(|stop| self.stopped(stop))?;
        Ok(match search {
            Search::Found(seen) => self.now().is_before(seen.expires_ms),
            Search::Nothing | Search::Damaged | Search::Contended => false,
        })
    }

    /// Finds the entry of a key in the cache file, copies its value, followed by the hashes of its
    /// groups, and returns the entry's state; `None` if there is none.
    #[inline(never)]
    pub(in crate::file) fn find_marked<G: Ground>(
        &self,
        area: &Area<G>,
        key: &Key<'_>,
        value: &mut Vec<u8>,
    ) -> Result<Option<Seen>> {
        let search = Lookup::new(area, key).with_marks().search(Some(value));
        Ok(match search.map_err(|stop| self.stopped(stop))? {
            Search::Found(seen) => self.hit(&seen).map(|_| seen),
            Search::Nothing | Search::Damaged | Search::Contended => None,
        })
    }

    /// Returns the version and the remaining time to live of a found entry, as a store reports
    /// them; `None` if the entry has expired.
    #[inline]
    pub(in crate::file) fn hit(&self, seen: &Seen) -> Option<Hit> {
        let version = Some(Version::from_raw(seen.version));
        if seen.expires_ms == u64::MAX {
            return Some(Hit::new(version, None).with_groups(seen.has_groups));
        }
        let left = seen.expires_ms.checked_sub(self.now_ms()).filter(|left| *left > 0)?;
        Some(Hit::new(version, Some(Duration::from_millis(left))).with_groups(seen.has_groups))
    }

    /// Returns the keys in a bucket of the cache file's index that are in this store's namespace.
    pub(in crate::file) fn keys_of<G: Ground>(
        &self,
        area: &Area<G>,
        bucket: u32,
    ) -> Result<Vec<Vec<u8>>> {
        let keys = keys_of(area, bucket, self.now_ms()).map_err(|stop| self.stopped(stop))?;
        let own = |(key, has_namespace): (Vec<u8>, bool)| {
            FullKey::stripped(self.namespace.as_deref(), key, has_namespace)
        };
        Ok(keys.into_iter().filter_map(own).collect())
    }

    pub(in crate::file) fn page<G: Ground>(
        &self,
        area: &Area<G>,
        from: Cursor,
        limit: usize,
    ) -> Result<Page> {
        let buckets = area.geometry.numbers.buckets;
        let mut bucket = u32::try_from(from.position()).unwrap_or(u32::MAX);
        let (mut keys, mut looked) = (Vec::new(), 0);
        while bucket < buckets && looked < limit.max(1) as u64 {
            keys.extend(self.keys_of(area, bucket)?);
            bucket += 1;
            looked += SLOTS;
        }
        Ok(Page::new(keys, (bucket < buckets).then(|| Cursor::new(0, bucket.into()))))
    }

    /// Returns the number of entries in the store's namespace and the sum of their bytes, counted
    /// one by one.
    pub(in crate::file) fn count<G: Ground>(&self, area: &Area<G>) -> Result<(u64, u64)> {
        let (mut entries, mut bytes) = (0, 0);
        for bucket in 0..area.geometry.numbers.buckets {
            for key in self.keys_of(area, bucket)? {
                let key = self.key(&key)?;
                let search = Lookup::new(area, &key.hashed(area)).search(None);
                if let Search::Found(seen) = search.map_err(|stop| self.stopped(stop))?
                    && let Some(record) = area.record(seen.slot, seen.segment)
                {
                    entries += 1;
                    bytes += record.head.bytes();
                }
            }
        }
        Ok((entries, bytes))
    }
}
