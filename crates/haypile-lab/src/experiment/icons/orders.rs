//! Orders of processes that load or draw pictures, and their reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::way::Way;

/// The orders for a process that loads icons: a theme, names and a size of icons, and a way of
/// loading them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IconOrders {
    pub(super) way: Way,
    pub(super) theme: String,
    pub(super) base: Vec<PathBuf>,
    pub(super) names: Vec<String>,
    pub(super) size: u32,
    /// The URL of the icon cache.
    pub(super) cache: String,
}

/// The orders for a process that makes pictures: to load icons, or to draw a game.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "lowercase")]
pub(super) enum LoaderOrders {
    Icons(IconOrders),
    Game(GameOrders),
}

/// Times and counts that a process which loads icons reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IconReport {
    /// The time from opening the icon cache to having loaded the last icon, in nanoseconds.
    pub(super) wall_ns: u64,
    /// The time of loading all icons a second time, with the cache open and the icon theme checked,
    /// in nanoseconds.
    pub(super) again_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) found: u64,
    pub(super) negative: u64,
    pub(super) rendered: u64,
    pub(super) cached: u64,
    /// Number of system calls that asked for the status of files and folders while icons were
    /// loaded.
    pub(super) stats: u64,
    /// The checksum of all pixels of the icons, in the order of their names.
    pub(super) checksum: u64,
    /// Number of icons that were copied out of the cache because no further segment of its file
    /// could be locked for reading in place.
    pub(super) copied: u64,
    /// Number of icons that were stored again, next to each other in the cache file, so that they
    /// can be read in place.
    pub(super) gathered: u64,
    /// Number of operations of the icon cache that failed.
    pub(super) failures: u64,
    /// Number of checks for changes of the icon theme whose result was taken over from another
    /// process.
    pub(super) shared_checks: u64,
}

/// A size of the game's window: the sizes of its elements and of its background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    /// Width and height of each square element of the game, in pixels.
    pub(super) element_px: u32,
    pub(super) background_px: (u32, u32),
}

/// The orders for a process that draws a game: its pictures, and the sizes of its window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GameOrders {
    /// Paths of the game's SVG files; the last one is the background.
    pub(super) files: Vec<PathBuf>,
    /// The sizes that the game's window has, one after the other.
    pub(super) windows: Vec<Window>,
    /// The URL of a cache of drawn pictures; `None` to draw all pictures each time.
    pub(super) cache: Option<String>,
}

/// Times and counts of drawing all pictures of a game for one size of its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DrawnWindow {
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
    /// Number of the game's SVG files that were rendered instead of read from the cache.
    pub(super) rendered: u64,
    /// The checksum of the pixels of all pictures that were drawn for the window.
    pub(super) checksum: u64,
}

/// Returns the checksum of the pixels of pictures.
pub(super) fn checksum<'a>(pictures: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = Xxh3::new();
    for pixels in pictures {
        hasher.update(&(pixels.len() as u64).to_le_bytes());
        hasher.update(pixels);
    }
    hasher.digest()
}
