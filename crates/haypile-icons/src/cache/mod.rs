//! Icons from the cache, or made for it.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use haypile::Cache;
use parking_lot::Mutex;

use crate::error::IconError;
use crate::pixmap::Pixmap;
use crate::render;
use crate::stamp::{Stamp, now_ns, step};
use crate::theme::{IconName, ThemeIndex, base_folders, scan, scan_hash};

/// For this long, a process does not ask again whether files are as they were. Together with a lookup
/// it stays below a second.
const EPOCH: Duration = Duration::from_millis(900);

/// An icon to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IconRequest<'a> {
    /// Its name, without folder and extension.
    pub name: &'a str,
    /// The size, in pixels at scale 1.
    pub size: u32,
    /// The scale of the screen: the icon has `size` times `scale` pixels.
    pub scale: u32,
    /// Whether a less specific icon may serve: `input-mouse` for `input-mouse-usb`.
    pub is_generic: bool,
}

impl<'a> IconRequest<'a> {
    /// An icon at scale 1, for which a less specific one may serve.
    pub fn new(name: &'a str, size: u32) -> Self {
        Self { name, size, scale: 1, is_generic: true }
    }
}

/// An icon that was found.
#[derive(Clone, Debug)]
pub struct Icon {
    path: PathBuf,
    pixmap: Pixmap,
}

impl Icon {
    /// The file that it was made of.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.pixmap.width()
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.pixmap.height()
    }

    /// Rows of red, green, blue and alpha, the colours multiplied by alpha.
    pub fn pixels(&self) -> &[u8] {
        self.pixmap.pixels()
    }

    /// The picture.
    pub fn pixmap(&self) -> &Pixmap {
        &self.pixmap
    }
}

/// Parts of an [`IconCache`], and where it looks.
#[derive(Clone, Debug)]
pub struct IconCacheOptions {
    /// The folders with themes, the most important first.
    pub base: Vec<PathBuf>,
    /// Whether the index is kept.
    pub has_index: bool,
    /// Whether pixmaps are kept.
    pub has_pixmaps: bool,
    /// The time for which a process trusts its checks.
    pub epoch: Duration,
    /// The least age of a file that is kept, where that is not the file system's step: for tests.
    pub racy_margin: Option<Duration>,
}

impl Default for IconCacheOptions {
    fn default() -> Self {
        Self {
            base: base_folders(),
            has_index: true,
            has_pixmaps: true,
            epoch: EPOCH,
            racy_margin: None,
        }
    }
}

/// Counts of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IconCounts {
    /// Lookups.
    pub lookups: u64,
    /// Lookups that found no icon.
    pub negative: u64,
    /// Icons that were rendered.
    pub rendered: u64,
    /// Pixmaps that came from the cache.
    pub cached: u64,
    /// Scans of the theme's folders.
    pub scans: u64,
    /// Calls that asked for the status of a file or folder.
    pub stats: u64,
    /// Failures of the cache; icons were made without it.
    pub failures: u64,
}

/// Icons of one theme, with a cache that other processes share.
#[derive(Debug)]
pub struct IconCache {
    theme: String,
    hash: u64,
    cache: Option<Cache>,
    options: IconCacheOptions,
    state: Mutex<State>,
}

/// The hash of a path. Should two paths have the same, a picture is drawn again: the stored one has another stamp.
type PathHash = u128;

#[derive(Debug, Default)]
struct State {
    index: Option<ThemeIndex>,
    /// When the current epoch began, and what was checked in it.
    since: Option<Instant>,
    checked: HashMap<PathHash, Option<Stamp>>,
    counts: IconCounts,
    is_warned: bool,
}

impl IconCache {
    /// Opens this user's cache for a theme. Without a usable cache, because the disk is full or a folder
    /// is not this user's, icons are made each time; a warning is logged once.
    pub fn open(theme: &str) -> Self {
        let cache = crate::cache_url().map_err(|error| error.to_string());
        let cache =
            cache.and_then(|url| Cache::open(&url.to_string()).map_err(|error| error.to_string()));
        let cache = cache.map_err(|error| {
            log::warn!("icons are not cached: {error}");
        });
        Self::with(theme, cache.ok(), IconCacheOptions::default())
    }

    /// Icons of a theme from any cache; without one, they are made each time.
    pub fn with(theme: &str, cache: Option<Cache>, options: IconCacheOptions) -> Self {
        let hash = scan_hash(theme, &options.base);
        Self { theme: theme.to_owned(), hash, cache, options, state: Mutex::default() }
    }

    /// Whether there is a cache.
    pub fn is_cached(&self) -> bool {
        self.cache.is_some()
    }

    /// The theme.
    pub fn theme(&self) -> &str {
        &self.theme
    }

    /// Returns the counts of this process.
    pub fn counts(&self) -> IconCounts {
        self.state.lock().counts
    }

    /// The index as it is now: what was changed a second ago is in it.
    pub fn index(&self) -> ThemeIndex {
        self.current(&mut self.state.lock())
    }

    /// Finds an icon, and renders it if nobody has yet. `None` if the theme, those that it inherits and
    /// the folders without a theme have none of this name.
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

