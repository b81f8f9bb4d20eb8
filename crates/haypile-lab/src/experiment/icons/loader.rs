//! The process that loads icons and keeps them.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use haypile::Cache;
use haypile_icons::theme::{IconName, ProbeCounts, probe};
use haypile_icons::{Icon, IconCache, IconCacheOptions, IconRequest, Pixmap, render_file};
use haypile_measure::meter::{Meter, SystemMeter};
use serde::Serialize;

use super::game::play;
use super::gtk::GtkTheme;
use super::orders::{IconOrders, IconReport, LoaderOrders, checksum};
use super::way::Way;

/// The time for which checks are trusted: longer than a measurement.
const EPOCH: Duration = Duration::from_mins(1);
/// Blocks of memory that a loader holds, of the size of a picture, and their number.
const HELD: (usize, usize) = (4096, 1024);

/// A picture that a loader keeps.
enum Kept {
    Shared(Icon),
    Private(Pixmap),
}

impl Kept {
    fn pixels(&self) -> &[u8] {
        match self {
            Self::Shared(icon) => icon.pixels(),
            Self::Private(pixmap) => pixmap.pixels(),
        }
    }
}

/// Loads icons or draws a game, as the first line of the input requests, and keeps the pictures in
/// memory until the input ends.
///
/// # Errors
///
/// The orders make no sense, or an icon cannot be made.
pub fn serve(input: &mut dyn BufRead, output: &mut dyn Write) -> anyhow::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let orders: LoaderOrders = serde_json::from_str(&line).context("these are not orders")?;
    // Pictures would go where this program's start has freed memory, and so seem to need none.
    let held: Vec<Vec<u8>> = (0..HELD.1).map(|_| vec![0; HELD.0]).collect();
    writeln!(output, "ready")?;
    output.flush()?;
    line.clear();
    input.read_line(&mut line)?;
    match orders {
        LoaderOrders::Icons(orders) => {
            let (report, kept, icons) = load(&orders)?;
            tell(&report, input, output)?;
            drop((kept, icons));
        }
        LoaderOrders::Game(orders) => tell(&play(&orders)?, input, output)?,
    }
    drop(held);
    Ok(())
}

/// Reports, and waits: the memory of the process is read now.
fn tell(
    report: &impl Serialize,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> anyhow::Result<()> {
    writeln!(output, "{}", serde_json::to_string(report)?)?;
    output.flush()?;
    input.read_line(&mut String::new())?;
    Ok(())
}

/// A loader's report, what it keeps, and its cache, which stays open as in programs.
type Loaded = (IconReport, Vec<Kept>, Option<(IconCache, Option<Cache>)>);

fn load(orders: &IconOrders) -> anyhow::Result<Loaded> {
    let (begin, cpu) = (Instant::now(), SystemMeter.cpu_ns());
    let mut report = IconReport::default();
    let mut kept = Vec::with_capacity(orders.names.len());
    let icons = match orders.way {
        Way::Probe => {
            let mut counts = ProbeCounts::default();
            let (theme, base, size) = (&orders.theme, &orders.base, (orders.size, 1));
            let find = |name: IconName<'_>| probe(theme, base, name, size, &mut counts);
            render_all(orders, find, &mut report, &mut kept)?;
            report.stats = counts.stats;
            None
        }
        Way::Gtk => {
            let mut theme = GtkTheme::open(&orders.theme, &orders.base)?;
            let find = |name: IconName<'_>| theme.find(name, (orders.size, 1));
            render_all(orders, find, &mut report, &mut kept)?;
            report.stats = theme.stats;
            None
        }
        way => {
            let cache = way.has_cache().then(|| Cache::open(&orders.cache)).transpose()?;
            let options = IconCacheOptions {
                base: orders.base.clone(),
                has_index: way != Way::Pixmaps,
                has_pixmaps: matches!(way, Way::Pixmaps | Way::Copied | Way::Both | Way::Shared),
                // A machine may be so slow that a check is over before the measured process begins.
                epoch: EPOCH,
                shares_checks: way.shares_checks(),
                ..IconCacheOptions::default()
            };
            let icons = IconCache::with(&orders.theme, cache.clone(), options);
            get_all(orders, &icons, cache.as_ref(), &mut report, |it| kept.push(it))?;
            Some((icons, cache))
        }
    };
    report.wall_ns = u64::try_from(begin.elapsed().as_nanos())?;
    report.cpu_ns = SystemMeter.cpu_ns() - cpu;
    if let Some((icons, cache)) = &icons {
        let counts = icons.counts();
        report.stats = counts.stats;
        report.negative += counts.negative;
        report.rendered += counts.rendered;
        report.cached += counts.cached;
        (report.copied, report.gathered) = (counts.copied, counts.gathered);
        report.failures = counts.failures;
        report.shared_checks = counts.shared_checks;
        let again = Instant::now();
        // They are not kept a second time: that would count as memory of the first.
        get_all(orders, icons, cache.as_ref(), &mut IconReport::default(), drop)?;
        report.again_ns = u64::try_from(again.elapsed().as_nanos())?;
    }
    report.found = kept.len() as u64;
    report.checksum = checksum(kept.iter().map(Kept::pixels));
    Ok((report, kept, icons))
}

/// Renders the files that a search finds.
fn render_all(
    orders: &IconOrders,
    mut find: impl FnMut(IconName<'_>) -> Option<PathBuf>,
    report: &mut IconReport,
    kept: &mut Vec<Kept>,
) -> anyhow::Result<()> {
    for name in orders.names.iter().filter_map(|name| IconName::new(name)) {
        match find(name) {
            Some(path) => {
                report.rendered += 1;
                kept.push(Kept::Private(render_file(&path, (orders.size, orders.size))?));
            }
            None => report.negative += 1,
        }
    }
    Ok(())
}

fn get_all(
    orders: &IconOrders,
    icons: &IconCache,
    cache: Option<&Cache>,
    report: &mut IconReport,
    mut keep: impl FnMut(Kept),
) -> anyhow::Result<()> {
    for name in &orders.names {
        if orders.way == Way::Png {
            let index = icons.index();
            let path = IconName::new(name).and_then(|it| index.find(it, (orders.size, 1), true));
            match (path, cache) {
                (Some(path), Some(cache)) => {
                    keep(Kept::Private(png(&path, cache, orders.size, report)?));
                }
                _ => report.negative += 1,
            }
            continue;
        }
        let Some(icon) = icons.lookup(&IconRequest::new(name, orders.size))? else { continue };
        keep(if orders.way == Way::Copied {
            let pixels = icon.pixels().to_vec();
            let copy = Pixmap::new(icon.width(), icon.height(), pixels);
            Kept::Private(copy.context("a picture has the pixels of its size")?)
        } else {
            Kept::Shared(icon)
        });
    }
    Ok(())
}

/// A picture that is kept as a PNG, without a check of its file.
fn png(path: &Path, cache: &Cache, size: u32, report: &mut IconReport) -> anyhow::Result<Pixmap> {
    let key = format!("png:{size}:{}", path.display());
    if let Some(bytes) = cache.get(&key)? {
        report.cached += 1;
        return Ok(Pixmap::from_png(&bytes)?);
    }
    report.rendered += 1;
    let bytes = render_file(path, (size, size))?.to_png()?;
    cache.set(&key, &bytes)?;
    Ok(Pixmap::from_png(&bytes)?)
}
