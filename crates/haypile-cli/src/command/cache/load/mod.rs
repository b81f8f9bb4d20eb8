//! `haypile load`

mod input;

use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use haypile::{Error, Limits, SetOptions, Store};
use parking_lot::Mutex;
use serde::Serialize;

use crate::args::cache::Load;
use crate::cache::OpenCache;
use crate::dump::{self, DumpLine};
use crate::output::note;
use crate::output::number::grouped;
use crate::output::progress::Progress;
use crate::{interrupt, output};
use input::{LoadInput, Piece};

/// Longest form of a byte in JSON: `\u0000`.
const ESCAPED_BYTES: u64 = 6;

/// Generous bound on a line's length without its key and value.
const FRAME_BYTES: u64 = 1 << 10;

/// Longest line for a cache that takes values of any length.
const MAX_LINE_BYTES: u64 = 8 << 30;

/// Number of bad lines that are printed.
const SHOWN: usize = 10;

/// Executes `haypile load`: writes the entries of a dump into a cache.
pub(crate) fn run(arguments: &Load) -> anyhow::Result<()> {
    // Opened before the cache, because opening a cache may create it.
    let input = LoadInput::open(&arguments.file)?;
    let cache = OpenCache::open(&arguments.cache)?;
    interrupt::watch()?;
    let loading = Arc::new(Loading {
        name: input.name.clone(),
        progress: input.progress(),
        store: Arc::clone(cache.store()),
        skip_bad: arguments.skip_bad,
        counts: Mutex::new(LoadCounts::default()),
    });
    let worker = Arc::clone(&loading);
    let outcome = interrupt::unless_asked(move || worker.read(input));
    // The worker may have seen Ctrl-C and ended first.
    let outcome = outcome.filter(|_| !interrupt::asked());
    // Locked to the end, so that the worker loads nothing uncounted after Ctrl-C.
    let mut counts = loading.counts.lock();
    loading.progress.finish();
    counts.entries = cache.store().len().ok();
    cache.end(counts.loaded > 0)?;
    report_bad(&counts);
    let entries = entries(counts.loaded);
    match outcome {
        Some(Ok(())) if arguments.json => output::json(&*counts),
        Some(Ok(())) => {
            let holds =
                counts.entries.map(|entries| format!("; the cache now holds {}", grouped(entries)));
            output::text(&format!("{entries} loaded{}\n", holds.unwrap_or_default()))?;
            Ok(())
        }
        Some(Err(error)) if counts.loaded == 0 => Err(error),
        Some(Err(error)) => Err(error.context(format!("{entries} loaded, then"))),
        None => bail!(
            "the load was interrupted after {entries}, which are in the cache; load the dump again \
             for the rest"
        ),
    }
}

/// Reports on standard error the lines that were skipped.
fn report_bad(counts: &LoadCounts) {
    if counts.skipped > 0 {
        let lines = if counts.skipped == 1 { "line" } else { "lines" };
        note!("haypile: skipped {} {lines}:", grouped(counts.skipped));
        for bad in &counts.first_skipped {
            note!("  {bad}");
        }
    }
}

fn entries(count: u64) -> String {
    format!("{} {}", grouped(count), if count == 1 { "entry" } else { "entries" })
}

/// Counts of lines and entries so far; printed as JSON.
#[derive(Debug, Default, Serialize)]
struct LoadCounts {
    /// Entries written.
    loaded: u64,
    /// Lines skipped.
    skipped: u64,
    /// Entries of the cache at the end, if it counts them.
    entries: Option<u64>,
    #[serde(skip)]
    first_skipped: Vec<String>,
}

struct Loading {
    name: String,
    progress: Progress,
    store: Arc<dyn Store>,
    skip_bad: bool,
    counts: Mutex<LoadCounts>,
}

impl Loading {
    fn read(&self, mut input: LoadInput) -> anyhow::Result<()> {
        let limit_bytes = self.line_limit_bytes();
        let mut buffer = Vec::new();
        let mut has_head = false;
        for number in 1_u64.. {
            let piece = input.next(&mut buffer, limit_bytes).with_context(|| self.name.clone())?;
            if interrupt::asked() {
                return Ok(());
            }
            let place = || format!("{}:{number}", self.name);
            match piece {
                None => break,
                Some(Piece::Whole(line)) if line.trim_ascii().is_empty() => {}
                Some(Piece::Whole(line)) if has_head => self.take(line, place)?,
                Some(Piece::Whole(line)) => {
                    dump::read_head(line).with_context(place)?;
                    has_head = true;
                }
                Some(Piece::TooLong) => self.bad(
                    &anyhow!(
                        "the line exceeds {limit_bytes} bytes, the limit for entries of {}",
                        self.store.describe()
                    ),
                    place,
                )?,
            }
        }
        if !has_head {
            bail!("{} is empty; a dump has at least its first line", self.name);
        }
        Ok(())
    }

    /// Returns the length of the longest line that can be an entry of the store.
    fn line_limit_bytes(&self) -> u64 {
        let entry_bytes =
            self.store.limits().max_value_bytes.saturating_add(Limits::MAX_KEY_BYTES as u64);
        let line_bytes = entry_bytes.saturating_mul(ESCAPED_BYTES).saturating_add(FRAME_BYTES);
        line_bytes.min(MAX_LINE_BYTES)
    }

    fn take(&self, line: &[u8], place: impl Fn() -> String) -> anyhow::Result<()> {
        let entry = match dump::read_line(line) {
            Ok(DumpLine::Entry(entry)) => entry,
            Ok(DumpLine::Head) => return Ok(()),
            Err(error) => return self.bad(&error, place),
        };
        let mut counts = self.counts.lock();
        if interrupt::asked() {
            return Ok(());
        }
        let options = SetOptions::set().with_ttl(entry.ttl);
        match self.store.set(&entry.key, &entry.value, &options) {
            Ok(_) => {
                counts.loaded += 1;
                self.progress.advance(line.len() as u64 + 1);
                Ok(())
            }
            Err(error @ (Error::KeyTooLong { .. } | Error::ValueTooLarge { .. })) => {
                drop(counts);
                self.bad(&error.into(), place)
            }
            Err(error) => Err(error).with_context(place),
        }
    }

    /// Skips a line that cannot be loaded, or ends the loading without --skip-bad.
    fn bad(&self, error: &anyhow::Error, place: impl Fn() -> String) -> anyhow::Result<()> {
        if !self.skip_bad {
            return Err(anyhow!(
                "{}: a line of the dump cannot be loaded: {error:#} (--skip-bad skips and counts \
                 such lines)",
                place()
            ));
        }
        let mut counts = self.counts.lock();
        counts.skipped += 1;
        if counts.first_skipped.len() < SHOWN {
            counts.first_skipped.push(format!("{}: {error:#}", place()));
        }
        Ok(())
    }
}