    /// The picture of a file, from the cache if the file is still as it was.
    pub(crate) fn pixmap(
        &self,
        path: &Path,
        (width, height): (u32, u32),
    ) -> Result<Pixmap, IconError> {
        if !self.options.has_pixmaps {
            return self.render(path, width, height);
        }
        let hash = xxhash_rust::xxh3::xxh3_128(path.as_os_str().as_bytes());
        let stamp = self.stamp(path, hash);
        let key = pixmap_key(hash, width, height);
        if let (Some(stamp), Some(cache)) = (stamp, &self.cache) {
            let value = self.tried(cache.get_in_place_owned(&key)).flatten();
            let stored = value.and_then(|value| Pixmap::decode(value, path.as_os_str().as_bytes()));
            let is_size = |pixmap: &Pixmap| (pixmap.width(), pixmap.height()) == (width, height);
            if let Some((pixmap, _)) =
                stored.filter(|(pixmap, own)| *own == stamp && is_size(pixmap))
            {
                self.state.lock().counts.cached += 1;
                return Ok(pixmap);
            }
        }
        // The status before it is read: what changes in the meantime is not taken for what was read.
        let before = Stamp::of(path).map(|(stamp, _)| stamp);
        let now = now_ns();
        let pixmap = self.render(path, width, height)?;
        let after = Stamp::of(path).map(|(stamp, _)| stamp);
        let mut state = self.state.lock();
        state.counts.stats += 2;
        state.checked.insert(hash, after);
        drop(state);
        let margin = self.options.racy_margin.unwrap_or_else(|| step(path));
        if let (Some(stamp), Some(cache)) = (before, &self.cache)
            && before == after
            && !stamp.is_racy(now, margin)
        {
            self.tried(cache.set(&key, pixmap.encode(path.as_os_str().as_bytes(), stamp)));
        }
        Ok(pixmap)
    }

    fn render(&self, path: &Path, width: u32, height: u32) -> Result<Pixmap, IconError> {
        self.state.lock().counts.rendered += 1;
        render::render_file(path, (width, height))
    }

    /// The stamp of a file, asked for once in an epoch.
    fn stamp(&self, path: &Path, hash: PathHash) -> Option<Stamp> {
        let mut state = self.state.lock();
        self.begin_epoch(&mut state);
        if let Some(stamp) = state.checked.get(&hash) {
            return *stamp;
        }
        state.counts.stats += 1;
        let stamp = Stamp::of(path).map(|(stamp, _)| stamp);
        state.checked.insert(hash, stamp);
        stamp
    }

    /// Forgets what was checked if that is too long ago. Returns whether it did.
    fn begin_epoch(&self, state: &mut State) -> bool {
        let is_over = state.since.is_none_or(|since| since.elapsed() >= self.options.epoch);
        if is_over {
            state.since = Some(Instant::now());
            state.checked.clear();
        }
        is_over
    }

    /// The index: this process's own, the stored one, or a new one.
    fn current(&self, state: &mut State) -> ThemeIndex {
        let is_new_epoch = self.begin_epoch(state);
        if let Some(index) = &state.index {
            if !is_new_epoch {
                return index.clone();
            }
            state.counts.stats += index.watched() as u64;
            if self.is_trusted(index) {
                return index.clone();
            }
        }
        match self.stored(state) {
            Some(index) => {
                state.index = Some(index.clone());
                index
            }
            None => self.scan_again(state),
        }
    }

    /// A new index, which is stored if it may be.
    fn scan_again(&self, state: &mut State) -> ThemeIndex {
        state.counts.scans += 1;
        let (index, counts) = scan(&self.theme, &self.options.base);
        state.counts.stats += counts.stats;
        let is_kept = self.options.has_index && !self.is_racy(&index);
        if let Some(cache) = self.cache.as_ref().filter(|_| is_kept) {
            let stored = cache.set(index_key(self.hash), index.as_bytes());
            note(state, stored.err().map(|error| error.to_string()));
        }
        state.index = Some(index.clone());
        index
    }

    /// The stored index, if it is still true.
    fn stored(&self, state: &mut State) -> Option<ThemeIndex> {
        let cache = self.cache.as_ref().filter(|_| self.options.has_index)?;
        let value = match cache.get_pinned_owned(index_key(self.hash)) {
            Ok(value) => value?,
            Err(error) => {
                note(state, Some(error.to_string()));
                return None;
            }
        };
        let index = ThemeIndex::from_stored(value, self.hash)?;
        state.counts.stats += index.watched() as u64;
        self.is_trusted(&index).then_some(index)
    }

    /// Whether an index is as its folders are now.
    fn is_trusted(&self, index: &ThemeIndex) -> bool {
        !self.is_racy(index) && index.is_current()
    }

    fn is_racy(&self, index: &ThemeIndex) -> bool {
        self.options.racy_margin.is_none() && index.is_racy()
    }

    fn tried<T>(&self, result: haypile::Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                note(&mut self.state.lock(), Some(error.to_string()));
                None
            }
        }
    }
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
