//! Icons by the [freedesktop Icon Theme Specification], from one cache that all processes share.
//!
//! A desktop looks for an icon in hundreds of folders and then renders it. This crate does both once
//! for all processes: the file of a [`haypile::Cache`] holds the *index* of a theme (which icon is in
//! which folder: the header of the KDE icon cache, where most of its gain came from) and *pixmaps*,
//! icons as they are drawn. Nothing stale is answered: `docs/icons.md` describes how that is
//! checked, and what the check costs.
//!
//! ```no_run
//! use haypile_icons::{IconCache, IconRequest};
//!
//! let icons = IconCache::open("breeze");
//! if let Some(icon) = icons.lookup(&IconRequest::new("folder-open", 32))? {
//!     println!("{}: {} by {} pixels", icon.path().display(), icon.width(), icon.height());
//!     let rgba: &[u8] = icon.pixels();
//! #   let _ = rgba;
//! }
//! # Ok::<(), haypile_icons::IconError>(())
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `theme` | the specification: theme files, the scan of a theme's folders, the choice of a file |
//! | `stamp` | files and folders as they were when they were read |
//! | `pixmap`, `render` | pictures, and how they are made of PNG and SVG |
//! | `place` | the file of a user's cache |
//! | `cache` | icons from the cache, or made for it; stored pictures that lie apart are gathered |
//! | `view`, `trust` | what a process sees of the file system, and the checks that processes with the same view share |
//! | `verified` | values whose checksums are verified |
//! | `pixmap_cache` | pixmaps by name, with the calls of `KPixmapCache` |
//!
//! [freedesktop Icon Theme Specification]: https://specifications.freedesktop.org/icon-theme-spec/latest/

#![cfg(unix)]

mod cache;
mod error;
mod pixmap;
mod pixmap_cache;
mod place;
mod regular;
mod render;
mod stamp;
pub mod theme;
mod trust;
mod verified;
mod view;

pub use cache::{Icon, IconCache, IconCacheOptions, IconCounts, IconRequest};
pub use error::IconError;
pub use pixmap::Pixmap;
pub use pixmap_cache::{PixmapCache, RemoveStrategy};
pub use place::{CacheError, OpenedCache, cache_url, cache_url_at, open_cache, open_cache_at};
pub use render::{MAX_FILE_BYTES, MAX_SIDE_PX, render_file};
