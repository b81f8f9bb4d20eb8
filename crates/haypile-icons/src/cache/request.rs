//! Requests, answers, options and counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::pixmap::Pixmap;
use crate::theme::base_folders;

/// For this long, nobody asks again whether files are as they were. Together with a lookup it stays below a second.
const EPOCH: Duration = Duration::from_millis(900);

/// An icon to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IconRequest<'a> {
    /// The name of the icon, without folder and extension.
    pub name: &'a str,
    /// The size, in pixels at scale 1.
    pub size: u32,
    /// The scale of the screen: the icon has `size` times `scale` pixels.
    pub scale: u32,
    /// Whether a less specific icon may serve: `input-mouse` for `input-mouse-usb`.
    pub is_generic: bool,
}

impl<'a> IconRequest<'a> {
    /// Returns a request for an icon at scale 1, for which a less specific one may serve.
    pub fn new(name: &'a str, size: u32) -> Self {
        Self { name, size, scale: 1, is_generic: true }
    }
}

/// An icon that was found.
#[derive(Clone, Debug)]
pub struct Icon {
    pub(super) path: PathBuf,
    pub(super) pixmap: Pixmap,
}

impl Icon {
    /// Returns the path of the file that the icon was made of.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the width in pixels.
    pub fn width(&self) -> u32 {
        self.pixmap.width()
    }

    /// Returns the height in pixels.
    pub fn height(&self) -> u32 {
        self.pixmap.height()
    }

    /// Rows of red, green, blue and alpha, the colours multiplied by alpha.
    pub fn pixels(&self) -> &[u8] {
        self.pixmap.pixels()
    }

    /// Returns the picture of the icon.
    pub fn pixmap(&self) -> &Pixmap {
        &self.pixmap
    }
}

/// Parts of an [`IconCache`](crate::IconCache), and where it looks.
#[derive(Clone, Debug)]
pub struct IconCacheOptions {
    /// The folders with themes, the most important first.
    pub base: Vec<PathBuf>,
    /// Whether the index is kept.
    pub has_index: bool,
    /// Whether pixmaps are kept.
    pub has_pixmaps: bool,
    /// The time for which checks are trusted.
    pub epoch: Duration,
    /// Whether the check of another process, which sees the same files and checked them within the epoch, serves as one
    /// of this process. What changed before this process asks for the first time may then be seen later than that.
    pub shares_checks: bool,
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
            shares_checks: true,
            racy_margin: None,
        }
    }
}

/// Counts of this process's use of an icon cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IconCounts {
    /// Lookups of icons.
    pub lookups: u64,
    /// Lookups that found no icon.
    pub negative: u64,
    /// Icons that were rendered.
    pub rendered: u64,
    /// Pixmaps that came from the cache.
    pub cached: u64,
    /// Pixmaps of the cache that were copied, for no further segment of its file could be locked; see
    /// [`Store::get_in_place`](haypile::Store::get_in_place).
    pub copied: u64,
    /// Pixmaps of the cache that were stored again, so that the icons of programs lie together in few segments.
    pub gathered: u64,
    /// Scans of the theme's folders.
    pub scans: u64,
    /// Calls that asked for the status of a file or folder.
    pub stats: u64,
    /// Epochs that began with the check of another process.
    pub shared_checks: u64,
    /// Failures of the cache; icons were made without it.
    pub failures: u64,
    /// Values of the cache whose bytes were not those that were stored. They were made and stored again.
    pub damaged: u64,
}
