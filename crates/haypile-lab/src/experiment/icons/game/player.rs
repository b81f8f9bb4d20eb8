//! The process of the game: it draws the elements of a game, and draws them again when its window changes.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use haypile::Cache;
use haypile_icons::{Pixmap, PixmapCache, render_file};
use haypile_measure::meter::{Meter, SystemMeter};

use super::super::orders::{DrawnWindow, GameOrders, Window, checksum};

/// Draws all pictures of a game once for each size of its window, and returns the time of each.
///
/// # Errors
///
/// The cache cannot be opened, or a file is not a picture.
pub(in super::super) fn play(orders: &GameOrders) -> anyhow::Result<Vec<DrawnWindow>> {
    let (mut begin, mut cpu) = (Instant::now(), SystemMeter.cpu_ns());
    let cache = orders.cache.as_ref().map(|url| Cache::open(url)).transpose()?;
    let cache = cache.map(PixmapCache::with);
    let mut report = Vec::new();
    for window in &orders.windows {
        let drawn_before = cache.as_ref().map_or(0, PixmapCache::drawn);
        let pictures = draw(&orders.files, *window, cache.as_ref())?;
        let wall_ns = u64::try_from(begin.elapsed().as_nanos())?;
        let cpu_ns = SystemMeter.cpu_ns() - cpu;
        let rendered = cache.as_ref().map_or(pictures.len() as u64, |it| it.drawn() - drawn_before);
        let checksum = checksum(pictures.iter().map(Pixmap::pixels));
        report.push(DrawnWindow { wall_ns, cpu_ns, rendered, checksum });
        (begin, cpu) = (Instant::now(), SystemMeter.cpu_ns());
    }
    Ok(report)
}

/// Draws the elements and the background of a game for one size of its window.
pub(super) fn draw(
    files: &[PathBuf],
    window: Window,
    cache: Option<&PixmapCache>,
) -> anyhow::Result<Vec<Pixmap>> {
    let (background, elements) = files.split_last().context("a game has drawings")?;
    let element = (window.element_px, window.element_px);
    let of = |path: &Path, size: (u32, u32)| match cache {
        Some(cache) => cache.load(path, size),
        None => render_file(path, size),
    };
    let elements = elements.iter().map(|path| of(path, element));
    let all = elements.chain([of(background, window.background_px)]);
    Ok(all.collect::<Result<_, _>>()?)
}
