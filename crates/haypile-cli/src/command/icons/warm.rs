//! `haypile icons warm`

use std::process::ExitCode;

use anyhow::bail;
use haypile_icons::IconRequest;
use serde_json::json;

use crate::args::icons::Warm;
use crate::output::note;
use crate::output::progress::Progress;
use crate::{NEGATIVE, interrupt, output};

/// The most names that are listed of those that were not found.
const MAX_LISTED: usize = 20;

/// Executes `haypile icons warm`: renders icons into the cache.
pub(crate) fn run(arguments: &Warm) -> anyhow::Result<ExitCode> {
    let (icons, cache) = super::open(&arguments.place, super::CacheNeed::Needed)?;
    let index = icons.index();
    let names: Vec<&str> = if arguments.all {
        index.names().collect()
    } else {
        arguments.names.iter().map(String::as_str).collect()
    };
    interrupt::watch()?;
    let steps = names.len() as u64 * arguments.size.len() as u64;
    let progress = Progress::towards(steps, "rendering icons".to_owned());
    let (mut missing, mut broken) = (Vec::new(), Vec::new());
    for name in names {
        for &size in &arguments.size {
            let request = IconRequest { name, size, scale: arguments.scale, is_generic: true };
            match icons.lookup(&request) {
                Ok(Some(_)) => {}
                Ok(None) if missing.last() == Some(&name) => {}
                Ok(None) => missing.push(name),
                Err(error) => broken.push(error.to_string()),
            }
            progress.advance(1);
            if interrupt::asked() {
                bail!(
                    "rendering was interrupted; the icons rendered so far are in the cache; run \
                     the command again for the rest"
                );
            }
        }
    }
    progress.finish();
    let counts = icons.counts();
    if arguments.json {
        output::json(&json!({
            "cache": cache, "theme": icons.theme(), "rendered": counts.rendered,
            "cached": counts.cached, "missing": missing, "broken": broken,
            "failures": counts.failures, "damaged": counts.damaged,
        }))?;
    } else {
        let (rendered, cached) = (counts.rendered, counts.cached);
        output::text(&format!("{rendered} rendered, {cached} were in {cache}\n"))?;
        let notes =
            missing.iter().map(|name| format!("not found: {name}")).chain(broken.iter().cloned());
        for note in notes.take(MAX_LISTED) {
            note!("{note}");
        }
        let more = (missing.len() + broken.len()).saturating_sub(MAX_LISTED);
        if more > 0 {
            note!("and {more} more");
        }
        if counts.damaged > 0 {
            note!("{} values in the cache were damaged, and were made again", counts.damaged);
        }
        if counts.failures > 0 {
            note!("warning: the cache failed {} times", counts.failures);
        }
    }
    let is_well = missing.is_empty() && broken.is_empty();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}
