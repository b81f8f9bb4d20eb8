//! `haypile icons stat`

use std::process::ExitCode;
use std::time::Instant;

use serde_json::json;

use crate::args::icons::IconsStat;
use crate::output;

/// Executes `haypile icons stat`: prints the number of icons, the size and the state of a theme's
/// index.
pub(crate) fn run(arguments: &IconsStat) -> anyhow::Result<ExitCode> {
    let (icons, cache) = super::open(&arguments.place, super::CacheNeed::Needed)?;
    let begin = Instant::now();
    let index = icons.index();
    let opened = begin.elapsed();
    let was_stored = icons.counts().scans == 0;
    let begin = Instant::now();
    let is_current = index.is_current();
    let check = begin.elapsed();
    let bytes = index.as_bytes().len() as u64;
    if arguments.json {
        output::json(&json!({
            "theme": icons.theme(),
            "cache": cache,
            "names": index.len(),
            "watched_paths": index.watched(),
            "index_bytes": bytes,
            "was_stored": was_stored,
            "current": is_current,
            "open_ns": u64::try_from(opened.as_nanos()).unwrap_or(u64::MAX),
            "check_ns": u64::try_from(check.as_nanos()).unwrap_or(u64::MAX),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    let origin = if was_stored { "from the cache, checked" } else { "scanned" };
    let lines = [
        ("theme", icons.theme().to_owned()),
        ("cache", cache),
        ("icons", format!("{} names", index.len())),
        ("index", format!("{bytes} bytes, {origin} in {:.2} ms", ms(opened))),
        ("check", format!("{} folders and descriptions in {:.2} ms", index.watched(), ms(check))),
    ];
    output::text(&lines.map(|(name, value)| format!("{name:10} {value}\n")).concat())?;
    Ok(ExitCode::SUCCESS)
}
