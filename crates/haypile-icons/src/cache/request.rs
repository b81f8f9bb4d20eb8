//! Requests, answers, options and counts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::pixmap::Pixmap;
use crate::theme::base_folders;

/// For this long, nobody asks again whether files are as they were. Together with a lookup it stays below a second.
const EPOCH: Duration = Duration::from_millis(900);

/// A request for an icon: name, size and scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IconRequest<'a> {
    /// The name of the icon, without folder and extension.
    pub name: &'a str,
    /// The size of the icon, in pixels at scale 1.
    pub size: u32,
    /// The scale of the screen: the icon is `size` times `scale` pixels wide.
    pub scale: u32,
    /// Whether a less specific icon is accepted, such as `input-mouse` for the name `input-mouse-usb`.
    pub is_generic: bool,
}

impl<'a> IconRequest<'a> {
    /// Returns a request for an icon at scale 1, which accepts a less specific icon.
    pub fn new(name: &'a str, size: u32) -> Self {
        Self { name, size, scale: 1, is_generic: true }
    }
}

/// An icon that was found: its file and its picture.
#[derive(Clone, Debug)]
pub struct Icon {
    pub(super) path: PathBuf,
    pub(super) pixmap: Pixmap,
}

impl Icon {
    /// Returns the path of the file from which the icon was rendered.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the width of the icon in pixels.
    pub fn width(&self) -> u32 {
        self.pixmap.width()
    }

    /// Returns the height of the icon in pixels.
    pub fn height(&self) -> u32 {
        self.pixmap.height()
    }

    /// Returns the pixels of the icon, row by row: red, green, blue and alpha, the colours
    /// multiplied by alpha.
    pub fn pixels(&self) -> &[u8] {
        self.pixmap.pixels()
    }

    /// Returns the picture of the icon.
    pub fn pixmap(&self) -> &Pixmap {
        &self.pixmap
    }
}

/// Options of an [`IconCache`](crate::IconCache): the folders to search, whether indexes and pictures are cached, and
/// how long file checks are trusted.
#[derive(Clone, Debug)]
pub struct IconCacheOptions {
    /// The folders that contain icon themes, the most important first.
    pub base: Vec<PathBuf>,
    /// Whether the index of the theme's files is cached.
    pub has_index: bool,
    /// Whether rendered pictures of icons are cached.
    pub has_pixmaps: bool,
    /// The time for which a file whose status was checked is taken for unchanged.
    pub epoch: Duration,
    /// Whether recent file checks of other processes, which see the same files, are used instead of own checks. A
    /// change just before this process's first request may then be noticed later.
    pub shares_checks: bool,
    /// The smallest age of a source file whose picture is cached, if it is not the file system's time resolution: for
    /// tests.
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

/// Counts of a process's operations on an icon cache: look-ups, renderings, file checks and failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IconCounts {
    /// The number of requests for icons.
    pub lookups: u64,
    /// The number of requests that found no icon.
    pub negative: u64,
    /// The number of icons that were rendered.
    pub rendered: u64,
    /// The number of pictures of icons that were found in the cache, and not rendered.
    pub cached: u64,
    /// The number of pictures in the cache that were copied, because no further segment of its file
    /// could be locked for reading in place; see
    /// [`Store::get_in_place`](haypile::Store::get_in_place).
    pub copied: u64,
    /// The number of pictures that were stored again in the cache, so that the icons of a program lie together in few
    /// segments.
    pub gathered: u64,
    /// The number of scans of the theme's folders, to build an index of its icons.
    pub scans: u64,
    /// The number of system calls for the status of a file or folder.
    pub stats: u64,
    /// The number of epochs (periods of trust in file checks) that began with the checks of another process.
    pub shared_checks: u64,
    /// The number of times that the cache failed, so that icons were rendered without it.
    pub failures: u64,
    /// The number of damaged values in the cache, which were rendered and stored again.
    pub damaged: u64,
}
