//! `haypile trace convert`

use anyhow::bail;

use crate::args::Convert;
use crate::output::number::grouped;
use crate::{input, interrupt};

/// Writes a trace as `.hpt`.
pub(crate) fn run(arguments: &Convert) -> anyhow::Result<()> {
    let (target, traces) = arguments.paths.split_last().expect("two paths at least");
    if target.extension().is_none_or(|extension| extension != "hpt") {
        bail!(
            "{}: the last path is the file to write, and its name has to end in .hpt",
            target.display()
        );
    }
    interrupt::watch()?;
    let trace = input::open(traces, &arguments.reading, !arguments.no_next_use)?;
    trace.write_to(target)?;
    eprintln!(
        "{}: {} requests for {} keys, {} bytes",
        target.display(),
        grouped(trace.requests() as u64),
        grouped(u64::from(trace.keys())),
        grouped(trace.image().len() as u64)
    );
    Ok(())
}
