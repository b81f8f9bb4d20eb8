//! Icons from the cache, or made for it.

mod epoch;
mod gather;
mod request;
#[cfg(test)]
mod tests;

use std::ops::DerefMut;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haypile::{Cache, OwnedPinned};
use parking_lot::Mutex;

use crate::error::IconError;
use crate::pixmap::{Pixmap, StoredPixmap};
use crate::place::{self, OpenedCache};
use crate::render;
use crate::stamp::{Stamp, now_ns, step};
use crate::theme::{IconName, ThemeIndex, scan, scan_hash};
use crate::trust::Trust;
use crate::verified::{self, Verified};
use crate::view::{SystemViewer, Viewer};
use epoch::{Epoch, State};
pub use request::{Icon, IconCacheOptions, IconCounts, IconRequest};

/// The icons of one theme, rendered and kept in a cache that several processes share.
#[derive(Debug)]
pub struct IconCache {
    theme: String,
    hash: u64,
    cache: Option<Cache>,
    options: IconCacheOptions,
    viewer: Box<dyn Viewer>,
    state: Mutex<State>,
}

/// The hash of a path. Should two paths have the same, a picture is drawn again: the stored one has another stamp.
type PathHash = u128;

impl IconCache {
    /// Opens the icons of a theme with this user's icon cache. A file that cannot be used is replaced; see
    /// [`open_cache`](crate::open_cache). Without a usable cache, because the disk is full or a folder is not this
    /// user's, icons are made each time. Either is logged as one warning.
    pub fn open(theme: &str) -> Self {
        let cache = place::open_cache().map_err(|error| {
            log::warn!("icons are not cached: {error}");
        });
        Self::with(theme, cache.ok().map(OpenedCache::warned), IconCacheOptions::default())
    }

    /// Returns the icons of a theme with the given cache; without a cache, icons are rendered each time.
    pub fn with(theme: &str, cache: Option<Cache>, options: IconCacheOptions) -> Self {
        Self::seen_by(theme, cache, options, Box::new(SystemViewer))
    }

    fn seen_by(
        theme: &str,
        cache: Option<Cache>,
        options: IconCacheOptions,
        viewer: Box<dyn Viewer>,
    ) -> Self {
        let hash = scan_hash(theme, &options.base);
        Self { theme: theme.to_owned(), hash, cache, options, viewer, state: Mutex::default() }
    }

    /// Whether the theme's icons are kept in a cache.
    pub fn is_cached(&self) -> bool {
        self.cache.is_some()
    }

    /// Returns the name of the icon theme.
    pub fn theme(&self) -> &str {
        &self.theme
    }

    /// Returns the counts of icon look-ups, renderings and file checks by this process.
    pub fn counts(&self) -> IconCounts {
        self.state.lock().counts
    }

    /// Returns the current index of the theme, which includes every change of the theme's files that is at least a
    /// second old.
    pub fn index(&self) -> ThemeIndex {
        self.current(&mut self.state.lock())
    }

    /// Finds an icon by name and size, and renders it if it is not in the cache. Returns `None` if
    /// neither the theme nor those that it inherits, nor the folders without a theme have it.
    ///
    /// # Errors
    ///
    /// The icon's file cannot be read or is not a picture; the size is not one.
    pub fn lookup(&self, request: &IconRequest<'_>) -> Result<Option<Icon>, IconError> {
        let IconRequest { name, size, scale, is_generic } = *request;
        let side_px = size.saturating_mul(scale);
        let Some(name) = IconName::new(name) else { return Ok(None) };
        let find = |index: &ThemeIndex| index.find(name, (size, scale), is_generic);
        let draw = |path: PathBuf| self.pixmap(&path, (side_px, side_px)).map(|it| (it, path));
        let path = {
            let mut state = self.state.lock();
            state.counts.lookups += 1;
            find(&self.current(&mut state))
        };
        let mut found = path.map(draw);
        if let Some(Err(error)) = &found
            && error.is_missing()
        {
            // The target of a link is gone, of which no folder tells.
            let path = find(&self.scan_again(&mut self.state.lock()));
            found = path.map(draw);
        }
        let Some((pixmap, path)) = found.transpose()? else {
            self.state.lock().counts.negative += 1;
            return Ok(None);
        };
        Ok(Some(Icon { path, pixmap }))
    }

