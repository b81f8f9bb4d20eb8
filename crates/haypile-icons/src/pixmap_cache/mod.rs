//! Pixmaps by name, with the calls of `KPixmapCache`, the class whose icon cache KDE measured in 2007.

mod entry;
mod front;
mod remove;
#[cfg(test)]
mod tests;

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haypile::{Cache, OwnedPinned, Result};
use parking_lot::Mutex;

use crate::error::IconError;
use crate::pixmap::Pixmap;
use crate::place;
use crate::render;
use crate::stamp::{Stamp, now_ns, step};
use crate::verified::{self, Verified};
use entry::{Entry, Use};
use front::Front;
pub use remove::RemoveStrategy;

/// First bytes of keys, by what they hold.
const ENTRY: u8 = b'e';
const USE: u8 = b'u';
const TIMESTAMP: &[u8] = b"t";
const HEADER: &[u8] = b"h";

/// A cache of pictures by name that several processes share: elements of a game that were rendered from SVG,
/// thumbnails, or anything else that takes time to draw.
///
/// | `KPixmapCache` | here |
/// |---|---|
/// | `KPixmapCache(name)` | [`open`](Self::open) |
/// | `find`, `insert` | [`find`](Self::find), [`insert`](Self::insert) |
/// | `loadFromFile`, `loadFromSvg` | [`load`](Self::load): drawn again when the file has changed |
/// | `discard` | [`discard`](Self::discard) |
/// | `removeEntries`, `setRemoveEntryStrategy` | [`remove_entries`](Self::remove_entries) |
/// | `setCacheLimit`, `cacheLimit`, `size` | [`set_limit_bytes`](Self::set_limit_bytes), [`limit_bytes`](Self::limit_bytes), [`size_bytes`](Self::size_bytes) |
/// | `timestamp`, `setTimestamp` | [`timestamp`](Self::timestamp), [`set_timestamp`](Self::set_timestamp) |
/// | `isValid`, `isEnabled` | [`is_valid`](Self::is_valid) |
/// | `loadCustomIndexHeader`, `writeCustomIndexHeader` | [`header`](Self::header), [`set_header`](Self::set_header) |
/// | `setUseQPixmapCache` | [`use_front`](Self::use_front) |
///
/// What leaves a full file is the rule of the file store, and no strategy: a limit below the file's
/// size and [`remove_entries`](Self::remove_entries) are for those who want to choose.
#[derive(Debug)]
pub struct PixmapCache {
    cache: Cache,
    /// 0 for none but the file's.
    limit_bytes: AtomicU64,
    strategy: Mutex<RemoveStrategy>,
    front: Mutex<Option<Front>>,
    drawn: AtomicU64,
    damaged: AtomicU64,
}

