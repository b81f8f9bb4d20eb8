//! `haypile dump`

use std::io::{self, BufWriter, IsTerminal, Write};

use super::walk::walk;
use crate::args::cache::Dump;
use crate::cache::OpenCache;
use crate::dump;
use crate::output::note;
use crate::output::progress::Progress;

/// Executes `haypile dump`: writes all entries as lines of JSON.
pub(crate) fn run(arguments: &Dump) -> anyhow::Result<()> {
    let cache = OpenCache::open_to_inspect(&arguments.cache)?;
    let store = &**cache.store();
    let out = io::stdout().lock();
    let progress = if out.is_terminal() {
        Progress::silent()
    } else {
        Progress::counting("dumping".to_owned(), "entries")
    };
    let mut out = BufWriter::new(out);
    writeln!(out, "{}", dump::head(store.describe())?)?;
    let (mut value, mut in_groups) = (Vec::new(), 0_u64);
    let dumped = walk(store, &arguments.selection, |key| {
        // The entry may have been removed since it was listed.
        let Some(hit) = store.get_into(key, &mut value)? else { return Ok(false) };
        if hit.has_groups {
            in_groups += 1;
            return Ok(false);
        }
        writeln!(out, "{}", dump::entry(key, &value, hit)?)?;
        progress.advance(1);
        Ok(true)
    });
    progress.finish();
    // The lines before an error are whole.
    out.flush()?;
    dumped?;
    if in_groups > 0 {
        note!(
            "haypile: entries left out because they are in groups, which a dump cannot name: {in_groups}"
        );
    }
    cache.end(false)
}