    /// Returns the picture of an image file in a size, from the cache if the file is unchanged, or else rendered.
    pub(crate) fn pixmap(
        &self,
        path: &Path,
        (width, height): (u32, u32),
    ) -> Result<Pixmap, IconError> {
        if !self.options.has_pixmaps {
            return self.render(path, width, height);
        }
        let hash = xxhash_rust::xxh3::xxh3_128(path.as_os_str().as_bytes());
        let key = pixmap_key(hash, width, height);
        if let Some(pixmap) = self.stored_pixmap(&key, path, hash)
            && (pixmap.width(), pixmap.height()) == (width, height)
        {
            return Ok(pixmap);
        }
        // The status before it is read: what changes in the meantime is not taken for what was read.
        let before = Stamp::of(path).map(|(stamp, _)| stamp);
        let now = now_ns();
        let pixmap = self.render(path, width, height)?;
        let after = Stamp::of(path).map(|(stamp, _)| stamp);
        let margin = self.options.racy_margin.unwrap_or_else(|| step(path));
        let is_kept = before == after && before.is_some_and(|stamp| !stamp.is_racy(now, margin));
        let mut state = self.state.lock();
        state.counts.stats += 2;
        state.note_rendered(hash, after, is_kept);
        drop(state);
        if let (true, Some(stamp), Some(cache)) = (is_kept, before, &self.cache) {
            let stored = cache.set(&key, pixmap.encode(path.as_os_str().as_bytes(), stamp, 0));
            let mut state = self.state.lock();
            note(&mut state, stored.err().map(|error| error.to_string()));
            state.share_pictures(cache, false);
        }
        Ok(pixmap)
    }

    /// Returns the stored picture of a file, if the file is as it was when the picture was made.
    fn stored_pixmap(&self, key: &[u8], path: &Path, hash: PathHash) -> Option<Pixmap> {
        let cache = self.cache.as_ref()?;
        let mut stored = self.read_pixmap(cache, key, path)?;
        let mut state = self.state.lock();
        if !state.is_picture_current(path, hash, stored.stamp) {
            return None;
        }
        state.counts.cached += 1;
        state.share_pictures(cache, false);
        let day = state.gathering.day_for(cache, &stored);
        let day = day.map_err(|error| note(&mut state, Some(error.to_string())));
        drop(state);
        if let Ok(Some(day)) = day
            && let Some(gathered) = self.gather(cache, key, path, &stored, day)
        {
            stored = gathered;
        }
        if stored.is_out_of_pins {
            let mut state = self.state.lock();
            state.counts.copied += 1;
            let noted = state.gathering.note(cache);
            note(&mut state, noted.err().map(|error| error.to_string()));
        }
        Some(stored.pixmap)
    }

    fn read_pixmap(&self, cache: &Cache, key: &[u8], path: &Path) -> Option<StoredPixmap> {
        let value = whole(verified::read(cache, key), || self.state.lock())?;
        Pixmap::decode(value, path.as_os_str().as_bytes())
    }

    /// Stores a picture again, unless another process has stored it since, and reads it where it is then. `None` if it is
    /// not in place there: the picture that was read before serves as well.
    fn gather(
        &self,
        cache: &Cache,
        key: &[u8],
        path: &Path,
        stored: &StoredPixmap,
        day: u32,
    ) -> Option<StoredPixmap> {
        let value = stored.pixmap.encode(path.as_os_str().as_bytes(), stored.stamp, day);
        let written = cache.cas(key, value, stored.version?);
        let mut state = self.state.lock();
        match written {
            Ok(written) => state.counts.gathered += u64::from(written.is_stored()),
            Err(error) => {
                state.gathering.end();
                note(&mut state, Some(error.to_string()));
                return None;
            }
        }
        drop(state);
        let again = self.read_pixmap(cache, key, path)?;
        let is_same = again.stamp == stored.stamp;
        (is_same && !again.is_out_of_pins).then_some(again)
    }

    fn render(&self, path: &Path, width: u32, height: u32) -> Result<Pixmap, IconError> {
        self.state.lock().counts.rendered += 1;
        render::render_file(path, (width, height))
    }

    /// Returns the index: this process's own, the stored one, or a new one. It begins an epoch if the last one is over.
    fn current(&self, state: &mut State) -> ThemeIndex {
        let now_ns = self.viewer.now_ns();
        let is_over = |epoch: &Epoch| !is_within(epoch.since_ns, now_ns, self.epoch_ns());
        let own = state.index.clone();
        if let Some(index) = &own
            && !state.epoch.as_ref().is_none_or(is_over)
        {
            return index.clone();
        }
        state.epochs += 1;
        let key = self.trust_key();
        let trust = self.trust(state, now_ns, key.as_deref());
        state.epoch = Some(Epoch::new(now_ns, key));
        let own = match (own, &trust) {
            (Some(index), Some(trust)) => (index.id() == trust.index).then_some(index),
            (Some(index), None) => self.is_trusted(state, &index).then_some(index),
            (None, _) => None,
        };
        let found = own.or_else(|| {
            let index = self.stored(state)?;
            let is_of_other = trust.as_ref().is_some_and(|trust| trust.index == index.id());
            (is_of_other || self.is_trusted(state, &index)).then_some(index)
        });
        let Some(index) = found else { return self.scan_again(state) };
        state.index = Some(index.clone());
        match trust.filter(|trust| trust.index == index.id()) {
            Some(trust) => state.take_over(trust),
            None => state.share_index(self.cache.as_ref(), index.id()),
        }
        index
    }