impl PixmapCache {
    /// Opens the cache of pictures with this name, in the user's cache file. A file that cannot be used is replaced,
    /// with a warning.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or the name is not one of a namespace.
    pub fn open(name: &str) -> std::result::Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let level = crate::cache_url()?.levels()[0].clone().with_option("namespace", name)?;
        Ok(Self::with(place::open(level)?.warned()))
    }

    /// Returns a cache of pictures that uses all keys of `cache`, which should have its own
    /// `namespace=`.
    pub fn with(cache: Cache) -> Self {
        Self {
            cache,
            limit_bytes: AtomicU64::new(0),
            strategy: Mutex::default(),
            front: Mutex::new(None),
            drawn: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        }
    }

    /// Returns the picture that is stored under a name, and marks it as used, so that it is evicted later.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn find(&self, key: &str) -> Result<Option<Pixmap>> {
        self.find_fresh(key, None)
    }

    /// The same, if it was made of a file that is as it was then.
    fn find_fresh(&self, key: &str, source: Option<Stamp>) -> Result<Option<Pixmap>> {
        if let Some(front) = &mut *self.front.lock()
            && let Some(pixmap) = front.get(key, source)
        {
            return Ok(Some(pixmap));
        }
        let Some(value) = self.whole(&named(ENTRY, key))? else { return Ok(None) };
        let Some(entry) = Entry::decode(value, key.as_bytes()) else { return Ok(None) };
        if source.is_some() && entry.source != source {
            return Ok(None);
        }
        self.count_use(key)?;
        if let Some(front) = &mut *self.front.lock() {
            front.put(key, &entry.pixmap, entry.source);
        }
        Ok(Some(entry.pixmap))
    }

    /// Reads a value; one that is damaged is a miss.
    fn whole(&self, key: &[u8]) -> Result<Option<OwnedPinned>> {
        match verified::read(&self.cache, key)? {
            Verified::Whole(value) => return Ok(Some(value)),
            Verified::Missing => {}
            Verified::Damaged => {
                self.damaged.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(None)
    }

    /// Uses are counted without a lock: of two at the same time one may be lost.
    fn count_use(&self, key: &str) -> Result<()> {
        let name = named(USE, key);
        let before =
            self.cache.get(&name)?.and_then(|bytes| Use::decode(&bytes)).unwrap_or_default();
        let now = Use { times: before.times.saturating_add(1), last_ns: now_ns() };
        self.cache.set(name, now.encode())
    }

    /// Stores a picture under a name, replacing the current picture of this name.
    ///
    /// # Errors
    ///
    /// The cache fails, or the pixmap is larger than it takes.
    pub fn insert(&self, key: &str, pixmap: &Pixmap) -> Result<()> {
        self.insert_of(key, pixmap, None)
    }

    fn insert_of(&self, key: &str, pixmap: &Pixmap, source: Option<Stamp>) -> Result<()> {
        let value = Entry::encode(pixmap, key.as_bytes(), source, now_ns());
        let limit_bytes = self.limit_bytes();
        if limit_bytes > 0 && self.size_bytes()?.saturating_add(value.len() as u64) > limit_bytes {
            // Some room at once, so that not every insertion has to look for it.
            let rest = (limit_bytes / 4 * 3).saturating_sub(value.len() as u64);
            self.remove_entries(rest)?;
        }
        self.cache.set(named(ENTRY, key), value)?;
        self.cache.set(named(USE, key), Use { times: 0, last_ns: now_ns() }.encode())?;
        if let Some(front) = &mut *self.front.lock() {
            front.put(key, pixmap, source);
        }
        Ok(())
    }

    /// Returns the picture of a PNG or SVG file in this size: from the cache if the file is
    /// unchanged, or else drawn. A failing cache is not an error: the picture is drawn.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is not a picture; the size is not one.
    pub fn load(
        &self,
        path: &Path,
        (width, height): (u32, u32),
    ) -> std::result::Result<Pixmap, IconError> {
        // A long path has a short key.
        let hash = xxhash_rust::xxh3::xxh3_128(path.as_os_str().as_bytes());
        let key = format!("file:{hash:032x}:{width}x{height}");
        let before = Stamp::of(path).map(|(stamp, _)| stamp);
        if before.is_some()
            && let Ok(Some(pixmap)) = self.find_fresh(&key, before)
        {
            return Ok(pixmap);
        }
        let now = now_ns();
        let pixmap = render::render_file(path, (width, height))?;
        self.drawn.fetch_add(1, Ordering::Relaxed);
        let after = Stamp::of(path).map(|(stamp, _)| stamp);
        if let Some(stamp) =
            before.filter(|stamp| before == after && !stamp.is_racy(now, step(path)))
            && let Err(error) = self.insert_of(&key, &pixmap, Some(stamp))
        {
            log::warn!("{}: the picture is not kept: {error}", path.display());
        }
        Ok(pixmap)
    }

    /// Returns the number of pictures that [`load`](Self::load) has drawn in this process.
    pub fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::Relaxed)
    }

    /// Returns the number of stored pictures that this process found damaged, and treated as
    /// missing.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Removes all pictures from the cache, and the timestamp and the header that programs have stored.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn discard(&self) -> Result<()> {
        if let Some(front) = &mut *self.front.lock() {
            front.clear();
        }
        self.cache.clear()
    }

    /// Sets which pictures (oldest, least often or least recently used) [`remove_entries`](Self::remove_entries)
    /// removes first.
    pub fn set_remove_strategy(&self, strategy: RemoveStrategy) {
        *self.strategy.lock() = strategy;
    }

    /// Removes pictures until the others have at most this number of bytes; returns how many were
    /// removed.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn remove_entries(&self, size_bytes: u64) -> Result<u64> {
        let strategy = *self.strategy.lock();
        let mut removed = 0;
        for key in remove::victims(&self.cache, strategy, size_bytes)? {
            self.cache.delete(named(USE, &key))?;
            removed += u64::from(self.cache.delete(named(ENTRY, &key))?);
            if let Some(front) = &mut *self.front.lock() {
                front.remove(&key);
            }
        }
        Ok(removed)
    }

    /// Returns the sum of the sizes of all pictures in the cache, in bytes. It reads every picture's size.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn size_bytes(&self) -> Result<u64> {
        Ok(remove::entries(&self.cache)?.iter().map(|entry| entry.bytes).sum())
    }

    /// Returns the limit on the total size of the pictures in bytes; 0 if only the limit of the cache file applies.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Sets the limit on the total size of the pictures that insertions by this process keep, in bytes; 0 if only the
    /// limit of the cache file applies.
    pub fn set_limit_bytes(&self, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
    }

    /// Returns the time that a program has stored with the cache of pictures, in seconds since 1970, to compare it with
    /// that of a theme; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn timestamp(&self) -> Result<Option<u64>> {
        let bytes = self.whole(TIMESTAMP)?;
        Ok(bytes.and_then(|bytes| Some(u64::from_le_bytes((*bytes).try_into().ok()?))))
    }

    /// Stores a time with the cache of pictures, in seconds since 1970, which the program later compares with that of a
    /// theme.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn set_timestamp(&self, seconds: u64) -> Result<()> {
        self.cache.set(TIMESTAMP, seconds.to_le_bytes())
    }

    /// Returns the bytes (the header) that a program has stored with the cache of pictures; `None` if there are none.
    ///
    /// # Errors
    ///
    /// The cache fails.
    pub fn header(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.whole(HEADER)?.map(|header| header.to_vec()))
    }

    /// Stores bytes of the program's choice (the header) with the cache of pictures, next to the pictures.
    ///
    /// # Errors
    ///
    /// The cache fails, or they are more than it takes.
    pub fn set_header(&self, header: &[u8]) -> Result<()> {
        self.cache.set(HEADER, header)
    }

    /// Whether the cache of pictures can be used now: reading from it does not fail.
    pub fn is_valid(&self) -> bool {
        self.cache.contains(TIMESTAMP).is_ok()
    }

    /// Sets whether found pictures are also kept in this process's memory, up to 10 MiB and for a
    /// second, so that finding them again needs no read of the cache.
    pub fn use_front(&self, is_used: bool) {
        *self.front.lock() = is_used.then(Front::default);
    }
}

fn named(kind: u8, key: &str) -> Vec<u8> {
    [&[kind], key.as_bytes()].concat()
}
