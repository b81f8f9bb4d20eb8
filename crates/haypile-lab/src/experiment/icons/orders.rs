//! Orders of processes that load or draw pictures, and their reports.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::way::Way;

/// The orders of a process that loads icons.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct IconOrders {
    pub(super) way: Way,
    pub(super) theme: String,
    pub(super) base: Vec<PathBuf>,
    pub(super) names: Vec<String>,
    pub(super) size: u32,
    /// The URL of the cache.
    pub(super) cache: String,
}

/// The orders of a process: those of a loader or those of a game.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "set", rename_all = "lowercase")]
pub(super) enum LoaderOrders {
    Icons(IconOrders),
    Game(GameOrders),
}

/// Times and counts that a loader of icons reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IconReport {
    /// The time from opening the cache to the last icon, in nanoseconds.
    pub(super) wall_ns: u64,
    /// The time of a second pass, with the cache open and everything checked, in nanoseconds.
    pub(super) again_ns: u64,
    pub(super) cpu_ns: u64,
    pub(super) found: u64,
    pub(super) negative: u64,
    pub(super) rendered: u64,
    pub(super) cached: u64,
    /// Number of calls for the status of files and folders.
    pub(super) stats: u64,
    /// The checksum of all pixels, in the order of the names.
    pub(super) checksum: u64,
    /// Number of pictures of the cache that were copied for want of pins.
    pub(super) copied: u64,
    /// Number of pictures of the cache that were stored again, next to each other.
    pub(super) gathered: u64,
    /// Number of failures of the cache.
    pub(super) failures: u64,
    /// Number of checks that were taken over from another process.
    pub(super) shared_checks: u64,
}

/// A size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    /// The side of an element, in pixels.
    pub(super) element_px: u32,
    pub(super) background_px: (u32, u32),
}

/// The orders of a game: its drawings, and the sizes of its window.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct GameOrders {
    /// Paths of the SVG files; the last one is the background.
    pub(super) files: Vec<PathBuf>,
    /// The sizes that the window has, one after the other.
    pub(super) windows: Vec<Window>,
    /// The URL of a cache of pixmaps; without one, everything is drawn each time.
    pub(super) cache: Option<String>,
}

/// The report on drawing the whole game in one size of its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DrawnWindow {
    pub(super) wall_ns: u64,
    pub(super) cpu_ns: u64,
    /// Number of files that were rendered.
    pub(super) rendered: u64,
    /// The checksum of all pixels.
    pub(super) checksum: u64,
}

/// Returns the checksum of pictures.
pub(super) fn checksum<'a>(pictures: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = Xxh3::new();
    for pixels in pictures {
        hasher.update(&(pixels.len() as u64).to_le_bytes());
        hasher.update(pixels);
    }
    hasher.digest()
}