    fn epoch_ns(&self) -> u64 {
        u64::try_from(self.options.epoch.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the key under which processes with the view of this one share their checks. A relative folder is another
    /// one for each of them.
    fn trust_key(&self) -> Option<Vec<u8>> {
        let is_shared = self.cache.is_some() && self.options.has_index;
        let is_absolute = || self.options.base.iter().all(|folder| folder.is_absolute());
        let view = (is_shared && is_absolute()).then(|| self.viewer.view()).flatten()?;
        Some(Trust::key(view, self.hash))
    }

    /// Returns the check of another process, if it began less than an epoch ago.
    fn trust(&self, state: &mut State, now_ns: u64, key: Option<&[u8]>) -> Option<Trust> {
        let (Some(cache), Some(key), true) = (&self.cache, key, self.options.shares_checks) else {
            return None;
        };
        let trust = epoch::shared(state, cache, key)?;
        is_within(trust.moment_ns, now_ns, self.epoch_ns()).then_some(trust)
    }

    /// Returns a new index, which is stored if it may be.
    fn scan_again(&self, state: &mut State) -> ThemeIndex {
        state.counts.scans += 1;
        let (index, counts) = scan(&self.theme, &self.options.base);
        state.counts.stats += counts.stats;
        let is_kept = self.options.has_index && !self.is_racy(&index);
        if let Some(cache) = self.cache.as_ref().filter(|_| is_kept) {
            let stored = cache.set(index_key(self.hash), index.as_bytes());
            note(state, stored.err().map(|error| error.to_string()));
            state.share_index(Some(cache), index.id());
        }
        state.index = Some(index.clone());
        index
    }

    /// Returns the stored index, which may not be true any more.
    fn stored(&self, state: &mut State) -> Option<ThemeIndex> {
        let cache = self.cache.as_ref().filter(|_| self.options.has_index)?;
        let value = whole(verified::read(cache, &index_key(self.hash)), || &mut *state)?;
        ThemeIndex::from_stored(value, self.hash)
    }

    /// Whether an index is as its folders are now.
    fn is_trusted(&self, state: &mut State, index: &ThemeIndex) -> bool {
        if self.is_racy(index) {
            return false;
        }
        state.counts.stats += index.watched() as u64;
        index.is_current()
    }

    fn is_racy(&self, index: &ThemeIndex) -> bool {
        self.options.racy_margin.is_none() && index.is_racy()
    }
}

impl Drop for IconCache {
    /// Shares what was checked for processes that are started next.
    fn drop(&mut self) {
        let (now_ns, epoch_ns) = (self.viewer.now_ns(), self.epoch_ns());
        let state = self.state.get_mut();
        let is_young = |epoch: &Epoch| is_within(epoch.since_ns, now_ns, epoch_ns);
        if let Some(cache) =
            self.cache.as_ref().filter(|_| state.epoch.as_ref().is_some_and(is_young))
        {
            state.share_pictures(cache, true);
        }
    }
}

/// Whether a moment is less than an epoch ago. One in the future is of another clock.
fn is_within(moment_ns: u64, now_ns: u64, epoch_ns: u64) -> bool {
    now_ns.checked_sub(moment_ns).is_some_and(|age_ns| age_ns < epoch_ns)
}

/// Returns a value that is what was stored, and counts what is damaged and failures.
fn whole<S: DerefMut<Target = State>>(
    read: haypile::Result<Verified>,
    state: impl FnOnce() -> S,
) -> Option<OwnedPinned> {
    match read {
        Ok(Verified::Whole(value)) => return Some(value),
        Ok(Verified::Missing) => {}
        Ok(Verified::Damaged) => state().counts.damaged += 1,
        Err(error) => note(&mut state(), Some(error.to_string())),
    }
    None
}

/// Counts a failure of the cache, and warns of the first.
fn note(state: &mut State, failure: Option<String>) {
    let Some(failure) = failure else { return };
    state.counts.failures += 1;
    if !state.is_warned {
        state.is_warned = true;
        log::warn!("the cache of icons fails, and icons are made without it: {failure}");
    }
}

fn index_key(hash: u64) -> Vec<u8> {
    [&b"i"[..], &hash.to_le_bytes()].concat()
}

/// A picture is known by its file: names of several themes and sizes lead to the same.
fn pixmap_key(path: PathHash, width: u32, height: u32) -> Vec<u8> {
    [&b"p"[..], &path.to_le_bytes(), &width.to_le_bytes(), &height.to_le_bytes()].concat()
}
